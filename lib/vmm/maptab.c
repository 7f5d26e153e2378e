/* SPDX-License-Identifier: MIT */
#include "vmm/maptab.h"

#include <errno.h>
#include <stdbool.h>

#include "kfd/error.h"

static struct vmm_mapping *mapping_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_mapping, node) : NULL;
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    uint64_t x = mapping_of(a)->va, y = mapping_of(b)->va;

    return (x > y) - (x < y);
}

void vmm_maptab_init(struct vmm_maptab *t)
{
    *t = (struct vmm_maptab){0};
}

/* The lowest mapping that ends behind va. As mappings do not overlap, their ends are in the same
 * order as their starts. */
static struct vmm_mapping *first_ending_behind(const struct vmm_maptab *t, uint64_t va)
{
    const struct vmm_tree_node *n = t->tree.root;
    struct vmm_mapping *best = NULL;

    while (n) {
        struct vmm_mapping *m = mapping_of(n);

        if (m->va + (m->size - 1) >= va) {
            best = m;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
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
    return mapping_of(vmm_tree_first(&t->tree));
}

struct vmm_mapping *vmm_maptab_next(const struct vmm_mapping *m)
{
    return mapping_of(vmm_tree_next(&m->node));
}

int vmm_maptab_insert(struct vmm_maptab *t, struct vmm_mapping *m)
{
    const struct vmm_mapping *other;

    if (m->size == 0 || m->va + (m->size - 1) < m->va)
        return kfd_fail(-EINVAL, "mapping of 0x%llx bytes at 0x%llx", (unsigned long long)m->size,
                        (unsigned long long)m->va);
    other = vmm_maptab_first_in(t, m->va, m->size);
    if (other)
        return kfd_fail(-EEXIST, "0x%llx bytes at 0x%llx: 0x%llx bytes are mapped at 0x%llx",
                        (unsigned long long)m->size, (unsigned long long)m->va,
                        (unsigned long long)other->size, (unsigned long long)other->va);
    vmm_tree_insert(&t->tree, &m->node, compare);
    t->count++;
    t->bytes += m->size;
    return 0;
}

void vmm_maptab_remove(struct vmm_maptab *t, struct vmm_mapping *m)
{
    vmm_tree_remove(&t->tree, &m->node);
    t->count--;
    t->bytes -= m->size;
}

enum vmm_cover vmm_maptab_cover(const struct vmm_maptab *t, uint64_t va, uint64_t size,
                                uint64_t *count, uint64_t *bad_va)
{
    const struct vmm_mapping *m = vmm_maptab_first_in(t, va, size);
    uint64_t done = 0; /* bytes of the range looked at; offsets, so that the end cannot wrap */
    uint64_t found = 0;
    const struct vmm_mapping *cut = NULL;
    uint64_t hole = 0;
    bool holes = false;
    enum vmm_cover cover;

    for (; m && (m->va <= va || m->va - va < size); m = vmm_maptab_next(m)) {
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

int vmm_maptab_validate(const struct vmm_maptab *t, uint64_t base, uint64_t size)
{
    uint64_t count = 0, bytes = 0, end = base;
    const struct vmm_mapping *m;
    int err = vmm_tree_validate(&t->tree, compare);

    if (err)
        return err;
    for (m = vmm_maptab_first(t); m; m = vmm_maptab_next(m)) {
        if (m->va < end || m->size == 0)
            return kfd_fail(-EUCLEAN, "maptab: mapping at 0x%llx overlaps what lies below it",
                            (unsigned long long)m->va);
        if (m->va - base > size || m->size > size - (m->va - base))
            return kfd_fail(-EUCLEAN, "maptab: mapping at 0x%llx leaves its reservation",
                            (unsigned long long)m->va);
        end = m->va + m->size;
        count++;
        bytes += m->size;
    }
    if (count != t->count || bytes != t->bytes)
        return kfd_fail(-EUCLEAN, "maptab: counts %llu mappings, has %llu",
                        (unsigned long long)t->count, (unsigned long long)count);
    return 0;
}
