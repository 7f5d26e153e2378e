/* SPDX-License-Identifier: MIT */
#include "vmm/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "kfd/error.h"
#include "vmm/memory.h"

#define STEP ((uint64_t)1 << 40)
/* When a whole step is not to be had, growth is frugal: what limits the address space (RLIMIT_AS)
 * limits the rest of the process too. */
#define SMALL_STEP_SHIFT 10
/* Never hand out the zero page and its neighbours, whatever the aperture says. */
#define LOWEST ((uint64_t)64 << 10)
#define PROBES 4096

static struct vmm_arena *arena_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_arena, node) : NULL;
}

static uint64_t base_of(const struct vmm_tree_node *n)
{
    return arena_of(n)->base;
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return base_of(a) < base_of(b) ? -1 : base_of(a) > base_of(b);
}

int vmm_arenas_init(struct vmm_arenas *a, struct kfd_sys *sys, uint64_t low, uint64_t high,
                    uint64_t page)
{
    memset(a, 0, sizeof(*a));
    if (page == 0 || page & (page - 1))
        return kfd_fail(-EINVAL, "space: page size 0x%llx", (unsigned long long)page);
    a->sys = sys;
    a->page = page;
    a->low = vmm_round_up(low > LOWEST ? low : LOWEST, page);
    a->high = high & ~(page - 1);
    a->step = STEP;
    if (a->low >= a->high || a->high > (uint64_t)1 << 57)
        return kfd_fail(-EINVAL, "space: no room in [0x%llx, 0x%llx)", (unsigned long long)low,
                        (unsigned long long)high);
    return 0;
}

static void insert(struct vmm_arenas *a, struct vmm_arena *arena, uint64_t base, uint64_t size)
{
    arena->base = base;
    arena->size = size;
    vmm_tree_insert(&a->tree, &arena->node, compare);
    a->count++;
}

/* It is the caller's then. */
static void take_out(struct vmm_arenas *a, struct vmm_arena *arena)
{
    vmm_tree_remove(&a->tree, &arena->node);
    a->count--;
}

static int unmap(const struct vmm_arenas *a, uint64_t base, uint64_t size)
{
    return a->sys->ops->unmap_pages(a->sys, (void *)(uintptr_t)base, size);
}

void vmm_arenas_fini(struct vmm_arenas *a)
{
    struct vmm_tree_node *n;

    while ((n = a->tree.root)) {
        struct vmm_arena *arena = arena_of(n);

        take_out(a, arena);
        unmap(a, arena->base, arena->size);
        vmm_free_mem(arena);
    }
}

struct vmm_arena *vmm_arenas_first(const struct vmm_arenas *a)
{
    return arena_of(vmm_tree_first(&a->tree));
}

struct vmm_arena *vmm_arenas_next(const struct vmm_arena *arena)
{
    return arena_of(vmm_tree_next(&arena->node));
}

struct vmm_arena *vmm_arenas_at(const struct vmm_arenas *a, uint64_t at, struct vmm_arena **next)
{
    struct vmm_tree_node *n = vmm_tree_floor(&a->tree, at, base_of);

    if (n && at - arena_of(n)->base < arena_of(n)->size)
        return arena_of(n);
    if (next)
        *next = n ? vmm_arenas_next(arena_of(n)) : vmm_arenas_first(a);
    return NULL;
}

/* Reserved memory: no access, no dump, no copy in a forked child. flags and addr say where. A core
 * dump or a child that has it after all does no harm, so advice may fail. */
static int map_none(const struct vmm_arenas *a, uint64_t addr, uint64_t size, int flags,
                    uint64_t *base)
{
    struct kfd_sys *sys = a->sys;
    void *p;
    int err = sys->ops->map_pages(sys, (void *)(uintptr_t)addr, size, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0, &p);

    if (err < 0)
        return err;
    sys->ops->advise_pages(sys, p, size, MADV_DONTDUMP);
    sys->ops->advise_pages(sys, p, size, MADV_DONTFORK);
    *base = (uint64_t)(uintptr_t)p;
    return 0;
}

/* Exactly at base. -EEXIST: something is there. */
static int map_none_at(const struct vmm_arenas *a, uint64_t base, uint64_t size)
{
    uint64_t got;
    int err = map_none(a, base, size, MAP_FIXED_NOREPLACE, &got);

    if (err < 0 || got == base)
        return err;
    /* Kernels before 4.17 take the flag for a hint. */
    unmap(a, got, size);
    return -EEXIST;
}

int vmm_arenas_blank(const struct vmm_arenas *a, uint64_t base, uint64_t size)
{
    uint64_t got;
    int err = map_none(a, base, size, MAP_FIXED, &got);

    if (err < 0)
        vmm_arenas_mend(a, base, size);
    return err;
}

void vmm_arenas_mend(const struct vmm_arenas *a, uint64_t base, uint64_t size)
{
    map_none_at(a, base, size);
}

/* Makes newly mapped [base, base + size) an arena, or part of those that it touches. Takes over
 * fresh. */
