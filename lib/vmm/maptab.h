/* SPDX-License-Identifier: MIT */
/*
 * The mappings of one reservation, ordered by address and free of overlap: a B+tree whose leaves
 * hold the records themselves, so that a look-up among a million touches a few cache lines. The
 * table has no lock: the reservation's covers it and every mapping in it.
 *
 * A pointer to a mapping is good until the next insertion or removal, which may move records.
 */
#ifndef VMM_MAPTAB_H
#define VMM_MAPTAB_H

#include <assert.h>
#include <stdint.h>

struct vmm_alloc;

#define VMM_ID_MASK ((UINT64_C(1) << 56) - 1)

/* [va, va + size) shows [offset, offset + size) of alloc. The rest is the mapping engine's. */
struct vmm_mapping {
    uint64_t va, size;
    struct vmm_alloc *alloc;
    uint64_t offset;
    uint64_t read_mask, write_mask; /* by device index */
    uint64_t kfd_handle;
    uint64_t id : 56, host_prot : 8;
};

static_assert(sizeof(struct vmm_mapping) == 64, "a record is one cache line");

struct vmm_maptab {
    struct vmm_maptab_node *root; /* NULL: empty */
    uint64_t count, bytes;        /* of all mappings */
};

void vmm_maptab_init(struct vmm_maptab *t);
/* Drops what is still in it. */
void vmm_maptab_fini(struct vmm_maptab *t);

/* The mapping that contains the byte va, or NULL. */
struct vmm_mapping *vmm_maptab_at(const struct vmm_maptab *t, uint64_t va);
/* The lowest one that has a byte in [va, va + size), or NULL. */
struct vmm_mapping *vmm_maptab_first_in(const struct vmm_maptab *t, uint64_t va, uint64_t size);
struct vmm_mapping *vmm_maptab_first(const struct vmm_maptab *t);
struct vmm_mapping *vmm_maptab_next(const struct vmm_maptab *t, const struct vmm_mapping *m);

/* Copies m into the table. -EEXIST: a byte of it is mapped already; -EINVAL: size 0 or past the end
 * of addresses; -ENOMEM. Nothing changed then. */
int vmm_maptab_insert(struct vmm_maptab *t, const struct vmm_mapping *m);
/* Takes out the mapping at m->va, which is in t. Cannot fail. */
void vmm_maptab_remove(struct vmm_maptab *t, const struct vmm_mapping *m);

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

/* Bytes of memory it holds. */
uint64_t vmm_maptab_memory(const struct vmm_maptab *t);
/* Order, shape, counts, and that all lies in [base, base + size): 0, or -EUCLEAN and the error
 * text. */
int vmm_maptab_validate(const struct vmm_maptab *t, uint64_t base, uint64_t size);

#endif
