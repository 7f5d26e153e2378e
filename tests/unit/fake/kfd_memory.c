/* SPDX-License-Identifier: MIT */
/* ALLOC, FREE, MAP, UNMAP: order of checks, errno, partial states. */
#include "rig.h"

#define UNKNOWN 0xdeadu

static void test_alloc_checks_in_the_kernels_order(void **state)
{
    const struct {
        uint64_t size;
        uint32_t gpu_id, flags;
        int err;
    } rows[] = {
        {0, 0, VRAM_RW, -EINVAL},
        {MIB, UNKNOWN, VRAM_RW, -EINVAL},
        {MIB, 1, 0, -EINVAL},
        {MIB, 1, KFD_MEM_WRITABLE, -EINVAL},
        {MIB, 1, KFD_MEM_USERPTR, -EINVAL},
        {4096, 1, KFD_MEM_DOORBELL, -EINVAL},
        {8192, 1, KFD_MEM_MMIO_REMAP, -EINVAL},
        {1, 1, KFD_MEM_VRAM | 0x08000000u, -EINVAL},
        {1ull << 50, 1, VRAM_RW, -ENOMEM},
        {1ull << 50, 1, KFD_MEM_GTT, -ENOMEM},
        {UINT64_MAX, 1, VRAM_RW, -EINVAL},
        {UINT64_MAX - 65535, 1, KFD_MEM_GTT, -ENOMEM},
        {8192, 1, KFD_MEM_DOORBELL, 0},
        {4096, 1, KFD_MEM_MMIO_REMAP, 0},
        {1, 1, KFD_MEM_VRAM | 0x00400000u, 0},
    };
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .size = rows[i].size,
            .gpu_id = rows[i].gpu_id == 1 ? r.id[0] : rows[i].gpu_id,
            .flags = rows[i].flags,
        };

        assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), rows[i].err);
    }
    rig_end(&r);
}

static void test_public_vram_needs_a_large_bar(void **state)
{
    uint64_t handle;
    struct rig r;

    rig_open(&r, "navi31-smallbar", "6.12", 0);
    /* Refused before the VM is looked at. */
    assert_int_equal(rig_alloc(&r, 0, VA, MIB, VRAM_RW | KFD_MEM_PUBLIC, &handle), -EINVAL);
    assert_int_equal(rig_alloc(&r, 0, VA, MIB, VRAM_RW, &handle), -ENODEV);
    rig_end(&r);
    rig_start(&r, "navi31:1", "6.12", 0);
    assert_int_equal(rig_alloc(&r, 0, VA, MIB, VRAM_RW | KFD_MEM_PUBLIC, &handle), 0);
    rig_end(&r);
}

static void test_handles_are_the_lowest_free_number_from_zero(void **state)
{
    uint64_t h[3];
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    for (uint32_t i = 0; i < 3; i++) {
        h[i] = rig_must_alloc(&r, 1, 0, MIB, VRAM_RW);
        assert_int_equal(h[i], (uint64_t)r.id[1] << 32 | i);
    }
    assert_int_equal(rig_free(&r, h[1]), 0);
    assert_int_equal(rig_free(&r, h[1]), -EINVAL);
    assert_int_equal(rig_must_alloc(&r, 1, 0, MIB, VRAM_RW), h[1]);
    assert_int_equal(rig_must_alloc(&r, 0, 0, MIB, VRAM_RW), (uint64_t)r.id[0] << 32);
    rig_end(&r);
}

static void test_alloc_leaves_addresses_to_map(void **state)
{
    const uint64_t bad[] = {VA + 1, 1ull << 48, 0x8000000000000000ull, (1ull << 48) - MIB + 4096};
    uint64_t handle;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < 4; i++) {
        handle = rig_must_alloc(&r, 0, bad[i], MIB, VRAM_RW);
        assert_int_equal(rig_map(&r, handle, 0), -EINVAL);
        assert_int_equal(rig_free(&r, handle), 0);
    }
    handle = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    assert_int_equal(rig_map(&r, handle, 0), -EINVAL);
    rig_end(&r);
}

static void test_map_over_any_mapping_is_einval(void **state)
{
    uint64_t a, b;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a = rig_must_alloc(&r, 0, VA, 4 * MIB, VRAM_RW);
    b = rig_must_alloc(&r, 0, VA + 2 * MIB, 4 * MIB, VRAM_RW);
    assert_int_equal(rig_map(&r, a, 0), 0);
    assert_int_equal(rig_map(&r, b, 0), -EINVAL);
    gem = rig_gem(&r, a, 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA + MIB, 0, MIB, KFD_VA_READ),
                     -EINVAL);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA + 5 * MIB, 0, MIB, KFD_VA_READ),
                     0);
    assert_int_equal(rig_unmap(&r, a, 0), 0);
    assert_int_equal(rig_map(&r, b, 0), -EINVAL);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, gem, VA + 5 * MIB, 0, MIB, 0), 0);
    assert_int_equal(rig_map(&r, b, 0), 0);
    rig_end(&r);
}

