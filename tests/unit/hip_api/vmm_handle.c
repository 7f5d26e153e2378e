/* SPDX-License-Identifier: MIT */
/* Physical allocations on a fake machine: counts, staleness, properties, granularity. */
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

static uint64_t vram_used(struct fixture *f, int gpu)
{
    struct fake_usage usage;

    assert_int_equal(fake_get_usage(f->fake, &usage), 0);
    return usage.vram_used[gpu];
}

/* bugs.md G08. */
static void test_memory_is_taken_from_the_location_whatever_the_current_device(void **state)
{
    uint64_t before[2] = {vram_used(*state, 0), vram_used(*state, 1)};
    hipMemGenericAllocationHandle_t handle;

    HIP_OK(hipSetDevice(0));
    handle = make_handle(1, 64 * MIB, false);
    assert_int_equal(vram_used(*state, 0), before[0]);
    assert_int_equal(vram_used(*state, 1), before[1] + 64 * MIB);
    HIP_OK(hipMemRelease(handle));
    assert_int_equal(vram_used(*state, 1), before[1]);
}

/* bugs.md D01, D03. */
static void test_memory_comes_back_at_unmap_and_release_while_the_range_stays(void **state)
{
    uint64_t before = vram_used(*state, 0);
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 8 * MIB, &handle);

    HIP_OK(hipMemRelease(handle));
    assert_int_equal(vram_used(*state, 0), before + 8 * MIB);
    HIP_OK(hipMemUnmap(ptr, 8 * MIB));
    assert_int_equal(vram_used(*state, 0), before);
    HIP_OK(hipMemAddressFree(ptr, 8 * MIB));
}

/* bugs.md A03, C24. */
static void test_user_references_and_mappings_are_counted_apart(void **state)
{
    hipMemGenericAllocationHandle_t handle, again;
    char *ptr = map_new(0, 2 * MIB, &handle), *alias = reserve(2 * MIB);

    gpu_write(*state, 0, ptr, 5);
    HIP_OK(hipMemRelease(handle));
    HIP_FAILS(hipMemRelease(handle), hipErrorInvalidValue, "hipMemRelease");
    assert_int_equal(gpu_read(*state, 0, ptr), 5);
    /* Alive by its mapping: it can be mapped again and taken back. */
    HIP_OK(hipMemMap(alias, 2 * MIB, 0, handle, 0));
    set_access(alias, 2 * MIB, 0, hipMemAccessFlagsProtReadWrite);
    assert_int_equal(gpu_read(*state, 0, alias), 5);
    HIP_OK(hipMemRetainAllocationHandle(&again, ptr + MIB + 3));
    assert_ptr_equal(again, handle);
    HIP_OK(hipMemUnmap(ptr, 2 * MIB));
    HIP_OK(hipMemUnmap(alias, 2 * MIB));
    HIP_OK(hipMemMap(ptr, 2 * MIB, 0, handle, 0));
    HIP_OK(hipMemUnmap(ptr, 2 * MIB));
    HIP_OK(hipMemRelease(handle));
    HIP_FAILS(hipMemMap(ptr, 2 * MIB, 0, handle, 0), hipErrorInvalidValue, "hipMemMap");
    HIP_OK(hipMemAddressFree(ptr, 2 * MIB));
    HIP_OK(hipMemAddressFree(alias, 2 * MIB));
}

static void test_a_handle_value_is_never_given_twice(void **state)
{
    hipMemGenericAllocationHandle_t first = make_handle(0, 4096, false), second;

    HIP_OK(hipMemRelease(first));
    for (int i = 0; i < 1000; i++) {
        second = make_handle(0, 4096, false);
        assert_ptr_not_equal(first, second);
        HIP_OK(hipMemRelease(second));
        HIP_FAILS(hipMemRelease(first), hipErrorInvalidValue, "hipMemRelease");
    }
}

static void test_more_memory_than_there_is_is_out_of_memory(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle = (hipMemGenericAllocationHandle_t)5;

    HIP_FAILS(hipMemCreate(&handle, (size_t)1 << 45, &prop, 0), hipErrorOutOfMemory, "0x");
    assert_ptr_equal(handle, (void *)5);
}

