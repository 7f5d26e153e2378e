/* SPDX-License-Identifier: MIT */
#include "vmm/space.h"

#include <errno.h>
#include <string.h>

#include "kfd/error.h"
#include "vmm/memory.h"

#define FEW_TRIES 256

static struct vmm_space_node *space_node_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_space_node, node) : NULL;
}

static uint64_t base_of(const struct vmm_tree_node *n)
{
    return space_node_of(n)->base;
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return base_of(a) < base_of(b) ? -1 : base_of(a) > base_of(b);
}

int vmm_space_init(struct vmm_space *s, struct kfd_sys *sys, uint64_t low, uint64_t high,
                   uint64_t page)
{
    memset(s, 0, sizeof(*s));
    vmm_holes_init(&s->holes, page);
    return vmm_arenas_init(&s->arenas, sys, low, high, page);
}

void vmm_space_fini(struct vmm_space *s)
{
    struct vmm_tree_node *n;

    while ((n = s->nodes.root)) {
        vmm_tree_remove(&s->nodes, n);
        vmm_free_mem(space_node_of(n)->spare);
        space_node_of(n)->spare = NULL;
    }
    vmm_radix_clear(&s->radix);
    vmm_holes_fini(&s->holes);
    vmm_arenas_fini(&s->arenas);
}

int vmm_space_blank(struct vmm_space *s, uint64_t base, uint64_t size)
{
    return vmm_arenas_blank(&s->arenas, base, size);
}

void vmm_space_mend(struct vmm_space *s, uint64_t base, uint64_t size)
{
    vmm_arenas_mend(&s->arenas, base, size);
}

/* Makes [base, base + size), which lies in one arena, free. Takes over spare. */
static void add_hole(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_hole *spare)
{
    const struct vmm_arena *arena = vmm_arenas_at(&s->arenas, base, NULL);

    vmm_holes_add(&s->holes, base, size, arena->base, arena->base + arena->size, spare);
}

/* More address space, as a hole in which size bytes at a multiple of align fit. */
static int grow(struct vmm_space *s, uint64_t size, uint64_t align)
{
    struct vmm_hole *hole = vmm_calloc(1, sizeof(*hole));
    uint64_t base, got;
    int err = hole ? vmm_arenas_grow(&s->arenas, size, align, &base, &got) : -ENOMEM;

    if (err)
        vmm_free_mem(hole);
    else
        add_hole(s, base, got, hole);
    return err;
}

/* Makes [base, base + size), which is free no more, the reservation n; free again on -ENOMEM. */
static int insert_node(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_hole *spare,
                       struct vmm_space_node *n)
{
    int err;

    n->base = base;
    n->size = size;
    n->spare = spare;
    vmm_tree_insert(&s->nodes, &n->node, compare);
    err = vmm_radix_insert(&s->radix, base, size, n);
    if (err)
        vmm_space_free(s, n);
    return err;
}

static int take(struct vmm_space *s, struct vmm_hole *hole, uint64_t at, uint64_t size,
                struct vmm_space_node *n)
{
    struct vmm_hole *spare;
    int err = vmm_holes_take(&s->holes, hole, at, size, &spare);

    return err ? err : insert_node(s, at, size, spare, n);
}

/* Whether [base, end) is free as far as arenas go. *arenas: whether any part lies in one. */
static bool range_is_free(const struct vmm_space *s, uint64_t base, uint64_t end, bool *arenas)
{
    uint64_t at = base;

    *arenas = false;
    while (at < end) {
        struct vmm_arena *next = NULL;

        if (vmm_arenas_at(&s->arenas, at, &next)) {
            const struct vmm_hole *hole = vmm_holes_at(&s->holes, at);

            if (!hole)
                return false;
            *arenas = true;
            at = hole->base + hole->size;
        } else {
            at = next ? next->base : end;
        }
    }
    return true;
}

/* Reserves exactly [base, base + size), which no arena reaches into. */
static int reserve_outside(struct vmm_space *s, uint64_t base, uint64_t size,
                           struct vmm_space_node *n)
{
    struct vmm_hole *spare = vmm_calloc(1, sizeof(*spare));
    int err = spare ? vmm_arenas_grow_at(&s->arenas, base, size, true) : -ENOMEM;

    if (err) {
        vmm_free_mem(spare);
        return err;
    }
    return insert_node(s, base, size, spare, n);
}

