/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's expandable segments: a range of 9/8 of the device's memory, filled in units of 2 MiB
 * (small pool) or 20 MiB (large pool). A growth creates and maps its units, then gives access to
 * the run, local device first and one call per peer. Shrinking leaves holes, which are refilled
 * lowest first. Another process takes the units over by descriptor number with pidfd_getfd.
 */
#include "common.h"

#include <sys/prctl.h>
#include <unistd.h>

#define MAX_UNITS 512

struct segment {
    void *base;
    uint64_t size, unit;
    int device;
    struct piece units[MAX_UNITS]; /* handle NULL: a hole */
    int fds[MAX_UNITS];            /* exported descriptor, -1: none */
};

static void segment_reserve(struct segment *s, int device, uint64_t unit)
{
    memset(s, 0, sizeof(*s));
    memset(s->fds, 0xff, sizeof(s->fds));
    s->device = device;
    s->unit = unit;
    s->size = round_up(total_bytes(device) / 8 * 9, unit);
    HIP_OK(hipMemAddressReserve(&s->base, s->size, 0, NULL, 0));
}

static void run_access(struct segment *s, unsigned first, unsigned count, int peers)
{
    void *va = at(s->base, first * s->unit);

    HIP_OK(set_access(va, count * s->unit, s->device, hipMemAccessFlagsProtReadWrite));
    for (int i = 0; i < peers; i++) {
        if (i != s->device)
            HIP_OK(set_access(va, count * s->unit, i, hipMemAccessFlagsProtReadWrite));
    }
}

static void unit_fill(struct segment *s, unsigned i)
{
    hipMemAllocationProp prop = shareable_prop(s->device);

    s->units[i].va = at(s->base, i * s->unit);
    HIP_OK(hipMemCreate(&s->units[i].handle, s->unit, &prop, 0));
    HIP_OK(hipMemMap(s->units[i].va, s->unit, 0, s->units[i].handle, 0));
}

/* Fills [first, first + count), holes only, lowest first; access per contiguous new run. */
static void segment_grow(struct segment *s, unsigned first, unsigned count, int peers)
{
    for (unsigned i = first; i < first + count;) {
        unsigned run = 0;

        while (i + run < first + count && !s->units[i + run].handle)
            unit_fill(s, i + run++);
        if (run)
            run_access(s, i, run, peers);
        i += run ? run : 1;
    }
}

static void segment_shrink(struct segment *s, unsigned first, unsigned count)
{
    HIP_OK(hipDeviceSynchronize());
    for (unsigned i = first; i < first + count; i++) {
        if (!s->units[i].handle)
            continue;
        HIP_OK(hipMemUnmap(s->units[i].va, s->unit));
        if (s->fds[i] >= 0)
            close(s->fds[i]);
        s->fds[i] = -1;
        HIP_OK(hipMemRelease(s->units[i].handle));
        s->units[i].handle = NULL;
    }
}

static void segment_free(struct segment *s)
{
    segment_shrink(s, 0, MAX_UNITS);
    HIP_OK(hipMemAddressFree(s->base, s->size));
}

static void check_units(struct segment *s, int device)
{
    for (unsigned i = 0; i < MAX_UNITS; i++) {
        void *va = at(s->base, i * s->unit);

        if (s->units[i].handle)
            gpu_expect(device, va, s->unit, i);
        else
            gpu_unmapped(device, va);
    }
}

static void stamp_units(struct segment *s, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        gpu_stamp(s->device, s->units[i].va, s->unit, i);
}

static void grow_and_shrink(uint64_t unit, int peers)
{
    static struct segment s;

    segment_reserve(&s, 0, unit);
    segment_grow(&s, 0, 300, peers);
    stamp_units(&s, 0, 300);
    /* 115 neighbouring units go, then every seventh of the rest. */
    segment_shrink(&s, 100, 115);
    for (unsigned i = 0; i < 300; i += 7)
        segment_shrink(&s, i, 1);
    check_units(&s, 0);
    segment_grow(&s, 0, 320, peers);
    for (unsigned i = 0; i < 320; i++)
        gpu_stamp(0, s.units[i].va, unit, i);
    check_units(&s, 0);
    for (int d = 1; d < peers; d++)
        check_units(&s, d);
    segment_free(&s);
}

