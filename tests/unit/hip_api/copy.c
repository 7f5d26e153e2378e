/* SPDX-License-Identifier: MIT */
/* Copies and fills, compared with what the GPUs see. */
#include "fixture.h"

#include <sys/mman.h>

#define BIG ((size_t)9 << 20) /* more than one step of a copy between ranges */

static int start(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "mi300x:2", "6.12");
    *state = &fixture;
    return 0;
}

static int start_small_bar(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "navi31-smallbar", "6.12");
    *state = &fixture;
    return 0;
}

static int stop(void **state)
{
    fixture_close(*state);
    return 0;
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 31 + i / 4096);
}

static unsigned char *pattern_buffer(size_t size)
{
    unsigned char *buffer = malloc(size);

    assert_non_null(buffer);
    for (size_t i = 0; i < size; i++)
        buffer[i] = pattern(i);
    return buffer;
}

/* bugs.md A14: chunks of two devices in one range, one copy over all of them. */
static void test_a_copy_crosses_mappings_of_several_devices(void **state)
{
    unsigned char *from = pattern_buffer(BIG), *back = calloc(1, BIG);
    const size_t half = BIG / 2;
    hipMemGenericAllocationHandle_t handles[2] = {make_handle(0, half, false),
                                                  make_handle(1, half, false)};
    char *ptr = reserve(BIG);
    unsigned char seen[16];

    for (int i = 0; i < 2; i++)
        HIP_OK(hipMemMap(ptr + (size_t)i * half, half, 0, handles[i], 0));
    set_access(ptr, BIG, 0, hipMemAccessFlagsProtReadWrite);
    HIP_OK(hipMemcpy(ptr + 1, from, BIG - 1, hipMemcpyHostToDevice));
    assert_int_equal(fake_gpu_read(((struct fixture *)*state)->fake, 0, (uintptr_t)ptr + half - 8,
                                   seen, sizeof(seen), NULL),
                     0);
    assert_memory_equal(seen, from + half - 9, sizeof(seen));
    HIP_OK(hipMemcpyDtoH(back, ptr + 1, BIG - 1));
    assert_memory_equal(back, from, BIG - 1);
    HIP_OK(hipMemUnmap(ptr, BIG));
    HIP_OK(hipMemAddressFree(ptr, BIG));
    HIP_OK(hipMemRelease(handles[0]));
    HIP_OK(hipMemRelease(handles[1]));
    free(from);
    free(back);
}

static void test_a_copy_between_ranges_and_one_step_memory_arrives_whole(void **state)
{
    unsigned char *from = pattern_buffer(BIG), *back = calloc(1, BIG);
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, BIG, &handle);
    void *one_step, *host;

    HIP_OK(hipMalloc(&one_step, BIG));
    HIP_OK(hipHostMalloc(&host, BIG, hipHostMallocDefault));
    memcpy(host, from, BIG);
    HIP_OK(hipMemcpy(one_step, host, BIG, hipMemcpyDefault));
    HIP_OK(hipMemcpyPeer(ptr, 0, one_step, 1, BIG));
    memset(host, 0, BIG);
    HIP_OK(hipMemcpyAsync(host, ptr, BIG, hipMemcpyDeviceToHost, NULL));
    assert_memory_equal(host, from, BIG);
    HIP_OK(hipMemcpyWithStream(back, one_step, BIG, hipMemcpyDeviceToHost, NULL));
    assert_memory_equal(back, from, BIG);
    HIP_OK(hipFree(one_step));
    HIP_OK(hipHostFree(host));
    unmap_all(ptr, BIG, handle);
    free(from);
    free(back);
}

