/* SPDX-License-Identifier: MIT */
/* Reported faults in sizes, granularities, types and arguments. */
#include "bugs.h"
#include "hook.h"

#include <unistd.h>

#include "kfd/uapi.h"

static struct hook hook;
static uint32_t seen_flags; /* of all ALLOC requests since it was cleared */

static int watch_alloc(struct hook *h, int fd, unsigned long request, void *arg)
{
    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ALLOC_MEMORY_OF_GPU))
        seen_flags |= ((struct kfd_ioctl_alloc_memory_of_gpu_args *)arg)->flags;
    return hook_pass_request(h, fd, request, arg);
}

/* B01 */
static void test_unaligned_create_and_map_are_invalid_and_leak_nothing(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    void *base = reserve(MIB(2));
    handle_t handle = NULL;

    assert_int_equal(granularity(0, hipMemAllocationGranularityMinimum), 4096);
    HIP_INVALID(hipMemCreate(&handle, 6912, &prop, 0));
    assert_null(handle);
    handle = create(0, 8192);
    HIP_INVALID(hipMemMap(base, 6912, 0, handle, 0));
    map_rw(base, 8192, handle, 0);
    unmap(base, 8192);
    HIP_OK(hipMemRelease(handle));
    address_free(base, MIB(2));
}

/* B02, B03 */
static void test_minimum_is_a_page_and_recommended_a_huge_page(void **state)
{
    for (int i = 0; i < machine.devices; i++) {
        assert_int_equal(granularity(i, hipMemAllocationGranularityMinimum),
                         (uint64_t)sysconf(_SC_PAGESIZE));
        assert_int_equal(granularity(i, hipMemAllocationGranularityRecommended), MIB(2));
    }
}

/* B02 */
static void test_stores_across_the_seams_of_single_page_handles_arrive(void **state)
{
    need_cpu_view();
    const unsigned pages = 64;
    void *base = reserve(pages * KIB(4));
    uint64_t word, back = 0;

    need_gpu_side();
    for (unsigned i = 0; i < pages; i++)
        put_piece(at(base, i * KIB(4)), KIB(4), 0);
    for (unsigned i = 1; i < pages; i++) {
        word = 0x0102030405060708u * i;
        assert_int_equal(fake_gpu_write(machine.fake, 0, (uintptr_t)at(base, i * KIB(4) - 3), &word,
                                        sizeof(word), NULL),
                         0);
    }
    for (unsigned i = 1; i < pages; i++) {
        word = 0x0102030405060708u * i;
        HIP_OK(hipMemcpy(&back, at(base, i * KIB(4) - 3), sizeof(back), hipMemcpyDeviceToHost));
        assert_true(back == word);
    }
    unmap(base, pages * KIB(4));
    address_free(base, pages * KIB(4));
}

/* B04 */
static void test_granularity_of_uncached_memory_is_that_of_pinned(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    size_t pinned = 0, uncached = 1;

    for (unsigned option = 0; option < 2; option++) {
        prop.type = hipMemAllocationTypePinned;
        HIP_OK(hipMemGetAllocationGranularity(&pinned, &prop, option));
        prop.type = hipMemAllocationTypeUncached;
        HIP_OK(hipMemGetAllocationGranularity(&uncached, &prop, option));
        assert_int_equal(pinned, uncached);
    }
}

/* B05, G05 */
static void test_uncached_reaches_the_kernel(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    handle_t handle = NULL;

    if (!machine.fake)
        skip_case("watches the requests of the fake");
    seen_flags = 0;
    HIP_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
    HIP_OK(hipMemRelease(handle));
    assert_int_equal(seen_flags & KFD_MEM_UNCACHED, 0);
    prop.type = hipMemAllocationTypeUncached;
    HIP_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
    HIP_OK(hipMemRelease(handle));
    assert_int_equal(seen_flags & KFD_MEM_UNCACHED, KFD_MEM_UNCACHED);
}

/* B06 */
static void test_host_location_has_the_value_programs_are_built_with(void **state)
{
    assert_int_equal(hipMemLocationTypeHost, 2);
    assert_int_equal(hipMemLocationTypeHostNuma, 3);
    assert_int_equal(hipMemAllocationTypeUncached, 0x40000000);
}

/* B08 */
static void test_device_pointer_is_a_plain_pointer(void **state)
{
    hipDeviceptr_t pointer = reserve(MIB(2));
    void *same = pointer;

    _Static_assert(sizeof(hipDeviceptr_t) == sizeof(void *), "pointer size");
    _Static_assert(__builtin_types_compatible_p(hipDeviceptr_t, void *), "pointer type");
    address_free(same, MIB(2));
}

