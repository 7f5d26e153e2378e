/* SPDX-License-Identifier: MIT */
/* Reported faults in address space, descriptors per device and apertures. */
#include "bugs.h"

#include <kfdirect/vmm.h>
#include <unistd.h>

static uint64_t resident_bytes(void)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    unsigned long long size = 0, resident = 0;

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%llu %llu", &size, &resident), 2);
    fclose(statm);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* E01, E02 */
static void test_large_reservation_takes_no_memory(void **state)
{
    uint64_t resident = resident_bytes(), left = free_bytes(0);
    void *pool = reserve(GIB(32)), *huge = reserve(TIB(16));

    assert_true(resident_bytes() < resident + MIB(16));
    assert_int_equal(free_bytes(0), left);
    put_piece(at(huge, TIB(15)), MIB(2), 0);
    gpu_stamp(0, at(huge, TIB(15)), MIB(2), 1);
    gpu_expect(0, at(huge, TIB(15)), MIB(2), 1);
    unmap(at(huge, TIB(15)), MIB(2));
    address_free(pool, GIB(32));
    address_free(huge, TIB(16));
}

/* E03 */
static void test_reservations_are_not_bounded_by_device_memory(void **state)
{
    uint64_t each = round_up(total_bytes(0), GIB(1)) * 2;
    void *ranges[16];

    for (unsigned i = 0; i < COUNT_OF(ranges); i++)
        ranges[i] = reserve(each);
    for (unsigned i = 0; i < COUNT_OF(ranges); i++)
        address_free(ranges[i], each);
}

/* E04 */
static void test_failed_reservation_says_why(void **state)
{
    static const uint64_t sizes[] = {(uint64_t)1 << 47, (uint64_t)1 << 56, (uint64_t)1 << 62};

    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        char number[32];
        void *va = NULL;

        HIP_IS(hipErrorOutOfMemory, hipMemAddressReserve(&va, sizes[i], 0, NULL, 0));
        assert_null(va);
        snprintf(number, sizeof(number), "%llx", (unsigned long long)sizes[i]);
        assert_non_null(strstr(kfd_error_text(), number));
    }
}

/* E08: what the CPU sees of each mapping is one line at most, and neighbours merge again. */
static void test_host_views_merge_back_after_unmap(void **state)
{
    need_cpu_view();
    hipMemAccessDesc both[2] = {device_access(0, RW), host_access(RW)};
    const unsigned pieces = 500;
    void *base = reserve(GIB(4));
    uint64_t low = (uintptr_t)base, high = low + GIB(4);
    struct map_lines idle = count_map_lines(low, high), now;

    for (unsigned i = 0; i < pieces; i++)
        put_piece(at(base, i * MIB(4)), MIB(2), 0);
    assert_int_equal(count_map_lines(low, high).all, idle.all);
    for (unsigned i = 0; i < pieces; i++)
        HIP_OK(hipMemSetAccess(at(base, i * MIB(4)), MIB(2), both, 2));
    now = count_map_lines(low, high);
    assert_true(now.backed <= pieces && now.all <= 2 * pieces + 1);
    unmap(base, GIB(4));
    assert_int_equal(count_map_lines(low, high).all, idle.all);
    address_free(base, GIB(4));
}

/* E09: one descriptor for /dev/kfd and one per device. */
static void test_library_holds_one_descriptor_per_device_and_one_more(void **state)
{
    struct kfd_sys_counts counts;
    struct kfd_sys *counter = NULL, *next = NULL;
    struct kfd *kfd = NULL;

    assert_int_equal(kfd_sys_default(&next), 0);
    assert_int_equal(kfd_sys_count_new(next, &counter), 0);
    assert_int_equal(kfd_open(counter, &kfd), 0);
    kfd_sys_count_get(counter, &counts);
    assert_true(counts.opens + counts.dups - counts.closes <= 1u + (unsigned)machine.devices);
    kfd_close(kfd);
    /* The kernel ties a device to one open render node for the life of the process. */
    kfd_sys_count_get(counter, &counts);
    assert_true(counts.opens + counts.dups - counts.closes <= (unsigned)machine.devices);
    kfd_sys_destroy(counter);
}

/* E10: where programs are told a larger granularity, as a host with larger pages would tell, chunks
 * of that size work. The host's own page cannot be changed here. */
