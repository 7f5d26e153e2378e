/* SPDX-License-Identifier: MIT */
/*
 * Reported faults in opening the device, in containers and in the life of a process. HIP starts
 * once per process, so each case is a child process of its own on the same machine.
 */
#include "bugs.h"
#include "hook.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd/uapi.h"

static struct hook hook;
static int open_error; /* what opening /dev/kfd gives */

/* Runs body in a child whose default system is the hook, and wants 0 from it. */
static void in_child(int (*body)(int socket, int arg), int arg)
{
    struct peer child;

    need_gpu_side();
    hook_init(&hook, fake_sys(machine.fake));
    kfd_sys_set_default(&hook.sys);
    peer_start(&child, body, arg);
    assert_int_equal(peer_wait(&child), 0);
    kfd_sys_set_default(fake_sys(machine.fake));
}

static int refuse_kfd(struct hook *h, const char *path, int flags)
{
    return strcmp(path, "/dev/kfd") == 0 ? -open_error : hook_pass_open(h, path, flags);
}

/* F02, F03, F04, F05, F06, F07, F09 */
static int no_device_with_a_reason(int socket, int error)
{
    hipMemAllocationProp prop;
    handle_t handle = NULL;
    void *va = NULL;
    int count = 9, value;

    open_error = error;
    hook.open_path = refuse_kfd;
    memset(&prop, 0, sizeof(prop));
    CHILD_TRUE(hipInit(0) == hipErrorNoDevice);
    CHILD_TRUE(strstr(kfd_error_text(), "/dev/kfd") != NULL);
    CHILD_TRUE(hipGetDeviceCount(&count) == hipErrorNoDevice && count == 0);
    CHILD_TRUE(hipSetDevice(0) == hipErrorNoDevice);
    CHILD_TRUE(hipDeviceGetAttribute(&value, hipDeviceAttributeVirtualMemoryManagementSupported,
                                     0) == hipErrorNoDevice);
    CHILD_TRUE(hipMalloc(&va, MIB(2)) == hipErrorNoDevice && !va);
    CHILD_TRUE(hipMemCreate(&handle, MIB(2), &prop, 0) == hipErrorNoDevice && !handle);
    CHILD_TRUE(hipMemAddressReserve(&va, MIB(2), 0, NULL, 0) == hipErrorNoDevice && !va);
    CHILD_TRUE(hipDriverGetVersion(&value) == hipSuccess && value > 0);
    return 0;
}

static void test_kfd_that_cannot_be_opened_is_no_device_and_the_text_names_it(void **state)
{
    static const int errors[] = {ENOENT, EACCES, EPERM, ENOMEM, EINVAL, ENXIO, EIO};

    for (unsigned i = 0; i < COUNT_OF(errors); i++)
        in_child(no_device_with_a_reason, errors[i]);
}

/* As on most systems: the group may, others may not. */
static int kfd_of_group_root(struct hook *h, const char *path, struct kfd_sys_stat *out)
{
    *out = (struct kfd_sys_stat){.mode = S_IFCHR | 0660, .uid = 0, .gid = 0, .device_major = 511};
    return 0;
}

/* F02, F07, F09 */
static int permission_names_the_file(int socket, int error)
{
    char text[512];
    int count;

    open_error = error;
    hook.open_path = refuse_kfd;
    hook.stat_path = kfd_of_group_root;
    CHILD_TRUE(hipGetDeviceCount(&count) == hipErrorNoDevice);
    snprintf(text, sizeof(text), "%s", kfd_error_text());
    CHILD_TRUE(strstr(text, "/dev/kfd") && strstr(text, "group root") && !strstr(text, "memory"));
    return 0;
}

static void test_missing_permission_names_the_file_and_its_group(void **state)
{
    in_child(permission_names_the_file, EACCES);
    in_child(permission_names_the_file, EPERM);
}

/* F08 */
static int acquired;       /* ACQUIRE_VM requests seen */
static int before_acquire; /* requests for a device that came too early */

static int watch_order(struct hook *h, int fd, unsigned long request, void *arg)
{
    int result;

    if (_IOC_TYPE(request) == KFD_UAPI_TYPE_KFD) {
        switch (_IOC_NR(request)) {
        case KFD_NR_GET_VERSION:
        case KFD_NR_GET_PROCESS_APERTURES:
        case KFD_NR_GET_PROCESS_APERTURES_NEW:
        case KFD_NR_ACQUIRE_VM:
        case KFD_NR_GET_CLOCK_COUNTERS:
            break;
        default:
            before_acquire += acquired == 0;
        }
    }
    result = hook_pass_request(h, fd, request, arg);
    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ACQUIRE_VM) && result == 0)
        acquired++;
    return result;
}

