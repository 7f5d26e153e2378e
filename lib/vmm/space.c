/* SPDX-License-Identifier: MIT */
#include "vmm/space.h"

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
#define FEW_TRIES 256

struct vmm_arena {
    struct vmm_tree_node node;
    uint64_t base, size;
    bool hinted; /* made for a hint: holds one reservation and no hole */
};

static struct vmm_arena *arena_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_arena, node) : NULL;
}

static struct vmm_space_node *space_node_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_space_node, node) : NULL;
}

static uint64_t arena_base(const struct vmm_tree_node *n)
{
    return arena_of(n)->base;
}

static uint64_t space_node_base(const struct vmm_tree_node *n)
{
    return space_node_of(n)->base;
}

static int compare_arenas(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return arena_base(a) < arena_base(b) ? -1 : arena_base(a) > arena_base(b);
}

static int compare_space_nodes(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return space_node_base(a) < space_node_base(b) ? -1 : space_node_base(a) > space_node_base(b);
}

/* align is a power of two. Wraps to 0 past the end; addresses stay below 2^57, so that a wrapped
 * result is always below the argument. */
static uint64_t round_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) & ~(align - 1);
}

int vmm_space_init(struct vmm_space *s, struct kfd_sys *sys, uint64_t low, uint64_t high,
                   uint64_t page)
{
    memset(s, 0, sizeof(*s));
    if (page == 0 || page & (page - 1))
        return kfd_fail(-EINVAL, "space: page size 0x%llx", (unsigned long long)page);
    s->sys = sys;
    s->page = page;
    s->low = round_up(low > LOWEST ? low : LOWEST, page);
    s->high = high & ~(page - 1);
    s->step = STEP;
    vmm_holes_init(&s->holes, page);
    if (s->low >= s->high || s->high > (uint64_t)1 << 57)
        return kfd_fail(-EINVAL, "space: no room in [0x%llx, 0x%llx)", (unsigned long long)low,
                        (unsigned long long)high);
    return 0;
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
    while ((n = s->arenas.root)) {
        struct vmm_arena *arena = arena_of(n);

        vmm_tree_remove(&s->arenas, n);
        s->sys->ops->unmap_pages(s->sys, (void *)(uintptr_t)arena->base, arena->size);
        vmm_free_mem(arena);
    }
    s->arena_count = 0;
}

/* Reserved memory: no access, no dump, no copy in a forked child. flags and addr say where. A core
 * dump or a child that has it after all does no harm, so advice may fail. */
