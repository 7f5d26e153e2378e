/* SPDX-License-Identifier: MIT */
/* The CPU's view of a mapping, at the mapping's own address. */
#ifndef VMM_HOST_H
#define VMM_HOST_H

#include "vmm/alloc.h"

/* Changes the CPU's rights at a mapping's address; taking them away puts inaccessible anonymous
 * memory back, so that the address range never has a hole another mmap could take. All or nothing.
 */
int vmm_host_apply(struct vmm *vmm, const struct vmm_mapping *map, uint8_t from, uint8_t to);

/* Anonymous, inaccessible memory over [va, va + size): what a reservation looks like to the CPU. */
int vmm_host_clear(struct vmm *vmm, uint64_t va, uint64_t size);

/*
 * A process has a limited number of mappings (vm.max_map_count), and one that is full can not even
 * put something in the place of another. So that views can be taken away again, which is what a
 * program does that runs out, none is made without mappings put by that serve nothing else.
 * vmm_host_save puts them by, if there are none; vmm_host_spend gives them back to the process and
 * says whether there were any.
 */
int vmm_host_save(struct vmm *vmm);
bool vmm_host_spend(struct vmm *vmm);

int vmm_host_prot(uint8_t prot); /* PROT_* of a VMM_PROT_* */

#endif
