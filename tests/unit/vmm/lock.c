/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/lock.h"

static struct vmm_lock reservation, allocation, space, handles;

static int setup(void **state)
{
    return vmm_lock_init(&reservation, VMM_RANK_RESERVATION) ||
           vmm_lock_init(&allocation, VMM_RANK_ALLOCATION) ||
           vmm_lock_init(&space, VMM_RANK_SPACE) || vmm_lock_init(&handles, VMM_RANK_HANDLES);
}

static int teardown(void **state)
{
    vmm_lock_destroy(&reservation);
    vmm_lock_destroy(&allocation);
    vmm_lock_destroy(&space);
    vmm_lock_destroy(&handles);
    return 0;
}

static void test_rising_ranks_are_no_violation(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);

    vmm_lock_acquire(&reservation);
    vmm_lock_acquire(&allocation);
    vmm_lock_acquire(&space);
    vmm_lock_acquire(&handles);
    vmm_lock_release(&handles);
    vmm_lock_release(&space);
    vmm_lock_acquire(&space);
    vmm_lock_release(&space);
    vmm_lock_release(&allocation);
    vmm_lock_release(&reservation);
    assert_int_equal(vmm_lock_violations(NULL), before);
}

static void test_locks_are_released_in_any_order(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);

    vmm_lock_acquire(&reservation);
    vmm_lock_acquire(&allocation);
    vmm_lock_acquire(&space);
    vmm_lock_release(&allocation);
    vmm_lock_release(&reservation);
    assert_true(vmm_lock_held(&space));
    vmm_lock_acquire(&handles);
    vmm_lock_release(&space);
    vmm_lock_release(&handles);
    vmm_lock_acquire(&reservation);
    vmm_lock_release(&reservation);
    assert_int_equal(vmm_lock_violations(NULL), before);
}

struct counter {
    struct vmm_lock *lock;
    uint64_t n;
};

static void *count_up(void *arg)
{
    struct counter *c = arg;

    for (int i = 0; i < 20000; i++) {
        vmm_lock_acquire(c->lock);
        c->n++;
        vmm_lock_release(c->lock);
    }
    return NULL;
}

static void test_lock_excludes_other_threads(void **state)
{
    struct counter c = {.lock = &space};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.n, 80000);
}

#ifdef KFDIRECT_DEBUG

/* Runs first of the tests with violations: it sees the first text of the process. */
static void test_falling_rank_is_counted_and_both_ranks_are_named(void **state)
{
    const char *text;

    assert_int_equal(vmm_lock_violations(&text), 0);
    assert_string_equal(text, "");
    vmm_lock_acquire(&space);
    vmm_lock_acquire(&reservation);
    assert_true(vmm_lock_held(&reservation));
    assert_int_equal(vmm_lock_violations(&text), 1);
    assert_string_equal(text, "acquire of reservation lock (rank 20) with space lock (rank 40)");
    vmm_lock_release(&reservation);
    vmm_lock_release(&space);

    vmm_lock_acquire(&handles);
    vmm_lock_acquire(&allocation);
    vmm_lock_release(&allocation);
    vmm_lock_release(&handles);
    assert_int_equal(vmm_lock_violations(&text), 2);
    assert_non_null(strstr(text, "reservation"));
}

static void test_equal_rank_is_counted(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);
    struct vmm_lock other;

    assert_int_equal(vmm_lock_init(&other, VMM_RANK_RESERVATION), 0);
    vmm_lock_acquire(&reservation);
    vmm_lock_acquire(&other);
    vmm_lock_release(&other);
    vmm_lock_release(&reservation);
    vmm_lock_destroy(&other);
    assert_int_equal(vmm_lock_violations(NULL), before + 1);
}

static void test_higher_lock_below_the_top_is_seen(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);

    vmm_lock_acquire(&handles);
    vmm_lock_acquire(&reservation); /* breach 1; now the top of the list is the lowest */
    vmm_lock_acquire(&space);       /* breach 2: above 20, but below 50 */
    assert_int_equal(vmm_lock_violations(NULL), before + 2);
    vmm_lock_release(&space);
    vmm_lock_release(&reservation);
    vmm_lock_release(&handles);
}

static void test_second_acquire_is_counted_and_does_not_hang(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);

    vmm_lock_acquire(&space);
    vmm_lock_acquire(&space);
    assert_int_equal(vmm_lock_violations(NULL), before + 1);
    vmm_lock_release(&space);
    assert_false(vmm_lock_held(&space));
    vmm_lock_release(&space);
    assert_int_equal(vmm_lock_violations(NULL), before + 2);
}

static void *look_and_release(void *arg)
{
    if (vmm_lock_held(arg))
        return arg;
    vmm_lock_release(arg);
    return NULL;
}

static void test_a_lock_of_another_thread_is_not_held_here(void **state)
{
    uint64_t before = vmm_lock_violations(NULL);
    pthread_t thread;
    void *result;

    vmm_lock_acquire(&space);
    assert_true(vmm_lock_held(&space));
    assert_false(vmm_lock_held(&handles));
    assert_int_equal(pthread_create(&thread, NULL, look_and_release, &space), 0);
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(vmm_lock_violations(NULL), before + 1);
    assert_true(vmm_lock_held(&space));
    assert_int_equal(pthread_mutex_trylock(&space.mutex), EBUSY);
    vmm_lock_release(&space);
}

#endif

/* Fresh locks for each test: a deadlock detector then sees no order but that test's own. */
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rising_ranks_are_no_violation),
        TEST(test_locks_are_released_in_any_order),
        TEST(test_lock_excludes_other_threads),
#ifdef KFDIRECT_DEBUG
        TEST(test_falling_rank_is_counted_and_both_ranks_are_named),
        TEST(test_equal_rank_is_counted),
        TEST(test_higher_lock_below_the_top_is_seen),
        TEST(test_second_acquire_is_counted_and_does_not_hang),
        TEST(test_a_lock_of_another_thread_is_not_held_here),
#endif
    };

    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
