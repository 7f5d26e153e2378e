/* SPDX-License-Identifier: MIT */
/*
 * Plain libc calls on a fake machine, from a program that is not linked with any of ours.
 * Arguments: how many GPUs and CPU nodes the machine has.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <amdgpu_drm.h>
#include <drm.h>
#include <linux/kfd_ioctl.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define BYTES 65536u

static int gpus, cpus;
static char self[4096];

static void test_kfd_opens_and_says_its_version(void **state)
{
    struct kfd_ioctl_get_version_args version = {0};
    int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC), copy, high;

    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(version.major_version, 1);
    assert_true(version.minor_version > 0);

    copy = dup(fd);
    high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    assert_true(high >= 200);
    assert_int_equal(close(fd), 0);
    assert_int_equal(ioctl(copy, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(ioctl(high, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(close(copy), 0);
    assert_int_equal(close(high), 0);
    assert_int_equal(ioctl(high, AMDKFD_IOC_GET_VERSION, &version), -1);
    assert_int_equal(errno, EBADF);
}

static void test_a_descriptor_reused_by_another_file_is_that_file(void **state)
{
    struct kfd_ioctl_get_version_args version;
    int fd = open("/dev/kfd", O_RDWR), null = open("/dev/null", O_RDWR);
    struct stat st;

    assert_true(fd >= 0 && null >= 0);
    assert_int_equal(dup2(null, fd), fd);
    assert_int_equal(ioctl(fd, AMDKFD_IOC_GET_VERSION, &version), -1);
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_rdev, makedev(1, 3));
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(null), 0);
}

static void test_nodes_are_character_devices_by_every_call(void **state)
{
    struct stat st, by_path;
    struct statx stx;
    int fd = open("/dev/dri/renderD128", O_RDWR), dir = open("/dev", O_RDONLY | O_DIRECTORY);

    assert_true(fd >= 0 && dir >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(st.st_rdev, makedev(226, 128));
    assert_int_equal(stat("/dev/dri/renderD128", &by_path), 0);
    assert_int_equal(by_path.st_rdev, st.st_rdev);
    assert_int_equal(lstat("/dev//dri/../dri/renderD128", &by_path), 0);
    assert_int_equal(by_path.st_rdev, st.st_rdev);
    assert_int_equal(fstatat(dir, "dri/renderD128", &by_path, 0), 0);
    assert_int_equal(by_path.st_rdev, st.st_rdev);
    assert_int_equal(statx(AT_FDCWD, "/dev/dri/renderD128", 0, STATX_BASIC_STATS, &stx), 0);
    assert_int_equal(stx.stx_rdev_major, 226);
    assert_int_equal(stx.stx_rdev_minor, 128);
    assert_int_equal(access("/dev/kfd", R_OK | W_OK), 0);
    close(fd);
    close(dir);
}

static void test_what_the_machine_lacks_is_enoent(void **state)
{
    char name[64];
    struct stat st;

    snprintf(name, sizeof(name), "/dev/dri/renderD%d", 128 + gpus);
    assert_int_equal(open(name, O_RDWR), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(stat(name, &st), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(access(name, F_OK), -1);
    assert_int_equal(errno, ENOENT);
    snprintf(name, sizeof(name), NODES "/%d", cpus + gpus);
    assert_null(opendir(name));
    assert_int_equal(errno, ENOENT);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    int n = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_folders_list_what_the_machine_has(void **state)
{
    struct dirent **list;
    int n = scandir("/dev/dri", &list, NULL, alphasort);

    assert_int_equal(n, 2 + 2 * gpus);
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    assert_int_equal(entries(NODES), cpus + gpus);
}

static void test_files_read_by_stream_and_by_folder(void **state)
{
    char name[96], text[64] = "";
    int nodes = open(NODES, O_RDONLY | O_DIRECTORY), fd;
    FILE *f;

    for (int i = 0; i < cpus + gpus; i++) {
        unsigned long id = 1;

        snprintf(name, sizeof(name), NODES "/%d/gpu_id", i);
        f = fopen(name, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lu", &id), 1);
        fclose(f);
        assert_true((id != 0) == (i >= cpus));
        snprintf(name, sizeof(name), "%d/gpu_id", i);
        fd = openat(nodes, name, O_RDONLY);
        if (fd < 0) /* not a name that is looked at; the folder is real, so it must open */
            fail_msg("%s: %s", name, strerror(errno));
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        assert_int_equal(strtoul(text, NULL, 10), id);
        close(fd);
    }
    close(nodes);
    assert_int_equal(open(NODES "/0/gpu_id", O_WRONLY), -1);
    assert_int_equal(errno, EACCES);
}

