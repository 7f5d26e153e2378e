/* SPDX-License-Identifier: MIT */
/* Reported faults in handles, references and sharing. */
#include "bugs.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* C01, C02 */
static void test_number_of_handles_does_not_depend_on_descriptors(void **state)
{
    static handle_t handles[4000];
    struct rlimit limit, low;
    unsigned open_before = open_descriptors();

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (unsigned i = 0; i < COUNT_OF(handles); i++)
        handles[i] = create(0, KIB(64));
    assert_int_equal(open_descriptors(), open_before);
    for (unsigned i = 0; i < COUNT_OF(handles); i++)
        HIP_OK(hipMemRelease(handles[i]));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* C02 */
static void test_10000_small_buffers_leave_the_descriptor_count_alone(void **state)
{
    static void *buffers[10000];
    unsigned open_before = open_descriptors();

    for (unsigned i = 0; i < COUNT_OF(buffers); i++) {
        buffers[i] = reserve(KIB(4));
        put_piece(buffers[i], KIB(4), 0);
    }
    assert_int_equal(open_descriptors(), open_before);
    for (unsigned i = 0; i < COUNT_OF(buffers); i++) {
        unmap(buffers[i], KIB(4));
        address_free(buffers[i], KIB(4));
    }
}

/* C02: when the process is out of descriptors the answer is not "out of memory". */
static void test_shortage_of_descriptors_is_not_called_shortage_of_memory(void **state)
{
    hipMemAllocationProp prop = shareable_prop(0);
    handle_t handle = create_shareable(0, MIB(2)), other = NULL;
    struct rlimit limit, low;
    hipError_t created, exported;
    int fd = -1;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    created = hipMemCreate(&other, MIB(2), &prop, 0);
    exported = hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    HIP_IS(hipErrorOperatingSystem, exported);
    if (created == hipSuccess)
        HIP_OK(hipMemRelease(other));
    else
        HIP_IS(hipErrorOperatingSystem, created);
    HIP_OK(hipMemRelease(handle));
}

/* C03 */
static void test_no_step_of_a_mapping_keeps_a_descriptor(void **state)
{
    need_peers();
    unsigned count = open_descriptors();
    handle_t handle = create_shareable(0, MIB(2));
    void *base = reserve(MIB(2));

    assert_int_equal(open_descriptors(), count);
    HIP_OK(hipMemMap(base, MIB(2), 0, handle, 0));
    assert_int_equal(open_descriptors(), count);
    for (int i = 0; i < machine.devices; i++) {
        HIP_OK(set_access(base, MIB(2), i, RW));
        assert_int_equal(open_descriptors(), count);
    }
    unmap(base, MIB(2));
    HIP_OK(hipMemRelease(handle));
    assert_int_equal(open_descriptors(), count);
    address_free(base, MIB(2));
}

/* C06, C08 */
static void test_imported_memory_takes_host_and_device_access_and_answers_queries(void **state)
{
    need_cpu_view();
    hipMemAccessDesc both[2] = {device_access(0, RW), host_access(RW)};
    handle_t owner = create_shareable(0, MIB(2)), import = NULL;
    hipPointerAttribute_t attributes;
    void *first = reserve(MIB(2)), *second = reserve(MIB(2));
    int fd = export_fd(owner);

    HIP_OK(import_fd(&import, fd));
    close(fd);
    map_rw(first, MIB(2), owner, 0);
    HIP_OK(hipMemMap(second, MIB(2), 0, import, 0));
    HIP_OK(hipMemSetAccess(second, MIB(2), both, 2));
    gpu_stamp(0, first, MIB(2), 8);
    assert_true(host_matches(second, MIB(2), 8));
    memset(&attributes, 0xff, sizeof(attributes));
    HIP_OK(hipPointerGetAttributes(&attributes, at(second, 999)));
    assert_int_equal(attributes.type, hipMemoryTypeDevice);
    assert_int_equal(attributes.device, 0);
    assert_ptr_equal(attributes.devicePointer, at(second, 999));
    unmap(first, MIB(2));
    HIP_OK(hipMemRelease(owner));
    assert_true(host_matches(second, MIB(2), 8));
    unmap(second, MIB(2));
    HIP_OK(hipMemRelease(import));
    address_free(first, MIB(2));
    address_free(second, MIB(2));
}

/* C09 */
static void test_retain_of_one_step_memory_is_invalid(void **state)
{
    handle_t handle = NULL;
    void *va = NULL;

    HIP_OK(hipMalloc(&va, MIB(2)));
    HIP_INVALID(hipMemRetainAllocationHandle(&handle, va));
    assert_null(handle);
    HIP_OK(hipFree(va));
}

/* C11, C12, C13 */
static void test_legacy_ipc_refuses_vmm_memory_anywhere_in_it(void **state)
{
    hipIpcMemHandle_t ipc;
    void *base = reserve(MIB(4));

    put_piece(base, MIB(2), 0);
    HIP_INVALID(hipIpcGetMemHandle(&ipc, base));
    HIP_INVALID(hipIpcGetMemHandle(&ipc, at(base, KIB(12) + 8)));
    HIP_INVALID(hipIpcGetMemHandle(&ipc, at(base, MIB(3))));
    unmap(base, MIB(2));
    address_free(base, MIB(4));
}

/* C14 */
static void test_each_export_is_a_new_descriptor_closed_on_exec(void **state)
{
    handle_t with = create_shareable(0, MIB(2)), without = create(0, MIB(2));
    int first = export_fd(with), second = export_fd(with), none = -1;

    assert_true(first >= 3 && second >= 3 && first != second);
    assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(second, F_GETFD) & FD_CLOEXEC);
    HIP_INVALID(
        hipMemExportToShareableHandle(&none, without, hipMemHandleTypePosixFileDescriptor, 0));
    HIP_INVALID(hipMemExportToShareableHandle(&none, without, hipMemHandleTypeNone, 0));
    assert_int_equal(none, -1);
    close(first);
    close(second);
    HIP_OK(hipMemRelease(with));
    HIP_OK(hipMemRelease(without));
}

