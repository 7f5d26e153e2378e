/* SPDX-License-Identifier: MIT */
/* Forks: the child finds the parent's kfd dead, and can open its own. */
#include "kfd/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stub_sys.h"
#include "kfd/vm.h"
#include "kfd/object.h"

#define CHECK(cond)                \
    do {                           \
        if (!(cond))               \
            _exit(__LINE__ % 255); \
    } while (0)

/* Runs a child and expects it to leave with 0; its CHECKs leave with their line. */
static void expect_child_ok(pid_t pid)
{
    int status;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status))
        fail_msg("child failed at line %d (modulo 255)", WEXITSTATUS(status));
}

static void child_uses_dead(struct stub *stub, struct kfd *kfd)
{
    struct kfd_device *dev = kfd_device_at(kfd, 0);
    uint64_t requests = stub->requests, value;
    struct kfd_dmabuf_info info;
    uint32_t gem;
    int fd;

    CHECK(!kfd_is_owner(kfd));
    CHECK(kfd_mem_alloc(dev, 0, 4096, KFD_MEM_VRAM, &value, NULL) == -EBADF);
    CHECK(strstr(kfd_error_text(), "fork"));
    CHECK(kfd_mem_free(kfd, 1) == -EBADF);
    CHECK(kfd_mem_map(kfd, 1, &dev, 1, NULL) == -EBADF);
    CHECK(kfd_mem_unmap(kfd, 1, &dev, 1, NULL) == -EBADF);
    CHECK(kfd_mem_flush(kfd, 1, &dev, 1) == -EBADF);
    CHECK(kfd_mem_available(dev, &value) == -EBADF);
    CHECK(kfd_dmabuf_export(kfd, 1, &fd) == -EBADF);
    CHECK(kfd_dmabuf_import(dev, 5, 0, &value) == -EBADF);
    CHECK(kfd_dmabuf_info(kfd, 5, &info) == -EBADF);
    CHECK(kfd_gem_import(dev, 5, &gem) == -EBADF);
    CHECK(kfd_gem_close(dev, 1) == -EBADF);
    CHECK(kfd_gem_create(dev, 4096, true, &gem) == -EBADF);
    CHECK(kfd_gem_export(dev, 1, &fd) == -EBADF);
    CHECK(kfd_gem_mmap_offset(dev, 1, &value) == -EBADF);
    CHECK(kfd_gem_va(dev, KFD_VA_MAP, 1, 0x200000, 0, 4096, KFD_VA_READ) == -EBADF);
    CHECK(stub->requests == requests);
}

static void test_every_request_of_a_child_is_ebadf(void **state)
{
    static const uint32_t drm_minors[] = {61, 64};

    for (int i = 0; i < 2; i++) {
        struct stub *stub = stub_new(1);
        struct kfd *kfd;
        pid_t pid;

        stub->gpus[0].drm_minor = drm_minors[i];
        assert_int_equal(kfd_open(&stub->base, &kfd), 0);
        pid = fork();
        if (pid == 0) {
            child_uses_dead(stub, kfd);
            _exit(0);
        }
        expect_child_ok(pid);
        assert_true(kfd_is_owner(kfd));
        kfd_close(kfd);
        stub_free(stub);
    }
}

/* The parent's descriptors lead to the parent's address space: the child needs files of its own,
 * and gives back what it inherited. */
static void child_opens(struct stub *stub, struct kfd *dead, bool close_first)
{
    struct kfd *own;
    int inherited = stub->open_fds;

    for (uint32_t i = 0; i < stub->gpu_count; i++)
        stub->gpus[i].acquired_file = 0; /* a new process to the kernel */
    if (close_first) {
        uint64_t requests = stub->requests;

        kfd_close(dead);
        CHECK(stub->requests == requests);
        CHECK(stub->open_fds == 0);
    }
    CHECK(kfd_open(&stub->base, &own) == 0);
    CHECK(kfd_is_owner(own));
    CHECK(kfd_device_count(own) == 2);
    if (!close_first) {
        CHECK(kfd_device_drm_fd(kfd_device_at(own, 0)) !=
              kfd_device_drm_fd(kfd_device_at(dead, 0)));
        CHECK(stub->open_fds == inherited + 3);
        kfd_close(dead);
    }
    CHECK(stub->open_fds == 3);
    kfd_close(own);
    CHECK(stub->open_fds == (stub->keeps ? 2 : 0));
    CHECK(kfd_open(&stub->base, &own) == 0);
    CHECK(kfd_device_count(own) == (stub->keeps ? 2 : 0));
    kfd_close(own);
    stub_free(stub);
}