static void test_links_lead_where_sysfs_has_them(void **state)
{
    char full[4096], link[4096] = "", name[64] = "", *again;
    int fd = open("/dev/dri/renderD128", O_RDWR);

    assert_non_null(realpath("/sys/dev/char/226:128/device", full));
    assert_memory_equal(full, "/sys/devices/pci", 16);
    assert_true(readlink("/sys/class/drm/renderD128", link, sizeof(link) - 1) > 0);
    assert_memory_equal(link, "../../devices/pci", 17);
    again = realpath("/sys/class/drm/renderD128/device", NULL);
    assert_string_equal(again, full);
    free(again);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    assert_true(readlink(link, name, sizeof(name) - 1) > 0);
    assert_string_equal(name, "/dev/dri/renderD128");
    close(fd);
}

static void test_files_of_the_host_stay_the_hosts(void **state)
{
    char name[] = "/tmp/strangers-XXXXXX", text[8] = "";
    int fd = mkstemp(name);
    FILE *f;
    void *p;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "bytes", 5), 5);
    p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_memory_equal(p, "bytes", 5);
    assert_int_equal(munmap(p, 4096), 0);
    f = fopen(name, "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, 5, f), 5);
    assert_string_equal(text, "bytes");
    fclose(f);
    close(fd);
    unlink(name);
    assert_int_equal(open(name, O_RDONLY), -1);
    assert_int_equal(errno, ENOENT);
}

static void *map_gem(int drm, uint32_t handle)
{
    union drm_amdgpu_gem_mmap m = {.in.handle = handle};
    void *p;

    if (ioctl(drm, DRM_IOCTL_AMDGPU_GEM_MMAP, &m) != 0)
        return NULL;
    p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, drm, (off_t)m.out.addr_ptr);
    return p == MAP_FAILED ? NULL : p;
}

/* Imports a dma-buf into a node of its own and changes what is there. 0 when it found `text`. */
static int look_in_child(int dmabuf, const char *text)
{
    struct drm_prime_handle prime = {.fd = dmabuf};
    int drm = open("/dev/dri/renderD128", O_RDWR);
    char *p;

    if (drm < 0 || ioctl(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) != 0)
        return 2;
    p = map_gem(drm, prime.handle);
    if (p == NULL)
        return 3;
    if (strcmp(p, text) != 0)
        return 4;
    strcpy(p, "answered");
    return 0;
}

/* Starts a child that looks, in this program or in a new one, and waits for its answer. */
static void share(bool exec)
{
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = BYTES, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_GTT}};
    struct drm_prime_handle prime = {0};
    char number[16], *p;
    int drm = open("/dev/dri/renderD128", O_RDWR), status;
    pid_t pid;

    assert_true(drm >= 0);
    assert_int_equal(ioctl(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
    p = map_gem(drm, create.out.handle);
    assert_non_null(p);
    strcpy(p, "asked");
    prime.handle = create.out.handle;
    prime.flags = DRM_RDWR;
    assert_int_equal(ioctl(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
    snprintf(number, sizeof(number), "%d", prime.fd);
    fflush(stdout); /* a sanitizer's runtime may write what is left in the child again */
    pid = fork();
    if (pid == 0) {
        if (exec)
            execl(self, self, "child", number, (char *)NULL);
        _exit(exec ? 9 : look_in_child(prime.fd, "asked"));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(p, "answered");
    munmap(p, BYTES);
    close(prime.fd);
    close(drm);
}

/* The folder of this process is there once it has opened /dev/kfd, and tells what it holds. */
static void test_the_process_is_listed_with_its_queues(void **state)
{
    char path[128], text[64];
    struct stat st;
    FILE *f;
    int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", getpid());
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    strcat(path, "/pasid");
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    assert_true(atoi(text) > 0);
    fclose(f);
    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/0", getpid());
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(stat("/sys/class/kfd/kfd/proc/1", &st), -1);
    assert_int_equal(errno, ENOENT);
    close(fd);
}

static void test_a_forked_child_shares_the_machine(void **state)
{
    share(false);
}

static void test_a_program_started_from_here_shares_the_machine(void **state)
{
    share(true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kfd_opens_and_says_its_version),
        cmocka_unit_test(test_a_descriptor_reused_by_another_file_is_that_file),
        cmocka_unit_test(test_nodes_are_character_devices_by_every_call),
        cmocka_unit_test(test_what_the_machine_lacks_is_enoent),
        cmocka_unit_test(test_folders_list_what_the_machine_has),
        cmocka_unit_test(test_files_read_by_stream_and_by_folder),
        cmocka_unit_test(test_links_lead_where_sysfs_has_them),
        cmocka_unit_test(test_files_of_the_host_stay_the_hosts),
        cmocka_unit_test(test_the_process_is_listed_with_its_queues),
        cmocka_unit_test(test_a_forked_child_shares_the_machine),
        cmocka_unit_test(test_a_program_started_from_here_shares_the_machine),
    };

    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return look_in_child(atoi(argv[2]), "asked");
    if (argc != 3 || readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
        return 99;
    gpus = atoi(argv[1]);
    cpus = atoi(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
