/* SPDX-License-Identifier: MIT */
/*
 * Waiting for page tables that a copy engine writes. Where the kernel has no timeline for GEM_VA,
 * neither that request nor the flush-only MAP waits for the engine; KFD's MAP of a buffer that is
 * not mapped does, for all that was asked before (kernel-notes T3). So one page of system memory is
 * mapped and unmapped again.
 */
#ifndef VMM_BARRIER_H
#define VMM_BARRIER_H

#include <stdint.h>

#include "vmm/lock.h"

struct vmm;
struct vmm_resv;

struct vmm_barrier {
    struct vmm_lock lock;  /* rank 35, held over ioctls */
    uint64_t devices;      /* those that need it; never changes */
    struct vmm_resv *resv; /* the page's address; NULL where no device needs it */
    uint64_t handle;
    uint64_t mapped; /* devices from which the page could not be taken back */
};

/* Once the engine is chosen and the address space there. */
int vmm_barrier_init(struct vmm *vmm);
void vmm_barrier_fini(struct vmm *vmm);

/* Waits for the page tables of these devices, out of barrier.devices, and flushes their TLBs. On
 * failure it is unknown how much has been written. */
int vmm_barrier_wait(struct vmm *vmm, uint64_t devices);

/* Takes the page back from where the kernel refused it before. */
void vmm_barrier_reap(struct vmm *vmm);

#endif
