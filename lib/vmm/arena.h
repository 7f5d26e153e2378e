/* SPDX-License-Identifier: MIT */
/*
 * Arenas: address space that was taken from the kernel, in [low, high), as a few large PROT_NONE
 * mappings to be divided here. The kernel allows only some 65,000 mappings, and reservations may be
 * a million.
 *
 * Invariants: no two overlap; arenas that touch are one arena unless a hint made one of them.
 * Nothing inside an arena is ever munmapped; vmm_arenas_blank puts PROT_NONE memory back where
 * something was mapped over it.
 *
 * The caller serialises all calls but vmm_arenas_blank and vmm_arenas_mend.
 */
#ifndef VMM_ARENA_H
#define VMM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include <kfdirect/kfd.h>

#include "vmm/tree.h"

struct vmm_arena {
    struct vmm_tree_node node;
    uint64_t base, size;
    bool hinted; /* made for a hint: goes when its one reservation does */
};

struct vmm_arenas {
    struct kfd_sys *sys;
    uint64_t low, high, page;
    uint64_t step; /* sizes are multiples of this, where there is room; a power of two */
    struct vmm_tree tree;
    uint64_t count;
};

/* align is a power of two. Wraps to 0 past the end; addresses stay below 2^57, so that a wrapped
 * result is always below the argument. */
static inline uint64_t vmm_round_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) & ~(align - 1);
}

/* sys must outlive them. page: a power of two. high is exclusive. Takes none yet. -EINVAL. */
int vmm_arenas_init(struct vmm_arenas *a, struct kfd_sys *sys, uint64_t low, uint64_t high,
                    uint64_t page);
/* Unmaps every arena. Not in a forked child: it has none (they are MADV_DONTFORK), but maybe
 * something else at their addresses. */
void vmm_arenas_fini(struct vmm_arenas *a);

/* The arena that contains at, else NULL and in *next (may be NULL) the lowest one above or NULL. */
struct vmm_arena *vmm_arenas_at(const struct vmm_arenas *a, uint64_t at, struct vmm_arena **next);
struct vmm_arena *vmm_arenas_first(const struct vmm_arenas *a);
struct vmm_arena *vmm_arenas_next(const struct vmm_arena *arena);

/* Takes address space in which `size` bytes at a multiple of align fit: a whole number of steps,
 * else of small steps, else no more than needed. It is [*base, *base + *got), an arena or part of
 * one. -ENOMEM. */
int vmm_arenas_grow(struct vmm_arenas *a, uint64_t size, uint64_t align, uint64_t *base,
                    uint64_t *got);
/* Takes exactly [base, base + size); hinted: as an arena of its own. -EEXIST: something is there;
 * -ENOMEM, or the kernel's error. */
int vmm_arenas_grow_at(struct vmm_arenas *a, uint64_t base, uint64_t size, bool hinted);
/* Gives a hinted arena back. The kernel may refuse to split a mapping of its own: its error, and
 * the range is an ordinary arena, or part of one. */
int vmm_arenas_drop(struct vmm_arenas *a, struct vmm_arena *hinted);

/* See vmm_space_blank and vmm_space_mend. */
int vmm_arenas_blank(const struct vmm_arenas *a, uint64_t base, uint64_t size);
void vmm_arenas_mend(const struct vmm_arenas *a, uint64_t base, uint64_t size);

/* The invariants above: 0, or -EUCLEAN and the error text. */
int vmm_arenas_validate(const struct vmm_arenas *a);

#endif
