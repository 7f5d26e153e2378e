/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>

#include "vmm/hole.h"
#include "vmm/memory.h"

#include "random.h"

/* Large pages keep the naive model, one byte per page, small. */
#define PAGE (64u << 10)
#define HUGE_PAGES (KFD_HUGE_PAGE_SIZE / PAGE)
#define PAGES 512u
#define BASE (0x100000000000u + 5 * PAGE) /* not at a multiple of 2 MiB */

struct taken {
    uint64_t base, size;
    struct vmm_hole *spare;
};

static struct vmm_holes holes;
static struct taken taken[PAGES];
static size_t taken_count;
static bool busy[PAGES];

static void check(void)
{
    const struct vmm_hole *hole = vmm_holes_first(&holes);

    assert_int_equal(vmm_holes_validate(&holes), 0);
    for (size_t i = 0; i < PAGES;) {
        size_t n = 0;

        if (busy[i]) {
            assert_null(vmm_holes_at(&holes, BASE + i * PAGE + PAGE - 1));
            i++;
            continue;
        }
        while (i + n < PAGES && !busy[i + n])
            n++;
        assert_non_null(hole);
        assert_int_equal(hole->base, BASE + i * PAGE);
        assert_int_equal(hole->size, n * PAGE);
        assert_ptr_equal(vmm_holes_at(&holes, BASE + i * PAGE), hole);
        hole = vmm_holes_next(hole);
        i += n;
    }
    assert_null(hole);
}

static void mark(uint64_t base, uint64_t size, bool value)
{
    memset(&busy[(base - BASE) / PAGE], value, size / PAGE);
}

/* The lowest place in the model; 0: none. */
static uint64_t model_find(uint64_t size, uint64_t align)
{
    for (uint64_t i = 0; i + size / PAGE <= PAGES; i++)
        if (!((BASE + i * PAGE) & (align - 1)) && !memchr(&busy[i], true, size / PAGE))
            return BASE + i * PAGE;
    return 0;
}

static int take_at(struct vmm_hole *hole, uint64_t at, uint64_t size)
{
    struct taken *t = &taken[taken_count];
    int err = vmm_holes_take(&holes, hole, at, size, &t->spare);

    if (err)
        return err;
    t->base = at;
    t->size = size;
    taken_count++;
    mark(at, size, true);
    return 0;
}

static void give_back(size_t i)
{
    struct taken t = taken[i];

    taken[i] = taken[--taken_count];
    vmm_holes_add(&holes, t.base, t.size, BASE, BASE + PAGES * PAGE, t.spare);
    mark(t.base, t.size, false);
}

static int setup(void **state)
{
    vmm_holes_init(&holes, PAGE);
    vmm_holes_add(&holes, BASE, PAGES * PAGE, BASE, BASE + PAGES * PAGE,
                  vmm_calloc(1, sizeof(struct vmm_hole)));
    memset(busy, 0, sizeof(busy));
    taken_count = 0;
    return 0;
}

static int teardown(void **state)
{
    vmm_memory_fail_after(UINT64_MAX);
    while (taken_count)
        give_back(0);
    check();
    vmm_holes_fini(&holes);
    return 0;
}

/* Takes the page range [first, first + n) of the model. */
static void occupy(uint64_t first, uint64_t n)
{
    uint64_t at = BASE + first * PAGE;

    assert_int_equal(take_at(vmm_holes_at(&holes, at), at, n * PAGE), 0);
}

static void test_empty(void **state)
{
    struct vmm_holes none;
    uint64_t at;

    vmm_holes_init(&none, PAGE);
    assert_null(vmm_holes_find(&none, PAGE, PAGE, UINT64_MAX, &at));
    assert_null(vmm_holes_at(&none, BASE));
    assert_null(vmm_holes_first(&none));
    assert_int_equal(vmm_holes_validate(&none), 0);
    vmm_holes_fini(&none);
}

/* The size that fits with the alignment's slack is found at once; a hole that fits only because its
 * base suits must be found too. */