/* C14: also where the lowest numbers are free. */
static void test_exported_descriptor_is_never_0_1_or_2(void **state)
{
    handle_t handle = create_shareable(0, MIB(2));
    int saved = fcntl(0, F_DUPFD_CLOEXEC, 100), fd;

    close(0);
    fd = export_fd(handle);
    if (saved >= 0) {
        dup2(saved, 0);
        close(saved);
    }
    assert_true(fd >= 3);
    close(fd);
    HIP_OK(hipMemRelease(handle));
}

/* C16, C17: two more processes, each on a device of its own. */
struct half {
    pid_t pid;
    int number;
};

static int half_of_a_job(int socket, int device)
{
    hipMemAllocationProp prop = shareable_prop(device);
    handle_t own = NULL, sent = NULL, taken = NULL;
    void *mine = NULL, *view = NULL;
    struct half half = {.pid = getpid()}, other;
    int fd = -1, passed = -1;

    CHILD_NEEDS(all_peers() && cpu_sees_memory(device));
    CHILD_OK(hipSetDevice(device));
    CHILD_OK(hipMemCreate(&own, MIB(2), &prop, 0));
    CHILD_OK(hipMemAddressReserve(&mine, MIB(2), 0, NULL, 0));
    CHILD_OK(hipMemMap(mine, MIB(2), 0, own, 0));
    CHILD_OK(set_access(mine, MIB(2), device, RW));
    cpu_stamp(mine, MIB(2), (uint64_t)device);
    CHILD_OK(
        hipMemExportToShareableHandle(&half.number, own, hipMemHandleTypePosixFileDescriptor, 0));
    CHILD_TRUE(send_message(socket, &half, sizeof(half), &half.number, 1) == 0);
    CHILD_TRUE(receive_message(socket, &other, sizeof(other), &passed, 1) == 0);
    CHILD_OK(import_fd(&sent, passed));
    fd = descriptor_of_process(other.pid, other.number);
    if (fd >= 0) {
        CHILD_OK(import_fd(&taken, fd));
        close(fd);
        CHILD_OK(hipMemRelease(taken));
    }
    close(passed);
    CHILD_OK(hipMemAddressReserve(&view, MIB(2), 0, NULL, 0));
    CHILD_OK(hipMemMap(view, MIB(2), 0, sent, 0));
    CHILD_OK(set_access(view, MIB(2), device, RW));
    CHILD_TRUE(cpu_matches(view, MIB(2), (uint64_t)(1 - device)));
    CHILD_OK(hipMemUnmap(view, MIB(2)));
    CHILD_OK(hipMemRelease(sent));
    CHILD_TRUE(send_message(socket, "d", 1, NULL, 0) == 0);
    CHILD_TRUE(receive_message(socket, &other, 1, NULL, 0) == 0);
    CHILD_OK(hipMemUnmap(mine, MIB(2)));
    CHILD_OK(hipMemRelease(own));
    return 0;
}

static struct peer halves[2];
static bool have_halves;

