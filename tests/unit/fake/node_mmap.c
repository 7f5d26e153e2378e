/* SPDX-License-Identifier: MIT */
/* mmap of /dev/kfd, render nodes and dma-bufs. */
#include "rig.h"

static int map(struct rig *r, int fd, size_t size, int prot, int flags, uint64_t offset, void **out)
{
    return r->sys->ops->map_pages(r->sys, NULL, size, prot, flags, fd, offset, out);
}

static uint64_t alloc(struct rig *r, uint32_t flags, uint64_t size, uint64_t *offset)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .va_addr = VA, .size = size, .gpu_id = r->id[0], .flags = flags};

    assert_int_equal(rig_request(r, r->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
    *offset = a.mmap_offset;
    return a.handle;
}

static void test_a_render_mapping_is_the_memory(void **state)
{
    uint64_t offset, h;
    char buf[8];
    struct rig r;
    void *p;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = alloc(&r, VRAM_RW | KFD_MEM_PUBLIC, 4 * MIB, &offset);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(map(&r, r.drm[0], 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, offset, &p), 0);
    strcpy((char *)p + 3 * MIB, "cpu");
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 3 * MIB, buf, 4, NULL), 0);
    assert_string_equal(buf, "cpu");
    assert_int_equal(fake_gpu_write(r.fake, 0, VA + 3 * MIB, "gpu", 4, NULL), 0);
    assert_string_equal((char *)p + 3 * MIB, "gpu");
    munmap(p, 4 * MIB);
    rig_end(&r);
}

static void test_offset_length_and_right(void **state)
{
    uint64_t offset, h;
    struct rig r;
    void *p;
    int other, fd;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = alloc(&r, VRAM_RW, 2 * MIB, &offset);
    assert_int_equal(map(&r, r.drm[0], 4096, PROT_READ, MAP_SHARED, offset + 4096, &p), -EINVAL);
    assert_int_equal(map(&r, r.drm[0], 2 * MIB + 1, PROT_READ, MAP_SHARED, offset, &p), -EINVAL);
    assert_int_equal(map(&r, r.drm[0], 4096, PROT_READ, MAP_SHARED, 4096, &p), -EINVAL);
    assert_int_equal(map(&r, r.drm[0], 4096, PROT_WRITE, MAP_PRIVATE, offset, &p), -EINVAL);
    other = rig_open_render(&r, 0);
    assert_int_equal(map(&r, other, 4096, PROT_READ, MAP_SHARED, offset, &p), -EACCES);
    rig_close(&r, other);
    /* The dma-buf takes an inner range, within its size. */
    fd = rig_export(&r, h);
    assert_int_equal(map(&r, fd, 4096, PROT_READ, MAP_SHARED, 2 * MIB - 4096, &p), 0);
    munmap(p, 4096);
    assert_int_equal(map(&r, fd, 8192, PROT_READ, MAP_SHARED, 2 * MIB - 4096, &p), -EINVAL);
    rig_close(&r, fd);
    /* FREE takes the right away. */
    rig_free(&r, h);
    assert_int_equal(map(&r, r.drm[0], 4096, PROT_READ, MAP_SHARED, offset, &p), -EINVAL);
    rig_end(&r);
}

static void test_userptr_has_nothing_to_map(void **state)
{
    static char mem[8192] __attribute__((aligned(4096)));
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .size = 8192, .flags = KFD_MEM_USERPTR, .mmap_offset = (uintptr_t)mem};
    struct rig r;
    void *p;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a.gpu_id = r.id[0];
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
    assert_int_equal(map(&r, r.drm[0], 8192, PROT_READ, MAP_SHARED, a.mmap_offset, &p), -EPERM);
    rig_end(&r);
}

static void test_doorbells_and_registers(void **state)
{
    uint64_t doorbells, unknown = 3ull << 62 | 0xdeadull << 46, offset;
    struct rig r;
    void *a, *b;

    rig_start(&r, "mi300x:1", "6.12", 0);
    doorbells = 3ull << 62 | (uint64_t)r.id[0] << 46;
    assert_int_equal(map(&r, r.kfd, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, doorbells, &a), 0);
    assert_int_equal(map(&r, r.kfd, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, doorbells, &b), 0);
    *(uint64_t *)a = 7;
    assert_int_equal(*(uint64_t *)b, 7);
    munmap(a, 8192);
    munmap(b, 8192);
    assert_int_equal(map(&r, r.kfd, 4096, PROT_READ, MAP_SHARED, doorbells, &a), -EINVAL);
    assert_int_equal(map(&r, r.kfd, 8192, PROT_READ, MAP_SHARED, unknown, &a), -ENODEV);
    assert_int_equal(map(&r, r.kfd, 4096, PROT_READ, MAP_SHARED, 0, &a), -ENODEV);
    alloc(&r, KFD_MEM_MMIO_REMAP | KFD_MEM_WRITABLE, 4096, &offset);
    assert_int_equal(offset, (uint64_t)r.id[0] << 46);
    assert_int_equal(map(&r, r.kfd, 8192, PROT_READ, MAP_SHARED, offset, &a), -EINVAL);
    b = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(r.sys->ops->map_pages(r.sys, b, 4096, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_FIXED, r.kfd, offset, &a),
                     0);
    assert_ptr_equal(a, b);
    *(uint32_t *)a = 1;
    munmap(a, 4096);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_render_mapping_is_the_memory),
        cmocka_unit_test(test_offset_length_and_right),
        cmocka_unit_test(test_userptr_has_nothing_to_map),
        cmocka_unit_test(test_doorbells_and_registers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
