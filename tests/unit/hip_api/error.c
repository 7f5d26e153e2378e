/* SPDX-License-Identifier: MIT */
/* Codes, names and the thread's error state, and what becomes of a failure below. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "hip_api/error.h"
#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

/* The codes of the interface, each with its name; aliases are given by their present name. */
static const struct {
    int code;
    const char *name;
} known[] = {
    {0, "hipSuccess"},
    {1, "hipErrorInvalidValue"},
    {2, "hipErrorOutOfMemory"},
    {3, "hipErrorNotInitialized"},
    {100, "hipErrorNoDevice"},
    {101, "hipErrorInvalidDevice"},
    {201, "hipErrorInvalidContext"},
    {304, "hipErrorOperatingSystem"},
    {400, "hipErrorInvalidHandle"},
    {401, "hipErrorIllegalState"},
    {500, "hipErrorNotFound"},
    {600, "hipErrorNotReady"},
    {704, "hipErrorPeerAccessAlreadyEnabled"},
    {801, "hipErrorNotSupported"},
    {900, "hipErrorStreamCaptureUnsupported"},
    {916, "hipErrorStreamDetached"},
    {999, "hipErrorUnknown"},
    {1054, "hipErrorInvalidClusterSize"},
    {1055, "hipErrorTbd"},
};

static void test_known_codes_have_their_name_and_a_text(void **state)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        hipError_t code = (hipError_t)known[i].code;
        const char *name, *text;

        assert_string_equal(hipGetErrorName(code), known[i].name);
        assert_true(strlen(hipGetErrorString(code)) > 3);
        assert_int_equal(hipDrvGetErrorName(code, &name), hipSuccess);
        assert_string_equal(name, known[i].name);
        assert_int_equal(hipDrvGetErrorString(code, &text), hipSuccess);
        assert_ptr_equal(text, hipGetErrorString(code));
    }
}

static void test_unknown_codes_print_as_unknown(void **state)
{
    static const int codes[] = {-1, 10, 11, 800, 1000, 1056, 1 << 20};
    const char *name = "x", *text = "x";

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        hipError_t code = (hipError_t)codes[i];

        assert_string_equal(hipGetErrorName(code), "hipErrorUnknown");
        assert_string_equal(hipGetErrorString(code), "unknown error");
        assert_int_equal(hipDrvGetErrorName(code, &name), hipErrorInvalidValue);
        assert_null(name);
        assert_int_equal(hipDrvGetErrorString(code, &text), hipErrorInvalidValue);
        assert_null(text);
    }
    assert_int_equal(hipDrvGetErrorName(hipSuccess, NULL), hipErrorInvalidValue);
    assert_int_equal(hipDrvGetErrorString(hipSuccess, NULL), hipErrorInvalidValue);
}

static void test_errno_becomes_the_code_that_clients_act_on(void **state)
{
    static const struct {
        int err;
        hipError_t code;
    } cases[] = {
        {0, hipSuccess},
        {-EINVAL, hipErrorInvalidValue},
        {-ENODEV, hipErrorInvalidDevice},
        {-ENOMEM, hipErrorOutOfMemory},
        {-EOPNOTSUPP, hipErrorNotSupported},
        {-EMFILE, hipErrorOperatingSystem},
        {-ENFILE, hipErrorOperatingSystem},
        {-EIO, hipErrorOperatingSystem},
        {-EBUSY, hipErrorOperatingSystem},
        {-EAGAIN, hipErrorOperatingSystem},
        {-ENOSPC, hipErrorOperatingSystem},
        {-ENOTRECOVERABLE, hipErrorOperatingSystem},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(hip_from_errno(cases[i].err), cases[i].code);
        mock.result = cases[i].err;
        assert_int_equal(hipMemUnmap((void *)0x1000, 0x1000), cases[i].code);
    }
}

static void test_only_failures_change_the_last_error(void **state)
{
    int version;

    assert_int_equal(hipPeekAtLastError(), hipSuccess);
    assert_int_equal(hipRuntimeGetVersion(NULL), hipErrorInvalidValue);
    assert_int_equal(hipRuntimeGetVersion(&version), hipSuccess);
    assert_int_equal(hipExtGetLastError(), hipSuccess);
    assert_int_equal(hipPeekAtLastError(), hipErrorInvalidValue);
    assert_int_equal(hipSetDevice(7), hipErrorInvalidDevice);
    assert_int_equal(hipExtGetLastError(), hipErrorInvalidDevice);
    assert_int_equal(hipExtGetLastError(), hipSuccess);
    assert_int_equal(hipPeekAtLastError(), hipErrorInvalidDevice);
    assert_int_equal(hipGetLastError(), hipErrorInvalidDevice);
    assert_int_equal(hipGetLastError(), hipSuccess);
    assert_int_equal(hipPeekAtLastError(), hipSuccess);
}

static void *see_no_error(void *arg)
{
    *(hipError_t *)arg = hipPeekAtLastError();
    return (void *)(hipxGetLastErrorText()[0] == '\0' ? 1l : 0l);
}

static void test_the_error_state_is_the_threads_own(void **state)
{
    hipError_t other = hipErrorUnknown;
    pthread_t thread;
    void *no_text;

    assert_int_equal(hipSetDevice(-1), hipErrorInvalidDevice);
    assert_int_equal(pthread_create(&thread, NULL, see_no_error, &other), 0);
    pthread_join(thread, &no_text);
    assert_int_equal(other, hipSuccess);
    assert_non_null(no_text);
    assert_int_equal(hipPeekAtLastError(), hipErrorInvalidDevice);
}

static void test_the_text_names_the_call_and_keeps_what_the_layer_below_said(void **state)
{
    mock.result = -EINVAL;
    assert_int_equal(hipMemUnmap((void *)0x1000, 0x1000), hipErrorInvalidValue);
    assert_string_equal(hipxGetLastErrorText(), "hipMemUnmap: " MOCK_TEXT);
    assert_int_equal(hipMemUnmap(NULL, 0x1000), hipErrorInvalidValue);
    assert_string_equal(hipxGetLastErrorText(), "hipMemUnmap: ptr is NULL");
    mock.result = 0;
    assert_int_equal(hipMemUnmap((void *)0x1000, 0x1000), hipSuccess);
    assert_string_equal(hipxGetLastErrorText(), "hipMemUnmap: ptr is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_known_codes_have_their_name_and_a_text, start),
        cmocka_unit_test_setup(test_unknown_codes_print_as_unknown, start),
        cmocka_unit_test_setup(test_errno_becomes_the_code_that_clients_act_on, start),
        cmocka_unit_test_setup(test_only_failures_change_the_last_error, start),
        cmocka_unit_test_setup(test_the_error_state_is_the_threads_own, start),
        cmocka_unit_test_setup(test_the_text_names_the_call_and_keeps_what_the_layer_below_said,
                               start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
