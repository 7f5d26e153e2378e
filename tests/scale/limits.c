/* SPDX-License-Identifier: MIT */
/* Numbers that other stacks do not reach within the limits a process has by default. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void test_10000_live_handles_with_256_descriptors(void **state)
{
    static hipMemGenericAllocationHandle_t handles[10000];
    struct rlimit limit, low;
    hipMemAllocationProp prop = shareable_prop(0);
    unsigned descriptors = open_descriptors();
    void *base = NULL;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    HIP_OK(hipMemAddressReserve(&base, COUNT_OF(handles) * MIB(2), 0, NULL, 0));
    for (unsigned i = 0; i < COUNT_OF(handles); i++) {
        HIP_OK(hipMemCreate(&handles[i], MIB(2), &prop, 0));
        HIP_OK(hipMemMap(at(base, i * MIB(2)), MIB(2), 0, handles[i], 0));
    }
    HIP_OK(set_access(base, COUNT_OF(handles) * MIB(2), 0, hipMemAccessFlagsProtReadWrite));
    assert_int_equal(open_descriptors(), descriptors);
    for (unsigned i = 0; i < COUNT_OF(handles); i += 97) {
        gpu_stamp(0, at(base, i * MIB(2)), MIB(2), i);
        gpu_expect(0, at(base, i * MIB(2)), MIB(2), i);
    }
    HIP_OK(hipMemUnmap(base, COUNT_OF(handles) * MIB(2)));
    for (unsigned i = 0; i < COUNT_OF(handles); i++)
        HIP_OK(hipMemRelease(handles[i]));
    HIP_OK(hipMemAddressFree(base, COUNT_OF(handles) * MIB(2)));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static long read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    long value = -1;

    if (!file)
        return -1;
    if (fscanf(file, "%ld", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

/* Two-page pieces with one page between, so that no neighbours could be one. */
static void test_100000_mappings_with_the_default_number_of_host_mappings(void **state)
{
    const unsigned count = 100000;
    const uint64_t piece = KIB(8), step = KIB(12);
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle = NULL;
    long most = read_number("/proc/sys/vm/max_map_count");
    struct map_lines lines = count_map_lines(0, UINT64_MAX);
    void *base = NULL;

    HIP_OK(hipMemCreate(&handle, count * piece, &prop, 0));
    HIP_OK(hipMemAddressReserve(&base, count * step, 0, NULL, 0));
    for (unsigned i = 0; i < count; i++) {
        HIP_OK(hipMemMap(at(base, i * step), piece, i * piece, handle, 0));
        HIP_OK(set_access(at(base, i * step), piece, 0, hipMemAccessFlagsProtReadWrite));
    }
    print_message("# vm.max_map_count %ld, host mappings %u more\n", most,
                  count_map_lines(0, UINT64_MAX).all - lines.all);
    assert_true(count_map_lines(0, UINT64_MAX).all < lines.all + 100);
    for (unsigned i = 0; i < count; i += 977) {
        gpu_stamp(0, at(base, i * step), piece, i);
        gpu_expect(0, at(base, i * step), piece, i);
    }
    HIP_OK(hipMemUnmap(base, count * step));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(base, count * step));
}

/* Maps until the process may have no mapping more: pages in an area of their own, every other one.
 */
static void *fill_with_mappings(size_t size)
{
    char *area = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const size_t step = 2 * KIB(4);
    size_t used = 0;

    assert_ptr_not_equal(area, MAP_FAILED);
    while (used < size - step && mprotect(area + used, KIB(4), PROT_READ) == 0)
        used += step;
    while (used < size - step && mmap(area + used, KIB(4), PROT_READ,
                                      MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        used += step;
    assert_true(used < size - step);
    return area;
}

/* Running out of mappings is running out of memory to a program, which then frees what it has. */
static void test_a_process_full_of_mappings_can_free_what_the_cpu_sees(void **state)
{
    const unsigned count = 4000;
    const hipMemAccessDesc host = {{hipMemLocationTypeHost, 0}, hipMemAccessFlagsProtReadWrite};
    long most = read_number("/proc/sys/vm/max_map_count");
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle = NULL;
    void *base = NULL, *pinned = NULL, *area;
    size_t size;

    if (most < 0 || most > 1 << 20)
        skip_case("vm.max_map_count is %ld", most);
    if (SANITIZED)
        skip_case("the sanitizers end a process that can map nothing more");
    size = (size_t)most * 2 * KIB(4);
    HIP_OK(hipMemCreate(&handle, KIB(4), &prop, 0));
    HIP_OK(hipMemAddressReserve(&base, count * KIB(8), 0, NULL, 0));
    for (unsigned i = 0; i < count; i++) {
        HIP_OK(hipMemMap(at(base, i * KIB(8)), KIB(4), 0, handle, 0));
        HIP_OK(hipMemSetAccess(at(base, i * KIB(8)), KIB(4), &host, 1));
    }
    HIP_OK(hipHostMalloc(&pinned, KIB(4), 0));
    area = fill_with_mappings(size);
    HIP_OK(hipMemUnmap(base, count * KIB(8)));
    HIP_OK(hipHostFree(pinned));
    assert_int_equal(munmap(area, size), 0);
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMemAddressFree(base, count * KIB(8)));
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool fine = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return fine;
}

/* The setting is the whole machine's, so it lasts for the one call only. */
static void test_64_tib_are_reserved_where_memory_is_not_overcommitted(void **state)
{
    static const char setting[] = "/proc/sys/vm/overcommit_memory";
    long was = read_number(setting);
    char text[16];
    hipError_t result;
    void *base = NULL;

    snprintf(text, sizeof(text), "%ld", was);
    if (was != 2 && !write_text(setting, "2"))
        skip_case("vm.overcommit_memory cannot be set to 2: %s", strerror(errno));
    result = hipMemAddressReserve(&base, TIB(64), 0, NULL, 0);
    if (was != 2 && !write_text(setting, text))
        fail_msg("vm.overcommit_memory cannot be set back to %ld", was);
    HIP_OK(result);
    HIP_OK(hipMemAddressFree(base, TIB(64)));
}

static void test_64_tib_reservation_is_usable_at_both_ends(void **state)
{
    hipMemAllocationProp prop = device_prop(0);
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, TIB(64), 0, NULL, 0));
    for (unsigned i = 0; i < 2; i++) {
        void *va = at(base, i ? TIB(64) - MIB(2) : 0);
        hipMemGenericAllocationHandle_t handle = NULL;

        HIP_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
        HIP_OK(hipMemMap(va, MIB(2), 0, handle, 0));
        HIP_OK(hipMemRelease(handle));
        HIP_OK(set_access(va, MIB(2), 0, hipMemAccessFlagsProtReadWrite));
        gpu_stamp(0, va, MIB(2), i);
        cpu_expect(va, MIB(2), i);
    }
    HIP_OK(hipMemUnmap(base, TIB(64)));
    HIP_OK(hipMemAddressFree(base, TIB(64)));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        /* First, before freed memory lies ready for its plan. */
        CASE(test_a_process_full_of_mappings_can_free_what_the_cpu_sees),
        CASE(test_10000_live_handles_with_256_descriptors),
        CASE(test_100000_mappings_with_the_default_number_of_host_mappings),
        CASE(test_64_tib_are_reserved_where_memory_is_not_overcommitted),
        CASE(test_64_tib_reservation_is_usable_at_both_ends),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
