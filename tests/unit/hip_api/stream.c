/* SPDX-License-Identifier: MIT */
/* Streams and captures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

static void test_a_stream_is_idle_from_creation_to_destruction(void **state)
{
    hipStream_t stream = NULL;
    unsigned int flags = 9;
    int priority = 9, device = 9;

    assert_int_equal(hipSetDevice(1), hipSuccess);
    assert_int_equal(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_non_null(stream);
    assert_int_equal(hipStreamQuery(stream), hipSuccess);
    assert_int_equal(hipStreamSynchronize(stream), hipSuccess);
    assert_int_equal(hipStreamGetFlags(stream, &flags), hipSuccess);
    assert_int_equal(flags, hipStreamNonBlocking);
    assert_int_equal(hipStreamGetPriority(stream, &priority), hipSuccess);
    assert_int_equal(priority, 0);
    assert_int_equal(hipSetDevice(0), hipSuccess);
    assert_int_equal(hipStreamGetDevice(stream, &device), hipSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(hipStreamDestroy(stream), hipSuccess);
    assert_int_equal(hipStreamQuery(stream), hipErrorInvalidHandle);
    assert_int_equal(hipStreamDestroy(stream), hipErrorInvalidHandle);
}

static void test_streams_that_need_no_creation_always_work(void **state)
{
    const hipStream_t streams[] = {NULL, hipStreamLegacy, hipStreamPerThread};

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hipStreamQuery(streams[i]), hipSuccess);
        assert_int_equal(hipStreamSynchronize(streams[i]), hipSuccess);
        assert_int_equal(hipStreamDestroy(streams[i]), hipErrorInvalidHandle);
        assert_int_equal(hipStreamBeginCapture(streams[i], hipStreamCaptureModeGlobal),
                         hipErrorStreamCaptureUnsupported);
    }
}

static void test_bad_arguments_are_refused(void **state)
{
    hipStream_t stream;
    hipStreamCaptureMode mode = (hipStreamCaptureMode)7;

    assert_int_equal(hipStreamCreate(NULL), hipErrorInvalidValue);
    assert_int_equal(hipStreamCreateWithFlags(&stream, 2), hipErrorInvalidValue);
    assert_int_equal(hipStreamGetFlags(NULL, NULL), hipErrorInvalidValue);
    assert_int_equal(hipStreamQuery((hipStream_t)&stream), hipErrorInvalidHandle);
    assert_int_equal(hipThreadExchangeStreamCaptureMode(NULL), hipErrorInvalidValue);
    assert_int_equal(hipThreadExchangeStreamCaptureMode(&mode), hipErrorInvalidValue);
}

static void test_memory_calls_succeed_inside_a_capture_and_copies_on_it_do_not(void **state)
{
    hipStreamCaptureStatus status;
    hipStream_t stream;
    hipGraph_t graph = NULL;
    char from = 1, to = 0;

    assert_int_equal(hipStreamCreate(&stream), hipSuccess);
    assert_int_equal(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
    assert_int_equal(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal),
                     hipErrorIllegalState);
    assert_int_equal(hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusActive);
    assert_int_equal(hipMemMap((void *)0x1000, 4096, 0, (void *)77, 0), hipSuccess);
    assert_int_equal(hipMemUnmap((void *)0x1000, 4096), hipSuccess);
    assert_int_equal(hipMemcpyAsync(&to, &from, 1, hipMemcpyHostToHost, stream),
                     hipErrorStreamCaptureUnsupported);
    assert_int_equal(to, 0);
    assert_int_equal(hipStreamQuery(stream), hipErrorStreamCaptureUnsupported);
    assert_int_equal(hipStreamEndCapture(stream, &graph), hipSuccess);
    assert_non_null(graph);
    assert_int_equal(hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusNone);
    assert_int_equal(hipMemcpyAsync(&to, &from, 1, hipMemcpyHostToHost, stream), hipSuccess);
    assert_int_equal(to, 1);
    assert_int_equal(hipStreamEndCapture(stream, &graph), hipErrorIllegalState);
    assert_int_equal(hipGraphDestroy(graph), hipSuccess);
    assert_int_equal(hipGraphDestroy(graph), hipErrorInvalidHandle);
    assert_int_equal(hipStreamDestroy(stream), hipSuccess);
}

static void *end_capture(void *stream)
{
    hipGraph_t graph;

    return (void *)(intptr_t)hipStreamEndCapture(stream, &graph);
}

static void test_only_a_relaxed_capture_is_ended_by_another_thread(void **state)
{
    static const struct {
        hipStreamCaptureMode mode;
        hipError_t code;
    } cases[] = {{hipStreamCaptureModeGlobal, hipErrorStreamCaptureWrongThread},
                 {hipStreamCaptureModeThreadLocal, hipErrorStreamCaptureWrongThread},
                 {hipStreamCaptureModeRelaxed, hipSuccess}};

    for (size_t i = 0; i < 3; i++) {
        hipStream_t stream;
        pthread_t thread;
        void *code;

        assert_int_equal(hipStreamCreate(&stream), hipSuccess);
        assert_int_equal(hipStreamBeginCapture(stream, cases[i].mode), hipSuccess);
        assert_int_equal(pthread_create(&thread, NULL, end_capture, stream), 0);
        pthread_join(thread, &code);
        assert_int_equal((intptr_t)code, cases[i].code);
    }
}

static void test_the_capture_mode_is_exchanged_per_thread(void **state)
{
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;

    assert_int_equal(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(mode, hipStreamCaptureModeGlobal);
    assert_int_equal(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(mode, hipStreamCaptureModeRelaxed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_stream_is_idle_from_creation_to_destruction, start),
        cmocka_unit_test_setup(test_streams_that_need_no_creation_always_work, start),
        cmocka_unit_test_setup(test_bad_arguments_are_refused, start),
        cmocka_unit_test_setup(test_memory_calls_succeed_inside_a_capture_and_copies_on_it_do_not,
                               start),
        cmocka_unit_test_setup(test_only_a_relaxed_capture_is_ended_by_another_thread, start),
        cmocka_unit_test_setup(test_the_capture_mode_is_exchanged_per_thread, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
