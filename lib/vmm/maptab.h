/* SPDX-License-Identifier: MIT */
/*
 * The mappings of one reservation, ordered by address and free of overlap. The table has no lock:
 * the reservation's covers it and every mapping in it. It owns no memory; a mapping is allocated
 * by its caller before the insertion, which therefore cannot run out of memory.
 */
#ifndef VMM_MAPTAB_H
#define VMM_MAPTAB_H

#include <assert.h>
#include <stdint.h>

#include "vmm/tree.h"

struct vmm_alloc;

/* [va, va + size) shows [offset, offset + size) of alloc. The rest is the mapping engine's. */
struct vmm_mapping {
    struct vmm_tree_node node;
    uint64_t va, size;
    struct vmm_alloc *alloc;
    uint64_t offset;
    uint64_t read_mask, write_mask; /* by device index */
    uint64_t kfd_handle;
    uint32_t id;
    uint8_t host_prot;
};

static_assert(sizeof(struct vmm_mapping) <= 110, "budget: 110 bytes per mapping");

struct vmm_maptab {
    struct vmm_tree tree;
    uint64_t count, bytes; /* of all mappings */
};

void vmm_maptab_init(struct vmm_maptab *t);

/* The mapping that contains the byte va, or NULL. */
struct vmm_mapping *vmm_maptab_at(const struct vmm_maptab *t, uint64_t va);
/* The lowest one that has a byte in [va, va + size), or NULL. */
struct vmm_mapping *vmm_maptab_first_in(const struct vmm_maptab *t, uint64_t va, uint64_t size);
struct vmm_mapping *vmm_maptab_first(const struct vmm_maptab *t);
struct vmm_mapping *vmm_maptab_next(const struct vmm_mapping *m);

/* -EEXIST: a byte of it is mapped already; -EINVAL: size 0 or past the end of addresses. */
int vmm_maptab_insert(struct vmm_maptab *t, struct vmm_mapping *m);
void vmm_maptab_remove(struct vmm_maptab *t, struct vmm_mapping *m);

enum vmm_cover {
    VMM_COVER_WHOLE, /* whole mappings fill the range */
    VMM_COVER_HOLES, /* whole mappings with holes before, between or behind them */
    VMM_COVER_NONE,  /* nothing is mapped in the range */
    VMM_COVER_CUT,   /* the range cuts a mapping */
};

/*
 * How mappings cover [va, va + size). *count: the mappings with a byte in it. *bad_va: for CUT the
 * start of the first mapping that is cut, for HOLES and NONE the start of the first hole in the
 * range, for WHOLE va + size. Both may be NULL.
 */
enum vmm_cover vmm_maptab_cover(const struct vmm_maptab *t, uint64_t va, uint64_t size,
                                uint64_t *count, uint64_t *bad_va);

/* Order, counts, and that all lies in [base, base + size): 0, or -EUCLEAN and the error text. */
int vmm_maptab_validate(const struct vmm_maptab *t, uint64_t base, uint64_t size);

#endif
