/* SPDX-License-Identifier: MIT */
/* Devices of fake machines: count, choice, names, places and peers. */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

#include <pthread.h>

static int start(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "mi300x:2", "6.12");
    *state = &fixture;
    return 0;
}

static int stop(void **state)
{
    fixture_close(*state);
    return 0;
}

static void *device_of_new_thread(void *arg)
{
    int device = -1;

    hipGetDevice(&device);
    return (void *)(intptr_t)device;
}

static void test_each_thread_has_its_own_device_and_starts_with_the_first(void **state)
{
    pthread_t thread;
    void *other;
    int device = -1, count = 0;

    HIP_OK(hipGetDeviceCount(&count));
    assert_int_equal(count, 2);
    HIP_OK(hipSetDevice(1));
    assert_int_equal(pthread_create(&thread, NULL, device_of_new_thread, NULL), 0);
    pthread_join(thread, &other);
    assert_int_equal((intptr_t)other, 0);
    HIP_OK(hipGetDevice(&device));
    assert_int_equal(device, 1);
    HIP_FAILS(hipSetDevice(2), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipSetDevice(-1), hipErrorInvalidDevice, "device -1");
    HIP_OK(hipGetDevice(&device));
    assert_int_equal(device, 1);
    HIP_FAILS(hipGetDevice(NULL), hipErrorInvalidValue, "NULL");
    HIP_OK(hipDeviceGet(&device, 0));
    assert_int_equal(device, 0);
    HIP_FAILS(hipDeviceGet(&device, 2), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipDeviceGet(NULL, 0), hipErrorInvalidValue, "NULL");
}

static void test_a_device_is_found_by_its_pci_address(void **state)
{
    static const char *const forms[] = {"0000:25:00.0", "0000:25:00", "25:00.0", "25:00"};
    static const char *const bad[] = {
        "",        "25",      "zz:00.0",  "0000:25:00.", "0000:25:00.0x",
        "25:00.8", "25:20.0", "100:00.0", ":25:00.0",    " 25:00"};
    char pci[16], small[12];
    int device;

    HIP_OK(hipDeviceGetPCIBusId(pci, sizeof(pci), 0));
    assert_string_equal(pci, "0000:05:00.0");
    HIP_OK(hipDeviceGetPCIBusId(pci, sizeof(pci), 1));
    assert_string_equal(pci, "0000:25:00.0");
    HIP_FAILS(hipDeviceGetPCIBusId(small, sizeof(small), 1), hipErrorInvalidValue, "12");
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        device = -1;
        HIP_OK(hipDeviceGetByPCIBusId(&device, forms[i]));
        assert_int_equal(device, 1);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        HIP_FAILS(hipDeviceGetByPCIBusId(&device, bad[i]), hipErrorInvalidValue, "PCI");
    HIP_FAILS(hipDeviceGetByPCIBusId(&device, "0001:25:00.0"), hipErrorInvalidDevice, "0001");
    HIP_FAILS(hipDeviceGetByPCIBusId(NULL, pci), hipErrorInvalidValue, "NULL");
}

static void test_names_and_serials_are_the_machines(void **state)
{
    char name[64], tiny[4];
    hipUUID first, second;
    int major, minor;

    HIP_OK(hipDeviceGetName(name, sizeof(name), 1));
    assert_string_equal(name, "AMD Instinct MI300X");
    HIP_OK(hipDeviceGetName(tiny, sizeof(tiny), 1));
    assert_string_equal(tiny, "AMD");
    HIP_FAILS(hipDeviceGetName(name, 0, 0), hipErrorInvalidValue, "size");
    HIP_FAILS(hipDeviceGetName(name, 64, 2), hipErrorInvalidDevice, "device 2");
    HIP_OK(hipDeviceGetUuid(&first, 0));
    HIP_OK(hipDeviceGetUuid(&second, 1));
    assert_memory_equal(first.bytes, "5a11000000000100", 16);
    assert_memory_not_equal(first.bytes, second.bytes, 16);
    HIP_OK(hipDeviceComputeCapability(&major, &minor, 0));
    assert_int_equal(major, 9);
    assert_int_equal(minor, 4);
}

static void test_peers_in_a_hive_reach_each_other(void **state)
{
    int can = 9, value = 9;

    HIP_OK(hipDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    HIP_OK(hipDeviceCanAccessPeer(&can, 0, 0));
    assert_int_equal(can, 0);
    HIP_FAILS(hipDeviceCanAccessPeer(NULL, 0, 1), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipDeviceCanAccessPeer(&can, 0, 2), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipDeviceCanAccessPeer(&can, -1, 0), hipErrorInvalidDevice, "device -1");
    HIP_OK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 1));
    assert_int_equal(value, 1);
    HIP_OK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrNativeAtomicSupported, 0, 1));
    assert_int_equal(value, 1);
    HIP_FAILS(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 1, 1),
              hipErrorInvalidDevice, "own peer");
    HIP_FAILS(hipDeviceGetP2PAttribute(&value, (hipDeviceP2PAttr)9, 0, 1), hipErrorInvalidValue,
              "9");
}

static void test_peer_access_is_enabled_once_and_disabled_once(void **state)
{
    HIP_OK(hipDeviceEnablePeerAccess(1, 0));
    HIP_FAILS(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessAlreadyEnabled, "device 1");
    HIP_OK(hipDeviceDisablePeerAccess(1));
    HIP_FAILS(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled, "device 1");
    HIP_FAILS(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice, "own peer");
    HIP_FAILS(hipDeviceEnablePeerAccess(2, 0), hipErrorInvalidDevice, "device 2");
    HIP_FAILS(hipDeviceEnablePeerAccess(1, 1), hipErrorInvalidValue, "flags");
}

