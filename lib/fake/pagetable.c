/* SPDX-License-Identifier: MIT */
#include "fake/pagetable.h"

#include <errno.h>

#define GIGA (1ull << 30)

/* A real TLB is far smaller; what it drops by itself is found again in the page tables. */
#define TLB_LIMIT 65536u

struct extent {
    struct fake_node node; /* key: va */
    struct fake_pte pte;
};

static struct extent *extent_of(struct fake_node *node)
{
    return FAKE_NODE_OF(node, struct extent, node);
}

/* Size of the entry that covers va: what lies whole inside the extent, aligned in VA and memory. */
static uint64_t entry_size(const struct fake_pte *pte, uint64_t va)
{
    if (!pte->contiguous)
        return FAKE_PAGE;
    for (uint64_t size = GIGA; size >= FAKE_HUGE; size = size == GIGA ? FAKE_HUGE : 0) {
        uint64_t start = va & ~(size - 1);

        if (start >= pte->va && start + size <= pte->va + pte->size &&
            ((pte->offset + (start - pte->va)) & (size - 1)) == 0)
            return size;
    }
    return FAKE_PAGE;
}

uint64_t fake_pte_page(const struct fake_pte *pte, uint64_t va)
{
    uint64_t entry = entry_size(pte, va), size = FAKE_PAGE;

    if (entry != FAKE_PAGE || !pte->contiguous)
        return entry;
    /* Inside one table the largest piece aligned in VA is one fragment. */
    while (size * 2 < FAKE_HUGE) {
        uint64_t start = va & ~(size * 2 - 1);

        if (start < pte->va || start + size * 2 > pte->va + pte->size)
            break;
        size *= 2;
    }
    return size;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Entries that writing the extent takes, and the 2-MiB regions that need a leaf table. */
static void count_entries(const struct fake_pte *pte, uint64_t *entries, uint64_t *tables)
{
    uint64_t va = pte->va, end = pte->va + pte->size;

    *entries = 0;
    *tables = 0;
    if (!pte->contiguous || (pte->offset & (FAKE_HUGE - 1)) != (va & (FAKE_HUGE - 1))) {
        *entries = pte->size / FAKE_PAGE;
        *tables = (end - 1) / FAKE_HUGE - va / FAKE_HUGE + 1;
        return;
    }
    while (va < end) {
        uint64_t size = entry_size(pte, va);

        if (size == FAKE_PAGE) {
            size = min64(end, (va | (FAKE_HUGE - 1)) + 1) - va;
            *entries += size / FAKE_PAGE;
            *tables += 1;
        } else {
            *entries += 1;
        }
        va += size;
    }
}

static void put(struct fake_pagetable *pt, struct extent *e, const struct fake_pte *pte)
{
    e->pte = *pte;
    e->node.key = pte->va;
    fake_tree_insert(&pt->extents, &e->node);
}

/* Where a cut at `at` really falls: a huge entry that it goes through is lost as a whole. */
static uint64_t cut_at(const struct fake_pagetable *pt, const struct fake_pte *pte, uint64_t at,
                       bool up)
{
    uint64_t size;

    if (!pt->lose_rest || at <= pte->va || at >= pte->va + pte->size)
        return at;
    size = entry_size(pte, at);
    if (size == FAKE_PAGE || (at & (size - 1)) == 0)
        return at;
    return up ? (at | (size - 1)) + 1 : at & ~(size - 1);
}

/* Takes [va, end) out of the extents; spare is used when one is cut in two. */
static void carve(struct fake_pagetable *pt, uint64_t va, uint64_t end, struct extent **spare)
{
    struct extent *e = extent_of(fake_tree_floor(&pt->extents, va));

    if (e == NULL || e->pte.va + e->pte.size <= va)
        e = extent_of(fake_tree_ceil(&pt->extents, va));
    while (e != NULL && e->pte.va < end) {
        struct extent *next = extent_of(fake_tree_next(&pt->extents, &e->node));
        struct fake_pte old = e->pte, rest = old;
        uint64_t from = cut_at(pt, &old, va, false), to = cut_at(pt, &old, end, true);
        uint64_t old_end = old.va + old.size;

        fake_tree_remove(&pt->extents, &e->node);
        pt->cost->pte_writes +=
            1 + (min64(to, old_end) - (from > old.va ? from : old.va)) / FAKE_HUGE;
        if (to < old_end) {
            rest.va = to;
            rest.size = old_end - to;
            rest.offset += to - old.va;
        }
        if (from > old.va) {
            old.size = from - old.va;
            put(pt, e, &old);
            e = NULL;
        }
        if (to < old_end) {
            if (e == NULL) {
                e = *spare;
                *spare = NULL;
            }
            put(pt, e, &rest);
            e = NULL;
        }
        fake_free(e);
        e = next;
    }
}

int fake_pt_write(struct fake_pagetable *pt, const struct fake_pte *pte)
{
    struct extent *e = fake_calloc(sizeof(*e)), *spare = fake_calloc(sizeof(*spare));
    uint64_t entries, tables;

    if (e == NULL || spare == NULL) {
        fake_free(e);
        fake_free(spare);
        return -ENOMEM;
    }
    carve(pt, pte->va, pte->va + pte->size, &spare);
    fake_free(spare);
    put(pt, e, pte);
    count_entries(pte, &entries, &tables);
    pt->cost->pte_writes += entries;
    pt->cost->table_allocs += tables;
    return 0;
}

int fake_pt_clear(struct fake_pagetable *pt, uint64_t va, uint64_t size)
{
    struct extent *spare = fake_calloc(sizeof(*spare));

    if (spare == NULL)
        return -ENOMEM;
    carve(pt, va, va + size, &spare);
    fake_free(spare);
    return 0;
}

bool fake_pt_find(const struct fake_pagetable *pt, uint64_t va, struct fake_pte *out)
{
    const struct extent *e = extent_of(fake_tree_floor(&pt->extents, va));

    if (e == NULL || va >= e->pte.va + e->pte.size)
        return false;
    *out = e->pte;
    return true;
}

void fake_pt_free(struct fake_pagetable *pt)
{
    while (pt->extents.root != NULL) {
        struct extent *e = extent_of(pt->extents.root);

        fake_tree_remove(&pt->extents, &e->node);
        fake_free(e);
    }
}

void fake_pt_move(struct fake_pagetable *pt, uint32_t mem, uint32_t generation)
{
    struct extent *e = extent_of(fake_tree_ceil(&pt->extents, 0));

    for (; e != NULL; e = extent_of(fake_tree_next(&pt->extents, &e->node)))
        if (e->pte.mem == mem && e->pte.generation == generation)
            e->pte.moved = true;
}

static uint64_t tlb_key(uint64_t va, uint32_t order)
{
    return (va >> order << order) | order;
}

const struct fake_pte *fake_tlb_find(const struct fake_tlb *tlb, uint64_t va)
{
    for (uint32_t order = 12; order <= 30 && tlb->entries.count != 0; order++)
        if (tlb->per_order[order] != 0) {
            const struct fake_pte *pte = fake_map_get(&tlb->entries, tlb_key(va, order));

            if (pte != NULL)
                return pte;
        }
    return NULL;
}

void fake_tlb_fill(struct fake_tlb *tlb, const struct fake_pte *pte, uint64_t va)
{
    uint64_t size = fake_pte_page(pte, va), start = va & ~(size - 1);
    uint32_t order = (uint32_t)__builtin_ctzll(size);
    struct fake_pte *page;

    if (tlb->entries.count >= TLB_LIMIT)
        fake_tlb_flush(tlb);
    page = fake_calloc(sizeof(*page));
    if (page == NULL)
        return;
    *page = *pte;
    page->offset += start - pte->va;
    page->va = start;
    page->size = size;
    if (fake_map_put(&tlb->entries, tlb_key(va, order), page) != 0)
        fake_free(page);
    else
        tlb->per_order[order]++;
}

void fake_tlb_move(struct fake_tlb *tlb, uint32_t mem, uint32_t generation)
{
    for (uint64_t i = 0; i < tlb->entries.capacity; i++) {
        struct fake_pte *page = tlb->entries.slots[i].value;

        if (page != NULL && page->mem == mem && page->generation == generation)
            page->moved = true;
    }
}

void fake_tlb_flush(struct fake_tlb *tlb)
{
    for (uint64_t i = 0; i < tlb->entries.capacity; i++)
        fake_free(tlb->entries.slots[i].value);
    *tlb = (struct fake_tlb){.entries = tlb->entries};
    fake_map_clear(&tlb->entries);
}