static void test_processes_share_by_socket_and_by_descriptor_number(void **state)
{
    struct half half[2];
    int fds[2];
    char word;

    if (!have_halves)
        skip_case("needs two devices");
    for (int i = 0; i < 2; i++)
        if (receive_message(halves[i].socket, &half[i], sizeof(half[i]), &fds[i], 1) != 0)
            children_gone(halves, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            send_message(halves[i].socket, &half[1 - i], sizeof(half[0]), &fds[1 - i], 1), 0);
    close(fds[0]);
    close(fds[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(receive_message(halves[i].socket, &word, 1, NULL, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_message(halves[i].socket, "g", 1, NULL, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(peer_wait(&halves[i]), 0);
}

/* C19 */
static void test_refused_import_leaves_nothing(void **state)
{
    int null_file = open("/dev/null", O_RDWR | O_CLOEXEC), pipe_ends[2];
    handle_t handle = NULL;

    assert_true(null_file >= 0 && pipe2(pipe_ends, O_CLOEXEC) == 0);
    for (unsigned i = 0; i < 100; i++) {
        HIP_INVALID(import_fd(&handle, -1));
        HIP_INVALID(import_fd(&handle, 0));
        HIP_INVALID(import_fd(&handle, 12345));
        HIP_INVALID(import_fd(&handle, null_file));
        HIP_INVALID(import_fd(&handle, pipe_ends[0]));
    }
    assert_null(handle);
    close(null_file);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* C20: by export, which is the way to share here. */
static void test_shared_small_blocks_come_back(void **state)
{
    uint64_t left = free_bytes(0);

    for (unsigned i = 0; i < 5000; i++) {
        handle_t handle = create_shareable(0, KIB(256));

        close(export_fd(handle));
        HIP_OK(hipMemRelease(handle));
    }
    assert_int_equal(free_bytes(0), left);
}

/* C21 */
static void test_descriptor_of_an_address_range_works_or_is_not_supported(void **state)
{
    void *base = reserve(MIB(2));
    int fd = -1;
    hipError_t result;

    put_piece(base, MIB(2), 0);
    result = hipMemGetHandleForAddressRange(&fd, base, MIB(2), hipMemRangeHandleTypeDmaBufFd, 0);
    if (result == hipSuccess) {
        handle_t import = NULL;

        HIP_OK(import_fd(&import, fd));
        HIP_OK(hipMemRelease(import));
        close(fd);
    } else {
        HIP_IS(hipErrorNotSupported, result);
        assert_int_equal(fd, -1);
    }
    unmap(base, MIB(2));
    address_free(base, MIB(2));
}

/* C23 */
static int leave_with_everything_alive(int socket, int arg)
{
    hipMemAllocationProp prop = device_prop(0);
    handle_t handle = NULL;
    void *va = NULL, *other = NULL;

    CHILD_OK(hipMemAddressReserve(&va, MIB(64), 0, NULL, 0));
    CHILD_OK(hipMemCreate(&handle, MIB(64), &prop, 0));
    CHILD_OK(hipMemMap(va, MIB(64), 0, handle, 0));
    CHILD_OK(set_access(va, MIB(64), 0, RW));
    CHILD_OK(hipMalloc(&other, MIB(64)));
    exit(0);
}

/* It runs, and the machine is looked at, before any other process is there. */
static struct peer leaver;
static int leaver_status;
static struct fake_usage usage_after_leaver;
static bool usage_after_leaver_known;

static void test_process_that_exits_with_live_handles_ends_well_and_gives_all_back(void **state)
{
    assert_int_equal(leaver_status, 0);
    if (!machine.fake)
        return;
    assert_true(usage_after_leaver_known);
    assert_int_equal(usage_after_leaver.vram_used[0], 0);
    assert_int_equal(usage_after_leaver.objects, 0);
}

/* G03 */
static void test_address_range_with_null_outputs_does_not_crash(void **state)
{
    void *base = reserve(MIB(2));

    put_piece(base, MIB(2), 0);
    HIP_OK(hipMemGetAddressRange(NULL, NULL, base));
    unmap(base, MIB(2));
    HIP_IS(hipErrorNotFound, hipMemGetAddressRange(NULL, NULL, base));
    address_free(base, MIB(2));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_process_that_exits_with_live_handles_ends_well_and_gives_all_back),
        RAW_CASE(test_processes_share_by_socket_and_by_descriptor_number),
        CASE(test_number_of_handles_does_not_depend_on_descriptors),
        CASE(test_10000_small_buffers_leave_the_descriptor_count_alone),
        CASE(test_shortage_of_descriptors_is_not_called_shortage_of_memory),
        CASE(test_no_step_of_a_mapping_keeps_a_descriptor),
        CASE(test_imported_memory_takes_host_and_device_access_and_answers_queries),
        CASE(test_retain_of_one_step_memory_is_invalid),
        CASE(test_legacy_ipc_refuses_vmm_memory_anywhere_in_it),
        CASE(test_each_export_is_a_new_descriptor_closed_on_exec),
        CASE(test_exported_descriptor_is_never_0_1_or_2),
        CASE(test_refused_import_leaves_nothing),
        CASE(test_shared_small_blocks_come_back),
        CASE(test_descriptor_of_an_address_range_works_or_is_not_supported),
        CASE(test_address_range_with_null_outputs_does_not_crash),
    };

    machine_choose(argc, argv, "mi300x:8");
    peer_start(&leaver, leave_with_everything_alive, 0);
    leaver_status = peer_wait(&leaver);
    if (machine.fake)
        usage_after_leaver_known = fake_get_usage(machine.fake, &usage_after_leaver) == 0;
    have_halves = machine.fake && fake_gpu_count(machine.fake) > 1;
    for (int i = 0; have_halves && i < 2; i++)
        peer_start(&halves[i], half_of_a_job, i);
    return run_cases(cases, COUNT_OF(cases));
}
