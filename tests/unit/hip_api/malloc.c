/* SPDX-License-Identifier: MIT */
/* One-step memory on a fake machine. */
#include "fixture.h"

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

static void test_device_memory_is_seen_by_every_gpu_that_reaches_it(void **state)
{
    char *ptr;
    void *out;

    HIP_OK(hipMalloc(&out, 3 * MIB));
    ptr = out;
    gpu_write(*state, 0, ptr + 2 * MIB, 5);
    assert_int_equal(gpu_read(*state, 1, ptr + 2 * MIB), 5);
    HIP_OK(hipFree(ptr));
    assert_int_equal(gpu_fault(*state, 0, ptr, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    HIP_FAILS(hipFree(ptr), hipErrorInvalidValue, "0x");
}

static void test_host_memory_is_the_same_for_cpu_and_gpus(void **state)
{
    volatile uint64_t *word;
    void *out;

    HIP_OK(hipHostMalloc(&out, 10000, hipHostMallocDefault));
    word = out;
    *word = 17;
    assert_int_equal(gpu_read(*state, 1, out), 17);
    gpu_write(*state, 0, out, 18);
    assert_int_equal(*word, 18);
    HIP_OK(hipHostFree(out));
}

static void test_every_name_for_allocate_and_free_works(void **state)
{
    hipStream_t stream;
    void *ptr;

    HIP_OK(hipStreamCreate(&stream));
    HIP_OK(hipMallocAsync(&ptr, 4096, stream));
    HIP_OK(hipFreeAsync(ptr, stream));
    HIP_OK(hipStreamDestroy(stream));
    HIP_FAILS(hipMallocAsync(&ptr, 4096, stream), hipErrorInvalidHandle, "stream");
    HIP_FAILS(hipFreeAsync(ptr, stream), hipErrorInvalidHandle, "stream");
    HIP_OK(hipMallocHost(&ptr, 4096));
    HIP_OK(hipFreeHost(ptr));
    HIP_OK(hipMemAllocHost(&ptr, 4096));
    HIP_OK(hipFree(ptr));
    HIP_OK(hipHostAlloc(&ptr, 4096, hipHostAllocWriteCombined));
    HIP_OK(hipHostFree(ptr));
    HIP_OK(hipExtMallocWithFlags(&ptr, 4096, hipDeviceMallocFinegrained));
    gpu_write(*state, 0, ptr, 1);
    HIP_OK(hipFree(ptr));
    HIP_OK(hipExtMallocWithFlags(&ptr, 4096, hipDeviceMallocUncached));
    HIP_OK(hipFree(ptr));
}

static void test_nothing_is_allocated_for_size_0_and_freed_for_null(void **state)
{
    void *ptr = &ptr;

    HIP_OK(hipMalloc(&ptr, 0));
    assert_null(ptr);
    ptr = &ptr;
    HIP_OK(hipHostMalloc(&ptr, 0, 0));
    assert_null(ptr);
    HIP_OK(hipFree(NULL));
    HIP_OK(hipHostFree(NULL));
    HIP_FAILS(hipFreeAsync(NULL, NULL), hipErrorInvalidValue, "NULL");
}

static void test_what_cannot_be_had_says_why(void **state)
{
    int local = 0;
    void *ptr = &local;

    HIP_FAILS(hipMalloc(NULL, 4096), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipMalloc(&ptr, (size_t)1 << 45), hipErrorOutOfMemory, "0x");
    HIP_FAILS(hipHostMalloc(&ptr, (size_t)1 << 50, 0), hipErrorOutOfMemory, "0x");
    HIP_FAILS(hipExtMallocWithFlags(&ptr, 8, hipMallocSignalMemory), hipErrorNotSupported,
              "signals");
    HIP_FAILS(hipExtMallocWithFlags(&ptr, 8, hipDeviceMallocContiguous), hipErrorNotSupported,
              "contiguous");
    HIP_FAILS(hipExtMallocWithFlags(&ptr, 8, 5), hipErrorInvalidValue, "flags");
    HIP_FAILS(hipHostMalloc(&ptr, 8, 0x100), hipErrorInvalidValue, "flags");
    HIP_FAILS(hipHostMalloc(&ptr, 8, hipHostMallocCoherent | hipHostMallocNonCoherent),
              hipErrorInvalidValue, "coherent");
    HIP_FAILS(hipMallocManaged(&ptr, 8, hipMemAttachGlobal), hipErrorNotSupported, "managed");
    assert_ptr_equal(ptr, &local);
}

static void test_registered_memory_is_host_memory_of_every_gpu(void **state)
{
    size_t size = 3 * 4096 + 100;
    char *mem = calloc(1, size), bytes[16];
    hipPointerAttribute_t attributes;
    unsigned flags = 0;
    void *device = NULL, *vram;

    assert_non_null(mem);
    HIP_OK(hipHostRegister(mem, size, hipHostRegisterPortable | hipHostRegisterMapped));
    HIP_OK(hipHostGetDevicePointer(&device, mem, 0));
    assert_ptr_equal(device, mem);
    HIP_OK(hipHostGetFlags(&flags, mem + 5));
    assert_int_equal(flags, hipHostRegisterPortable | hipHostRegisterMapped);
    HIP_OK(hipPointerGetAttributes(&attributes, mem + size - 1));
    assert_int_equal(attributes.type, hipMemoryTypeHost);
    assert_ptr_equal(attributes.devicePointer, mem + size - 1);
    assert_ptr_equal(attributes.hostPointer, mem + size - 1);
    HIP_OK(hipPointerGetAttributes(&attributes, mem + size));
    assert_int_equal(attributes.type, hipMemoryTypeUnregistered);
    gpu_write(*state, 1, mem + 8, 0x6f6c6c6568);
    assert_string_equal(mem + 8, "hello");
    /* A copy may call it the host's or the device's. */
    HIP_OK(hipMalloc(&vram, 16));
    HIP_OK(hipMemcpy(vram, mem + 8, 16, hipMemcpyDeviceToDevice));
    HIP_OK(hipMemcpy(bytes, vram, 16, hipMemcpyDeviceToHost));
    assert_string_equal(bytes, "hello");
    HIP_OK(hipMemcpyDtoH(bytes, mem + 9, 15));
    assert_string_equal(bytes, "ello");
    HIP_OK(hipMemset(mem + size - 3, 'x', 3));
    assert_memory_equal(mem + size - 4, "\0xxx", 4);
    HIP_FAILS(hipMemset(mem + size - 3, 'y', 4), hipErrorInvalidValue, "registered");
    assert_memory_equal(mem + size - 4, "\0xxx", 4);
    HIP_OK(hipFree(vram));

    HIP_FAILS(hipHostRegister(mem, 1, 0), hipErrorHostMemoryAlreadyRegistered, "registered");
    HIP_FAILS(hipHostUnregister(mem + 1), hipErrorHostMemoryNotRegistered, "start");
    HIP_FAILS(hipFree(mem), hipErrorInvalidValue, "0x");
    HIP_OK(hipHostUnregister(mem));
    HIP_FAILS(hipHostUnregister(mem), hipErrorHostMemoryNotRegistered, "start");
    HIP_FAILS(hipHostGetDevicePointer(&device, mem, 0), hipErrorInvalidValue, "0x");
    free(mem);
}

static void test_memory_that_cannot_be_registered_says_why(void **state)
{
    int local = 0;
    void *host;

    HIP_FAILS(hipHostRegister(NULL, 4, 0), hipErrorInvalidValue, "ptr is NULL");
    HIP_FAILS(hipHostRegister(&local, 0, 0), hipErrorInvalidValue, "size is 0");
    HIP_FAILS(hipHostRegister(&local, SIZE_MAX, 0), hipErrorInvalidValue, "0x");
    HIP_FAILS(hipHostRegister(&local, 4, 0x10), hipErrorInvalidValue, "flags");
    HIP_FAILS(hipHostRegister(&local, 4, hipHostRegisterReadOnly), hipErrorNotSupported, "flags");
    HIP_FAILS(hipHostRegister(&local, 4, hipHostRegisterIoMemory), hipErrorNotSupported, "flags");
    HIP_FAILS(hipHostRegister((void *)0x1000, 4, 0), hipErrorNotSupported, "0x1000");
    HIP_FAILS(hipHostUnregister(NULL), hipErrorInvalidValue, "ptr is NULL");
    HIP_FAILS(hipHostUnregister(&local), hipErrorHostMemoryNotRegistered, "registered");
    HIP_OK(hipHostMalloc(&host, 4096, 0));
    HIP_FAILS(hipHostRegister(host, 4096, 0), hipErrorInvalidValue, "of this library");
    HIP_OK(hipHostFree(host));
}

static void test_legacy_sharing_is_refused_with_the_way_to_do_it(void **state)
{
    hipIpcMemHandle_t handle;
    void *ptr, *host;

    memset(&handle, 0, sizeof(handle));
    HIP_OK(hipMalloc(&ptr, 2267136));
    HIP_OK(hipHostMalloc(&host, 4096, 0));
    HIP_FAILS(hipIpcGetMemHandle(&handle, ptr), hipErrorNotSupported, "hipMemExport");
    HIP_FAILS(hipIpcGetMemHandle(&handle, host), hipErrorInvalidValue, "0x");
    HIP_FAILS(hipIpcGetMemHandle(NULL, ptr), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipIpcOpenMemHandle(&host, handle, 0), hipErrorInvalidValue, "flags");
    HIP_FAILS(hipIpcOpenMemHandle(&host, handle, 1), hipErrorNotSupported, "hipMemExport");
    HIP_FAILS(hipIpcCloseMemHandle(ptr), hipErrorInvalidValue, "0x");
    HIP_OK(hipFree(ptr));
    HIP_OK(hipHostFree(host));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_device_memory_is_seen_by_every_gpu_that_reaches_it,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_host_memory_is_the_same_for_cpu_and_gpus, start, stop),
        cmocka_unit_test_setup_teardown(test_every_name_for_allocate_and_free_works, start, stop),
        cmocka_unit_test_setup_teardown(test_nothing_is_allocated_for_size_0_and_freed_for_null,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_had_says_why, start, stop),
        cmocka_unit_test_setup_teardown(test_registered_memory_is_host_memory_of_every_gpu, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_memory_that_cannot_be_registered_says_why, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_legacy_sharing_is_refused_with_the_way_to_do_it, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
