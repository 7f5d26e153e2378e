/* SPDX-License-Identifier: MIT */
#include "vmm/maptab.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kfd/error.h"
#include "vmm/memory.h"

#define LEAF_ROOM 16u
#define INNER_ROOM 32u
#define FEW 4u /* entries: with so few, a node on the way of a removal is filled up */

/*
 * Level 0 is a leaf. Entry i is a mapping or a node of the level below, and last[i] the last byte
 * of it or in it: mappings do not overlap, so their ends are in the order of their starts, and the
 * first entry with last[i] >= va is the only one that can hold va. The entries lie behind the room
 * for last[], which is less than LEAF_ROOM only in a small root.
 *
 * No node is empty, and none but the root has a single child for long: who passes by mends it.
 */
struct vmm_maptab_node {
    uint16_t count, room, level;
    uint64_t last[];
};

static size_t entry_size(uint32_t level)
{
    return level ? sizeof(struct vmm_maptab_node *) : sizeof(struct vmm_mapping);
}

static struct vmm_maptab_node *node_new(uint32_t level, uint32_t room)
{
    struct vmm_maptab_node *n;

    n = vmm_calloc(1, sizeof(*n) + room * (sizeof(n->last[0]) + entry_size(level)));
    if (n) {
        n->level = (uint16_t)level;
        n->room = (uint16_t)room;
    }
    return n;
}

static struct vmm_mapping *record(const struct vmm_maptab_node *leaf, uint32_t i)
{
    return (struct vmm_mapping *)(uintptr_t)(leaf->last + leaf->room) + i;
}

static struct vmm_maptab_node **child(const struct vmm_maptab_node *inner, uint32_t i)
{
    return (struct vmm_maptab_node **)(uintptr_t)(inner->last + inner->room) + i;
}

static void *entry(const struct vmm_maptab_node *n, uint32_t i)
{
    return n->level ? (void *)child(n, i) : (void *)record(n, i);
}

static uint64_t last_byte(const struct vmm_mapping *m)
{
    return m->va + (m->size - 1);
}

/* The first entry that ends at or behind va; count when there is none. */
static uint32_t slot_of(const struct vmm_maptab_node *n, uint64_t va)
{
    uint32_t i = 0;

    for (uint32_t k = 0; k < n->count; k++)
        i += n->last[k] < va;
    return i;
}

/* Moves n entries; within one node the ranges may overlap. The counts are the caller's. */
static void move(struct vmm_maptab_node *to, uint32_t i, struct vmm_maptab_node *from, uint32_t k,
                 uint32_t n)
{
    memmove(to->last + i, from->last + k, n * sizeof(to->last[0]));
    memmove(entry(to, i), entry(from, k), n * entry_size(to->level));
}

/* Makes room for entry i. */
static void shift_up(struct vmm_maptab_node *n, uint32_t i)
{
    move(n, i + 1, n, i, n->count - i);
    n->count++;
}

static void shift_down(struct vmm_maptab_node *n, uint32_t i)
{
    n->count--;
    move(n, i, n, i + 1, n->count - i);
}

static void set_child(struct vmm_maptab_node *inner, uint32_t i, struct vmm_maptab_node *c)
{
    *child(inner, i) = c;
    inner->last[i] = c->last[c->count - 1];
}

void vmm_maptab_init(struct vmm_maptab *t)
{
    *t = (struct vmm_maptab){0};
}

static void node_free(struct vmm_maptab_node *n)
{
    for (uint32_t i = 0; n->level && i < n->count; i++)
        node_free(*child(n, i));
    vmm_free_mem(n);
}

void vmm_maptab_fini(struct vmm_maptab *t)
{
    if (t->root)
        node_free(t->root);
    vmm_maptab_init(t);
}

/* The lowest mapping that ends at or behind va, and its leaf. */
static struct vmm_mapping *find(const struct vmm_maptab *t, uint64_t va,
                                const struct vmm_maptab_node **leaf)
{
    const struct vmm_maptab_node *n = t->root;

    while (n) {
        uint32_t i = slot_of(n, va);

        *leaf = n;
        if (i == n->count)
            return NULL;
        if (n->level == 0)
            return record(n, i);
        n = *child(n, i);
    }
    return NULL;
}

