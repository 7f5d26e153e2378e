/* SPDX-License-Identifier: MIT */
#include "vmm/hole.h"

#include <errno.h>
#include <stdbool.h>

#include <kfdirect/kfd.h>

#include "kfd/error.h"
#include "vmm/memory.h"

static struct vmm_hole *hole_of(const struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_hole, node) : NULL;
}

static uint64_t base_of(const struct vmm_tree_node *n)
{
    return hole_of(n)->base;
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return base_of(a) < base_of(b) ? -1 : base_of(a) > base_of(b);
}

/* The bytes from the first multiple of align (a power of two) to the end. */
static uint64_t aligned_size(const struct vmm_hole *hole, uint64_t align)
{
    uint64_t skip = -hole->base & (align - 1);

    return hole->size > skip ? hole->size - skip : 0;
}

/* The page has no bit of its own here: every base is a multiple of it. */
static uint64_t class_align(int c)
{
    static const uint64_t aligns[VMM_HOLE_CLASSES] = {1, KFD_HUGE_PAGE_SIZE, (uint64_t)1 << 30};

    return aligns[c];
}

static uint64_t maximum(const struct vmm_hole *hole, int c)
{
    uint64_t max = aligned_size(hole, class_align(c));

    for (int side = 0; side < 2; side++) {
        const struct vmm_hole *child = hole_of(hole->node.child[side]);

        if (child && child->max[c] > max)
            max = child->max[c];
    }
    return max;
}

static void augment(struct vmm_tree_node *n)
{
    struct vmm_hole *hole = hole_of(n);

    for (int c = 0; c < VMM_HOLE_CLASSES; c++)
        hole->max[c] = maximum(hole, c);
}

void vmm_holes_init(struct vmm_holes *h, uint64_t page)
{
    *h = (struct vmm_holes){.tree.augment = augment, .page = page};
}

void vmm_holes_fini(struct vmm_holes *h)
{
    while (h->tree.root) {
        struct vmm_hole *hole = hole_of(h->tree.root);

        vmm_tree_remove(&h->tree, &hole->node);
        vmm_free_mem(hole);
    }
}

void vmm_holes_add(struct vmm_holes *h, uint64_t base, uint64_t size, uint64_t floor,
                   uint64_t ceiling, struct vmm_hole *spare)
{
    struct vmm_tree_node *below = vmm_tree_floor(&h->tree, base, base_of);
    struct vmm_hole *left = hole_of(below);
    struct vmm_hole *right = hole_of(below ? vmm_tree_next(below) : vmm_tree_first(&h->tree));

    if (left && (left->base + left->size != base || base == floor))
        left = NULL;
    if (right && (right->base != base + size || right->base == ceiling))
        right = NULL;
    if (left && right) {
        size += right->size;
        vmm_tree_remove(&h->tree, &right->node);
        vmm_free_mem(right);
    }
    if (left) {
        left->size += size;
        vmm_tree_update(&h->tree, &left->node);
        vmm_free_mem(spare);
    } else if (right) {
        right->base = base;
        right->size += size;
        vmm_tree_update(&h->tree, &right->node);
        vmm_free_mem(spare);
    } else {
        spare->base = base;
        spare->size = size;
        vmm_tree_insert(&h->tree, &spare->node, compare);
    }
}

struct vmm_hole *vmm_holes_at(const struct vmm_holes *h, uint64_t at)
{
    struct vmm_hole *hole = hole_of(vmm_tree_floor(&h->tree, at, base_of));

    return hole && at - hole->base < hole->size ? hole : NULL;
}

/* The lowest hole with at least `size` bytes behind its first multiple of the class's alignment. */
static struct vmm_hole *lowest_of_class(const struct vmm_holes *h, uint64_t size, int c)
{
    struct vmm_hole *hole = hole_of(h->tree.root);

    if (!hole || hole->max[c] < size)
        return NULL;
    for (;;) {
        struct vmm_hole *left = hole_of(hole->node.left);

        if (left && left->max[c] >= size)
            hole = left;
        else if (aligned_size(hole, class_align(c)) >= size)
            return hole;
        else
            hole = hole_of(hole->node.right);
    }
}