static void test_a_child_opens_its_own(void **state)
{
    for (int variant = 0; variant < 4; variant++) {
        struct stub *stub = stub_new(2);
        struct kfd *kfd;
        pid_t pid;

        stub->keeps = variant & 1;
        assert_int_equal(kfd_open(&stub->base, &kfd), 0);
        pid = fork();
        if (pid == 0) {
            child_opens(stub, kfd, variant & 2);
            _exit(0);
        }
        expect_child_ok(pid);
        kfd_close(kfd);
        stub_free(stub);
    }
}

static void test_a_child_forgets_kept_render_nodes(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;
    pid_t pid;

    stub->keeps = true;
    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    kfd_close(kfd);
    assert_int_equal(stub->open_fds, 2);
    pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < stub->gpu_count; i++)
            stub->gpus[i].acquired_file = 0;
        CHECK(kfd_open(&stub->base, &kfd) == 0);
        CHECK(kfd_device_count(kfd) == 2);
        CHECK(stub->open_fds == 3);
        kfd_close(kfd);
        stub_free(stub);
        _exit(0);
    }
    expect_child_ok(pid);
    stub_free(stub);
}

static void make_all_files_the_programs(struct stub *stub)
{
    for (int fd = 0; fd < STUB_MAX_FDS; fd++)
        stub->fds[fd].other = stub->fds[fd].file;
}

static void test_files_of_the_program_under_our_numbers_stay(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    make_all_files_the_programs(stub);
    kfd_close(kfd);
    assert_int_equal(stub->open_fds, 3);
    stub->open_fds = 0;
    stub_free(stub);
}

/* As a daemon does: the child closes all that it inherited, and opens files of its own. */
static void test_a_child_s_own_files_under_inherited_numbers_stay(void **state)
{
    for (int variant = 0; variant < 2; variant++) {
        struct stub *stub = stub_new(2);
        struct kfd *kfd;
        pid_t pid;

        stub->keeps = variant;
        assert_int_equal(kfd_open(&stub->base, &kfd), 0);
        pid = fork();
        if (pid == 0) {
            make_all_files_the_programs(stub);
            for (uint32_t i = 0; i < stub->gpu_count; i++)
                stub->gpus[i].acquired_file = 0;
            kfd_close(kfd);
            CHECK(stub->open_fds == 3);
            CHECK(kfd_open(&stub->base, &kfd) == 0);
            CHECK(stub->open_fds == 6);
            kfd_close(kfd);
            _exit(0);
        }
        expect_child_ok(pid);
        kfd_close(kfd);
        stub_free(stub);
    }
}

/* A child forked in the middle of another thread's GEM call, whose lock stays locked in it. */
static void test_a_child_closes_a_device_locked_by_another_thread(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd *kfd;
    pid_t pid;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    pthread_mutex_lock(&kfd_device_at(kfd, 0)->vm->lock);
    pid = fork();
    if (pid == 0) {
        uint32_t gem;

        CHECK(kfd_gem_import(kfd_device_at(kfd, 0), 5, &gem) == -EBADF);
        kfd_close(kfd);
        CHECK(stub->open_fds == 0);
        _exit(0);
    }
    pthread_mutex_unlock(&kfd_device_at(kfd, 0)->vm->lock);
    expect_child_ok(pid);
    kfd_close(kfd);
    stub_free(stub);
}

static atomic_bool enough;

static void *lock_and_unlock(void *arg)
{
    while (!atomic_load(&enough)) {
        kfd_process_lock();
        kfd_process_unlock();
    }
    return NULL;
}

static void test_a_child_never_inherits_the_opening_lock_locked(void **state)
{
    pthread_t thread;

    kfd_process_lock();
    kfd_process_unlock();
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, lock_and_unlock, NULL), 0);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(20); /* a deadlock ends the child with a signal */
            kfd_process_lock();
            kfd_process_unlock();
            _exit(0);
        }
        expect_child_ok(pid);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_request_of_a_child_is_ebadf),
        cmocka_unit_test(test_a_child_opens_its_own),
        cmocka_unit_test(test_a_child_forgets_kept_render_nodes),
        cmocka_unit_test(test_files_of_the_program_under_our_numbers_stay),
        cmocka_unit_test(test_a_child_s_own_files_under_inherited_numbers_stay),
        cmocka_unit_test(test_a_child_closes_a_device_locked_by_another_thread),
        cmocka_unit_test(test_a_child_never_inherits_the_opening_lock_locked),
    };

    return cmocka_run_group_tests_name("kfd/process", tests, NULL, NULL);
}
