/* SPDX-License-Identifier: MIT */
/*
 * RCCL's buffers: uncached device memory that is zeroed after mapping, host memory granted to the
 * device and then to the host, teardown that finds each piece by its address (retain, address
 * range, unmap, release twice), and a walk over a user's buffer of many pieces.
 */
#include "common.h"

#include <unistd.h>

#define SEGMENTS 12

static hipMemAllocationProp buffer_prop(int device)
{
    hipMemAllocationProp prop = shareable_prop(device);

    prop.type = hipMemAllocationTypeUncached;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    return prop;
}

static void *buffer_alloc(const hipMemAllocationProp *prop, uint64_t want, uint64_t *size)
{
    size_t granule = 0;
    hipMemGenericAllocationHandle_t handle = NULL;
    void *va = NULL;

    HIP_OK(hipMemGetAllocationGranularity(&granule, prop, hipMemAllocationGranularityMinimum));
    *size = round_up(want, granule);
    HIP_OK(hipMemCreate(&handle, *size, prop, 0));
    HIP_OK(hipMemAddressReserve(&va, *size, granule, NULL, 0));
    HIP_OK(hipMemMap(va, *size, 0, handle, 0));
    return va;
}

/* Gives back count pieces from va on; returns the sum of their sizes. */
static uint64_t pieces_free(void *va, unsigned count)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < count; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        hipDeviceptr_t base = NULL;
        size_t size = 0;

        HIP_OK(hipMemRetainAllocationHandle(&handle, at(va, total)));
        HIP_OK(hipMemRelease(handle));
        HIP_OK(hipMemGetAddressRange(&base, &size, at(va, total)));
        assert_ptr_equal(base, at(va, total));
        HIP_OK(hipMemUnmap(base, size));
        HIP_OK(hipMemRelease(handle));
        total += size;
    }
    return total;
}

static void test_device_buffer_is_zeroed_used_and_found_again(void **state)
{
    need_cpu_view();
    hipMemAllocationProp prop = buffer_prop(0);
    uint64_t size;
    void *va;

    need_vmm();
    va = buffer_alloc(&prop, MIB(4) + 12345, &size);
    HIP_OK(set_access(va, size, 0, hipMemAccessFlagsProtReadWrite));
    HIP_OK(hipMemset(va, 0, size));
    gpu_stamp(0, va, size, 3);
    cpu_expect(va, size, 3);
    assert_int_equal(pieces_free(va, 1), size);
    HIP_OK(hipMemAddressFree(va, size));
}

static void test_host_buffer_is_shared_by_device_and_cpu(void **state)
{
    hipMemAllocationProp prop = shareable_prop(0);
    hipMemAccessDesc host = host_access(hipMemAccessFlagsProtReadWrite);
    uint64_t size, left;
    int integrated = 0;
    void *va;

    need_vmm();
    HIP_OK(hipDeviceGetAttribute(&integrated, hipDeviceAttributeIntegrated, 0));
    left = free_bytes(0);
    prop.location.type = hipMemLocationTypeHost;
    va = buffer_alloc(&prop, MIB(2), &size);
    if (!integrated) /* which has one memory for both */
        assert_int_equal(free_bytes(0), left);
    HIP_OK(set_access(va, size, 0, hipMemAccessFlagsProtReadWrite));
    HIP_OK(hipMemSetAccess(va, size, &host, 1));
    host_stamp(va, size, 11);
    gpu_expect(0, va, size, 11);
    gpu_stamp(0, va, size, 12);
    assert_true(host_matches(va, size, 12));
    assert_int_equal(pieces_free(va, 1), size);
    HIP_OK(hipMemAddressFree(va, size));
    assert_false(cpu_can_read(va));
}

static uint64_t build_pieces(void **base, int device, uint64_t room)
{
    hipMemAllocationProp prop = buffer_prop(device);
    uint64_t used = 0;

    HIP_OK(hipMemAddressReserve(base, room, 0, NULL, 0));
    for (unsigned i = 0; i < SEGMENTS; i++) {
        uint64_t size = MIB(2) * (1 + i % 4) + KIB(4) * (i % 3);
        hipMemGenericAllocationHandle_t handle = NULL;

        HIP_OK(hipMemCreate(&handle, size, &prop, 0));
        HIP_OK(hipMemMap(at(*base, used), size, 0, handle, 0));
        used += size;
    }
    HIP_OK(set_access(*base, used, device, hipMemAccessFlagsProtReadWrite));
    return used;
}

