/* SPDX-License-Identifier: MIT */
/* The start on machines that lack something, other kernels and engines, and many threads. */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

#include <pthread.h>

/* Makes a fake the default system without starting HIP on it. */
static struct fake *use_machine(const char *machine, const char *kernel)
{
    struct fake_options options = {.size = sizeof(options), .machine = machine, .kernel = kernel};
    struct fake *fake = NULL;

    hipxReset();
    if (fake_create(&options, &fake) != 0)
        fail_msg("%s", fake_error_text());
    kfd_sys_set_default(fake_sys(fake));
    return fake;
}

static void drop_machine(struct fake *fake)
{
    hipxReset();
    kfd_sys_set_default(NULL);
    fake_destroy(fake);
}

static struct fake *use_machine_text(const char *text)
{
    char path[] = "./hip_machine_XXXXXX";
    int fd = mkstemp(path);
    struct fake *fake;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    fake = use_machine(path, "6.12");
    unlink(path);
    return fake;
}

static void expect_no_device(const char *word)
{
    int count = 9, version = 0;
    void *ptr = &count;

    HIP_FAILS(hipGetDeviceCount(&count), hipErrorNoDevice, word);
    assert_int_equal(count, 0);
    HIP_FAILS(hipInit(0), hipErrorNoDevice, word);
    HIP_FAILS(hipMalloc(&ptr, 4096), hipErrorNoDevice, word);
    HIP_FAILS(hipMemAddressReserve(&ptr, 4096, 0, NULL, 0), hipErrorNoDevice, word);
    assert_ptr_equal(ptr, &count);
    HIP_OK(hipRuntimeGetVersion(&version));
}

/* A machine per test, as a user's test program has it: set up, used, ended, and nothing of the one
 * is seen in the next. */
static void test_machines_in_turn_are_separate_after_a_reset(void **state)
{
    static const struct {
        const char *machine;
        int devices;
    } cases[] = {{"mi300x:2", 2}, {"mi210:4", 4}, {"navi31", 1}, {"mi300x:2", 2}};

    hipxReset();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_options options = {.size = sizeof(options), .machine = cases[i].machine};
        int last = cases[i].devices - 1, count, device = -1;
        hipMemGenericAllocationHandle_t handle;
        struct fake_usage usage;
        hipStream_t stream;
        struct fake *fake;
        hipCtx_t context;
        void *ptr;

        assert_int_equal(fake_create(&options, &fake), 0);
        kfd_sys_set_default(fake_sys(fake));
        HIP_OK(hipGetDeviceCount(&count));
        assert_int_equal(count, cases[i].devices);
        HIP_OK(hipGetDevice(&device));
        assert_int_equal(device, 0);
        HIP_OK(hipSetDevice(last));
        HIP_OK(hipCtxCreate(&context, 0, last));
        HIP_OK(hipStreamCreate(&stream));
        HIP_OK(hipMalloc(&ptr, 1 << 20));
        map_new(last, 2 * MIB, &handle);
        HIP_FAILS(hipSetDevice(9), hipErrorInvalidDevice, "9");
        assert_int_equal(fake_get_usage(fake, &usage), 0);
        assert_true(usage.kfd_handles > 0);

        HIP_OK(hipxReset());
        assert_int_equal(hipPeekAtLastError(), hipSuccess);
        assert_int_equal(fake_get_usage(fake, &usage), 0);
        assert_int_equal(usage.kfd_handles, 0);
        assert_int_equal(usage.gem_handles, 0);
        assert_int_equal(usage.mappings, 0);
        kfd_sys_set_default(NULL);
        fake_destroy(fake);
    }
}

static void test_hip_keeps_the_system_it_started_on_until_a_reset(void **state)
{
    struct fake *first = use_machine("mi300x:2", NULL), *second;
    struct fake_options options = {.size = sizeof(options), .machine = "mi210:4"};
    hipStream_t stream;
    int count;

    HIP_OK(hipStreamCreate(&stream));
    assert_int_equal(fake_create(&options, &second), 0);
    kfd_sys_set_default(fake_sys(second));
    HIP_OK(hipGetDeviceCount(&count));
    assert_int_equal(count, 2);
    HIP_OK(hipStreamQuery(stream));
    HIP_OK(hipxReset());
    fake_destroy(first);
    HIP_OK(hipGetDeviceCount(&count));
    assert_int_equal(count, 4);
    HIP_FAILS(hipStreamQuery(stream), hipErrorInvalidHandle, "stream");
    drop_machine(second);
}

