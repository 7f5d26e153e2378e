/* SPDX-License-Identifier: MIT */
/* What a machine with two GPUs says of the file systems its paths are in, by path and by
 * descriptor: the same as of their neighbours. Under the fake those are the host's; it works
 * without it too, in the guest. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>
#include <amdgpu_drm.h>
#include <drm.h>

#include "fails.h"

#define GPU_ID "/sys/class/kfd/kfd/topology/nodes/0/gpu_id"
#define RENDER "/dev/dri/renderD129"

/* A path of the driver's, and another one in the same file system. */
static const struct {
    const char *path, *neighbour;
} places[] = {
    {"/dev/kfd", "/dev/null"},  {RENDER, "/dev/null"},
    {"/dev/dri", "/dev"},       {"/sys/class/kfd", "/sys/class"},
    {GPU_ID, "/sys/class/mem"}, {"/sys/class/drm/renderD128", "/sys/class"},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void test_every_place_has_its_neighbours_file_system(void **state)
{
    for (size_t i = 0; i < PLACES; i++) {
        int fd = open(places[i].path, O_RDONLY);
        struct stat st, by_fd, other;
        struct statvfs a, b, c;
        struct statfs x, y, z;

        assert_true(fd >= 0);
        assert_int_equal(stat(places[i].path, &st), 0);
        assert_int_equal(fstat(fd, &by_fd), 0);
        assert_int_equal(stat(places[i].neighbour, &other), 0);
        assert_memory_equal(&st, &by_fd, sizeof(st));
        assert_int_equal(st.st_dev, other.st_dev);
        assert_true(st.st_mtime > 0 && st.st_ino != 0);
        assert_int_equal(statfs(places[i].path, &x), 0);
        assert_int_equal(fstatfs(fd, &y), 0);
        assert_int_equal(statfs(places[i].neighbour, &z), 0);
        assert_memory_equal(&x, &y, sizeof(x));
        assert_memory_equal(&x, &z, sizeof(x));
        assert_int_equal(statvfs(places[i].path, &a), 0);
        assert_int_equal(fstatvfs(fd, &b), 0);
        assert_int_equal(statvfs(places[i].neighbour, &c), 0);
        assert_int_equal(a.f_fsid, c.f_fsid);
        assert_int_equal(b.f_fsid, c.f_fsid);
        assert_int_equal(a.f_flag, c.f_flag);
        assert_int_equal(pathconf(places[i].path, _PC_NAME_MAX), 255);
        assert_int_equal(fpathconf(fd, _PC_NAME_MAX), 255);
        close(fd);
    }
    assert_fails(statfs("/dev/dri/renderD7", &(struct statfs){0}), ENOENT);
    assert_fails(statvfs("/sys/class/kfd/none", &(struct statvfs){0}), ENOENT);
}

static void test_statx_says_the_same_as_stat(void **state)
{
    for (size_t i = 0; i < PLACES; i++) {
        struct statx x, other;
        struct stat st;

        assert_int_equal(lstat(places[i].path, &st), 0);
        assert_int_equal(statx(AT_FDCWD, places[i].path, AT_SYMLINK_NOFOLLOW, STATX_ALL, &x), 0);
        assert_int_equal(statx(AT_FDCWD, places[i].neighbour, 0, STATX_ALL, &other), 0);
        assert_int_equal(makedev(x.stx_dev_major, x.stx_dev_minor), st.st_dev);
        assert_int_equal(makedev(x.stx_rdev_major, x.stx_rdev_minor), st.st_rdev);
        assert_int_equal(x.stx_mode, st.st_mode);
        assert_int_equal(x.stx_ino, st.st_ino);
        assert_int_equal(x.stx_size, st.st_size);
        assert_int_equal(x.stx_mtime.tv_sec, st.st_mtime);
        assert_int_equal(x.stx_mask & STATX_BTIME, other.stx_mask & STATX_BTIME);
        assert_int_equal(x.stx_mnt_id, other.stx_mnt_id);
    }
}

static int attribute_error(ssize_t ret)
{
    return ret < 0 ? errno : 0;
}

static void test_extended_attributes_are_those_of_a_neighbour(void **state)
{
    static const char *const names[] = {"user.x", "trusted.x", "security.x",
                                        "system.posix_acl_access", "bogus"};
    char value[256];

    for (size_t i = 0; i < PLACES; i++) {
        const char *path = places[i].path, *other = places[i].neighbour;
        int fd = open(path, O_RDONLY);

        assert_true(fd >= 0);
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
            int expected = attribute_error(getxattr(other, names[n], value, sizeof(value)));

            assert_int_equal(attribute_error(getxattr(path, names[n], value, sizeof(value))),
                             expected);
            assert_int_equal(attribute_error(lgetxattr(path, names[n], value, sizeof(value))),
                             expected);
            assert_int_equal(attribute_error(fgetxattr(fd, names[n], value, sizeof(value))),
                             expected);
        }
        assert_int_equal(listxattr(path, value, sizeof(value)),
                         listxattr(other, value, sizeof(value)));
        assert_int_equal(llistxattr(path, value, sizeof(value)),
                         listxattr(other, value, sizeof(value)));
        assert_int_equal(flistxattr(fd, value, sizeof(value)),
                         listxattr(other, value, sizeof(value)));
        close(fd);
    }
    assert_fails(getxattr("/dev/dri/renderD7", "user.x", NULL, 0), ENOENT);
    assert_int_equal(llistxattr("/dev/dri/../null", value, sizeof(value)),
                     llistxattr("/dev/null", value, sizeof(value)));
}

