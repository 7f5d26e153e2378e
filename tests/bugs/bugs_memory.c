/* SPDX-License-Identifier: MIT */
/* Reported faults in memory that does not come back, shortage, and placement. */
#include "bugs.h"
#include "hook.h"

#include <errno.h>
#include <pthread.h>

#include "kfd/uapi.h"

/* D01, D03, D05, D07 */
static void test_each_unmap_and_release_gives_its_chunk_back_while_reserved(void **state)
{
    need_free(GIB(16));
    const unsigned chunks = 16;
    handle_t handles[16];
    void *base = reserve(GIB(64));
    uint64_t idle = free_bytes(0);

    for (unsigned i = 0; i < chunks; i++) {
        handles[i] = create(0, GIB(1));
        map_rw(at(base, i * GIB(1)), GIB(1), handles[i], 0);
        assert_int_equal(free_bytes(0), idle - (i + 1) * GIB(1));
    }
    for (unsigned i = 0; i < chunks; i++) {
        unmap(at(base, i * GIB(1)), GIB(1));
        assert_int_equal(free_bytes(0), idle - (chunks - i) * GIB(1));
        HIP_OK(hipMemRelease(handles[i]));
        assert_int_equal(free_bytes(0), idle - (chunks - i - 1) * GIB(1));
    }
    address_free(base, GIB(64));
}

/* D02: with access of the CPU in between, no view of the device may stay in the range. */
static void test_unmapped_range_is_plain_address_space_again(void **state)
{
    need_cpu_view();
    hipMemAccessDesc both[2] = {device_access(0, RW), host_access(RW)};
    void *base = reserve(GIB(1));
    uint64_t low = (uintptr_t)base, high = low + GIB(1);
    handle_t handle = create(0, MIB(4));
    struct map_lines idle = count_map_lines(low, high);

    assert_int_equal(idle.backed, 0);
    for (unsigned i = 0; i < 8; i++) {
        void *va = at(base, i * MIB(8));

        HIP_OK(hipMemMap(va, MIB(4), 0, handle, 0));
        HIP_OK(hipMemSetAccess(va, MIB(4), both, 2));
        assert_true(cpu_can_write(va));
        assert_int_equal(count_map_lines(low, high).backed, i + 1);
    }
    unmap(base, GIB(1));
    assert_int_equal(count_map_lines(low, high).backed, 0);
    assert_int_equal(count_map_lines(low, high).all, idle.all);
    assert_false(cpu_can_read(base));
    HIP_OK(hipMemRelease(handle));
    address_free(base, GIB(1));
}

/* D06 */
static void test_what_sleep_freed_can_always_be_had_again(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    handle_t handles[64];
    void *base;
    uint64_t chunk = free_bytes(0) / COUNT_OF(handles) / MIB(2) * MIB(2);

    base = reserve(chunk * COUNT_OF(handles));
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < COUNT_OF(handles); i++) {
            HIP_OK(hipMemCreate(&handles[i], chunk, &prop, 0));
            map_rw(at(base, i * chunk), chunk, handles[i], 0);
        }
        assert_true(free_bytes(0) < chunk);
        unmap(base, chunk * COUNT_OF(handles));
        for (unsigned i = 0; i < COUNT_OF(handles); i++)
            HIP_OK(hipMemRelease(handles[i]));
    }
    address_free(base, chunk * COUNT_OF(handles));
}

/* C04, D09, D14: shortage in the middle leaves what there is exact for every view, and a retry
 * works once there is room. */
