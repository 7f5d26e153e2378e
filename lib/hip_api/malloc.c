/* SPDX-License-Identifier: MIT */
/* One-step memory: hipMalloc, pinned host memory, and their kin. */
#include "hip_api/malloc.h"

#include <errno.h>

#include "hip_api/state.h"
#include "hip_api/stream.h"
#include "hip_api/thread.h"

static hipError_t allocate(struct hip_state *state, enum vmm_location location, size_t size,
                           unsigned int flags, bool uncached, void **ptr)
{
    struct vmm_props props = {
        .location = location,
        .device = (uint32_t)hip_thread()->device,
        .uncached = uncached,
    };
    uint64_t granule = vmm_min_granularity(state->vmm), va;
    hipError_t code;

    if (size == 0) {
        *ptr = NULL;
        return hipSuccess;
    }
    if (size > UINT64_MAX - (granule - 1))
        return hip_fail(hipErrorOutOfMemory, "size is 0x%zx", size);
    props.tag[HIP_TAG_FLAGS] = flags;
    props.tag[HIP_TAG_SIZE_LOW] = (uint32_t)size;
    props.tag[HIP_TAG_SIZE_HIGH] = (uint32_t)(size >> 32);
    code =
        hip_from_errno(vmm_alloc(state->vmm, &props, (size + granule - 1) & ~(granule - 1), &va));
    if (code == hipSuccess)
        *ptr = (void *)(uintptr_t)va;
    return code;
}

static hipError_t start_with_pointer(const void *ptr, struct hip_state **state)
{
    hipError_t code = hip_start(state);

    if (code == hipSuccess && !ptr)
        code = hip_null("ptr");
    return code;
}

static hipError_t device_malloc(void **ptr, size_t size, unsigned int flags)
{
    struct hip_state *state;
    hipError_t code = start_with_pointer(ptr, &state);

    if (code != hipSuccess)
        return code;
    switch (flags) {
    case hipDeviceMallocDefault:
        return allocate(state, VMM_LOCATION_DEVICE, size, flags, false, ptr);
    case hipDeviceMallocFinegrained:
    case hipDeviceMallocUncached:
        /* Memory that no cache holds is coherent at any grain. */
        return allocate(state, VMM_LOCATION_DEVICE, size, flags, true, ptr);
    case hipMallocSignalMemory:
        return hip_fail(hipErrorNotSupported, "there are no signals here");
    case hipDeviceMallocContiguous:
        return hip_fail(hipErrorNotSupported, "contiguous memory cannot be asked for");
    default:
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    }
}

hipError_t hipMalloc(void **ptr, size_t size)
{
    HIP_RETURN(device_malloc(ptr, size, hipDeviceMallocDefault));
}

hipError_t hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags)
{
    HIP_RETURN(device_malloc(ptr, size, flags));
}

hipError_t hipMallocAsync(void **ptr, size_t size, hipStream_t stream)
{
    hipError_t code = hip_check_stream(stream);

    HIP_RETURN(code == hipSuccess ? device_malloc(ptr, size, hipDeviceMallocDefault) : code);
}

static hipError_t host_malloc(void **ptr, size_t size, unsigned int flags)
{
    const unsigned int known = hipHostMallocPortable | hipHostMallocMapped |
                               hipHostMallocWriteCombined | hipHostMallocUncached |
                               hipHostMallocNumaUser | hipHostMallocCoherent |
                               hipHostMallocNonCoherent;
    struct hip_state *state;
    hipError_t code = start_with_pointer(ptr, &state);

    if (code != hipSuccess)
        return code;
    if ((flags & ~known) != 0)
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    if ((flags & hipHostMallocCoherent) && (flags & hipHostMallocNonCoherent))
        return hip_fail(hipErrorInvalidValue, "flags is 0x%x: coherent and not", flags);
    return allocate(state, VMM_LOCATION_HOST, size, flags, (flags & hipHostMallocUncached) != 0,
                    ptr);
}

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
    HIP_RETURN(host_malloc(ptr, size, flags));
}

hipError_t hipHostAlloc(void **ptr, size_t size, unsigned int flags)
{
    HIP_RETURN(host_malloc(ptr, size, flags));
}

hipError_t hipMallocHost(void **ptr, size_t size)
{
    HIP_RETURN(host_malloc(ptr, size, hipHostMallocDefault));
}

