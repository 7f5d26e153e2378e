/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "stub_sys.h"

static struct kfd_sys *new_injector(struct stub *stub)
{
    struct kfd_sys *sys;

    assert_int_equal(kfd_sys_inject_new(&stub->base, &sys), 0);
    return sys;
}

static int ask_version(struct kfd_sys *sys)
{
    struct kfd_ioctl_get_version_args args;
    int fd = sys->ops->open_path(sys, "/dev/kfd", 0);
    int ret = fd;

    if (fd >= 0) {
        ret = sys->ops->request(sys, fd, KFD_CODE_GET_VERSION, &args);
        sys->ops->close_fd(sys, fd);
    }
    return ret;
}

static int ignore(void *arg, const char *name)
{
    return 0;
}

/* Does one operation of a kind. */
static int do_one(struct kfd_sys *sys, enum kfd_sys_op op)
{
    struct kfd_ioctl_get_version_args args;
    char text[32];
    void *at;
    int ret;

    switch (op) {
    case KFD_SYS_OPEN:
        ret = sys->ops->open_path(sys, "/dev/kfd", 0);
        break;
    case KFD_SYS_DUP:
        ret = sys->ops->dup_fd(sys, STUB_FIRST_FD, 3);
        break;
    case KFD_SYS_REQUEST:
        return sys->ops->request(sys, STUB_FIRST_FD, KFD_CODE_GET_VERSION, &args);
    case KFD_SYS_MAP:
        return sys->ops->map_pages(sys, NULL, 4096, 0, 0, -1, 0, &at);
    case KFD_SYS_PROTECT:
        return sys->ops->protect_pages(sys, NULL, 4096, 0);
    case KFD_SYS_READ:
        ret = sys->ops->read_file(sys, "/nothing", text, sizeof(text));
        return ret == -ENOENT ? 0 : ret;
    case KFD_SYS_ANY:
    default:
        return -ENOSYS;
    }
    if (ret >= 0)
        sys->ops->close_fd(sys, ret);
    return ret < 0 ? ret : 0;
}

static void test_unarmed_it_passes_everything(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys *sys = new_injector(stub);
    bool fired = true;

    assert_int_equal(ask_version(sys), 0);
    assert_int_equal(kfd_sys_inject_seen(sys, &fired), 0);
    assert_false(fired);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_a_kind_fails_alone(void **state)
{
    for (int kind = KFD_SYS_OPEN; kind <= KFD_SYS_READ; kind++) {
        struct stub *stub = stub_new(0);
        struct kfd_sys *sys = new_injector(stub);
        struct kfd_sys_fault fault = {.op = (enum kfd_sys_op)kind, .error = EDOM, .forever = true};
        int fd = sys->ops->open_path(sys, "/dev/kfd", 0);

        kfd_sys_inject_set(sys, &fault);
        for (int op = KFD_SYS_OPEN; op <= KFD_SYS_READ; op++)
            assert_int_equal(do_one(sys, (enum kfd_sys_op)op), op == kind ? -EDOM : 0);
        sys->ops->close_fd(sys, fd);
        kfd_sys_destroy(sys);
        stub_free(stub);
    }
}

static void test_any_counts_across_kinds(void **state)
{
    /* The k-th of open, dup, request, map, protect, read. */
    for (uint64_t k = 0; k < 6; k++) {
        struct stub *stub = stub_new(0);
        struct kfd_sys *sys = new_injector(stub);
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EDOM};
        int fd = sys->ops->open_path(sys, "/dev/kfd", 0);
        bool fired;

        kfd_sys_inject_set(sys, &fault);
        for (int op = KFD_SYS_OPEN; op <= KFD_SYS_READ; op++)
            assert_int_equal(do_one(sys, (enum kfd_sys_op)op),
                             (uint64_t)(op - KFD_SYS_OPEN) == k ? -EDOM : 0);
        assert_int_equal(kfd_sys_inject_seen(sys, &fired), 6);
        assert_true(fired);
        sys->ops->close_fd(sys, fd);
        kfd_sys_destroy(sys);
        stub_free(stub);
    }
}

