/* SPDX-License-Identifier: MIT */
/*
 * The process's one kfd and vmm, started by the first call that needs them, and what the calling
 * thread has chosen.
 */
#ifndef HIP_API_STATE_H
#define HIP_API_STATE_H

#include <stdatomic.h>

#include <kfdirect/vmm.h>

#include "hip_api/error.h"

/* Immutable after the start but for peers, which holds one bit per peer that a device enabled. */
struct hip_state {
    struct kfd *kfd;
    struct vmm *vmm;
    uint32_t devices;                 /* at least one */
    uint64_t memory[KFD_MAX_DEVICES]; /* bytes that a device allocates from */
    _Atomic uint64_t peers[KFD_MAX_DEVICES];
};

/*
 * Gives the state, starting it if needed. A start that failed is tried again by the next call. In
 * a forked child the parent's state is gone and the first call starts afresh.
 * hipErrorNoDevice: no usable GPU, for the reason in the text; hipErrorNotInitialized: an
 * environment variable makes no sense; hipErrorNotSupported: the engine it asks for is missing.
 */
hipError_t hip_start(struct hip_state **out);

/* hip_start for VMM calls: hipErrorNotSupported where no engine works. */
hipError_t hip_start_vmm(struct hip_state **out);

/* hipSuccess, or the given code for an index without a device. */
hipError_t hip_check_device(const struct hip_state *state, int device, hipError_t code);

#endif
