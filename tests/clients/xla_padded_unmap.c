/* SPDX-License-Identifier: MIT */
/*
 * XLA's memory reservation: a padded range with pieces in it, perhaps at an offset into a handle,
 * access granted by one call per device with the local device last, and a destructor that unmaps
 * the whole padded range whatever was mapped of it.
 */
#include "common.h"

static void *padded_range(uint64_t *size)
{
    uint64_t unit = granularity(0, hipMemAllocationGranularityRecommended);
    void *base = NULL;

    *size = round_up(MIB(300) + 1, unit) + 4 * unit;
    HIP_OK(hipMemAddressReserve(&base, *size, unit, NULL, 0));
    assert_int_equal((uintptr_t)base % unit, 0);
    return base;
}

static hipMemGenericAllocationHandle_t create(uint64_t size)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle = NULL;

    HIP_OK(hipMemCreate(&handle, size, &prop, 0));
    return handle;
}

/* Peers first, the local device last. */
static void grant_all(void *va, uint64_t size)
{
    for (int i = machine.devices - 1; i >= 0; i--)
        HIP_OK(set_access(va, size, i, hipMemAccessFlagsProtReadWrite));
}

static void test_unmap_of_the_padded_range_takes_all_pieces(void **state)
{
    need_peers();
    hipMemGenericAllocationHandle_t first, second;
    uint64_t size;
    void *base;

    need_vmm();
    base = padded_range(&size);
    first = create(MIB(64));
    second = create(MIB(128));
    HIP_OK(hipMemMap(at(base, MIB(2)), MIB(64), 0, first, 0));
    HIP_OK(hipMemMap(at(base, MIB(100)), MIB(128), 0, second, 0));
    grant_all(at(base, MIB(2)), MIB(64));
    grant_all(at(base, MIB(100)), MIB(128));
    for (int i = 0; i < machine.devices; i++) {
        gpu_stamp(i, at(base, MIB(100)), MIB(128), 40 + i);
        gpu_expect(0, at(base, MIB(100)), MIB(128), 40 + i);
    }
    HIP_OK(hipMemUnmap(base, size));
    for (int i = 0; i < machine.devices; i++) {
        gpu_unmapped(i, at(base, MIB(2)));
        gpu_unmapped(i, at(base, MIB(100)));
    }
    HIP_OK(hipMemRelease(first));
    HIP_OK(hipMemRelease(second));
    HIP_OK(hipMemAddressFree(base, size));
}

/* Its destructor only logs the failure, so the range must be free to go. */
static void test_unmap_of_a_range_never_mapped_fails_without_harm(void **state)
{
    uint64_t size;
    void *base;

    need_vmm();
    base = padded_range(&size);
    HIP_INVALID(hipMemUnmap(base, size));
    HIP_OK(hipMemAddressFree(base, size));
}

static void test_unmap_that_cuts_a_piece_changes_nothing(void **state)
{
    need_peers();
    hipMemGenericAllocationHandle_t handle;
    uint64_t size;
    void *base;

    need_vmm();
    base = padded_range(&size);
    handle = create(MIB(64));
    HIP_OK(hipMemMap(at(base, MIB(2)), MIB(64), 0, handle, 0));
    grant_all(at(base, MIB(2)), MIB(64));
    gpu_stamp(0, at(base, MIB(2)), MIB(64), 6);
    HIP_INVALID(hipMemUnmap(base, MIB(34)));
    HIP_INVALID(hipMemUnmap(at(base, MIB(4)), size - MIB(4)));
    HIP_INVALID(hipMemAddressFree(base, size));
    gpu_expect(0, at(base, MIB(2)), MIB(64), 6);
    HIP_OK(hipMemUnmap(base, size));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(base, size));
}

static void test_map_at_an_offset_shows_that_part_of_the_handle(void **state)
{
    need_peers();
    hipMemGenericAllocationHandle_t handle;
    uint64_t size;
    void *base;

    need_vmm();
    base = padded_range(&size);
    handle = create(MIB(64));
    HIP_OK(hipMemMap(base, MIB(64), 0, handle, 0));
    HIP_OK(hipMemMap(at(base, MIB(128)), MIB(16), MIB(32), handle, 0));
    grant_all(base, MIB(64));
    grant_all(at(base, MIB(128)), MIB(16));
    gpu_stamp(0, at(base, MIB(128)), MIB(16), 8);
    gpu_expect(machine.devices - 1, at(base, MIB(32)), MIB(16), 8);
    gpu_same_memory(0, at(base, MIB(40)), machine.devices - 1, at(base, MIB(136)));
    HIP_OK(hipMemUnmap(base, size));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(base, size));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_unmap_of_the_padded_range_takes_all_pieces),
        CASE(test_unmap_of_a_range_never_mapped_fails_without_harm),
        CASE(test_unmap_that_cuts_a_piece_changes_nothing),
        CASE(test_map_at_an_offset_shows_that_part_of_the_handle),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
