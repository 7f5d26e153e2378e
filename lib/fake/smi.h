/* SPDX-License-Identifier: MIT */
/*
 * SMI event descriptors: a program writes a 64-bit mask of events and reads lines of text. Here it
 * is one end of a socket pair; the fake keeps the other. Guarded by the process lock.
 */
#ifndef FAKE_SMI_H
#define FAKE_SMI_H

#include "fake/fake_internal.h"

enum fake_smi_event {
    FAKE_SMI_VMFAULT = 1,
    FAKE_SMI_THERMAL_THROTTLE,
    FAKE_SMI_GPU_PRE_RESET,
    FAKE_SMI_GPU_POST_RESET,
};

int fake_kfd_smi_events(struct fake_call *call, void *arg);
/* Sends "event text" to every descriptor of the GPU that asked for the event. */
void fake_smi_send(struct fake_process *p, uint32_t gpu, enum fake_smi_event event,
                   const char *text);
void fake_smi_destroy(struct fake_process *p);

#endif
