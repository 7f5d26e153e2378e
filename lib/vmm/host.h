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

int vmm_host_prot(uint8_t prot); /* PROT_* of a VMM_PROT_* */

#endif
