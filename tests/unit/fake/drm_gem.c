/* SPDX-License-Identifier: MIT */
/* PRIME, GEM_CLOSE, GEM_CREATE, GEM_MMAP, and DRM's dispatcher. */
#include "rig.h"

static int create(struct rig *r, int drm, uint64_t size, uint64_t domains, uint64_t flags,
                  uint32_t *gem)
{
    union drm_amdgpu_gem_create c = {
        .in = {.bo_size = size, .domains = domains, .domain_flags = flags}};
    int ret = rig_request(r, drm, DRM_CODE_GEM_CREATE, &c);

    *gem = c.out.handle;
    return ret;
}

static int to_fd(struct rig *r, int drm, uint32_t gem, uint32_t flags, int *fd)
{
    struct drm_prime_handle a = {.handle = gem, .flags = flags};
    int ret = rig_request(r, drm, DRM_CODE_PRIME_HANDLE_TO_FD, &a);

    *fd = a.fd;
    return ret;
}

static int mmap_offset(struct rig *r, int drm, uint32_t gem, uint64_t *offset)
{
    union drm_amdgpu_gem_mmap a = {.in = {.handle = gem}};
    int ret = rig_request(r, drm, DRM_CODE_GEM_MMAP, &a);

    *offset = a.out.addr_ptr;
    return ret;
}

static void test_the_dispatcher_knows_type_number_and_right(void **state)
{
    uint8_t buf[64] = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_request(&r, r.drm[0], _IOC(_IOC_READ, 'K', 9, 8), buf), -ENOTTY);
    assert_int_equal(rig_request(&r, r.drm[0], _IOC(_IOC_READ, 'd', 0x7e, 8), buf), -EINVAL);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GET_CLIENT, buf), -EACCES);
    assert_int_equal(rig_request(&r, r.drm[0], _IOC(_IOC_READ, 'd', 0x0a, 8), buf), -EACCES);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_CLOSE, NULL), -EFAULT);
    rig_end(&r);
}

static void test_handles_count_from_one_and_prime_does_not_count(void **state)
{
    uint64_t h;
    uint32_t a, b, c;
    struct rig r;
    int fd, other;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    fd = rig_export(&r, h);
    assert_int_equal(rig_prime(&r, r.drm[0], fd, &a), 0);
    assert_int_equal(a, 1);
    assert_int_equal(rig_prime(&r, r.drm[0], fd, &b), 0);
    assert_int_equal(b, a);
    /* Another open of the node has its own numbers. */
    other = rig_open_render(&r, 0);
    assert_int_equal(create(&r, other, MIB, AMDGPU_GEM_DOMAIN_GTT, 0, &c), 0);
    assert_int_equal(rig_prime(&r, other, fd, &b), 0);
    assert_int_equal(b, 2);
    assert_int_equal(rig_gem_close(&r, r.drm[0], a), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], a), -EINVAL);
    assert_int_equal(rig_gem_close(&r, r.drm[0], 0), -EINVAL);
    assert_int_equal(rig_gem_close(&r, other, b), 0);
    assert_int_equal(rig_prime(&r, r.drm[0], -1, &a), -EBADF);
    assert_int_equal(rig_prime(&r, r.drm[0], r.kfd, &a), -EINVAL);
    rig_close(&r, fd);
    rig_close(&r, other);
    rig_end(&r);
}

static void test_what_a_file_exported_it_imports_as_the_same_handle(void **state)
{
    uint32_t gem, again;
    struct rig r;
    int fd;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(create(&r, r.drm[0], MIB, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), 0);
    assert_int_equal(to_fd(&r, r.drm[0], gem, O_CLOEXEC | O_RDWR, &fd), 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(rig_prime(&r, r.drm[0], fd, &again), 0);
    assert_int_equal(again, gem);
    rig_close(&r, fd);
    assert_int_equal(to_fd(&r, r.drm[0], gem, 0x10, &fd), -EINVAL);
    assert_int_equal(to_fd(&r, r.drm[0], gem + 5, O_CLOEXEC, &fd), -ENOENT);
    assert_int_equal(
        create(&r, r.drm[0], MIB, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_VM_ALWAYS_VALID, &gem),
        0);
    assert_int_equal(to_fd(&r, r.drm[0], gem, O_CLOEXEC, &fd), -EPERM);
    rig_end(&r);
}

static void test_close_drops_the_objects_mappings_in_this_vm(void **state)
{
    struct fake_usage u;
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA + 8 * MIB, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA + MIB, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.mappings, 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    /* With KFD in the same VM they stay until its attachment goes. */
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_unmap(&r, h, 0), 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&r);
}

