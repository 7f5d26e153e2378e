/* SPDX-License-Identifier: MIT */
/*
 * kvcached's page benchmark: 8 GiB reserved, 4096 handles of 2 MiB created, then all mapped, each
 * given access by itself, all unmapped, all released. On a stack with one descriptor per handle it
 * stops near 1000.
 */
#include "common.h"

#include <sys/resource.h>

#define PAGE_SIZE MIB(2)
#define PAGES 4096

static struct piece pages[PAGES];

static void pages_build(void *base, unsigned count)
{
    hipMemAllocationProp prop = device_prop(0);

    for (unsigned i = 0; i < count; i++) {
        pages[i].va = at(base, i * PAGE_SIZE);
        HIP_OK(hipMemCreate(&pages[i].handle, PAGE_SIZE, &prop, 0));
    }
    for (unsigned i = 0; i < count; i++)
        HIP_OK(hipMemMap(pages[i].va, PAGE_SIZE, 0, pages[i].handle, 0));
    for (unsigned i = 0; i < count; i++)
        HIP_OK(set_access(pages[i].va, PAGE_SIZE, 0, hipMemAccessFlagsProtReadWrite));
}

static void test_4096_pages_one_call_each_with_few_descriptors(void **state)
{
    const unsigned count = scaled_count(PAGES);
    struct rlimit limit, low;
    unsigned descriptors;
    uint64_t left;
    int supported = 0;
    void *base = NULL;

    HIP_OK(hipInit(0));
    HIP_OK(hipSetDevice(0));
    HIP_OK(
        hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
    if (!supported)
        skip_case("no VMM on %s", machine.name);
    left = free_bytes(0);
    need_free(count * PAGE_SIZE);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    HIP_OK(hipMemAddressReserve(&base, count * PAGE_SIZE, PAGE_SIZE, NULL, 0));
    assert_int_equal((uintptr_t)base % PAGE_SIZE, 0);
    descriptors = open_descriptors();
    pages_build(base, count);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(free_bytes(0), left - count * PAGE_SIZE);
    for (unsigned i = 0; i < count; i++)
        gpu_stamp(0, pages[i].va, PAGE_SIZE, i);
    for (unsigned i = 0; i < count; i++)
        gpu_expect(0, pages[i].va, PAGE_SIZE, i);
    for (unsigned i = 0; i < count; i++)
        HIP_OK(hipMemUnmap(pages[i].va, PAGE_SIZE));
    assert_int_equal(free_bytes(0), left - count * PAGE_SIZE);
    gpu_unmapped(0, base);
    gpu_unmapped(0, pages[count - 1].va);
    for (unsigned i = 0; i < count; i++)
        HIP_OK(hipMemRelease(pages[i].handle));
    assert_int_equal(free_bytes(0), left);
    HIP_OK(hipMemAddressFree(base, count * PAGE_SIZE));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_4096_pages_one_call_each_with_few_descriptors),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
