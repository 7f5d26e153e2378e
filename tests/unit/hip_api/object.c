/* SPDX-License-Identifier: MIT */
/* Handles of small objects: life, staleness, kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "hip_api/object.h"
#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

static uintptr_t make(enum hip_kind kind, unsigned int flags)
{
    const struct hip_object init = {.kind = kind, .flags = flags};
    uintptr_t handle = 0;

    assert_int_equal(hip_object_new(&init, &handle), hipSuccess);
    return handle;
}

static void test_an_object_is_found_by_its_handle_and_kind_only(void **state)
{
    uintptr_t stream = make(HIP_KIND_STREAM, 5), event = make(HIP_KIND_EVENT, 6);
    struct hip_object object;

    assert_int_equal(hip_object_get(HIP_KIND_STREAM, stream, &object), hipSuccess);
    assert_int_equal(object.flags, 5);
    assert_int_equal(hip_object_get(HIP_KIND_EVENT, event, &object), hipSuccess);
    assert_int_equal(object.flags, 6);
    assert_int_equal(hip_object_get(HIP_KIND_EVENT, stream, &object), hipErrorInvalidHandle);
    assert_int_equal(hip_object_get(HIP_KIND_STREAM, event, &object), hipErrorInvalidHandle);
}

static void test_a_deleted_handle_is_dead_though_its_slot_lives_again(void **state)
{
    uintptr_t first = make(HIP_KIND_EVENT, 1), second;
    struct hip_object object;

    assert_int_equal(hip_object_delete(HIP_KIND_EVENT, first), hipSuccess);
    assert_int_equal(hip_object_delete(HIP_KIND_EVENT, first), hipErrorInvalidHandle);
    second = make(HIP_KIND_EVENT, 2);
    assert_int_equal((uint32_t)first, (uint32_t)second);
    assert_int_not_equal(first, second);
    assert_int_equal(hip_object_get(HIP_KIND_EVENT, first, &object), hipErrorInvalidHandle);
    assert_int_equal(hip_object_get(HIP_KIND_EVENT, second, &object), hipSuccess);
}

static void test_made_up_handles_are_invalid(void **state)
{
    uintptr_t good = make(HIP_KIND_STREAM, 0);
    const uintptr_t bad[] = {0,
                             1,
                             2,
                             3,
                             4,
                             UINTPTR_MAX,
                             good + 16,
                             good ^ 1,
                             good | (uintptr_t)1 << 63,
                             (uintptr_t)&good};
    struct hip_object object;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(hip_object_get(HIP_KIND_STREAM, bad[i], &object), hipErrorInvalidHandle);
}

static void test_thousands_of_objects_live_at_once(void **state)
{
    static uintptr_t handles[5000];
    struct hip_object object;

    for (unsigned i = 0; i < 5000; i++)
        handles[i] = make(HIP_KIND_EVENT, i);
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(hip_object_get(HIP_KIND_EVENT, handles[i], &object), hipSuccess);
        assert_int_equal(object.flags, i);
    }
    for (unsigned i = 0; i < 5000; i += 2)
        assert_int_equal(hip_object_delete(HIP_KIND_EVENT, handles[i]), hipSuccess);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(hip_object_get(HIP_KIND_EVENT, handles[i], &object),
                         i % 2 ? hipSuccess : hipErrorInvalidHandle);
}

static void *churn(void *arg)
{
    for (unsigned i = 0; i < 2000; i++) {
        uintptr_t handle = make(HIP_KIND_EVENT, i);
        struct hip_object object;

        if (hip_object_get(HIP_KIND_EVENT, handle, &object) != hipSuccess || object.flags != i ||
            hip_object_delete(HIP_KIND_EVENT, handle) != hipSuccess)
            return arg;
    }
    return NULL;
}

static void test_threads_do_not_see_each_others_objects_change(void **state)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &threads), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_object_is_found_by_its_handle_and_kind_only, start),
        cmocka_unit_test_setup(test_a_deleted_handle_is_dead_though_its_slot_lives_again, start),
        cmocka_unit_test_setup(test_made_up_handles_are_invalid, start),
        cmocka_unit_test_setup(test_thousands_of_objects_live_at_once, start),
        cmocka_unit_test_setup(test_threads_do_not_see_each_others_objects_change, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
