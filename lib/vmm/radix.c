/* SPDX-License-Identifier: MIT */
#include "vmm/radix.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "kfd/error.h"
#include "vmm/memory.h"

#define OBJECT ((vmm_radix_entry)1)
#define LEVELS 3
#define ALL_GRANULES (VMM_RADIX_END / VMM_RADIX_GRANULE)

static_assert(ALL_GRANULES == (uint64_t)1 << (LEVELS * VMM_RADIX_BITS), "the root covers all");

struct table {
    vmm_radix_entry entry[VMM_RADIX_SLOTS];
    uint32_t used; /* entries that are not 0 */
};

static struct table *table_of(vmm_radix_entry e)
{
    return e & OBJECT ? NULL : (struct table *)e;
}

/* Granules that one entry stands for; level 0 is the lowest. */
static uint64_t span(int level)
{
    return (uint64_t)1 << (level * VMM_RADIX_BITS);
}

/* A range of granules, end exclusive. */
struct range {
    uint64_t first, end;
};

static struct range granules(uint64_t base, uint64_t size)
{
    struct range g = {
        .first = (base + VMM_RADIX_GRANULE - 1) / VMM_RADIX_GRANULE,
        .end = (base + size) / VMM_RADIX_GRANULE,
    };

    if (g.end > ALL_GRANULES)
        g.end = ALL_GRANULES;
    return g;
}

/* The part of g that lies in slot i of a table of that level, in granules of the slot; whole: it is
 * all of the slot. */
static struct range in_slot(struct range g, uint64_t i, int level, bool *whole)
{
    uint64_t start = i * span(level), end = start + span(level);
    struct range part = {
        .first = g.first > start ? g.first - start : 0,
        .end = (g.end < end ? g.end : end) - start,
    };

    *whole = part.end - part.first == span(level);
    return part;
}

/* Takes g out of a table of that level; returns how many entries became 0. */
static uint32_t clear(vmm_radix_entry *entry, int level, struct range g, const void *object)
{
    uint32_t cleared = 0;
    bool whole;

    for (uint64_t i = g.first / span(level); i * span(level) < g.end; i++) {
        struct range part = in_slot(g, i, level, &whole);
        struct table *t = table_of(entry[i]);

        if (t) {
            t->used -= clear(t->entry, level - 1, part, object);
            if (t->used)
                continue;
            vmm_free_mem(t);
        } else if (entry[i] != ((vmm_radix_entry)object | OBJECT)) {
            continue;
        }
        entry[i] = 0;
        cleared++;
    }
    return cleared;
}

/* Enters g in a table of that level, as far as the memory lasts; adds to *used the entries that
 * are no longer 0. */
static int fill(vmm_radix_entry *entry, int level, struct range g, void *object, uint32_t *used)
{
    bool whole;

    for (uint64_t i = g.first / span(level); i * span(level) < g.end; i++) {
        struct range part = in_slot(g, i, level, &whole);
        struct table *t = table_of(entry[i]);
        int err;

        if (whole) {
            entry[i] = (vmm_radix_entry)object | OBJECT;
            ++*used;
            continue;
        }
        if (!t) {
            t = vmm_calloc(1, sizeof(*t));
            if (!t)
                return -ENOMEM;
            entry[i] = (vmm_radix_entry)t;
            ++*used;
        }
        err = fill(t->entry, level - 1, part, object, &t->used);
        if (err)
            return err;
    }
    return 0;
}

int vmm_radix_insert(struct vmm_radix *r, uint64_t base, uint64_t size, void *object)
{
    struct range g = granules(base, size);
    uint32_t used = 0;

    if (g.first >= g.end || !fill(r->root, LEVELS - 1, g, object, &used))
        return 0;
    clear(r->root, LEVELS - 1, g, object);
    return kfd_fail(-ENOMEM, "no memory for the index of addresses");
}

void vmm_radix_remove(struct vmm_radix *r, uint64_t base, uint64_t size, const void *object)
{
    struct range g = granules(base, size);

    if (g.first < g.end)
        clear(r->root, LEVELS - 1, g, object);
}

void *vmm_radix_find(const struct vmm_radix *r, uint64_t va)
{
    uint64_t granule = va / VMM_RADIX_GRANULE;
    const vmm_radix_entry *entry = r->root;
    const struct table *t;
    vmm_radix_entry e;
    int level = LEVELS - 1;

    if (granule >= ALL_GRANULES)
        return NULL;
    while ((t = table_of(e = entry[granule / span(level) % VMM_RADIX_SLOTS]))) {
        entry = t->entry;
        level--;
    }
    return (void *)(e & ~OBJECT);
}

static void free_tables(vmm_radix_entry *entry)
{
    for (uint32_t i = 0; i < VMM_RADIX_SLOTS; i++) {
        struct table *t = table_of(entry[i]);

        if (t) {
            free_tables(t->entry);
            vmm_free_mem(t);
        }
        entry[i] = 0;
    }
}

void vmm_radix_clear(struct vmm_radix *r)
{
    free_tables(r->root);
}

/* *used: entries that are not 0. */
static int64_t validate(const vmm_radix_entry *entry, int level, uint32_t *used)
{
    int64_t total = 0;

    *used = 0;
    for (uint32_t i = 0; i < VMM_RADIX_SLOTS; i++) {
        const struct table *t = table_of(entry[i]);
        int64_t part = entry[i] ? (int64_t)span(level) : 0;
        uint32_t below;

        *used += entry[i] != 0;
        if (t) {
            part = level ? validate(t->entry, level - 1, &below) : -EUCLEAN;
            if (part < 0)
                return part;
            if (below == 0 || below != t->used)
                return kfd_fail(-EUCLEAN, "radix: a table counts %u entries and has %u", t->used,
                                below);
        }
        total += part;
    }
    return total;
}

int64_t vmm_radix_validate(const struct vmm_radix *r)
{
    uint32_t used;

    return validate(r->root, LEVELS - 1, &used);
}
