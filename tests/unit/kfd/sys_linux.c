/* SPDX-License-Identifier: MIT */
/* The real system calls, on files that every Linux has. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>

#define SYS kfd_sys_linux()
#define OPS kfd_sys_linux()->ops

static void test_open_gives_a_descriptor_or_the_errno(void **state)
{
    int fd = OPS->open_path(SYS, "/dev/null", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(OPS->close_fd(SYS, fd), 0);
    assert_int_equal(OPS->close_fd(SYS, fd), -EBADF);
    assert_int_equal(OPS->open_path(SYS, "/nonexistent", O_RDONLY), -ENOENT);
}

static void test_dup_obeys_its_minimum_and_closes_on_exec(void **state)
{
    int fd = OPS->open_path(SYS, "/dev/null", O_RDWR);
    int dup = OPS->dup_fd(SYS, fd, 70);

    assert_true(dup >= 70);
    assert_true(fcntl(dup, F_GETFD) & FD_CLOEXEC);
    OPS->close_fd(SYS, dup);
    OPS->close_fd(SYS, fd);
    assert_int_equal(OPS->dup_fd(SYS, -1, 0), -EBADF);
}

static void test_a_request_gives_its_result_or_the_errno(void **state)
{
    int pipes[2], n = -1;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "abc", 3), 3);
    assert_int_equal(OPS->request(SYS, pipes[0], FIONREAD, &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(OPS->request(SYS, pipes[0], _IOC(_IOC_READ, 'K', 1, 8), &n), -ENOTTY);
    assert_int_equal(OPS->request(SYS, pipes[0], _IOC(_IOC_READ, 'd', 0, 8), &n), -ENOTTY);
    assert_int_equal(OPS->request(SYS, -1, FIONREAD, &n), -EBADF);
    close(pipes[0]);
    close(pipes[1]);
}

static void test_pages_are_mapped_protected_and_unmapped(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char vec;
    void *at = NULL;

    assert_int_equal(OPS->map_pages(SYS, NULL, page, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &at),
                     0);
    *(char *)at = 1;
    assert_int_equal(OPS->advise_pages(SYS, at, page, MADV_DONTNEED), 0);
    assert_int_equal(*(char *)at, 0);
    assert_int_equal(OPS->protect_pages(SYS, at, page, PROT_READ), 0);
    assert_int_equal(OPS->unmap_pages(SYS, at, page), 0);
    assert_int_equal(mincore(at, page, &vec), -1);
    assert_int_equal(OPS->protect_pages(SYS, at, page, PROT_READ), -ENOMEM);
    assert_int_equal(OPS->advise_pages(SYS, at, page, -1), -EINVAL);
    assert_int_equal(OPS->unmap_pages(SYS, (char *)at + 1, page), -EINVAL);
    assert_int_equal(
        OPS->map_pages(SYS, NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &at), -EINVAL);
}

static void test_read_takes_the_whole_file_or_says_it_is_too_big(void **state)
{
    char path[] = "/tmp/kfdirect-test-XXXXXX", text[6];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "12345", 5), 5);
    assert_int_equal(OPS->read_file(SYS, path, text, sizeof(text)), 5);
    assert_string_equal(text, "12345");
    assert_int_equal(OPS->read_file(SYS, path, text, 5), -EFBIG);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(OPS->read_file(SYS, path, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    close(fd);
    unlink(path);
    assert_int_equal(OPS->read_file(SYS, path, text, sizeof(text)), -ENOENT);
    assert_int_equal(OPS->read_file(SYS, "/", text, sizeof(text)), -EISDIR);
}

static int count_names(void *arg, const char *name)
{
    assert_string_not_equal(name, ".");
    assert_string_not_equal(name, "..");
    ++*(int *)arg;
    return 0;
}

static int stop_at_once(void *arg, const char *name)
{
    ++*(int *)arg;
    return 77;
}

static void test_list_calls_for_each_entry_until_told_to_stop(void **state)
{
    char dir[] = "/tmp/kfdirect-test-XXXXXX", path[64];
    int n = 0;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(OPS->list_dir(SYS, dir, count_names, &n), 0);
    assert_int_equal(n, 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%d", dir, i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(OPS->list_dir(SYS, dir, count_names, &n), 0);
    assert_int_equal(n, 3);
    n = 0;
    assert_int_equal(OPS->list_dir(SYS, dir, stop_at_once, &n), 77);
    assert_int_equal(n, 1);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%d", dir, i);
        rmdir(path);
    }
    rmdir(dir);
    assert_int_equal(OPS->list_dir(SYS, dir, count_names, &n), -ENOENT);
}

static void test_stat_tells_the_device_number(void **state)
{
    struct kfd_sys_stat st;

    assert_int_equal(OPS->stat_path(SYS, "/dev/null", &st), 0);
    assert_true(S_ISCHR(st.mode));
    assert_int_equal(st.device_major, 1);
    assert_int_equal(st.device_minor, 3);
    assert_int_equal(OPS->stat_path(SYS, "/nonexistent", &st), -ENOENT);
}

static void test_what_is_no_gpu_has_no_product_name(void **state)
{
    char name[32];
    int fd = OPS->open_path(SYS, "/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(OPS->product_name(SYS, fd, name, sizeof(name)), -ENOENT);
    OPS->close_fd(SYS, fd);
}

static void test_errno_is_the_callers(void **state)
{
    struct kfd_sys_stat st;
    char text[8];
    void *at;
    int n = 0;

    errno = EDOM;
    OPS->open_path(SYS, "/nonexistent", O_RDONLY);
    OPS->close_fd(SYS, -1);
    OPS->dup_fd(SYS, -1, 0);
    OPS->request(SYS, -1, 0, NULL);
    OPS->map_pages(SYS, NULL, 0, 0, 0, -1, 0, &at);
    OPS->unmap_pages(SYS, (void *)1, 1);
    OPS->protect_pages(SYS, (void *)1, 1, 0);
    OPS->advise_pages(SYS, (void *)1, 1, 0);
    OPS->read_file(SYS, "/nonexistent", text, sizeof(text));
    OPS->list_dir(SYS, "/nonexistent", count_names, &n);
    OPS->list_dir(SYS, "/", count_names, &n);
    OPS->stat_path(SYS, "/nonexistent", &st);
    OPS->product_name(SYS, -1, text, sizeof(text));
    assert_int_equal(errno, EDOM);
}

/* A thread with a cancellation pending. */
static void *all_operations(void *arg)
{
    struct kfd_sys_stat st;
    char text[4096];
    void *at = NULL;
    int n = 0, fd;

    pthread_cancel(pthread_self());
    fd = OPS->open_path(SYS, "/dev/zero", O_RDWR);
    OPS->close_fd(SYS, OPS->dup_fd(SYS, fd, 3));
    OPS->request(SYS, fd, 0, NULL);
    OPS->map_pages(SYS, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0, &at);
    OPS->protect_pages(SYS, at, 4096, PROT_NONE);
    OPS->advise_pages(SYS, at, 4096, MADV_DONTFORK);
    OPS->unmap_pages(SYS, at, 4096);
    OPS->read_file(SYS, "/proc/self/comm", text, sizeof(text));
    OPS->list_dir(SYS, "/dev", count_names, &n);
    OPS->stat_path(SYS, "/dev", &st);
    OPS->product_name(SYS, fd, text, sizeof(text));
    OPS->close_fd(SYS, fd);
    return arg;
}

