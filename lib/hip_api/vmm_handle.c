/* SPDX-License-Identifier: MIT */
/* Physical allocations: create, release, retain, and what they are. */
#include "hip_api/vmm_handle.h"

#include <string.h>

#include "hip_api/location.h"

_Static_assert(sizeof(((hipMemAllocationProp *)0)->allocFlags) == sizeof(uint32_t),
               "allocFlags fills one word of the tag");

static hipError_t check_type(hipMemAllocationType type)
{
    if (type == hipMemAllocationTypePinned || type == hipMemAllocationTypeUncached)
        return hipSuccess;
    return hip_fail(hipErrorInvalidValue, "prop->type is 0x%x, not Pinned or Uncached",
                    (unsigned)type);
}

static hipError_t check_prop(const struct hip_state *state, const hipMemAllocationProp *prop,
                             hipError_t bad_device)
{
    hipError_t code = check_type(prop->type);

    return code == hipSuccess
               ? hip_check_location(state, &prop->location, bad_device, "prop->location")
               : code;
}

static hipError_t create(hipMemGenericAllocationHandle_t *handle, size_t size,
                         const hipMemAllocationProp *prop, unsigned long long flags)
{
    struct vmm_props props = {0};
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    vmm_handle made;

    if (code != hipSuccess)
        return code;
    if (!handle || !prop)
        return hip_null(handle ? "prop" : "handle");
    if (size == 0)
        return hip_fail(hipErrorInvalidValue, "size is 0");
    if (flags != 0)
        return hip_fail(hipErrorInvalidValue, "flags is 0x%llx, not 0", flags);
    code = check_prop(state, prop, hipErrorInvalidDevice);
    if (code != hipSuccess)
        return code;
    if (prop->requestedHandleTypes != hipMemHandleTypeNone &&
        prop->requestedHandleTypes != hipMemHandleTypePosixFileDescriptor)
        return hip_fail(hipErrorNotSupported,
                        "prop->requestedHandleTypes is 0x%x: memory is shared by file descriptor",
                        (unsigned)prop->requestedHandleTypes);
    props.location =
        prop->location.type == hipMemLocationTypeDevice ? VMM_LOCATION_DEVICE : VMM_LOCATION_HOST;
    props.device =
        prop->location.type == hipMemLocationTypeDevice ? (uint32_t)prop->location.id : 0;
    props.uncached = prop->type == hipMemAllocationTypeUncached;
    props.tag[HIP_TAG_HANDLE_TYPES] = (uint32_t)prop->requestedHandleTypes;
    memcpy(&props.tag[HIP_TAG_ALLOC_FLAGS], &prop->allocFlags, sizeof(uint32_t));
    props.tag[HIP_TAG_LOCATION_TYPE] = (uint32_t)prop->location.type;
    props.tag[HIP_TAG_LOCATION_ID] = (uint32_t)prop->location.id;
    code = hip_from_errno(vmm_create(state->vmm, &props, size, &made));
    if (code == hipSuccess)
        *handle = hip_from_vmm(made);
    return code;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                        const hipMemAllocationProp *prop, unsigned long long flags)
{
    HIP_RETURN(create(handle, size, prop, flags));
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);

    if (code == hipSuccess && !handle)
        code = hip_null("handle");
    if (code == hipSuccess)
        code = hip_from_errno(vmm_release(state->vmm, hip_to_vmm(handle)));
    HIP_RETURN(code);
}

static hipError_t retain(hipMemGenericAllocationHandle_t *handle, void *addr)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    vmm_handle found;

    if (code != hipSuccess)
        return code;
    if (!handle || !addr)
        return hip_null(handle ? "addr" : "handle");
    code = hip_from_errno(vmm_retain(state->vmm, (uint64_t)(uintptr_t)addr, &found));
    if (code == hipSuccess)
        *handle = hip_from_vmm(found);
    return code;
}

hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *addr)
{
    HIP_RETURN(retain(handle, addr));
}

static hipError_t get_properties(hipMemAllocationProp *prop, hipMemGenericAllocationHandle_t handle)
{
    struct vmm_props props;
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);

    if (code != hipSuccess)
        return code;
    if (!prop || !handle)
        return hip_null(prop ? "handle" : "prop");
    code = hip_from_errno(vmm_get_props(state->vmm, hip_to_vmm(handle), &props, NULL));
    if (code != hipSuccess)
        return code;
    memset(prop, 0, sizeof(*prop));
    prop->type = props.uncached ? hipMemAllocationTypeUncached : hipMemAllocationTypePinned;
    prop->requestedHandleTypes = (hipMemAllocationHandleType)props.tag[HIP_TAG_HANDLE_TYPES];
    memcpy(&prop->allocFlags, &props.tag[HIP_TAG_ALLOC_FLAGS], sizeof(uint32_t));
    prop->location.type = (hipMemLocationType)props.tag[HIP_TAG_LOCATION_TYPE];
    prop->location.id = (int)props.tag[HIP_TAG_LOCATION_ID];
    if (props.imported) {
        bool device = props.location == VMM_LOCATION_DEVICE;

        prop->location.type = device ? hipMemLocationTypeDevice : hipMemLocationTypeHost;
        prop->location.id = device ? (int)props.device : 0;
    }
    return hipSuccess;
}

hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop,
                                                   hipMemGenericAllocationHandle_t handle)
{
    HIP_RETURN(get_properties(prop, handle));
}

static hipError_t get_granularity(size_t *granularity, const hipMemAllocationProp *prop,
                                  hipMemAllocationGranularity_flags option)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);

    if (code != hipSuccess)
        return code;
    if (!granularity || !prop)
        return hip_null(granularity ? "prop" : "granularity");
    code = check_prop(state, prop, hipErrorInvalidValue);
    if (code != hipSuccess)
        return code;
    switch (option) {
    case hipMemAllocationGranularityMinimum:
        *granularity = vmm_min_granularity(state->vmm);
        return hipSuccess;
    case hipMemAllocationGranularityRecommended:
        *granularity = vmm_recommended_granularity(state->vmm);
        return hipSuccess;
    default:
        return hip_fail(hipErrorInvalidValue, "option is %d, not 0 or 1", (int)option);
    }
}

hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *prop,
                                          hipMemAllocationGranularity_flags option)
{
    HIP_RETURN(get_granularity(granularity, prop, option));
}
