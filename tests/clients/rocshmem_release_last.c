/* SPDX-License-Identifier: MIT */
/*
 * rocSHMEM's symmetric heap: uncached memory of 1 GiB, open to the device and the host, exported to
 * the processes of the node, each of which maps every heap. The range is unmapped and freed first
 * and the handle released last.
 */
#include "common.h"

#include <unistd.h>

#define HEAP scaled(GIB(1))
#define WORDS MIB(1) /* what a rank writes */
#define RANKS 4

struct heap {
    struct piece piece;
    int fd;
};

static hipError_t heap_make(struct heap *heap, int device)
{
    hipMemAllocationProp prop = shareable_prop(device);
    hipMemAccessDesc both[2] = {device_access(device, hipMemAccessFlagsProtReadWrite),
                                host_access(hipMemAccessFlagsProtReadWrite)};
    size_t granule = 0;
    hipError_t result;

    prop.type = hipMemAllocationTypeUncached;
    result = hipMemGetAllocationGranularity(&granule, &prop, hipMemAllocationGranularityMinimum);
    if (result != hipSuccess)
        return result;
    heap->piece.size = round_up(HEAP, granule);
    result = hipMemCreate(&heap->piece.handle, heap->piece.size, &prop, 0);
    if (result != hipSuccess)
        return result;
    result = hipMemAddressReserve(&heap->piece.va, heap->piece.size, 0, NULL, 0);
    if (result != hipSuccess)
        return result;
    result = hipMemMap(heap->piece.va, heap->piece.size, 0, heap->piece.handle, 0);
    if (result != hipSuccess)
        return result;
    return hipMemSetAccess(heap->piece.va, heap->piece.size, both, 2);
}

static hipError_t heap_drop(struct heap *heap)
{
    hipError_t result = hipMemUnmap(heap->piece.va, heap->piece.size);

    if (result == hipSuccess)
        result = hipMemAddressFree(heap->piece.va, heap->piece.size);
    if (result == hipSuccess)
        result = hipMemRelease(heap->piece.handle);
    return result;
}

static void test_handle_outlives_its_range(void **state)
{
    need_cpu_view();
    struct heap heap = {0};
    uint64_t left;

    need_vmm();
    left = free_bytes(0);
    HIP_OK(heap_make(&heap, 0));
    host_stamp(heap.piece.va, heap.piece.size, 1);
    gpu_expect(0, heap.piece.va, heap.piece.size, 1);
    gpu_stamp(0, heap.piece.va, heap.piece.size, 2);
    assert_true(host_matches(heap.piece.va, heap.piece.size, 2));
    HIP_OK(hipMemUnmap(heap.piece.va, heap.piece.size));
    HIP_OK(hipMemAddressFree(heap.piece.va, heap.piece.size));
    assert_true(free_bytes(0) <= left - heap.piece.size);
    HIP_OK(hipMemRelease(heap.piece.handle));
    assert_int_equal(free_bytes(0), left);
}

/* The library maps a buffer of the user again at an address of its own. */
static void test_users_buffer_gets_a_second_address(void **state)
{
    need_cpu_view();
    struct heap heap = {0};
    hipMemGenericAllocationHandle_t handle = NULL;
    void *alias = NULL;

    need_vmm();
    HIP_OK(heap_make(&heap, 0));
    HIP_OK(hipMemRetainAllocationHandle(&handle, at(heap.piece.va, HEAP / 3 * 2)));
    HIP_OK(hipMemAddressReserve(&alias, heap.piece.size, 0, NULL, 0));
    HIP_OK(hipMemMap(alias, heap.piece.size, 0, handle, 0));
    HIP_OK(set_access(alias, heap.piece.size, 0, hipMemAccessFlagsProtReadWrite));
    gpu_stamp(0, alias, heap.piece.size, 9);
    gpu_expect(0, heap.piece.va, heap.piece.size, 9);
    assert_true(host_matches(heap.piece.va, heap.piece.size, 9));
    HIP_OK(hipMemUnmap(alias, heap.piece.size));
    HIP_OK(hipMemAddressFree(alias, heap.piece.size));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(heap_drop(&heap));
}