static void test_map_is_idempotent_and_not_counted(void **state)
{
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    assert_int_equal(rig_unmap(&r, h, 0), -EINVAL);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(rig_unmap(&r, h, 0), 0);
    assert_int_equal(rig_unmap(&r, h, 0), -EINVAL);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&r);
}

static void test_errors_of_handles(void **state)
{
    uint64_t good, known, unknown = (uint64_t)UNKNOWN << 32;
    struct rig r;

    rig_open(&r, "mi300x:2", "6.12", 0);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    good = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    known = good + 1;
    assert_int_equal(rig_map(&r, unknown, 0), -EINVAL);
    assert_int_equal(rig_map(&r, (uint64_t)r.id[1] << 32, 0), -ENODEV);
    assert_int_equal(rig_map(&r, known, 0), -ENOMEM);
    assert_int_equal(rig_unmap(&r, unknown, 0), -EINVAL);
    assert_int_equal(rig_unmap(&r, known, 0), -ENOMEM);
    assert_int_equal(rig_free(&r, unknown), -EINVAL);
    assert_int_equal(rig_free(&r, known), -EINVAL);
    assert_int_equal(rig_free(&r, 0), -EINVAL);
    assert_int_equal(rig_map(&r, good, 1), -ENODEV);
    rig_end(&r);
}

static void test_errors_of_the_device_array(void **state)
{
    uint32_t done = 0;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    assert_int_equal(rig_map_ids(&r, h, r.id, 0, &done), -EINVAL);
    done = 2;
    assert_int_equal(rig_map_ids(&r, h, r.id, 1, &done), -EINVAL);
    assert_int_equal(done, 2);
    done = 0;
    /* The array is read before the handle is looked at. */
    assert_int_equal(rig_map_ids(&r, 0, NULL, 1, &done), -EFAULT);
    assert_int_equal(rig_unmap_ids(&r, 0, (void *)8, 1, &done), -EFAULT);
    assert_int_equal(rig_map_ids(&r, h, r.id, UINT32_MAX, &done), -ENOMEM);
    assert_int_equal(rig_map_ids(&r, h, r.id, 0x10000000, &done), -ENOMEM);
    rig_end(&r);
}

static void test_a_failed_map_keeps_what_it_did(void **state)
{
    uint32_t ids[3], done = 0;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:3", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    ids[0] = r.id[0];
    ids[1] = UNKNOWN;
    ids[2] = r.id[2];
    assert_int_equal(rig_map_ids(&r, h, ids, 3, &done), -EINVAL);
    assert_int_equal(done, 1);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_WRITE), FAKE_FAULT_NONE);
    assert_int_equal(rig_fault(&r, 2, VA, FAKE_WRITE), FAKE_FAULT_NOT_MAPPED);
    ids[1] = r.id[1];
    assert_int_equal(rig_map_ids(&r, h, ids, 3, &done), 0);
    assert_int_equal(done, 3);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_WRITE), FAKE_FAULT_NONE);
    /* The same device twice is fine for MAP, the second time an error for UNMAP. */
    ids[1] = r.id[0];
    done = 0;
    assert_int_equal(rig_map_ids(&r, h, ids, 3, &done), 0);
    done = 0;
    assert_int_equal(rig_unmap_ids(&r, h, ids, 3, &done), -EINVAL);
    assert_int_equal(done, 1);
    rig_end(&r);
}

static void test_vram_of_an_unreachable_peer_is_einval(void **state)
{
    uint32_t done = 0;
    uint64_t vram, gtt;
    struct rig r;

    rig_start(&r, "navi31:2", "6.12", 0);
    vram = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    gtt = rig_must_alloc(&r, 0, VA + MIB, MIB, KFD_MEM_GTT | KFD_MEM_WRITABLE);
    assert_int_equal(rig_map_ids(&r, vram, r.id, 2, &done), -EINVAL);
    assert_int_equal(done, 1);
    done = 0;
    assert_int_equal(rig_map_ids(&r, gtt, r.id, 2, &done), 0);
    assert_int_equal(done, 2);
    rig_end(&r);
}

static void test_free_of_a_mapped_handle_is_ebusy(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    assert_int_equal(rig_map(&r, h, 1), 0);
    assert_int_equal(rig_free(&r, h), -EBUSY);
    assert_int_equal(rig_unmap(&r, h, 1), 0);
    /* Other mappings don't count. */
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    rig_end(&r);
}