static void test_uncached_and_host_memory_are_usable(void **state)
{
    static const hipMemLocation locations[] = {{hipMemLocationTypeDevice, 1},
                                               {hipMemLocationTypeHost, 0},
                                               {hipMemLocationTypeHostNuma, 0},
                                               {hipMemLocationTypeHostNumaCurrent, 0}};

    for (size_t i = 0; i < 8; i++) {
        hipMemAllocationProp prop = device_prop(0), back;
        hipMemGenericAllocationHandle_t handle;
        char *ptr = reserve(2 * MIB);

        prop.type = i % 2 ? hipMemAllocationTypeUncached : hipMemAllocationTypePinned;
        prop.location = locations[i / 2];
        HIP_OK(hipMemCreate(&handle, 2 * MIB, &prop, 0));
        HIP_OK(hipMemGetAllocationPropertiesFromHandle(&back, handle));
        assert_int_equal(back.type, prop.type);
        assert_int_equal(back.location.type, prop.location.type);
        assert_int_equal(back.location.id, prop.location.id);
        HIP_OK(hipMemMap(ptr, 2 * MIB, 0, handle, 0));
        set_access(ptr, 2 * MIB, 0, hipMemAccessFlagsProtReadWrite);
        gpu_write(*state, 0, ptr + MIB, 99);
        assert_int_equal(gpu_read(*state, 0, ptr + MIB), 99);
        unmap_all(ptr, 2 * MIB, handle);
    }
}

/* bugs.md B02, B03, B04. */
static void test_granularity_is_a_page_and_a_huge_page_for_every_kind(void **state)
{
    static const hipMemAllocationType types[] = {hipMemAllocationTypePinned,
                                                 hipMemAllocationTypeUncached};

    for (int i = 0; i < 4; i++) {
        hipMemAllocationProp prop = device_prop(i / 2);
        size_t minimum = 0, recommended = 0;

        prop.type = types[i % 2];
        HIP_OK(hipMemGetAllocationGranularity(&minimum, &prop, hipMemAllocationGranularityMinimum));
        HIP_OK(hipMemGetAllocationGranularity(&recommended, &prop,
                                              hipMemAllocationGranularityRecommended));
        assert_int_equal(minimum, 4096);
        assert_int_equal(recommended, 2 * MIB);
    }
}

static void test_retain_wants_a_mapping_of_vmm_memory(void **state)
{
    hipMemGenericAllocationHandle_t handle = (hipMemGenericAllocationHandle_t)5;
    char *ptr = reserve(4096);
    void *one_step;
    int local;

    HIP_OK(hipMalloc(&one_step, 4096));
    HIP_FAILS(hipMemRetainAllocationHandle(&handle, ptr), hipErrorInvalidValue,
              "nothing is mapped");
    HIP_FAILS(hipMemRetainAllocationHandle(&handle, one_step), hipErrorInvalidValue, "one-step");
    HIP_FAILS(hipMemRetainAllocationHandle(&handle, &local), hipErrorInvalidValue,
              "in no reservation");
    assert_ptr_equal(handle, (void *)5);
    HIP_OK(hipFree(one_step));
    HIP_OK(hipMemAddressFree(ptr, 4096));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_memory_is_taken_from_the_location_whatever_the_current_device, start, stop),
        cmocka_unit_test_setup_teardown(
            test_memory_comes_back_at_unmap_and_release_while_the_range_stays, start, stop),
        cmocka_unit_test_setup_teardown(test_user_references_and_mappings_are_counted_apart, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_a_handle_value_is_never_given_twice, start, stop),
        cmocka_unit_test_setup_teardown(test_more_memory_than_there_is_is_out_of_memory, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_uncached_and_host_memory_are_usable, start, stop),
        cmocka_unit_test_setup_teardown(test_granularity_is_a_page_and_a_huge_page_for_every_kind,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_retain_wants_a_mapping_of_vmm_memory, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
