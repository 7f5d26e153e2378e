/* SPDX-License-Identifier: MIT */
/*
 * Free address ranges, ordered by address, with a search for the lowest one that fits. Part of
 * struct vmm_space, whose caller serialises.
 *
 * Memory: a range cut out of a hole comes with the hole that putting it back may need, so putting
 * back cannot fail.
 */
#ifndef VMM_HOLE_H
#define VMM_HOLE_H

#include <stdint.h>

#include "vmm/tree.h"

/* Alignments that are searched for in one descent: the page, 2 MiB and 1 GiB. */
#define VMM_HOLE_CLASSES 3

struct vmm_hole {
    struct vmm_tree_node node;
    uint64_t base, size;
    /* For each class the maximum over the subtree of what is left of a hole behind its first
     * multiple of that alignment. */
    uint64_t max[VMM_HOLE_CLASSES];
};

struct vmm_holes {
    struct vmm_tree tree;
    uint64_t page; /* bases and sizes are multiples of it */
};

void vmm_holes_init(struct vmm_holes *h, uint64_t page);
void vmm_holes_fini(struct vmm_holes *h);

/* Makes [base, base + size) free. It merges with the holes that it touches, but not across `floor`
 * and `ceiling`, the ends of its arena. Takes over spare. */
void vmm_holes_add(struct vmm_holes *h, uint64_t base, uint64_t size, uint64_t floor,
                   uint64_t ceiling, struct vmm_hole *spare);

/* The hole that contains the byte at, or NULL. */
struct vmm_hole *vmm_holes_at(const struct vmm_holes *h, uint64_t at);

/*
 * A hole that holds size bytes at *at, a multiple of align (a power of two, at least the page), or
 * NULL when none does. For the alignments of the classes it is the lowest one. For others a hole
 * that would do with any base is taken; when there is none, no more than `tries` holes are looked
 * at for one whose base happens to suit, and NULL may mean that they did not suffice.
 */
struct vmm_hole *vmm_holes_find(const struct vmm_holes *h, uint64_t size, uint64_t align,
                                uint64_t tries, uint64_t *at);

/* Cuts [at, at + size) out of hole, which contains it. *spare is for putting it back. -ENOMEM. */
int vmm_holes_take(struct vmm_holes *h, struct vmm_hole *hole, uint64_t at, uint64_t size,
                   struct vmm_hole **spare);

/* In order of address; NULL at the end. */
struct vmm_hole *vmm_holes_first(const struct vmm_holes *h);
struct vmm_hole *vmm_holes_next(const struct vmm_hole *hole);

/* Order, no overlap, maxima: 0, or -EUCLEAN and the error text. */
int vmm_holes_validate(const struct vmm_holes *h);

#endif
