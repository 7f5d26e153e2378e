/* SPDX-License-Identifier: MIT */
/* Metadata, creation facts, idleness and userptr objects. */
#include "rig.h"

#include <sys/mman.h>
#include <unistd.h>

static uint32_t create(struct rig *r, uint64_t flags)
{
    union drm_amdgpu_gem_create c = {
        .in = {.bo_size = 5000, .domains = AMDGPU_GEM_DOMAIN_VRAM, .domain_flags = flags}};

    assert_int_equal(rig_request(r, r->drm[0], DRM_CODE_GEM_CREATE, &c), 0);
    return c.out.handle;
}

static void test_metadata_travels_with_the_memory(void **state)
{
    struct drm_amdgpu_gem_metadata m = {.op = AMDGPU_GEM_METADATA_OP_SET_METADATA};
    struct drm_prime_handle prime = {.flags = O_CLOEXEC | O_RDWR};
    struct kfd_ioctl_get_dmabuf_info_args info = {0};
    uint8_t bytes[16] = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    m.handle = create(&r, 0);
    m.data.tiling_info = 77;
    m.data.data_size_bytes = 257;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_METADATA, &m), -EINVAL);
    m.data.data_size_bytes = 8;
    m.data.data[1] = 0xabcd;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_METADATA, &m), 0);
    memset(&m.data, 0, sizeof(m.data));
    m.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_METADATA, &m), 0);
    assert_int_equal(m.data.tiling_info, 77);
    assert_int_equal(m.data.data_size_bytes, 8);
    assert_int_equal(m.data.data[1], 0xabcd);
    m.op = 9;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_METADATA, &m), 0);
    /* KFD tells the size that is needed, then gives the bytes. */
    prime.handle = m.handle;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_PRIME_HANDLE_TO_FD, &prime), 0);
    info.dmabuf_fd = (uint32_t)prime.fd;
    info.metadata_ptr = (uintptr_t)bytes;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_DMABUF_INFO, &info), -EINVAL);
    assert_int_equal(info.metadata_size, 8);
    assert_int_equal(info.size, 8192);
    info.metadata_size = sizeof(bytes);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_DMABUF_INFO, &info), 0);
    assert_int_equal(bytes[4], 0xcd);
    info.metadata_ptr = 8;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_DMABUF_INFO, &info), -EFAULT);
    rig_close(&r, prime.fd);
    m.handle = 99;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_METADATA, &m), -ENOENT);
    rig_end(&r);
}

static void test_facts_of_an_object(void **state)
{
    struct drm_amdgpu_gem_create_in in = {0};
    struct drm_amdgpu_gem_op op = {.value = (uintptr_t)&in};
    union drm_amdgpu_gem_wait_idle idle = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    op.handle = create(&r, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_OP, &op), 0);
    assert_int_equal(in.bo_size, 8192);
    assert_int_equal(in.domains, AMDGPU_GEM_DOMAIN_VRAM);
    assert_int_equal(in.domain_flags,
                     AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE);
    op.value = 8;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_OP, &op), -EFAULT);
    op.op = 7;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_OP, &op), -EINVAL);
    idle.in.handle = op.handle;
    idle.in.timeout = UINT64_MAX;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_WAIT_IDLE, &idle), 0);
    assert_int_equal(idle.out.status, 0);
    idle.in.handle = op.handle = 99;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_WAIT_IDLE, &idle), -ENOENT);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_OP, &op), -ENOENT);
    rig_end(&r);
}

static void test_userptr_objects(void **state)
{
    static char mem[8192] __attribute__((aligned(4096)));
    struct drm_amdgpu_gem_userptr a = {.addr = (uintptr_t)mem, .size = 8192};
    struct drm_prime_handle prime = {.flags = O_CLOEXEC};
    int file = memfd_create("file", MFD_CLOEXEC);
    char buf[4];
    void *of_file;
    struct rig r;

    assert_int_equal(ftruncate(file, 8192), 0);
    of_file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(of_file != MAP_FAILED);
    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -EACCES);
    a.flags = 0x80;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -EINVAL);
    a.flags = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
    a.addr += 16;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -EINVAL);
    a.addr = 4096;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -EFAULT);
    a.addr = (uintptr_t)of_file;
    a.flags |= AMDGPU_GEM_USERPTR_ANONONLY;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -EPERM);
    a.size = 0;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), -ENOSPC);
    munmap(of_file, 8192);
    close(file);
    a.size = 8192;
    a.flags &= ~(uint32_t)AMDGPU_GEM_USERPTR_ANONONLY;
    a.addr = (uintptr_t)mem;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_USERPTR, &a), 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, a.handle, VA, 4096, 4096, KFD_VA_READ),
                     0);
    strcpy(mem + 4096, "abc");
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, buf, 4, NULL), 0);
    assert_string_equal(buf, "abc");
    prime.handle = a.handle;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_PRIME_HANDLE_TO_FD, &prime), -EPERM);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata_travels_with_the_memory),
        cmocka_unit_test(test_facts_of_an_object),
        cmocka_unit_test(test_userptr_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
