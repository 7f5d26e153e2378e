/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "fake/table.h"

static int mark;

static void test_map_keeps_what_was_put_through_growth_and_removal(void **state)
{
    struct fake_map map = {0};

    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(fake_map_put(&map, i * 4096, (char *)&mark + i), 0);
    for (uint64_t i = 0; i < 5000; i += 2)
        assert_ptr_equal(fake_map_take(&map, i * 4096), (char *)&mark + i);
    assert_int_equal(map.count, 2500);
    for (uint64_t i = 0; i < 5000; i++)
        assert_ptr_equal(fake_map_get(&map, i * 4096), i % 2 ? (char *)&mark + i : NULL);
    assert_null(fake_map_take(&map, 0));
    assert_int_equal(fake_map_put(&map, 4096, &mark), 0);
    assert_int_equal(map.count, 2500);
    assert_ptr_equal(fake_map_get(&map, 4096), &mark);
    fake_map_clear(&map);
    assert_null(fake_map_get(&map, 4096));
}

static void test_ids_give_the_lowest_free_number(void **state)
{
    struct fake_ids ids = {0};
    uint32_t id;

    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(fake_ids_add(&ids, &mark, &id), 0);
        assert_int_equal(id, i);
    }
    for (uint32_t i = 90; i >= 10; i -= 10)
        assert_ptr_equal(fake_ids_take(&ids, i), &mark);
    assert_null(fake_ids_take(&ids, 50));
    assert_null(fake_ids_get(&ids, 50));
    assert_null(fake_ids_get(&ids, 1000));
    for (uint32_t i = 10; i <= 90; i += 10) {
        assert_int_equal(fake_ids_add(&ids, &mark, &id), 0);
        assert_int_equal(id, i);
    }
    assert_int_equal(fake_ids_add(&ids, &mark, &id), 0);
    assert_int_equal(id, 100);
    assert_int_equal(ids.used, 101);
    fake_ids_clear(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_keeps_what_was_put_through_growth_and_removal),
        cmocka_unit_test(test_ids_give_the_lowest_free_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