static void test_shortage_leaves_earlier_pieces_exact_and_a_retry_works(void **state)
{
    need_cpu_view();
    hipMemAllocationProp prop = shareable_prop(0);
    const uint64_t unit = MIB(20);
    handle_t handles[16], extra = NULL;
    void *base = reserve(64 * unit), *cache = NULL;
    unsigned made = 0;

    HIP_OK(hipMalloc(&cache, free_bytes(0) - 10 * unit));
    for (; made < COUNT_OF(handles); made++) {
        hipError_t result = hipMemCreate(&handles[made], unit, &prop, 0);
        hipMemAccessDesc both[2] = {device_access(0, RW), host_access(RW)};

        if (result != hipSuccess) {
            HIP_IS(hipErrorOutOfMemory, result);
            break;
        }
        HIP_OK(hipMemMap(at(base, made * unit), unit, 0, handles[made], 0));
        HIP_OK(hipMemSetAccess(at(base, made * unit), unit, both, 2));
        gpu_stamp(0, at(base, made * unit), unit, made);
    }
    assert_true(made >= 8 && made < COUNT_OF(handles));
    HIP_IS(hipErrorOutOfMemory, hipMemCreate(&extra, unit, &prop, 0));
    assert_null(extra);
    for (unsigned i = 0; i < made; i++) {
        gpu_expect(0, at(base, i * unit), unit, i);
        cpu_expect(at(base, i * unit), unit, i);
        assert_true(host_matches(at(base, i * unit), unit, i));
        gpu_stamp(0, at(base, i * unit), unit, 100 + i);
        assert_true(host_matches(at(base, i * unit), unit, 100 + i));
    }
    HIP_OK(hipFree(cache));
    HIP_OK(hipMemCreate(&extra, unit, &prop, 0));
    HIP_OK(hipMemRelease(extra));
    unmap(base, made * unit);
    for (unsigned i = 0; i < made; i++)
        HIP_OK(hipMemRelease(handles[i]));
    address_free(base, 64 * unit);
}

/* D10: an address given up may go to another thread; never to two. */
struct racer {
    pthread_t thread;
    void *hint;
    unsigned got;
    hipError_t result;
};

static void *reserve_and_free(void *arg)
{
    struct racer *racer = arg;

    for (unsigned i = 0; i < 500 && racer->result == hipSuccess; i++) {
        void *va = NULL;

        racer->result = hipMemAddressReserve(&va, MIB(32), 0, racer->hint, 0);
        if (racer->result == hipSuccess) {
            racer->got += va == racer->hint;
            racer->result = hipMemAddressFree(va, MIB(32));
        }
    }
    return NULL;
}

static void test_hint_at_a_freed_address_goes_to_one_thread_and_others_get_another(void **state)
{
    struct racer racers[4];
    void *old = reserve(MIB(32)), *again = NULL;

    address_free(old, MIB(32));
    HIP_OK(hipMemAddressReserve(&again, MIB(32), 0, old, 0));
    assert_ptr_equal(again, old);
    address_free(again, MIB(32));
    for (unsigned i = 0; i < COUNT_OF(racers); i++) {
        racers[i] = (struct racer){.hint = old, .result = hipSuccess};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, reserve_and_free, &racers[i]), 0);
    }
    for (unsigned i = 0; i < COUNT_OF(racers); i++) {
        pthread_join(racers[i].thread, NULL);
        HIP_OK(racers[i].result);
    }
}

/* D13 */
static int refuse_alloc(struct hook *h, int fd, unsigned long request, void *arg)
{
    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ALLOC_MEMORY_OF_GPU))
        return -ENOMEM;
    return hook_pass_request(h, fd, request, arg);
}

static struct hook hook;

static void test_kernels_refusal_is_out_of_memory_with_a_reason(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    handle_t handle = NULL;
    void *va = NULL;

    if (!machine.fake)
        skip_case("makes the fake refuse");
    hook.request = refuse_alloc;
    HIP_IS(hipErrorOutOfMemory, hipMemCreate(&handle, MIB(2), &prop, 0));
    assert_true(strlen(kfd_error_text()) > 20);
    HIP_IS(hipErrorOutOfMemory, hipMalloc(&va, MIB(2)));
    hook.request = NULL;
    assert_null(handle);
    handle = create(0, MIB(2));
    HIP_OK(hipMemRelease(handle));
}

/* D14 */
static void test_large_allocations_end_in_out_of_memory_again_and_again(void **state)
{
    for (unsigned round = 0; round < 20; round++) {
        void *blocks[64] = {NULL};
        unsigned made = 0;
        uint64_t size = free_bytes(0) / 8 + MIB(64);

        while (made < COUNT_OF(blocks)) {
            hipError_t result = hipMalloc(&blocks[made], size);

            if (result != hipSuccess) {
                HIP_IS(hipErrorOutOfMemory, result);
                assert_null(blocks[made]);
                break;
            }
            made++;
        }
        assert_int_equal(made, 7);
        while (made)
            HIP_OK(hipFree(blocks[--made]));
    }
}

