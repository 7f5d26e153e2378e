/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/tree.h"

#include "random.h"

struct item {
    struct vmm_tree_node node;
    uint64_t key;
    uint64_t weight;
    uint64_t max_weight; /* augmented */
    uint64_t count;      /* augmented */
    bool in;
};

static struct item *item_of(const struct vmm_tree_node *n)
{
    return vmm_container(n, struct item, node);
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    uint64_t x = item_of(a)->key, y = item_of(b)->key;

    return (x > y) - (x < y);
}

static uint64_t key_of(const struct vmm_tree_node *n)
{
    return item_of(n)->key;
}

static void augment(struct vmm_tree_node *n)
{
    struct item *item = item_of(n);

    item->max_weight = item->weight;
    item->count = 1;
    for (int side = 0; side < 2; side++) {
        if (!n->child[side])
            continue;
        if (item_of(n->child[side])->max_weight > item->max_weight)
            item->max_weight = item_of(n->child[side])->max_weight;
        item->count += item_of(n->child[side])->count;
    }
}

static uint64_t check_augment(struct vmm_tree_node *n, uint64_t *max)
{
    uint64_t left_max = 0, right_max = 0, count;

    *max = 0;
    if (!n)
        return 0;
    count = check_augment(n->left, &left_max) + check_augment(n->right, &right_max) + 1;
    *max = item_of(n)->weight;
    *max = left_max > *max ? left_max : *max;
    *max = right_max > *max ? right_max : *max;
    assert_int_equal(item_of(n)->count, count);
    assert_int_equal(item_of(n)->max_weight, *max);
    return count;
}

/* Compares t with the items marked `in` of an array sorted by key. */
static void check_against(const struct vmm_tree *t, const struct item *items, size_t n)
{
    const struct vmm_tree_node *node = vmm_tree_first(t);
    const struct vmm_tree_node *last = NULL;
    uint64_t max;

    assert_int_equal(vmm_tree_validate(t, compare), 0);
    for (size_t i = 0; i < n; i++) {
        if (!items[i].in)
            continue;
        assert_ptr_equal(node, &items[i].node);
        assert_ptr_equal(vmm_tree_prev(node), last);
        last = node;
        node = vmm_tree_next(node);
    }
    assert_null(node);
    assert_ptr_equal(vmm_tree_last(t), last);
    if (t->augment)
        check_augment(t->root, &max);
}

static void test_empty_tree(void **state)
{
    struct vmm_tree t = {0};

    assert_null(vmm_tree_first(&t));
    assert_null(vmm_tree_last(&t));
    assert_null(vmm_tree_floor(&t, UINT64_MAX, key_of));
    assert_int_equal(vmm_tree_validate(&t, compare), 0);
}

/* Every order of inserting n items, and for each every single removal. */
static void try_orders(struct item *items, size_t n, size_t *order, size_t depth, uint64_t *runs)
{
    if (depth == n) {
        for (size_t gone = 0; gone < n; gone++) {
            struct vmm_tree t = {.augment = augment};

            for (size_t i = 0; i < n; i++) {
                vmm_tree_insert(&t, &items[order[i]].node, compare);
                assert_int_equal(vmm_tree_validate(&t, compare), 0);
            }
            for (size_t i = 0; i < n; i++)
                items[i].in = true;
            for (size_t i = 0; i < n; i++) {
                size_t next = (gone + i) % n;

                vmm_tree_remove(&t, &items[next].node);
                items[next].in = false;
                check_against(&t, items, n);
            }
            (*runs)++;
        }
        return;
    }
    for (size_t i = depth; i < n; i++) {
        size_t tmp = order[depth];

        order[depth] = order[i];
        order[i] = tmp;
        try_orders(items, n, order, depth + 1, runs);
        order[i] = order[depth];
        order[depth] = tmp;
    }
}

static void test_every_insertion_order_of_small_trees(void **state)
{
    struct item items[6] = {0};
    size_t order[6];
    uint64_t runs = 0;

    for (size_t n = 1; n <= 6; n++) {
        for (size_t i = 0; i < n; i++) {
            items[i].key = i * 10;
            items[i].weight = (i * 7) % 5;
            order[i] = i;
        }
        try_orders(items, n, order, 0, &runs);
    }
    assert_int_equal(runs, 1 + 4 + 18 + 96 + 600 + 4320);
}

