/* SPDX-License-Identifier: MIT */
/* Programs include this name; there is no kernel language here, so it is the host API alone. */
#ifndef HIP_RUNTIME_H
#define HIP_RUNTIME_H

#include <hip/hip_version.h>
#include <hip/hip_runtime_api.h>

#endif