static struct vmm_mapping *first_ending_behind(const struct vmm_maptab *t, uint64_t va)
{
    const struct vmm_maptab_node *leaf;

    return find(t, va, &leaf);
}

struct vmm_mapping *vmm_maptab_at(const struct vmm_maptab *t, uint64_t va)
{
    struct vmm_mapping *m = first_ending_behind(t, va);

    return m && m->va <= va ? m : NULL;
}

struct vmm_mapping *vmm_maptab_first_in(const struct vmm_maptab *t, uint64_t va, uint64_t size)
{
    struct vmm_mapping *m = first_ending_behind(t, va);

    return m && (m->va <= va || m->va - va < size) && size != 0 ? m : NULL;
}

struct vmm_mapping *vmm_maptab_first(const struct vmm_maptab *t)
{
    return first_ending_behind(t, 0);
}

struct vmm_mapping *vmm_maptab_next(const struct vmm_maptab *t, const struct vmm_mapping *m)
{
    uint64_t last = last_byte(m);

    return last == UINT64_MAX ? NULL : first_ending_behind(t, last + 1);
}

/* Puts a node of twice the room in the place of a full root leaf that is small, or of none. */
static int grow_root(struct vmm_maptab *t)
{
    struct vmm_maptab_node *old = t->root, *n;

    n = node_new(0, old ? 2u * old->room : 1);
    if (!n)
        return -ENOMEM;
    if (old) {
        move(n, 0, old, 0, old->count);
        n->count = old->count;
        vmm_free_mem(old);
    }
    t->root = n;
    return 0;
}

/* Splits the full child i of a node that is not full, `keep` entries staying. */
static int split_child(struct vmm_maptab_node *inner, uint32_t i, uint32_t keep)
{
    struct vmm_maptab_node *low = *child(inner, i), *high = node_new(low->level, low->room);

    if (!high)
        return -ENOMEM;
    high->count = (uint16_t)(low->count - keep);
    move(high, 0, low, keep, high->count);
    low->count = (uint16_t)keep;
    shift_up(inner, i);
    set_child(inner, i, low);
    set_child(inner, i + 1, high);
    return 0;
}

/* Puts a node with one child above the root. */
static int raise_root(struct vmm_maptab *t)
{
    struct vmm_maptab_node *n = node_new(t->root->level + 1u, INNER_ROOM);

    if (!n)
        return -ENOMEM;
    n->count = 1;
    set_child(n, 0, t->root);
    t->root = n;
    return 0;
}

/* A root with one child gives way to it. */
static void lower_root(struct vmm_maptab *t)
{
    while (t->root && t->root->level && t->root->count == 1) {
        struct vmm_maptab_node *old = t->root;

        t->root = *child(old, 0);
        vmm_free_mem(old);
    }
}

static uint32_t child_for(const struct vmm_maptab_node *inner, uint64_t last)
{
    uint32_t i = slot_of(inner, last);

    return i == inner->count ? i - 1 : i;
}

/* How many entries of a full node stay when it is split: half, or nearly all on the side away from
 * growth at an end of the table, so that it leaves full nodes. */
static uint32_t share(const struct vmm_maptab_node *full, uint64_t last, bool lowest)
{
    if (last > full->last[full->count - 1])
        return full->count - 1u;
    return lowest && last < full->last[0] ? 1 : full->count / 2u;
}

/* Splits every full node between the root and the place of `last`. Each split alone leaves a good
 * tree, so that running out of memory on the way changes nothing that counts. */
static int make_room(struct vmm_maptab *t, uint64_t last)
{
    bool lowest = true; /* nothing is to the left of the way */
    struct vmm_maptab_node *n;
    int err = 0;

    if (!t->root || (t->root->count == t->root->room && t->root->room < LEAF_ROOM))
        return grow_root(t);
    if (t->root->count == t->root->room)
        err = raise_root(t);
    for (n = t->root; !err && n->level; n = *child(n, child_for(n, last))) {
        uint32_t i = child_for(n, last);
        const struct vmm_maptab_node *c = *child(n, i);

        lowest = lowest && i == 0;
        if (c->count == c->room)
            err = split_child(n, i, share(c, last, lowest));
    }
    if (err)
        lower_root(t);
    return err;
}

