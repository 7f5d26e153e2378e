/* SPDX-License-Identifier: MIT */
/* Failures on order, with the kernel's partial states. */
#include "rig.h"

#include <time.h>

#define NR(code) ((uint16_t)((code)&0xffff))

static uint32_t arm(struct rig *r, struct fake_injection i)
{
    uint32_t id;

    i.size = sizeof(i);
    assert_int_equal(fake_inject(r->fake, &i, &id), 0);
    return id;
}

static void test_the_nth_request_fails_once(void **state)
{
    uint64_t h, matched, struck;
    uint32_t id;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    id = arm(&r, (struct fake_injection){.request = NR(KFD_CODE_ALLOC_MEMORY_OF_GPU),
                                         .gpu = FAKE_ANY_GPU,
                                         .fd = FAKE_ANY_FD,
                                         .skip = 2,
                                         .count = 1,
                                         .error = ENOMEM});
    for (int i = 0; i < 5; i++)
        assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), i == 2 ? -ENOMEM : 0);
    assert_int_equal(fake_inject_seen(r.fake, id, &matched, &struck), 0);
    assert_int_equal(matched, 5);
    assert_int_equal(struck, 1);
    assert_int_equal(fake_inject_seen(r.fake, id + 1, &matched, &struck), -ENOENT);
    rig_end(&r);
}

static void test_for_ever_until_cleared(void **state)
{
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    arm(&r, (struct fake_injection){.gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .error = EINTR});
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), -EINTR);
    fake_inject_clear(r.fake);
    assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), 0);
    rig_end(&r);
}

static void test_by_gpu_and_by_descriptor(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct rig r;
    int copy;

    rig_start(&r, "mi300x:2", "6.12", 0);
    arm(&r, (struct fake_injection){.gpu = 1, .fd = FAKE_ANY_FD, .error = ENOMEM});
    assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), 0);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_alloc(&r, 1, 0, MIB, VRAM_RW, &h), -ENOMEM);
    assert_int_equal(rig_va(&r, r.drm[1], AMDGPU_VA_OP_CLEAR, 0, VA, 0, MIB, 0), -ENOMEM);
    fake_inject_clear(r.fake);
    arm(&r, (struct fake_injection){.gpu = FAKE_ANY_GPU, .fd = r.drm[0], .error = EIO});
    copy = r.sys->ops->dup_fd(r.sys, r.drm[0], 3);
    assert_int_equal(rig_gem_close(&r, copy, gem), -EIO);
    assert_int_equal(rig_va(&r, r.drm[1], AMDGPU_VA_OP_CLEAR, 0, VA, 0, MIB, 0), 0);
    assert_int_equal(rig_alloc(&r, 1, 0, MIB, VRAM_RW, &h), 0);
    rig_close(&r, copy);
    rig_end(&r);
}

static void test_map_stops_after_some_devices(void **state)
{
    uint32_t done = 0;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:4", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    arm(&r, (struct fake_injection){.request = NR(KFD_CODE_MAP_MEMORY_TO_GPU),
                                    .gpu = FAKE_ANY_GPU,
                                    .fd = FAKE_ANY_FD,
                                    .count = 1,
                                    .point = FAKE_INJECT_MIDDLE,
                                    .error = EINTR,
                                    .done = 2});
    assert_int_equal(rig_map_ids(&r, h, r.id, 4, &done), -EINTR);
    assert_int_equal(done, 2);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_fault(&r, 2, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_map_ids(&r, h, r.id, 4, &done), 0);
    assert_int_equal(done, 4);
    rig_end(&r);
}

static void test_unmap_interrupted_at_the_flush_keeps_n_success(void **state)
{
    uint32_t done = 0;
    uint64_t h;
    char c;
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    h = rig_must_alloc(&r, 0, VA, 2 * MIB, VRAM_RW);
    assert_int_equal(rig_map_ids(&r, h, r.id, 2, &done), 0);
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &c, 1, NULL), 0);
    arm(&r, (struct fake_injection){.request = NR(KFD_CODE_UNMAP_MEMORY_FROM_GPU),
                                    .gpu = FAKE_ANY_GPU,
                                    .fd = FAKE_ANY_FD,
                                    .count = 1,
                                    .point = FAKE_INJECT_MIDDLE,
                                    .error = EINTR,
                                    .done = UINT32_MAX});
    done = 0;
    assert_int_equal(rig_unmap_ids(&r, h, r.id, 2, &done), -EINTR);
    assert_int_equal(done, 2);
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &c, 1, NULL), 0);
    /* Again with what came back finishes it; from the start it can't. */
    assert_int_equal(rig_unmap_ids(&r, h, r.id, 2, &done), 0);
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &c, 1, NULL), -EFAULT);
    done = 0;
    assert_int_equal(rig_unmap_ids(&r, h, r.id, 2, &done), -EINVAL);
    rig_end(&r);
}

