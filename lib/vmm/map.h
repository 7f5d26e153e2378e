/* SPDX-License-Identifier: MIT */
/* Mapping and unmapping. The calls themselves are declared in <kfdirect/vmm.h>. */
#ifndef VMM_MAP_H
#define VMM_MAP_H

#include "vmm/resv.h"

/* Takes a mapping without rights out of its reservation and drops its allocation. */
void vmm_map_remove(struct vmm_resv *resv, struct vmm_mapping *map);

/* Unmaps all `count` mappings of a locked reservation that lie in [va, va + size). */
int vmm_map_remove_range(struct vmm_resv *resv, uint64_t va, uint64_t size, uint64_t count);

#endif
