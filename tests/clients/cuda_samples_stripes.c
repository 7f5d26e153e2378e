/* SPDX-License-Identifier: MIT */
/*
 * Two CUDA samples. vectorAddMMAP: one range striped over all devices, each stripe created on its
 * device, mapped and released at once, one set-access over the whole range for all devices, one
 * unmap over all. memMapIpc: a parent exports one buffer per device; a child reserves room for all
 * with the buffer's size as alignment, imports, maps, releases at once, grants, and closes.
 */
#include "common.h"

#include <unistd.h>

#define SHARED MIB(16)

static uint64_t common_granularity(void)
{
    uint64_t most = 0;

    for (int i = 0; i < machine.devices; i++) {
        uint64_t one = granularity(i, hipMemAllocationGranularityMinimum);

        most = one > most ? one : most;
    }
    return most;
}

static void *stripes_make(uint64_t stripe, uint64_t align)
{
    hipMemAccessDesc access[KFD_MAX_DEVICES];
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, stripe * machine.devices, align, NULL, 0));
    assert_int_equal((uintptr_t)base % (align ? align : 1), 0);
    for (int i = 0; i < machine.devices; i++) {
        hipMemAllocationProp prop = device_prop(i);
        hipMemGenericAllocationHandle_t handle = NULL;

        HIP_OK(hipMemCreate(&handle, stripe, &prop, 0));
        HIP_OK(hipMemMap(at(base, i * stripe), stripe, 0, handle, 0));
        HIP_OK(hipMemRelease(handle));
        access[i] = device_access(i, hipMemAccessFlagsProtReadWrite);
    }
    HIP_OK(hipMemSetAccess(base, stripe * machine.devices, access, machine.devices));
    return base;
}

static void stripes_check(void *base, uint64_t stripe)
{
    for (int i = 0; i < machine.devices; i++) {
        int writer = (i + 1) % machine.devices;

        gpu_stamp(writer, at(base, i * stripe), stripe, 10 * i);
        for (int d = 0; d < machine.devices; d++)
            gpu_expect(d, at(base, i * stripe), stripe, 10 * i);
    }
}

static void test_vector_is_striped_over_all_devices(void **state)
{
    need_peers();
    const uint64_t wanted = 50000 * sizeof(float); /* the sample's vectors */
    uint64_t stripe, left[KFD_MAX_DEVICES];
    void *base;

    need_vmm();
    stripe = round_up(round_up(wanted, machine.devices) / machine.devices, common_granularity());
    for (int i = 0; i < machine.devices; i++)
        left[i] = free_bytes(i);
    base = stripes_make(stripe, 0);
    stripes_check(base, stripe);
    HIP_OK(hipMemUnmap(base, stripe * machine.devices));
    for (int i = 0; i < machine.devices; i++)
        assert_int_equal(free_bytes(i), left[i]);
    HIP_OK(hipMemAddressFree(base, stripe * machine.devices));
}

/* The same with stripes that are seen in each device's free memory. */
static void test_each_stripe_takes_memory_of_its_device(void **state)
{
    need_peers();
    const uint64_t stripe = MIB(512);
    uint64_t left[KFD_MAX_DEVICES];
    void *base;

    need_vmm();
    for (int i = 0; i < machine.devices; i++)
        left[i] = free_bytes(i);
    base = stripes_make(stripe, GIB(1));
    for (int i = 0; i < machine.devices; i++)
        assert_int_equal(free_bytes(i), left[i] - stripe);
    stripes_check(base, stripe);
    HIP_OK(hipMemUnmap(base, stripe * machine.devices));
    HIP_OK(hipMemAddressFree(base, stripe * machine.devices));
}

