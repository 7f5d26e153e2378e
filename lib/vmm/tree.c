/* SPDX-License-Identifier: MIT */
#include "vmm/tree.h"

#include <errno.h>
#include <stdbool.h>

#include "kfd/error.h"

#define RED ((uintptr_t)1)

static struct vmm_tree_node *parent_of(const struct vmm_tree_node *n)
{
    return (struct vmm_tree_node *)(n->parent & ~RED);
}

static bool is_red(const struct vmm_tree_node *n)
{
    return n && (n->parent & RED);
}

static void set_parent(struct vmm_tree_node *n, struct vmm_tree_node *parent)
{
    n->parent = (uintptr_t)parent | (n->parent & RED);
}

static void set_red(struct vmm_tree_node *n, bool red)
{
    n->parent = (n->parent & ~RED) | (red ? RED : 0);
}

/* The side of its parent that n hangs on. */
static int side_of(const struct vmm_tree_node *parent, const struct vmm_tree_node *n)
{
    return parent->right == n;
}

/* Puts n (may be NULL) where old hung below parent (NULL: the root). */
static void replace_child(struct vmm_tree *t, struct vmm_tree_node *parent,
                          const struct vmm_tree_node *old, struct vmm_tree_node *n)
{
    if (parent)
        parent->child[side_of(parent, old)] = n;
    else
        t->root = n;
    if (n)
        set_parent(n, parent);
}

static void augment_up(struct vmm_tree *t, struct vmm_tree_node *n)
{
    if (!t->augment)
        return;
    for (; n; n = parent_of(n))
        t->augment(n);
}

/* Moves n down to `side`; its child of the other side takes its place. The subtree as a whole holds
 * the same nodes, so nothing above needs to be augmented. */
static void rotate(struct vmm_tree *t, struct vmm_tree_node *n, int side)
{
    struct vmm_tree_node *up = n->child[!side];
    struct vmm_tree_node *middle = up->child[side];

    replace_child(t, parent_of(n), n, up);
    n->child[!side] = middle;
    if (middle)
        set_parent(middle, n);
    up->child[side] = n;
    set_parent(n, up);
    if (t->augment) {
        t->augment(n);
        t->augment(up);
    }
}

/* n is red and its parent may be red too; everything else is in order. */
static void fix_red(struct vmm_tree *t, struct vmm_tree_node *n)
{
    struct vmm_tree_node *parent;

    while ((parent = parent_of(n)) && is_red(parent)) {
        struct vmm_tree_node *grand = parent_of(parent); /* a red node is not the root */
        int side = side_of(grand, parent);
        struct vmm_tree_node *uncle = grand->child[!side];

        if (is_red(uncle)) {
            set_red(parent, false);
            set_red(uncle, false);
            set_red(grand, true);
            n = grand;
            continue;
        }
        if (side_of(parent, n) != side) {
            rotate(t, parent, side);
            parent = n;
        }
        set_red(parent, false);
        set_red(grand, true);
        rotate(t, grand, !side);
        break;
    }
    set_red(t->root, false);
}

void vmm_tree_insert(struct vmm_tree *t, struct vmm_tree_node *n, vmm_tree_cmp *cmp)
{
    struct vmm_tree_node **link = &t->root;
    struct vmm_tree_node *parent = NULL;

    while (*link) {
        parent = *link;
        link = &parent->child[cmp(n, parent) >= 0];
    }
    n->parent = (uintptr_t)parent | RED;
    n->left = n->right = NULL;
    *link = n;
    augment_up(t, n);
    fix_red(t, n);
}

/* The subtree on `side` of parent lacks one black node. */
static void fix_black(struct vmm_tree *t, struct vmm_tree_node *parent, int side)
{
    while (parent) {
        struct vmm_tree_node *n = parent->child[side];
        struct vmm_tree_node *sibling;

        if (is_red(n)) {
            set_red(n, false);
            return;
        }
        sibling = parent->child[!side];
        if (is_red(sibling)) {
            set_red(sibling, false);
            set_red(parent, true);
            rotate(t, parent, side);
            sibling = parent->child[!side];
        }
        if (is_red(sibling->child[0]) || is_red(sibling->child[1])) {
            if (!is_red(sibling->child[!side])) {
                set_red(sibling->child[side], false);
                set_red(sibling, true);
                rotate(t, sibling, !side);
                sibling = parent->child[!side];
            }
            set_red(sibling, is_red(parent));
            set_red(parent, false);
            set_red(sibling->child[!side], false);
            rotate(t, parent, side);
            return;
        }
        set_red(sibling, true);
        n = parent;
        parent = parent_of(n);
        if (parent)
            side = side_of(parent, n);
    }
    if (t->root)
        set_red(t->root, false);
}

