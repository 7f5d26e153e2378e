/* SPDX-License-Identifier: MIT */
/*
 * MORI's symmetric memory: each rank reserves one range with a slot for every rank, aligned to the
 * chunk; its own slot is filled chunk by chunk (create, map, set-access, export) and the others'
 * slots with what they export, imported by value. Any rank's chunk lies at the same offset of its
 * slot everywhere.
 */
#include "common.h"

#include <unistd.h>

#define RANKS 3
#define CHUNKS 4

static uint64_t chunk_size(void)
{
    hipMemAllocationProp prop = device_prop(0);
    size_t granule = 0;

    if (hipMemGetAllocationGranularity(&granule, &prop, hipMemAllocationGranularityRecommended) !=
        hipSuccess)
        (void)hipMemGetAllocationGranularity(&granule, &prop, hipMemAllocationGranularityMinimum);
    return granule > scaled(MIB(64)) ? granule : scaled(MIB(64));
}

static uint64_t chunk_seed(int owner, int writer, unsigned chunk)
{
    return (uint64_t)owner * 1000 + (uint64_t)writer * 100 + chunk;
}

static int fill_own_slot(int rank, int device, void *slot, uint64_t chunk, int socket)
{
    hipMemAllocationProp prop = shareable_prop(device);
    int fds[CHUNKS];

    for (unsigned i = 0; i < CHUNKS; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        void *va = at(slot, i * chunk);

        CHILD_OK(hipMemCreate(&handle, chunk, &prop, 0));
        CHILD_OK(hipMemMap(va, chunk, 0, handle, 0));
        CHILD_OK(set_access(va, chunk, device, hipMemAccessFlagsProtReadWrite));
        CHILD_OK(
            hipMemExportToShareableHandle(&fds[i], handle, hipMemHandleTypePosixFileDescriptor, 0));
        CHILD_OK(hipMemRelease(handle));
        cpu_stamp(va, chunk / 4, chunk_seed(rank, rank, i));
    }
    CHILD_TRUE(send_message(socket, "f", 1, fds, CHUNKS) == 0);
    for (unsigned i = 0; i < CHUNKS; i++)
        close(fds[i]);
    return 0;
}

static int map_peer_slot(int device, void *slot, uint64_t chunk, const int *fds)
{
    for (unsigned i = 0; i < CHUNKS; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        void *va = at(slot, i * chunk);

        CHILD_OK(hipMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fds[i],
                                                 hipMemHandleTypePosixFileDescriptor));
        CHILD_OK(hipMemMap(va, chunk, 0, handle, 0));
        CHILD_OK(set_access(va, chunk, device, hipMemAccessFlagsProtReadWrite));
        CHILD_OK(hipMemRelease(handle));
        close(fds[i]);
    }
    return 0;
}

/* Reads every owner's own words, then puts words of this rank into a quarter of each chunk. */
static int use_all_slots(int rank, void *base, uint64_t chunk)
{
    for (int owner = 0; owner < RANKS; owner++) {
        for (unsigned i = 0; i < CHUNKS; i++) {
            void *va = at(base, ((uint64_t)owner * CHUNKS + i) * chunk);

            CHILD_TRUE(cpu_matches(va, chunk / 4, chunk_seed(owner, owner, i)));
            if (owner != rank)
                cpu_stamp(at(va, chunk / 4 * (uint64_t)(1 + (rank + RANKS - owner) % RANKS)),
                          chunk / 4, chunk_seed(owner, rank, i));
        }
    }
    return 0;
}

static int check_own_slot(int rank, void *base, uint64_t chunk)
{
    for (int writer = 0; writer < RANKS; writer++) {
        for (unsigned i = 0; writer != rank && i < CHUNKS; i++) {
            void *va = at(base, ((uint64_t)rank * CHUNKS + i) * chunk);

            va = at(va, chunk / 4 * (uint64_t)(1 + (writer + RANKS - rank) % RANKS));
            CHILD_TRUE(cpu_matches(va, chunk / 4, chunk_seed(rank, writer, i)));
        }
    }
    return 0;
}

static int rank_main(int socket, int rank)
{
    int fds[RANKS * CHUNKS], devices = 0, device;
    uint64_t chunk, slot, left;
    void *base = NULL;
    char word;

    CHILD_OK(hipGetDeviceCount(&devices));
    device = rank % devices;
    CHILD_NEEDS(all_peers() && cpu_sees_memory(device));
    CHILD_OK(hipSetDevice(device));
    chunk = chunk_size();
    slot = CHUNKS * chunk;
    left = free_bytes(device);
    CHILD_OK(hipMemAddressReserve(&base, RANKS * slot, chunk, NULL, 0));
    CHILD_TRUE((uintptr_t)base % chunk == 0);
    if (fill_own_slot(rank, device, at(base, rank * slot), chunk, socket) != 0)
        return 1;
    CHILD_TRUE(receive_message(socket, &word, 1, fds, RANKS * CHUNKS) == 0);
    for (int i = 0; i < RANKS; i++) {
        if (i != rank && map_peer_slot(device, at(base, i * slot), chunk, &fds[i * CHUNKS]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < CHUNKS; i++)
        close(fds[rank * CHUNKS + i]);
    if (use_all_slots(rank, base, chunk) != 0)
        return 1;
    CHILD_TRUE(send_message(socket, "d", 1, NULL, 0) == 0);
    CHILD_TRUE(receive_message(socket, &word, 1, NULL, 0) == 0);
    if (check_own_slot(rank, base, chunk) != 0)
        return 1;
    CHILD_OK(hipMemUnmap(base, RANKS * slot));
    CHILD_OK(hipMemAddressFree(base, RANKS * slot));
    CHILD_TRUE(send_message(socket, "u", 1, NULL, 0) == 0);
    CHILD_TRUE(receive_message(socket, &word, 1, NULL, 0) == 0);
    /* Where each rank has a device of its own, nobody else takes memory of it. */
    CHILD_TRUE(devices < RANKS || free_bytes(device) == left);
    return 0;
}

static struct peer ranks[RANKS];

static void await_all(void)
{
    char word;

    for (int i = 0; i < RANKS; i++)
        assert_int_equal(receive_message(ranks[i].socket, &word, 1, NULL, 0), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(send_message(ranks[i].socket, "g", 1, NULL, 0), 0);
}

static void test_ranks_reach_each_other_through_equal_slots(void **state)
{
    int fds[RANKS * CHUNKS];
    char word;

    for (int i = 0; i < RANKS; i++)
        if (receive_message(ranks[i].socket, &word, 1, &fds[i * CHUNKS], CHUNKS) != 0)
            children_gone(ranks, RANKS);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(send_message(ranks[i].socket, "f", 1, fds, RANKS * CHUNKS), 0);
    for (unsigned i = 0; i < COUNT_OF(fds); i++)
        close(fds[i]);
    await_all();
    await_all();
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(peer_wait(&ranks[i]), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_ranks_reach_each_other_through_equal_slots),
    };

    machine_choose(argc, argv, "mi300x:8");
    for (int i = 0; i < RANKS; i++)
        peer_start(&ranks[i], rank_main, i);
    return run_cases(cases, COUNT_OF(cases));
}
