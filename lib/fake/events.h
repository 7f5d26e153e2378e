/* SPDX-License-Identifier: MIT */
/*
 * KFD events of a process: signals, which a CPU or a queue sets, and notices of the kernel such as
 * a GPU's memory fault. The events have a lock of their own, taken inside the process lock or
 * without it; waiters sleep on a futex without either, so that a signal interrupts them as it would
 * in the kernel.
 */
#ifndef FAKE_EVENTS_H
#define FAKE_EVENTS_H

#include "fake/fake_internal.h"

#define FAKE_EVENT_PAGE_SIZE 32768u

int fake_kfd_create_event(struct fake_call *call, void *arg);
int fake_kfd_destroy_event(struct fake_call *call, void *arg);
int fake_kfd_set_event(struct fake_call *call, void *arg);
int fake_kfd_reset_event(struct fake_call *call, void *arg);
/* Sleeps: runs without the process lock. */
int fake_kfd_wait_events(struct fake_call *call, void *arg);

/* Tells every memory event of the process about a GPU's fault. Process lock held. */
void fake_events_memory_fault(struct fake *fake, struct fake_process *p, uint32_t gpu, uint64_t va,
                              enum fake_fault_reason reason, enum fake_access access);

/* mmap of the signal page on /dev/kfd: its pages, or -EINVAL. Process lock held. */
int fake_events_page(struct fake_process *p, size_t size, const struct fake_pages **page);

uint32_t fake_events_count(const struct fake_process *p);
void fake_events_destroy(struct fake *fake, struct fake_events *events);

#endif