static int acquire_comes_first(int socket, int arg)
{
    void *va = NULL;

    hook.request = watch_order;
    CHILD_OK(hipMalloc(&va, MIB(2)));
    CHILD_OK(hipFree(va));
    CHILD_TRUE(acquired == (int)fake_gpu_count(machine.fake));
    CHILD_TRUE(before_acquire == 0);
    return 0;
}

static void test_no_device_request_before_its_vm_is_acquired(void **state)
{
    in_child(acquire_comes_first, 0);
}

/* F10, F11 */
static int refuse_nodes(struct hook *h, const char *path, int flags)
{
    unsigned minor;

    if (sscanf(path, "/dev/dri/renderD%u", &minor) == 1 && minor % 8 != 0)
        return -ENOENT;
    return hook_pass_open(h, path, flags);
}

static int many_nodes(int socket, int hidden)
{
    int count = 0, expected;
    void *va = NULL;

    kfd_sys_set_default(NULL);
    machine_use("cpx64", NULL, 0);
    hook_init(&hook, fake_sys(machine.fake));
    hook.open_path = hidden ? refuse_nodes : NULL;
    kfd_sys_set_default(&hook.sys);
    expected = (int)fake_gpu_count(machine.fake);
    CHILD_TRUE(expected == 64);
    CHILD_OK(hipGetDeviceCount(&count));
    CHILD_TRUE(hidden ? count == expected / 8 : count == expected);
    for (int i = 0; i < count; i++) {
        CHILD_OK(hipSetDevice(i));
        CHILD_OK(hipMalloc(&va, MIB(2)));
        CHILD_OK(hipFree(va));
    }
    return 0;
}

static void test_64_partitions_are_all_usable(void **state)
{
    in_child(many_nodes, 0);
}

static void test_partitions_without_a_render_node_are_left_out_and_the_others_work(void **state)
{
    in_child(many_nodes, 1);
}

static int skipped_has_reasons(int socket, int arg)
{
    struct kfd *kfd = NULL;
    unsigned skipped = 0;

    hook.open_path = refuse_nodes;
    CHILD_TRUE(kfd_open(NULL, &kfd) == 0);
    while (kfd_skipped(kfd, skipped)) {
        CHILD_TRUE(strstr(kfd_skipped(kfd, skipped), "renderD") != NULL);
        skipped++;
    }
    CHILD_TRUE(skipped > 0 && skipped + kfd_device_count(kfd) == fake_gpu_count(machine.fake));
    kfd_close(kfd);
    return 0;
}

static void test_each_device_left_out_has_a_reason_that_names_its_node(void **state)
{
    in_child(skipped_has_reasons, 0);
}

/* F13 */
static int fail_then_start(int socket, int arg)
{
    struct kfd_sys *injector = NULL;
    int failed = 0, count = 0;
    bool fired = true;

    CHILD_TRUE(kfd_sys_inject_new(fake_sys(machine.fake), &injector) == 0);
    kfd_sys_set_default(injector);
    for (uint64_t skip = 0; fired && failed < 3; skip += 3) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = skip, .error = EIO};

        kfd_sys_inject_set(injector, &fault);
        failed += hipInit(0) != hipSuccess;
        kfd_sys_inject_seen(injector, &fired);
        if (fired && failed == 0)
            break; /* a device was left out, and the library has started */
    }
    CHILD_TRUE(failed > 0);
    kfd_sys_inject_set(injector, NULL);
    CHILD_OK(hipInit(0));
    CHILD_OK(hipGetDeviceCount(&count));
    CHILD_TRUE(count > 0);
    return 0;
}

static void test_start_that_failed_can_be_tried_again(void **state)
{
    in_child(fail_then_start, 0);
}

/* F13: the child of a process in which HIP has started gets a defined answer, and the parent lives
 * on. */
