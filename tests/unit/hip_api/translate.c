/* SPDX-License-Identifier: MIT */
/* What the VMM layer is asked for by each call. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "mock.h"

static int start(void **state)
{
    hipxReset();
    mock_reset();
    return 0;
}

static hipMemAllocationProp device_prop(int device)
{
    hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned};

    prop.location.type = hipMemLocationTypeDevice;
    prop.location.id = device;
    return prop;
}

/* bugs.md G08. */
static void test_create_places_memory_on_the_location_not_on_the_current_device(void **state)
{
    hipMemAllocationProp prop = device_prop(1);
    hipMemGenericAllocationHandle_t handle;

    assert_int_equal(hipSetDevice(0), hipSuccess);
    assert_int_equal(hipMemCreate(&handle, 8192, &prop, 0), hipSuccess);
    assert_int_equal(mock.props.location, VMM_LOCATION_DEVICE);
    assert_int_equal(mock.props.device, 1);
    assert_int_equal(mock.size, 8192);
    assert_false(mock.props.uncached);
    assert_ptr_equal(handle, (void *)77);
}

/* bugs.md B05. */
static void test_uncached_memory_is_asked_for_as_uncached(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle;

    prop.type = hipMemAllocationTypeUncached;
    assert_int_equal(hipMemCreate(&handle, 4096, &prop, 0), hipSuccess);
    assert_true(mock.props.uncached);
}

static void test_host_locations_are_system_memory_anchored_at_device_0(void **state)
{
    static const hipMemLocation locations[] = {{hipMemLocationTypeHost, 0},
                                               {hipMemLocationTypeHost, 7},
                                               {hipMemLocationTypeHostNuma, 1},
                                               {hipMemLocationTypeHostNumaCurrent, 0}};
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle;

    assert_int_equal(hipSetDevice(1), hipSuccess);
    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        prop.location = locations[i];
        assert_int_equal(hipMemCreate(&handle, 4096, &prop, 0), hipSuccess);
        assert_int_equal(mock.props.location, VMM_LOCATION_HOST);
        assert_int_equal(mock.props.device, 0);
    }
}

static void test_properties_come_back_as_they_were_given(void **state)
{
    hipMemAllocationProp prop = device_prop(1), back;
    hipMemGenericAllocationHandle_t handle;

    prop.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
    prop.win32HandleMetaData = &prop;
    prop.allocFlags.compressionType = 1;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    prop.allocFlags.usage = 0x1234;
    assert_int_equal(hipMemCreate(&handle, 4096, &prop, 0), hipSuccess);
    mock.props_out = mock.props;
    memset(&back, 0xff, sizeof(back));
    assert_int_equal(hipMemGetAllocationPropertiesFromHandle(&back, handle), hipSuccess);
    prop.win32HandleMetaData = NULL;
    assert_int_equal(back.type, prop.type);
    assert_int_equal(back.requestedHandleTypes, prop.requestedHandleTypes);
    assert_int_equal(back.location.type, prop.location.type);
    assert_int_equal(back.location.id, 1);
    assert_null(back.win32HandleMetaData);
    assert_memory_equal(&back.allocFlags, &prop.allocFlags, sizeof(prop.allocFlags));
}

static void test_an_import_tells_its_true_owner(void **state)
{
    hipMemAllocationProp back;

    mock.props_out = (struct vmm_props){
        .location = VMM_LOCATION_DEVICE, .device = 1, .imported = true, .tag = {1}};
    assert_int_equal(hipMemGetAllocationPropertiesFromHandle(&back, (void *)77), hipSuccess);
    assert_int_equal(back.type, hipMemAllocationTypePinned);
    assert_int_equal(back.requestedHandleTypes, hipMemHandleTypePosixFileDescriptor);
    assert_int_equal(back.location.type, hipMemLocationTypeDevice);
    assert_int_equal(back.location.id, 1);
    mock.props_out.location = VMM_LOCATION_HOST;
    assert_int_equal(hipMemGetAllocationPropertiesFromHandle(&back, (void *)77), hipSuccess);
    assert_int_equal(back.location.type, hipMemLocationTypeHost);
    assert_int_equal(back.location.id, 0);
}

