/* SPDX-License-Identifier: MIT */
/*
 * How to test an allocator without a GPU. Each test has a fake machine of its own with two GPUs; an
 * injector between the library and the fake makes chosen requests fail. What a GPU would see is
 * asked of the fake, not of the library under test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <kfdirect/fake.h>

#include "arena.h"

static struct fake *fake;
static struct kfd_sys *injector;

static int start(void **state)
{
    struct fake_options options = {.size = sizeof(options), .machine = "mi300x:2"};

    (void)state;
    if (fake_create(&options, &fake) || kfd_sys_inject_new(fake_sys(fake), &injector))
        return -1;
    kfd_sys_set_default(injector);
    return hipInit(0) == hipSuccess ? 0 : -1;
}

/* HIP lets go of the machine first. It frees what a failed test left, so the next one is clean. */
static int stop(void **state)
{
    (void)state;
    if (hipxReset() != hipSuccess)
        return -1;
    kfd_sys_set_default(NULL);
    kfd_sys_destroy(injector);
    fake_destroy(fake);
    return 0;
}

static uint64_t objects(void)
{
    struct fake_usage usage;

    assert_int_equal(fake_get_usage(fake, &usage), 0);
    return usage.objects;
}

static void test_growth_keeps_address_and_bytes(void **state)
{
    uint64_t before = objects();
    struct arena arena;
    void *base;
    char text[6] = "";

    (void)state;
    assert_int_equal(arena_init(&arena, 0, (size_t)1 << 30), hipSuccess);
    assert_int_equal(arena_grow(&arena, 1), hipSuccess);
    base = arena.base;
    assert_int_equal(fake_gpu_write(fake, 0, (uintptr_t)base, "hello", 6, NULL), 0);

    assert_int_equal(arena_grow(&arena, 5 * arena.step), hipSuccess);
    assert_ptr_equal(arena.base, base);
    assert_int_equal(fake_gpu_read(fake, 0, (uintptr_t)base, text, 6, NULL), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(fake_gpu_write(fake, 0, (uintptr_t)base + arena.size - 6, "world", 6, NULL),
                     0);

    assert_int_equal(arena_fini(&arena), hipSuccess);
    assert_int_equal(objects(), before);
}

static void test_other_gpu_faults(void **state)
{
    struct fake_translation fault;
    struct arena arena;
    char byte;

    (void)state;
    assert_int_equal(arena_init(&arena, 0, (size_t)1 << 30), hipSuccess);
    assert_int_equal(arena_grow(&arena, 1), hipSuccess);
    assert_int_equal(fake_gpu_read(fake, 1, (uintptr_t)arena.base, &byte, 1, &fault), -EFAULT);
    assert_int_equal(fault.reason, FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(arena_fini(&arena), hipSuccess);
}

/* Lets the n-th request of the growth fail, for every n, until one growth meets no failure. */
static void test_failed_growth_changes_nothing(void **state)
{
    struct arena arena;
    uint64_t before;
    bool fired = true;
    uint64_t n;

    (void)state;
    assert_int_equal(arena_init(&arena, 0, (size_t)1 << 30), hipSuccess);
    assert_int_equal(arena_grow(&arena, arena.step), hipSuccess);
    assert_int_equal(fake_gpu_write(fake, 0, (uintptr_t)arena.base, "hello", 6, NULL), 0);
    before = objects();

    for (n = 0; fired; n++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_REQUEST, .skip = n, .error = ENOMEM};
        char text[6] = "";
        hipError_t err;

        kfd_sys_inject_set(injector, &fault);
        err = arena_grow(&arena, 3 * arena.step);
        (void)kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        if (!fired) {
            assert_int_equal(err, hipSuccess);
            break;
        }
        assert_int_not_equal(err, hipSuccess);
        assert_int_equal(arena.size, arena.step);
        assert_int_equal(objects(), before);
        assert_int_equal(fake_gpu_read(fake, 0, (uintptr_t)arena.base, text, 6, NULL), 0);
        assert_string_equal(text, "hello");
    }
    assert_true(n >= 4);
    assert_int_equal(arena.size, 3 * arena.step);
    assert_int_equal(arena_fini(&arena), hipSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_growth_keeps_address_and_bytes, start, stop),
        cmocka_unit_test_setup_teardown(test_other_gpu_faults, start, stop),
        cmocka_unit_test_setup_teardown(test_failed_growth_changes_nothing, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