/* B09, B10 */
static void test_import_takes_the_descriptor_by_value_and_by_address(void **state)
{
    handle_t handle = create_shareable(0, MIB(2)), by_value = NULL, by_address = NULL;
    int fd = export_fd(handle);

    HIP_OK(import_fd(&by_value, fd));
    HIP_OK(hipMemImportFromShareableHandle(&by_address, &fd, hipMemHandleTypePosixFileDescriptor));
    close(fd);
    assert_true(by_value != by_address);
    HIP_OK(hipMemRelease(by_value));
    HIP_OK(hipMemRelease(by_address));
    HIP_OK(hipMemRelease(handle));
}

/* B09: a wild value is told from both. */
static void test_import_of_a_wild_value_is_invalid_and_no_crash(void **state)
{
    static const uintptr_t wild[] = {
        0x7f0000000000u, 0xffffffffffffffffu, 0xdead0000u, (uintptr_t)1 << 47, 4095, 999999};
    handle_t handle = NULL;

    for (unsigned i = 0; i < COUNT_OF(wild); i++)
        HIP_INVALID(hipMemImportFromShareableHandle(&handle, (void *)wild[i],
                                                    hipMemHandleTypePosixFileDescriptor));
    assert_null(handle);
}

/* B09, C13 */
static void test_pointer_attribute_says_no_legacy_ipc_for_vmm_memory(void **state)
{
    void *base = reserve(MIB(2));
    int capable = 7;

    put_piece(base, MIB(2), 0);
    HIP_OK(hipPointerGetAttribute(&capable, HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE, base));
    assert_int_equal(capable, 0);
    unmap(base, MIB(2));
    address_free(base, MIB(2));
}

/* B11: legacy IPC is not served here; the sizes work by the way that is. */
static void test_memory_of_odd_sizes_is_allocated_and_described_exactly(void **state)
{
    need_cpu_view();
    static const uint64_t sizes[] = {2267136, 2097275, 16764871, 16789561};

    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        hipDeviceptr_t base = NULL;
        size_t size = 0;
        void *va = NULL;

        HIP_OK(hipMalloc(&va, sizes[i]));
        HIP_OK(hipMemGetAddressRange(&base, &size, at(va, sizes[i] - 1)));
        assert_ptr_equal(base, va);
        assert_true(size >= sizes[i]);
        gpu_stamp(0, va, sizes[i] / 8 * 8, i);
        cpu_expect(va, sizes[i] / 8 * 8, i);
        HIP_OK(hipFree(va));
    }
}

/* G02: 10,000 cycles each way; the report's number of times adds nothing on a fake. */
static void test_rdma_flag_is_accepted_and_harmless(void **state)
{
    void *base = reserve(MIB(2));

    for (unsigned i = 0; i < 20000; i++) {
        hipMemAllocationProp prop = device_prop(0);
        handle_t handle = NULL;

        prop.allocFlags.gpuDirectRDMACapable = i % 2;
        HIP_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
        map_rw(base, MIB(2), handle, 0);
        unmap(base, MIB(2));
        HIP_OK(hipMemRelease(handle));
    }
    address_free(base, MIB(2));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_unaligned_create_and_map_are_invalid_and_leak_nothing),
        CASE(test_minimum_is_a_page_and_recommended_a_huge_page),
        CASE(test_stores_across_the_seams_of_single_page_handles_arrive),
        CASE(test_granularity_of_uncached_memory_is_that_of_pinned),
        CASE(test_uncached_reaches_the_kernel),
        CASE(test_host_location_has_the_value_programs_are_built_with),
        CASE(test_device_pointer_is_a_plain_pointer),
        CASE(test_import_takes_the_descriptor_by_value_and_by_address),
        CASE(test_import_of_a_wild_value_is_invalid_and_no_crash),
        CASE(test_pointer_attribute_says_no_legacy_ipc_for_vmm_memory),
        CASE(test_memory_of_odd_sizes_is_allocated_and_described_exactly),
        CASE(test_rdma_flag_is_accepted_and_harmless),
    };

    machine_choose(argc, argv, "mi300x:8");
    if (machine.fake) {
        hook_init(&hook, fake_sys(machine.fake));
        hook.request = watch_alloc;
        kfd_sys_set_default(&hook.sys);
    }
    return run_cases(cases, COUNT_OF(cases));
}
