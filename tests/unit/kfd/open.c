/* SPDX-License-Identifier: MIT */
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stub_sys.h"
#include "kfd/error.h"

static struct kfd *open_ok(struct stub *stub)
{
    struct kfd *kfd = NULL;
    int ret = kfd_open(&stub->base, &kfd);

    if (ret < 0)
        fail_msg("kfd_open: %d, %s", ret, kfd_error_text());
    return kfd;
}

static void expect_text(const char *text, const char *part)
{
    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("'%s' lacks '%s'", text, part);
}

static void test_devices_follow_the_topology(void **state)
{
    struct stub *stub = stub_new(3);
    struct kfd *kfd = open_ok(stub);
    uint32_t major, minor;

    assert_int_equal(kfd_device_count(kfd), 3);
    assert_int_equal(kfd_cpu_node_count(kfd), 1);
    assert_null(kfd_skipped(kfd, 0));
    kfd_version(kfd, &major, &minor);
    assert_int_equal(major, 1);
    assert_int_equal(minor, 17);
    for (uint32_t i = 0; i < 3; i++) {
        const struct kfd_device_info *info = kfd_device_info(kfd_device_at(kfd, i));

        assert_int_equal(info->index, i);
        assert_int_equal(info->gpu_id, 1000 + i);
        assert_int_equal(info->drm_major, 3);
        assert_int_equal(info->drm_minor, 61);
        assert_int_equal(info->va_base, 0x10000);
        assert_int_equal(info->va_limit, 0x7fffffffffff);
        assert_string_equal(info->name, "gfx942");
        assert_string_equal(info->product, "Stub Accelerator");
    }
    kfd_close(kfd);
    stub_free(stub);
}

static void test_three_requests_and_three_per_gpu(void **state)
{
    struct stub *stub = stub_new(8);
    struct kfd *kfd = open_ok(stub);

    assert_int_equal(stub->requests, 3 + 3 * 8);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_no_kfd_is_enoent_and_named(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd *kfd;

    stub->kfd_error = -ENOENT;
    assert_int_equal(kfd_open(&stub->base, &kfd), -ENOENT);
    expect_text(kfd_error_text(), "/dev/kfd");
    stub_free(stub);
}

static void test_no_permission_names_file_mode_and_group(void **state)
{
    static const int errors[] = {-EACCES, -EPERM};

    for (int i = 0; i < 2; i++) {
        struct stub *stub = stub_new(1);
        struct group *group = getgrgid(0);
        struct kfd *kfd;

        stub->kfd_error = errors[i];
        stub->node_stat = (struct kfd_sys_stat){.mode = 0020660, .gid = 0};
        assert_int_equal(kfd_open(&stub->base, &kfd), errors[i]);
        expect_text(kfd_error_text(), "/dev/kfd");
        expect_text(kfd_error_text(), "0660");
        expect_text(kfd_error_text(), group ? group->gr_name : "0");
        stub->node_stat.gid = 54321; /* a group without a name, and not ours */
        assert_int_equal(kfd_open(&stub->base, &kfd), errors[i]);
        expect_text(kfd_error_text(), "54321");
        expect_text(kfd_error_text(), "not in");
        stub_free(stub);
    }
}

static void test_another_major_version_is_eproto(void **state)
{
    static const uint32_t majors[] = {0, 2};

    for (int i = 0; i < 2; i++) {
        struct stub *stub = stub_new(1);
        struct kfd *kfd;

        stub->major = majors[i];
        assert_int_equal(kfd_open(&stub->base, &kfd), -EPROTO);
        stub_free(stub);
    }
}

static void test_unknown_minors_are_taken(void **state)
{
    static const uint32_t minors[] = {0, 11, 99};

    for (int i = 0; i < 3; i++) {
        struct stub *stub = stub_new(1);
        struct kfd *kfd;

        stub->minor = minors[i];
        kfd = open_ok(stub);
        assert_int_equal(kfd_device_count(kfd), 1);
        kfd_close(kfd);
        stub_free(stub);
    }
}

static void test_no_gpu_still_opens(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd *kfd = open_ok(stub);

    assert_int_equal(kfd_device_count(kfd), 0);
    assert_null(kfd_device_at(kfd, 0));
    assert_int_equal(stub->requests, 2);
    kfd_close(kfd);
    stub_free(stub);
}

/* Opens a machine of three GPUs of which the middle one was spoilt. */
static void expect_second_skipped(struct stub *stub, const char *reason)
{
    struct kfd *kfd = open_ok(stub);

    assert_int_equal(kfd_device_count(kfd), 2);
    assert_int_equal(kfd_device_info(kfd_device_at(kfd, 0))->gpu_id, 1000);
    assert_int_equal(kfd_device_info(kfd_device_at(kfd, 1))->gpu_id, 1002);
    assert_int_equal(kfd_device_info(kfd_device_at(kfd, 1))->index, 1);
    expect_text(kfd_skipped(kfd, 0), "node 2");
    expect_text(kfd_skipped(kfd, 0), reason);
    assert_null(kfd_skipped(kfd, 1));
    assert_int_equal(stub->open_fds, 3);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_a_missing_render_node_is_skipped(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].open_error = -ENOENT;
    expect_second_skipped(stub, "/dev/dri/renderD129: ENOENT");
}

static void test_a_forbidden_render_node_is_skipped_with_its_group(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].open_error = -EACCES;
    stub->node_stat.gid = 54321;
    expect_second_skipped(stub, "/dev/dri/renderD129: EACCES, mode 0660, group 54321");
}

