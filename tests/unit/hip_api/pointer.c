/* SPDX-License-Identifier: MIT */
/* What is told about pointers of every kind. */
#include "fixture.h"

#include "hip_api/ctx.h"

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

static void test_a_mapped_pointer_is_device_memory_of_its_owner(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    hipPointerAttribute_t a;
    char *ptr = map_new(1, 4 * MIB, &handle);

    HIP_OK(hipPointerGetAttributes(&a, ptr + 5));
    assert_int_equal(a.type, hipMemoryTypeDevice);
    assert_int_equal(a.device, 1);
    assert_ptr_equal(a.devicePointer, ptr + 5);
    assert_null(a.hostPointer);
    assert_int_equal(a.isManaged, 0);
    unmap_all(ptr, 4 * MIB, handle);
}

static void test_other_pointers_are_unregistered(void **state)
{
    hipPointerAttribute_t a;
    char *reserved = reserve(4096);
    const void *pointers[] = {reserved, &a, (void *)1, (void *)UINTPTR_MAX};

    for (size_t i = 0; i < 4; i++) {
        memset(&a, 0xff, sizeof(a));
        HIP_OK(hipPointerGetAttributes(&a, pointers[i]));
        assert_int_equal(a.type, hipMemoryTypeUnregistered);
        assert_int_equal(a.device, hipInvalidDeviceId);
        assert_null(a.devicePointer);
        assert_null(a.hostPointer);
    }
    HIP_FAILS(hipPointerGetAttributes(NULL, reserved), hipErrorInvalidValue, "attributes");
    HIP_FAILS(hipPointerGetAttributes(&a, NULL), hipErrorInvalidValue, "ptr");
    HIP_OK(hipMemAddressFree(reserved, 4096));
}

static void test_one_step_memory_tells_its_kind_and_the_size_asked_for(void **state)
{
    hipPointerAttribute_t a;
    unsigned int flags = 0;
    void *device, *host, *base, *same;
    size_t size;

    HIP_OK(hipSetDevice(1));
    HIP_OK(hipMalloc(&device, 5000));
    HIP_OK(hipHostMalloc(&host, 100, hipHostMallocPortable));
    HIP_OK(hipPointerGetAttributes(&a, (char *)device + 4999));
    assert_int_equal(a.type, hipMemoryTypeDevice);
    assert_int_equal(a.device, 1);
    HIP_OK(hipPointerGetAttributes(&a, host));
    assert_int_equal(a.type, hipMemoryTypeHost);
    assert_ptr_equal(a.hostPointer, host);
    assert_ptr_equal(a.devicePointer, host);
    assert_int_equal(a.allocationFlags, hipHostMallocPortable);
    HIP_OK(hipMemGetAddressRange(&base, &size, (char *)device + 77));
    assert_ptr_equal(base, device);
    assert_int_equal(size, 5000);
    HIP_OK(hipMemPtrGetInfo(host, &size));
    assert_int_equal(size, 100);
    HIP_OK(hipHostGetFlags(&flags, host));
    assert_int_equal(flags, hipHostMallocPortable);
    HIP_OK(hipHostGetDevicePointer(&same, host, 0));
    assert_ptr_equal(same, host);
    HIP_FAILS(hipHostGetFlags(&flags, device), hipErrorInvalidValue, "host memory");
    HIP_FAILS(hipHostGetDevicePointer(&same, &size, 0), hipErrorInvalidValue, "host memory");
    HIP_OK(hipFree(device));
    HIP_OK(hipHostFree(host));
}

/* bugs.md B09, G03; the walk of RCCL. */
static void test_an_address_range_is_one_mapping_and_outputs_may_be_null(void **state)
{
    hipMemGenericAllocationHandle_t handle = make_handle(0, 4 * MIB, false);
    char *ptr = reserve(8 * MIB);
    void *base = NULL;
    size_t size = 0;

    HIP_OK(hipMemMap(ptr, MIB, 0, handle, 0));
    HIP_OK(hipMemMap(ptr + MIB, 2 * MIB, MIB, handle, 0));
    HIP_OK(hipMemGetAddressRange(&base, &size, ptr + MIB));
    assert_ptr_equal(base, ptr + MIB);
    assert_int_equal(size, 2 * MIB);
    HIP_OK(hipMemGetAddressRange(NULL, &size, ptr + 17));
    assert_int_equal(size, MIB);
    HIP_OK(hipMemGetAddressRange(&base, NULL, ptr + 17));
    assert_ptr_equal(base, ptr);
    HIP_OK(hipMemGetAddressRange(NULL, NULL, ptr));
    HIP_FAILS(hipMemGetAddressRange(&base, &size, ptr + 3 * MIB), hipErrorNotFound, "0x");
    HIP_FAILS(hipMemGetAddressRange(&base, &size, &size), hipErrorNotFound, "0x");
    HIP_FAILS(hipMemGetAddressRange(&base, &size, NULL), hipErrorInvalidValue, "ptr");
    HIP_FAILS(hipMemPtrGetInfo(&size, &size), hipErrorInvalidValue, "0x");
    HIP_OK(hipMemUnmap(ptr, 3 * MIB));
    HIP_OK(hipMemAddressFree(ptr, 8 * MIB));
    HIP_OK(hipMemRelease(handle));
}

