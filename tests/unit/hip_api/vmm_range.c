/* SPDX-License-Identifier: MIT */
/* Reserve, map, unmap and free, seen by the GPUs of a fake machine. */
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

static void test_the_whole_path_gives_the_gpu_memory_and_takes_it_back(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 4 * MIB, &handle);

    gpu_write(*state, 0, ptr + 3 * MIB, 42);
    assert_int_equal(gpu_read(*state, 0, ptr + 3 * MIB), 42);
    HIP_OK(hipMemUnmap(ptr, 4 * MIB));
    assert_int_equal(gpu_fault(*state, 0, ptr, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(ptr, 4 * MIB));
}

static void test_every_power_of_two_alignment_is_honoured(void **state)
{
    for (size_t align = 1; align <= GIB; align *= 2) {
        void *ptr;

        HIP_OK(hipMemAddressReserve(&ptr, 4096, align, NULL, 0));
        assert_int_equal((uintptr_t)ptr % align, 0);
        assert_true((uintptr_t)ptr < (uintptr_t)1 << 47);
        HIP_OK(hipMemAddressFree(ptr, 4096));
    }
}

static void test_a_free_hint_is_taken_and_a_busy_or_impossible_one_is_not(void **state)
{
    char *first = reserve(2 * MIB);
    void *second, *third, *fourth;

    HIP_OK(hipMemAddressReserve(&second, 2 * MIB, 0, first, 0));
    assert_ptr_not_equal(first, second);
    HIP_OK(hipMemAddressFree(first, 2 * MIB));
    HIP_OK(hipMemAddressReserve(&third, 2 * MIB, 0, first, 0));
    assert_ptr_equal(first, third);
    HIP_OK(hipMemAddressReserve(&fourth, 2 * MIB, 0, (void *)((uintptr_t)1 << 60), 0));
    assert_non_null(fourth);
    HIP_OK(hipMemAddressFree(second, 2 * MIB));
    HIP_OK(hipMemAddressFree(third, 2 * MIB));
    HIP_OK(hipMemAddressFree(fourth, 2 * MIB));
}

static void test_an_address_space_that_is_used_up_is_out_of_memory(void **state)
{
    void *ptr = (void *)5;

    HIP_FAILS(hipMemAddressReserve(&ptr, (size_t)1 << 62, 0, NULL, 0), hipErrorOutOfMemory,
              "no room");
    assert_ptr_equal(ptr, (void *)5);
}

static void test_a_range_still_mapped_cannot_be_freed_and_can_afterwards(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);

    HIP_FAILS(hipMemAddressFree(ptr, 2 * MIB), hipErrorInvalidValue, "hipMemAddressFree");
    gpu_write(*state, 0, ptr, 7);
    unmap_all(ptr, 2 * MIB, handle);
}

static void test_map_over_a_mapping_is_invalid_and_harms_nothing(void **state)
{
    hipMemGenericAllocationHandle_t handle, other = make_handle(0, 4096, false);
    char *ptr = map_new(0, 8192, &handle);

    gpu_write(*state, 0, ptr + 4096, 9);
    HIP_FAILS(hipMemMap(ptr + 4096, 4096, 0, other, 0), hipErrorInvalidValue, "hipMemMap");
    assert_int_equal(gpu_read(*state, 0, ptr + 4096), 9);
    HIP_OK(hipMemRelease(other));
    unmap_all(ptr, 8192, handle);
}

static void test_any_part_of_a_handle_is_mapped(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *whole = map_new(0, 4 * MIB, &handle), *part = reserve(MIB);

    gpu_write(*state, 0, whole + 2 * MIB + 4096, 1234);
    HIP_OK(hipMemMap(part, MIB, 2 * MIB, handle, 0));
    set_access(part, MIB, 0, hipMemAccessFlagsProtReadWrite);
    assert_int_equal(gpu_read(*state, 0, part + 4096), 1234);
    HIP_OK(hipMemUnmap(part, MIB));
    HIP_OK(hipMemAddressFree(part, MIB));
    unmap_all(whole, 4 * MIB, handle);
}

/* bugs.md A01, A02, A19. */
static void test_one_unmap_takes_any_run_of_whole_mappings_and_nothing_else(void **state)
{
    char *ptr = reserve(64 * MIB);

    for (int i = 0; i < 4; i++) {
        hipMemGenericAllocationHandle_t handle = make_handle(0, 2 * MIB, false);

        HIP_OK(hipMemMap(ptr + (size_t)i * 2 * MIB, 2 * MIB, 0, handle, 0));
        HIP_OK(hipMemRelease(handle));
        set_access(ptr + (size_t)i * 2 * MIB, 2 * MIB, 0, hipMemAccessFlagsProtReadWrite);
        gpu_write(*state, 0, ptr + (size_t)i * 2 * MIB, (uint64_t)i);
    }
    HIP_OK(hipMemUnmap(ptr + 2 * MIB, 4 * MIB));
    assert_int_equal(gpu_read(*state, 0, ptr), 0);
    assert_int_equal(gpu_read(*state, 0, ptr + 6 * MIB), 3);
    assert_int_equal(gpu_fault(*state, 0, ptr + 2 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_fault(*state, 0, ptr + 4 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    /* The rest, with the hole in it. */
    HIP_OK(hipMemUnmap(ptr, 64 * MIB));
    HIP_OK(hipMemAddressFree(ptr, 64 * MIB));
}

static void test_sparse_arrays_are_not_supported(void **state)
{
    hipArrayMapInfo info;

    memset(&info, 0, sizeof(info));
    HIP_FAILS(hipMemMapArrayAsync(NULL, 1, NULL), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipMemMapArrayAsync(&info, 0, NULL), hipErrorInvalidValue, "count");
    HIP_FAILS(hipMemMapArrayAsync(&info, 1, NULL), hipErrorNotSupported, "sparse");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_whole_path_gives_the_gpu_memory_and_takes_it_back,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_every_power_of_two_alignment_is_honoured, start, stop),
        cmocka_unit_test_setup_teardown(
            test_a_free_hint_is_taken_and_a_busy_or_impossible_one_is_not, start, stop),
        cmocka_unit_test_setup_teardown(test_an_address_space_that_is_used_up_is_out_of_memory,
                                        start, stop),
        cmocka_unit_test_setup_teardown(
            test_a_range_still_mapped_cannot_be_freed_and_can_afterwards, start, stop),
        cmocka_unit_test_setup_teardown(test_map_over_a_mapping_is_invalid_and_harms_nothing, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_any_part_of_a_handle_is_mapped, start, stop),
        cmocka_unit_test_setup_teardown(
            test_one_unmap_takes_any_run_of_whole_mappings_and_nothing_else, start, stop),
        cmocka_unit_test_setup_teardown(test_sparse_arrays_are_not_supported, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
