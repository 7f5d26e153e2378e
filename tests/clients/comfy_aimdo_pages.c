/* SPDX-License-Identifier: MIT */
/*
 * comfy-aimdo: a range as large as the device's memory filled with 32-MiB pages; when a create runs
 * out of memory one page is evicted and the create tried once more. Eviction unmaps, lays a
 * PROT_NONE mapping over the addresses, and releases. Growable buffers take 2-MiB chunks and go
 * with one unmap over all of them.
 */
#include "common.h"

#include <sys/mman.h>

#define PAGE_SIZE MIB(32)
#define CHUNK MIB(2)
#define PAGES 24

struct page_table {
    void *base;
    uint64_t size;
    struct piece page[PAGES]; /* handle NULL: not resident */
};

static hipError_t page_load(struct page_table *t, unsigned i)
{
    hipMemAllocationProp prop = device_prop(0);
    hipError_t result = hipMemCreate(&t->page[i].handle, PAGE_SIZE, &prop, 0);

    if (result != hipSuccess) {
        t->page[i].handle = NULL;
        return result;
    }
    t->page[i].va = at(t->base, i * PAGE_SIZE);
    HIP_OK(hipMemMap(t->page[i].va, PAGE_SIZE, 0, t->page[i].handle, 0));
    HIP_OK(set_access(t->page[i].va, PAGE_SIZE, 0, hipMemAccessFlagsProtReadWrite));
    gpu_stamp(0, t->page[i].va, PAGE_SIZE, i);
    return hipSuccess;
}

static void page_evict(struct page_table *t, unsigned i)
{
    HIP_OK(hipMemUnmap(t->page[i].va, PAGE_SIZE));
    assert_ptr_equal(mmap(t->page[i].va, PAGE_SIZE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
                     t->page[i].va);
    HIP_OK(hipMemRelease(t->page[i].handle));
    t->page[i].handle = NULL;
}

static void test_full_memory_evicts_one_page_and_loads_the_next(void **state)
{
    struct page_table t = {.size = total_bytes(0) / PAGE_SIZE * PAGE_SIZE};
    uint64_t left;
    unsigned loaded = 0, evicted = 0;
    void *others = NULL;

    need_vmm();
    HIP_OK(hipMemAddressReserve(&t.base, t.size, 0, NULL, 0));
    /* Other memory of the program leaves room for a few pages; the size of the device is not the
     * point. */
    HIP_OK(hipMalloc(&others, free_bytes(0) - 8 * PAGE_SIZE - MIB(2)));
    left = free_bytes(0);
    for (unsigned i = 0; i < PAGES; i++) {
        hipError_t result = page_load(&t, i);

        if (result != hipSuccess) {
            HIP_IS(hipErrorOutOfMemory, result);
            page_evict(&t, evicted++);
            HIP_OK(page_load(&t, i));
        }
        loaded++;
    }
    assert_int_equal(loaded, PAGES);
    assert_int_equal(evicted, PAGES - left / PAGE_SIZE);
    for (unsigned i = 0; i < PAGES; i++) {
        if (i < evicted)
            gpu_unmapped(0, at(t.base, i * PAGE_SIZE));
        else
            gpu_expect(0, t.page[i].va, PAGE_SIZE, i);
    }
    for (unsigned i = evicted; i < PAGES; i++)
        page_evict(&t, i);
    assert_int_equal(free_bytes(0), left);
    HIP_OK(hipFree(others));
    HIP_OK(hipMemAddressFree(t.base, t.size));
}

static void test_page_is_loaded_again_where_a_mapping_was_laid_over_it(void **state)
{
    need_cpu_view();
    struct page_table t = {.size = PAGES * PAGE_SIZE};

    need_vmm();
    HIP_OK(hipMemAddressReserve(&t.base, t.size, 0, NULL, 0));
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 4; i++)
            HIP_OK(page_load(&t, i));
        for (unsigned i = 0; i < 4; i++) {
            gpu_expect(0, t.page[i].va, PAGE_SIZE, i);
            cpu_expect(t.page[i].va, PAGE_SIZE, i);
            page_evict(&t, i);
        }
    }
    HIP_OK(hipMemAddressFree(t.base, t.size));
}

static void test_growable_buffer_goes_with_one_unmap(void **state)
{
    need_cpu_view();
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handles[64];
    uint64_t left;
    void *base = NULL;

    need_vmm();
    left = free_bytes(0);
    HIP_OK(hipMemAddressReserve(&base, GIB(2), 0, NULL, 0));
    for (unsigned i = 0; i < COUNT_OF(handles); i++) {
        HIP_OK(hipMemCreate(&handles[i], CHUNK, &prop, 0));
        HIP_OK(hipMemMap(at(base, i * CHUNK), CHUNK, 0, handles[i], 0));
        HIP_OK(set_access(at(base, i * CHUNK), CHUNK, 0, hipMemAccessFlagsProtReadWrite));
    }
    gpu_stamp(0, base, COUNT_OF(handles) * CHUNK, 70);
    cpu_expect(base, COUNT_OF(handles) * CHUNK, 70);
    HIP_OK(hipMemUnmap(base, COUNT_OF(handles) * CHUNK));
    for (unsigned i = 0; i < COUNT_OF(handles); i++)
        HIP_OK(hipMemRelease(handles[i]));
    HIP_OK(hipMemAddressFree(base, GIB(2)));
    assert_int_equal(free_bytes(0), left);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_full_memory_evicts_one_page_and_loads_the_next),
        CASE(test_page_is_loaded_again_where_a_mapping_was_laid_over_it),
        CASE(test_growable_buffer_goes_with_one_unmap),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