/* The lowest hole at or below n in the tree that fits, by trying each one that may. */
static struct vmm_hole *lowest_by_trying(const struct vmm_tree_node *n, uint64_t size,
                                         uint64_t align, int c, uint64_t *tries)
{
    struct vmm_hole *hole = hole_of(n);
    struct vmm_hole *found;

    if (!hole || hole->max[c] < size)
        return NULL;
    found = lowest_by_trying(n->left, size, align, c, tries);
    if (found || *tries == 0)
        return found;
    --*tries;
    if (aligned_size(hole, align) >= size)
        return hole;
    return lowest_by_trying(n->right, size, align, c, tries);
}

struct vmm_hole *vmm_holes_find(const struct vmm_holes *h, uint64_t size, uint64_t align,
                                uint64_t tries, uint64_t *at)
{
    struct vmm_hole *hole = NULL;
    uint64_t slack;
    int c = 0;

    while (c + 1 < VMM_HOLE_CLASSES && align >= class_align(c + 1))
        c++;
    slack = align - (c ? class_align(c) : h->page);
    if (size + slack >= size)
        hole = lowest_of_class(h, size + slack, c);
    if (!hole && slack != 0)
        hole = lowest_by_trying(h->tree.root, size, align, c, &tries);
    if (hole)
        *at = hole->base + (-hole->base & (align - 1));
    return hole;
}

int vmm_holes_take(struct vmm_holes *h, struct vmm_hole *hole, uint64_t at, uint64_t size,
                   struct vmm_hole **spare)
{
    uint64_t left = at - hole->base;
    uint64_t right = hole->size - left - size;
    struct vmm_hole *fresh[2] = {NULL, NULL}; /* one for each side that stays free */

    for (int i = 0; i < (left != 0) + (right != 0); i++) {
        fresh[i] = vmm_calloc(1, sizeof(*fresh[i]));
        if (!fresh[i]) {
            vmm_free_mem(fresh[0]);
            return kfd_fail(-ENOMEM, "no memory for a hole");
        }
    }
    if (left == 0 && right == 0) {
        vmm_tree_remove(&h->tree, &hole->node);
        *spare = hole;
        return 0;
    }
    *spare = fresh[0];
    hole->base = left ? hole->base : at + size;
    hole->size = left ? left : right;
    vmm_tree_update(&h->tree, &hole->node);
    if (left && right) {
        fresh[1]->base = at + size;
        fresh[1]->size = right;
        vmm_tree_insert(&h->tree, &fresh[1]->node, compare);
    }
    return 0;
}

struct vmm_hole *vmm_holes_first(const struct vmm_holes *h)
{
    return hole_of(vmm_tree_first(&h->tree));
}

struct vmm_hole *vmm_holes_next(const struct vmm_hole *hole)
{
    return hole_of(vmm_tree_next(&hole->node));
}

static int check_maxima(const struct vmm_tree_node *n)
{
    const struct vmm_hole *hole = hole_of(n);
    int err;

    if (!n)
        return 0;
    if ((err = check_maxima(n->left)) || (err = check_maxima(n->right)))
        return err;
    for (int c = 0; c < VMM_HOLE_CLASSES; c++)
        if (hole->max[c] != maximum(hole, c))
            return kfd_fail(-EUCLEAN, "holes: the one at 0x%llx has wrong maxima",
                            (unsigned long long)hole->base);
    return 0;
}

int vmm_holes_validate(const struct vmm_holes *h)
{
    const struct vmm_hole *hole;
    uint64_t end = 0;
    int err = vmm_tree_validate(&h->tree, compare);

    if (err)
        return err;
    for (hole = vmm_holes_first(h); hole; hole = vmm_holes_next(hole)) {
        if (hole->base < end || hole->size == 0 || (hole->base | hole->size) & (h->page - 1))
            return kfd_fail(-EUCLEAN, "holes: the one at 0x%llx is out of place",
                            (unsigned long long)hole->base);
        end = hole->base + hole->size;
    }
    return check_maxima(h->tree.root);
}