static void test_dots_lead_up_to_the_root_and_stay_there(void **state)
{
    static const char *const roots[] = {"/dev/dri/../..", "/dev/dri/../../",
                                        "/sys/class/kfd/../../..", "/sys/class/drm/../../../..",
                                        "/dev/dri/../../../.."};
    struct stat st, root;
    char full[PATH_MAX];

    assert_int_equal(stat("/", &root), 0);
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        assert_int_equal(lstat(roots[i], &st), 0);
        assert_int_equal(st.st_ino, root.st_ino);
        assert_int_equal(st.st_dev, root.st_dev);
        assert_string_equal(realpath(roots[i], full), "/");
    }
    assert_string_equal(realpath("/../../dev/kfd", full), "/dev/kfd");
    assert_string_equal(realpath("/sys/class/drm/../../../dev/dri/../kfd", full), "/dev/kfd");
    assert_int_equal(stat("/../dev/dri/../../dev/kfd", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void test_links_to_open_files_name_them(void **state)
{
    static const char *const forms[] = {"/proc/self/fd/%d", "/proc/thread-self/fd/%d",
                                        "/proc/%2$d/fd/%1$d", "/dev/fd/%d"};
    static const struct {
        const char *path, *name;
    } files[] = {{"/dev/kfd", "/dev/kfd"},
                 {RENDER, RENDER},
                 {"/dev/dri/card1", "/dev/dri/card1"},
                 {GPU_ID, "/sys/devices/virtual/kfd/kfd/topology/nodes/0/gpu_id"},
                 {"/sys/class/kfd", "/sys/class/kfd"}};
    char link[64], full[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(files[i].path, O_RDONLY);

        assert_true(fd >= 0);
        for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
            char name[PATH_MAX] = "";

            snprintf(link, sizeof(link), forms[k], fd, getpid());
            if (k == 3 && access("/dev/fd", F_OK) != 0)
                continue;
            assert_true(readlink(link, name, sizeof(name) - 1) > 0);
            assert_string_equal(name, files[i].name);
            memset(name, 0, sizeof(name));
            assert_int_equal(readlink(link, name, 5), 5);
            assert_memory_equal(name, files[i].name, 5);
            assert_int_equal(lstat(link, &st), 0);
            assert_true(S_ISLNK(st.st_mode));
            assert_string_equal(realpath(link, full), files[i].name);
        }
        close(fd);
    }
}

static void test_a_file_of_sysfs_is_a_page_that_cannot_be_mapped(void **state)
{
    int fd = open(GPU_ID, O_RDONLY);
    char text[8] = "";

    assert_int_equal(lseek(fd, 0, SEEK_END), 4096);
    assert_int_equal(read(fd, text, sizeof(text)), 0);
    assert_int_equal(lseek(fd, -4096, SEEK_END), 0);
    assert_int_equal(read(fd, text, sizeof(text)), 2);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(errno, ENODEV);
    close(fd);
}

static void test_a_dmabuf_is_in_no_folder(void **state)
{
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = 4096, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_GTT}};
    int node = open(RENDER, O_RDWR);
    struct drm_prime_handle prime = {.flags = DRM_CLOEXEC};
    char link[64], name[64] = "";
    struct statfs st;

    assert_int_equal(ioctl(node, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
    prime.handle = create.out.handle;
    assert_int_equal(ioctl(node, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
    assert_int_equal(fstatfs(prime.fd, &st), 0);
    assert_int_equal(st.f_type, 0x444d4142);
    assert_fails(fgetxattr(prime.fd, "user.x", NULL, 0), ENODATA);
    assert_fails(fgetxattr(prime.fd, "security.x", NULL, 0), EOPNOTSUPP);
    assert_int_equal(flistxattr(prime.fd, NULL, 0), 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", prime.fd);
    assert_int_equal(readlink(link, name, sizeof(name)), 8);
    assert_string_equal(name, "/dmabuf:");
    close(prime.fd);
    close(node);
}

static void test_file_handles_differ_and_name_the_mount(void **state)
{
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } a = {.head.handle_bytes = MAX_HANDLE_SZ}, b = a, c = a;
    int fd = open("/sys/class/kfd", O_PATH), mount, other;

    /* Not every file system has them. */
    if (name_to_handle_at(AT_FDCWD, "/sys", &c.head, &other, 0) != 0)
        skip();
    if (name_to_handle_at(AT_FDCWD, "/sys/class/kfd", &a.head, &mount, 0) != 0)
        assert_int_equal(errno, EOPNOTSUPP);
    else
        assert_int_equal(mount, other);
    if (name_to_handle_at(fd, "", &b.head, &mount, AT_EMPTY_PATH) == 0) {
        assert_int_equal(mount, other);
        assert_memory_equal(a.bytes, b.bytes, a.head.handle_bytes);
        assert_true(b.head.handle_bytes != c.head.handle_bytes ||
                    memcmp(b.bytes, c.bytes, b.head.handle_bytes) != 0);
    }
    assert_fails(name_to_handle_at(AT_FDCWD, "/dev/dri/none", &a.head, &mount, 0), ENOENT);
    close(fd);
}

static void test_times_of_the_hosts_files_are_set(void **state)
{
    char name[] = "/tmp/strangers-XXXXXX";
    struct timeval times[2] = {{5, 250000}, {7, 750000}}, bad[2] = {{0, -1}, {0, 0}};
    struct utimbuf both = {1, 2};
    int fd = mkstemp(name);
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(utimes(name, times), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_atim.tv_nsec, 250000000);
    assert_int_equal(st.st_mtim.tv_sec, 7);
    assert_int_equal(utime(name, &both), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mtime, 2);
    assert_fails(utimes(name, bad), EINVAL);
    assert_int_equal(utime(name, NULL), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(st.st_mtime > 2);
    assert_int_equal(remove(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_mode, S_IFIFO | 0600);
    assert_int_equal(remove(name), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place_has_its_neighbours_file_system),
        cmocka_unit_test(test_statx_says_the_same_as_stat),
        cmocka_unit_test(test_extended_attributes_are_those_of_a_neighbour),
        cmocka_unit_test(test_dots_lead_up_to_the_root_and_stay_there),
        cmocka_unit_test(test_links_to_open_files_name_them),
        cmocka_unit_test(test_a_file_of_sysfs_is_a_page_that_cannot_be_mapped),
        cmocka_unit_test(test_a_dmabuf_is_in_no_folder),
        cmocka_unit_test(test_file_handles_differ_and_name_the_mount),
        cmocka_unit_test(test_times_of_the_hosts_files_are_set),
    };

    umask(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
