/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "hip_api/thread.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

static int current(void)
{
    int device = -1;

    assert_int_equal(hipGetDevice(&device), hipSuccess);
    return device;
}

/* The order of vLLM's allocator. */
static void test_a_primary_context_is_always_there_and_selects_its_device(void **state)
{
    hipCtx_t now = NULL, primary = NULL;

    assert_int_equal(hipCtxGetCurrent(&now), hipSuccess);
    assert_non_null(now);
    assert_int_equal(hipDevicePrimaryCtxRetain(&primary, 1), hipSuccess);
    assert_ptr_not_equal(primary, now);
    assert_int_equal(hipCtxSetCurrent(primary), hipSuccess);
    assert_int_equal(current(), 1);
    assert_int_equal(hipCtxGetCurrent(&now), hipSuccess);
    assert_ptr_equal(now, primary);
    assert_int_equal(hipDevicePrimaryCtxRelease(1), hipSuccess);
}

static void test_pushed_contexts_come_back_in_order(void **state)
{
    hipCtx_t zero, one, popped;

    assert_int_equal(hipDevicePrimaryCtxRetain(&zero, 0), hipSuccess);
    assert_int_equal(hipCtxCreate(&one, 0, 1), hipSuccess);
    assert_int_equal(current(), 1);
    assert_int_equal(hipCtxPushCurrent(zero), hipSuccess);
    assert_int_equal(current(), 0);
    assert_int_equal(hipCtxPopCurrent(&popped), hipSuccess);
    assert_ptr_equal(popped, zero);
    assert_int_equal(current(), 1);
    assert_int_equal(hipCtxDestroy(one), hipSuccess);
    assert_int_equal(current(), 0);
    assert_int_equal(hipCtxPopCurrent(&popped), hipErrorInvalidContext);
}

static void test_setting_no_context_takes_back_the_last_push(void **state)
{
    hipCtx_t one;

    assert_int_equal(hipDevicePrimaryCtxRetain(&one, 1), hipSuccess);
    assert_int_equal(hipCtxPushCurrent(one), hipSuccess);
    assert_int_equal(hipCtxSetCurrent(NULL), hipSuccess);
    assert_int_equal(current(), 0);
    assert_int_equal(hipCtxSetCurrent(NULL), hipSuccess);
    assert_int_equal(current(), 0);
}

static void test_bad_arguments_are_refused(void **state)
{
    hipCtx_t context;
    int active = 0;
    unsigned flags = 1;

    assert_int_equal(hipCtxGetCurrent(NULL), hipErrorInvalidValue);
    assert_int_equal(hipCtxSetCurrent((hipCtx_t)&context), hipErrorInvalidContext);
    assert_int_equal(hipCtxPushCurrent(NULL), hipErrorInvalidContext);
    assert_int_equal(hipDevicePrimaryCtxRetain(&context, 2), hipErrorInvalidDevice);
    assert_int_equal(hipDevicePrimaryCtxRetain(&context, -1), hipErrorInvalidDevice);
    assert_int_equal(hipDevicePrimaryCtxRetain(NULL, 0), hipErrorInvalidValue);
    assert_int_equal(hipDevicePrimaryCtxRelease(2), hipErrorInvalidDevice);
    assert_int_equal(hipCtxCreate(NULL, 0, 0), hipErrorInvalidValue);
    assert_int_equal(hipCtxDestroy(NULL), hipErrorInvalidValue);
    assert_int_equal(hipDevicePrimaryCtxGetState(0, &flags, &active), hipSuccess);
    assert_int_equal(flags, 0);
    assert_int_equal(active, 1);
    for (int i = 0; i < HIP_CONTEXT_DEPTH; i++)
        assert_int_equal(hipCtxCreate(&context, 0, 1), hipSuccess);
    assert_int_equal(hipCtxCreate(&context, 0, 0), hipErrorInvalidValue);
    assert_int_equal(current(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_primary_context_is_always_there_and_selects_its_device,
                               start),
        cmocka_unit_test_setup(test_pushed_contexts_come_back_in_order, start),
        cmocka_unit_test_setup(test_setting_no_context_takes_back_the_last_push, start),
        cmocka_unit_test_setup(test_bad_arguments_are_refused, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
