/* SPDX-License-Identifier: MIT */
/* Eviction and restore: who keeps memory in place, and what each kernel brings back. */
#include "rig.h"

static void test_memory_with_a_handle_comes_back(void **state)
{
    const struct {
        const char *kernel;
        enum fake_fault_reason gem_va; /* of a GEM_VA mapping afterwards */
    } rows[] = {{"6.12", FAKE_FAULT_NONE}, {"6.1", FAKE_FAULT_FREED}};
    union drm_amdgpu_gem_create c;
    struct drm_prime_handle prime;
    struct rig r;
    uint64_t h;
    char b;

    for (int i = 0; i < 2; i++) {
        rig_start(&r, "mi210:2", rows[i].kernel, 0);
        memset(&c, 0, sizeof(c));
        c.in.bo_size = 2 * MIB;
        c.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
        assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_CREATE, &c), 0);
        prime = (struct drm_prime_handle){.handle = c.out.handle, .flags = O_CLOEXEC | O_RDWR};
        assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_PRIME_HANDLE_TO_FD, &prime), 0);
        assert_int_equal(rig_import(&r, 0, prime.fd, VA, &h), 0);
        rig_close(&r, prime.fd);
        assert_int_equal(rig_map(&r, h, 0), 0);
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, c.out.handle, VA + 2 * MIB, 0,
                                2 * MIB, KFD_VA_READ | KFD_VA_WRITE),
                         0);
        assert_int_equal(fake_gpu_write(r.fake, 0, VA, "x", 1, NULL), 0);
        assert_int_equal(fake_evict(r.fake, 1), 0);
        assert_int_equal(rig_fault(&r, 0, VA + 2 * MIB, FAKE_READ), FAKE_FAULT_NONE);
        assert_int_equal(fake_evict(r.fake, 0), 0);
        assert_int_equal(fake_gpu_read(r.fake, 0, VA, &b, 1, NULL), 0);
        assert_int_equal(b, 'x');
        assert_int_equal(rig_fault(&r, 0, VA + 2 * MIB, FAKE_READ), rows[i].gem_va);
        rig_end(&r);
    }
}

static void test_memory_without_a_handle_moves_away(void **state)
{
    struct fake_translation t;
    struct rig r;
    uint64_t h;
    uint32_t gem;
    char b;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    /* A TLB does not know either. */
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 4096, &b, 1, NULL), 0);
    assert_int_equal(fake_evict(r.fake, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_FREED);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 4096, &b, 1, &t), -EFAULT);
    assert_int_equal(t.reason, FAKE_FAULT_FREED);
    assert_non_null(strstr(t.text, "; moved by an eviction after request"));
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_with_a_handle_comes_back),
        cmocka_unit_test(test_memory_without_a_handle_moves_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
