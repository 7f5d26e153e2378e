/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/memory.h"
#include "vmm/radix.h"

#include "random.h"

#define GRANULE VMM_RADIX_GRANULE
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

static struct {
    struct vmm_radix radix;
    uintptr_t behind; /* stays 0 */
} guarded;

#define radix guarded.radix
static uint64_t objects[64];

static int setup(void **state)
{
    memset(&radix, 0, sizeof(radix));
    return 0;
}

static bool is_empty(void)
{
    for (size_t i = 0; i < VMM_RADIX_SLOTS; i++)
        if (radix.root[i])
            return false;
    return true;
}

static int teardown(void **state)
{
    vmm_memory_fail_after(UINT64_MAX);
    vmm_radix_clear(&radix);
    assert_true(is_empty());
    return 0;
}

static void test_empty(void **state)
{
    assert_null(vmm_radix_find(&radix, 0));
    assert_null(vmm_radix_find(&radix, TIB));
    assert_null(vmm_radix_find(&radix, UINT64_MAX));
    assert_int_equal(vmm_radix_validate(&radix), 0);
}

/* From one granule to more than a whole entry of each level, at bases that are aligned to it, just
 * below and just above. */
static void test_every_kind_of_range_is_found_from_end_to_end(void **state)
{
    const uint64_t sizes[] = {
        GRANULE,       2 * GRANULE,         GIB - GRANULE, GIB,     3 * GIB,
        GIB + GRANULE, 512 * GIB - GRANULE, 512 * GIB,     2 * TIB, TIB + GIB + GRANULE,
        64 * TIB};
    const uint64_t bases[] = {GRANULE, GIB,           GIB - GRANULE, GIB + GRANULE,
                              TIB,     TIB - GRANULE, TIB - GIB,     3 * TIB + GIB + GRANULE};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        for (size_t b = 0; b < sizeof(bases) / sizeof(*bases); b++) {
            uint64_t base = bases[b], size = sizes[s], end = base + size;

            assert_int_equal(vmm_radix_insert(&radix, base, size, &objects[1]), 0);
            assert_int_equal(vmm_radix_validate(&radix), size / GRANULE);
            assert_null(vmm_radix_find(&radix, base - 1));
            assert_null(vmm_radix_find(&radix, end));
            assert_ptr_equal(vmm_radix_find(&radix, base), &objects[1]);
            assert_ptr_equal(vmm_radix_find(&radix, end - 1), &objects[1]);
            for (uint64_t at = base; at < end; at += size / 97 + 1)
                assert_ptr_equal(vmm_radix_find(&radix, at), &objects[1]);
            vmm_radix_remove(&radix, base, size, &objects[1]);
            assert_true(is_empty());
        }
    }
}

static void test_parts_of_granules_are_left_out(void **state)
{
    assert_int_equal(vmm_radix_insert(&radix, TIB + 4096, GRANULE, &objects[1]), 0);
    assert_true(is_empty());
    assert_int_equal(vmm_radix_insert(&radix, TIB + 4096, 2 * GRANULE, &objects[1]), 0);
    assert_int_equal(vmm_radix_validate(&radix), 1);
    assert_null(vmm_radix_find(&radix, TIB + GRANULE - 1));
    assert_ptr_equal(vmm_radix_find(&radix, TIB + GRANULE), &objects[1]);
    assert_null(vmm_radix_find(&radix, TIB + 2 * GRANULE));
    vmm_radix_remove(&radix, TIB + 4096, 2 * GRANULE, &objects[1]);
    assert_true(is_empty());
}

static void test_addresses_beyond_48_bits_are_left_out(void **state)
{
    uint64_t top = (uint64_t)1 << 48;

    assert_int_equal(vmm_radix_insert(&radix, top, GIB, &objects[1]), 0);
    assert_true(is_empty());
    assert_int_equal(vmm_radix_insert(&radix, top - GRANULE, 2 * GRANULE, &objects[1]), 0);
    assert_int_equal(vmm_radix_validate(&radix), 1);
    assert_int_equal(guarded.behind, 0);
    assert_null(vmm_radix_find(&radix, top));
    vmm_radix_remove(&radix, top - GRANULE, 2 * GRANULE, &objects[1]);
    assert_true(is_empty());
}

static void test_removing_another_object_changes_nothing(void **state)
{
    assert_int_equal(vmm_radix_insert(&radix, TIB, 3 * GIB + GRANULE, &objects[1]), 0);
    vmm_radix_remove(&radix, TIB, 3 * GIB + GRANULE, &objects[2]);
    assert_int_equal(vmm_radix_validate(&radix), 3 * 512 + 1);
}

