/* SPDX-License-Identifier: MIT */
/*
 * Intrusive red-black tree. The caller embeds a node, owns its memory and serialises all calls; the
 * tree allocates nothing and cannot fail. With an augment function a node can carry data about its
 * whole subtree, such as a maximum, by which the caller then searches.
 */
#ifndef VMM_TREE_H
#define VMM_TREE_H

#include <stddef.h>
#include <stdint.h>

/* The structure of the given type whose member ptr points at. */
#define vmm_container(ptr, type, member) \
    ((type *)(void *)((char *)(uintptr_t)(ptr)-offsetof(type, member)))

struct vmm_tree_node {
    uintptr_t parent; /* its address; bit 0 is set in a red node */
    union {
        struct {
            struct vmm_tree_node *left, *right;
        };
        struct vmm_tree_node *child[2];
    };
};

struct vmm_tree {
    struct vmm_tree_node *root;
    /* Recomputes n's subtree data from n itself and its children; NULL: none. Called from the
     * bottom up wherever a subtree changed. */
    void (*augment)(struct vmm_tree_node *n);
};

typedef int vmm_tree_cmp(const struct vmm_tree_node *a, const struct vmm_tree_node *b);
typedef uint64_t vmm_tree_key(const struct vmm_tree_node *n);

/* Among equal nodes the one inserted last comes last. n's old contents do not matter. */
void vmm_tree_insert(struct vmm_tree *t, struct vmm_tree_node *n, vmm_tree_cmp *cmp);
/* n is in t. Its links are undefined afterwards. */
void vmm_tree_remove(struct vmm_tree *t, struct vmm_tree_node *n);
/* n's own data changed, but not its place in the order: recomputes n and everything above. */
void vmm_tree_update(struct vmm_tree *t, struct vmm_tree_node *n);

/* NULL when there is none. */
struct vmm_tree_node *vmm_tree_first(const struct vmm_tree *t);
struct vmm_tree_node *vmm_tree_last(const struct vmm_tree *t);
struct vmm_tree_node *vmm_tree_next(const struct vmm_tree_node *n);
struct vmm_tree_node *vmm_tree_prev(const struct vmm_tree_node *n);

/* The last node whose key is <= key; NULL when all are greater. */
struct vmm_tree_node *vmm_tree_floor(const struct vmm_tree *t, uint64_t key, vmm_tree_key *key_of);

#define vmm_tree_for_each(n, t) for ((n) = vmm_tree_first(t); (n); (n) = vmm_tree_next(n))

/* Order, colours, black heights and parent links: 0, or -EUCLEAN and the error text. */
int vmm_tree_validate(const struct vmm_tree *t, vmm_tree_cmp *cmp);

#endif
