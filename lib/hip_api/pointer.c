/* SPDX-License-Identifier: MIT */
/* What a pointer is. */
#include <string.h>

#include "hip_api/state.h"
#include "hip_api/ctx.h"
#include "hip_api/malloc.h"
#include "hip_api/thread.h"
#include "hip_api/vmm_access.h"
#include "hip_api/vmm_handle.h"
#include "kfd/error.h"

static void query(struct hip_state *state, const void *ptr, struct vmm_range *range)
{
    vmm_query(state->vmm, (uint64_t)(uintptr_t)ptr, range);
}

static bool is_memory(const struct vmm_range *range)
{
    return range->kind == VMM_KIND_MAPPED || range->kind == VMM_KIND_DEVICE ||
           range->kind == VMM_KIND_HOST || range->kind == VMM_KIND_REGISTERED;
}

/* Whether the program reads and writes it at its address without asking for access. */
static bool is_host(const struct vmm_range *range)
{
    return range->kind == VMM_KIND_HOST || range->kind == VMM_KIND_REGISTERED;
}

static hipMemoryType memory_type(const struct vmm_range *range)
{
    if (!is_memory(range))
        return hipMemoryTypeUnregistered;
    return range->props.location == VMM_LOCATION_HOST ? hipMemoryTypeHost : hipMemoryTypeDevice;
}

/* The size a program knows: what it mapped, or asked hipMalloc for. */
static uint64_t known_size(const struct vmm_range *range)
{
    return range->kind == VMM_KIND_MAPPED ? range->size : hip_asked_size(range);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (!attributes || !ptr))
        code = hip_null(attributes ? "ptr" : "attributes");
    if (code != hipSuccess)
        HIP_RETURN(code);
    query(state, ptr, &range);
    memset(attributes, 0, sizeof(*attributes));
    attributes->type = memory_type(&range);
    attributes->device = hipInvalidDeviceId;
    if (is_memory(&range)) {
        attributes->device = (int)range.props.device;
        attributes->devicePointer = (void *)(uintptr_t)ptr;
        if (is_host(&range))
            attributes->hostPointer = (void *)(uintptr_t)ptr;
        if (range.kind != VMM_KIND_MAPPED)
            attributes->allocationFlags = range.props.tag[HIP_TAG_FLAGS];
    }
    HIP_RETURN(hipSuccess);
}

/* Rights of the calling thread's device. */
static uint32_t access_of(const struct vmm_range *range)
{
    unsigned device = (unsigned)hip_thread()->device;

    return hip_access_from_prot((range->read_mask >> device & 1 ? VMM_PROT_READ : 0u) |
                                (range->write_mask >> device & 1 ? VMM_PROT_WRITE : 0u));
}

static void put(void *data, const void *value, size_t size)
{
    memcpy(data, value, size);
}

/* One byte: it fits a caller's bool as well as a cleared int. */
static void put_bool(void *data, bool value)
{
    unsigned char byte = value;

    put(data, &byte, 1);
}

static void put_uint(void *data, uint32_t value)
{
    put(data, &value, sizeof(value));
}

static void put_wide(void *data, uint64_t value)
{
    put(data, &value, sizeof(value));
}

static hipError_t put_attribute(void *data, hipPointer_attribute attribute, const void *ptr,
                                const struct vmm_range *range)
{
    bool mapping = range->kind == VMM_KIND_MAPPED;
    hipCtx_t context;

    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_CONTEXT:
        context = hip_context_of((int)range->props.device);
        put(data, &context, sizeof(context));
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_uint(data, (uint32_t)memory_type(range));
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_wide(data, (uintptr_t)ptr);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host(range))
            return hip_fail(hipErrorInvalidValue, "the memory has no host pointer");
        put_wide(data, (uintptr_t)ptr);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put_bool(data, true);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
        put_wide(data, range->id);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
    case HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE:
    case HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        put_bool(data, false);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_uint(data, range->props.device);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put_wide(data, mapping ? range->resv_base : range->base);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
        put_wide(data, mapping ? range->resv_size : known_size(range));
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_MAPPED:
        put_bool(data, true);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_uint(data,
                 mapping && !range->props.imported ? range->props.tag[HIP_TAG_HANDLE_TYPES] : 0);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_uint(data, access_of(range));
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put_wide(data, 0);
        return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_P2P_TOKENS:
        return hip_fail(hipErrorNotSupported, "there are no peer-to-peer tokens here");
    default:
        return hip_fail(hipErrorInvalidValue, "attribute %d is not known here", (int)attribute);
    }
}

static hipError_t get_attribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code != hipSuccess)
        return code;
    if (!data || !ptr)
        return hip_null(data ? "ptr" : "data");
    query(state, ptr, &range);
    if (!is_memory(&range))
        return hip_fail(hipErrorInvalidValue, "address 0x%llx is not this library's",
                        (unsigned long long)(uintptr_t)ptr);
    return put_attribute(data, attribute, ptr, &range);
}

hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
    HIP_RETURN(get_attribute(data, attribute, ptr));
}

/* Succeeds whatever the pointer is: what cannot be told is 0 in a field of the attribute's size. */
hipError_t hipDrvPointerGetAttributes(unsigned int count, hipPointer_attribute *attributes,
                                      void **data, hipDeviceptr_t ptr)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (!attributes || !data || !ptr || count == 0))
        code = hip_fail(hipErrorInvalidValue, "%s",
                        !count        ? "count is 0"
                        : !attributes ? "attributes is NULL"
                        : !data       ? "data is NULL"
                                      : "ptr is NULL");
    if (code != hipSuccess)
        HIP_RETURN(code);
    query(state, ptr, &range);
    for (unsigned int i = 0; i < count; i++) {
        if (!data[i])
            HIP_RETURN(hip_fail(hipErrorInvalidValue, "data[%u] is NULL", i));
    }
    kfd_error_hold();
    for (unsigned int i = 0; i < count; i++) {
        if (is_memory(&range) && put_attribute(data[i], attributes[i], ptr, &range) == hipSuccess)
            continue;
        switch (attributes[i]) {
        case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            put_uint(data[i], (uint32_t)hipInvalidDeviceId);
            break;
        case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            put_uint(data[i], 0);
            break;
        case HIP_POINTER_ATTRIBUTE_CONTEXT:
        case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
        case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
        case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            put_wide(data[i], 0);
            break;
        default:
            put_bool(data[i], false);
            break;
        }
    }
    kfd_error_resume();
    HIP_RETURN(hipSuccess);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !ptr)
        code = hip_null("ptr");
    if (code != hipSuccess)
        HIP_RETURN(code);
    query(state, ptr, &range);
    if (!is_memory(&range))
        HIP_RETURN(hip_fail(hipErrorNotFound, "address 0x%llx is not this library's",
                            (unsigned long long)(uintptr_t)ptr));
    if (base)
        *base = (hipDeviceptr_t)(uintptr_t)range.base;
    if (size)
        *size = known_size(&range);
    HIP_RETURN(hipSuccess);
}

hipError_t hipMemPtrGetInfo(void *ptr, size_t *size)
{
    struct hip_state *state;
    struct vmm_range range;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (!ptr || !size))
        code = hip_null(ptr ? "size" : "ptr");
    if (code != hipSuccess)
        HIP_RETURN(code);
    query(state, ptr, &range);
    if (!is_memory(&range))
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "address 0x%llx is not this library's",
                            (unsigned long long)(uintptr_t)ptr));
    *size = known_size(&range);
    HIP_RETURN(hipSuccess);
}