static int map_none(const struct vmm_space *s, uint64_t addr, uint64_t size, int flags,
                    uint64_t *base)
{
    struct kfd_sys *sys = s->sys;
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
static int map_none_at(const struct vmm_space *s, uint64_t base, uint64_t size)
{
    uint64_t got;
    int err = map_none(s, base, size, MAP_FIXED_NOREPLACE, &got);

    if (err < 0 || got == base)
        return err;
    /* Kernels before 4.17 take the flag for a hint. */
    s->sys->ops->unmap_pages(s->sys, (void *)(uintptr_t)got, size);
    return -EEXIST;
}

int vmm_space_blank(struct vmm_space *s, uint64_t base, uint64_t size)
{
    uint64_t got;
    int err = map_none(s, base, size, MAP_FIXED, &got);

    if (err < 0)
        vmm_space_mend(s, base, size);
    return err;
}

void vmm_space_mend(struct vmm_space *s, uint64_t base, uint64_t size)
{
    map_none_at(s, base, size);
}

/* The arena that contains at, else NULL and in *next the lowest one above (or NULL). */
static struct vmm_arena *arena_at(const struct vmm_space *s, uint64_t at, struct vmm_arena **next)
{
    struct vmm_tree_node *n = vmm_tree_floor(&s->arenas, at, arena_base);

    if (n && at - arena_of(n)->base < arena_of(n)->size)
        return arena_of(n);
    if (next)
        *next = arena_of(n ? vmm_tree_next(n) : vmm_tree_first(&s->arenas));
    return NULL;
}

/* Makes [base, base + size), which lies in one arena, free. Takes over spare. */
static void add_hole(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_hole *spare)
{
    const struct vmm_arena *arena = arena_at(s, base, NULL);

    vmm_holes_add(&s->holes, base, size, arena->base, arena->base + arena->size, spare);
}

static void insert_arena(struct vmm_space *s, struct vmm_arena *arena, uint64_t base, uint64_t size)
{
    arena->base = base;
    arena->size = size;
    vmm_tree_insert(&s->arenas, &arena->node, compare_arenas);
    s->arena_count++;
}

static void remove_arena(struct vmm_space *s, struct vmm_arena *arena)
{
    vmm_tree_remove(&s->arenas, &arena->node);
    s->arena_count--;
    vmm_free_mem(arena);
}

/* Makes newly mapped [base, base + size) an arena, or part of those that it touches, with one hole.
 * Takes over fresh and spare. */
static void add_arena(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_arena *fresh,
                      struct vmm_hole *spare)
{
    struct vmm_arena *right = NULL;
    struct vmm_arena *left = arena_at(s, base - 1, &right);

    if (left)
        right = arena_of(vmm_tree_next(&left->node));
    if (left && left->hinted)
        left = NULL;
    if (right && (right->base != base + size || right->hinted))
        right = NULL;
    if (left) {
        left->size += size;
        if (right) {
            left->size += right->size;
            remove_arena(s, right);
        }
    } else if (right) {
        right->base = base;
        right->size += size;
    } else {
        insert_arena(s, fresh, base, size);
        fresh = NULL;
    }
    vmm_free_mem(fresh);
    add_hole(s, base, size, spare);
}

/* Lets the kernel choose the place. -ENOMEM: not that much; -ERANGE: it chose one outside of
 * [low, high). */
static int map_anywhere(const struct vmm_space *s, uint64_t size, uint64_t *base)
{
    int err = map_none(s, 0, size, 0, base);

    if (err)
        return -ENOMEM;
    if (*base >= s->low && *base < s->high && size <= s->high - *base)
        return 0;
    s->sys->ops->unmap_pages(s->sys, (void *)(uintptr_t)*base, size);
    return -ERANGE;
}

/* Tries places in [low, high) from the bottom up: for apertures where the kernel does not put
 * anything by itself (40 bits). Gaps between mappings of others that are narrower than 1/4096 of
 * the aperture can be missed. */
static int map_probing(const struct vmm_space *s, uint64_t size, uint64_t align, uint64_t *base)
{
    uint64_t stride = round_up((s->high - s->low) / PROBES, align);
    uint64_t at = round_up(s->low, align);

    if (stride < align)
        stride = align;
    while (at >= s->low && at < s->high && size <= s->high - at) {
        struct vmm_arena *next = NULL;
        const struct vmm_arena *in = arena_at(s, at, &next);
        int err;

        if (!in && next && next->base - at < size)
            in = next;
        if (in) {
            at = round_up(in->base + in->size, align);
            continue;
        }
        err = map_none_at(s, at, size);
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

/* Takes address space from the kernel in which `size` bytes at a multiple of align fit: a whole
 * number of steps, else of small steps, else no more than needed. */
static int grow(struct vmm_space *s, uint64_t size, uint64_t align)
{
    const uint64_t units[] = {s->step, s->step >> SMALL_STEP_SHIFT, s->page};
    struct vmm_arena *arena = vmm_calloc(1, sizeof(*arena));
    struct vmm_hole *hole = vmm_calloc(1, sizeof(*hole));
    uint64_t base = 0, got = 0;
    int err = -ENOMEM;

    if (!arena || !hole)
        goto fail;
    for (size_t i = 0; err == -ENOMEM && i < 3 && align <= s->step; i++) {
        got = round_up(size + (align - s->page), units[i] > s->page ? units[i] : s->page);
        err = map_anywhere(s, got, &base);
    }
    for (size_t i = 0; err && i < 3; i++) {
        got = round_up(size, units[i] > s->page ? units[i] : s->page);
        err = map_probing(s, got, align, &base);
    }
    if (err)
        goto fail;
    add_arena(s, base, got, arena, hole);
    return 0;

fail:
    vmm_free_mem(hole);
    vmm_free_mem(arena);
    return -ENOMEM;
}

/* Makes [base, base + size), which is free no more, the reservation n; free again on -ENOMEM. */
static int insert_node(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_hole *spare,
                       struct vmm_space_node *n)
{
    int err;

    n->base = base;
    n->size = size;
    n->spare = spare;
    vmm_tree_insert(&s->nodes, &n->node, compare_space_nodes);
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

        if (arena_at(s, at, &next)) {
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

/* Makes exactly [base, base + size) an arena. hinted: without a hole. */
static int grow_at(struct vmm_space *s, uint64_t base, uint64_t size, bool hinted,
                   struct vmm_hole **spare)
{
    struct vmm_arena *arena = vmm_calloc(1, sizeof(*arena));
    struct vmm_hole *hole = vmm_calloc(1, sizeof(*hole));
    int err = -ENOMEM;

    if (!arena || !hole)
        goto fail;
    err = map_none_at(s, base, size);
    if (err)
        goto fail;
    if (hinted) {
        arena->hinted = true;
        insert_arena(s, arena, base, size);
        *spare = hole;
    } else {
        add_arena(s, base, size, arena, hole);
    }
    return 0;

fail:
    vmm_free_mem(hole);
    vmm_free_mem(arena);
    return err;
}

/* Reserves exactly [base, base + size). Any error means: not there. */
static int reserve_at(struct vmm_space *s, uint64_t base, uint64_t size, struct vmm_space_node *n)
{
    uint64_t end = base + size;
    struct vmm_hole *hole;
    uint64_t at = base;
    bool arenas;
    int err;

    if (!range_is_free(s, base, end, &arenas))
        return -EEXIST;
    if (!arenas) {
        struct vmm_hole *spare;

        err = grow_at(s, base, size, true, &spare);
        return err ? err : insert_node(s, base, size, spare, n);
    }
    /* Arenas grow over the parts that are outside. */
    while (at < end) {
        struct vmm_arena *next = NULL;
        const struct vmm_arena *in = arena_at(s, at, &next);
        uint64_t stop = in ? in->base + in->size : next && next->base < end ? next->base : end;

        err = in ? 0 : grow_at(s, at, stop - at, false, NULL);
        if (err)
            return err;
        at = stop;
    }
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
    uint64_t gap = s->low;

    for (;;) {
        uint64_t end = next ? next->base : s->high;
        uint64_t at = round_up(gap, align);

        if (at <= end && size <= end - at && !reserve_at(s, at, size, n))
            return 0;
        if (!next)
            break;
        gap = next->base + next->size;
        next = vmm_space_next(next);
    }
    return kfd_fail(-ENOMEM,
                    "the GPUs' address range 0x%llx..0x%llx has no free 0x%llx bytes at a multiple "
                    "of 0x%llx",
                    (unsigned long long)s->low, (unsigned long long)s->high - 1,
                    (unsigned long long)size, (unsigned long long)align);
}

int vmm_space_reserve(struct vmm_space *s, uint64_t size, uint64_t align, uint64_t hint,
                      struct vmm_space_node *n)
{
    struct vmm_hole *hole;
    uint64_t at = 0;

    if (size == 0 || size & (s->page - 1))
        return kfd_fail(-EINVAL, "size 0x%llx is not a multiple of 0x%llx",
                        (unsigned long long)size, (unsigned long long)s->page);
    if (align & (align - 1))
        return kfd_fail(-EINVAL, "alignment 0x%llx is not a power of two",
                        (unsigned long long)align);
    if (align < s->page)
        align = s->page;
    if (size >= KFD_HUGE_PAGE_SIZE && align < KFD_HUGE_PAGE_SIZE)
        align = KFD_HUGE_PAGE_SIZE;
    if (size > s->high - s->low || align > s->high)
        return kfd_fail(-ENOMEM,
                        "the GPUs' address range 0x%llx..0x%llx has no room for 0x%llx bytes at a "
                        "multiple of 0x%llx",
                        (unsigned long long)s->low, (unsigned long long)s->high - 1,
                        (unsigned long long)size, (unsigned long long)align);

    if (hint >= s->low && hint < s->high && size <= s->high - hint && !(hint & (align - 1)) &&
        !reserve_at(s, hint, size, n))
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
    struct vmm_arena *arena = arena_at(s, n->base, NULL);

    vmm_tree_remove(&s->nodes, &n->node);
    vmm_radix_remove(&s->radix, n->base, n->size, n);
    if (arena->hinted) {
        if (s->sys->ops->unmap_pages(s->sys, (void *)(uintptr_t)n->base, n->size) >= 0) {
            remove_arena(s, arena);
            vmm_free_mem(n->spare);
            n->spare = NULL;
            return;
        }
        /* The kernel may refuse to split its own mapping; then the range stays with us. */
        vmm_tree_remove(&s->arenas, &arena->node);
        s->arena_count--;
        arena->hinted = false;
        add_arena(s, n->base, n->size, arena, n->spare);
    } else {
        add_hole(s, n->base, n->size, n->spare);
    }
    n->spare = NULL;
}

struct vmm_space_node *vmm_space_find(const struct vmm_space *s, uint64_t va)
{
    struct vmm_space_node *n = vmm_radix_find(&s->radix, va);

    /* Small reservations and the ends of odd ones are not in there. */
    if (!n && arena_at(s, va, NULL))
        n = space_node_of(vmm_tree_floor(&s->nodes, va, space_node_base));
    return n && va - n->base < n->size ? n : NULL;
}

bool vmm_space_holds(const struct vmm_space *s, uint64_t va, uint64_t size)
{
    struct vmm_arena *next = NULL;

    return size && (arena_at(s, va, &next) || (next && next->base - va < size));
}

struct vmm_space_node *vmm_space_first(const struct vmm_space *s)
{
    return space_node_of(vmm_tree_first(&s->nodes));
}

struct vmm_space_node *vmm_space_above(const struct vmm_space *s, uint64_t va)
{
    struct vmm_space_node *n =
        va ? space_node_of(vmm_tree_floor(&s->nodes, va - 1, space_node_base)) : NULL;

    return n ? vmm_space_next(n) : vmm_space_first(s);
}

struct vmm_space_node *vmm_space_next(const struct vmm_space_node *n)
{
    return space_node_of(vmm_tree_next(&n->node));
}

uint64_t vmm_space_arenas(const struct vmm_space *s)
{
    return s->arena_count;
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
        uint64_t first = round_up(n->base, VMM_RADIX_GRANULE);
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
    const struct vmm_tree_node *it;
    const struct vmm_arena *below = NULL;
    uint64_t count = 0;
    int err;

    if ((err = vmm_holes_validate(&s->holes)) ||
        (err = vmm_tree_validate(&s->nodes, compare_space_nodes)) ||
        (err = vmm_tree_validate(&s->arenas, compare_arenas)))
        return err;
    vmm_tree_for_each (it, &s->arenas) {
        const struct vmm_arena *arena = arena_of(it);

        uint64_t end = below ? below->base + below->size : s->low;

        if (arena->base < end || arena->size == 0 || arena->base + arena->size > s->high)
            return kfd_fail(-EUCLEAN, "space: the arena at 0x%llx is out of place",
                            (unsigned long long)arena->base);
        if (below && arena->base == end && !arena->hinted && !below->hinted)
            return kfd_fail(-EUCLEAN, "space: the arena at 0x%llx touches the one below",
                            (unsigned long long)arena->base);
        below = arena;
        count++;
        err = check_arena(arena, &hole, &n);
        if (err)
            return err;
    }
    if (hole || n || count != s->arena_count)
        return kfd_fail(-EUCLEAN, "space: a hole or a reservation lies in no arena");
    return check_radix(s);
}