/* Maps the heaps of all ranks, checks each owner's words, writes this rank's words into each. */
static int exchange(int rank, const int *fds)
{
    void *view[RANKS] = {NULL};
    hipMemGenericAllocationHandle_t handles[RANKS];

    for (int i = 0; i < RANKS; i++) {
        hipMemAccessDesc both[2] = {device_access(0, hipMemAccessFlagsProtReadWrite),
                                    host_access(hipMemAccessFlagsProtReadWrite)};

        CHILD_OK(hipMemImportFromShareableHandle(&handles[i], (void *)(uintptr_t)fds[i],
                                                 hipMemHandleTypePosixFileDescriptor));
        CHILD_OK(hipMemAddressReserve(&view[i], HEAP, 0, NULL, 0));
        CHILD_OK(hipMemMap(view[i], HEAP, 0, handles[i], 0));
        CHILD_OK(hipMemSetAccess(view[i], HEAP, both, 2));
        close(fds[i]);
        CHILD_TRUE(host_matches(view[i], WORDS, (uint64_t)i));
        host_stamp(at(view[i], HEAP / 8 * (rank + 1)), WORDS, (uint64_t)(100 * rank + i));
    }
    for (int i = 0; i < RANKS; i++) {
        CHILD_OK(hipMemUnmap(view[i], HEAP));
        CHILD_OK(hipMemAddressFree(view[i], HEAP));
        CHILD_OK(hipMemRelease(handles[i]));
    }
    return 0;
}

static int rank_main(int socket, int rank)
{
    struct heap heap = {0};
    int fds[RANKS], devices = 0;
    char go;

    CHILD_OK(hipGetDeviceCount(&devices));
    CHILD_NEEDS(all_peers() && cpu_sees_memory(rank % devices));
    CHILD_OK(heap_make(&heap, rank % devices));
    host_stamp(heap.piece.va, WORDS, (uint64_t)rank);
    CHILD_OK(hipMemExportToShareableHandle(&heap.fd, heap.piece.handle,
                                           hipMemHandleTypePosixFileDescriptor, 0));
    CHILD_TRUE(send_message(socket, "f", 1, &heap.fd, 1) == 0);
    close(heap.fd);
    CHILD_TRUE(receive_message(socket, &go, 1, fds, RANKS) == 0);
    if (exchange(rank, fds) != 0)
        return 1;
    CHILD_TRUE(send_message(socket, "d", 1, NULL, 0) == 0);
    CHILD_TRUE(receive_message(socket, &go, 1, NULL, 0) == 0);
    for (int i = 0; i < RANKS; i++)
        CHILD_TRUE(
            host_matches(at(heap.piece.va, HEAP / 8 * (i + 1)), WORDS, (uint64_t)(100 * i + rank)));
    CHILD_OK(heap_drop(&heap));
    return 0;
}

static struct peer ranks[RANKS];

static void test_every_rank_maps_every_heap(void **state)
{
    int fds[RANKS];
    char word;

    for (int i = 0; i < RANKS; i++)
        if (receive_message(ranks[i].socket, &word, 1, &fds[i], 1) != 0)
            children_gone(ranks, RANKS);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(send_message(ranks[i].socket, "g", 1, fds, RANKS), 0);
    for (int i = 0; i < RANKS; i++)
        close(fds[i]);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(receive_message(ranks[i].socket, &word, 1, NULL, 0), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(send_message(ranks[i].socket, "e", 1, NULL, 0), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(peer_wait(&ranks[i]), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_every_rank_maps_every_heap),
        CASE(test_handle_outlives_its_range),
        CASE(test_users_buffer_gets_a_second_address),
    };

    machine_choose(argc, argv, "mi300x:8");
    for (int i = 0; i < RANKS; i++)
        peer_start(&ranks[i], rank_main, i);
    return run_cases(cases, COUNT_OF(cases));
}
