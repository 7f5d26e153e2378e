/* SPDX-License-Identifier: MIT */
/* Contexts: one per device, which exists as long as the library. */
#ifndef HIP_API_CTX_H
#define HIP_API_CTX_H

#include <hip/hip_runtime_api.h>

/* The context of a device whose index was checked. */
hipCtx_t hip_context_of(int device);

#endif
