/* SPDX-License-Identifier: MIT */
/* Free and total memory. */
#include "fixture.h"

static int start(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "mi300x:2", "6.12");
    *state = &fixture;
    return 0;
}

static int stop(void **state)
{
    fixture_close(*state);
    return 0;
}

static size_t available(int device)
{
    size_t bytes = 0;

    HIP_OK(hipSetDevice(device));
    HIP_OK(hipMemGetInfo(&bytes, NULL));
    return bytes;
}

/* bugs.md D07. */
static void test_create_takes_from_its_device_and_release_gives_back(void **state)
{
    size_t before[2] = {available(0), available(1)};
    hipMemGenericAllocationHandle_t handle = make_handle(1, 256 * MIB, false);

    assert_int_equal(available(0), before[0]);
    assert_int_equal(available(1), before[1] - 256 * MIB);
    HIP_OK(hipMemRelease(handle));
    assert_int_equal(available(1), before[1]);
}

static void test_outputs_may_be_null_and_the_total_is_the_devices(void **state)
{
    size_t total = 0, bytes = 0;

    HIP_OK(hipMemGetInfo(NULL, NULL));
    HIP_OK(hipMemGetInfo(NULL, &total));
    HIP_OK(hipDeviceTotalMem(&bytes, 1));
    assert_int_equal(total, bytes);
    assert_int_equal(total, (size_t)196592 * MIB);
    HIP_FAILS(hipDeviceTotalMem(&bytes, 2), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipDeviceTotalMem(NULL, 2), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipDeviceTotalMem(NULL, 0), hipErrorInvalidValue, "NULL");
}

/* bugs.md D15, D16. */
static void test_an_apu_never_has_more_free_than_in_total(void **state)
{
    struct fixture f;
    size_t bytes, total, later;

    fixture_open(&f, "apu", "6.12");
    HIP_OK(hipMemGetInfo(&bytes, &total));
    assert_true(bytes <= total && bytes > GIB);
    {
        hipMemGenericAllocationHandle_t handle = make_handle(0, 64 * MIB, false);

        HIP_OK(hipMemGetInfo(&later, &total));
        assert_int_equal(later, bytes - 64 * MIB);
        HIP_OK(hipMemRelease(handle));
    }
    fixture_close(&f);
}

/* The total is what there was at the start. */
static void test_an_apu_whose_memory_others_free_has_no_more_than_in_total(void **state)
{
    struct hip_state *hip;
    size_t bytes, total;
    struct fixture f;
    uint64_t others;
    struct kfd *kfd;

    fixture_open(&f, "apu", "6.12");
    assert_int_equal(kfd_open(NULL, &kfd), 0);
    assert_int_equal(
        kfd_mem_alloc(kfd_device_at(kfd, 0), 0, 256 * MIB, KFD_MEM_VRAM, &others, NULL), 0);
    HIP_OK(hipxReset());
    HIP_OK(hip_start(&hip));
    f.vmm = hip->vmm;
    HIP_OK(hipMemGetInfo(&bytes, &total));
    assert_int_equal(bytes, total);
    assert_int_equal(kfd_mem_free(kfd, others), 0);
    HIP_OK(hipMemGetInfo(&bytes, &total));
    assert_int_equal(bytes, total);
    kfd_close(kfd);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create_takes_from_its_device_and_release_gives_back,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_outputs_may_be_null_and_the_total_is_the_devices,
                                        start, stop),
        cmocka_unit_test(test_an_apu_whose_memory_others_free_has_no_more_than_in_total),
        cmocka_unit_test(test_an_apu_never_has_more_free_than_in_total),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
