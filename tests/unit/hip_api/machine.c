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

    hip_reset();
    if (fake_create(&options, &fake) != 0)
        fail_msg("%s", fake_error_text());
    kfd_sys_set_default(fake_sys(fake));
    return fake;
}

static void drop_machine(struct fake *fake)
{
    hip_reset();
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
