/* SPDX-License-Identifier: MIT */
/*
 * kvcached's elastic tensors: a range at an address of its own choosing, one zero page mapped at
 * every 2 MiB of it, so that reads work everywhere. A page is given by unmap, create, map and
 * set-access, and taken back by unmap, mapping the zero page again, and release. Teardown is one
 * unmap over the whole mixture.
 */
#include "common.h"

#define PAGE_SIZE MIB(2)
#define LAYERS 64
#define PAGES_PER_LAYER 256
#define FIRST_ADDRESS 0x1f0000000000u

struct tensor {
    void *base;
    uint64_t size;
    hipMemGenericAllocationHandle_t zero, real[PAGES_PER_LAYER];
};

static void map_page(void *va, hipMemGenericAllocationHandle_t handle)
{
    HIP_OK(hipMemMap(va, PAGE_SIZE, 0, handle, 0));
    HIP_OK(set_access(va, PAGE_SIZE, 0, hipMemAccessFlagsProtReadWrite));
}

static void tensor_make(struct tensor *t, uint64_t address, hipMemGenericAllocationHandle_t zero)
{
    memset(t, 0, sizeof(*t));
    t->size = PAGES_PER_LAYER * PAGE_SIZE;
    t->zero = zero;
    HIP_OK(hipMemAddressReserve(&t->base, t->size, PAGE_SIZE, (void *)(uintptr_t)address, 0));
    for (unsigned i = 0; i < PAGES_PER_LAYER; i++)
        map_page(at(t->base, i * PAGE_SIZE), zero);
}

static void page_give(struct tensor *t, unsigned i)
{
    hipMemAllocationProp prop = device_prop(0);
    void *va = at(t->base, i * PAGE_SIZE);

    HIP_OK(hipMemUnmap(va, PAGE_SIZE));
    HIP_OK(hipMemCreate(&t->real[i], PAGE_SIZE, &prop, 0));
    map_page(va, t->real[i]);
}

static void page_take(struct tensor *t, unsigned i)
{
    void *va = at(t->base, i * PAGE_SIZE);

    HIP_OK(hipMemUnmap(va, PAGE_SIZE));
    map_page(va, t->zero);
    HIP_OK(hipMemRelease(t->real[i]));
    t->real[i] = NULL;
}

static void tensor_drop(struct tensor *t)
{
    HIP_OK(hipMemUnmap(t->base, t->size));
    HIP_OK(hipMemAddressFree(t->base, t->size));
    for (unsigned i = 0; i < PAGES_PER_LAYER; i++) {
        if (t->real[i])
            HIP_OK(hipMemRelease(t->real[i]));
    }
}

static hipMemGenericAllocationHandle_t zero_page(void)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t zero = NULL;

    HIP_OK(hipMemCreate(&zero, PAGE_SIZE, &prop, 0));
    return zero;
}

static void test_one_page_at_every_slot_is_the_same_memory(void **state)
{
    static struct tensor t;
    hipMemGenericAllocationHandle_t zero;

    need_vmm();
    zero = zero_page();
    tensor_make(&t, FIRST_ADDRESS, zero);
    gpu_stamp(0, at(t.base, 100 * PAGE_SIZE), PAGE_SIZE, 42);
    for (unsigned i = 0; i < PAGES_PER_LAYER; i++)
        gpu_expect(0, at(t.base, i * PAGE_SIZE), PAGE_SIZE, 42);
    tensor_drop(&t);
    HIP_OK(hipMemRelease(zero));
}

/* 64 layers of 256 pages: 16,384 aliases of one buffer, real pages going in and out. */
static void test_pages_go_in_and_out_among_16384_aliases(void **state)
{
    static struct tensor layers[LAYERS];
    hipMemGenericAllocationHandle_t zero;
    const unsigned count = scaled_count(LAYERS);
    uint64_t left;

    need_vmm();
    left = free_bytes(0);
    zero = zero_page();
    for (unsigned l = 0; l < count; l++)
        tensor_make(&layers[l], FIRST_ADDRESS + l * PAGES_PER_LAYER * PAGE_SIZE, zero);
    assert_int_equal(free_bytes(0), left - PAGE_SIZE);
    gpu_stamp(0, layers[0].base, PAGE_SIZE, 0);
    for (unsigned l = 0; l < count; l++) {
        for (unsigned i = l % 5; i < PAGES_PER_LAYER; i += 16) {
            page_give(&layers[l], i);
            gpu_stamp(0, at(layers[l].base, i * PAGE_SIZE), PAGE_SIZE, l * 1000 + i + 1);
        }
    }
    for (unsigned l = 0; l < count; l++) {
        for (unsigned i = 0; i < PAGES_PER_LAYER; i++)
            gpu_expect(0, at(layers[l].base, i * PAGE_SIZE), PAGE_SIZE,
                       layers[l].real[i] ? l * 1000 + i + 1 : 0);
        for (unsigned i = l % 5; i < PAGES_PER_LAYER; i += 32)
            page_take(&layers[l], i);
        gpu_expect(0, at(layers[l].base, l % 5 * PAGE_SIZE), PAGE_SIZE, 0);
    }
    for (unsigned l = 0; l < count; l++)
        tensor_drop(&layers[l]);
    HIP_OK(hipMemRelease(zero));
    assert_int_equal(free_bytes(0), left);
}

static void test_the_chosen_address_is_used_when_free(void **state)
{
    void *first = NULL, *second = NULL;
    void *want = (void *)(uintptr_t)FIRST_ADDRESS;

    need_vmm();
    HIP_OK(hipMemAddressReserve(&first, GIB(1), PAGE_SIZE, want, 0));
    HIP_OK(hipMemAddressReserve(&second, GIB(1), PAGE_SIZE, at(want, GIB(1)), 0));
    assert_ptr_equal(first, want);
    assert_ptr_equal(second, at(want, GIB(1)));
    HIP_OK(hipMemAddressFree(first, GIB(1)));
    HIP_OK(hipMemAddressFree(second, GIB(1)));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_one_page_at_every_slot_is_the_same_memory),
        CASE(test_pages_go_in_and_out_among_16384_aliases),
        CASE(test_the_chosen_address_is_used_when_free),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