/* Reads an attribute into a field of guard bytes and checks how many were written. */
static uint64_t attribute(void *ptr, hipPointer_attribute id, size_t width)
{
    unsigned char field[16];
    uint64_t value = 0;

    memset(field, 0xa5, sizeof(field));
    HIP_OK(hipPointerGetAttribute(field, id, ptr));
    for (size_t i = width; i < sizeof(field); i++)
        assert_int_equal(field[i], 0xa5);
    memcpy(&value, field, width);
    return value;
}

/* bugs.md B09, C13. */
static void test_single_attributes_of_a_mapping(void **state)
{
    hipMemGenericAllocationHandle_t handle = make_handle(1, 2 * MIB, true);
    char *ptr = reserve(8 * MIB), *in = ptr + 4 * MIB + 9;
    void *one_step;
    uint64_t id;

    HIP_OK(hipMemMap(ptr + 4 * MIB, 2 * MIB, 0, handle, 0));
    set_access(ptr + 4 * MIB, 2 * MIB, 0, hipMemAccessFlagsProtRead);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_CONTEXT, 8), (uintptr_t)hip_context_of(1));
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, 4), hipMemoryTypeDevice);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, 8), (uintptr_t)in);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, 1), 1);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_IS_MANAGED, 1), 0);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4), 1);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE, 1), 0);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8), (uintptr_t)ptr);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, 8), 8 * MIB);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_MAPPED, 1), 1);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 4), 1);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 1), 0);
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4),
                     hipMemAccessFlagsProtRead);
    HIP_OK(hipSetDevice(1));
    assert_int_equal(attribute(in, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4),
                     hipMemAccessFlagsProtNone);
    id = attribute(in, HIP_POINTER_ATTRIBUTE_BUFFER_ID, 8);
    HIP_OK(hipMalloc(&one_step, 12345));
    assert_int_equal(attribute(one_step, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, 8), 12345);
    assert_int_equal(attribute(one_step, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4),
                     hipMemAccessFlagsProtReadWrite);
    assert_int_equal(attribute(one_step, HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 4), 0);
    assert_int_not_equal(attribute(one_step, HIP_POINTER_ATTRIBUTE_BUFFER_ID, 8), id);
    HIP_OK(hipFree(one_step));
    HIP_OK(hipMemUnmap(ptr + 4 * MIB, 2 * MIB));
    HIP_OK(hipMemAddressFree(ptr, 8 * MIB));
    HIP_OK(hipMemRelease(handle));
}

static void
test_attributes_that_cannot_be_told_are_refused_one_by_one_and_zero_in_a_list(void **state)
{
    hipPointer_attribute ids[] = {HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(1, 2 * MIB, &handle);
    int ordinal = 9;
    uint32_t type = 9;
    uint64_t size = 9;
    void *data[] = {&ordinal, &type, &size};

    HIP_FAILS(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_HOST_POINTER, ptr),
              hipErrorInvalidValue, "host pointer");
    HIP_FAILS(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_P2P_TOKENS, ptr),
              hipErrorNotSupported, "tokens");
    HIP_FAILS(hipPointerGetAttribute(&size, (hipPointer_attribute)99, ptr), hipErrorInvalidValue,
              "99");
    HIP_FAILS(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_MAPPED, &size),
              hipErrorInvalidValue, "0x");
    HIP_FAILS(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_MAPPED, ptr), hipErrorInvalidValue,
              "data");
    assert_int_equal(size, 9);
    HIP_OK(hipDrvPointerGetAttributes(3, ids, data, ptr));
    assert_int_equal(ordinal, 1);
    assert_int_equal(type, hipMemoryTypeDevice);
    assert_int_equal(size, 2 * MIB);
    HIP_OK(hipDrvPointerGetAttributes(3, ids, data, data));
    assert_int_equal(ordinal, hipInvalidDeviceId);
    assert_int_equal(type, 0);
    assert_int_equal(size, 0);
    data[1] = NULL;
    HIP_FAILS(hipDrvPointerGetAttributes(3, ids, data, ptr), hipErrorInvalidValue, "data[1]");
    HIP_FAILS(hipDrvPointerGetAttributes(0, ids, data, ptr), hipErrorInvalidValue, "count");
    /* An attribute that is left out is no failure, and has no text. */
    ids[0] = HIP_POINTER_ATTRIBUTE_P2P_TOKENS;
    HIP_OK(hipDrvPointerGetAttributes(1, ids, data, ptr));
    assert_non_null(strstr(hipxGetLastErrorText(), "count"));
    unmap_all(ptr, 2 * MIB, handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_mapped_pointer_is_device_memory_of_its_owner, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_other_pointers_are_unregistered, start, stop),
        cmocka_unit_test_setup_teardown(test_one_step_memory_tells_its_kind_and_the_size_asked_for,
                                        start, stop),
        cmocka_unit_test_setup_teardown(
            test_an_address_range_is_one_mapping_and_outputs_may_be_null, start, stop),
        cmocka_unit_test_setup_teardown(test_single_attributes_of_a_mapping, start, stop),
        cmocka_unit_test_setup_teardown(
            test_attributes_that_cannot_be_told_are_refused_one_by_one_and_zero_in_a_list, start,
            stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
