/* SPDX-License-Identifier: MIT */
/*
 * The legacy way to share memory by a 64-byte handle without a channel between the processes. It
 * is refused with the reason: a buffer reaches another process as a descriptor only.
 */
#include "hip_api/state.h"

#define REASON "share memory with hipMemExportToShareableHandle"

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (!handle || !ptr))
        code = hip_null(handle ? "ptr" : "handle");
    if (code != hipSuccess)
        HIP_RETURN(code);
    vmm_query(state->vmm, (uint64_t)(uintptr_t)ptr, &range);
    if (range.kind == VMM_KIND_DEVICE)
        HIP_RETURN(hip_fail(hipErrorNotSupported, REASON));
    HIP_RETURN(hip_fail(hipErrorInvalidValue, "address 0x%llx is not of hipMalloc",
                        (unsigned long long)(uintptr_t)ptr));
}

hipError_t hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned int flags)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    (void)handle;
    if (code == hipSuccess && (!ptr || flags != hipIpcMemLazyEnablePeerAccess))
        code = hip_fail(hipErrorInvalidValue, ptr ? "flags is 0x%x, not 1" : "ptr is NULL", flags);
    if (code == hipSuccess)
        code = hip_fail(hipErrorNotSupported, REASON);
    HIP_RETURN(code);
}

hipError_t hipIpcCloseMemHandle(void *ptr)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_fail(hipErrorInvalidValue, "address 0x%llx was not opened from a handle",
                        (unsigned long long)(uintptr_t)ptr);
    HIP_RETURN(code);
}