int vmm_maptab_insert(struct vmm_maptab *t, const struct vmm_mapping *m)
{
    const struct vmm_mapping *other;
    struct vmm_maptab_node *n;
    uint64_t last = last_byte(m);
    uint32_t i;

    if (m->size == 0 || last < m->va)
        return kfd_fail(-EINVAL, "mapping of 0x%llx bytes at 0x%llx", (unsigned long long)m->size,
                        (unsigned long long)m->va);
    other = vmm_maptab_first_in(t, m->va, m->size);
    if (other)
        return kfd_fail(-EEXIST, "0x%llx bytes at 0x%llx: 0x%llx bytes are mapped at 0x%llx",
                        (unsigned long long)m->size, (unsigned long long)m->va,
                        (unsigned long long)other->size, (unsigned long long)other->va);
    if (make_room(t, last))
        return kfd_fail(-ENOMEM, "no host memory for a mapping record");
    for (n = t->root; n->level; n = *child(n, i)) {
        i = child_for(n, last);
        if (n->last[i] < last)
            n->last[i] = last;
    }
    i = slot_of(n, last);
    shift_up(n, i);
    n->last[i] = last;
    *record(n, i) = *m;
    t->count++;
    t->bytes += m->size;
    return 0;
}

/* Merges child i of a node with a neighbour, or shares entries out evenly where they are too many
 * for one node. */
static void fill_child(struct vmm_maptab_node *inner, uint32_t i)
{
    uint32_t at = i ? i - 1 : 0;
    struct vmm_maptab_node *low = *child(inner, at), *high = *child(inner, at + 1);
    uint32_t sum = (uint32_t)low->count + high->count, keep = sum <= low->room ? sum : sum / 2;

    if (keep >= low->count) {
        uint32_t n = keep - low->count;

        move(low, low->count, high, 0, n);
        move(high, 0, high, n, high->count - n);
    } else {
        uint32_t n = low->count - keep;

        move(high, n, high, 0, high->count);
        move(high, 0, low, keep, n);
    }
    low->count = (uint16_t)keep;
    high->count = (uint16_t)(sum - keep);
    set_child(inner, at, low);
    if (high->count) {
        set_child(inner, at + 1, high);
    } else {
        vmm_free_mem(high);
        shift_down(inner, at + 1);
    }
}

/* Sees to it that every node on the way to `last` keeps an entry without it. */
static void fill_path(struct vmm_maptab *t, uint64_t last)
{
    struct vmm_maptab_node *n = t->root;

    while (n->level) {
        uint32_t i = slot_of(n, last);

        if ((*child(n, i))->count <= FEW) {
            fill_child(n, i);
            i = slot_of(n, last);
        }
        n = *child(n, i);
    }
    lower_root(t);
}

void vmm_maptab_remove(struct vmm_maptab *t, const struct vmm_mapping *m)
{
    uint64_t last = last_byte(m), size = m->size, before;
    struct vmm_maptab_node *n;
    uint32_t i;

    t->count--;
    t->bytes -= size;
    if (t->count == 0) {
        node_free(t->root);
        t->root = NULL;
        return;
    }
    fill_path(t, last);
    for (n = t->root; n->level; n = *child(n, slot_of(n, last)))
        ;
    i = slot_of(n, last);
    shift_down(n, i);
    if (i < n->count || n == t->root)
        return;
    before = n->last[n->count - 1]; /* it was the leaf's last: its ancestors end earlier now */
    for (n = t->root; n->level; n = *child(n, i)) {
        i = slot_of(n, before);
        if (n->last[i] == last)
            n->last[i] = before;
    }
}

static const struct vmm_mapping *next_of(const struct vmm_maptab *t, const struct vmm_mapping *m,
                                         const struct vmm_maptab_node **leaf)
{
    uint64_t last = last_byte(m);

    if (++m < record(*leaf, (*leaf)->count))
        return m;
    return last == UINT64_MAX ? NULL : find(t, last + 1, leaf);
}

