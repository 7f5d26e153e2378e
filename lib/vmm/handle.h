/* SPDX-License-Identifier: MIT */
/*
 * Handles: 64-bit names of objects that tell when they are stale. A handle is tag << 56 |
 * generation << 32 | index. The tag is never 0, so 0 and small integers are no handles. A slot's
 * generation changes with each removal; a slot whose generations are used up is retired, so no
 * value is ever given out twice. A freed slot rests until 1,024 others have been freed after it.
 *
 * Indices are the process's: slots come in slabs, each with a number that no other slab gets,
 * neither in another table nor in one of a forked child. So a handle of another table, of a table
 * that has ended or of the process that forked this one is refused.
 *
 * Owner: one table per kind of object. Safe from any thread: the table has its own lock, of rank
 * VMM_RANK_HANDLES.
 */
#ifndef VMM_HANDLE_H
#define VMM_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/lock.h"

#define VMM_HANDLE_SLAB 1024u /* slots */
#define VMM_HANDLE_REST 1024u /* frees of others before a slot is used again */
#define VMM_HANDLE_GENERATIONS (1u << 24)

struct vmm_handle_slot {
    void *object;        /* NULL: free */
    uint32_t generation; /* of the present or the next handle; VMM_HANDLE_GENERATIONS: retired */
    uint32_t next_free;  /* the slot freed after this one */
};

struct vmm_handles {
    struct vmm_lock lock;
    uint8_t tag;
    uint32_t first_slab;            /* the number of slabs[0]; positions count from there */
    struct vmm_handle_slot **slabs; /* NULL: another table's; never freed before the table */
    uint32_t slab_count, slab_room;
    uint64_t used;                  /* own slots below this position were given out at least once */
    uint32_t free_first, free_last; /* the queue of freed slots, the oldest first */
    uint64_t free_count;
    _Atomic uint64_t count; /* live handles */
};

/* -EINVAL: tag 0; else as vmm_lock_init. */
int vmm_handles_init(struct vmm_handles *h, uint8_t tag);
/* The objects stay the caller's. */
void vmm_handles_fini(struct vmm_handles *h);

/* Gives object (not NULL) a handle. -ENOMEM. */
int vmm_handles_add(struct vmm_handles *h, void *object, uint64_t *handle);
/* The object, or NULL for a stale, foreign or made-up value. take (may be NULL) runs under the
 * lock: there it takes a reference, or returns false when the object is already dying (NULL). */
void *vmm_handles_get(struct vmm_handles *h, uint64_t handle, bool (*take)(void *object));
/* Ends the handle and returns its object; NULL as above. */
void *vmm_handles_remove(struct vmm_handles *h, uint64_t handle);

uint64_t vmm_handles_count(const struct vmm_handles *h);

/*
 * Calls each(arg, handle, object) in index order until it returns non-zero; returns that value or
 * 0. The lock is not held in the call, so it may add and remove; the caller keeps other threads
 * from removing objects meanwhile.
 */
int vmm_handles_each(struct vmm_handles *h, int (*each)(void *arg, uint64_t handle, void *object),
                     void *arg);

/* Slots, queue and counts agree: 0, or -EUCLEAN and the error text. */
int vmm_handles_validate(struct vmm_handles *h);

#endif