static void test_once_or_for_ever(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys *sys = new_injector(stub);
    struct kfd_sys_fault fault = {.op = KFD_SYS_OPEN, .skip = 2, .error = EMFILE};

    kfd_sys_inject_set(sys, &fault);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask_version(sys), i == 2 ? -EMFILE : 0);
    fault.forever = true;
    kfd_sys_inject_set(sys, &fault); /* starts counting anew */
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask_version(sys), i >= 2 ? -EMFILE : 0);
    kfd_sys_inject_set(sys, NULL);
    assert_int_equal(ask_version(sys), 0);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_a_request_is_chosen_by_type_and_number(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_sys *sys = new_injector(stub);
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST,
        .request = (uint16_t)KFD_CODE_ACQUIRE_VM,
        .error = EIO,
    };
    struct kfd *kfd;
    bool fired;

    kfd_sys_inject_set(sys, &fault);
    assert_int_equal(kfd_open(sys, &kfd), 0);
    assert_int_equal(kfd_device_count(kfd), 0);
    assert_non_null(strstr(kfd_skipped(kfd, 0), "ACQUIRE_VM"));
    assert_int_equal(kfd_sys_inject_seen(sys, &fired), 1);
    assert_true(fired);
    assert_int_equal(stub->gpus[0].acquired_file, 0); /* it did not reach the kernel */
    kfd_close(kfd);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_listing_fails_as_reading(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys *sys = new_injector(stub);
    struct kfd_sys_fault fault = {.op = KFD_SYS_READ, .error = EIO};

    kfd_sys_inject_set(sys, &fault);
    assert_int_equal(sys->ops->list_dir(sys, "/sys", ignore, NULL), -EIO);
    assert_int_equal(sys->ops->list_dir(sys, "/sys", ignore, NULL), 0);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

static void test_closing_unmapping_and_advice_never_fail(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys *sys = new_injector(stub);
    struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .error = EIO, .forever = true};
    int fd = sys->ops->open_path(sys, "/dev/kfd", 0);

    kfd_sys_inject_set(sys, &fault);
    assert_int_equal(sys->ops->close_fd(sys, fd), 0);
    assert_int_equal(sys->ops->unmap_pages(sys, NULL, 4096), 0);
    assert_int_equal(sys->ops->advise_pages(sys, NULL, 4096, 0), 0);
    assert_int_equal(kfd_sys_inject_seen(sys, NULL), 0);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

/* Without a shot it counts, so that a test can learn how many operations there are. */
static void test_a_fault_beyond_the_end_only_counts(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd_sys *sys = new_injector(stub);
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST, .skip = UINT64_MAX, .error = EIO, .forever = true};
    struct kfd *kfd;
    bool fired;

    kfd_sys_inject_set(sys, &fault);
    assert_int_equal(kfd_open(sys, &kfd), 0);
    assert_int_equal(kfd_sys_inject_seen(sys, &fired), 3 + 3 * 2);
    assert_false(fired);
    kfd_close(kfd);
    kfd_sys_destroy(sys);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unarmed_it_passes_everything),
        cmocka_unit_test(test_a_kind_fails_alone),
        cmocka_unit_test(test_any_counts_across_kinds),
        cmocka_unit_test(test_once_or_for_ever),
        cmocka_unit_test(test_a_request_is_chosen_by_type_and_number),
        cmocka_unit_test(test_listing_fails_as_reading),
        cmocka_unit_test(test_closing_unmapping_and_advice_never_fail),
        cmocka_unit_test(test_a_fault_beyond_the_end_only_counts),
    };

    return cmocka_run_group_tests_name("kfd/sys_inject", tests, NULL, NULL);
}
