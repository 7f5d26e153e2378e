/* SPDX-License-Identifier: MIT */
/* KFDIRECT_FAKE: its words, and processes that share a machine by name or by descent. */
#include "rig.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "fake/fake_internal.h"

static int run_again(const char *how, const char *spec)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/proc/self/exe", "env", how, spec, NULL);
        _exit(98);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* A process that finds 2 MiB taken on the machine of spec, or not; and takes 2 MiB more. */
static int other_process(const char *how, const char *spec)
{
    struct kfd_ioctl_get_available_memory_args a = {0};
    struct kfd_ioctl_get_process_apertures_new_args n = {.num_of_nodes = 1};
    struct kfd_process_device_apertures one;
    struct kfd_sys *sys;
    uint64_t expected = 206141652992ull - 12582912 - (strcmp(how, "shared") == 0 ? 2 * MIB : 0);
    int kfd;

    if (fake_sys_from_env(spec, &sys) != 0)
        return 1;
    kfd = sys->ops->open_path(sys, "/dev/kfd", O_RDWR);
    n.kfd_process_device_apertures_ptr = (uintptr_t)&one;
    if (sys->ops->request(sys, kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &n) != 0)
        return 2;
    a.gpu_id = one.gpu_id;
    if (sys->ops->request(sys, kfd, KFD_CODE_AVAILABLE_MEMORY, &a) != 0)
        return 3;
    return a.available / (2 * MIB) == expected / (2 * MIB) ? 0 : 4;
}

static struct kfd_sys *late_sys;
static int late_kfd;

static void at_the_end(void)
{
    struct kfd_ioctl_get_version_args v = {0};
    int err = late_sys->ops->request(late_sys, late_kfd, KFD_CODE_GET_VERSION, &v);

    _exit(err == 0 && v.major_version == 1 ? 0 : 5);
}

/* A process that asks the machine of spec once more in a handler older than the machine. */
static int late_process(const char *spec)
{
    if (atexit(at_the_end) != 0 || fake_sys_from_env(spec, &late_sys) != 0)
        _exit(1);
    late_kfd = late_sys->ops->open_path(late_sys, "/dev/kfd", O_RDWR);
    return 6;
}

static void take_2_mib(const char *spec)
{
    struct kfd_ioctl_acquire_vm_args v;
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {.size = 2 * MIB, .flags = VRAM_RW};
    struct kfd_ioctl_get_process_apertures_new_args n = {.num_of_nodes = 1};
    struct kfd_process_device_apertures one;
    struct kfd_sys *sys;
    int kfd, drm;

    assert_int_equal(fake_sys_from_env(spec, &sys), 0);
    kfd = sys->ops->open_path(sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    drm = sys->ops->open_path(sys, "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    n.kfd_process_device_apertures_ptr = (uintptr_t)&one;
    assert_int_equal(sys->ops->request(sys, kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &n), 0);
    v.gpu_id = one.gpu_id;
    v.drm_fd = (uint32_t)drm;
    assert_int_equal(sys->ops->request(sys, kfd, KFD_CODE_ACQUIRE_VM, &v), 0);
    a.gpu_id = one.gpu_id;
    assert_int_equal(sys->ops->request(sys, kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
}

static void test_descendants_share_the_machine(void **state)
{
    take_2_mib("mi300x:1");
    assert_non_null(getenv("KFDIRECT_FAKE_TREE"));
    assert_int_equal(run_again("shared", "mi300x:1"), 0);
    assert_int_equal(run_again("alone", "mi300x:1,kernel=6.8"), 0);
}

static void test_a_name_joins_unrelated_processes(void **state)
{
    char spec[64], other[80];

    snprintf(spec, sizeof(spec), "mi300x:1,join=test-%d", getpid());
    snprintf(other, sizeof(other), "mi210:1,join=test-%d", getpid());
    take_2_mib(spec);
    unsetenv("KFDIRECT_FAKE_TREE");
    assert_int_equal(run_again("shared", spec), 0);
    assert_int_equal(run_again("alone", "mi300x:1"), 0);
    /* One name is one machine. */
    assert_int_equal(run_again("alone", other), 1);
}

static void test_the_machine_outlives_the_programs_own_exit_handlers(void **state)
{
    assert_int_equal(run_again("late", "mi300x:1"), 0);
}

static void test_bad_words_are_refused_with_a_text(void **state)
{
    const char *const bad[] = {
        "mi300x:1,kernle=6.1", "mi300x:1,",        "nosuch",         "mi300x:1,join=a/b",
        "mi300x:1,kernel=0.1", "mi300x:1,kernel=", "mi300x:1,join=", ""};
    struct kfd_sys *sys;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fake_sys_from_env(bad[i], &sys), -EINVAL);
        assert_true(strlen(fake_error_text()) > 5);
    }
}

static void test_options_are_checked(void **state)
{
    struct {
        struct fake_options o;
        uint64_t later;
    } newer = {.o = {.size = sizeof(newer)}};
    struct fake *fake;

    assert_int_equal(fake_create(&newer.o, &fake), 0);
    fake_destroy(fake);
    newer.later = 1;
    assert_int_equal(fake_create(&newer.o, &fake), -EINVAL);
    newer.o.size = 4;
    assert_int_equal(fake_create(&newer.o, &fake), -EINVAL);
    newer.o.size = sizeof(newer.o);
    newer.o.flags = 0x80000000u;
    assert_int_equal(fake_create(&newer.o, &fake), -EINVAL);
    assert_int_equal(fake_create(NULL, &fake), -EINVAL);
    fake_destroy(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descendants_share_the_machine),
        cmocka_unit_test(test_a_name_joins_unrelated_processes),
        cmocka_unit_test(test_the_machine_outlives_the_programs_own_exit_handlers),
        cmocka_unit_test(test_bad_words_are_refused_with_a_text),
        cmocka_unit_test(test_options_are_checked),
    };

    if (argc == 3 && strcmp(argv[1], "late") == 0)
        return late_process(argv[2]);
    if (argc == 3)
        return other_process(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