static void test_no_operation_is_a_point_of_cancellation(void **state)
{
    pthread_t thread;
    void *result;
    char mark;

    assert_int_equal(pthread_create(&thread, NULL, all_operations, &mark), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &mark); /* it came to its end */
}

static void test_state_is_one_place(void **state)
{
    assert_non_null(OPS->state(SYS));
    assert_ptr_equal(OPS->state(SYS), OPS->state(SYS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_gives_a_descriptor_or_the_errno),
        cmocka_unit_test(test_dup_obeys_its_minimum_and_closes_on_exec),
        cmocka_unit_test(test_a_request_gives_its_result_or_the_errno),
        cmocka_unit_test(test_pages_are_mapped_protected_and_unmapped),
        cmocka_unit_test(test_read_takes_the_whole_file_or_says_it_is_too_big),
        cmocka_unit_test(test_list_calls_for_each_entry_until_told_to_stop),
        cmocka_unit_test(test_stat_tells_the_device_number),
        cmocka_unit_test(test_what_is_no_gpu_has_no_product_name),
        cmocka_unit_test(test_errno_is_the_callers),
        cmocka_unit_test(test_no_operation_is_a_point_of_cancellation),
        cmocka_unit_test(test_state_is_one_place),
    };

    return cmocka_run_group_tests_name("kfd/sys_linux", tests, NULL, NULL);
}