struct other_thread {
    pthread_barrier_t barrier;
    int before, after;
    hipError_t code;
};

static void *choose_and_wait(void *arg)
{
    struct other_thread *other = arg;

    hipSetDevice(3);
    hipGetDevice(&other->before);
    pthread_barrier_wait(&other->barrier);
    pthread_barrier_wait(&other->barrier);
    other->code = hipGetDevice(&other->after);
    return NULL;
}

/* Device 3 of the first machine does not exist on the second. */
static void test_a_reset_brings_every_thread_back_to_device_0(void **state)
{
    struct fake *first = use_machine("mi210:4", NULL), *second;
    struct other_thread other = {.before = -1, .after = -1};
    pthread_t thread;

    pthread_barrier_init(&other.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, choose_and_wait, &other), 0);
    pthread_barrier_wait(&other.barrier);
    drop_machine(first);
    second = use_machine("navi31", NULL);
    pthread_barrier_wait(&other.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&other.barrier);
    assert_int_equal(other.before, 3);
    assert_int_equal(other.code, hipSuccess);
    assert_int_equal(other.after, 0);
    drop_machine(second);
}

/* bugs.md F06. */
static void test_a_machine_without_kfd_has_no_device(void **state)
{
    struct fake *fake = use_machine_text("[machine]\nname = m\nkfd_node = missing\n"
                                         "[cpu]\ncores = 4\nram = 8 GiB\n");

    expect_no_device("/dev/kfd");
    drop_machine(fake);
}

/* bugs.md F02, F07, F09: never "out of resources". */
static void test_a_forbidden_kfd_is_no_device_and_names_the_file(void **state)
{
    struct fake *fake = use_machine_text("[machine]\nname = m\nkfd_node = denied\n"
                                         "[cpu]\ncores = 4\nram = 8 GiB\n[gpu]\nlike = navi31\n");

    expect_no_device("/dev/kfd: EACCES, mode 0660, group 2147483646, which this process is not in");
    drop_machine(fake);
}

static void test_a_machine_with_cpus_only_has_no_device(void **state)
{
    struct fake *fake = use_machine("none", "6.12");

    expect_no_device("no usable GPU");
    drop_machine(fake);
}

static void test_a_forbidden_render_node_leaves_no_device_and_says_which(void **state)
{
    struct fake *fake = use_machine_text("[machine]\nname = m\n[cpu]\ncores = 4\nram = 8 GiB\n"
                                         "[gpu]\nlike = navi31\nrender_node = denied\n");

    expect_no_device("renderD128: EACCES, mode 0660, group 2147483646");
    drop_machine(fake);
}

/* bugs.md F10, F11. */
static void test_sixty_four_devices_are_all_there(void **state)
{
    struct fake *fake = use_machine("cpx64", "6.12");
    int count = 0;

    HIP_OK(hipGetDeviceCount(&count));
    assert_int_equal(count, 64);
    HIP_OK(hipSetDevice(63));
    HIP_FAILS(hipSetDevice(64), hipErrorInvalidDevice, "there are 64");
    drop_machine(fake);
}

/* Whole handles, read-write, work on every kernel; the rest is refused before anything changes. */
static void cycle(struct fixture *f, bool whole_only)
{
    hipMemAccessDesc read_only = device_access(0, hipMemAccessFlagsProtRead);
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 4 * MIB, &handle), *part = reserve(2 * MIB);

    gpu_write(f, 0, ptr + 4096, 31);
    assert_int_equal(gpu_read(f, 0, ptr + 4096), 31);
    if (whole_only) {
        HIP_FAILS(hipMemMap(part, 2 * MIB, 2 * MIB, handle, 0), hipErrorNotSupported, "engine");
        HIP_FAILS(hipMemSetAccess(ptr, 4 * MIB, &read_only, 1), hipErrorNotSupported, "engine");
        assert_int_equal(gpu_read(f, 0, ptr + 4096), 31);
    } else {
        HIP_OK(hipMemMap(part, 2 * MIB, 2 * MIB, handle, 0));
        HIP_OK(hipMemUnmap(part, 2 * MIB));
    }
    HIP_OK(hipMemAddressFree(part, 2 * MIB));
    unmap_all(ptr, 4 * MIB, handle);
}

