/* SPDX-License-Identifier: MIT */
/*
 * Address space for reservations, in [low, high), divided out of arenas (vmm/arena.h).
 *
 * Invariants: every byte of an arena belongs to one reservation or one hole; two holes of one arena
 * never touch. An arena made for a hint holds exactly one reservation and no hole, and goes with
 * the reservation; the others stay until the space ends.
 *
 * Whoever mapped something over a part of a reservation puts PROT_NONE memory back with
 * vmm_space_blank before the reservation is freed.
 *
 * The caller serialises all calls but vmm_space_blank and vmm_space_mend.
 */
#ifndef VMM_SPACE_H
#define VMM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include <kfdirect/kfd.h>

#include "vmm/arena.h"
#include "vmm/hole.h"
#include "vmm/radix.h"
#include "vmm/tree.h"

/* A reserved range. Embedded in the caller's reservation and linked into the space by
 * vmm_space_reserve until vmm_space_free; read-only for the caller. */
struct vmm_space_node {
    struct vmm_tree_node node;
    uint64_t base, size;
    struct vmm_hole *spare; /* the hole it may leave behind: taken in advance, so that freeing
                             * needs no memory */
};

struct vmm_space {
    struct vmm_arenas arenas;
    struct vmm_holes holes;
    struct vmm_tree nodes;  /* reservations */
    struct vmm_radix radix; /* the same by address, as far as they fill 2-MiB granules */
    bool full;              /* the last attempt to get another arena failed */
};

/* sys must outlive the space. page: a power of two. high is exclusive. Takes no arena yet.
 * -EINVAL. */
int vmm_space_init(struct vmm_space *s, struct kfd_sys *sys, uint64_t low, uint64_t high,
                   uint64_t page);
/* Drops what is still reserved, so those nodes must be alive, and unmaps the arenas. Not in a
 * forked child, see vmm_arenas_fini. */
void vmm_space_fini(struct vmm_space *s);

/*
 * Reserves size bytes, a multiple of the page, at a multiple of align (0: none; else a power of
 * two), of the page and, from 2 MiB on, of 2 MiB: exactly at hint if that is such a multiple and
 * free (0: no hint), else at the lowest place that fits (any place for alignments other than the
 * page, 2 MiB and 1 GiB). Fills n. -EINVAL: size or align; -ENOMEM:
 * no such range or no heap, nothing changed.
 */
int vmm_space_reserve(struct vmm_space *s, uint64_t size, uint64_t align, uint64_t hint,
                      struct vmm_space_node *n);
/* Ends the reservation. Cannot fail. */
void vmm_space_free(struct vmm_space *s, struct vmm_space_node *n);

/* The reservation that contains va, or NULL. */
struct vmm_space_node *vmm_space_find(const struct vmm_space *s, uint64_t va);
/* Whether any byte of [va, va + size) lies in an arena, reserved or not. */
bool vmm_space_holds(const struct vmm_space *s, uint64_t va, uint64_t size);
/* The lowest reservation, the lowest whose base is va or above, and the next one above n; NULL at
 * the end. */
struct vmm_space_node *vmm_space_first(const struct vmm_space *s);
struct vmm_space_node *vmm_space_above(const struct vmm_space *s, uint64_t va);
struct vmm_space_node *vmm_space_next(const struct vmm_space_node *n);

/* Maps fresh PROT_NONE memory over [base, base + size) of a reservation, so that it is again like
 * the rest of its arena and merges with it. The kernel's error; the range is mapped as before then,
 * or PROT_NONE already. */
int vmm_space_blank(struct vmm_space *s, uint64_t base, uint64_t size);

/* The same after somebody's MAP_FIXED over it failed: Linux before 6.12 has unmapped the old pages
 * by the time a driver refuses, and the next mmap of the program may land there. What is mapped
 * stays. */
void vmm_space_mend(struct vmm_space *s, uint64_t base, uint64_t size);

uint64_t vmm_space_arenas(const struct vmm_space *s);

/* The invariants above and the trees' own: 0, or -EUCLEAN and the error text. */
int vmm_space_validate(const struct vmm_space *s);

#endif
