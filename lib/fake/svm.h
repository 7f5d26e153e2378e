/* SPDX-License-Identifier: MIT */
/*
 * Shared-virtual-memory ranges: the attributes a process gave to its own memory. No pages move. The
 * ranges of a process do not overlap each other nor, as the kernel sees to, any buffer mapping of
 * its compute VMs. Guarded by the process lock.
 */
#ifndef FAKE_SVM_H
#define FAKE_SVM_H

#include "fake/fake_internal.h"

int fake_kfd_svm(struct fake_call *call, void *arg);

/* Does any range meet [addr, addr + size)? ALLOC answers EADDRINUSE then. */
bool fake_svm_overlaps(const struct fake_process *p, uint64_t addr, uint64_t size);
/* Is the whole of it in ranges that are always mapped and open to the GPU? */
bool fake_svm_always_mapped(const struct fake_process *p, uint32_t gpu, uint64_t addr,
                            uint64_t size);
/* The program unmapped this memory: its ranges are gone. */
void fake_svm_forget(struct fake_process *p, uint64_t addr, uint64_t size);

uint32_t fake_svm_count(const struct fake_process *p);
void fake_svm_destroy(struct fake_process *p);

#endif
