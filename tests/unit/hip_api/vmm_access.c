/* SPDX-License-Identifier: MIT */
/* Rights per device and host, as the fake GPUs enforce them. */
#include "fixture.h"

static int start(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "mi300x:2", "6.12");
    *state = &fixture;
    return 0;
}

static int start_small_bar(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "navi31-smallbar", "6.12");
    *state = &fixture;
    return 0;
}

static int stop(void **state)
{
    fixture_close(*state);
    return 0;
}

static unsigned long long rights(void *ptr, hipMemLocationType type, int id)
{
    const hipMemLocation location = {type, id};
    unsigned long long flags = 99;

    HIP_OK(hipMemGetAccess(&flags, &location, ptr));
    return flags;
}

static void test_each_device_has_the_rights_it_was_given(void **state)
{
    const hipMemAccessDesc desc[] = {device_access(0, hipMemAccessFlagsProtReadWrite),
                                     device_access(1, hipMemAccessFlagsProtRead)};
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);

    HIP_OK(hipMemSetAccess(ptr, 2 * MIB, desc, 2));
    assert_int_equal(rights(ptr + 5, hipMemLocationTypeDevice, 0), hipMemAccessFlagsProtReadWrite);
    assert_int_equal(rights(ptr, hipMemLocationTypeDevice, 1), hipMemAccessFlagsProtRead);
    assert_int_equal(rights(ptr, hipMemLocationTypeHost, 0), hipMemAccessFlagsProtNone);
    gpu_write(*state, 0, ptr, 3);
    assert_int_equal(gpu_read(*state, 1, ptr), 3);
    assert_int_equal(gpu_fault(*state, 1, ptr, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    set_access(ptr, 2 * MIB, 1, hipMemAccessFlagsProtReadWrite);
    gpu_write(*state, 1, ptr, 4);
    assert_int_equal(gpu_read(*state, 0, ptr), 4);
    set_access(ptr, 2 * MIB, 0, hipMemAccessFlagsProtNone);
    assert_int_equal(gpu_fault(*state, 0, ptr, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_read(*state, 1, ptr), 4);
    unmap_all(ptr, 2 * MIB, handle);
}

/* bugs.md A12. */
static void test_rights_belong_to_a_mapping_and_not_to_the_memory(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle), *alias = reserve(2 * MIB);

    HIP_OK(hipMemMap(alias, 2 * MIB, 0, handle, 0));
    assert_int_equal(rights(ptr, hipMemLocationTypeDevice, 0), hipMemAccessFlagsProtReadWrite);
    assert_int_equal(rights(alias, hipMemLocationTypeDevice, 0), hipMemAccessFlagsProtNone);
    assert_int_equal(gpu_fault(*state, 0, alias, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    HIP_OK(hipMemUnmap(alias, 2 * MIB));
    HIP_OK(hipMemAddressFree(alias, 2 * MIB));
    unmap_all(ptr, 2 * MIB, handle);
}

/* bugs.md A04, A06. */
static void test_access_is_set_on_any_run_of_whole_mappings(void **state)
{
    static const size_t sizes[] = {2379776, 7864320, 6533120};
    hipMemGenericAllocationHandle_t handles[3];
    char *ptr = reserve(32 * MIB);
    hipMemAccessDesc desc = device_access(0, hipMemAccessFlagsProtReadWrite);
    size_t at = 0;

    for (int i = 0; i < 3; i++) {
        handles[i] = make_handle(0, sizes[i], false);
        HIP_OK(hipMemMap(ptr + at, sizes[i], 0, handles[i], 0));
        set_access(ptr + at, sizes[i], 0, hipMemAccessFlagsProtReadWrite);
        gpu_write(*state, 0, ptr + at + sizes[i] - 8, (uint64_t)i);
        at += sizes[i];
    }
    set_access(ptr + sizes[0], sizes[1] + sizes[2], 1, hipMemAccessFlagsProtRead);
    assert_int_equal(gpu_read(*state, 1, ptr + at - 8), 2);
    assert_int_equal(gpu_fault(*state, 1, ptr, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    HIP_FAILS(hipMemSetAccess(ptr, at + 4096, &desc, 1), hipErrorInvalidValue, "hipMemSetAccess");
    HIP_FAILS(hipMemSetAccess(ptr, at - 4096, &desc, 1), hipErrorInvalidValue, "hipMemSetAccess");
    HIP_FAILS(hipMemSetAccess(ptr + 4096, at - 4096, &desc, 1), hipErrorInvalidValue,
              "hipMemSetAccess");
    HIP_OK(hipMemUnmap(ptr, at));
    HIP_OK(hipMemAddressFree(ptr, 32 * MIB));
    for (int i = 0; i < 3; i++)
        HIP_OK(hipMemRelease(handles[i]));
}

static void test_a_bad_descriptor_after_a_good_one_changes_nothing(void **state)
{
    hipMemAccessDesc desc[] = {device_access(1, hipMemAccessFlagsProtReadWrite),
                               device_access(2, hipMemAccessFlagsProtRead)};
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);

    HIP_FAILS(hipMemSetAccess(ptr, 2 * MIB, desc, 2), hipErrorInvalidValue, "desc[1]: device 2");
    assert_int_equal(gpu_fault(*state, 1, ptr, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rights(ptr, hipMemLocationTypeDevice, 1), hipMemAccessFlagsProtNone);
    unmap_all(ptr, 2 * MIB, handle);
}

/* bugs.md A23. */
static void test_the_host_reads_and_writes_device_memory_it_was_given(void **state)
{
    const hipMemAccessDesc desc = {{hipMemLocationTypeHost, 0}, hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);
    volatile uint64_t *word = (volatile uint64_t *)(ptr + MIB);

    HIP_OK(hipMemSetAccess(ptr, 2 * MIB, &desc, 1));
    assert_int_equal(rights(ptr, hipMemLocationTypeHost, 0), hipMemAccessFlagsProtReadWrite);
    gpu_write(*state, 0, ptr + MIB, 11);
    assert_int_equal(*word, 11);
    *word = 12;
    assert_int_equal(gpu_read(*state, 0, ptr + MIB), 12);
    unmap_all(ptr, 2 * MIB, handle);
}

static void test_host_access_to_memory_the_cpu_cannot_see_is_not_supported(void **state)
{
    const hipMemAccessDesc desc = {{hipMemLocationTypeHost, 0}, hipMemAccessFlagsProtRead};
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);

    HIP_FAILS(hipMemSetAccess(ptr, 2 * MIB, &desc, 1), hipErrorNotSupported, "CPU");
    gpu_write(*state, 0, ptr, 1);
    unmap_all(ptr, 2 * MIB, handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_device_has_the_rights_it_was_given, start, stop),
        cmocka_unit_test_setup_teardown(test_rights_belong_to_a_mapping_and_not_to_the_memory,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_access_is_set_on_any_run_of_whole_mappings, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_a_bad_descriptor_after_a_good_one_changes_nothing,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_the_host_reads_and_writes_device_memory_it_was_given,
                                        start, stop),
        cmocka_unit_test_setup_teardown(
            test_host_access_to_memory_the_cpu_cannot_see_is_not_supported, start_small_bar, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
