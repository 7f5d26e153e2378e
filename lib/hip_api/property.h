/* SPDX-License-Identifier: MIT */
/* What HIP says about a device, from what the kernel says. */
#ifndef HIP_API_PROPERTY_H
#define HIP_API_PROPERTY_H

#include "hip_api/state.h"

void hip_properties_fill(const struct hip_state *state, uint32_t device, hipDeviceProp_t *prop);

/* Bytes of memory a device allocates from: its VRAM, or the machine's memory for an APU without. */
uint64_t hip_total_memory(const struct hip_state *state, uint32_t device);

#endif
