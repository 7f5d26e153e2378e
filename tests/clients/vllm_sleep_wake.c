/* SPDX-License-Identifier: MIT */
/*
 * vLLM's allocator: one reservation per pool, 256-MiB chunks all created, then all mapped, then one
 * set-access over everything. Sleeping unmaps and releases the chunks and must give the memory back
 * although the reservation stays; waking builds them again at the old address. A later version also
 * gives up the addresses and asks for them again.
 */
#include "common.h"

#define CHUNK scaled(MIB(256))
#define CHUNKS 64

struct pool {
    void *base;
    uint64_t size;
    struct piece chunk[CHUNKS];
};

static void use_primary_context(int device)
{
    hipCtx_t context = NULL;

    HIP_OK(hipCtxGetCurrent(&context));
    if (!context) {
        HIP_OK(hipDevicePrimaryCtxRetain(&context, device));
        HIP_OK(hipCtxSetCurrent(context));
    }
    assert_non_null(context);
}

static void chunks_create(struct pool *pool, int device)
{
    hipMemAllocationProp prop = device_prop(device);

    prop.allocFlags.compressionType = 0;
    for (unsigned i = 0; i < CHUNKS; i++) {
        uint64_t left = pool->size - i * CHUNK;

        pool->chunk[i].size = left < CHUNK ? left : CHUNK;
        HIP_OK(hipMemCreate(&pool->chunk[i].handle, pool->chunk[i].size, &prop, 0));
    }
}

static void chunks_map(struct pool *pool, int device)
{
    for (unsigned i = 0; i < CHUNKS; i++) {
        pool->chunk[i].va = at(pool->base, i * CHUNK);
        HIP_OK(hipMemMap(pool->chunk[i].va, pool->chunk[i].size, 0, pool->chunk[i].handle, 0));
    }
    HIP_OK(set_access(pool->base, pool->size, device, hipMemAccessFlagsProtReadWrite));
}

static void pool_wake(struct pool *pool, int device, uint64_t seed)
{
    chunks_create(pool, device);
    chunks_map(pool, device);
    for (unsigned i = 0; i < CHUNKS; i++)
        gpu_stamp(device, pool->chunk[i].va, pool->chunk[i].size, seed + i);
    for (unsigned i = 0; i < CHUNKS; i++)
        gpu_expect(device, pool->chunk[i].va, pool->chunk[i].size, seed + i);
}

static void pool_sleep(struct pool *pool)
{
    for (unsigned i = 0; i < CHUNKS; i++)
        HIP_OK(hipMemUnmap(pool->chunk[i].va, pool->chunk[i].size));
    for (unsigned i = 0; i < CHUNKS; i++)
        HIP_OK(hipMemRelease(pool->chunk[i].handle));
}

static void pool_reserve(struct pool *pool, int device, void *hint)
{
    uint64_t granule = granularity(device, hipMemAllocationGranularityMinimum);

    /* The last chunk is a short one. */
    pool->size = round_up(CHUNKS * CHUNK - scaled(MIB(100)) + 1000, granule);
    HIP_OK(hipMemAddressReserve(&pool->base, pool->size, granule, hint, 0));
}

static void test_sleep_gives_all_memory_back_while_reserved(void **state)
{
    need_free(CHUNKS * CHUNK);
    struct pool pool = {0};
    uint64_t idle, awake;

    need_vmm();
    use_primary_context(0);
    pool_reserve(&pool, 0, NULL);
    idle = free_bytes(0);
    for (unsigned round = 0; round < 3; round++) {
        pool_wake(&pool, 0, 1000 * round);
        awake = free_bytes(0);
        assert_true(awake <= idle - pool.size);
        pool_sleep(&pool);
        assert_int_equal(free_bytes(0), idle);
        gpu_unmapped(0, pool.base);
    }
    HIP_OK(hipMemAddressFree(pool.base, pool.size));
}

static void test_wake_after_giving_up_the_address_gets_it_again(void **state)
{
    need_free(CHUNKS * CHUNK);
    struct pool pool = {0};
    void *old;

    need_vmm();
    pool_reserve(&pool, 0, NULL);
    pool_wake(&pool, 0, 7);
    pool_sleep(&pool);
    HIP_OK(hipMemAddressFree(pool.base, pool.size));
    old = pool.base;
    pool_reserve(&pool, 0, old);
    assert_ptr_equal(pool.base, old);
    pool_wake(&pool, 0, 8);
    pool_sleep(&pool);
    HIP_OK(hipMemAddressFree(pool.base, pool.size));
}

static void test_each_device_of_a_process_has_its_own_pool(void **state)
{
    need_free(CHUNKS * CHUNK);
    struct pool *pools = calloc((size_t)machine.devices, sizeof(*pools));

    need_vmm();
    assert_non_null(pools);
    for (int i = 0; i < machine.devices; i++) {
        pool_reserve(&pools[i], i, NULL);
        pool_wake(&pools[i], i, 100 * i);
    }
    for (int i = 0; i < machine.devices; i++) {
        gpu_expect(i, pools[i].base, CHUNK, 100 * i);
        if (machine.devices > 1)
            gpu_unmapped((i + 1) % machine.devices, pools[i].base);
        pool_sleep(&pools[i]);
        HIP_OK(hipMemAddressFree(pools[i].base, pools[i].size));
    }
    free(pools);
}

static void test_failed_set_access_leaves_chunks_that_can_be_cleaned_up(void **state)
{
    need_free(CHUNKS * CHUNK);
    struct pool pool = {0};

    need_vmm();
    pool_reserve(&pool, 0, NULL);
    chunks_create(&pool, 0);
    HIP_INVALID(set_access(pool.base, pool.size, 0, hipMemAccessFlagsProtReadWrite));
    chunks_map(&pool, 0);
    HIP_INVALID(set_access(pool.base, pool.size, machine.devices, hipMemAccessFlagsProtRead));
    assert_int_equal(get_access(pool.base, 0), hipMemAccessFlagsProtReadWrite);
    pool_sleep(&pool);
    HIP_OK(hipMemAddressFree(pool.base, pool.size));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_sleep_gives_all_memory_back_while_reserved),
        CASE(test_wake_after_giving_up_the_address_gets_it_again),
        CASE(test_each_device_of_a_process_has_its_own_pool),
        CASE(test_failed_set_access_leaves_chunks_that_can_be_cleaned_up),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
