/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>

#include "fake/tree.h"

#define N 2000u

static uint64_t seed(void)
{
    const char *text = getenv("KFDIRECT_SEED");
    uint64_t value = text != NULL ? strtoull(text, NULL, 0) : 1;

    print_message("# KFDIRECT_SEED=%llu\n", (unsigned long long)value);
    return value;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

static void check(const struct fake_tree *tree, const bool *in)
{
    uint64_t count = 0;

    for (uint32_t key = 0; key < N; key++) {
        struct fake_node *node = fake_tree_find(tree, key);
        uint32_t below = key, above = key;

        count += in[key];
        assert_true((node != NULL) == in[key]);
        while (below > 0 && !in[below])
            below--;
        node = fake_tree_floor(tree, key);
        assert_true(in[below] ? node != NULL && node->key == below : node == NULL);
        while (above < N && !in[above])
            above++;
        node = fake_tree_ceil(tree, key);
        assert_true(above < N ? node != NULL && node->key == above : node == NULL);
    }
    assert_int_equal(tree->count, count);
}

static void test_random_operations_agree_with_a_set(void **state)
{
    static struct fake_node nodes[N];
    static bool in[N];
    struct fake_tree tree = {0};
    uint64_t random = seed();

    for (uint32_t step = 0; step < 20000; step++) {
        uint32_t key = next_random(&random) % N;

        nodes[key].key = key;
        if (in[key])
            fake_tree_remove(&tree, &nodes[key]);
        else
            fake_tree_insert(&tree, &nodes[key]);
        in[key] = !in[key];
        if (step % 4000 == 0)
            check(&tree, in);
    }
    check(&tree, in);
}

static void test_next_walks_in_order(void **state)
{
    struct fake_node nodes[5];
    struct fake_tree tree = {0};
    const uint64_t keys[] = {5, 0, UINT64_MAX, 7, 6}, sorted[] = {0, 5, 6, 7, UINT64_MAX};
    struct fake_node *node;

    for (int i = 0; i < 5; i++) {
        nodes[i].key = keys[i];
        fake_tree_insert(&tree, &nodes[i]);
    }
    node = fake_tree_ceil(&tree, 0);
    for (int i = 0; i < 5; i++) {
        assert_non_null(node);
        assert_int_equal(node->key, sorted[i]);
        node = fake_tree_next(&tree, node);
    }
    assert_null(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_agree_with_a_set),
        cmocka_unit_test(test_next_walks_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