static void test_walk_finds_every_piece_of_a_buffer(void **state)
{
    uint64_t used, walked = 0, left;
    unsigned pieces = 0;
    void *base = NULL;

    need_vmm();
    left = free_bytes(0);
    used = build_pieces(&base, 0, MIB(256));
    while (walked < used) {
        hipMemGenericAllocationHandle_t handle = NULL;
        hipMemAllocationProp prop;
        hipDeviceptr_t start = NULL;
        size_t size = 0;

        /* From inside the piece, as a user's pointer may be anywhere. */
        HIP_OK(hipMemGetAddressRange(&start, &size, at(base, walked + 100)));
        assert_ptr_equal(start, at(base, walked));
        assert_int_equal(size, MIB(2) * (1 + pieces % 4) + KIB(4) * (pieces % 3));
        HIP_OK(hipMemRetainAllocationHandle(&handle, at(base, walked + 100)));
        HIP_OK(hipMemGetAllocationPropertiesFromHandle(&prop, handle));
        assert_int_equal(prop.type, hipMemAllocationTypeUncached);
        assert_int_equal(prop.location.type, hipMemLocationTypeDevice);
        assert_int_equal(prop.location.id, 0);
        assert_int_equal(prop.requestedHandleType, hipMemHandleTypePosixFileDescriptor);
        HIP_OK(hipMemRelease(handle));
        walked += size;
        pieces++;
    }
    assert_int_equal(pieces, SEGMENTS);
    HIP_IS(hipErrorNotFound, hipMemGetAddressRange(NULL, NULL, at(base, used)));
    assert_int_equal(pieces_free(base, SEGMENTS), used);
    HIP_OK(hipMemAddressFree(base, MIB(256)));
    assert_int_equal(free_bytes(0), left);
}

static void test_outputs_of_address_range_may_be_null(void **state)
{
    hipMemAllocationProp prop = buffer_prop(0);
    hipDeviceptr_t base = NULL;
    uint64_t size;
    size_t range = 0;
    void *va;

    need_vmm();
    va = buffer_alloc(&prop, MIB(2), &size);
    HIP_OK(hipMemGetAddressRange(NULL, &range, at(va, 5)));
    assert_int_equal(range, size);
    HIP_OK(hipMemGetAddressRange(&base, NULL, at(va, 5)));
    assert_ptr_equal(base, va);
    assert_int_equal(pieces_free(va, 1), size);
    HIP_OK(hipMemAddressFree(va, size));
}

static void test_imported_buffer_tells_its_granularity_and_is_mapped(void **state)
{
    hipMemAllocationProp prop = buffer_prop(0), told;
    hipMemGenericAllocationHandle_t owner = NULL, import = NULL;
    size_t granule = 0;
    uint64_t size;
    void *va, *view = NULL;
    int fd = -1;

    need_vmm();
    va = buffer_alloc(&prop, MIB(8), &size);
    HIP_OK(set_access(va, size, 0, hipMemAccessFlagsProtReadWrite));
    gpu_stamp(0, va, size, 21);
    HIP_OK(hipMemRetainAllocationHandle(&owner, va));
    HIP_OK(hipMemExportToShareableHandle(&fd, owner, hipMemHandleTypePosixFileDescriptor, 0));
    HIP_OK(hipMemRelease(owner));
    HIP_OK(hipMemImportFromShareableHandle(&import, (void *)(uintptr_t)fd,
                                           hipMemHandleTypePosixFileDescriptor));
    close(fd);
    HIP_OK(hipMemGetAllocationPropertiesFromHandle(&told, import));
    HIP_OK(hipMemGetAllocationGranularity(&granule, &told, hipMemAllocationGranularityMinimum));
    HIP_OK(hipMemAddressReserve(&view, size, granule, NULL, 0));
    HIP_OK(hipMemMap(view, size, 0, import, 0));
    HIP_OK(set_access(view, size, 0, hipMemAccessFlagsProtReadWrite));
    gpu_expect(0, view, size, 21);
    gpu_same_memory(0, va, 0, view);
    assert_int_equal(pieces_free(view, 1), size);
    HIP_OK(hipMemAddressFree(view, size));
    assert_int_equal(pieces_free(va, 1), size);
    HIP_OK(hipMemAddressFree(va, size));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_device_buffer_is_zeroed_used_and_found_again),
        CASE(test_host_buffer_is_shared_by_device_and_cpu),
        CASE(test_walk_finds_every_piece_of_a_buffer),
        CASE(test_outputs_of_address_range_may_be_null),
        CASE(test_imported_buffer_tells_its_granularity_and_is_mapped),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
