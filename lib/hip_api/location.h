/* SPDX-License-Identifier: MIT */
/* hipMemLocation as the VMM layer knows it. */
#ifndef HIP_API_LOCATION_H
#define HIP_API_LOCATION_H

#include "hip_api/state.h"

/*
 * hipErrorInvalidValue for an unknown type or NUMA node, bad_device for a device that does not
 * exist. All host types mean system memory: KFD cannot place it on a node, so the node is checked
 * and kept, not obeyed. what names the argument in the text.
 */
hipError_t hip_check_location(const struct hip_state *state, const hipMemLocation *location,
                              hipError_t bad_device, const char *what);

/* A device index or VMM_HOST, of a location that was checked. */
uint32_t hip_location_device(const hipMemLocation *location);

#endif
