/* SPDX-License-Identifier: MIT */
#include "fake/tree.h"

#include <stddef.h>

static uint64_t priority(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
    return key ^ (key >> 31);
}

void fake_tree_insert(struct fake_tree *tree, struct fake_node *node)
{
    struct fake_node **link = &tree->root, *rest, **left, **right;
    uint64_t mine = priority(node->key);

    while (*link != NULL && priority((*link)->key) >= mine)
        link = node->key < (*link)->key ? &(*link)->left : &(*link)->right;
    rest = *link;
    *link = node;
    left = &node->left;
    right = &node->right;
    while (rest != NULL) {
        if (rest->key < node->key) {
            *left = rest;
            left = &rest->right;
            rest = rest->right;
        } else {
            *right = rest;
            right = &rest->left;
            rest = rest->left;
        }
    }
    *left = NULL;
    *right = NULL;
    tree->count++;
}

void fake_tree_remove(struct fake_tree *tree, struct fake_node *node)
{
    struct fake_node **link = &tree->root, *a = node->left, *b = node->right;

    while (*link != node)
        link = node->key < (*link)->key ? &(*link)->left : &(*link)->right;
    while (a != NULL && b != NULL) {
        if (priority(a->key) >= priority(b->key)) {
            *link = a;
            link = &a->right;
            a = a->right;
        } else {
            *link = b;
            link = &b->left;
            b = b->left;
        }
    }
    *link = a != NULL ? a : b;
    tree->count--;
}

struct fake_node *fake_tree_find(const struct fake_tree *tree, uint64_t key)
{
    struct fake_node *node = tree->root;

    while (node != NULL && node->key != key)
        node = key < node->key ? node->left : node->right;
    return node;
}

struct fake_node *fake_tree_floor(const struct fake_tree *tree, uint64_t key)
{
    struct fake_node *node = tree->root, *best = NULL;

    while (node != NULL) {
        if (node->key <= key) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

struct fake_node *fake_tree_ceil(const struct fake_tree *tree, uint64_t key)
{
    struct fake_node *node = tree->root, *best = NULL;

    while (node != NULL) {
        if (node->key >= key) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

struct fake_node *fake_tree_next(const struct fake_tree *tree, const struct fake_node *node)
{
    return node->key == UINT64_MAX ? NULL : fake_tree_ceil(tree, node->key + 1);
}