static void test_larger_granularity_is_told_and_chunks_of_it_work(void **state)
{
    struct vmm_options options = {.size = sizeof(options), .min_granularity = KIB(64)};
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    struct kfd *kfd = NULL;
    struct vmm *vmm = NULL;
    vmm_handle handle = 0;
    uint64_t va = 0;

    need_gpu_side();
    assert_int_equal(kfd_open(NULL, &kfd), 0);
    assert_int_equal(vmm_open(kfd, &options, &vmm), 0);
    assert_int_equal(vmm_min_granularity(vmm), KIB(64));
    assert_int_equal(vmm_reserve(vmm, KIB(64), 0, 0, &va), 0);
    assert_int_equal(va % KIB(64), 0);
    assert_int_equal(vmm_create(vmm, &props, KIB(64), &handle), 0);
    assert_int_equal(vmm_map(vmm, va, KIB(64), 0, handle), 0);
    assert_int_equal(vmm_unmap(vmm, va, KIB(64)), 0);
    assert_int_equal(vmm_release(vmm, handle), 0);
    assert_int_equal(vmm_address_free(vmm, va, KIB(64)), 0);
    vmm_close(vmm);
    kfd_close(kfd);
}

/* E13, E14, E15 */
static void test_apertures_are_the_kernels_and_addresses_lie_in_all_of_them(void **state)
{
    struct kfd *kfd = NULL;
    void *ranges[8];

    assert_int_equal(kfd_open(NULL, &kfd), 0);
    for (unsigned i = 0; i < COUNT_OF(ranges); i++)
        ranges[i] = reserve(MIB(2) << i);
    for (unsigned d = 0; d < kfd_device_count(kfd); d++) {
        const struct kfd_device_info *info = kfd_device_info(kfd_device_at(kfd, d));

        assert_true(info->va_base != 0 && info->va_limit > info->va_base);
        for (unsigned i = 0; i < COUNT_OF(ranges); i++) {
            assert_true((uintptr_t)ranges[i] >= info->va_base);
            assert_true((uintptr_t)ranges[i] + (MIB(2) << i) - 1 <= info->va_limit);
        }
    }
    for (unsigned i = 0; i < COUNT_OF(ranges); i++)
        address_free(ranges[i], MIB(2) << i);
    kfd_close(kfd);
}

/* E07, A09, F10: on every kind of machine the attribute tells the truth. */
static const char *const machines[] = {"mi210:4", "mi100:2", "navi31:2", "navi31-smallbar",
                                       "navi48",  "apu",     "cpx64",    "mi300x:1"};

static int small_sequence(int device)
{
    hipMemAllocationProp prop = device_prop(device);
    handle_t handle = NULL;
    void *va = NULL;

    CHILD_OK(hipMemAddressReserve(&va, MIB(64), 0, NULL, 0));
    CHILD_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
    CHILD_OK(hipMemMap(va, MIB(2), 0, handle, 0));
    CHILD_OK(set_access(va, MIB(2), device, RW));
    CHILD_TRUE(fake_gpu_write(machine.fake, (uint32_t)device, (uintptr_t)va, "x", 1, NULL) == 0);
    CHILD_OK(hipMemUnmap(va, MIB(2)));
    CHILD_OK(hipMemRelease(handle));
    CHILD_OK(hipMemAddressFree(va, MIB(64)));
    return 0;
}

static int attribute_is_true(int socket, int which)
{
    int devices = 0;

    kfd_sys_set_default(NULL);
    machine_use(machines[which], NULL, 0);
    CHILD_OK(hipGetDeviceCount(&devices));
    CHILD_TRUE(devices == (int)fake_gpu_count(machine.fake));
    for (int i = 0; i < devices; i++) {
        int supported = -1;

        CHILD_OK(hipDeviceGetAttribute(&supported,
                                       hipDeviceAttributeVirtualMemoryManagementSupported, i));
        CHILD_TRUE(supported == 1);
        if (small_sequence(i) != 0)
            return 1;
    }
    return 0;
}

static struct peer others[COUNT_OF(machines)];

static void test_whole_sequence_works_on_every_device_of_every_machine(void **state)
{
    bool all = true;

    if (others[0].pid == 0)
        skip_case("needs the fake's machines");
    for (unsigned i = 0; i < COUNT_OF(machines); i++) {
        int status = peer_wait(&others[i]);

        if (status != 0)
            print_error("%s: status %d\n", machines[i], status);
        all &= status == 0;
    }
    assert_true(all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_whole_sequence_works_on_every_device_of_every_machine),
        CASE(test_large_reservation_takes_no_memory),
        CASE(test_reservations_are_not_bounded_by_device_memory),
        CASE(test_failed_reservation_says_why),
        CASE(test_host_views_merge_back_after_unmap),
        CASE(test_library_holds_one_descriptor_per_device_and_one_more),
        CASE(test_larger_granularity_is_told_and_chunks_of_it_work),
        CASE(test_apertures_are_the_kernels_and_addresses_lie_in_all_of_them),
    };

    machine_choose(argc, argv, "mi300x:8");
    for (unsigned i = 0; machine.fake && i < COUNT_OF(machines); i++)
        peer_start(&others[i], attribute_is_true, (int)i);
    return run_cases(cases, COUNT_OF(cases));
}