static void test_gem_va_can_succeed_without_page_tables(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    arm(&r, (struct fake_injection){
                .gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .count = 1, .point = FAKE_INJECT_SILENT});
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    /* The mapping is there all the same; REPLACE tries the page tables again. */
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), -EINVAL);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_REPLACE, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    rig_end(&r);
}

static void test_after_and_truncated(void **state)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .size = MIB, .handle = 99, .mmap_offset = 77, .flags = VRAM_RW};
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    arm(&r, (struct fake_injection){.gpu = FAKE_ANY_GPU,
                                    .fd = FAKE_ANY_FD,
                                    .count = 1,
                                    .point = FAKE_INJECT_AFTER,
                                    .error = EFAULT});
    assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), -EFAULT);
    assert_int_equal(h, (uint64_t)r.id[0] << 32);
    assert_int_equal(rig_free(&r, h), 0);
    /* Up to the handle, without the offset for mmap. */
    arm(&r, (struct fake_injection){.gpu = FAKE_ANY_GPU,
                                    .fd = FAKE_ANY_FD,
                                    .count = 1,
                                    .point = FAKE_INJECT_TRUNCATE,
                                    .done = 24});
    a.gpu_id = r.id[0];
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), 0);
    assert_int_equal(a.handle, (uint64_t)r.id[0] << 32);
    assert_int_equal(a.mmap_offset, 77);
    rig_end(&r);
}

static void test_an_interrupted_free_must_not_be_repeated(void **state)
{
    struct fake_injection i = {.request = NR(KFD_CODE_FREE_MEMORY_OF_GPU),
                               .gpu = FAKE_ANY_GPU,
                               .fd = FAKE_ANY_FD,
                               .count = 1,
                               .point = FAKE_INJECT_MIDDLE,
                               .error = EINTR};
    uint64_t h;
    struct rig r;

    for (uint32_t strict = 0; strict < 2; strict++) {
        rig_start(&r, "mi300x:1", "6.12", strict != 0 ? FAKE_STRICT : 0);
        h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
        arm(&r, i);
        assert_int_equal(rig_free(&r, h), -EINTR);
        assert_int_equal(rig_free(&r, h), strict != 0 ? -ENOTRECOVERABLE : 0);
        assert_int_equal(fake_strict_count(r.fake), strict);
        rig_end(&r);
    }
}

static void test_a_delay_delays(void **state)
{
    struct timespec a, b;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    arm(&r, (struct fake_injection){.gpu = FAKE_ANY_GPU,
                                    .fd = FAKE_ANY_FD,
                                    .count = 1,
                                    .point = FAKE_INJECT_DELAY,
                                    .delay_us = 20000});
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(rig_alloc(&r, 0, 0, MIB, VRAM_RW, &h), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    assert_true((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec >= 20000000ll);
    rig_end(&r);
}

static void test_nonsense_is_refused(void **state)
{
    const struct fake_injection bad[] = {
        {.size = 4, .gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .error = EIO},
        {.size = sizeof(bad[0]), .gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .error = 0},
        {.size = sizeof(bad[0]), .gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .error = -5},
        {.size = sizeof(bad[0]), .gpu = 1, .fd = FAKE_ANY_FD, .error = EIO},
        {.size = sizeof(bad[0]), .gpu = FAKE_ANY_GPU, .fd = 0, .error = EIO},
        {.size = sizeof(bad[0]),
         .gpu = FAKE_ANY_GPU,
         .fd = FAKE_ANY_FD,
         .request = NR(KFD_CODE_MAP_MEMORY_TO_GPU),
         .point = FAKE_INJECT_SILENT},
        {.size = sizeof(bad[0]), .gpu = FAKE_ANY_GPU, .fd = FAKE_ANY_FD, .point = 99},
        {.size = sizeof(bad[0]), /* the number without its type */
         .gpu = FAKE_ANY_GPU,
         .fd = FAKE_ANY_FD,
         .error = EIO,
         .request = 0x16},
    };
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(fake_inject(r.fake, &bad[i], NULL), -EINVAL);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nth_request_fails_once),
        cmocka_unit_test(test_for_ever_until_cleared),
        cmocka_unit_test(test_by_gpu_and_by_descriptor),
        cmocka_unit_test(test_map_stops_after_some_devices),
        cmocka_unit_test(test_unmap_interrupted_at_the_flush_keeps_n_success),
        cmocka_unit_test(test_gem_va_can_succeed_without_page_tables),
        cmocka_unit_test(test_after_and_truncated),
        cmocka_unit_test(test_an_interrupted_free_must_not_be_repeated),
        cmocka_unit_test(test_a_delay_delays),
        cmocka_unit_test(test_nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
