/* SPDX-License-Identifier: MIT */
/*
 * What the GPU walks: page-table entries kept as extents of equal memory and rights, and the TLB in
 * front of them. The TLB is filled on access and emptied by fake_tlb_flush alone. The owner is a
 * VM, whose process lock guards both.
 */
#ifndef FAKE_PAGETABLE_H
#define FAKE_PAGETABLE_H

#include "fake/fake_internal.h"

#define FAKE_PTE_READ 0x2u
#define FAKE_PTE_WRITE 0x4u
#define FAKE_PTE_EXEC 0x8u
#define FAKE_PTE_PRT 0x10u

struct fake_pte {
    uint64_t va, size;
    uint64_t offset; /* in the memory */
    uint32_t mem, generation;
    uint32_t flags;
    uint32_t moves;  /* of the memory, when this was written */
    bool contiguous; /* in pieces of 2 MiB and more, so that huge entries are possible */
    bool moved;      /* the memory was moved away under it */
};

struct fake_pagetable {
    struct fake_tree extents;
    struct fake_cost *cost;
    bool lose_rest; /* T5: cutting a huge entry loses what is left of it */
};

/* Replaces what is there. 0 or -ENOMEM with nothing changed. */
int fake_pt_write(struct fake_pagetable *pt, const struct fake_pte *pte);
int fake_pt_clear(struct fake_pagetable *pt, uint64_t va, uint64_t size);
/* The extent that holds va, or false. */
bool fake_pt_find(const struct fake_pagetable *pt, uint64_t va, struct fake_pte *out);
void fake_pt_free(struct fake_pagetable *pt);

/* Marks every entry of that memory as pointing at a place it was moved away from. */
void fake_pt_move(struct fake_pagetable *pt, uint32_t mem, uint32_t generation);

/* The page that holds va in an extent: its size, a power of two from 4 KiB to 1 GiB. */
uint64_t fake_pte_page(const struct fake_pte *pte, uint64_t va);

struct fake_tlb {
    struct fake_map entries;
    uint32_t per_order[31]; /* entries of each page size */
};

/* The cached page that holds va, or NULL. */
const struct fake_pte *fake_tlb_find(const struct fake_tlb *tlb, uint64_t va);
/* Caches the page of pte that holds va. Without memory for it, it caches nothing. */
void fake_tlb_fill(struct fake_tlb *tlb, const struct fake_pte *pte, uint64_t va);
/* What the TLB holds of that memory leads to a place it was moved away from. */
void fake_tlb_move(struct fake_tlb *tlb, uint32_t mem, uint32_t generation);
void fake_tlb_flush(struct fake_tlb *tlb);

#endif
