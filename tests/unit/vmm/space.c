/* SPDX-License-Identifier: MIT */
#include "space_rig.h"

#include "random.h"

static void test_bad_arguments(void **state)
{
    static struct vmm_space_node n;

    assert_int_equal(vmm_space_reserve(&space, 0, 0, 0, &n), -EINVAL);
    assert_int_equal(vmm_space_reserve(&space, 100, 0, 0, &n), -EINVAL);
    assert_int_equal(vmm_space_reserve(&space, PAGE, 3 * PAGE, 0, &n), -EINVAL);
    assert_int_equal(vmm_space_reserve(&space, PAGE, UINT64_MAX, 0, &n), -EINVAL);
    assert_int_equal(pages.maps, 0);
}

static void test_lowest_place_is_taken_and_taken_again(void **state)
{
    static struct vmm_space_node a, b, c, d;
    uint64_t first;

    first = reserve(&a, 2 * MIB, 0, 0);
    assert_int_equal(reserve(&b, 2 * MIB, 0, 0), first + 2 * MIB);
    assert_int_equal(reserve(&c, 2 * MIB, 0, 0), first + 4 * MIB);
    release(&b);
    assert_int_equal(reserve(&d, 2 * MIB, 0, 0), first + 2 * MIB);
    release(&a);
    release(&d);
    assert_int_equal(reserve(&b, 4 * MIB, 0, 0), first);
    assert_int_equal(vmm_space_arenas(&space), 1);
    release(&b);
    release(&c);
    assert_int_equal(vmm_space_arenas(&space), 1);
}

static void test_alignments(void **state)
{
    static struct vmm_space_node n[34];

    for (int shift = 0; shift <= 33; shift++)
        reserve(&n[shift], PAGE, (uint64_t)1 << shift, 0);
    for (int shift = 0; shift <= 33; shift++)
        release(&n[shift]);
    reserve(&n[0], 2 * MIB - PAGE, 0, 0);
    reserve(&n[1], 2 * MIB, 0, 0);
    reserve(&n[2], 2 * MIB + PAGE, PAGE, 0);
}

static void test_impossible_sizes_and_alignments_are_enomem(void **state)
{
    static struct vmm_space_node n;

    assert_int_equal(vmm_space_reserve(&space, (uint64_t)1 << 60, 0, 0, &n), -ENOMEM);
    assert_int_equal(vmm_space_reserve(&space, 0 - (uint64_t)PAGE, 0, 0, &n), -ENOMEM);
    assert_int_equal(vmm_space_reserve(&space, PAGE, (uint64_t)1 << 63, 0, &n), -ENOMEM);
    assert_int_equal(vmm_space_reserve(&space, PAGE, TOP, 0, &n), -ENOMEM);
    assert_int_equal(vmm_space_reserve(&space, TOP - 16 * MIB, 0, 0, &n), -ENOMEM);
    assert_int_equal(vmm_space_arenas(&space), 0);
    assert_int_equal(vmm_space_validate(&space), 0);
}