static void test_overlapping_copies_arrive_as_if_through_a_second_buffer(void **state)
{
    unsigned char *from = pattern_buffer(BIG), *back = calloc(1, BIG);
    const size_t shift = 12345;
    void *ptr;

    HIP_OK(hipMalloc(&ptr, BIG));
    HIP_OK(hipMemcpy(ptr, from, BIG, hipMemcpyHostToDevice));
    HIP_OK(hipMemcpyDtoD((char *)ptr + shift, ptr, BIG - shift));
    HIP_OK(hipMemcpyDtoH(back, ptr, BIG));
    assert_memory_equal(back + shift, from, BIG - shift);
    HIP_OK(hipMemcpy(ptr, from, BIG, hipMemcpyHostToDevice));
    HIP_OK(hipMemcpyDtoD(ptr, (char *)ptr + shift, BIG - shift));
    HIP_OK(hipMemcpyDtoH(back, ptr, BIG));
    assert_memory_equal(back, from + shift, BIG - shift);
    HIP_OK(hipFree(ptr));
    free(from);
    free(back);
}

static void test_fills_write_their_pattern_and_no_more(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);

    HIP_OK(hipMemset(ptr, 0, 2 * MIB));
    HIP_OK(hipMemset(ptr + 8, 0x1ab, 8));
    HIP_OK(hipMemsetD16(ptr + 16, 0x1234, 4));
    HIP_OK(hipMemsetD32Async(ptr + 4096 - 4, 0x01020304, 2, NULL));
    assert_int_equal(gpu_read(*state, 0, ptr), 0);
    assert_int_equal(gpu_read(*state, 0, ptr + 8), 0xabababababababab);
    assert_int_equal(gpu_read(*state, 0, ptr + 16), 0x1234123412341234);
    assert_int_equal(gpu_read(*state, 0, ptr + 24), 0);
    assert_int_equal(gpu_read(*state, 0, ptr + 4092), 0x0102030401020304);
    assert_int_equal(gpu_read(*state, 0, ptr + 4100), 0);
    HIP_FAILS(hipMemsetD32(ptr + 2, 1, 1), hipErrorInvalidValue, "multiple of 4");
    HIP_FAILS(hipMemsetD32(ptr, 1, SIZE_MAX), hipErrorInvalidValue, "count");
    HIP_FAILS(hipMemset(&handle, 1, 1), hipErrorInvalidValue, "0x");
    HIP_OK(hipMemset(ptr, 1, 0));
    unmap_all(ptr, 2 * MIB, handle);
}

static void test_a_copy_to_a_hole_or_without_access_is_invalid_and_writes_nothing(void **state)
{
    hipMemGenericAllocationHandle_t handle = make_handle(0, 4096, false);
    char *ptr = reserve(8192);
    uint64_t value = 9, seen = 1;

    HIP_OK(hipMemMap(ptr, 4096, 0, handle, 0));
    HIP_FAILS(hipMemcpy(ptr, &value, 8, hipMemcpyHostToDevice), hipErrorInvalidValue, "access");
    set_access(ptr, 4096, 0, hipMemAccessFlagsProtRead);
    HIP_FAILS(hipMemcpy(ptr, &value, 8, hipMemcpyHostToDevice), hipErrorInvalidValue, "write");
    HIP_OK(hipMemcpy(&seen, ptr, 8, hipMemcpyDeviceToHost));
    assert_int_not_equal(seen, 9);
    set_access(ptr, 4096, 0, hipMemAccessFlagsProtReadWrite);
    HIP_OK(hipMemset(ptr, 0, 4096));
    HIP_FAILS(hipMemset(ptr, 1, 8192), hipErrorInvalidValue, "nothing is mapped");
    assert_int_equal(gpu_read(*state, 0, ptr), 0);
    HIP_FAILS(hipMemcpy(ptr + 4096, &value, 8, hipMemcpyHostToDevice), hipErrorInvalidValue,
              "nothing is mapped");
    HIP_OK(hipMemUnmap(ptr, 4096));
    HIP_OK(hipMemAddressFree(ptr, 8192));
    HIP_OK(hipMemRelease(handle));
}

