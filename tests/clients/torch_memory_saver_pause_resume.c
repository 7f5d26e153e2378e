/* SPDX-License-Identifier: MIT */
/*
 * torch_memory_saver: each tensor segment is one handle and one reservation of the size asked for.
 * Pausing saves the bytes in pinned host memory, unmaps and releases; resuming maps new memory at
 * the old address and copies the bytes back. Out of memory is the one error it passes on.
 */
#include "common.h"

#define SEGMENTS 300

struct segment {
    struct piece piece;
    void *saved; /* pinned host memory while paused */
    int device;
};

static hipError_t segment_map(struct segment *s)
{
    hipMemAllocationProp prop = device_prop(s->device);
    hipError_t result = hipMemCreate(&s->piece.handle, s->piece.size, &prop, 0);

    if (result != hipSuccess)
        return result;
    if (!s->piece.va)
        HIP_OK(hipMemAddressReserve(&s->piece.va, s->piece.size, 0, NULL, 0));
    HIP_OK(hipMemMap(s->piece.va, s->piece.size, 0, s->piece.handle, 0));
    HIP_OK(set_access(s->piece.va, s->piece.size, s->device, hipMemAccessFlagsProtReadWrite));
    return hipSuccess;
}

static void segment_unmap(struct segment *s)
{
    HIP_OK(hipMemUnmap(s->piece.va, s->piece.size));
    HIP_OK(hipMemRelease(s->piece.handle));
}

static void segment_free(struct segment *s)
{
    HIP_OK(hipDeviceSynchronize());
    segment_unmap(s);
    HIP_OK(hipMemAddressFree(s->piece.va, s->piece.size));
}

/* Torch's segment sizes: 2 MiB, 20 MiB, and larger blocks in steps of 2 MiB. */
static uint64_t segment_size(unsigned i)
{
    return i % 3 == 0 ? MIB(2) : i % 3 == 1 ? MIB(20) : MIB(2) * (11 + i);
}

static void test_pause_frees_and_resume_restores_hundreds_of_segments(void **state)
{
    const unsigned count = scaled_count(SEGMENTS);
    static struct segment segments[SEGMENTS];
    uint64_t idle, total = 0;

    need_vmm();
    memset(segments, 0, sizeof(segments));
    for (unsigned i = 0; i < count; i++) {
        segments[i].piece.size = segment_size(i);
        total += segments[i].piece.size;
    }
    need_free(total);
    idle = free_bytes(0);
    for (unsigned i = 0; i < count; i++) {
        HIP_OK(segment_map(&segments[i]));
        gpu_stamp(0, segments[i].piece.va, segments[i].piece.size, i);
    }
    assert_true(free_bytes(0) <= idle - total);
    for (unsigned i = 0; i < count; i++)
        segment_unmap(&segments[i]);
    assert_int_equal(free_bytes(0), idle);
    for (unsigned i = 0; i < count; i++) {
        void *old = segments[i].piece.va;

        HIP_OK(segment_map(&segments[i]));
        assert_ptr_equal(segments[i].piece.va, old);
        gpu_stamp(0, old, segments[i].piece.size, 1000 + i);
    }
    for (unsigned i = 0; i < count; i++) {
        gpu_expect(0, segments[i].piece.va, segments[i].piece.size, 1000 + i);
        segment_free(&segments[i]);
    }
}

/* Every byte goes out to the host and back; 20 segments, so that all of them can be copied whole.
 */