enum vmm_cover vmm_maptab_cover(const struct vmm_maptab *t, uint64_t va, uint64_t size,
                                uint64_t *count, uint64_t *bad_va)
{
    const struct vmm_maptab_node *leaf = NULL;
    const struct vmm_mapping *m = size ? find(t, va, &leaf) : NULL;
    uint64_t done = 0; /* bytes of the range looked at; offsets, so that the end cannot wrap */
    uint64_t found = 0;
    const struct vmm_mapping *cut = NULL;
    uint64_t hole = 0;
    bool holes = false;
    enum vmm_cover cover;

    for (; m && (m->va <= va || m->va - va < size); m = next_of(t, m, &leaf)) {
        found++;
        if (m->va < va || m->size > size - (m->va - va)) {
            cut = cut ? cut : m;
            continue;
        }
        if (m->va - va > done && !holes) {
            holes = true;
            hole = done;
        }
        done = m->va - va + m->size;
    }
    if (done < size && !holes) {
        holes = true;
        hole = done;
    }
    if (cut)
        cover = VMM_COVER_CUT;
    else if (found == 0)
        cover = VMM_COVER_NONE;
    else
        cover = holes ? VMM_COVER_HOLES : VMM_COVER_WHOLE;
    if (count)
        *count = found;
    if (bad_va)
        *bad_va = cut ? cut->va : va + (holes ? hole : size);
    return cover;
}

static uint64_t node_memory(const struct vmm_maptab_node *n)
{
    uint64_t bytes = sizeof(*n) + n->room * (sizeof(n->last[0]) + entry_size(n->level));

    for (uint32_t i = 0; n->level && i < n->count; i++)
        bytes += node_memory(*child(n, i));
    return bytes;
}

uint64_t vmm_maptab_memory(const struct vmm_maptab *t)
{
    return t->root ? node_memory(t->root) : 0;
}

/* The shape of a node and all below it. */
static int validate_node(const struct vmm_maptab_node *n, bool root)
{
    uint32_t room = n->level ? INNER_ROOM : LEAF_ROOM;
    int err = 0;

    if (n->count < (root && n->level ? 2 : 1) || n->count > n->room || n->room > room ||
        (n->room < room && !root))
        return kfd_fail(-EUCLEAN, "maptab: a node of level %u has %u entries of %u", n->level,
                        n->count, n->room);
    for (uint32_t i = 0; i < n->count && !err; i++) {
        const struct vmm_maptab_node *c = n->level ? *child(n, i) : NULL;
        uint64_t last = c ? c->last[c->count - 1] : last_byte(record(n, i));

        if (c && c->level + 1 != n->level)
            return kfd_fail(-EUCLEAN, "maptab: a node of level %u below one of level %u", c->level,
                            n->level);
        if (n->last[i] != last)
            return kfd_fail(-EUCLEAN, "maptab: an entry of level %u ends at 0x%llx, not 0x%llx",
                            n->level, (unsigned long long)last, (unsigned long long)n->last[i]);
        err = c ? validate_node(c, false) : 0;
    }
    return err;
}

struct sum {
    uint64_t base, size, end, count, bytes;
};

static int validate_records(const struct vmm_maptab_node *n, struct sum *sum)
{
    int err = 0;

    for (uint32_t i = 0; i < n->count && !err; i++) {
        const struct vmm_mapping *m = record(n, i);

        if (n->level) {
            err = validate_records(*child(n, i), sum);
            continue;
        }
        if (m->va < sum->end || m->size == 0)
            return kfd_fail(-EUCLEAN, "maptab: mapping at 0x%llx overlaps what lies below it",
                            (unsigned long long)m->va);
        if (m->va - sum->base > sum->size || m->size > sum->size - (m->va - sum->base))
            return kfd_fail(-EUCLEAN, "maptab: mapping at 0x%llx leaves its reservation",
                            (unsigned long long)m->va);
        sum->end = m->va + m->size;
        sum->count++;
        sum->bytes += m->size;
    }
    return err;
}

int vmm_maptab_validate(const struct vmm_maptab *t, uint64_t base, uint64_t size)
{
    struct sum sum = {.base = base, .size = size, .end = base};
    int err = 0;

    if (t->root)
        err = validate_node(t->root, true);
    if (!err && t->root)
        err = validate_records(t->root, &sum);
    if (err)
        return err;
    if (sum.count != t->count || sum.bytes != t->bytes)
        return kfd_fail(-EUCLEAN, "maptab: counts %llu mappings, has %llu",
                        (unsigned long long)t->count, (unsigned long long)sum.count);
    return 0;
}
