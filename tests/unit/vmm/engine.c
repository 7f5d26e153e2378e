/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static void open_with(struct fixture *f, const char *kernel, enum vmm_engine engine)
{
    *f = (struct fixture){.machine = "mi210:2", .kernel = kernel, .engine = engine};
    fixture_open(f);
}

static void test_the_kernel_decides_the_engine(void **state)
{
    static const struct {
        const char *kernel;
        enum vmm_engine engine;
        bool reason;
    } cases[] = {
        {"6.1", VMM_ENGINE_GEM, true},
        {"6.12", VMM_ENGINE_DRM, false},
        {"current", VMM_ENGINE_DRM, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;

        open_with(&f, cases[i].kernel, VMM_ENGINE_AUTO);
        assert_int_equal(vmm_engine(f.vmm), cases[i].engine);
        assert_int_equal(vmm_engine_reason(f.vmm)[0] != '\0', cases[i].reason);
        fixture_close(&f);
    }
}

static void test_an_engine_can_be_asked_for_where_it_works(void **state)
{
    static const enum vmm_engine engines[] = {VMM_ENGINE_DRM, VMM_ENGINE_KFD, VMM_ENGINE_GEM};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;

        open_with(&f, "6.12", engines[i]);
        assert_int_equal(vmm_engine(f.vmm), engines[i]);
        fixture_close(&f);
    }
}

static void test_an_engine_the_kernel_lacks_is_eopnotsupp_with_the_reason(void **state)
{
    struct vmm_options options = {.size = sizeof(options), .engine = VMM_ENGINE_DRM};
    struct vmm *vmm = NULL;
    struct fixture f;

    (void)state;
    open_with(&f, "6.1", VMM_ENGINE_AUTO);
    assert_int_equal(vmm_open(f.kfd, &options, &vmm), -EOPNOTSUPP);
    assert_non_null(strstr(kfd_error_text(), "1.11"));
    assert_null(vmm);
    fixture_close(&f);
}

static void test_without_a_gpu_every_call_is_eopnotsupp(void **state)
{
    struct fixture f = {.machine = "none", .kernel = "6.12"};
    struct vmm_props props = {0};
    vmm_handle handle;
    uint64_t va;

    (void)state;
    fixture_open(&f);
    assert_int_equal(vmm_engine(f.vmm), VMM_ENGINE_NONE);
    assert_int_equal(vmm_reserve(f.vmm, 4096, 0, 0, &va), -EOPNOTSUPP);
    assert_int_equal(vmm_create(f.vmm, &props, 4096, &handle), -EOPNOTSUPP);
    assert_int_equal(vmm_map(f.vmm, 4096, 4096, 0, 1), -EOPNOTSUPP);
    assert_int_equal(vmm_unmap(f.vmm, 4096, 4096), -EOPNOTSUPP);
    assert_int_equal(vmm_address_free(f.vmm, 4096, 4096), -EOPNOTSUPP);
    assert_non_null(strstr(kfd_error_text(), "no usable GPU"));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_kernel_decides_the_engine),
        cmocka_unit_test(test_an_engine_can_be_asked_for_where_it_works),
        cmocka_unit_test(test_an_engine_the_kernel_lacks_is_eopnotsupp_with_the_reason),
        cmocka_unit_test(test_without_a_gpu_every_call_is_eopnotsupp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