static void test_the_last_descriptor_of_a_device_wins_and_each_is_passed_once(void **state)
{
    const hipMemAccessDesc desc[] = {
        {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtRead},
        {{hipMemLocationTypeHost, 0}, hipMemAccessFlagsProtReadWrite},
        {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtNone},
        {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite},
        {{hipMemLocationTypeHostNuma, 1}, hipMemAccessFlagsProtRead},
    };

    assert_int_equal(hipMemSetAccess((void *)0x5000, 0x2000, desc, 5), hipSuccess);
    assert_int_equal(mock.va, 0x5000);
    assert_int_equal(mock.size, 0x2000);
    assert_int_equal(mock.access_count, 3);
    assert_int_equal(mock.access[0].device, 1);
    assert_int_equal(mock.access[0].prot, VMM_PROT_READ_WRITE);
    assert_int_equal(mock.access[1].device, VMM_HOST);
    assert_int_equal(mock.access[1].prot, VMM_PROT_READ);
    assert_int_equal(mock.access[2].device, 0);
    assert_int_equal(mock.access[2].prot, VMM_PROT_NONE);
}

static void test_a_long_list_of_descriptors_is_taken(void **state)
{
    static hipMemAccessDesc desc[5000];

    for (size_t i = 0; i < 5000; i++) {
        desc[i].location.type = hipMemLocationTypeDevice;
        desc[i].location.id = (int)(i % 2);
        desc[i].flags = hipMemAccessFlagsProtReadWrite;
    }
    assert_int_equal(hipMemSetAccess((void *)0x5000, 0x1000, desc, 5000), hipSuccess);
    assert_int_equal(mock.access_count, 2);
    desc[4999].location.id = 2;
    mock.calls = 0;
    assert_int_equal(hipMemSetAccess((void *)0x5000, 0x1000, desc, 5000), hipErrorInvalidValue);
    assert_non_null(strstr(hipxGetLastErrorText(), "desc[4999]: device 2"));
    assert_int_equal(mock.calls, 0);
}

static void test_access_is_read_for_devices_and_the_host(void **state)
{
    hipMemLocation location = {hipMemLocationTypeDevice, 1};
    unsigned long long flags = 99;

    assert_int_equal(hipMemGetAccess(&flags, &location, (void *)0x5123), hipSuccess);
    assert_int_equal(flags, hipMemAccessFlagsProtRead);
    assert_int_equal(mock.device, 1);
    assert_int_equal(mock.va, 0x5123);
    location.type = hipMemLocationTypeHost;
    assert_int_equal(hipMemGetAccess(&flags, &location, (void *)0x5123), hipSuccess);
    assert_int_equal(mock.device, VMM_HOST);
    mock.result = -EINVAL;
    flags = 99;
    assert_int_equal(hipMemGetAccess(&flags, &location, (void *)0x5123), hipErrorInvalidValue);
    assert_int_equal(flags, 99);
}

static void test_reserve_and_map_pass_every_argument(void **state)
{
    void *ptr = NULL;

    assert_int_equal(hipMemAddressReserve(&ptr, 0x4000, 0x200000, (void *)0x7000, 0), hipSuccess);
    assert_ptr_equal(ptr, (void *)0x10000000);
    assert_int_equal(mock.size, 0x4000);
    assert_int_equal(mock.align, 0x200000);
    assert_int_equal(mock.hint, 0x7000);
    assert_int_equal(hipMemMap(ptr, 0x2000, 0x1000, (void *)77, 0), hipSuccess);
    assert_int_equal(mock.va, 0x10000000);
    assert_int_equal(mock.size, 0x2000);
    assert_int_equal(mock.offset, 0x1000);
    assert_int_equal(mock.handle, 77);
}

static void test_a_failed_call_leaves_its_output_alone(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    void *ptr = (void *)5;
    hipMemGenericAllocationHandle_t handle = (void *)6;
    int fd = 7;

    mock.result = -ENOMEM;
    assert_int_equal(hipMemAddressReserve(&ptr, 4096, 0, NULL, 0), hipErrorOutOfMemory);
    assert_int_equal(hipMalloc(&ptr, 4096), hipErrorOutOfMemory);
    assert_int_equal(hipHostMalloc(&ptr, 4096, 0), hipErrorOutOfMemory);
    assert_int_equal(hipMemCreate(&handle, 4096, &prop, 0), hipErrorOutOfMemory);
    assert_int_equal(hipMemRetainAllocationHandle(&handle, &fd), hipErrorOutOfMemory);
    assert_int_equal(
        hipMemImportFromShareableHandle(&handle, (void *)9, hipMemHandleTypePosixFileDescriptor),
        hipErrorOutOfMemory);
    assert_int_equal(
        hipMemExportToShareableHandle(&fd, (void *)77, hipMemHandleTypePosixFileDescriptor, 0),
        hipErrorOutOfMemory);
    assert_ptr_equal(ptr, (void *)5);
    assert_ptr_equal(handle, (void *)6);
    assert_int_equal(fd, 7);
}

