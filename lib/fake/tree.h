/* SPDX-License-Identifier: MIT */
/*
 * An intrusive ordered map from a 64-bit key to a node: a treap whose priorities are a hash of the
 * key, so that it needs no memory and no random state. All operations are O(log n) expected. The
 * owner of the tree locks it.
 */
#ifndef FAKE_TREE_H
#define FAKE_TREE_H

#include <stdint.h>

struct fake_node {
    struct fake_node *left, *right;
    uint64_t key;
};

struct fake_tree {
    struct fake_node *root;
    uint64_t count;
};

#define FAKE_NODE_OF(node, type, member) \
    ((node) == NULL ? NULL : (type *)(void *)((char *)(node)-offsetof(type, member)))

/* The key must not be in the tree. */
void fake_tree_insert(struct fake_tree *tree, struct fake_node *node);
/* The node must be in the tree. */
void fake_tree_remove(struct fake_tree *tree, struct fake_node *node);
struct fake_node *fake_tree_find(const struct fake_tree *tree, uint64_t key);
/* The node with the greatest key <= key, or NULL. */
struct fake_node *fake_tree_floor(const struct fake_tree *tree, uint64_t key);
/* The node with the least key >= key, or NULL. */
struct fake_node *fake_tree_ceil(const struct fake_tree *tree, uint64_t key);
struct fake_node *fake_tree_next(const struct fake_tree *tree, const struct fake_node *node);

#endif
