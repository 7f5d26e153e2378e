/* SPDX-License-Identifier: MIT */
#include "kfd/access.h"

#include <string.h>
#include <unistd.h>

#include "stub_sys.h"

static void test_permission_errors_show_mode_and_membership(void **state)
{
    struct stub *stub = stub_new(0);

    stub->node_stat = (struct kfd_sys_stat){.mode = 0020640, .gid = 54321};
    assert_int_equal(kfd_access_explain(&stub->base, "/dev/kfd", -EACCES), -EACCES);
    assert_string_equal(kfd_error_text(),
                        "/dev/kfd: EACCES, mode 0640, group 54321, which this process is not in");
    stub->node_stat.gid = getegid();
    assert_int_equal(kfd_access_explain(&stub->base, "/dev/kfd", -EPERM), -EPERM);
    assert_non_null(strstr(kfd_error_text(), "which this process is in"));
    stub_free(stub);
}

static void test_other_errors_are_file_and_name(void **state)
{
    struct stub *stub = stub_new(0);

    assert_int_equal(kfd_access_explain(&stub->base, "/dev/kfd", -ENXIO), -ENXIO);
    assert_string_equal(kfd_error_text(), "/dev/kfd: ENXIO");
    stub_free(stub);
}

static void test_a_system_without_stat_still_names_the_file(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd_sys_ops ops = *stub->base.ops;

    ops.stat_path = NULL;
    stub->base.ops = &ops;
    assert_int_equal(kfd_access_explain(&stub->base, "/dev/kfd", -EACCES), -EACCES);
    assert_string_equal(kfd_error_text(), "/dev/kfd: EACCES");
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permission_errors_show_mode_and_membership),
        cmocka_unit_test(test_other_errors_are_file_and_name),
        cmocka_unit_test(test_a_system_without_stat_still_names_the_file),
    };

    return cmocka_run_group_tests_name("kfd/access", tests, NULL, NULL);
}