static int use_after_fork(int socket, int arg)
{
    hipMemAllocationProp prop = device_prop(0);
    handle_t handle = NULL;
    void *va = NULL;
    int status = 0;
    pid_t pid;

    CHILD_OK(hipMemAddressReserve(&va, MIB(2), 0, NULL, 0));
    CHILD_OK(hipMemCreate(&handle, MIB(2), &prop, 0));
    CHILD_OK(hipMemMap(va, MIB(2), 0, handle, 0));
    CHILD_OK(set_access(va, MIB(2), 0, RW));
    cpu_stamp(va, MIB(2), 3);
    pid = fork();
    CHILD_TRUE(pid >= 0);
    if (pid == 0) {
        void *mine = NULL;
        hipError_t result = hipMalloc(&mine, MIB(2));

        if (result != hipSuccess && result != hipErrorNotInitialized)
            _exit(2);
        /* What the parent made is nobody's here. */
        if (hipMemUnmap(va, MIB(2)) == hipSuccess || hipMemRelease(handle) == hipSuccess)
            _exit(3);
        _exit(0);
    }
    CHILD_TRUE(waitpid(pid, &status, 0) == pid);
    CHILD_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHILD_TRUE(cpu_matches(va, MIB(2), 3));
    CHILD_OK(hipMemUnmap(va, MIB(2)));
    CHILD_OK(hipMemRelease(handle));
    CHILD_OK(hipMemAddressFree(va, MIB(2)));
    return 0;
}

static void test_child_of_a_started_process_is_answered_and_harms_nothing(void **state)
{
    in_child(use_after_fork, 0);
}

/* F14, F16 */
static int open_and_close(int socket, int arg)
{
    unsigned descriptors = 0;
    struct map_lines lines = {0, 0}, now;

    for (unsigned i = 0; i < 100; i++) {
        struct kfd *kfd = NULL;

        CHILD_TRUE(kfd_open(NULL, &kfd) == 0);
        CHILD_TRUE(kfd_device_count(kfd) == fake_gpu_count(machine.fake));
        kfd_close(kfd);
        if (i == 0)
            descriptors = open_descriptors(); /* the render nodes stay, see kfd_sys_state */
        CHILD_TRUE(open_descriptors() == descriptors);
        now = count_map_lines(0, UINT64_MAX);
        if (i == 10)
            lines = now;
        CHILD_TRUE(i <= 10 || now.backed == lines.backed);
    }
    return 0;
}

static void test_opening_and_closing_leaves_neither_descriptors_nor_pages(void **state)
{
    in_child(open_and_close, 0);
}

/* F25 */
static uint32_t all_alloc_flags;

static int collect_flags(struct hook *h, int fd, unsigned long request, void *arg)
{
    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ALLOC_MEMORY_OF_GPU))
        all_alloc_flags |= ((struct kfd_ioctl_alloc_memory_of_gpu_args *)arg)->flags;
    return hook_pass_request(h, fd, request, arg);
}

static int no_user_pointers(int socket, int arg)
{
    void *va = NULL, *host = NULL;

    hook.request = collect_flags;
    CHILD_OK(hipMalloc(&va, MIB(2)));
    CHILD_OK(hipHostMalloc(&host, MIB(2), 0));
    CHILD_OK(hipFree(va));
    CHILD_OK(hipHostFree(host));
    CHILD_TRUE(all_alloc_flags != 0 && (all_alloc_flags & KFD_MEM_USERPTR) == 0);
    return 0;
}

static void test_no_memory_is_asked_for_in_the_way_drivers_disagree_on(void **state)
{
    in_child(no_user_pointers, 0);
}

/* F26 */
static int old_version(struct hook *h, int fd, unsigned long request, void *arg)
{
    int result = hook_pass_request(h, fd, request, arg);

    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_GET_VERSION) && result == 0)
        ((struct kfd_ioctl_get_version_args *)arg)->major_version = 7;
    return result;
}

static int unknown_interface(int socket, int arg)
{
    int count = 1;

    hook.request = old_version;
    CHILD_TRUE(hipGetDeviceCount(&count) == hipErrorNoDevice && count == 0);
    CHILD_TRUE(strstr(kfd_error_text(), "7.") && strstr(kfd_error_text(), "interface"));
    return 0;
}

static void test_interface_of_another_major_version_is_refused_with_its_number(void **state)
{
    in_child(unknown_interface, 0);
}

/* F26, A25: an engine that this kernel cannot serve is asked for, so every call says at once that
 * it is not supported, and why. That the attribute is 0 where none is asked for and none works is
 * the HIP layer's own test: every kernel the fake has serves one. */