static void test_waiting_for_devices_is_always_over(void **state)
{
    unsigned int flags = 9;

    HIP_OK(hipDeviceSynchronize());
    HIP_OK(hipCtxSynchronize());
    HIP_OK(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
    HIP_FAILS(hipSetDeviceFlags(0x100), hipErrorInvalidValue, "flags");
    HIP_OK(hipGetDeviceFlags(&flags));
    assert_int_equal(flags, 0);
}

static void test_reset_ends_what_was_made_for_the_device_and_nothing_else(void **state)
{
    void *kept, *gone, *host;
    hipStream_t kept_stream, gone_stream;
    hipMemGenericAllocationHandle_t handle;
    char *range = reserve(2 * MIB);
    hipEvent_t event;
    int local = 0;

    HIP_OK(hipMalloc(&kept, 4096));
    HIP_OK(hipStreamCreate(&kept_stream));
    HIP_OK(hipSetDevice(1));
    HIP_OK(hipMalloc(&gone, 4096));
    HIP_OK(hipHostMalloc(&host, 4096, 0));
    HIP_OK(hipStreamCreate(&gone_stream));
    HIP_OK(hipEventCreate(&event));
    HIP_OK(hipDeviceEnablePeerAccess(0, 0));
    HIP_OK(hipHostRegister(&local, sizeof(local), 0));
    handle = make_handle(1, 2 * MIB, false);
    HIP_OK(hipMemMap(range, 2 * MIB, 0, handle, 0));
    set_access(range, 2 * MIB, 1, hipMemAccessFlagsProtReadWrite);

    HIP_OK(hipDeviceReset());
    HIP_FAILS(hipFree(gone), hipErrorInvalidValue, "0x");
    HIP_FAILS(hipHostFree(host), hipErrorInvalidValue, "0x");
    HIP_FAILS(hipStreamDestroy(gone_stream), hipErrorInvalidHandle, "stream");
    HIP_FAILS(hipEventDestroy(event), hipErrorInvalidHandle, "event");
    HIP_OK(hipDeviceEnablePeerAccess(0, 0));
    assert_int_equal(gpu_fault(*state, 1, gone, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    gpu_write(*state, 1, range, 9);
    HIP_OK(hipHostUnregister(&local));
    HIP_OK(hipStreamDestroy(kept_stream));
    HIP_OK(hipFree(kept));
    HIP_OK(hipMemUnmap(range, 2 * MIB));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(range, 2 * MIB));
    HIP_OK(hipDeviceReset()); /* with nothing to end */
    HIP_OK(hipSetDevice(0));
}

/* A machine file of the test's own: two cards on PCIe. */
static void open_machine(struct fixture *f, const char *second_card, char *path, size_t size)
{
    FILE *file;
    int fd;

    snprintf(path, size, "./hip_device_XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file,
            "[machine]\nname = test\n[cpu]\ncores = 4\nram = 16 GiB\n"
            "[gpu]\nlike = navi31\n[gpu]\nlike = navi31\nfirst_bus = 0x43\n%s\n",
            second_card);
    fclose(file);
    fixture_open(f, path, "6.12");
    unlink(path);
}

static void test_cards_without_a_path_are_no_peers(void **state)
{
    hipMemAccessDesc desc = device_access(1, hipMemAccessFlagsProtReadWrite);
    hipMemGenericAllocationHandle_t handle;
    struct fixture f;
    char path[64], *ptr;
    int can = 9;

    open_machine(&f, "", path, sizeof(path));
    HIP_OK(hipDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 0);
    HIP_FAILS(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessUnsupported, "no path");
    ptr = map_new(0, 2 * MIB, &handle);
    HIP_FAILS(hipMemSetAccess(ptr, 2 * MIB, &desc, 1), hipErrorInvalidValue, "reach");
    unmap_all(ptr, 2 * MIB, handle);
    fixture_close(&f);
}

static void test_a_card_without_its_render_node_is_left_out_with_the_reason(void **state)
{
    struct fixture f;
    char path[64];
    int count = 0;

    open_machine(&f, "render_node = missing", path, sizeof(path));
    HIP_OK(hipGetDeviceCount(&count));
    assert_int_equal(count, 1);
    HIP_FAILS(hipSetDevice(1), hipErrorInvalidDevice, "left out: ");
    HIP_FAILS(hipSetDevice(1), hipErrorInvalidDevice, "renderD");
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_each_thread_has_its_own_device_and_starts_with_the_first, start, stop),
        cmocka_unit_test_setup_teardown(test_a_device_is_found_by_its_pci_address, start, stop),
        cmocka_unit_test_setup_teardown(test_names_and_serials_are_the_machines, start, stop),
        cmocka_unit_test_setup_teardown(test_peers_in_a_hive_reach_each_other, start, stop),
        cmocka_unit_test_setup_teardown(test_peer_access_is_enabled_once_and_disabled_once, start,
                                        stop),
        cmocka_unit_test_setup_teardown(
            test_reset_ends_what_was_made_for_the_device_and_nothing_else, start, stop),
        cmocka_unit_test_setup_teardown(test_waiting_for_devices_is_always_over, start, stop),
        cmocka_unit_test(test_cards_without_a_path_are_no_peers),
        cmocka_unit_test(test_a_card_without_its_render_node_is_left_out_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
