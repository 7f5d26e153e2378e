/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "stub_sys.h"

static int ignore(void *arg, const char *name)
{
    return 0;
}

static void test_each_operation_is_counted_and_passed_on(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_ioctl_get_version_args version;
    struct kfd_sys_counts counts;
    struct kfd_sys *sys;
    char text[32];
    void *at = NULL;
    int fd, dup;

    assert_int_equal(kfd_sys_count_new(&stub->base, &sys), 0);
    fd = sys->ops->open_path(sys, "/dev/kfd", 0);
    assert_true(fd >= 0);
    dup = sys->ops->dup_fd(sys, fd, 3);
    assert_true(dup >= 0);
    assert_int_equal(sys->ops->request(sys, fd, KFD_CODE_GET_VERSION, &version), 0);
    assert_int_equal(version.minor_version, 17);
    assert_int_equal(sys->ops->close_fd(sys, dup), 0);
    assert_int_equal(sys->ops->close_fd(sys, fd), 0);
    assert_int_equal(sys->ops->map_pages(sys, (void *)8192, 4096, 0, 0, -1, 0, &at), 0);
    assert_ptr_equal(at, (void *)8192);
    assert_int_equal(sys->ops->unmap_pages(sys, at, 4096), 0);
    assert_int_equal(sys->ops->protect_pages(sys, at, 4096, 0), 0);
    assert_int_equal(sys->ops->advise_pages(sys, at, 4096, 0), 0);
    assert_int_equal(sys->ops->read_file(sys, stub->files[0].path, text, sizeof(text)), 2);
    assert_string_equal(text, "2\n");
    assert_int_equal(sys->ops->list_dir(sys, "/sys", ignore, NULL), 0);

    kfd_sys_count_get(sys, &counts);
    assert_int_equal(counts.opens, 1);
    assert_int_equal(counts.dups, 1);
    assert_int_equal(counts.closes, 2);
    assert_int_equal(counts.maps, 1);
    assert_int_equal(counts.unmaps, 1);
    assert_int_equal(counts.protects, 1);
    assert_int_equal(counts.advises, 1);
    assert_int_equal(counts.reads, 1);
    assert_int_equal(counts.lists, 1);
    assert_int_equal(counts.requests, 1);
    assert_int_equal(counts.kfd[KFD_NR_GET_VERSION], 1);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_requests_are_counted_by_kind(void **state)
{
    struct stub *stub = stub_new(3);
    struct kfd_sys_counts counts;
    uint64_t sum = 0;
    struct kfd_sys *sys;
    struct kfd *kfd;

    assert_int_equal(kfd_sys_count_new(&stub->base, &sys), 0);
    assert_int_equal(kfd_open(sys, &kfd), 0);
    kfd_sys_count_get(sys, &counts);
    assert_int_equal(counts.opens, 4);
    assert_int_equal(counts.requests, 3 + 3 * 3);
    assert_int_equal(counts.kfd[KFD_NR_GET_VERSION], 1);
    assert_int_equal(counts.kfd[KFD_NR_GET_PROCESS_APERTURES_NEW], 2);
    assert_int_equal(counts.kfd[KFD_NR_ACQUIRE_VM], 3);
    assert_int_equal(counts.drm[DRM_NR_VERSION], 3);
    assert_int_equal(counts.drm[DRM_NR_INFO], 3);
    for (int nr = 0; nr < 256; nr++)
        sum += counts.kfd[nr] + counts.drm[nr];
    assert_int_equal(sum, counts.requests);
    kfd_close(kfd);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_failures_count_and_other_types_only_in_the_total(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys_counts counts;
    struct kfd_sys *sys;
    uint64_t arg[8] = {0};

    assert_int_equal(kfd_sys_count_new(&stub->base, &sys), 0);
    assert_int_equal(sys->ops->request(sys, -1, KFD_CODE_ACQUIRE_VM, arg), -EBADF);
    assert_int_equal(sys->ops->request(sys, -1, 0x5401, arg), -EBADF);
    kfd_sys_count_get(sys, &counts);
    assert_int_equal(counts.requests, 2);
    assert_int_equal(counts.kfd[KFD_NR_ACQUIRE_VM], 1);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_reset_starts_from_zero(void **state)
{
    static const struct kfd_sys_counts zero;
    struct stub *stub = stub_new(1);
    struct kfd_sys_counts counts;
    struct kfd_sys *sys;
    struct kfd *kfd;

    assert_int_equal(kfd_sys_count_new(&stub->base, &sys), 0);
    assert_int_equal(kfd_open(sys, &kfd), 0);
    kfd_sys_count_reset(sys);
    kfd_sys_count_get(sys, &counts);
    assert_memory_equal(&counts, &zero, sizeof(counts));
    kfd_close(kfd);
    kfd_sys_count_get(sys, &counts);
    assert_int_equal(counts.closes, 2);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_operation_is_counted_and_passed_on),
        cmocka_unit_test(test_requests_are_counted_by_kind),
        cmocka_unit_test(test_failures_count_and_other_types_only_in_the_total),
        cmocka_unit_test(test_reset_starts_from_zero),
    };

    return cmocka_run_group_tests_name("kfd/sys_count", tests, NULL, NULL);
}
