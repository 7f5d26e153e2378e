/* SPDX-License-Identifier: MIT */
/*
 * User queues at book-keeping level: ids, doorbells, the checks on their buffers and the hold they
 * have on them, and the process modes that depend on there being no queue. Nothing executes.
 * Guarded by the process lock.
 */
#ifndef FAKE_QUEUES_H
#define FAKE_QUEUES_H

#include "fake/fake_internal.h"

int fake_kfd_create_queue(struct fake_call *call, void *arg);
int fake_kfd_destroy_queue(struct fake_call *call, void *arg);
int fake_kfd_update_queue(struct fake_call *call, void *arg);
int fake_kfd_set_cu_mask(struct fake_call *call, void *arg);
int fake_kfd_get_queue_wave_state(struct fake_call *call, void *arg);
int fake_kfd_alloc_queue_gws(struct fake_call *call, void *arg);
int fake_kfd_runtime_enable(struct fake_call *call, void *arg);
int fake_kfd_set_xnack_mode(struct fake_call *call, void *arg);

uint32_t fake_queues_count(const struct fake_process *p);
/* Ends all queues of a process. */
void fake_queues_destroy(struct fake *fake, struct fake_process *p);

#endif
