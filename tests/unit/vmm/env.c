/* SPDX-License-Identifier: MIT */
/* What the environment chooses, and which values are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/fake.h>
#include <kfdirect/vmm.h>

static int clean(void **state)
{
    unsetenv("KFDIRECT_ENGINE");
    unsetenv("KFDIRECT_MIN_GRANULARITY");
    return 0;
}

static void test_nothing_set_is_the_default(void **state)
{
    struct vmm_options options = {.size = sizeof(options), .engine = VMM_ENGINE_GEM};

    assert_int_equal(vmm_options_from_env(&options), 0);
    assert_int_equal(options.engine, VMM_ENGINE_AUTO);
    assert_int_equal(options.min_granularity, 0);
    assert_int_equal(options.size, sizeof(options));
}

static void test_a_bad_value_is_einval_with_its_name_and_changes_nothing(void **state)
{
    static const char *const bad[] = {"DRM", "auto", "none", " drm", "xx"};
    struct vmm_options options = {.size = sizeof(options), .engine = VMM_ENGINE_KFD};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("KFDIRECT_ENGINE", bad[i], 1);
        assert_int_equal(vmm_options_from_env(&options), -EINVAL);
        assert_non_null(strstr(kfd_error_text(), "KFDIRECT_ENGINE is"));
        assert_int_equal(options.engine, VMM_ENGINE_KFD);
    }
    setenv("KFDIRECT_ENGINE", "gem", 1);
    setenv("KFDIRECT_MIN_GRANULARITY", "3M", 1);
    assert_int_equal(vmm_options_from_env(&options), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "KFDIRECT_MIN_GRANULARITY is \"3M\""));
    assert_int_equal(options.engine, VMM_ENGINE_KFD);
}

static void test_options_without_a_size_are_refused(void **state)
{
    struct vmm_options options = {0};

    assert_int_equal(vmm_options_from_env(NULL), -EINVAL);
    assert_int_equal(vmm_options_from_env(&options), -EINVAL);
}

static void test_a_vmm_opened_with_them_has_them(void **state)
{
    struct vmm_options options = {.size = sizeof(options)};
    struct fake_options machine = {.size = sizeof(machine), .machine = "mi210:2"};
    struct fake *fake;
    struct kfd *kfd;
    struct vmm *vmm;

    setenv("KFDIRECT_ENGINE", "kfd", 1);
    setenv("KFDIRECT_MIN_GRANULARITY", "64K", 1);
    assert_int_equal(vmm_options_from_env(&options), 0);
    assert_int_equal(fake_create(&machine, &fake), 0);
    assert_int_equal(kfd_open(fake_sys(fake), &kfd), 0);
    assert_int_equal(vmm_open(kfd, &options, &vmm), 0);
    assert_int_equal(vmm_engine(vmm), VMM_ENGINE_KFD);
    assert_int_equal(vmm_min_granularity(vmm), 64 << 10);
    vmm_close(vmm);
    kfd_close(kfd);
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_set_is_the_default, clean),
        cmocka_unit_test_setup(test_a_bad_value_is_einval_with_its_name_and_changes_nothing, clean),
        cmocka_unit_test_setup(test_options_without_a_size_are_refused, clean),
        cmocka_unit_test_setup(test_a_vmm_opened_with_them_has_them, clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
