/* SPDX-License-Identifier: MIT */
/* What HIP keeps with an allocation, packed into the tag of struct vmm_props. */
#ifndef HIP_API_VMM_HANDLE_H
#define HIP_API_VMM_HANDLE_H

#include <kfdirect/vmm.h>
#include <hip/hip_runtime_api.h>

/* tag[0]: handle types asked for at creation, or the type an import came by. */
#define HIP_TAG_HANDLE_TYPES 0
/* tag[1]: allocFlags, as its bytes lie in memory. */
#define HIP_TAG_ALLOC_FLAGS 1
/* tag[2], tag[3]: the location; type 0 in an import, where only the kernel knows it. */
#define HIP_TAG_LOCATION_TYPE 2
#define HIP_TAG_LOCATION_ID 3

static inline vmm_handle hip_to_vmm(hipMemGenericAllocationHandle_t handle)
{
    return (vmm_handle)(uintptr_t)handle;
}

static inline hipMemGenericAllocationHandle_t hip_from_vmm(vmm_handle handle)
{
    return (hipMemGenericAllocationHandle_t)(uintptr_t)handle;
}

#endif