/* Whether it ends there or behind: the CPU may touch none of it. */
static void test_ordinary_memory_with_ours_inside_is_invalid(void **state)
{
    char *mem = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *buffer = calloc(5, 4096);
    void *inside;

    assert_ptr_not_equal(mem, MAP_FAILED);
    munmap(mem + 4096, 4096);
    HIP_OK(hipMemAddressReserve(&inside, 4096, 0, mem + 4096, 0));
    assert_ptr_equal(inside, mem + 4096);
    for (size_t size = 4096 + 1; size <= 5 * 4096; size += 4096 - 1) {
        HIP_FAILS(hipMemcpy(buffer, mem, size, hipMemcpyDefault), hipErrorInvalidValue,
                  "reach into");
        HIP_FAILS(hipMemcpy(mem, buffer, size, hipMemcpyHostToHost), hipErrorInvalidValue,
                  "reach into");
        HIP_FAILS(hipMemset(mem, 1, size), hipErrorInvalidValue, "reach into");
        HIP_FAILS(hipHostRegister(mem, size, 0), hipErrorInvalidValue, "memory of this library");
    }
    HIP_OK(hipMemcpy(buffer, mem, 4096, hipMemcpyDefault));
    HIP_OK(hipMemAddressFree(inside, 4096));
    munmap(mem, 5 * 4096);
    free(buffer);
}

static void test_bad_arguments_are_refused(void **state)
{
    char a[8] = "abcdefg", b[8] = "";
    hipStream_t stale;

    HIP_FAILS(hipMemcpy(NULL, a, 1, hipMemcpyDefault), hipErrorInvalidValue, "dst");
    HIP_FAILS(hipMemcpy(b, NULL, 1, hipMemcpyDefault), hipErrorInvalidValue, "src");
    HIP_FAILS(hipMemcpy(b, a, 1, (hipMemcpyKind)9), hipErrorInvalidMemcpyDirection, "9");
    HIP_FAILS(hipMemcpy(b, a, 1, hipMemcpyHostToDevice), hipErrorInvalidValue, "dst: 0x1 bytes");
    HIP_FAILS(hipMemcpy(b, a, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue, "src: 0x1 bytes");
    HIP_FAILS(hipMemcpy(b, a, SIZE_MAX, hipMemcpyDefault), hipErrorInvalidValue, "address space");
    HIP_FAILS(hipMemcpyPeer(b, 0, a, 2, 1), hipErrorInvalidDevice, "device 2");
    HIP_OK(hipStreamCreate(&stale));
    HIP_OK(hipStreamDestroy(stale));
    HIP_FAILS(hipMemcpyAsync(b, a, 1, hipMemcpyDefault, stale), hipErrorInvalidHandle, "stream");
    HIP_OK(hipMemcpy(NULL, NULL, 0, hipMemcpyDefault));
    assert_string_equal(b, "");
    HIP_OK(hipMemcpy(b, a, 8, hipMemcpyHostToHost));
    assert_string_equal(b, a);
}

static void test_memory_the_cpu_cannot_see_is_not_supported(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);
    uint64_t value = 5;

    gpu_write(*state, 0, ptr, 6);
    HIP_FAILS(hipMemcpy(ptr, &value, 8, hipMemcpyHostToDevice), hipErrorNotSupported, "CPU");
    HIP_FAILS(hipMemset(ptr, 0, 8), hipErrorNotSupported, "CPU");
    assert_int_equal(gpu_read(*state, 0, ptr), 6);
    unmap_all(ptr, 2 * MIB, handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_copy_crosses_mappings_of_several_devices, start,
                                        stop),
        cmocka_unit_test_setup_teardown(
            test_a_copy_between_ranges_and_one_step_memory_arrives_whole, start, stop),
        cmocka_unit_test_setup_teardown(
            test_overlapping_copies_arrive_as_if_through_a_second_buffer, start, stop),
        cmocka_unit_test_setup_teardown(test_fills_write_their_pattern_and_no_more, start, stop),
        cmocka_unit_test_setup_teardown(
            test_a_copy_to_a_hole_or_without_access_is_invalid_and_writes_nothing, start, stop),
        cmocka_unit_test_setup_teardown(test_ordinary_memory_with_ours_inside_is_invalid, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_bad_arguments_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(test_memory_the_cpu_cannot_see_is_not_supported,
                                        start_small_bar, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