static void test_aligned_hole_that_fits_exactly_is_found(void **state)
{
    const uint64_t align = 2 * KFD_HUGE_PAGE_SIZE;
    uint64_t first = ((0 - (uint64_t)BASE) & (align - 1)) / PAGE;
    uint64_t at = 0;

    for (uint64_t i = 0; i < PAGES; i++)
        if (i < first || i >= first + 2 * HUGE_PAGES)
            occupy(i, 1);
    check();
    assert_non_null(vmm_holes_find(&holes, align, align, UINT64_MAX, &at));
    assert_int_equal(at, BASE + first * PAGE);
    assert_null(vmm_holes_find(&holes, align + PAGE, align, UINT64_MAX, &at));
    assert_null(vmm_holes_find(&holes, PAGE, 2 * align, UINT64_MAX, &at));
}

static void test_search_gives_up_after_the_tries_it_is_given(void **state)
{
    const uint64_t align = 2 * KFD_HUGE_PAGE_SIZE;
    uint64_t first = ((0 - (uint64_t)BASE) & (align - 1)) / PAGE;
    uint64_t at = 0;

    /* Holes of 2 MiB, all but the last at odd multiples of 2 MiB. */
    const uint64_t free_blocks[] = {1, 3, 5, 7, 10};

    for (size_t i = 0; i < 5; i++)
        occupy(first + free_blocks[i] * HUGE_PAGES, HUGE_PAGES);
    for (uint64_t i = 0; i < PAGES; i++)
        if (!busy[i])
            occupy(i, 1);
    for (size_t i = 5; i-- > 0;)
        give_back(i);
    check();
    assert_null(vmm_holes_find(&holes, KFD_HUGE_PAGE_SIZE, align, 0, &at));
    assert_null(vmm_holes_find(&holes, KFD_HUGE_PAGE_SIZE, align, 4, &at));
    assert_non_null(vmm_holes_find(&holes, KFD_HUGE_PAGE_SIZE, align, 5, &at));
    assert_int_equal(at, BASE + (first + 10 * HUGE_PAGES) * PAGE);
}

static void test_lowest_huge_hole_is_reused_before_the_large_one_behind(void **state)
{
    uint64_t first = ((0 - (uint64_t)BASE) & (KFD_HUGE_PAGE_SIZE - 1)) / PAGE;
    uint64_t at = 0;

    occupy(0, first);
    occupy(first, HUGE_PAGES);
    occupy(first + HUGE_PAGES, 3);
    give_back(1);
    assert_non_null(
        vmm_holes_find(&holes, KFD_HUGE_PAGE_SIZE, KFD_HUGE_PAGE_SIZE, UINT64_MAX, &at));
    assert_int_equal(at, BASE + first * PAGE);
}

static void test_holes_do_not_merge_across_the_ends_of_an_arena(void **state)
{
    uint64_t low = BASE - PAGE, high = BASE + PAGES * PAGE;

    vmm_holes_add(&holes, low, PAGE, low, BASE, vmm_calloc(1, sizeof(struct vmm_hole)));
    vmm_holes_add(&holes, high, PAGE, high, high + PAGE, vmm_calloc(1, sizeof(struct vmm_hole)));
    assert_int_equal(vmm_holes_validate(&holes), 0);
    assert_int_equal(vmm_holes_at(&holes, low)->size, PAGE);
    assert_int_equal(vmm_holes_at(&holes, BASE)->size, PAGES * PAGE);
    assert_int_equal(vmm_holes_at(&holes, high)->size, PAGE);
    vmm_holes_fini(&holes);
    setup(NULL);
}

