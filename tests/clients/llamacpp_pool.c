/* SPDX-License-Identifier: MIT */
/*
 * llama.cpp's pool: a 32-GiB range taken at the first growth; each growth creates one handle, maps
 * it at the end, releases it at once, and gives access to the new part only, to all peers in one
 * call. The memory lives by its mapping.
 */
#include "common.h"

#define POOL_SIZE GIB(32)
#define STEPS 24

struct pool {
    void *base;
    uint64_t used;
    struct piece step[STEPS];
    unsigned steps;
};

static void pool_grow(struct pool *pool, int device, uint64_t need, const hipMemAccessDesc *access,
                      size_t count)
{
    uint64_t size = round_up(need, granularity(device, hipMemAllocationGranularityRecommended));
    hipMemAllocationProp prop = device_prop(device);
    struct piece *step = &pool->step[pool->steps++];

    HIP_OK(hipMemCreate(&step->handle, size, &prop, 0));
    if (!pool->base)
        HIP_OK(hipMemAddressReserve(&pool->base, POOL_SIZE, 0, NULL, 0));
    step->va = at(pool->base, pool->used);
    step->size = size;
    HIP_OK(hipMemMap(step->va, size, 0, step->handle, 0));
    HIP_OK(hipMemRelease(step->handle));
    HIP_OK(hipMemSetAccess(step->va, size, access, count));
    pool->used += size;
}

static size_t all_devices(hipMemAccessDesc *access, int self)
{
    size_t count = 0;

    for (int i = 0; i < machine.devices; i++) {
        int can = i == self;

        if (i != self)
            HIP_OK(hipDeviceCanAccessPeer(&can, i, self));
        if (can)
            access[count++] = device_access(i, hipMemAccessFlagsProtReadWrite);
    }
    return count;
}

static uint64_t step_need(unsigned i)
{
    return MIB(3) + scaled(KIB(77) * i * i * i) + 13;
}

static void grow_all(struct pool *pool, int device, const hipMemAccessDesc *access, size_t count)
{
    for (unsigned i = 0; i < STEPS; i++) {
        pool_grow(pool, device, step_need(i), access, count);
        gpu_stamp(device, pool->step[i].va, pool->step[i].size, i);
        for (unsigned k = 0; k <= i; k++)
            gpu_expect(device, pool->step[k].va, pool->step[k].size, k);
    }
}

static void test_grown_pool_is_torn_down_by_one_unmap(void **state)
{
    hipMemAccessDesc self = device_access(0, hipMemAccessFlagsProtReadWrite);
    struct pool pool = {0};
    uint64_t left;

    need_vmm();
    left = free_bytes(0);
    grow_all(&pool, 0, &self, 1);
    assert_true(free_bytes(0) <= left - pool.used);
    HIP_OK(hipMemUnmap(pool.base, pool.used));
    assert_int_equal(free_bytes(0), left);
    gpu_unmapped(0, pool.base);
    HIP_OK(hipMemAddressFree(pool.base, POOL_SIZE));
}

static void test_grown_pool_is_torn_down_piece_by_piece(void **state)
{
    hipMemAccessDesc self = device_access(0, hipMemAccessFlagsProtReadWrite);
    struct pool pool = {0};

    need_vmm();
    grow_all(&pool, 0, &self, 1);
    for (unsigned i = 0; i < pool.steps; i++) {
        uint64_t left = free_bytes(0);

        HIP_OK(hipMemUnmap(pool.step[i].va, pool.step[i].size));
        assert_int_equal(free_bytes(0), left + pool.step[i].size);
    }
    HIP_OK(hipMemAddressFree(pool.base, POOL_SIZE));
}

static void test_all_peers_are_granted_in_one_call(void **state)
{
    need_peers();
    hipMemAccessDesc access[KFD_MAX_DEVICES];
    struct pool pool = {0};
    size_t count;

    need_vmm();
    need_devices(2);
    count = all_devices(access, 1);
    grow_all(&pool, 1, access, count);
    for (unsigned i = 0; i < pool.steps; i++) {
        for (size_t d = 0; d < count; d++) {
            gpu_expect(access[d].location.id, pool.step[i].va, pool.step[i].size, i);
            assert_int_equal(get_access(pool.step[i].va, access[d].location.id),
                             hipMemAccessFlagsProtReadWrite);
        }
    }
    /* A store of a peer is seen by the owner. */
    gpu_stamp(0, pool.step[3].va, pool.step[3].size, 99);
    gpu_expect(1, pool.step[3].va, pool.step[3].size, 99);
    HIP_OK(hipMemUnmap(pool.base, pool.used));
    HIP_OK(hipMemAddressFree(pool.base, POOL_SIZE));
}

static void test_access_on_a_new_part_leaves_the_old_part_alone(void **state)
{
    hipMemAccessDesc read = device_access(0, hipMemAccessFlagsProtRead);
    hipMemAccessDesc write = device_access(0, hipMemAccessFlagsProtReadWrite);
    struct pool pool = {0};

    need_vmm();
    need_gpu_side();
    pool_grow(&pool, 0, MIB(2), &read, 1);
    pool_grow(&pool, 0, MIB(4), &write, 1);
    pool_grow(&pool, 0, MIB(6), &read, 1);
    gpu_read_only(0, pool.step[0].va);
    gpu_stamp(0, pool.step[1].va, pool.step[1].size, 1);
    gpu_read_only(0, pool.step[2].va);
    gpu_unmapped(0, at(pool.base, pool.used));
    HIP_OK(hipMemUnmap(pool.base, pool.used));
    HIP_OK(hipMemAddressFree(pool.base, POOL_SIZE));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_grown_pool_is_torn_down_by_one_unmap),
        CASE(test_grown_pool_is_torn_down_piece_by_piece),
        CASE(test_all_peers_are_granted_in_one_call),
        CASE(test_access_on_a_new_part_leaves_the_old_part_alone),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