static void test_each_engine_does_what_it_can_and_refuses_the_rest(void **state)
{
    static const struct {
        const char *machine, *kernel, *engine;
        bool whole_only;
    } cases[] = {{"mi210", "6.12", "drm", false},
                 {"mi210", "6.12", "kfd", true},
                 {"mi210", "6.12", "gem", true},
                 {"mi210", "6.1", NULL, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;

        if (cases[i].engine)
            setenv("KFDIRECT_ENGINE", cases[i].engine, 1);
        fixture_open(&f, cases[i].machine, cases[i].kernel);
        unsetenv("KFDIRECT_ENGINE");
        cycle(&f, cases[i].whole_only);
        fixture_close(&f);
    }
}

static void test_an_engine_that_the_kernel_lacks_is_not_supported(void **state)
{
    struct fake *fake = use_machine("mi210", "6.1");
    int count;

    setenv("KFDIRECT_ENGINE", "drm", 1);
    HIP_FAILS(hipInit(0), hipErrorNotSupported, "drm");
    unsetenv("KFDIRECT_ENGINE");
    HIP_OK(hipGetDeviceCount(&count));
    drop_machine(fake);
}

static void test_a_raised_granularity_is_reported_and_smaller_sizes_still_work(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle;
    struct fixture f;
    size_t minimum = 0;

    setenv("KFDIRECT_MIN_GRANULARITY", "2M", 1);
    fixture_open(&f, "mi210", "6.12");
    unsetenv("KFDIRECT_MIN_GRANULARITY");
    HIP_OK(hipMemGetAllocationGranularity(&minimum, &prop, hipMemAllocationGranularityMinimum));
    assert_int_equal(minimum, 2 * MIB);
    HIP_OK(hipMemCreate(&handle, 4096, &prop, 0));
    HIP_OK(hipMemRelease(handle));
    fixture_close(&f);
}

/* Each thread on its own range: a full cycle with copies both ways, and an error of its own. */
static void *full_cycles(void *arg)
{
    uint64_t mark = (uintptr_t)arg, seen = 0;

    for (int i = 0; i < 50; i++) {
        hipMemGenericAllocationHandle_t handle;
        char *ptr = map_new(i % 2, 2 * MIB, &handle);

        mark += 256;
        if (hipMemcpyHtoD(ptr, &mark, sizeof(mark)) != hipSuccess ||
            hipMemcpyDtoH(&seen, ptr, sizeof(seen)) != hipSuccess || seen != mark)
            return (void *)(uintptr_t) "the bytes differ";
        if (hipMemUnmap(ptr, 4096) != hipErrorInvalidValue ||
            hipGetLastError() != hipErrorInvalidValue || hipGetLastError() != hipSuccess)
            return (void *)(uintptr_t) "the error is another thread's";
        unmap_all(ptr, 2 * MIB, handle);
    }
    return NULL;
}

static void test_threads_run_full_cycles_at_once(void **state)
{
    pthread_t threads[5];
    struct fixture f;

    fixture_open(&f, "mi300x:2", "6.12");
    for (uintptr_t i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, full_cycles, (void *)i), 0);
    for (int i = 0; i < 5; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        if (failed)
            fail_msg("%s", (const char *)failed);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines_in_turn_are_separate_after_a_reset),
        cmocka_unit_test(test_hip_keeps_the_system_it_started_on_until_a_reset),
        cmocka_unit_test(test_a_reset_brings_every_thread_back_to_device_0),
        cmocka_unit_test(test_a_machine_without_kfd_has_no_device),
        cmocka_unit_test(test_a_forbidden_kfd_is_no_device_and_names_the_file),
        cmocka_unit_test(test_a_machine_with_cpus_only_has_no_device),
        cmocka_unit_test(test_a_forbidden_render_node_leaves_no_device_and_says_which),
        cmocka_unit_test(test_sixty_four_devices_are_all_there),
        cmocka_unit_test(test_each_engine_does_what_it_can_and_refuses_the_rest),
        cmocka_unit_test(test_an_engine_that_the_kernel_lacks_is_not_supported),
        cmocka_unit_test(test_a_raised_granularity_is_reported_and_smaller_sizes_still_work),
        cmocka_unit_test(test_threads_run_full_cycles_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
