/* SPDX-License-Identifier: MIT */
/*
 * What read, write, poll and their like say of the device nodes: the answers of the unmodified
 * driver. Works on any machine with a GPU, in the guest too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/kfd_ioctl.h>

#include "fails.h"

#define KFD "/dev/kfd"
#define RENDER "/dev/dri/renderD128"

static int must_open(const char *path, int flags)
{
    int fd = open(path, flags);

    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    return fd;
}

static void check_reads(int fd, int error)
{
    char byte;
    struct iovec one = {&byte, 1};

    assert_fails(read(fd, &byte, 1), error);
    assert_fails(pread(fd, &byte, 1, 0), error);
    assert_fails(readv(fd, &one, 1), error);
    assert_fails(preadv(fd, &one, 1, 0), error);
}

static void check_writes(int fd, int error)
{
    char byte = 0;
    struct iovec one = {&byte, 1};

    assert_fails(write(fd, &byte, 1), error);
    assert_fails(pwrite(fd, &byte, 1, 0), error);
    assert_fails(writev(fd, &one, 1), error);
    assert_fails(pwritev(fd, &one, 1, 0), error);
}

static void test_kfd_has_nothing_to_read_or_write(void **state)
{
    int fd = must_open(KFD, O_RDWR);

    check_reads(fd, EINVAL);
    check_writes(fd, EINVAL);
    assert_fails(lseek(fd, 0, SEEK_SET), ESPIPE);
    assert_fails(lseek(fd, 0, SEEK_END), ESPIPE);
    assert_fails(lseek(fd, 0, 77), EINVAL);
    close(fd);
}

static void test_a_render_node_has_events_that_do_not_come(void **state)
{
    int fd = must_open(RENDER, O_RDWR | O_NONBLOCK);

    check_reads(fd, EAGAIN);
    check_writes(fd, EINVAL);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(lseek(fd, 5, SEEK_CUR), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    assert_fails(lseek(fd, 0, 77), EINVAL);
    close(fd);
}

static void test_the_access_mode_comes_first(void **state)
{
    const char *nodes[] = {KFD, RENDER};

    for (int i = 0; i < 2; i++) {
        int reader = must_open(nodes[i], O_RDONLY | O_NONBLOCK),
            writer = must_open(nodes[i], O_WRONLY);
        int neither = must_open(nodes[i], O_ACCMODE);

        assert_int_equal(fcntl(reader, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
        assert_int_equal(fcntl(writer, F_GETFL) & O_ACCMODE, O_WRONLY);
        check_writes(reader, EBADF);
        check_reads(writer, EBADF);
        check_reads(neither, EBADF);
        check_writes(neither, EBADF);
        assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, writer, 0), MAP_FAILED);
        assert_int_equal(errno, EACCES);
        assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, reader, 0), MAP_FAILED);
        assert_int_equal(errno, EACCES);
        close(reader);
        close(writer);
        close(neither);
    }
}

static void test_no_place_no_map(void **state)
{
    int kfd = must_open(KFD, O_RDWR), render = must_open(RENDER, O_RDWR);

    assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, kfd, 0), MAP_FAILED);
    assert_int_equal(errno, ENODEV);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, render, 0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(mmap(NULL, 0, PROT_READ, MAP_SHARED, render, 0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    close(kfd);
    close(render);
}

static void test_nodes_are_no_files(void **state)
{
    const char *nodes[] = {KFD, RENDER};

    for (int i = 0; i < 2; i++) {
        int fd = must_open(nodes[i], O_RDWR);

        assert_fails(ftruncate(fd, 0), EINVAL);
        assert_fails(truncate(nodes[i], 0), EINVAL);
        assert_fails(fsync(fd), EINVAL);
        assert_fails(fdatasync(fd), EINVAL);
        assert_fails(fallocate(fd, 0, 0, 4096), ENODEV);
        assert_fails(fchdir(fd), ENOTDIR);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL), 0);
        close(fd);
    }
}

static void test_poll_and_epoll(void **state)
{
    struct pollfd both[] = {{must_open(KFD, O_RDWR), POLLIN | POLLOUT, 0},
                            {must_open(RENDER, O_RDWR), POLLIN | POLLOUT, 0}};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
    int set = epoll_create1(0);

    assert_int_equal(poll(both, 2, 0), 1);
    assert_int_equal(both[0].revents, POLLIN | POLLOUT);
    assert_int_equal(both[1].revents, 0);
    assert_fails(epoll_ctl(set, EPOLL_CTL_ADD, both[0].fd, &event), EPERM);
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, both[1].fd, &event), 0);
    assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
    close(set);
    close(both[0].fd);
    close(both[1].fd);
}

static void test_requests_of_every_file(void **state)
{
    const char *nodes[] = {KFD, RENDER};

    for (int i = 0; i < 2; i++) {
        int fd = must_open(nodes[i], O_RDWR), on = 1;

        assert_int_equal(ioctl(fd, FIONBIO, &on), 0);
        assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        assert_int_equal(ioctl(fd, FIOCLEX), 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(ioctl(fd, FIONCLEX), 0);
        assert_int_equal(fcntl(fd, F_GETFD), 0);
        assert_fails(ioctl(fd, FIONREAD, &on), i == 0 ? EFAULT : ENOTTY);
        close(fd);
    }
}

static void test_ways_to_open(void **state)
{
    struct kfd_ioctl_get_version_args version;
    int place = must_open(KFD, O_PATH), again;
    char name[64];
    struct stat st;

    assert_fails(ioctl(place, AMDKFD_IOC_GET_VERSION, &version), EBADF);
    assert_int_equal(fstat(place, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
    again = must_open(name, O_RDWR);
    assert_int_equal(ioctl(again, AMDKFD_IOC_GET_VERSION, &version), 0);
    close(place);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", again);
    place = must_open(name, O_RDWR);
    assert_int_equal(ioctl(place, AMDKFD_IOC_GET_VERSION, &version), 0);
    close(place);
    close(again);
    assert_fails(open(KFD, O_RDWR | O_DIRECTORY), ENOTDIR);
    assert_fails(open(KFD "/", O_RDWR), ENOTDIR);
    assert_fails(open(KFD "/x", O_RDWR), ENOTDIR);
    assert_fails(open(KFD, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    again = open(KFD, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    assert_true(again >= 0);
    close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kfd_has_nothing_to_read_or_write),
        cmocka_unit_test(test_a_render_node_has_events_that_do_not_come),
        cmocka_unit_test(test_the_access_mode_comes_first),
        cmocka_unit_test(test_no_place_no_map),
        cmocka_unit_test(test_nodes_are_no_files),
        cmocka_unit_test(test_poll_and_epoll),
        cmocka_unit_test(test_requests_of_every_file),
        cmocka_unit_test(test_ways_to_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