/* Swaps n, which has two children, with its successor, so that n has one child at most. */
static void swap_with_next(struct vmm_tree *t, struct vmm_tree_node *n)
{
    struct vmm_tree_node *next = n->right;
    struct vmm_tree_node old;

    while (next->left)
        next = next->left;
    old = *next;

    replace_child(t, parent_of(n), n, next);
    next->left = n->left;
    set_parent(next->left, next);
    if (parent_of(&old) == n) {
        next->right = n;
        n->parent = (uintptr_t)next;
    } else {
        next->right = n->right;
        set_parent(next->right, next);
        parent_of(&old)->left = n;
        n->parent = (uintptr_t)parent_of(&old);
    }
    n->left = NULL;
    n->right = old.right;
    if (n->right)
        set_parent(n->right, n);
}

void vmm_tree_remove(struct vmm_tree *t, struct vmm_tree_node *n)
{
    struct vmm_tree_node *parent, *child;
    bool red;
    int side = 0;

    if (n->left && n->right) {
        struct vmm_tree_node *next;
        bool n_red = is_red(n);
        bool next_red;

        next = vmm_tree_next(n);
        next_red = is_red(next);
        swap_with_next(t, n);
        set_red(next, n_red);
        set_red(n, next_red);
    }
    parent = parent_of(n);
    child = n->left ? n->left : n->right;
    red = is_red(n);
    if (parent)
        side = side_of(parent, n);
    replace_child(t, parent, n, child);
    augment_up(t, parent);
    if (red)
        return;
    if (parent)
        fix_black(t, parent, side);
    else if (child)
        set_red(child, false);
}

void vmm_tree_update(struct vmm_tree *t, struct vmm_tree_node *n)
{
    augment_up(t, n);
}

static struct vmm_tree_node *end_of(struct vmm_tree_node *n, int side)
{
    while (n && n->child[side])
        n = n->child[side];
    return n;
}

static struct vmm_tree_node *step(const struct vmm_tree_node *n, int side)
{
    struct vmm_tree_node *parent;

    if (n->child[side])
        return end_of(n->child[side], !side);
    while ((parent = parent_of(n)) && parent->child[side] == n)
        n = parent;
    return parent;
}

struct vmm_tree_node *vmm_tree_first(const struct vmm_tree *t)
{
    return end_of(t->root, 0);
}

struct vmm_tree_node *vmm_tree_last(const struct vmm_tree *t)
{
    return end_of(t->root, 1);
}

struct vmm_tree_node *vmm_tree_next(const struct vmm_tree_node *n)
{
    return step(n, 1);
}

struct vmm_tree_node *vmm_tree_prev(const struct vmm_tree_node *n)
{
    return step(n, 0);
}

struct vmm_tree_node *vmm_tree_floor(const struct vmm_tree *t, uint64_t key, vmm_tree_key *key_of)
{
    struct vmm_tree_node *n = t->root;
    struct vmm_tree_node *best = NULL;

    while (n) {
        bool fits = key_of(n) <= key;

        if (fits)
            best = n;
        n = n->child[fits];
    }
    return best;
}

/* The black height of n's subtree, or -EUCLEAN. Wrong parent links are found before they could make
 * it run in circles. */
static int black_height(const struct vmm_tree_node *n, const struct vmm_tree_node *parent)
{
    int left, right;

    if (!n)
        return 0;
    if (parent_of(n) != parent)
        return kfd_fail(-EUCLEAN, "tree: node %p has a wrong parent link", (const void *)n);
    if (is_red(n) && is_red(parent))
        return kfd_fail(-EUCLEAN, "tree: node %p and its parent are red", (const void *)n);
    left = black_height(n->left, n);
    if (left < 0)
        return left;
    right = black_height(n->right, n);
    if (right < 0)
        return right;
    if (left != right)
        return kfd_fail(-EUCLEAN, "tree: node %p has black heights %d and %d", (const void *)n,
                        left, right);
    return left + !is_red(n);
}

int vmm_tree_validate(const struct vmm_tree *t, vmm_tree_cmp *cmp)
{
    const struct vmm_tree_node *n, *next;
    int err;

    if (is_red(t->root))
        return kfd_fail(-EUCLEAN, "tree: the root is red");
    err = black_height(t->root, NULL);
    if (err < 0)
        return err;
    for (n = vmm_tree_first(t); n; n = next) {
        next = vmm_tree_next(n);
        if (next && cmp(n, next) > 0)
            return kfd_fail(-EUCLEAN, "tree: node %p sorts after its successor", (const void *)n);
    }
    return 0;
}
