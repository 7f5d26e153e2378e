/* SPDX-License-Identifier: MIT */
/* Apertures, ACQUIRE_VM, AVAILABLE_MEMORY. */
#include "rig.h"

static int apertures(struct rig *r, struct kfd_process_device_apertures *list, uint32_t *n)
{
    struct kfd_ioctl_get_process_apertures_new_args a = {
        .kfd_process_device_apertures_ptr = (uintptr_t)list, .num_of_nodes = *n};
    int ret = rig_request(r, r->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);

    *n = a.num_of_nodes;
    return ret;
}

static void test_apertures_count_first_then_fill(void **state)
{
    struct kfd_process_device_apertures list[16];
    uint32_t n = 0;
    struct rig r;

    rig_open(&r, "mi300x:8", "6.12", 0);
    assert_int_equal(apertures(&r, NULL, &n), 0);
    assert_int_equal(n, 8);
    n = 3;
    assert_int_equal(apertures(&r, list, &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(list[2].gpu_id, r.id[2]);
    assert_int_equal(list[0].gpuvm_base, 0x10000);
    assert_int_equal(list[0].gpuvm_limit, 0x7fffffffffff);
    assert_int_equal(list[0].lds_base, 0x0001000000000000);
    /* Above the number of topology nodes, CPUs included: refused before the pointer is used. */
    n = 64;
    assert_int_equal(apertures(&r, NULL, &n), -EINVAL);
    assert_int_equal(n, 64);
    n = 8;
    assert_int_equal(apertures(&r, (void *)8, &n), -EFAULT);
    rig_end(&r);
}

static void test_old_apertures_list_what_there_is(void **state)
{
    struct kfd_ioctl_get_process_apertures_args a;
    struct rig r;

    rig_open(&r, "mi210:4", "6.1", 0);
    memset(&a, 0x55, sizeof(a));
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_PROCESS_APERTURES, &a), 0);
    assert_int_equal(a.num_of_nodes, 4);
    assert_int_equal(a.process_apertures[3].gpu_id, r.id[3]);
    assert_int_equal(a.process_apertures[0].gpuvm_base, 0x4000);
    assert_int_equal(a.process_apertures[4].gpu_id, 0);
    rig_end(&r);
}

static void test_acquire_vm_states(void **state)
{
    uint64_t handle;
    struct rig r;
    int again, copy;

    rig_open(&r, "mi300x:2", "6.12", 0);
    assert_int_equal(rig_alloc(&r, 0, VA, MIB, VRAM_RW, &handle), -ENODEV);
    assert_int_equal(rig_acquire(&r, 0, -1), -EINVAL);
    assert_int_equal(rig_acquire(&r, 0, r.kfd), -EINVAL);
    again = open("/dev/null", O_RDWR);
    assert_int_equal(rig_acquire(&r, 0, again), -EINVAL);
    close(again);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    copy = r.sys->ops->dup_fd(r.sys, r.drm[0], 3);
    assert_int_equal(rig_acquire(&r, 0, copy), 0);
    again = rig_open_render(&r, 0);
    assert_int_equal(rig_acquire(&r, 0, again), -EBUSY);
    /* A compute VM can't be another GPU's too. */
    assert_int_equal(rig_acquire(&r, 1, r.drm[0]), -EINVAL);
    /* Closing the node leaves the VM with KFD. */
    rig_close(&r, copy);
    rig_close(&r, r.drm[0]);
    handle = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    assert_int_equal(rig_map(&r, handle, 0), 0);
    assert_int_equal(rig_acquire(&r, 0, again), -EBUSY);
    r.drm[0] = again;
    rig_end(&r);
}

static void test_wrong_render_node_is_accepted_but_strict_mode_tells(void **state)
{
    struct rig r;

    rig_open(&r, "mi300x:2", "6.12", 0);
    assert_int_equal(rig_acquire(&r, 0, r.drm[1]), 0);
    rig_end(&r);
    rig_open(&r, "mi300x:2", "6.12", FAKE_STRICT);
    assert_null(fake_strict_report(r.fake));
    assert_int_equal(rig_acquire(&r, 0, r.drm[1]), -ENOTRECOVERABLE);
    assert_int_equal(fake_strict_count(r.fake), 1);
    assert_non_null(strstr(fake_strict_report(r.fake), "render node"));
    rig_end(&r);
}

static void test_a_used_vm_cannot_be_acquired_on_6_1(void **state)
{
    union drm_amdgpu_gem_create c = {.in = {.bo_size = MIB, .domains = AMDGPU_GEM_DOMAIN_VRAM}};
    const char *const kernels[] = {"6.1", "6.12"};
    struct rig r;

    for (int i = 0; i < 2; i++) {
        rig_open(&r, "mi210:1", kernels[i], 0);
        c.in.bo_size = MIB;
        c.in.alignment = 0;
        c.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
        c.in.domain_flags = 0;
        assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_CREATE, &c), 0);
        assert_int_equal(
            rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, c.out.handle, VA, 0, MIB, KFD_VA_READ), 0);
        assert_int_equal(rig_acquire(&r, 0, r.drm[0]), i == 0 ? -EINVAL : 0);
        rig_end(&r);
    }
}

static void test_available_memory_is_rounded_and_kfd_only(void **state)
{
    struct kfd_ioctl_get_available_memory_args bad = {.gpu_id = 0xdead};
    union drm_amdgpu_gem_create c = {
        .in = {.bo_size = 64 * MIB, .domains = AMDGPU_GEM_DOMAIN_VRAM}};
    uint64_t before, handle;
    struct rig r;

    rig_start(&r, "mi300x:8", "6.12", 0);
    before = rig_available(&r, 0);
    /* 96 MiB are kept back for page tables on each of eight. */
    assert_int_equal(before, 206141652992ull - 96 * MIB);
    handle = rig_must_alloc(&r, 0, 0, 4096, VRAM_RW);
    assert_int_equal(rig_available(&r, 0), before - 2 * MIB);
    assert_int_equal(rig_available(&r, 1), before);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_CREATE, &c), 0);
    assert_int_equal(rig_available(&r, 0), before - 2 * MIB);
    assert_int_equal(rig_free(&r, handle), 0);
    assert_int_equal(rig_available(&r, 0), before);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_AVAILABLE_MEMORY, &bad), -EINVAL);
    rig_end(&r);
}

static void test_no_gpu_opens_and_answers(void **state)
{
    struct kfd_ioctl_get_version_args v;
    uint32_t n = 0;
    struct rig r;

    rig_open(&r, "none", "6.12", 0);
    assert_int_equal(r.gpus, 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_VERSION, &v), 0);
    assert_int_equal(apertures(&r, NULL, &n), 0);
    assert_int_equal(n, 0);
    n = 8;
    assert_int_equal(apertures(&r, NULL, &n), -EINVAL);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apertures_count_first_then_fill),
        cmocka_unit_test(test_old_apertures_list_what_there_is),
        cmocka_unit_test(test_acquire_vm_states),
        cmocka_unit_test(test_wrong_render_node_is_accepted_but_strict_mode_tells),
        cmocka_unit_test(test_a_used_vm_cannot_be_acquired_on_6_1),
        cmocka_unit_test(test_available_memory_is_rounded_and_kfd_only),
        cmocka_unit_test(test_no_gpu_opens_and_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
