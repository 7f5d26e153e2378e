/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/arena.h"

static bool is_zero(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static void test_memory_is_zero_and_apart_and_comes_back(void **state)
{
    static const size_t sizes[] = {0, 1, 16, 17, 1000, 1024, 1025, 2048, 2049, 1u << 20, 5u << 20};
    enum {
        N = sizeof(sizes) / sizeof(sizes[0])
    };
    struct fake_arena *a = fake_arena_new();
    unsigned char *p[N];
    size_t empty;

    assert_non_null(a);
    empty = fake_arena_used(a);
    assert_null(fake_arena_enter(a));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            p[i] = fake_calloc(sizes[i]);
            assert_non_null(p[i]);
            assert_int_equal((uintptr_t)p[i] % 16, 0);
            assert_true(is_zero(p[i], sizes[i]));
            memset(p[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < N; i++) {
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(p[i][k], i + 1);
            fake_free(p[i]);
        }
        assert_int_equal(fake_arena_used(a), empty);
    }
    fake_free(NULL);
    assert_ptr_equal(fake_arena_enter(NULL), a);
    fake_arena_unmap(a);
}

static void test_growing_keeps_what_is_there(void **state)
{
    struct fake_arena *a = fake_arena_new();
    char *p;

    fake_arena_enter(a);
    p = fake_realloc(NULL, 10);
    strcpy(p, "it stays");
    for (size_t size = 10; size < 1u << 20; size = size * 3 / 2) {
        p = fake_realloc(p, size);
        assert_non_null(p);
        assert_string_equal(p, "it stays");
    }
    fake_free(p);
    assert_int_equal(fake_arena_used(a), 0);
    fake_arena_enter(NULL);
    fake_arena_unmap(a);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    struct fake_arena *a = fake_arena_new();

    fake_arena_enter(a);
    assert_null(fake_calloc(SIZE_MAX));
    assert_null(fake_calloc((size_t)1 << 40));
    assert_non_null(fake_calloc(16));
    fake_arena_enter(NULL);
    fake_arena_unmap(a);
}

static void test_outside_the_heap_serves(void **state)
{
    char *p = fake_calloc(100);

    assert_true(is_zero((unsigned char *)p, 100));
    p = fake_realloc(p, 1000);
    free(p);
}

static void test_a_child_sees_and_changes_the_same(void **state)
{
    struct fake_arena *a = fake_arena_new();
    char **slot;
    int status;
    pid_t pid;

    fake_arena_enter(a);
    slot = fake_calloc(sizeof(*slot));
    pid = fork();
    if (pid == 0) {
        *slot = fake_calloc(5);
        strcpy(*slot, "made");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(*slot, "made");
    fake_free(*slot);
    fake_free(slot);
    assert_int_equal(fake_arena_used(a), 0);
    fake_arena_enter(NULL);
    fake_arena_unmap(a);
}

/* As valgrind does for leaks: whatever may be read is. */
static uint64_t readable_bytes(const char *at)
{
    char line[256];
    uint64_t sum = 0, begin, end;
    FILE *f = fopen("/proc/self/maps", "r");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        char rights[5];

        assert_int_equal(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights), 3);
        if (rights[0] == 'r' && begin <= (uintptr_t)at && (uintptr_t)at < end)
            sum += end - begin;
    }
    fclose(f);
    return sum;
}

static void test_only_what_is_in_use_can_be_read(void **state)
{
    struct fake_arena *a = fake_arena_new();
    char *p, **slot;
    int status;
    pid_t pid;

    fake_arena_enter(a);
    p = fake_calloc(100);
    assert_in_range(readable_bytes(p), 1, 2u << 20);
    slot = fake_calloc(sizeof(*slot));
    pid = fork();
    if (pid == 0) {
        *slot = fake_calloc(8u << 20);
        memset(*slot, 7, 8u << 20);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_in_range(readable_bytes(p), 1, 2u << 20);
    fake_arena_enter(NULL);
    fake_arena_enter(a);
    assert_int_equal((*slot)[(8u << 20) - 1], 7);
    assert_in_range(readable_bytes(p), 8u << 20, 10u << 20);
    fake_arena_enter(NULL);
    fake_arena_unmap(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zero_and_apart_and_comes_back),
        cmocka_unit_test(test_growing_keeps_what_is_there),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_outside_the_heap_serves),
        cmocka_unit_test(test_a_child_sees_and_changes_the_same),
        cmocka_unit_test(test_only_what_is_in_use_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
