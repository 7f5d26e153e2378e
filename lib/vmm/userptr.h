/* SPDX-License-Identifier: MIT */
/*
 * The program's own memory, given to the devices at its own addresses. The calls are declared in
 * <kfdirect/vmm.h>.
 */
#ifndef VMM_USERPTR_H
#define VMM_USERPTR_H

#include "vmm/vmm.h"

/*
 * One registered range; alloc holds the kernel's object, which covers whole pages. In the tree of
 * the VMM from before the first request to after the last, so that no other can overlap it; found
 * by look-ups only while live. The tree and live are guarded by vmm->space_lock, which no request
 * is made under.
 */
struct vmm_userptr {
    struct vmm_tree_node node;
    uint64_t va, size;        /* as registered */
    uint64_t page, page_size; /* the whole pages */
    struct vmm_alloc *alloc;
    uint64_t id;
    bool live;
};

/* Fills out if the byte va is registered. The space lock is held. */
bool vmm_userptr_query(const struct vmm *vmm, uint64_t va, struct vmm_range *out);
/* Adds up the live ones. The space lock is held. */
void vmm_userptr_count(const struct vmm *vmm, struct vmm_stats *out);
/* Ends what is left, at close. */
void vmm_userptr_close(struct vmm *vmm);

#endif