static int sharer(int socket, int arg)
{
    hipMemAccessDesc access[KFD_MAX_DEVICES];
    int fds[KFD_MAX_DEVICES], devices = 0;
    unsigned count = 0;
    void *base = NULL;

    CHILD_TRUE(receive_message(socket, &count, sizeof(count), fds, (unsigned)arg) == 0);
    CHILD_OK(hipGetDeviceCount(&devices));
    CHILD_TRUE((unsigned)devices == count);
    CHILD_NEEDS(all_peers() && cpu_sees_memory(0));
    CHILD_OK(hipMemAddressReserve(&base, count * SHARED, SHARED, NULL, 0));
    CHILD_TRUE((uintptr_t)base % SHARED == 0);
    for (unsigned i = 0; i < count; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;

        CHILD_OK(hipMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fds[i],
                                                 hipMemHandleTypePosixFileDescriptor));
        CHILD_OK(hipMemMap(at(base, i * SHARED), SHARED, 0, handle, 0));
        CHILD_OK(hipMemRelease(handle));
        access[i] = device_access((int)i, hipMemAccessFlagsProtReadWrite);
    }
    CHILD_OK(hipMemSetAccess(base, count * SHARED, access, count));
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
    for (unsigned i = 0; i < count; i++) {
        CHILD_TRUE(cpu_matches(at(base, i * SHARED), SHARED, i));
        cpu_stamp(at(base, i * SHARED), SHARED, 60 + i);
    }
    CHILD_OK(hipMemUnmap(base, count * SHARED));
    CHILD_OK(hipMemAddressFree(base, count * SHARED));
    return 0;
}

static struct peer child;
static int child_devices;

static void test_child_process_maps_one_buffer_of_every_device(void **state)
{
    struct piece buffers[KFD_MAX_DEVICES];
    int fds[KFD_MAX_DEVICES], status;
    unsigned count;

    HIP_OK(hipGetDeviceCount(&machine.devices));
    count = (unsigned)machine.devices;
    assert_int_equal(machine.devices, child_devices);
    for (unsigned i = 0; i < count; i++) {
        hipMemAllocationProp prop = shareable_prop((int)i);

        buffers[i].size = SHARED;
        HIP_OK(hipMemCreate(&buffers[i].handle, SHARED, &prop, 0));
        HIP_OK(hipMemAddressReserve(&buffers[i].va, SHARED, 0, NULL, 0));
        HIP_OK(hipMemMap(buffers[i].va, SHARED, 0, buffers[i].handle, 0));
        HIP_OK(set_access(buffers[i].va, SHARED, (int)i, hipMemAccessFlagsProtReadWrite));
        gpu_stamp((int)i, buffers[i].va, SHARED, i);
        HIP_OK(hipMemExportToShareableHandle(&fds[i], buffers[i].handle,
                                             hipMemHandleTypePosixFileDescriptor, 0));
        assert_true(fds[i] >= 3);
    }
    assert_int_equal(send_message(child.socket, &count, sizeof(count), fds, count), 0);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
    status = peer_wait(&child);
    for (unsigned i = 0; i < count; i++) {
        if (status == 0)
            gpu_expect((int)i, buffers[i].va, SHARED, 60 + i);
        HIP_OK(hipMemUnmap(buffers[i].va, SHARED));
        HIP_OK(hipMemRelease(buffers[i].handle));
        HIP_OK(hipMemAddressFree(buffers[i].va, SHARED));
    }
    if (status == 77)
        skip_case("the devices do not reach each other, or the CPU not them");
    assert_int_equal(status, 0);
}

/* Without starting HIP here, which would make the child's own start impossible. */
static int count_devices(void)
{
    struct kfd *kfd = NULL;
    int count;

    if (machine.fake)
        return (int)fake_gpu_count(machine.fake);
    if (kfd_open(NULL, &kfd) != 0)
        return 0;
    count = (int)kfd_device_count(kfd);
    kfd_close(kfd);
    return count;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_child_process_maps_one_buffer_of_every_device),
        CASE(test_vector_is_striped_over_all_devices),
        CASE(test_each_stripe_takes_memory_of_its_device),
    };

    machine_choose(argc, argv, "mi300x:8");
    child_devices = count_devices();
    peer_start(&child, sharer, child_devices);
    return run_cases(cases, COUNT_OF(cases));
}
