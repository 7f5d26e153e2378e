/* SPDX-License-Identifier: MIT */
/* Render nodes outlive a struct kfd, because the kernel acquires one file per process and GPU. */
#include "kfd/vm.h"

#include <pthread.h>

#include "stub_sys.h"
#include "kfd/object.h"

static struct kfd *open_all(struct stub *stub, uint32_t devices)
{
    struct kfd *kfd;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    assert_int_equal(kfd_device_count(kfd), devices);
    return kfd;
}

static void test_opening_again_gets_the_same_files(void **state)
{
    struct stub *stub = stub_new(2);

    stub->keeps = true;
    for (int i = 0; i < 20; i++) {
        struct kfd *kfd = open_all(stub, 2);

        assert_int_equal(stub->open_fds, 3);
        kfd_close(kfd);
        assert_int_equal(stub->open_fds, 2); /* flat, however often */
    }
    assert_int_equal(stub->opened, 20 + 2);
    stub_free(stub);
}

static void test_without_a_place_to_keep_them_files_are_closed(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd = open_all(stub, 2);

    kfd_close(kfd);
    assert_int_equal(stub->open_fds, 0);
    kfd = open_all(stub, 0); /* the kernel refuses another file */
    assert_non_null(kfd_skipped(kfd, 0));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_two_opens_share_a_file(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd *one, *two;

    stub->keeps = true;
    one = open_all(stub, 1);
    two = open_all(stub, 1);
    assert_int_equal(kfd_device_drm_fd(kfd_device_at(one, 0)),
                     kfd_device_drm_fd(kfd_device_at(two, 0)));
    kfd_close(one);
    assert_int_equal(stub->open_fds, 2);
    kfd_close(two);
    stub_free(stub);
}

static void test_a_decorator_opens_the_files_below_it(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_sys *counter;
    struct kfd *kfd;

    stub->keeps = true;
    assert_int_equal(kfd_sys_count_new(&stub->base, &counter), 0);
    assert_int_equal(kfd_open(counter, &kfd), 0);
    assert_int_equal(kfd_device_count(kfd), 1);
    kfd_close(kfd);
    kfd_sys_destroy(counter);
    kfd = open_all(stub, 1);
    assert_int_equal(stub->opened, 3);
    kfd_close(kfd);
    stub_free(stub);
}

/* One GEM table per file: counts the closes, gives handle 7 to every import. */
static bool gem_table(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    int *closes = stub->arg;

    *ret = 0;
    if (_IOC_TYPE(request) != 'd')
        return false;
    if (_IOC_NR(request) == DRM_NR_PRIME_FD_TO_HANDLE)
        ((struct drm_prime_handle *)arg)->handle = 7;
    else if (_IOC_NR(request) == DRM_NR_GEM_CLOSE)
        (*closes)++;
    else
        return false;
    return true;
}

static void test_gem_handles_are_counted_across_opens(void **state)
{
    struct stub *stub = stub_new(1);
    int closes = 0;
    struct kfd *one, *two;
    uint32_t gem;

    stub->keeps = true;
    stub->request = gem_table;
    stub->arg = &closes;
    one = open_all(stub, 1);
    two = open_all(stub, 1);
    assert_int_equal(kfd_gem_import(kfd_device_at(one, 0), 50, &gem), 0);
    assert_int_equal(kfd_gem_import(kfd_device_at(two, 0), 50, &gem), 0);
    assert_int_equal(kfd_gem_close(kfd_device_at(one, 0), gem), 0);
    assert_int_equal(closes, 0); /* the other's mappings live */
    assert_int_equal(kfd_gem_close(kfd_device_at(two, 0), gem), 0);
    assert_int_equal(closes, 1);
    kfd_close(one);
    kfd_close(two);
    stub_free(stub);
}

static void test_the_last_close_ends_what_is_left(void **state)
{
    struct stub *stub = stub_new(1);
    int closes = 0;
    struct kfd *one, *two;
    uint32_t gem;

    stub->keeps = true;
    stub->request = gem_table;
    stub->arg = &closes;
    one = open_all(stub, 1);
    two = open_all(stub, 1);
    assert_int_equal(kfd_gem_import(kfd_device_at(one, 0), 50, &gem), 0);
    kfd_close(one);
    assert_int_equal(closes, 0);
    kfd_close(two);
    assert_int_equal(closes, 1);
    stub_free(stub);
}

static void test_a_file_that_was_not_acquired_is_not_kept(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;

    stub->keeps = true;
    stub->gpus[0].acquire_error = -EIO;
    kfd = open_all(stub, 1);
    kfd_close(kfd);
    assert_int_equal(stub->open_fds, 1);
    stub->gpus[0].acquire_error = 0;
    kfd = open_all(stub, 2);
    kfd_close(kfd);
    stub_free(stub);
}

static void *open_and_close(void *arg)
{
    struct stub *stub = arg;

    for (int i = 0; i < 20; i++) {
        struct kfd *kfd;

        if (kfd_open(&stub->base, &kfd) < 0 || kfd_device_count(kfd) != 2)
            return stub;
        kfd_close(kfd);
    }
    return NULL;
}

static void test_threads_open_and_close_at_once(void **state)
{
    struct stub *stub = stub_new(2);
    pthread_t threads[4];

    stub->keeps = true;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, stub), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(stub->open_fds, 2);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening_again_gets_the_same_files),
        cmocka_unit_test(test_without_a_place_to_keep_them_files_are_closed),
        cmocka_unit_test(test_two_opens_share_a_file),
        cmocka_unit_test(test_a_decorator_opens_the_files_below_it),
        cmocka_unit_test(test_gem_handles_are_counted_across_opens),
        cmocka_unit_test(test_the_last_close_ends_what_is_left),
        cmocka_unit_test(test_a_file_that_was_not_acquired_is_not_kept),
        cmocka_unit_test(test_threads_open_and_close_at_once),
    };

    return cmocka_run_group_tests_name("kfd/vm", tests, NULL, NULL);
}