static void test_bytes_saved_in_pinned_memory_come_back(void **state)
{
    need_cpu_view();
    struct segment segments[20] = {0};
    const unsigned count = scaled_count(COUNT_OF(segments));
    uint32_t *check = malloc(MIB(20));

    need_vmm();
    assert_non_null(check);
    for (unsigned i = 0; i < count; i++) {
        struct segment *s = &segments[i];

        s->piece.size = i % 2 ? MIB(20) : MIB(2);
        HIP_OK(segment_map(s));
        for (uint64_t w = 0; w < s->piece.size / 4; w++)
            check[w] = (uint32_t)(w * 2654435761u + i);
        HIP_OK(hipMemcpy(s->piece.va, check, s->piece.size, hipMemcpyHostToDevice));
    }
    for (unsigned i = 0; i < count; i++) {
        struct segment *s = &segments[i];

        HIP_OK(hipHostMalloc(&s->saved, s->piece.size, 0));
        HIP_OK(hipMemcpy(s->saved, s->piece.va, s->piece.size, hipMemcpyDeviceToHost));
        segment_unmap(s);
    }
    for (unsigned i = 0; i < count; i++) {
        struct segment *s = &segments[i];

        HIP_OK(segment_map(s));
        HIP_OK(hipMemcpy(s->piece.va, s->saved, s->piece.size, hipMemcpyHostToDevice));
        HIP_OK(hipFreeHost(s->saved));
        memset(check, 0, s->piece.size);
        HIP_OK(hipMemcpy(check, s->piece.va, s->piece.size, hipMemcpyDeviceToHost));
        for (uint64_t w = 0; w < s->piece.size / 4; w++) {
            if (check[w] != (uint32_t)(w * 2654435761u + i))
                fail_msg("segment %u: word %llu", i, (unsigned long long)w);
        }
        segment_free(s);
    }
    free(check);
}

static void test_segments_of_one_process_live_on_several_devices(void **state)
{
    struct segment *segments = calloc((size_t)machine.devices, sizeof(*segments));

    need_vmm();
    assert_non_null(segments);
    for (int i = 0; i < machine.devices; i++) {
        uint64_t left = free_bytes(i);

        segments[i].device = i;
        segments[i].piece.size = scaled(GIB(1));
        HIP_OK(segment_map(&segments[i]));
        assert_true(free_bytes(i) <= left - scaled(GIB(1)));
        gpu_stamp(i, segments[i].piece.va, scaled(GIB(1)), 77 + i);
    }
    for (int i = 0; i < machine.devices; i++) {
        gpu_expect(i, segments[i].piece.va, scaled(GIB(1)), 77 + i);
        segment_free(&segments[i]);
    }
    free(segments);
}

/* The client tells shortage from every other error, and torch then frees its caches and retries. */
static void test_shortage_is_out_of_memory_and_a_retry_after_pause_works(void **state)
{
    struct segment big = {.piece.size = 0}, small = {.piece.size = scaled(GIB(4))};
    size_t left = 0, total = 0;

    need_vmm();
    HIP_OK(hipMemGetInfo(&left, &total));
    big.piece.size = left / MIB(2) * MIB(2) - scaled(GIB(1));
    HIP_OK(segment_map(&big));
    HIP_IS(hipErrorOutOfMemory, segment_map(&small));
    gpu_stamp(0, big.piece.va, big.piece.size, 5);
    segment_unmap(&big);
    HIP_OK(segment_map(&small));
    segment_free(&small);
    HIP_OK(segment_map(&big));
    segment_free(&big);
}

/* It does not round, and an older version passes a NUMA number as flags. */
static void test_odd_sizes_and_flags_are_invalid_not_out_of_memory(void **state)
{
    struct segment odd = {.piece.size = 6912};
    void *va = NULL;

    need_vmm();
    HIP_INVALID(segment_map(&odd));
    HIP_INVALID(hipMemAddressReserve(&va, MIB(2),
                                     granularity(0, hipMemAllocationGranularityMinimum), NULL, 1));
    assert_null(va);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_pause_frees_and_resume_restores_hundreds_of_segments),
        CASE(test_bytes_saved_in_pinned_memory_come_back),
        CASE(test_segments_of_one_process_live_on_several_devices),
        CASE(test_shortage_is_out_of_memory_and_a_retry_after_pause_works),
        CASE(test_odd_sizes_and_flags_are_invalid_not_out_of_memory),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
