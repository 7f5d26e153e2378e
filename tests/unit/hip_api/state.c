/* SPDX-License-Identifier: MIT */
/* The start: when it happens, what its failures mean, threads, forks and environment. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    unsetenv("KFDIRECT_ENGINE");
    unsetenv("KFDIRECT_MIN_GRANULARITY");
    hipxReset();
    mock_reset();
    return 0;
}

static void test_nothing_is_opened_before_a_device_is_needed(void **state)
{
    int version = 0;

    assert_int_equal(hipRuntimeGetVersion(&version), hipSuccess);
    assert_int_equal(version, HIP_VERSION);
    assert_int_equal(hipDriverGetVersion(&version), hipSuccess);
    hipGetErrorString(hipSuccess);
    hipGetLastError();
    assert_int_equal(hipInit(1), hipErrorInvalidValue);
    assert_int_equal(mock.opens, 0);
    assert_int_equal(hipInit(0), hipSuccess);
    assert_int_equal(hipDeviceSynchronize(), hipSuccess);
    assert_int_equal(mock.opens, 1);
    assert_int_equal(mock.vmm_opens, 1);
}

static void test_without_a_gpu_every_call_says_no_device_and_why(void **state)
{
    static const int errors[] = {-ENOENT, -EACCES, -EPERM, -EINVAL, -EPROTO, -ENXIO};
    int count, version;

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        mock.open_error = errors[i];
        count = 99;
        assert_int_equal(hipGetDeviceCount(&count), hipErrorNoDevice);
        assert_int_equal(count, 0);
        assert_string_equal(hipxGetLastErrorText(), "hipGetDeviceCount: " MOCK_TEXT);
        assert_int_equal(hipInit(0), hipErrorNoDevice);
        assert_int_equal(hipSetDevice(0), hipErrorNoDevice);
        assert_int_equal(hipMemUnmap(NULL, 0), hipErrorNoDevice);
        assert_int_equal(hipMalloc(NULL, 0), hipErrorNoDevice);
        assert_int_equal(hipRuntimeGetVersion(&version), hipSuccess);
    }
    assert_int_equal(hipGetDeviceCount(NULL), hipErrorInvalidValue);
}

static void test_a_machine_whose_gpus_are_all_left_out_says_why(void **state)
{
    mock.devices = 0;
    mock.skipped = "node 1: no render node";
    assert_int_equal(hipInit(0), hipErrorNoDevice);
    assert_string_equal(hipxGetLastErrorText(), "hipInit: no usable GPU; node 1: no render node");
    assert_int_equal(mock.closes, 1);
}

static void test_a_bad_device_of_a_reduced_list_says_what_was_left_out(void **state)
{
    mock.skipped = "node 3: no render node";
    assert_int_equal(hipSetDevice(2), hipErrorInvalidDevice);
    assert_string_equal(hipxGetLastErrorText(),
                        "hipSetDevice: device 2: there are 2; left out: node 3: no render node");
}

static void test_running_out_of_descriptors_or_memory_is_not_no_device(void **state)
{
    mock.open_error = -EMFILE;
    assert_int_equal(hipInit(0), hipErrorOperatingSystem);
    mock.open_error = -ENFILE;
    assert_int_equal(hipInit(0), hipErrorOperatingSystem);
    mock.open_error = -ENOMEM;
    assert_int_equal(hipInit(0), hipErrorOutOfMemory);
    mock.open_error = 0;
    assert_int_equal(hipInit(0), hipSuccess);
}

static void test_a_failed_start_is_undone_and_tried_again(void **state)
{
    mock.open_error = -EACCES;
    assert_int_equal(hipInit(0), hipErrorNoDevice);
    mock.open_error = 0;
    mock.vmm_open_error = -EMFILE;
    assert_int_equal(hipInit(0), hipErrorOperatingSystem);
    assert_int_equal(mock.closes, 1);
    mock.vmm_open_error = 0;
    assert_int_equal(hipInit(0), hipSuccess);
    assert_int_equal(mock.opens, 3);
}

static void test_without_an_engine_vmm_calls_are_not_supported_and_others_work(void **state)
{
    int count, can;

    mock.engine = VMM_ENGINE_NONE;
    assert_int_equal(hipGetDeviceCount(&count), hipSuccess);
    assert_int_equal(hipMemCreate(NULL, 0, NULL, 0), hipErrorNotSupported);
    assert_int_equal(hipMemUnmap(NULL, 0), hipErrorNotSupported);
    assert_non_null(strstr(hipxGetLastErrorText(), MOCK_TEXT));
    assert_int_equal(
        hipDeviceGetAttribute(&can, hipDeviceAttributeVirtualMemoryManagementSupported, 0),
        hipSuccess);
    assert_int_equal(can, 0);
}

static void test_the_engine_is_taken_from_the_environment(void **state)
{
    static const struct {
        const char *name;
        enum vmm_engine engine;
    } cases[] = {{"drm", VMM_ENGINE_DRM},
                 {"kfd", VMM_ENGINE_KFD},
                 {"gem", VMM_ENGINE_GEM},
                 {"", VMM_ENGINE_AUTO}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hipxReset();
        setenv("KFDIRECT_ENGINE", cases[i].name, 1);
        assert_int_equal(hipInit(0), hipSuccess);
        assert_int_equal(mock.options.engine, cases[i].engine);
    }
    hipxReset();
    setenv("KFDIRECT_ENGINE", "none", 1);
    assert_int_equal(hipInit(0), hipErrorNotInitialized);
    assert_non_null(strstr(hipxGetLastErrorText(), "KFDIRECT_ENGINE is \"none\""));
}

static void test_the_minimum_granularity_is_taken_from_the_environment(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"4096", 4096},        {"2M", 2 << 20}, {"64K", 64 << 10},
                {"0x200000", 2 << 20}, {"1G", 1 << 30}, {"", 0}};
    static const char *const bad[] = {
        "0",           "4095", "3M", "-4096", "2MB", "xx", "1024", "M", "99999999999999999999",
        "16777216000G"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        hipxReset();
        setenv("KFDIRECT_MIN_GRANULARITY", good[i].text, 1);
        assert_int_equal(hipInit(0), hipSuccess);
        assert_int_equal(mock.options.min_granularity, good[i].bytes);
    }
    hipxReset();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("KFDIRECT_MIN_GRANULARITY", bad[i], 1);
        assert_int_equal(hipInit(0), hipErrorNotInitialized);
        assert_non_null(strstr(hipxGetLastErrorText(), "KFDIRECT_MIN_GRANULARITY"));
    }
}

static void *call(void *arg)
{
    pthread_barrier_wait(arg);
    return (void *)(intptr_t)hipInit(0);
}

static void test_threads_that_start_at_once_start_one_state(void **state)
{
    pthread_barrier_t barrier;
    pthread_t threads[8];

    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call, &barrier), 0);
    for (int i = 0; i < 8; i++) {
        void *code;

        pthread_join(threads[i], &code);
        assert_ptr_equal(code, NULL);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(mock.opens, 1);
}

/* Runs in a child, whose exit status is the number of the check that failed. */
static int in_child(int (*body)(void))
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int child_of_started(void)
{
    int device = 9;

    if (hipPeekAtLastError() != hipSuccess)
        return 1;
    if (hipGetDevice(&device) != hipSuccess || device != 0)
        return 2;
    /* Its own kfd, the parent's descriptors closed, and the parent's vmm left alone. */
    return mock.opens == 2 && mock.closes == 1 && mock.vmm_closes == 0 ? 0 : 3;
}