static void test_memory_running_out_changes_nothing(void **state)
{
    const uint64_t base = TIB - GRANULE, size = 512 * GIB + 2 * GRANULE;
    uint64_t failures = 0;

    assert_int_equal(vmm_radix_insert(&radix, base - GRANULE, GRANULE, &objects[2]), 0);
    for (uint64_t n = 0;; n++) {
        int err;

        vmm_memory_fail_after(n);
        err = vmm_radix_insert(&radix, base, size, &objects[1]);
        vmm_memory_fail_after(UINT64_MAX);
        if (!err)
            break;
        assert_int_equal(err, -ENOMEM);
        assert_int_equal(vmm_radix_validate(&radix), 1);
        assert_null(vmm_radix_find(&radix, base));
        failures++;
    }
    assert_int_equal(failures, 2); /* the left edge has its tables already */
    vmm_memory_fail_after(0);      /* removing needs none */
    vmm_radix_remove(&radix, base, size, &objects[1]);
    vmm_radix_remove(&radix, base - GRANULE, GRANULE, &objects[2]);
    assert_true(is_empty());
}

/* Ranges around the boundaries of all levels, against an array with a byte per granule. */
static void test_random_against_array(void **state)
{
    enum {
        CELLS = 4096,
        N = 63
    };
    const uint64_t base = TIB - CELLS / 2 * GRANULE;
    struct random r = random_start("radix");
    static uint8_t cell[CELLS];
    struct {
        uint64_t first, count;
    } ranges[N + 1] = {0};
    int64_t total = 0;

    memset(cell, 0, sizeof(cell));
    for (int step = 0; step < 20000; step++) {
        size_t number = 1 + random_below(&r, N);
        uint64_t first = ranges[number].first, count = ranges[number].count;
        uint64_t at;

        if (count) {
            vmm_radix_remove(&radix, base + first * GRANULE, count * GRANULE, &objects[number]);
            memset(&cell[first], 0, count);
            ranges[number].count = 0;
            total -= (int64_t)count;
        } else {
            first = random_below(&r, CELLS);
            count = 1 + random_below(&r, random_below(&r, 4) ? 40 : 1200);
            if (count > CELLS - first)
                count = CELLS - first;
            for (uint64_t i = 0; i < count; i++)
                if (cell[first + i])
                    count = i;
            if (!count)
                continue;
            assert_int_equal(
                vmm_radix_insert(&radix, base + first * GRANULE, count * GRANULE, &objects[number]),
                0);
            memset(&cell[first], (int)number, count);
            ranges[number].first = first;
            ranges[number].count = count;
            total += (int64_t)count;
        }
        if (step % 16 == 0)
            assert_int_equal(vmm_radix_validate(&radix), total);
        for (int i = 0; i < 16; i++) {
            at = i < 2 ? first + (i ? count - 1 : 0) : random_below(&r, CELLS);
            assert_ptr_equal(
                vmm_radix_find(&radix, base + at * GRANULE + random_below(&r, GRANULE)),
                cell[at] ? &objects[cell[at]] : NULL);
        }
    }
    for (size_t number = 1; number <= N; number++)
        if (ranges[number].count)
            vmm_radix_remove(&radix, base + ranges[number].first * GRANULE,
                             ranges[number].count * GRANULE, &objects[number]);
    assert_true(is_empty());
}

static void test_validate_sees_damage(void **state)
{
    uint32_t *used;

    assert_int_equal(vmm_radix_insert(&radix, TIB + GIB, GRANULE, &objects[1]), 0);
    used = (uint32_t *)(void *)(radix.root[2] + VMM_RADIX_SLOTS * sizeof(vmm_radix_entry));
    assert_int_equal(*used, 1);
    ++*used;
    assert_int_equal(vmm_radix_validate(&radix), -EUCLEAN);
    --*used;
    assert_int_equal(vmm_radix_validate(&radix), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_empty),
        TEST(test_every_kind_of_range_is_found_from_end_to_end),
        TEST(test_parts_of_granules_are_left_out),
        TEST(test_addresses_beyond_48_bits_are_left_out),
        TEST(test_removing_another_object_changes_nothing),
        TEST(test_memory_running_out_changes_nothing),
        TEST(test_random_against_array),
        TEST(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("radix", tests, NULL, NULL);
}