static void test_a_gpu_without_an_aperture_is_skipped(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].no_aperture = true;
    expect_second_skipped(stub, "aperture");
}

static void test_a_gpu_hidden_by_the_cgroup_is_skipped(void **state)
{
    struct stub *stub = stub_new(3);

    stub_set_error(stub, "nodes/2/gpu_id", -EPERM);
    expect_second_skipped(stub, "cgroup");
}

static void test_a_gpu_held_by_another_library_is_skipped(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].acquire_error = -EBUSY;
    expect_second_skipped(stub, "another library");
}

static void test_a_render_node_of_another_chip_is_not_acquired(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].drm_device_id = 0x744c;
    expect_second_skipped(stub, "744c");
}

static void test_a_render_node_under_another_name_is_not_acquired(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].device_minor = 130;
    expect_second_skipped(stub, "226:130");
}

static void test_a_render_node_of_another_driver_is_not_acquired(void **state)
{
    struct stub *stub = stub_new(3);

    stub->gpus[1].driver = "i915";
    expect_second_skipped(stub, "i915");
}

static void test_render_minors_are_the_topologys(void **state)
{
    static const uint32_t minors[] = {130, 129, 190};
    struct stub *stub = stub_new(3);
    struct kfd *kfd;

    for (uint32_t i = 0; i < 3; i++) {
        stub->gpus[i].minor = stub->gpus[i].device_minor = minors[i];
        stub_write_gpu(stub, i);
    }
    kfd = open_ok(stub);
    assert_int_equal(kfd_device_count(kfd), 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct kfd_device *dev = kfd_device_at(kfd, i);

        assert_int_equal(kfd_device_info(dev)->render_minor, minors[i]);
        assert_int_equal(stub->fds[kfd_device_drm_fd(dev)].gpu, (int)i);
    }
    kfd_close(kfd);
    stub_free(stub);
}