static void add(struct vmm_arenas *a, uint64_t base, uint64_t size, struct vmm_arena *fresh)
{
    struct vmm_arena *right = NULL;
    struct vmm_arena *left = vmm_arenas_at(a, base - 1, &right);

    if (left)
        right = vmm_arenas_next(left);
    if (left && left->hinted)
        left = NULL;
    if (right && (right->base != base + size || right->hinted))
        right = NULL;
    if (!left && !right) {
        insert(a, fresh, base, size);
        return;
    }
    vmm_free_mem(fresh);
    if (!left) {
        right->base = base;
        right->size += size;
        return;
    }
    left->size += size;
    if (right) {
        left->size += right->size;
        take_out(a, right);
        vmm_free_mem(right);
    }
}

/* Lets the kernel choose the place. -ENOMEM: not that much; -ERANGE: it chose one outside of
 * [low, high). */
static int map_anywhere(const struct vmm_arenas *a, uint64_t size, uint64_t *base)
{
    int err = map_none(a, 0, size, 0, base);

    if (err)
        return -ENOMEM;
    if (*base >= a->low && *base < a->high && size <= a->high - *base)
        return 0;
    unmap(a, *base, size);
    return -ERANGE;
}

/* Tries places in [low, high) from the bottom up: for apertures where the kernel does not put
 * anything by itself (40 bits). Gaps between mappings of others that are narrower than 1/4096 of
 * the aperture can be missed. */
static int map_probing(const struct vmm_arenas *a, uint64_t size, uint64_t align, uint64_t *base)
{
    uint64_t stride = vmm_round_up((a->high - a->low) / PROBES, align);
    uint64_t at = vmm_round_up(a->low, align);

    if (stride < align)
        stride = align;
    while (at >= a->low && at < a->high && size <= a->high - at) {
        struct vmm_arena *next = NULL;
        const struct vmm_arena *in = vmm_arenas_at(a, at, &next);
        int err;

        if (!in && next && next->base - at < size)
            in = next;
        if (in) {
            at = vmm_round_up(in->base + in->size, align);
            continue;
        }
        err = map_none_at(a, at, size);
        if (!err) {
            *base = at;
            return 0;
        }
        if (err == -ENOMEM)
            return err;
        at += stride;
    }
    return -ENOMEM;
}

int vmm_arenas_grow(struct vmm_arenas *a, uint64_t size, uint64_t align, uint64_t *base,
                    uint64_t *got)
{
    const uint64_t units[] = {a->step, a->step >> SMALL_STEP_SHIFT, a->page};
    struct vmm_arena *arena = vmm_calloc(1, sizeof(*arena));
    int err = -ENOMEM;

    if (!arena)
        return err;
    for (size_t i = 0; err == -ENOMEM && i < 3 && align <= a->step; i++) {
        *got = vmm_round_up(size + (align - a->page), units[i] > a->page ? units[i] : a->page);
        err = map_anywhere(a, *got, base);
    }
    for (size_t i = 0; err && i < 3; i++) {
        *got = vmm_round_up(size, units[i] > a->page ? units[i] : a->page);
        err = map_probing(a, *got, align, base);
    }
    if (err) {
        vmm_free_mem(arena);
        return -ENOMEM;
    }
    add(a, *base, *got, arena);
    return 0;
}

int vmm_arenas_grow_at(struct vmm_arenas *a, uint64_t base, uint64_t size, bool hinted)
{
    struct vmm_arena *arena = vmm_calloc(1, sizeof(*arena));
    int err = arena ? map_none_at(a, base, size) : -ENOMEM;

    if (err) {
        vmm_free_mem(arena);
        return err;
    }
    arena->hinted = hinted;
    if (hinted)
        insert(a, arena, base, size);
    else
        add(a, base, size, arena);
    return 0;
}

int vmm_arenas_drop(struct vmm_arenas *a, struct vmm_arena *hinted)
{
    int err = unmap(a, hinted->base, hinted->size);

    take_out(a, hinted);
    if (err >= 0) {
        vmm_free_mem(hinted);
        return 0;
    }
    hinted->hinted = false;
    add(a, hinted->base, hinted->size, hinted);
    return err;
}

int vmm_arenas_validate(const struct vmm_arenas *a)
{
    const struct vmm_arena *arena, *below = NULL;
    uint64_t count = 0;
    int err = vmm_tree_validate(&a->tree, compare);

    if (err)
        return err;
    for (arena = vmm_arenas_first(a); arena; below = arena, arena = vmm_arenas_next(arena)) {
        uint64_t end = below ? below->base + below->size : a->low;

        if (arena->base < end || arena->size == 0 || arena->base + arena->size > a->high)
            return kfd_fail(-EUCLEAN, "space: the arena at 0x%llx is out of place",
                            (unsigned long long)arena->base);
        if (below && arena->base == end && !arena->hinted && !below->hinted)
            return kfd_fail(-EUCLEAN, "space: the arena at 0x%llx touches the one below",
                            (unsigned long long)arena->base);
        count++;
    }
    return count == a->count ? 0 : kfd_fail(-EUCLEAN, "space: the arenas are miscounted");
}