static void test_import_takes_a_descriptor_by_value_and_by_address(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    int fd = 0;

    assert_int_equal(hipMemImportFromShareableHandle(&handle, (void *)(intptr_t)41,
                                                     hipMemHandleTypePosixFileDescriptor),
                     hipSuccess);
    assert_int_equal(mock.fd, 41);
    assert_int_equal(mock.tag[0], hipMemHandleTypePosixFileDescriptor);
    assert_ptr_equal(handle, (void *)79);
    mock.fd = 41;
    assert_int_equal(
        hipMemImportFromShareableHandle(&handle, &fd, hipMemHandleTypePosixFileDescriptor),
        hipSuccess);
    assert_int_equal(mock.fd, 0);
}

static void test_import_of_a_wild_address_is_invalid_and_no_fault(void **state)
{
    static const uintptr_t wild[] = {UINTPTR_MAX, UINTPTR_MAX - 2, (uintptr_t)1 << 20,
                                     (uintptr_t)1 << 62, (uintptr_t)0x7fffffffffff};
    hipMemGenericAllocationHandle_t handle;

    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        mock.calls = 0;
        assert_int_equal(hipMemImportFromShareableHandle(&handle, (void *)wild[i],
                                                         hipMemHandleTypePosixFileDescriptor),
                         hipErrorInvalidValue);
        assert_int_equal(mock.calls, 0);
    }
}

static void test_export_writes_exactly_an_int(void **state)
{
    struct {
        int fd, after;
    } out = {-1, -1};

    mock.props_out.tag[0] = hipMemHandleTypePosixFileDescriptor;
    assert_int_equal(
        hipMemExportToShareableHandle(&out, (void *)77, hipMemHandleTypePosixFileDescriptor, 0),
        hipSuccess);
    assert_int_equal(out.fd, 9);
    assert_int_equal(out.after, -1);
}

static void test_one_step_memory_goes_to_the_current_device_and_is_rounded_up(void **state)
{
    void *ptr = (void *)5;

    assert_int_equal(hipSetDevice(1), hipSuccess);
    assert_int_equal(hipMalloc(&ptr, 5000), hipSuccess);
    assert_int_equal(mock.props.location, VMM_LOCATION_DEVICE);
    assert_int_equal(mock.props.device, 1);
    assert_int_equal(mock.size, 8192);
    assert_ptr_equal(ptr, (void *)0x20000000);
    assert_int_equal(hipHostMalloc(&ptr, 1, hipHostMallocUncached), hipSuccess);
    assert_int_equal(mock.props.location, VMM_LOCATION_HOST);
    assert_true(mock.props.uncached);
    mock.calls = 0;
    assert_int_equal(hipMalloc(&ptr, 0), hipSuccess);
    assert_null(ptr);
    assert_int_equal(hipMalloc(&ptr, SIZE_MAX), hipErrorOutOfMemory);
    assert_int_equal(hipFree(NULL), hipSuccess);
    assert_int_equal(mock.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_create_places_memory_on_the_location_not_on_the_current_device,
                               start),
        cmocka_unit_test_setup(test_uncached_memory_is_asked_for_as_uncached, start),
        cmocka_unit_test_setup(test_host_locations_are_system_memory_anchored_at_device_0, start),
        cmocka_unit_test_setup(test_properties_come_back_as_they_were_given, start),
        cmocka_unit_test_setup(test_an_import_tells_its_true_owner, start),
        cmocka_unit_test_setup(test_the_last_descriptor_of_a_device_wins_and_each_is_passed_once,
                               start),
        cmocka_unit_test_setup(test_a_long_list_of_descriptors_is_taken, start),
        cmocka_unit_test_setup(test_access_is_read_for_devices_and_the_host, start),
        cmocka_unit_test_setup(test_reserve_and_map_pass_every_argument, start),
        cmocka_unit_test_setup(test_a_failed_call_leaves_its_output_alone, start),
        cmocka_unit_test_setup(test_import_takes_a_descriptor_by_value_and_by_address, start),
        cmocka_unit_test_setup(test_import_of_a_wild_address_is_invalid_and_no_fault, start),
        cmocka_unit_test_setup(test_export_writes_exactly_an_int, start),
        cmocka_unit_test_setup(test_one_step_memory_goes_to_the_current_device_and_is_rounded_up,
                               start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
