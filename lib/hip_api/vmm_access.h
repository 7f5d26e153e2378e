/* SPDX-License-Identifier: MIT */
/* Rights, as HIP and as the VMM layer number them. */
#ifndef HIP_API_VMM_ACCESS_H
#define HIP_API_VMM_ACCESS_H

#include <kfdirect/vmm.h>
#include <hip/hip_runtime_api.h>

/* The hipMemAccessFlags of rights that the VMM layer gave. */
hipMemAccessFlags hip_access_from_prot(uint32_t prot);

#endif