static int engine_not_there(int socket, int arg)
{
    hipMemAllocationProp prop = device_prop(0);
    hipMemAccessDesc access = device_access(0, RW);
    unsigned long long flags;
    handle_t handle = NULL;
    size_t size;
    void *va = NULL;
    int supported = -1, fd = -1;

    setenv("KFDIRECT_ENGINE", "drm", 1);
    kfd_sys_set_default(NULL);
    machine_use("mi210:2", "6.1", 0);
    CHILD_TRUE(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported,
                                     0) == hipErrorNotSupported);
    CHILD_TRUE(supported != 1);
    CHILD_TRUE(hipMemAddressReserve(&va, MIB(2), 0, NULL, 0) == hipErrorNotSupported);
    CHILD_TRUE(strstr(kfd_error_text(), "engine drm") && strstr(kfd_error_text(), "1.11"));
    CHILD_TRUE(hipMemCreate(&handle, MIB(2), &prop, 0) == hipErrorNotSupported);
    CHILD_TRUE(hipMemMap((void *)MIB(2), MIB(2), 0, (handle_t)(uintptr_t)1, 0) ==
               hipErrorNotSupported);
    CHILD_TRUE(hipMemSetAccess((void *)MIB(2), MIB(2), &access, 1) == hipErrorNotSupported);
    CHILD_TRUE(hipMemGetAccess(&flags, &access.location, (void *)MIB(2)) == hipErrorNotSupported);
    CHILD_TRUE(hipMemUnmap((void *)MIB(2), MIB(2)) == hipErrorNotSupported);
    CHILD_TRUE(hipMemRelease((handle_t)(uintptr_t)1) == hipErrorNotSupported);
    CHILD_TRUE(hipMemAddressFree((void *)MIB(2), MIB(2)) == hipErrorNotSupported);
    CHILD_TRUE(hipMemRetainAllocationHandle(&handle, (void *)MIB(2)) == hipErrorNotSupported);
    CHILD_TRUE(hipMemGetAllocationGranularity(&size, &prop, hipMemAllocationGranularityMinimum) ==
               hipErrorNotSupported);
    CHILD_TRUE(hipMemExportToShareableHandle(&fd, (handle_t)(uintptr_t)1,
                                             hipMemHandleTypePosixFileDescriptor,
                                             0) == hipErrorNotSupported);
    CHILD_TRUE(import_fd(&handle, 5) == hipErrorNotSupported);
    return 0;
}

static void test_with_an_engine_not_there_every_call_is_not_supported_at_once(void **state)
{
    in_child(engine_not_there, 0);
}

/* F06, F23: no GPU at all. */
static int empty_machine(int socket, int arg)
{
    int count = 4;

    kfd_sys_set_default(NULL);
    machine_use("none", NULL, 0);
    CHILD_TRUE(hipGetDeviceCount(&count) == hipErrorNoDevice && count == 0);
    CHILD_TRUE(strlen(kfd_error_text()) > 5);
    return 0;
}

static void test_machine_without_gpu_has_no_device(void **state)
{
    in_child(empty_machine, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_kfd_that_cannot_be_opened_is_no_device_and_the_text_names_it),
        RAW_CASE(test_missing_permission_names_the_file_and_its_group),
        RAW_CASE(test_no_device_request_before_its_vm_is_acquired),
        RAW_CASE(test_64_partitions_are_all_usable),
        RAW_CASE(test_partitions_without_a_render_node_are_left_out_and_the_others_work),
        RAW_CASE(test_each_device_left_out_has_a_reason_that_names_its_node),
        RAW_CASE(test_start_that_failed_can_be_tried_again),
        RAW_CASE(test_child_of_a_started_process_is_answered_and_harms_nothing),
        RAW_CASE(test_opening_and_closing_leaves_neither_descriptors_nor_pages),
        RAW_CASE(test_no_memory_is_asked_for_in_the_way_drivers_disagree_on),
        RAW_CASE(test_interface_of_another_major_version_is_refused_with_its_number),
        RAW_CASE(test_with_an_engine_not_there_every_call_is_not_supported_at_once),
        RAW_CASE(test_machine_without_gpu_has_no_device),
    };

    machine_choose(argc, argv, "mi300x:8");
    return run_cases(cases, COUNT_OF(cases));
}
