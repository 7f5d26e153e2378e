/* SPDX-License-Identifier: MIT */
/* A fake machine asked through syscall(2), with numbers in place of libc's functions. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>
#include <amdgpu_drm.h>
#include <drm.h>
#include <linux/kfd_ioctl.h>
#include <linux/openat2.h>

#define GPU_ID "/sys/class/kfd/kfd/topology/nodes/0/gpu_id"

static void test_a_node_by_numbers_alone(void **state)
{
    struct kfd_ioctl_get_version_args version = {0};
    long fd = syscall(SYS_openat, AT_FDCWD, "/dev/kfd", O_RDWR | O_CLOEXEC, 0), copy;
    char byte;

    assert_true(fd >= 0);
    assert_int_equal(syscall(SYS_ioctl, fd, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(version.major_version, 1);
    copy = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 100);
    assert_true(copy >= 100);
    assert_int_equal(syscall(SYS_close, fd), 0);
    assert_int_equal(syscall(SYS_ioctl, copy, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(syscall(SYS_read, copy, &byte, 1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(syscall(SYS_lseek, copy, 0, SEEK_SET), -1);
    assert_int_equal(errno, ESPIPE);
    assert_int_equal(syscall(SYS_close_range, copy, copy, 0), 0);
    assert_int_equal(syscall(SYS_ioctl, copy, AMDKFD_IOC_GET_VERSION, &version), -1);
    assert_int_equal(errno, EBADF);
}

static void test_memory_is_mapped(void **state)
{
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = 65536, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_GTT}};
    union drm_amdgpu_gem_mmap map = {0};
    struct open_how how = {.flags = O_RDWR | O_CLOEXEC};
    long fd = syscall(SYS_openat2, AT_FDCWD, "/dev/dri/renderD128", &how, sizeof(how));
    char *at;

    assert_true(fd >= 0);
    assert_int_equal(syscall(SYS_ioctl, fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
    map.in.handle = create.out.handle;
    assert_int_equal(syscall(SYS_ioctl, fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &map), 0);
    at = (char *)syscall(SYS_mmap, NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                         map.out.addr_ptr);
    assert_ptr_not_equal(at, MAP_FAILED);
    strcpy(at, "bytes");
    assert_string_equal(at, "bytes");
    assert_int_equal(syscall(SYS_munmap, at, 65536), 0);
    assert_int_equal(syscall(SYS_close, fd), 0);
}

static void test_files_by_numbers(void **state)
{
    long sys = syscall(SYS_openat, AT_FDCWD, "/sys", O_PATH | O_DIRECTORY, 0), fd;
    char text[64] = "", here[256];
    struct stat st;
    struct statx stx;

    fd = syscall(SYS_openat, sys, &GPU_ID[sizeof("/sys")], O_RDONLY, 0);
    assert_true(fd >= 0);
    assert_true(syscall(SYS_read, fd, text, sizeof(text)) > 0);
    assert_string_equal(text, "0\n");
    syscall(SYS_close, fd);
    assert_int_equal(syscall(SYS_newfstatat, AT_FDCWD, "/dev/kfd", &st, 0), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(
        syscall(SYS_statx, AT_FDCWD, "/dev/dri/renderD128", 0, STATX_BASIC_STATS, &stx), 0);
    assert_int_equal(stx.stx_rdev_minor, 128);
    assert_int_equal(syscall(SYS_faccessat, AT_FDCWD, GPU_ID, R_OK), 0);
    assert_int_equal(syscall(SYS_faccessat2, AT_FDCWD, "/dev/kfd", R_OK | W_OK, AT_EACCESS), 0);
    assert_true(syscall(SYS_readlinkat, AT_FDCWD, "/sys/class/kfd/kfd", text, sizeof(text)) > 0);
    assert_memory_equal(text, "../../devices/virtual", 21);
    assert_int_equal(syscall(SYS_chdir, "/dev/dri"), 0);
    assert_int_equal(syscall(SYS_getcwd, here, sizeof(here)), 9);
    assert_string_equal(here, "/dev/dri");
    assert_int_equal(syscall(SYS_chdir, "/"), 0);
    close((int)sys);
}

static void test_bad_pointers_are_efault(void **state)
{
    void *bad = (void *)8;

    assert_int_equal(syscall(SYS_openat2, AT_FDCWD, "/dev/kfd", bad, sizeof(struct open_how)), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(syscall(SYS_getppid), getppid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_by_numbers_alone),
        cmocka_unit_test(test_memory_is_mapped),
        cmocka_unit_test(test_files_by_numbers),
        cmocka_unit_test(test_bad_pointers_are_efault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