static void test_64_gpus_are_taken_and_the_rest_skipped(void **state)
{
    struct stub *stub = stub_new(66);
    struct kfd *kfd = open_ok(stub);

    assert_int_equal(kfd_device_count(kfd), 64);
    assert_int_equal(kfd_device_info(kfd_device_at(kfd, 63))->render_minor, 191);
    expect_text(kfd_skipped(kfd, 0), "node 65");
    expect_text(kfd_skipped(kfd, 1), "node 66");
    assert_null(kfd_skipped(kfd, 2));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_an_apu_is_told_by_the_driver(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;

    stub->gpus[0].ids_flags = AMDGPU_IDS_FLAGS_FUSION;
    kfd = open_ok(stub);
    assert_true(kfd_device_info(kfd_device_at(kfd, 0))->apu);
    assert_false(kfd_device_info(kfd_device_at(kfd, 1))->apu);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_descriptors_stay_off_standard_input(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;

    stub->low_fds = 3;
    kfd = open_ok(stub);
    for (int fd = 0; fd < 3; fd++)
        assert_int_equal(stub->fds[fd].file, 0);
    assert_int_equal(stub->open_fds, 3);
    kfd_close(kfd);
    stub_free(stub);
}

/* Opens with each k-th operation failing, until one pass is left alone. */
static void fail_each_operation(bool keeps, int error)
{
    bool fired = true;

    for (uint64_t k = 0; fired; k++) {
        struct stub *stub = stub_new(2);
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = error};
        struct kfd_sys *inject;
        struct kfd *kfd = NULL;
        int ret;

        stub->keeps = keeps;
        assert_int_equal(kfd_sys_inject_new(&stub->base, &inject), 0);
        kfd_sys_inject_set(inject, &fault);
        ret = kfd_open(inject, &kfd);
        kfd_sys_inject_seen(inject, &fired);
        if (ret < 0) {
            assert_true(fired);
            assert_null(kfd);
            assert_string_not_equal(kfd_error_text(), "");
            if (!keeps)
                assert_int_equal(stub->open_fds, 0);
        } else {
            /* It goes on with whatever is left and says what is not. */
            if (fired && error != EINTR && kfd_device_count(kfd) < 2)
                assert_non_null(kfd_skipped(kfd, 0));
            assert_int_equal(stub->open_fds, 1 + (int)kfd_device_count(kfd));
            kfd_close(kfd);
        }
        kfd_sys_inject_set(inject, NULL);
        if (keeps) {
            /* Whatever happened, another try gets both. */
            assert_int_equal(kfd_open(inject, &kfd), 0);
            assert_int_equal(kfd_device_count(kfd), 2);
            kfd_close(kfd);
        }
        kfd_sys_destroy(inject);
        stub_free(stub); /* sees that no descriptor is left */
    }
}

/* What the process lacks says nothing about a GPU: none is left out for it, whichever file it hits,
 * and the process that has room again gets them all. */
static void test_a_shortage_ends_the_open_and_leaves_no_gpu_out(void **state)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM};
    static const enum kfd_sys_op ops[] = {KFD_SYS_OPEN, KFD_SYS_READ};

    for (int i = 0; i < 6; i++) {
        bool fired = true;

        for (uint64_t k = 0; fired; k++) {
            struct kfd_sys_fault fault = {.op = ops[i / 3], .skip = k, .error = errors[i % 3]};
            struct stub *stub = stub_new(3);
            struct kfd_sys *inject;
            struct kfd *kfd = NULL;
            /* So KFD says that it drives no GPU. */
            bool refused = i == 2 && k == 0;
            int ret;

            stub->keeps = true;
            assert_int_equal(kfd_sys_inject_new(&stub->base, &inject), 0);
            kfd_sys_inject_set(inject, &fault);
            ret = kfd_open(inject, &kfd);
            kfd_sys_inject_seen(inject, &fired);
            kfd_sys_inject_set(inject, NULL);
            assert_int_equal(ret, refused ? -ENODEV : fired ? -fault.error : 0);
            if (fired) {
                expect_text(kfd_error_text(), kfd_errno_name(fault.error));
                assert_int_equal(kfd_open(inject, &kfd), 0);
            }
            assert_int_equal(kfd_device_count(kfd), 3);
            assert_int_equal(kfd_link_count(kfd), 3);
            assert_null(kfd_skipped(kfd, 0));
            kfd_close(kfd);
            kfd_sys_destroy(inject);
            stub_free(stub);
        }
    }
}

static void test_every_failing_operation_leaves_nothing_open(void **state)
{
    fail_each_operation(false, EIO);
    fail_each_operation(false, ENOMEM);
    fail_each_operation(false, EPERM);
}

static void test_after_every_failing_operation_a_retry_works(void **state)
{
    fail_each_operation(true, EIO);
    fail_each_operation(true, EMFILE);
}

static void test_null_is_closed(void **state)
{
    kfd_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_follow_the_topology),
        cmocka_unit_test(test_three_requests_and_three_per_gpu),
        cmocka_unit_test(test_no_kfd_is_enoent_and_named),
        cmocka_unit_test(test_no_permission_names_file_mode_and_group),
        cmocka_unit_test(test_another_major_version_is_eproto),
        cmocka_unit_test(test_unknown_minors_are_taken),
        cmocka_unit_test(test_no_gpu_still_opens),
        cmocka_unit_test(test_a_missing_render_node_is_skipped),
        cmocka_unit_test(test_a_forbidden_render_node_is_skipped_with_its_group),
        cmocka_unit_test(test_a_gpu_without_an_aperture_is_skipped),
        cmocka_unit_test(test_a_gpu_hidden_by_the_cgroup_is_skipped),
        cmocka_unit_test(test_a_gpu_held_by_another_library_is_skipped),
        cmocka_unit_test(test_a_render_node_of_another_chip_is_not_acquired),
        cmocka_unit_test(test_a_render_node_under_another_name_is_not_acquired),
        cmocka_unit_test(test_a_render_node_of_another_driver_is_not_acquired),
        cmocka_unit_test(test_render_minors_are_the_topologys),
        cmocka_unit_test(test_64_gpus_are_taken_and_the_rest_skipped),
        cmocka_unit_test(test_an_apu_is_told_by_the_driver),
        cmocka_unit_test(test_descriptors_stay_off_standard_input),
        cmocka_unit_test(test_a_shortage_ends_the_open_and_leaves_no_gpu_out),
        cmocka_unit_test(test_every_failing_operation_leaves_nothing_open),
        cmocka_unit_test(test_after_every_failing_operation_a_retry_works),
        cmocka_unit_test(test_null_is_closed),
    };

    return cmocka_run_group_tests_name("kfd/open", tests, NULL, NULL);
}
