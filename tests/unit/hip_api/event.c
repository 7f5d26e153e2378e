/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

static void test_events_measure_the_time_between_their_records(void **state)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    hipEvent_t first, second;
    float ms = -1;

    assert_int_equal(hipEventCreate(&first), hipSuccess);
    assert_int_equal(hipEventCreateWithFlags(&second, hipEventBlockingSync), hipSuccess);
    assert_int_equal(hipEventElapsedTime(&ms, first, second), hipErrorInvalidHandle);
    assert_int_equal(hipEventRecord(first, NULL), hipSuccess);
    nanosleep(&pause, NULL);
    assert_int_equal(hipEventRecord(second, NULL), hipSuccess);
    assert_int_equal(hipEventSynchronize(second), hipSuccess);
    assert_int_equal(hipEventQuery(second), hipSuccess);
    assert_int_equal(hipStreamWaitEvent(NULL, second, 0), hipSuccess);
    assert_int_equal(hipEventElapsedTime(&ms, first, second), hipSuccess);
    assert_true(ms >= 2.0f);
    assert_int_equal(hipEventElapsedTime(&ms, second, first), hipSuccess);
    assert_true(ms <= -2.0f);
    assert_int_equal(hipEventDestroy(first), hipSuccess);
    assert_int_equal(hipEventDestroy(second), hipSuccess);
    assert_int_equal(hipEventQuery(first), hipErrorInvalidHandle);
}

static void test_an_event_without_timing_has_no_time(void **state)
{
    hipEvent_t event;
    float ms;

    assert_int_equal(hipEventCreateWithFlags(&event, hipEventDisableTiming), hipSuccess);
    assert_int_equal(hipEventRecord(event, NULL), hipSuccess);
    assert_int_equal(hipEventElapsedTime(&ms, event, event), hipErrorInvalidHandle);
    assert_int_equal(hipEventDestroy(event), hipSuccess);
}

static void test_bad_arguments_are_refused(void **state)
{
    hipEvent_t event = NULL;

    assert_int_equal(hipEventCreate(NULL), hipErrorInvalidValue);
    assert_int_equal(hipEventCreateWithFlags(&event, 8), hipErrorInvalidValue);
    assert_int_equal(hipEventCreateWithFlags(&event, hipEventInterprocess), hipErrorNotSupported);
    assert_null(event);
    assert_int_equal(hipEventRecord(NULL, NULL), hipErrorInvalidHandle);
    assert_int_equal(hipEventElapsedTime(NULL, NULL, NULL), hipErrorInvalidValue);
    assert_int_equal(hipStreamWaitEvent(NULL, NULL, 0), hipErrorInvalidHandle);
    assert_int_equal(hipEventDestroy((hipEvent_t)&event), hipErrorInvalidHandle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_events_measure_the_time_between_their_records, start),
        cmocka_unit_test_setup(test_an_event_without_timing_has_no_time, start),
        cmocka_unit_test_setup(test_bad_arguments_are_refused, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