static void test_random_against_sorted_array(void **state)
{
    enum {
        N = 200,
        STEPS = 6000
    };
    struct random r = random_start("tree");
    static struct item items[N];
    struct vmm_tree t = {.augment = augment};

    memset(items, 0, sizeof(items));
    for (size_t i = 0; i < N; i++)
        items[i].key = i * 16 + random_below(&r, 16);
    for (size_t step = 0; step < STEPS; step++) {
        struct item *item = &items[random_below(&r, N)];
        uint64_t key = random_below(&r, N * 16 + 8);
        const struct vmm_tree_node *floor = NULL;

        if (!item->in) {
            item->weight = random_below(&r, 1000);
            vmm_tree_insert(&t, &item->node, compare);
            item->in = true;
        } else if (random_below(&r, 3) == 0) {
            item->weight = random_below(&r, 1000);
            vmm_tree_update(&t, &item->node);
        } else {
            vmm_tree_remove(&t, &item->node);
            item->in = false;
        }
        check_against(&t, items, N);
        for (size_t i = 0; i < N && items[i].key <= key; i++)
            if (items[i].in)
                floor = &items[i].node;
        assert_ptr_equal(vmm_tree_floor(&t, key, key_of), floor);
    }
}

static void test_equal_keys_keep_their_order(void **state)
{
    struct item items[64] = {0};
    struct vmm_tree t = {0};

    for (size_t i = 0; i < 64; i++) {
        items[i].key = 5;
        items[i].in = true;
        vmm_tree_insert(&t, &items[i].node, compare);
    }
    check_against(&t, items, 64);
    assert_ptr_equal(vmm_tree_floor(&t, 5, key_of), &items[63].node);
    assert_null(vmm_tree_floor(&t, 4, key_of));
}

static void test_height_is_logarithmic(void **state)
{
    enum {
        N = 1 << 14
    };
    static struct item items[N];
    struct vmm_tree t = {0};
    size_t deepest = 0;

    memset(items, 0, sizeof(items));
    for (size_t i = 0; i < N; i++) {
        items[i].key = i;
        vmm_tree_insert(&t, &items[i].node, compare);
    }
    for (size_t i = 0; i < N; i++) {
        const struct vmm_tree_node *n = &items[i].node;
        size_t depth = 0;

        for (; n; n = (const struct vmm_tree_node *)(n->parent & ~(uintptr_t)1))
            depth++;
        deepest = depth > deepest ? depth : deepest;
    }
    assert_true(deepest <= 2 * 15);
}

static void test_validate_sees_damage(void **state)
{
    struct item items[15] = {0};
    struct vmm_tree t = {0};
    struct vmm_tree_node *n;
    uintptr_t parent;

    for (size_t i = 0; i < 15; i++) {
        items[i].key = i;
        vmm_tree_insert(&t, &items[i].node, compare);
    }
    assert_int_equal(vmm_tree_validate(&t, compare), 0);

    items[3].key = 12;
    assert_int_equal(vmm_tree_validate(&t, compare), -EUCLEAN);
    items[3].key = 3;

    for (size_t i = 0; i < 15; i++) {
        items[i].node.parent ^= 1;
        assert_int_equal(vmm_tree_validate(&t, compare), -EUCLEAN);
        items[i].node.parent ^= 1;
    }

    n = t.root->left;
    parent = n->parent;
    n->parent = (uintptr_t)n->left | (parent & 1);
    assert_int_equal(vmm_tree_validate(&t, compare), -EUCLEAN);
    n->parent = parent;

    n = vmm_tree_first(&t);
    n->left = t.root; /* a circle */
    assert_int_equal(vmm_tree_validate(&t, compare), -EUCLEAN);
    n->left = NULL;
    assert_int_equal(vmm_tree_validate(&t, compare), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_tree),
        cmocka_unit_test(test_every_insertion_order_of_small_trees),
        cmocka_unit_test(test_random_against_sorted_array),
        cmocka_unit_test(test_equal_keys_keep_their_order),
        cmocka_unit_test(test_height_is_logarithmic),
        cmocka_unit_test(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
