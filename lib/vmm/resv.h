/* SPDX-License-Identifier: MIT */
/* Reservations: an address range, its mappings and its lock. */
#ifndef VMM_RESV_H
#define VMM_RESV_H

#include "vmm/vmm.h"

/*
 * refs is guarded by vmm->space_lock (rank 40), the rest by lock (rank 20), the one lock that is
 * held over ioctls; device never changes. A reference keeps the object, not its validity: live is
 * written under both locks, so either is enough to read it. One-step memory is a reservation with
 * one mapping that the VMM calls refuse.
 */
struct vmm_resv {
    struct vmm_space_node space; /* base, size; first, so that the tree leads to the whole */
    struct vmm_lock lock;
    uint32_t refs; /* look-ups under way, and one for being alive */
    bool live;     /* published and not yet retired */
    bool one_step;
    uint32_t device; /* of one-step memory */
    struct vmm_maptab maps;
    struct vmm *vmm;
};

static inline uint64_t vmm_resv_base(const struct vmm_resv *resv)
{
    return resv->space.base;
}

static inline uint64_t vmm_resv_end(const struct vmm_resv *resv)
{
    return resv->space.base + resv->space.size;
}

/* Makes a reservation that nobody can find yet. */
int vmm_resv_new(struct vmm *vmm, uint64_t size, uint64_t align, uint64_t hint,
                 struct vmm_resv **out);
void vmm_resv_publish(struct vmm_resv *resv);
/* Drops an unpublished one, address space included. */
void vmm_resv_drop(struct vmm_resv *resv);

/* The live reservation that contains va, locked and referenced; NULL if there is none. */
struct vmm_resv *vmm_resv_lock(struct vmm *vmm, uint64_t va);
/* As above for a VMM call on [va, va + size): -EINVAL with a text when size is 0, the range is not
 * inside one reservation or is one-step memory; -EOPNOTSUPP when no engine works. */
int vmm_resv_lock_range(struct vmm *vmm, uint64_t va, uint64_t size, struct vmm_resv **out);
void vmm_resv_unlock(struct vmm_resv *resv);
/* Ends a locked reservation: unlocks it, gives the address space back, frees it with the last
 * reference. */
void vmm_resv_retire(struct vmm_resv *resv);

static inline struct vmm_resv *vmm_resv_of(struct vmm_space_node *node)
{
    return node ? vmm_container(node, struct vmm_resv, space) : NULL;
}

#endif
