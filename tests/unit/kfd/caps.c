/* SPDX-License-Identifier: MIT */
#include "kfd/caps.h"

#include "stub_sys.h"

/* A bit per capability, as a machine of two GPUs reports them. */
static uint32_t caps_of(uint32_t kfd_minor, uint32_t drm0, uint32_t drm1)
{
    struct stub *stub = stub_new(2);
    struct kfd *kfd;
    uint32_t found = 0;

    stub->minor = kfd_minor;
    stub->gpus[0].drm_minor = drm0;
    stub->gpus[1].drm_minor = drm1;
    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    for (unsigned cap = 0; cap < KFD_CAP_COUNT; cap++) {
        struct kfd_cap_info info;

        kfd_cap_info(kfd, cap, &info);
        assert_int_equal(info.cap, cap);
        assert_string_not_equal(info.name, "");
        assert_string_not_equal(info.text, "");
        assert_int_equal(info.present, kfd_has(kfd, cap));
        if (info.present)
            found |= 1u << cap;
    }
    assert_false(kfd_has(kfd, KFD_CAP_COUNT));
    kfd_close(kfd);
    stub_free(stub);
    return found;
}

static void test_each_minor_brings_its_own(void **state)
{
    const uint32_t available = 1u << KFD_CAP_AVAILABLE_MEMORY;
    const uint32_t exporting = available | 1u << KFD_CAP_EXPORT_DMABUF;
    const uint32_t gem_va = exporting | 1u << KFD_CAP_GEM_VA;
    const uint32_t contiguous = gem_va | 1u << KFD_CAP_CONTIGUOUS;

    assert_int_equal(caps_of(8, 61, 61), 0);
    assert_int_equal(caps_of(9, 61, 61), available);
    assert_int_equal(caps_of(11, 49, 49), available);
    assert_int_equal(caps_of(12, 61, 61), exporting);
    assert_int_equal(caps_of(14, 61, 61), exporting);
    assert_int_equal(caps_of(15, 61, 61), gem_va);
    assert_int_equal(caps_of(16, 61, 61), contiguous);
    assert_int_equal(caps_of(23, 61, 61), contiguous);
}

static void test_the_timeline_needs_every_device(void **state)
{
    const uint32_t timeline = 1u << KFD_CAP_VM_TIMELINE;

    assert_int_equal(caps_of(17, 63, 64) & timeline, 0);
    assert_int_equal(caps_of(17, 64, 63) & timeline, 0);
    assert_int_equal(caps_of(17, 64, 65) & timeline, timeline);
}

static void test_no_device_has_no_timeline(void **state)
{
    struct stub *stub = stub_new(0);
    struct kfd *kfd;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    assert_false(kfd_has(kfd, KFD_CAP_VM_TIMELINE));
    assert_true(kfd_has(kfd, KFD_CAP_GEM_VA));
    kfd_close(kfd);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_minor_brings_its_own),
        cmocka_unit_test(test_the_timeline_needs_every_device),
        cmocka_unit_test(test_no_device_has_no_timeline),
    };

    return cmocka_run_group_tests_name("kfd/caps", tests, NULL, NULL);
}