/* D18, G08 */
static void test_memory_comes_from_the_device_named_whatever_is_current(void **state)
{
    uint64_t left[KFD_MAX_DEVICES];

    need_devices(2);
    for (int current = 0; current < machine.devices; current++) {
        HIP_OK(hipSetDevice(current));
        for (int i = 0; i < machine.devices; i++)
            left[i] = free_bytes(i);
        for (int i = 0; i < machine.devices; i++) {
            handle_t handle = create(i, MIB(64));

            for (int d = 0; d < machine.devices; d++)
                assert_int_equal(free_bytes(d), left[d] - (d == i ? MIB(64) : 0));
            HIP_OK(hipMemRelease(handle));
        }
    }
    HIP_OK(hipSetDevice(0));
}

/* G01 */
static void test_new_memory_does_not_show_old_bytes(void **state)
{
    need_cpu_view();
    const uint64_t size = MIB(8);
    unsigned char *bytes = malloc(size);
    void *base = reserve(size);

    assert_non_null(bytes);
    for (unsigned round = 0; round < 3; round++) {
        put_piece(base, size, 0);
        HIP_OK(hipMemcpy(bytes, base, size, hipMemcpyDeviceToHost));
        for (uint64_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        HIP_OK(hipMemset(base, 0xab, size));
        unmap(base, size);
    }
    address_free(base, size);
    free(bytes);
}

/* D15, D16: an APU's memory is what its kernel says, in every call that tells it. */
static int apu_memory(int socket, int arg)
{
    size_t left = 0, total = 0, device_total = 0;
    hipDeviceProp_t prop;
    uint64_t available = 0;
    struct kfd *kfd = NULL;
    void *va = NULL;

    kfd_sys_set_default(NULL);
    machine_use("apu", NULL, 0);
    CHILD_TRUE(kfd_open(NULL, &kfd) == 0 && kfd_device_count(kfd) > 0);
    CHILD_TRUE(kfd_mem_available(kfd_device_at(kfd, 0), &available) == 0);
    kfd_close(kfd);
    CHILD_OK(hipMemGetInfo(&left, &total));
    CHILD_OK(hipDeviceTotalMem(&device_total, 0));
    CHILD_OK(hipGetDeviceProperties(&prop, 0));
    CHILD_TRUE(left == available);
    CHILD_TRUE(total == device_total && prop.totalGlobalMem == total);
    CHILD_TRUE(left <= total && total > 0);
    CHILD_OK(hipMalloc(&va, left / 2));
    CHILD_OK(hipFree(va));
    return 0;
}

static struct peer apu;

static void test_memory_of_an_apu_is_told_alike_by_every_call(void **state)
{
    if (apu.pid == 0)
        skip_case("needs the fake's apu");
    assert_int_equal(peer_wait(&apu), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_memory_of_an_apu_is_told_alike_by_every_call),
        CASE(test_each_unmap_and_release_gives_its_chunk_back_while_reserved),
        CASE(test_unmapped_range_is_plain_address_space_again),
        CASE(test_what_sleep_freed_can_always_be_had_again),
        CASE(test_shortage_leaves_earlier_pieces_exact_and_a_retry_works),
        CASE(test_hint_at_a_freed_address_goes_to_one_thread_and_others_get_another),
        CASE(test_kernels_refusal_is_out_of_memory_with_a_reason),
        CASE(test_large_allocations_end_in_out_of_memory_again_and_again),
        CASE(test_memory_comes_from_the_device_named_whatever_is_current),
        CASE(test_new_memory_does_not_show_old_bytes),
    };

    machine_choose(argc, argv, "mi300x:8");
    if (machine.fake) {
        peer_start(&apu, apu_memory, 0);
        hook_init(&hook, fake_sys(machine.fake));
        kfd_sys_set_default(&hook.sys);
    }
    return run_cases(cases, COUNT_OF(cases));
}