static void test_size_and_alignment_beyond_any_hole(void **state)
{
    uint64_t at;

    assert_null(vmm_holes_find(&holes, UINT64_MAX & ~(uint64_t)(PAGE - 1), PAGE, UINT64_MAX, &at));
    assert_null(vmm_holes_find(&holes, UINT64_MAX & ~(uint64_t)(PAGE - 1), (uint64_t)1 << 63,
                               UINT64_MAX, &at));
    assert_null(vmm_holes_find(&holes, PAGE, (uint64_t)1 << 63, UINT64_MAX, &at));
    assert_null(vmm_holes_find(&holes, (PAGES + 1) * PAGE, PAGE, UINT64_MAX, &at));
    assert_non_null(vmm_holes_find(&holes, PAGES * PAGE, PAGE, UINT64_MAX, &at));
}

static void test_memory_running_out_changes_nothing(void **state)
{
    const uint64_t cases[][2] = {
        {0, PAGES}, {0, 4}, {PAGES - 4, 4}, {8, 4}, /* whole, front, back, middle */
    };
    const uint64_t allocations[] = {0, 1, 1, 2};

    for (size_t i = 0; i < 4; i++) {
        uint64_t at = BASE + cases[i][0] * PAGE;

        for (uint64_t n = 0; n <= allocations[i]; n++) {
            vmm_memory_fail_after(n);
            assert_int_equal(take_at(vmm_holes_at(&holes, at), at, cases[i][1] * PAGE),
                             n < allocations[i] ? -ENOMEM : 0);
            check();
        }
        vmm_memory_fail_after(0); /* giving back needs none */
        give_back(0);
        check();
    }
}

static void test_random_against_page_map(void **state)
{
    struct random r = random_start("hole");
    uint64_t unusual_fits = 0;

    for (int step = 0; step < 20000; step++) {
        uint64_t pages =
            random_below(&r, 3) ? 1 + random_below(&r, 12) : HUGE_PAGES * (1 + random_below(&r, 3));
        uint64_t size = pages * PAGE;
        uint64_t align = (uint64_t)PAGE << random_below(&r, 9);
        bool full = (step / 2000) % 2;

        if (taken_count && random_below(&r, 10) < (full ? 6 : 4)) {
            give_back(random_below(&r, taken_count));
        } else {
            uint64_t at = 0, model = model_find(size, align);
            struct vmm_hole *hole = vmm_holes_find(&holes, size, align, UINT64_MAX, &at);

            assert_int_equal(hole != NULL, model != 0);
            if (hole) {
                assert_int_equal(at & (align - 1), 0);
                assert_true(at >= hole->base && at + size <= hole->base + hole->size);
                if (align == PAGE || align == KFD_HUGE_PAGE_SIZE)
                    assert_int_equal(at, model);
                else
                    unusual_fits++;
                assert_int_equal(take_at(hole, at, size), 0);
            }
        }
        check();
    }
    assert_true(unusual_fits > 100);
}

static void test_validate_sees_damage(void **state)
{
    struct vmm_hole *hole;

    occupy(4, 4);
    occupy(16, 4);
    hole = vmm_holes_first(&holes);
    assert_int_equal(vmm_holes_validate(&holes), 0);
    hole->size += 5 * PAGE;
    assert_int_equal(vmm_holes_validate(&holes), -EUCLEAN);
    hole->size -= 5 * PAGE;
    hole->max[1]++;
    assert_int_equal(vmm_holes_validate(&holes), -EUCLEAN);
    hole->max[1]--;
    hole->base++;
    assert_int_equal(vmm_holes_validate(&holes), -EUCLEAN);
    hole->base--;
    assert_int_equal(vmm_holes_validate(&holes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test_setup_teardown(test_aligned_hole_that_fits_exactly_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_search_gives_up_after_the_tries_it_is_given, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lowest_huge_hole_is_reused_before_the_large_one_behind,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_holes_do_not_merge_across_the_ends_of_an_arena, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_size_and_alignment_beyond_any_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_running_out_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_against_page_map, setup, teardown),
        cmocka_unit_test_setup_teardown(test_validate_sees_damage, setup, teardown),
    };

    return cmocka_run_group_tests_name("hole", tests, NULL, NULL);
}