/* Lets arenas grow over those parts of [base, end) that are outside of them. */
static int fill_up(struct vmm_space *s, uint64_t base, uint64_t end)
{
    for (uint64_t at = base, stop; at < end; at = stop) {
        struct vmm_arena *next = NULL;
        const struct vmm_arena *in = vmm_arenas_at(&s->arenas, at, &next);
        struct vmm_hole *hole;
        int err;

        stop = in ? in->base + in->size : next && next->base < end ? next->base : end;
        if (in)
            continue;
        hole = vmm_calloc(1, sizeof(*hole));
        err = hole ? vmm_arenas_grow_at(&s->arenas, at, stop - at, false) : -ENOMEM;
        if (err) {
            vmm_free_mem(hole);
            return err;
        }
        add_hole(s, at, stop - at, hole);
    }
    return 0;
}

/* Reserves exactly [base, base + size). Any error means: not there. */
static int reserve_at(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_space_node *n)
{
    struct vmm_hole *hole;
    bool arenas;
    int err;

    if (!range_is_free(s, base, base + size, &arenas))
        return -EEXIST;
    if (!arenas)
        return reserve_outside(s, base, size, n);
    err = fill_up(s, base, base + size);
    if (err)
        return err;
    hole = vmm_holes_at(&s->holes, base);
    if (!hole || hole->size - (base - hole->base) < size)
        return -EEXIST;
    return take(s, hole, base, size, n);
}

/* The last resort: every gap between reservations, whether inside or outside of arenas. Finds what
 * fits only across the end of an arena. */
static int reserve_between(struct vmm_space *s, uint64_t size, uint64_t align,
                           struct vmm_space_node *n)
{
    const struct vmm_space_node *next = vmm_space_first(s);
    uint64_t gap = s->arenas.low;

    for (;;) {
        uint64_t end = next ? next->base : s->arenas.high;
        uint64_t at = vmm_round_up(gap, align);

        if (at <= end && size <= end - at && !reserve_at(s, at, size, n))
            return 0;
        if (!next)
            break;
        gap = next->base + next->size;
        next = vmm_space_next(next);
    }
    return kfd_fail(-ENOMEM,
                    "the GPUs' address range 0x%llx..0x%llx has no free 0x%llx bytes at a multiple "
                    "of 0x%llx, or the process may have no more (RLIMIT_AS)",
                    (unsigned long long)s->arenas.low, (unsigned long long)s->arenas.high - 1,
                    (unsigned long long)size, (unsigned long long)align);
}

int vmm_space_reserve(struct vmm_space *s, uint64_t size, uint64_t align, uint64_t hint,
                      struct vmm_space_node *n)
{
    struct vmm_hole *hole;
    uint64_t at = 0;

    if (size == 0 || size & (s->arenas.page - 1))
        return kfd_fail(-EINVAL, "size 0x%llx is not a multiple of 0x%llx",
                        (unsigned long long)size, (unsigned long long)s->arenas.page);
    if (align & (align - 1))
        return kfd_fail(-EINVAL, "alignment 0x%llx is not a power of two",
                        (unsigned long long)align);
    if (align < s->arenas.page)
        align = s->arenas.page;
    if (size >= KFD_HUGE_PAGE_SIZE && align < KFD_HUGE_PAGE_SIZE)
        align = KFD_HUGE_PAGE_SIZE;
    if (size > s->arenas.high - s->arenas.low || align > s->arenas.high)
        return kfd_fail(-ENOMEM,
                        "the GPUs' address range 0x%llx..0x%llx has no room for 0x%llx bytes at a "
                        "multiple of 0x%llx",
                        (unsigned long long)s->arenas.low, (unsigned long long)s->arenas.high - 1,
                        (unsigned long long)size, (unsigned long long)align);

    if (hint >= s->arenas.low && hint < s->arenas.high && size <= s->arenas.high - hint &&
        !(hint & (align - 1)) && !reserve_at(s, hint, size, n))
        return 0;
    /* More address space costs less than a long search, as long as there is more. */
    hole = vmm_holes_find(&s->holes, size, align, s->full ? UINT64_MAX : FEW_TRIES, &at);
    if (!hole) {
        s->full = grow(s, size, align) != 0;
        hole = vmm_holes_find(&s->holes, size, align, UINT64_MAX, &at);
    }
    if (!hole)
        return reserve_between(s, size, align, n);
    return take(s, hole, at, size, n);
}