static void test_gem_mmap_gives_the_offset_of_alloc(void **state)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {.size = MIB, .flags = VRAM_RW};
    uint64_t offset;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a.gpu_id = r.id[0];
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
    gem = rig_gem(&r, a.handle, 0);
    assert_int_equal(mmap_offset(&r, r.drm[0], gem, &offset), 0);
    assert_int_equal(offset, a.mmap_offset);
    assert_true(offset >= 0x100000000ull);
    assert_int_equal(mmap_offset(&r, r.drm[0], gem + 1, &offset), -ENOENT);
    assert_int_equal(
        create(&r, r.drm[0], MIB, AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS, &gem),
        0);
    assert_int_equal(mmap_offset(&r, r.drm[0], gem, &offset), -EPERM);
    rig_end(&r);
}

static void test_gem_create_falls_back_to_system_memory(void **state)
{
    struct fake_usage u;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "navi31:1", "6.12", 0);
    assert_int_equal(create(&r, r.drm[0], 20ull << 30, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), 0);
    assert_int_equal(create(&r, r.drm[0], 20ull << 30, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.vram_used[0], 20ull << 30);
    assert_int_equal(u.gtt_used, 20ull << 30);
    assert_int_equal(create(&r, r.drm[0], 1ull << 44, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), -ENOMEM);
    assert_int_equal(create(&r, r.drm[0], 0, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), -ENOSPC);
    assert_int_equal(create(&r, r.drm[0], MIB, 0x1000, 0, &gem), -EINVAL);
    rig_end(&r);
}

static uint64_t import_gem(struct rig *r, uint32_t gem, uint64_t va)
{
    struct drm_prime_handle a = {.handle = gem, .flags = DRM_CLOEXEC | DRM_RDWR};
    uint64_t handle;

    assert_int_equal(rig_request(r, r->drm[0], DRM_CODE_PRIME_HANDLE_TO_FD, &a), 0);
    assert_int_equal(rig_import(r, 0, a.fd, va, &handle), 0);
    rig_close(r, a.fd);
    return handle;
}

static void test_a_kfd_map_wants_what_gem_create_was_asked_for(void **state)
{
    uint64_t first, second;
    uint32_t gem[2];
    struct rig r;

    rig_start(&r, "navi31:1", "6.1", 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(create(&r, r.drm[0], 20ull << 30, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem[i]), 0);
    first = import_gem(&r, gem[0], VA);
    second = import_gem(&r, gem[1], VA + (32ull << 30));
    assert_int_equal(rig_map(&r, first, 0), 0);
    assert_int_equal(rig_map(&r, second, 0), -ENOMEM);
    assert_int_equal(rig_unmap(&r, first, 0), 0);
    assert_int_equal(rig_free(&r, first), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem[0]), 0);
    assert_int_equal(rig_map(&r, second, 0), 0);
    rig_end(&r);
}

static void test_an_unreachable_peers_import_moves_vram_to_system_memory(void **state)
{
    struct fake_usage u;
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "navi31:2", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 4 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 1);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.vram_used[0], 0);
    assert_int_equal(u.gtt_used, 4 * MIB);
    assert_int_equal(rig_va(&r, r.drm[1], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_gem_close(&r, r.drm[1], gem), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.vram_used[0], 4 * MIB);
    rig_end(&r);
}

static void test_closing_the_node_drops_its_handles(void **state)
{
    struct fake_usage u;
    uint32_t gem;
    struct rig r;
    int fd, copy;

    rig_start(&r, "mi300x:1", "6.12", 0);
    fd = rig_open_render(&r, 0);
    copy = r.sys->ops->dup_fd(r.sys, fd, 3);
    assert_int_equal(create(&r, fd, MIB, AMDGPU_GEM_DOMAIN_VRAM, 0, &gem), 0);
    rig_close(&r, fd);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 1);
    /* Also when the last descriptor went without our seeing it. */
    close(copy);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.open_files, 2);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_dispatcher_knows_type_number_and_right),
        cmocka_unit_test(test_handles_count_from_one_and_prime_does_not_count),
        cmocka_unit_test(test_what_a_file_exported_it_imports_as_the_same_handle),
        cmocka_unit_test(test_close_drops_the_objects_mappings_in_this_vm),
        cmocka_unit_test(test_gem_mmap_gives_the_offset_of_alloc),
        cmocka_unit_test(test_gem_create_falls_back_to_system_memory),
        cmocka_unit_test(test_a_kfd_map_wants_what_gem_create_was_asked_for),
        cmocka_unit_test(test_an_unreachable_peers_import_moves_vram_to_system_memory),
        cmocka_unit_test(test_closing_the_node_drops_its_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
