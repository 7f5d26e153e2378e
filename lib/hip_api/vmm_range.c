/* SPDX-License-Identifier: MIT */
/* Address ranges and what is mapped in them. */
#include "hip_api/state.h"
#include "hip_api/vmm_handle.h"

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static hipError_t address_reserve(void **ptr, size_t size, size_t alignment, void *addr,
                                  unsigned long long flags)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    uint64_t va;

    if (code != hipSuccess)
        return code;
    if (!ptr)
        return hip_null("ptr");
    if (flags != 0)
        return hip_fail(hipErrorInvalidValue, "flags is 0x%llx, not 0", flags);
    code = hip_from_errno(vmm_reserve(state->vmm, size, alignment, address(addr), &va));
    if (code == hipSuccess)
        *ptr = (void *)(uintptr_t)va;
    return code;
}

hipError_t hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
                                unsigned long long flags)
{
    HIP_RETURN(address_reserve(ptr, size, alignment, addr, flags));
}

/* Starts for a call on [ptr, ptr + size). */
static hipError_t start_with_range(const void *ptr, size_t size, struct hip_state **state)
{
    hipError_t code = hip_start_vmm(state);

    if (code == hipSuccess && !ptr)
        code = hip_null("ptr");
    if (code == hipSuccess && size == 0)
        code = hip_fail(hipErrorInvalidValue, "size is 0");
    return code;
}

hipError_t hipMemAddressFree(void *ptr, size_t size)
{
    struct hip_state *state;
    hipError_t code = start_with_range(ptr, size, &state);

    if (code == hipSuccess)
        code = hip_from_errno(vmm_address_free(state->vmm, address(ptr), size));
    HIP_RETURN(code);
}

static hipError_t map(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                      unsigned long long flags)
{
    struct hip_state *state;
    hipError_t code = start_with_range(ptr, size, &state);

    if (code != hipSuccess)
        return code;
    if (!handle)
        return hip_null("handle");
    if (flags != 0)
        return hip_fail(hipErrorInvalidValue, "flags is 0x%llx, not 0", flags);
    return hip_from_errno(vmm_map(state->vmm, address(ptr), size, offset, hip_to_vmm(handle)));
}

hipError_t hipMemMap(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
    HIP_RETURN(map(ptr, size, offset, handle, flags));
}

hipError_t hipMemUnmap(void *ptr, size_t size)
{
    struct hip_state *state;
    hipError_t code = start_with_range(ptr, size, &state);

    if (code == hipSuccess)
        code = hip_from_errno(vmm_unmap(state->vmm, address(ptr), size));
    HIP_RETURN(code);
}

hipError_t hipMemMapArrayAsync(hipArrayMapInfo *mapInfoList, unsigned int count, hipStream_t stream)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (!mapInfoList || count == 0))
        code = hip_fail(hipErrorInvalidValue, "%s",
                        mapInfoList ? "count is 0" : "mapInfoList is NULL");
    if (code == hipSuccess)
        code = hip_fail(hipErrorNotSupported, "there are no sparse arrays here");
    HIP_RETURN(code);
}