/* The largest thing anybody asks for. Sanitizers may not leave room for it. */
static void test_64_tib(void **state)
{
    void *p = mmap(NULL, 66 * TIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static struct vmm_space_node n;

    if (p == MAP_FAILED)
        skip();
    munmap(p, 66 * TIB);
    reserve(&n, 64 * TIB, 0, 0);
    assert_int_equal(vmm_space_arenas(&space), 1);
    release(&n);
    reserve(&n, 64 * TIB, 0, 0);
}

static void test_find_names_the_reservation(void **state)
{
    static struct vmm_space_node a, b;
    uint64_t base = reserve(&a, 2 * MIB, 0, 0);

    reserve(&b, 2 * MIB, 0, base + 8 * MIB);
    assert_ptr_equal(vmm_space_find(&space, base), &a);
    assert_ptr_equal(vmm_space_find(&space, base + 2 * MIB - 1), &a);
    assert_null(vmm_space_find(&space, base + 2 * MIB));
    assert_ptr_equal(vmm_space_find(&space, base + 9 * MIB), &b);
    assert_null(vmm_space_find(&space, base - 1));
    assert_null(vmm_space_find(&space, UINT64_MAX));
    assert_ptr_equal(vmm_space_first(&space), &a);
    assert_ptr_equal(vmm_space_next(&a), &b);
    assert_null(vmm_space_next(&b));
}

static void test_find_sees_small_and_odd_reservations(void **state)
{
    static struct vmm_space_node small[40], odd;
    uint64_t base;

    for (size_t i = 0; i < 40; i++)
        reserve(&small[i], (1 + i % 3) * PAGE, 0, 0);
    base = reserve(&odd, 6 * MIB + PAGE, 0, 0);
    for (size_t i = 0; i < 40; i++)
        assert_ptr_equal(vmm_space_find(&space, small[i].base + small[i].size - 1), &small[i]);
    assert_ptr_equal(vmm_space_find(&space, base + 6 * MIB - 1), &odd);
    assert_ptr_equal(vmm_space_find(&space, base + 6 * MIB), &odd);
    assert_null(vmm_space_find(&space, base + 6 * MIB + PAGE));
    release(&small[7]);
    assert_null(vmm_space_find(&space, small[7].base));
}

static void test_an_arena_serves_many_reservations(void **state)
{
    static struct vmm_space_node n[1000];

    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(vmm_space_reserve(&space, 2 * MIB, 0, 0, &n[i]), 0);
    assert_int_equal(vmm_space_arenas(&space), 1);
    assert_int_equal(pages.maps, 1);
}

static void test_free_hint_is_taken_exactly(void **state)
{
    static struct vmm_space_node a, b, c;
    uint64_t base = reserve(&a, 2 * MIB, 0, 0);

    assert_int_equal(reserve(&b, 4 * MIB, 0, base + 64 * MIB), base + 64 * MIB);
    assert_int_equal(reserve(&c, PAGE, 0, base + 32 * MIB + PAGE), base + 32 * MIB + PAGE);
    assert_int_equal(vmm_space_arenas(&space), 1);
}

static void test_busy_hint_falls_back(void **state)
{
    static struct vmm_space_node a, b, c;
    uint64_t base = reserve(&a, 4 * MIB, 0, 0);

    assert_int_not_equal(reserve(&b, 2 * MIB, 0, base + 2 * MIB), base + 2 * MIB);
    assert_int_not_equal(reserve(&c, 2 * MIB, 0, (uint64_t)(uintptr_t)&space & ~(2 * MIB - 1)), 0);
    assert_int_equal(vmm_space_arenas(&space), 1);
}

static void test_useless_hint_falls_back(void **state)
{
    static struct vmm_space_node n[6];
    uint64_t base = reserve(&n[0], 2 * MIB, 0, 0);

    reserve(&n[1], 2 * MIB, 0, (uint64_t)1 << 60);      /* no address */
    reserve(&n[2], 2 * MIB, 0, base + 64 * MIB + PAGE); /* not at a multiple of 2 MiB */
    reserve(&n[3], PAGE, 0, base + 64 * MIB + 1);       /* not at a page */
    reserve(&n[4], PAGE, 0, PAGE);                      /* below the aperture */
    reserve(&n[5], 2 * MIB, 16 * MIB, base + 66 * MIB); /* not as aligned as asked for */
    assert_int_equal(vmm_space_arenas(&space), 1);
}

static void test_hint_outside_makes_an_arena_that_goes_with_it(void **state)
{
    uint64_t hint = quiet_range(64 * MIB);
    static struct vmm_space_node a, b, c;
    uint64_t base = reserve(&a, 2 * MIB, 0, 0);

    if (hint >= base && hint < base + TIB)
        hint = quiet_range(64 * MIB);
    assert_int_equal(reserve(&b, 4 * MIB, 0, hint), hint);
    assert_int_equal(vmm_space_arenas(&space), 2);
    assert_false(is_unmapped(hint, PAGE));
    assert_false(is_unmapped(hint + 4 * MIB - PAGE, PAGE));
    assert_true(is_unmapped(hint + 4 * MIB, PAGE));
    assert_int_not_equal(reserve(&c, 2 * MIB, 0, hint), hint);
    release(&b);
    assert_int_equal(vmm_space_arenas(&space), 1);
    assert_true(is_unmapped(hint, 4 * MIB));
    assert_int_equal(reserve(&b, 2 * MIB, 0, hint), hint);
}

static void test_freeing_never_fails_even_if_munmap_does(void **state)
{
    uint64_t hint = quiet_range(64 * MIB);
    static struct vmm_space_node a, b;

    reserve(&a, 4 * MIB, 0, hint);
    pages.fail_unmap = true;
    vmm_memory_fail_after(0);
    release(&a);
    vmm_memory_fail_after(UINT64_MAX);
    assert_int_equal(vmm_space_arenas(&space), 1);
    assert_int_equal(reserve(&b, 2 * MIB, 0, 0), hint);
}

static void test_ranges_that_stay_for_a_failed_munmap_are_one_arena(void **state)
{
    uint64_t hint = quiet_range(64 * MIB);
    static struct vmm_space_node a, b;

    reserve(&a, 4 * MIB, 0, hint);
    reserve(&b, 4 * MIB, 0, hint + 4 * MIB);
    assert_int_equal(vmm_space_arenas(&space), 2);
    pages.fail_unmap = true;
    release(&b);
    release(&a);
    assert_int_equal(vmm_space_arenas(&space), 1);
    assert_int_equal(reserve(&b, 8 * MIB, 0, 0), hint);
}

static void test_hint_over_the_end_of_an_arena(void **state)
{
    uint64_t base = restrict_space(256 * MIB, 16 * MIB);
    static struct vmm_space_node a, b, c, d;

    assert_int_equal(reserve(&a, 2 * MIB, 0, 0), base);
    assert_int_equal(reserve(&b, 16 * MIB, 0, base + 8 * MIB), base + 8 * MIB);
    assert_int_equal(vmm_space_arenas(&space), 1);
    assert_int_equal(reserve(&c, 2 * MIB, 0, base + 64 * MIB), base + 64 * MIB);
    assert_int_equal(vmm_space_arenas(&space), 2);
    assert_int_not_equal(reserve(&d, 64 * MIB, 0, base + 32 * MIB), base + 32 * MIB);
    release(&d);
    /* From the first arena up to the start of the second, which is a hint's and stays apart. */
    release(&b);
    assert_int_equal(reserve(&d, 48 * MIB, 0, base + 16 * MIB), base + 16 * MIB);
    assert_int_equal(vmm_space_arenas(&space), 3);
    release(&c);
    assert_true(is_unmapped(base + 64 * MIB, 2 * MIB));
}

static void test_arenas_that_touch_are_one(void **state)
{
    uint64_t base = restrict_space(256 * MIB, 16 * MIB);
    static struct vmm_space_node n[16];

    for (size_t i = 0; i < 16; i++)
        assert_int_equal(reserve(&n[i], 16 * MIB, 0, 0), base + i * 16 * MIB);
    assert_int_equal(vmm_space_arenas(&space), 1);
    for (size_t i = 0; i < 16; i++)
        release(&n[i]);
    assert_int_equal(reserve(&n[0], 256 * MIB, 0, 0), base);
    assert_int_equal(vmm_space_reserve(&space, PAGE, 0, 0, &n[1]), -ENOMEM);
    release(&n[0]);
}

/* Free: the end of the first arena and the unmapped rest of the aperture, each too small alone. */
static void test_range_that_fits_only_across_an_arenas_end_is_found(void **state)
{
    uint64_t base = restrict_space(32 * MIB, 16 * MIB);
    static struct vmm_space_node a, b;

    reserve(&a, 2 * MIB, 0, 0);
    assert_int_equal(reserve(&b, 30 * MIB, 0, 0), base + 2 * MIB);
}

static void test_100000_reservations_are_few_vmas(void **state)
{
    enum {
        N = 100000
    };
    struct vmm_space_node *n = calloc(N, sizeof(*n));
    struct random r = random_start("100000");
    size_t before = count_lines("/proc/self/maps");

    assert_non_null(n);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(
            vmm_space_reserve(&space, (1 + random_below(&r, 64)) * PAGE << 4, 0, 0, &n[i]), 0);
    assert_int_equal(vmm_space_validate(&space), 0);
    assert_true(count_lines("/proc/self/maps") <= before + 8);
    for (size_t i = 0; i < N; i++) {
        size_t k = random_below(&r, N);

        vmm_space_free(&space, &n[k]);
        assert_int_equal(vmm_space_reserve(&space, n[k].size, 0, 0, &n[k]), 0);
    }
    assert_int_equal(vmm_space_validate(&space), 0);
    for (size_t i = 0; i < N; i++)
        vmm_space_free(&space, &n[i]);
    assert_int_equal(vmm_space_validate(&space), 0);
    assert_true(count_lines("/proc/self/maps") <= before + 8);
    free(n);
}

static void test_every_failure_of_heap_or_mmap_changes_nothing(void **state)
{
    uint64_t base = restrict_space(64 * MIB, 16 * MIB);
    static struct vmm_space_node n[3];
    uint64_t heap_failures = 0, map_failures = 0;

    /* The first makes an arena and splits its hole, the second takes a hint in it, the third a hint
     * outside of it. */
    const uint64_t hints[] = {base + 2 * MIB, base + 8 * MIB, base + 48 * MIB};

    for (size_t i = 0; i < 3; i++) {
        for (uint64_t k = 0;; k++) {
            int err;

            vmm_memory_fail_after(k);
            err = vmm_space_reserve(&space, 2 * MIB, 0, hints[i], &n[i]);
            vmm_memory_fail_after(UINT64_MAX);
            assert_int_equal(vmm_space_validate(&space), 0);
            if (!err)
                break;
            assert_int_equal(err, -ENOMEM);
            assert_null(vmm_space_first(&space));
            heap_failures++;
        }
        release(&n[i]);
        vmm_space_fini(&space);
        assert_true(is_unmapped(base, 64 * MIB));
        for (uint64_t k = 0;; k++) {
            int err;

            pages.fail_map_after = k;
            pages.map_error = -ENOMEM;
            err = vmm_space_reserve(&space, 2 * MIB, 0, hints[i], &n[i]);
            pages.fail_map_after = UINT64_MAX;
            assert_int_equal(vmm_space_validate(&space), 0);
            if (!err)
                break;
            assert_int_equal(err, -ENOMEM);
            assert_int_equal(vmm_space_arenas(&space), 0);
            assert_true(is_unmapped(base, 64 * MIB));
            map_failures++;
        }
        release(&n[i]);
        vmm_space_fini(&space);
    }
    assert_true(heap_failures >= 3 && map_failures >= 2);
}

static void test_validate_sees_damage(void **state)
{
    static struct vmm_space_node a, b;
    struct vmm_hole *spare;

    reserve(&a, 2 * MIB, 0, 0);
    reserve(&b, 2 * MIB, 0, 0);
    a.size += PAGE;
    assert_int_equal(vmm_space_validate(&space), -EUCLEAN);
    a.size -= PAGE;
    spare = a.spare;
    a.spare = NULL;
    assert_int_equal(vmm_space_validate(&space), -EUCLEAN);
    a.spare = spare;
    space.arenas.count++;
    assert_int_equal(vmm_space_validate(&space), -EUCLEAN);
    space.arenas.count--;
    space.arenas.high = a.base;
    assert_int_equal(vmm_space_validate(&space), -EUCLEAN);
    space.arenas.high = TOP;
    assert_int_equal(vmm_space_validate(&space), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_arguments),
        TEST(test_lowest_place_is_taken_and_taken_again),
        TEST(test_alignments),
        TEST(test_impossible_sizes_and_alignments_are_enomem),
        TEST(test_64_tib),
        TEST(test_find_names_the_reservation),
        TEST(test_find_sees_small_and_odd_reservations),
        TEST(test_an_arena_serves_many_reservations),
        TEST(test_free_hint_is_taken_exactly),
        TEST(test_busy_hint_falls_back),
        TEST(test_useless_hint_falls_back),
        TEST(test_hint_outside_makes_an_arena_that_goes_with_it),
        TEST(test_freeing_never_fails_even_if_munmap_does),
        TEST(test_ranges_that_stay_for_a_failed_munmap_are_one_arena),
        TEST(test_hint_over_the_end_of_an_arena),
        TEST(test_arenas_that_touch_are_one),
        TEST(test_range_that_fits_only_across_an_arenas_end_is_found),
        TEST(test_100000_reservations_are_few_vmas),
        TEST(test_every_failure_of_heap_or_mmap_changes_nothing),
        TEST(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