static void test_small_pool_holes_are_refilled_lowest_first(void **state)
{
    need_vmm();
    grow_and_shrink(MIB(2), 1);
}

static void test_large_pool_holes_are_refilled_lowest_first(void **state)
{
    need_vmm();
    need_free(320 * scaled(MIB(20)));
    grow_and_shrink(scaled(MIB(20)), 1);
}

static void test_every_peer_sees_every_unit(void **state)
{
    need_peers();
    need_vmm();
    need_devices(2);
    grow_and_shrink(MIB(2), machine.devices);
}

/* A handle shared by descriptor is one memory for both sides; the importer closes at once. */
struct offer {
    pid_t pid;
    uint64_t unit;
    int fds[8];
};

static int importer(int socket, int arg)
{
    struct offer offer;
    uint64_t size;
    void *base = NULL;
    char answer = 1;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (receive_message(socket, &offer, sizeof(offer), NULL, 0) != 0)
        return 1;
    CHILD_NEEDS(cpu_sees_memory(0));
    size = COUNT_OF(offer.fds) * offer.unit;
    CHILD_OK(hipMemAddressReserve(&base, size, 0, NULL, 0));
    for (unsigned i = 0; i < COUNT_OF(offer.fds); i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        int fd = descriptor_of_process(offer.pid, offer.fds[i]);

        if (fd < 0)
            CHILD_NEEDS(
                false); /* this system does not let one process take another's descriptors */
        CHILD_OK(hipMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fd,
                                                 hipMemHandleTypePosixFileDescriptor));
        close(fd);
        CHILD_OK(hipMemMap(at(base, i * offer.unit), offer.unit, 0, handle, 0));
        CHILD_OK(hipMemRelease(handle));
    }
    CHILD_OK(set_access(base, size, 0, hipMemAccessFlagsProtReadWrite));
    for (unsigned i = 0; i < COUNT_OF(offer.fds); i++) {
        CHILD_TRUE(cpu_matches(at(base, i * offer.unit), offer.unit, i));
        cpu_stamp(at(base, i * offer.unit), offer.unit, 500 + i);
    }
    CHILD_OK(hipMemUnmap(base, size));
    CHILD_OK(hipMemAddressFree(base, size));
    return send_message(socket, &answer, 1, NULL, 0) == 0 ? 0 : 1;
}

static struct peer reader;

static void test_units_are_taken_over_by_descriptor_number(void **state)
{
    static struct segment s;
    struct offer offer = {.pid = getpid(), .unit = MIB(20)};
    int status;
    char answer = 0;

    need_vmm();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    segment_reserve(&s, 0, offer.unit);
    segment_grow(&s, 0, COUNT_OF(offer.fds), 1);
    stamp_units(&s, 0, COUNT_OF(offer.fds));
    for (unsigned i = 0; i < COUNT_OF(offer.fds); i++) {
        HIP_OK(hipMemExportToShareableHandle(&s.fds[i], s.units[i].handle,
                                             hipMemHandleTypePosixFileDescriptor, 0));
        offer.fds[i] = s.fds[i];
    }
    assert_int_equal(send_message(reader.socket, &offer, sizeof(offer), NULL, 0), 0);
    (void)receive_message(reader.socket, &answer, 1, NULL, 0);
    status = peer_wait(&reader);
    if (status == 0) {
        assert_int_equal(answer, 1);
        for (unsigned i = 0; i < COUNT_OF(offer.fds); i++)
            gpu_expect(0, s.units[i].va, s.unit, 500 + i);
    }
    segment_free(&s);
    if (status == 77)
        skip_case("pidfd_getfd is not permitted here, or the CPU does not see the memory");
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_units_are_taken_over_by_descriptor_number),
        CASE(test_small_pool_holes_are_refilled_lowest_first),
        CASE(test_large_pool_holes_are_refilled_lowest_first),
        CASE(test_every_peer_sees_every_unit),
    };

    machine_choose(argc, argv, "mi300x:8");
    peer_start(&reader, importer, 0);
    return run_cases(cases, COUNT_OF(cases));
}