void vmm_space_free(struct vmm_space *s, struct vmm_space_node *n)
{
    struct vmm_arena *arena = vmm_arenas_at(&s->arenas, n->base, NULL);

    vmm_tree_remove(&s->nodes, &n->node);
    vmm_radix_remove(&s->radix, n->base, n->size, n);
    if (arena->hinted && !vmm_arenas_drop(&s->arenas, arena))
        vmm_free_mem(n->spare);
    else
        add_hole(s, n->base, n->size, n->spare);
    n->spare = NULL;
}

struct vmm_space_node *vmm_space_find(const struct vmm_space *s, uint64_t va)
{
    struct vmm_space_node *n = vmm_radix_find(&s->radix, va);

    /* Small reservations and the ends of odd ones are not in there. */
    if (!n && vmm_arenas_at(&s->arenas, va, NULL))
        n = space_node_of(vmm_tree_floor(&s->nodes, va, base_of));
    return n && va - n->base < n->size ? n : NULL;
}

bool vmm_space_holds(const struct vmm_space *s, uint64_t va, uint64_t size)
{
    struct vmm_arena *next = NULL;

    return size && (vmm_arenas_at(&s->arenas, va, &next) || (next && next->base - va < size));
}

struct vmm_space_node *vmm_space_first(const struct vmm_space *s)
{
    return space_node_of(vmm_tree_first(&s->nodes));
}

struct vmm_space_node *vmm_space_above(const struct vmm_space *s, uint64_t va)
{
    struct vmm_space_node *n =
        va ? space_node_of(vmm_tree_floor(&s->nodes, va - 1, base_of)) : NULL;

    return n ? vmm_space_next(n) : vmm_space_first(s);
}

struct vmm_space_node *vmm_space_next(const struct vmm_space_node *n)
{
    return space_node_of(vmm_tree_next(&n->node));
}

uint64_t vmm_space_arenas(const struct vmm_space *s)
{
    return s->arenas.count;
}

/* Walks an arena's holes and reservations side by side; *hole and *n go to the next arena's. */
static int check_arena(const struct vmm_arena *arena, const struct vmm_hole **hole,
                       const struct vmm_space_node **n)
{
    uint64_t end = arena->base + arena->size;
    uint64_t at = arena->base;
    bool after_hole = false;

    while (at < end) {
        if (*hole && (*hole)->base == at && !after_hole && !arena->hinted) {
            at += (*hole)->size;
            after_hole = true;
            *hole = vmm_holes_next(*hole);
        } else if (*n && (*n)->base == at && (*n)->spare) {
            at += (*n)->size;
            after_hole = false;
            *n = space_node_of(vmm_tree_next(&(*n)->node));
        } else {
            return kfd_fail(-EUCLEAN, "space: 0x%llx in the arena at 0x%llx is nobody's",
                            (unsigned long long)at, (unsigned long long)arena->base);
        }
    }
    if (at != end)
        return kfd_fail(-EUCLEAN, "space: the arena at 0x%llx is overrun",
                        (unsigned long long)arena->base);
    return 0;
}

/* Every whole granule of every reservation names it, and there are no others. */
static int check_radix(const struct vmm_space *s)
{
    int64_t entered = vmm_radix_validate(&s->radix);
    const struct vmm_space_node *n;

    for (n = vmm_space_first(s); n && entered >= 0; n = vmm_space_next(n)) {
        uint64_t first = vmm_round_up(n->base, VMM_RADIX_GRANULE);
        uint64_t end = (n->base + n->size) & ~(VMM_RADIX_GRANULE - 1);

        if (first >= end || end > VMM_RADIX_END)
            continue;
        entered -= (int64_t)((end - first) / VMM_RADIX_GRANULE);
        if (vmm_radix_find(&s->radix, first) != n || vmm_radix_find(&s->radix, end - 1) != n)
            entered = -EUCLEAN;
    }
    return entered ? kfd_fail(-EUCLEAN, "space: the index of addresses is wrong") : 0;
}

int vmm_space_validate(const struct vmm_space *s)
{
    const struct vmm_hole *hole = vmm_holes_first(&s->holes);
    const struct vmm_space_node *n = vmm_space_first(s);
    const struct vmm_arena *arena;
    int err;

    if ((err = vmm_holes_validate(&s->holes)) || (err = vmm_tree_validate(&s->nodes, compare)) ||
        (err = vmm_arenas_validate(&s->arenas)))
        return err;
    for (arena = vmm_arenas_first(&s->arenas); arena; arena = vmm_arenas_next(arena)) {
        err = check_arena(arena, &hole, &n);
        if (err)
            return err;
    }
    if (hole || n)
        return kfd_fail(-EUCLEAN, "space: a hole or a reservation lies in no arena");
    return check_radix(s);
}
