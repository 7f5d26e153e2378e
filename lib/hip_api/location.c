/* SPDX-License-Identifier: MIT */
#include "hip_api/location.h"

hipError_t hip_check_location(const struct hip_state *state, const hipMemLocation *location,
                              hipError_t bad_device, const char *what)
{
    uint32_t nodes;

    switch (location->type) {
    case hipMemLocationTypeDevice:
        if (location->id >= 0 && (uint32_t)location->id < state->devices)
            return hipSuccess;
        return hip_fail(bad_device, "%s: device %d: there are %u", what, location->id,
                        state->devices);
    case hipMemLocationTypeHost:
    case hipMemLocationTypeHostNumaCurrent:
        return hipSuccess;
    case hipMemLocationTypeHostNuma:
        nodes = kfd_cpu_node_count(state->kfd);
        if (location->id >= 0 && (uint32_t)location->id < nodes)
            return hipSuccess;
        return hip_fail(hipErrorInvalidValue, "%s: NUMA node %d: there are %u", what, location->id,
                        nodes);
    default:
        return hip_fail(hipErrorInvalidValue,
                        "%s is of type %d, which is no place known here (a device is of type %d)",
                        what, (int)location->type, (int)hipMemLocationTypeDevice);
    }
}

uint32_t hip_location_device(const hipMemLocation *location)
{
    return location->type == hipMemLocationTypeDevice ? (uint32_t)location->id : VMM_HOST;
}