hipError_t hipMemAllocHost(void **ptr, size_t size)
{
    HIP_RETURN(host_malloc(ptr, size, hipHostMallocDefault));
}

hipError_t hipMallocManaged(void **ptr, size_t size, unsigned int flags)
{
    struct hip_state *state;
    hipError_t code = start_with_pointer(ptr, &state);

    if (code == hipSuccess)
        code = hip_fail(hipErrorNotSupported, "there is no managed memory here");
    HIP_RETURN(code);
}

/* Device and host memory alike, as programs free the one with the call for the other. */
static hipError_t free_memory(void *ptr)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code != hipSuccess || !ptr)
        return code;
    return hip_from_errno(vmm_free(state->vmm, (uint64_t)(uintptr_t)ptr));
}

hipError_t hipFree(void *ptr)
{
    HIP_RETURN(free_memory(ptr));
}

hipError_t hipFreeAsync(void *ptr, hipStream_t stream)
{
    hipError_t code = hip_check_stream(stream);

    if (code == hipSuccess && !ptr)
        code = hip_null("ptr");
    HIP_RETURN(code == hipSuccess ? free_memory(ptr) : code);
}

hipError_t hipHostFree(void *ptr)
{
    HIP_RETURN(free_memory(ptr));
}

hipError_t hipFreeHost(void *ptr)
{
    HIP_RETURN(free_memory(ptr));
}

/* Finds the host memory at ptr. */
static hipError_t find_host(const void *ptr, struct vmm_range *range)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code != hipSuccess)
        return code;
    vmm_query(state->vmm, (uint64_t)(uintptr_t)ptr, range);
    if (range->kind != VMM_KIND_HOST && range->kind != VMM_KIND_REGISTERED)
        return hip_fail(hipErrorInvalidValue, "address 0x%llx is no host memory known here",
                        (unsigned long long)(uintptr_t)ptr);
    return hipSuccess;
}

hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    struct vmm_range range;
    hipError_t code;

    if (!device || !host || flags != 0)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "%s",
                            !device ? "device is NULL"
                            : !host ? "host is NULL"
                                    : "flags is not 0"));
    code = find_host(host, &range);
    if (code == hipSuccess)
        *device = host;
    HIP_RETURN(code);
}

hipError_t hipHostGetFlags(unsigned int *flags, void *host)
{
    struct vmm_range range;
    hipError_t code;

    if (!flags || !host)
        HIP_RETURN(hip_null(flags ? "host" : "flags"));
    code = find_host(host, &range);
    if (code == hipSuccess)
        *flags = range.props.tag[HIP_TAG_FLAGS];
    HIP_RETURN(code);
}

static hipError_t host_register(void *ptr, size_t size, unsigned int flags)
{
    const uint32_t tag[4] = {[HIP_TAG_FLAGS] = flags,
                             [HIP_TAG_SIZE_LOW] = (uint32_t)size,
                             [HIP_TAG_SIZE_HIGH] = (uint32_t)((uint64_t)size >> 32)};
    struct hip_state *state;
    hipError_t code = start_with_pointer(ptr, &state);
    int err;

    if (code != hipSuccess)
        return code;
    if (size == 0)
        return hip_fail(hipErrorInvalidValue, "size is 0");
    if (flags & (hipHostRegisterIoMemory | hipHostRegisterReadOnly))
        return hip_fail(hipErrorNotSupported,
                        "flags is 0x%x: neither device registers nor read-only memory", flags);
    if (flags & ~(unsigned)(hipHostRegisterPortable | hipHostRegisterMapped))
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    err = vmm_register(state->vmm, (uint64_t)(uintptr_t)ptr, size, tag);
    return err == -EEXIST ? hipErrorHostMemoryAlreadyRegistered : hip_from_errno(err);
}

/* The memory keeps its address: every device sees it where the program does. */
hipError_t hipHostRegister(void *ptr, size_t size, unsigned int flags)
{
    HIP_RETURN(host_register(ptr, size, flags));
}

static hipError_t host_unregister(void *ptr)
{
    struct hip_state *state;
    hipError_t code = start_with_pointer(ptr, &state);
    int err;

    if (code != hipSuccess)
        return code;
    err = vmm_unregister(state->vmm, (uint64_t)(uintptr_t)ptr);
    return err == -ENOENT ? hipErrorHostMemoryNotRegistered : hip_from_errno(err);
}

hipError_t hipHostUnregister(void *ptr)
{
    HIP_RETURN(host_unregister(ptr));
}
