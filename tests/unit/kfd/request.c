/* SPDX-License-Identifier: MIT */
#include "kfd/request.h"

#include <signal.h>
#include <string.h>

#include "stub_sys.h"
#include "kfd/object.h"

/* The test's arg: answers `storm` times with `error`, then with `answer`. */
struct storm {
    unsigned nr;
    int storm, error, answer, calls;
    int progress_at; /* MAP: n_success is set to 1 at that call */
    sigset_t mask;   /* blocked signals during the last call */
};

static bool storming(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    struct storm *s = stub->arg;

    if (_IOC_NR(request) != s->nr || _IOC_TYPE(request) != 'K')
        return false;
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    if (s->nr == KFD_NR_MAP_MEMORY_TO_GPU) {
        struct kfd_ioctl_map_memory_to_gpu_args *map = arg;

        assert_int_equal(map->n_success, s->calls > s->progress_at ? 1 : 0);
        if (s->calls == s->progress_at)
            map->n_success = 1;
        if (s->calls == s->storm && s->answer == 0)
            map->n_success = map->n_devices;
    }
    *ret = s->calls++ < s->storm ? s->error : s->answer;
    return true;
}

static struct kfd *open_storm(struct stub **stub, struct storm *storm)
{
    struct kfd *kfd;

    *stub = stub_new(2);
    assert_int_equal(kfd_open(&(*stub)->base, &kfd), 0);
    (*stub)->arg = storm;
    (*stub)->request = storming;
    return kfd;
}

static void test_eintr_and_eagain_storms_are_ridden_out(void **state)
{
    static const int errors[] = {-EINTR, -EAGAIN};

    for (int i = 0; i < 2; i++) {
        struct storm storm = {.nr = KFD_NR_AVAILABLE_MEMORY, .storm = 5000, .error = errors[i]};
        struct stub *stub;
        struct kfd *kfd = open_storm(&stub, &storm);
        uint64_t bytes;

        assert_int_equal(kfd_mem_available(kfd_device_at(kfd, 0), &bytes), 0);
        assert_int_equal(storm.calls, 5001);
        kfd_close(kfd);
        stub_free(stub);
    }
}

static void test_an_endless_storm_ends_as_eagain(void **state)
{
    struct storm storm = {.nr = KFD_NR_AVAILABLE_MEMORY, .storm = INT32_MAX, .error = -EINTR};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);
    uint64_t bytes;

    assert_int_equal(kfd_mem_available(kfd_device_at(kfd, 0), &bytes), -EAGAIN);
    assert_int_equal(storm.calls, KFD_REQUEST_TRIES);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_map_goes_on_where_it_was_interrupted(void **state)
{
    struct storm storm = {
        .nr = KFD_NR_MAP_MEMORY_TO_GPU, .storm = 4, .error = -EINTR, .progress_at = 1};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);
    struct kfd_device *devs[] = {kfd_device_at(kfd, 0), kfd_device_at(kfd, 1)};
    uint32_t done = 99;

    assert_int_equal(kfd_mem_map(kfd, 1, devs, 2, &done), 0);
    assert_int_equal(storm.calls, 5);
    assert_int_equal(done, 2);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_a_failure_after_an_interruption_tells_the_progress(void **state)
{
    struct storm storm = {.nr = KFD_NR_MAP_MEMORY_TO_GPU,
                          .storm = 2,
                          .error = -EINTR,
                          .progress_at = 0,
                          .answer = -EINVAL};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);
    struct kfd_device *devs[] = {kfd_device_at(kfd, 0), kfd_device_at(kfd, 1)};
    uint32_t done = 99;

    assert_int_equal(kfd_mem_map(kfd, 1, devs, 2, &done), -EINVAL);
    assert_int_equal(done, 1);
    assert_non_null(strstr(kfd_error_text(), "device 1"));
    assert_non_null(strstr(kfd_error_text(), "MAP_MEMORY_TO_GPU"));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_free_is_sent_once_with_signals_blocked(void **state)
{
    struct storm storm = {.nr = KFD_NR_FREE_MEMORY_OF_GPU, .storm = 1, .error = -EINTR};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);
    sigset_t mask;
    uint64_t bits;

    assert_int_equal(kfd_mem_free(kfd, 1), -EIO);
    assert_int_equal(storm.calls, 1);
    /* 33, by which glibc has all threads follow a setuid, is in no set that it makes. */
    memcpy(&bits, &storm.mask, sizeof(bits));
    assert_true(bits & UINT64_C(1) << (33 - 1));
    assert_true(sigismember(&storm.mask, SIGTERM));
    assert_true(sigismember(&storm.mask, SIGALRM));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
    assert_false(sigismember(&mask, SIGALRM));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_other_requests_leave_signals_alone(void **state)
{
    struct storm storm = {.nr = KFD_NR_AVAILABLE_MEMORY};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);
    uint64_t bytes;

    assert_int_equal(kfd_mem_available(kfd_device_at(kfd, 0), &bytes), 0);
    assert_false(sigismember(&storm.mask, SIGTERM));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_a_failure_is_decoded(void **state)
{
    struct storm storm = {.nr = KFD_NR_FREE_MEMORY_OF_GPU, .answer = -EBUSY};
    struct stub *stub;
    struct kfd *kfd = open_storm(&stub, &storm);

    assert_int_equal(kfd_mem_free(kfd, 0xabc), -EBUSY);
    assert_string_equal(kfd_error_text(),
                        "a device still maps it: FREE_MEMORY_OF_GPU handle=0xabc: EBUSY");
    kfd_close(kfd);
    stub_free(stub);
}

static void test_lift_moves_low_descriptors_only(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys *sys = &stub->base;
    int fd;

    stub->low_fds = 1;
    fd = kfd_fd_lift(sys, sys->ops->open_path(sys, "/dev/kfd", 0));
    assert_true(fd > 2);
    assert_int_equal(stub->open_fds, 1);
    assert_int_equal(kfd_fd_lift(sys, fd), fd);
    assert_int_equal(kfd_fd_lift(sys, -EACCES), -EACCES);
    sys->ops->close_fd(sys, fd);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eintr_and_eagain_storms_are_ridden_out),
        cmocka_unit_test(test_an_endless_storm_ends_as_eagain),
        cmocka_unit_test(test_map_goes_on_where_it_was_interrupted),
        cmocka_unit_test(test_a_failure_after_an_interruption_tells_the_progress),
        cmocka_unit_test(test_free_is_sent_once_with_signals_blocked),
        cmocka_unit_test(test_other_requests_leave_signals_alone),
        cmocka_unit_test(test_a_failure_is_decoded),
        cmocka_unit_test(test_lift_moves_low_descriptors_only),
    };

    return cmocka_run_group_tests_name("kfd/request", tests, NULL, NULL);
}
