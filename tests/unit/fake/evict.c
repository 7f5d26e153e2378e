/* SPDX-License-Identifier: MIT */
/* Eviction and restore: who keeps memory in place, and what each kernel brings back. */
#include "rig.h"

#include <sys/wait.h>

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

/* Another process's DRM buffers make room for KFD's, and lose their place. */
static void test_kfd_memory_drives_out_what_only_drm_holds(void **state)
{
    union drm_amdgpu_gem_create c = {
        .in = {.bo_size = 32 * MIB, .domains = AMDGPU_GEM_DOMAIN_VRAM}};
    int to[2], from[2], status;
    struct fake_usage u;
    struct rig r;
    uint64_t h;
    pid_t pid;
    char b;

    rig_start(&r, "vega10-hollow", "6.12", 0);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid = fork();
    if (pid == 0) {
        struct rig own = {.fake = r.fake, .sys = r.sys, .gpus = 1, .id = {r.id[0]}};
        struct fake_translation t;
        uint64_t kept;
        uint32_t gem;
        bool good;

        own.kfd = rig_open_path(&own, "/dev/kfd");
        own.drm[0] = rig_open_render(&own, 0);
        good = rig_acquire(&own, 0, own.drm[0]) == 0;
        good = good && rig_alloc(&own, 0, VA, 32 * MIB, VRAM_RW, &kept) == 0;
        good = good && rig_map(&own, kept, 0) == 0;
        good = good && rig_request(&own, own.drm[0], DRM_CODE_GEM_CREATE, &c) == 0;
        gem = c.out.handle;
        good = good && rig_va(&own, own.drm[0], AMDGPU_VA_OP_MAP, gem, VA + 64 * MIB, 0, 32 * MIB,
                              KFD_VA_READ) == 0;
        good = good && fake_gpu_read(own.fake, 0, VA + 64 * MIB, &b, 1, NULL) == 0;
        (void)!write(from[1], "", 1);
        (void)!read(to[0], &b, 1);
        /* KFD's is where it was, the other is not, and no TLB knows. */
        good = good && fake_gpu_read(own.fake, 0, VA, &b, 1, NULL) == 0;
        good = good && fake_gpu_read(own.fake, 0, VA + 64 * MIB, &b, 1, &t) == -EFAULT &&
               t.reason == FAKE_FAULT_FREED && strstr(t.text, "; moved out by request") != NULL &&
               strstr(t.text, "(ALLOC_MEMORY_OF_GPU)") != NULL;
        /* Written once more, the tables lead to where it is now. */
        good = good && rig_va(&own, own.drm[0], AMDGPU_VA_OP_REPLACE, gem, VA + 64 * MIB, 0,
                              32 * MIB, KFD_VA_READ) == 0;
        good = good && rig_flush(&own, kept, 0) == 0;
        good = good && fake_gpu_read(own.fake, 0, VA + 64 * MIB, &b, 1, NULL) == 0;
        _exit(!good);
    }
    assert_int_equal(read(from[0], &b, 1), 1);
    assert_int_equal(rig_alloc(&r, 0, 0, 96 * MIB, VRAM_RW, &h), -ENOMEM);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.vram_used[0], 64 * MIB);
    assert_int_equal(rig_alloc(&r, 0, 0, 80 * MIB, VRAM_RW, &h), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.vram_used[0], 112 * MIB);
    assert_int_equal(u.gtt_used, 32 * MIB);
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_with_a_handle_comes_back),
        cmocka_unit_test(test_memory_without_a_handle_moves_away),
        cmocka_unit_test(test_kfd_memory_drives_out_what_only_drm_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