static void test_rights_come_from_alloc(void **state)
{
    uint64_t ro, rwx;
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    ro = rig_must_alloc(&r, 0, VA, MIB, KFD_MEM_VRAM);
    rwx = rig_must_alloc(&r, 0, VA + MIB, MIB, VRAM_RW | KFD_MEM_EXECUTABLE);
    assert_int_equal(rig_map(&r, ro, 1), 0);
    assert_int_equal(rig_map(&r, rwx, 1), 0);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_EXEC), FAKE_FAULT_NO_EXEC);
    assert_int_equal(rig_fault(&r, 1, VA + MIB, FAKE_WRITE), FAKE_FAULT_NONE);
    assert_int_equal(rig_fault(&r, 1, VA + MIB, FAKE_EXEC), FAKE_FAULT_NONE);
    rig_end(&r);
}

static void test_memory_is_charged_and_limited(void **state)
{
    uint64_t big, all, more;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    big = rig_must_alloc(&r, 0, 0, all - 2 * MIB, VRAM_RW);
    assert_int_equal(rig_alloc(&r, 0, 0, 4 * MIB, VRAM_RW, &more), -ENOMEM);
    more = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    assert_int_equal(rig_available(&r, 0), 0);
    assert_int_equal(rig_free(&r, big), 0);
    assert_int_equal(rig_free(&r, more), 0);
    assert_int_equal(rig_available(&r, 0), all);
    rig_end(&r);
}

static void test_userptr_is_the_callers_memory(void **state)
{
    char *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .va_addr = VA, .size = 8192, .mmap_offset = (uintptr_t)mem};
    struct rig r;

    rig_start(&r, "navi31:2", "6.12", 0);
    a.gpu_id = r.id[0];
    a.flags = KFD_MEM_USERPTR | KFD_MEM_WRITABLE;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
    assert_int_equal(rig_map(&r, a.handle, 1), 0);
    assert_int_equal(fake_gpu_write(r.fake, 1, VA + 4000, "userptr", 8, NULL), 0);
    assert_string_equal(mem + 4000, "userptr");
    assert_int_equal(rig_export(&r, a.handle), -EPERM);
    /* No memory there, and memory that can't be written. */
    a.mmap_offset = 0x1000;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), -EFAULT);
    mprotect(mem, 8192, PROT_READ);
    a.mmap_offset = (uintptr_t)mem;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), -EPERM);
    munmap(mem, 8192);
    rig_end(&r);
}

static void test_aql_memory_is_mapped_twice(void **state)
{
    char buf[4] = "";
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, 8192, KFD_MEM_GTT | KFD_MEM_WRITABLE | 0x08000000u);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, "abc", 4, NULL), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 4096, buf, 4, NULL), 0);
    assert_string_equal(buf, "abc");
    assert_int_equal(rig_unmap(&r, h, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA + 4096, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&r);
}

static void test_a_gpu_without_vm_in_the_array_is_reported_by_strict_mode(void **state)
{
    uint32_t done = 0;
    uint64_t h;
    struct rig r;

    rig_open(&r, "mi300x:2", "6.12", FAKE_STRICT);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    assert_int_equal(rig_unmap_ids(&r, h, &r.id[1], 1, &done), -ENOTRECOVERABLE);
    done = 1;
    assert_int_equal(rig_map_ids(&r, h, &r.id[1], 1, &done), -ENOTRECOVERABLE);
    assert_int_equal(fake_strict_count(r.fake), 2);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_checks_in_the_kernels_order),
        cmocka_unit_test(test_public_vram_needs_a_large_bar),
        cmocka_unit_test(test_handles_are_the_lowest_free_number_from_zero),
        cmocka_unit_test(test_alloc_leaves_addresses_to_map),
        cmocka_unit_test(test_map_over_any_mapping_is_einval),
        cmocka_unit_test(test_map_is_idempotent_and_not_counted),
        cmocka_unit_test(test_errors_of_handles),
        cmocka_unit_test(test_errors_of_the_device_array),
        cmocka_unit_test(test_a_failed_map_keeps_what_it_did),
        cmocka_unit_test(test_vram_of_an_unreachable_peer_is_einval),
        cmocka_unit_test(test_free_of_a_mapped_handle_is_ebusy),
        cmocka_unit_test(test_rights_come_from_alloc),
        cmocka_unit_test(test_memory_is_charged_and_limited),
        cmocka_unit_test(test_userptr_is_the_callers_memory),
        cmocka_unit_test(test_aql_memory_is_mapped_twice),
        cmocka_unit_test(test_a_gpu_without_vm_in_the_array_is_reported_by_strict_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