static void test_a_child_of_a_started_parent_starts_afresh(void **state)
{
    int device;

    assert_int_equal(hipSetDevice(1), hipSuccess);
    assert_int_equal(hipSetDevice(5), hipErrorInvalidDevice);
    assert_int_equal(in_child(child_of_started), 0);
    assert_int_equal(hipGetDevice(&device), hipSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(mock.opens, 1);
}

static int child_that_resets(void)
{
    /* The parent's descriptors go now: their system may be gone at the next start. */
    if (hipxReset() != hipSuccess || mock.closes != 1 || mock.vmm_closes != 0)
        return 1;
    if (hipInit(0) != hipSuccess || mock.opens != 2 || mock.closes != 1)
        return 2;
    return hipxReset() == hipSuccess && mock.closes == 2 && mock.vmm_closes == 1 ? 0 : 3;
}

static void test_a_reset_in_a_child_ends_what_it_inherited(void **state)
{
    assert_int_equal(hipInit(0), hipSuccess);
    assert_int_equal(in_child(child_that_resets), 0);
    assert_int_equal(mock.closes, 0);
}

static void test_a_reset_before_any_start_opens_nothing(void **state)
{
    assert_int_equal(hipxReset(), hipSuccess);
    assert_int_equal(mock.opens, 0);
    assert_int_equal(mock.closes, 0);
}

static int child_of_child(void)
{
    if (hipInit(0) != hipSuccess || mock.opens != 2)
        return 1;
    return in_child(child_of_started) == 3 && mock.opens == 2 ? 0 : 2;
}

static void test_a_grandchild_starts_afresh_too(void **state)
{
    assert_int_equal(hipInit(0), hipSuccess);
    assert_int_equal(in_child(child_of_child), 0);
}

static int child_of_fresh(void)
{
    return hipInit(0) == hipSuccess && mock.opens == 1 && mock.closes == 0 ? 0 : 1;
}

static void test_a_child_made_before_the_start_is_an_ordinary_process(void **state)
{
    assert_int_equal(in_child(child_of_fresh), 0);
    assert_int_equal(mock.opens, 0);
    assert_int_equal(hipInit(0), hipSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_opened_before_a_device_is_needed, start),
        cmocka_unit_test_setup(test_without_a_gpu_every_call_says_no_device_and_why, start),
        cmocka_unit_test_setup(test_a_machine_whose_gpus_are_all_left_out_says_why, start),
        cmocka_unit_test_setup(test_a_bad_device_of_a_reduced_list_says_what_was_left_out, start),
        cmocka_unit_test_setup(test_running_out_of_descriptors_or_memory_is_not_no_device, start),
        cmocka_unit_test_setup(test_a_failed_start_is_undone_and_tried_again, start),
        cmocka_unit_test_setup(test_without_an_engine_vmm_calls_are_not_supported_and_others_work,
                               start),
        cmocka_unit_test_setup(test_the_engine_is_taken_from_the_environment, start),
        cmocka_unit_test_setup(test_the_minimum_granularity_is_taken_from_the_environment, start),
        cmocka_unit_test_setup(test_threads_that_start_at_once_start_one_state, start),
        cmocka_unit_test_setup(test_a_child_of_a_started_parent_starts_afresh, start),
        cmocka_unit_test_setup(test_a_reset_in_a_child_ends_what_it_inherited, start),
        cmocka_unit_test_setup(test_a_reset_before_any_start_opens_nothing, start),
        cmocka_unit_test_setup(test_a_grandchild_starts_afresh_too, start),
        cmocka_unit_test_setup(test_a_child_made_before_the_start_is_an_ordinary_process, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
