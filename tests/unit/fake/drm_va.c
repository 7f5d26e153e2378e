/* SPDX-License-Identifier: MIT */
/* GEM_VA: order of checks, splitting, sharing the tree with KFD. */
#include "rig.h"

#define MAP AMDGPU_VA_OP_MAP
#define UNMAP AMDGPU_VA_OP_UNMAP
#define CLEAR AMDGPU_VA_OP_CLEAR
#define REPLACE AMDGPU_VA_OP_REPLACE
#define RW (KFD_VA_READ | KFD_VA_WRITE)

struct setup {
    struct rig r;
    uint64_t h;
    uint32_t gem;
    int drm;
};

static void start(struct setup *s, const char *machine, const char *kernel, uint32_t flags)
{
    rig_start(&s->r, machine, kernel, flags);
    s->drm = s->r.drm[0];
    s->h = rig_must_alloc(&s->r, 0, 0, 8 * MIB, VRAM_RW);
    s->gem = rig_gem(&s->r, s->h, 0);
}

static int va(struct setup *s, uint32_t op, uint64_t addr, uint64_t offset, uint64_t size,
              uint32_t flags)
{
    return rig_va(&s->r, s->drm, op, s->gem, addr, offset, size, flags);
}

static void expect(struct setup *s, uint64_t addr, uint64_t offset)
{
    struct fake_translation t;

    assert_int_equal(fake_gpu_translate(s->r.fake, 0, addr, FAKE_READ, &t), 0);
    assert_int_equal(t.offset, offset);
}

static void test_checks_in_the_kernels_order(void **state)
{
    const struct {
        uint32_t op, flags, gem; /* gem 0: the good one */
        uint64_t addr, offset, size;
        int err;
    } rows[] = {
        {MAP, RW, 99, 0xf000, 0, MIB, -EINVAL},
        {MAP, RW, 99, 0x800000000000, 0, MIB, -EINVAL},
        {MAP, RW, 99, 0xffff7ffffffff000, 0, MIB, -EINVAL},
        {MAP, RW, 99, 0xffffffffffbf0000, 0, MIB, -EINVAL},
        {MAP, 0x400, 99, VA, 0, MIB, -EINVAL},
        {MAP, RW | 0x10, 99, VA, 0, MIB, -EINVAL},
        {7, RW, 99, VA, 0, MIB, -EINVAL},
        {0, RW, 99, VA, 0, MIB, -EINVAL},
        {MAP, RW, 99, VA, 0, 0, -ENOENT},
        {UNMAP, 0, 99, VA, 0, MIB, -ENOENT},
        {MAP, RW, 0, VA + 1, 0, MIB, -EINVAL},
        {MAP, RW, 0, VA, 1, MIB, -EINVAL},
        {MAP, RW, 0, VA, 0, MIB + 1, -EINVAL},
        {MAP, RW, 0, VA, 0, 0, -EINVAL},
        {MAP, RW, 0, VA, 8 * MIB, 4096, -EINVAL},
        {MAP, RW, 0, VA, 4096, 8 * MIB, -EINVAL},
        {MAP, RW, 0, VA, UINT64_MAX - 4095, 8192, -EINVAL},
        {UNMAP, 0, 0, VA, 0, MIB, -ENOENT},
        {UNMAP, 0, 0, VA, 0, 1ull << 48, -EINVAL},
        {CLEAR, 0, 99, VA, 0, MIB, 0},
        {CLEAR, 0, 99, VA, 0, 0, -EINVAL},
        {MAP, RW, 0, 0xffff800000000000, 0, MIB, 0},
        {MAP, RW | 0x200 | 0x20, 0, 0x10000, 0, 4096, 0},
    };
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(rig_va(&s.r, s.drm, rows[i].op, rows[i].gem != 0 ? rows[i].gem : s.gem,
                                rows[i].addr, rows[i].offset, rows[i].size, rows[i].flags),
                         rows[i].err);
    assert_int_equal(rig_fault(&s.r, 0, 0xffff800000001000, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_fault(&s.r, 0, 0x800000001000, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&s.r);
    rig_start(&s.r, "mi210:1", "6.1", 0);
    assert_int_equal(rig_va(&s.r, s.r.drm[0], CLEAR, 0, 0x1ff000, 0, 4096, 0), -EINVAL);
    assert_int_equal(rig_va(&s.r, s.r.drm[0], CLEAR, 0, 0x200000, 0, 4096, 0), 0);
    rig_end(&s.r);
}

static void test_libdrms_code_is_accepted_and_nothing_is_written_back(void **state)
{
    struct kfd_uapi_gem_va a = {
        .operation = MAP, .flags = RW, .va_address = 0xffff800000000000, .map_size = MIB};
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    a.handle = s.gem;
    assert_int_equal(rig_request(&s.r, s.drm, 0xc0286448, &a), 0);
    assert_int_equal(a.va_address, 0xffff800000000000);
    rig_end(&s.r);
}

static void test_rights_belong_to_the_mapping(void **state)
{
    const struct {
        uint32_t flags;
        enum fake_fault_reason read, write, exec;
    } rows[] = {
        {0, FAKE_FAULT_NOT_READABLE, FAKE_FAULT_READ_ONLY, FAKE_FAULT_NO_EXEC},
        {KFD_VA_READ, FAKE_FAULT_NONE, FAKE_FAULT_READ_ONLY, FAKE_FAULT_NO_EXEC},
        {RW, FAKE_FAULT_NONE, FAKE_FAULT_NONE, FAKE_FAULT_NO_EXEC},
        {RW | KFD_VA_EXEC, FAKE_FAULT_NONE, FAKE_FAULT_NONE, FAKE_FAULT_NONE},
    };
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t addr = VA + i * MIB;

        assert_int_equal(va(&s, MAP, addr, 0, MIB, rows[i].flags), 0);
        assert_int_equal(rig_fault(&s.r, 0, addr, FAKE_READ), rows[i].read);
        assert_int_equal(rig_fault(&s.r, 0, addr, FAKE_WRITE), rows[i].write);
        assert_int_equal(rig_fault(&s.r, 0, addr, FAKE_EXEC), rows[i].exec);
    }
    rig_end(&s.r);
}

static void test_unmap_takes_the_exact_start_of_this_objects_mapping(void **state)
{
    uint32_t other;
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    other = rig_gem(&s.r, rig_must_alloc(&s.r, 0, 0, MIB, VRAM_RW), 0);
    assert_int_equal(va(&s, MAP, VA, MIB, 4 * MIB, RW), 0);
    assert_int_equal(va(&s, UNMAP, VA + MIB, 0, MIB, 0), -ENOENT);
    assert_int_equal(rig_va(&s.r, s.drm, UNMAP, other, VA, 0, MIB, 0), -ENOENT);
    /* Size and offset play no part. */
    assert_int_equal(va(&s, UNMAP, VA, 77, 4096, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA + 3 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&s.r);
}

static void test_unmap_looks_for_the_page_of_its_address(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, gem, VA + 4096, 0, MIB, 0), -ENOENT);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, gem, VA + 4095, 0, MIB, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&r);
}

static void test_clear_splits_what_it_cuts(void **state)
{
    struct fake_usage u;
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    assert_int_equal(va(&s, MAP, VA, 0, 6 * MIB, RW), 0);
    assert_int_equal(va(&s, CLEAR, VA + 2 * MIB, 0, 2 * MIB, 0), 0);
    assert_int_equal(fake_get_usage(s.r.fake, &u), 0);
    assert_int_equal(u.mappings, 2);
    expect(&s, VA + 2 * MIB - 4096, 2 * MIB - 4096);
    assert_int_equal(rig_fault(&s.r, 0, VA + 2 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_fault(&s.r, 0, VA + 4 * MIB - 1, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    expect(&s, VA + 4 * MIB, 4 * MIB);
    /* The rests are mappings with starts of their own. */
    assert_int_equal(va(&s, UNMAP, VA + 4 * MIB, 0, 4096, 0), 0);
    assert_int_equal(va(&s, CLEAR, VA - 4 * MIB, 0, 16 * MIB, 0), 0);
    assert_int_equal(fake_get_usage(s.r.fake, &u), 0);
    assert_int_equal(u.mappings, 0);
    rig_end(&s.r);
}

static void test_replace_changes_rights_and_memory(void **state)
{
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    assert_int_equal(va(&s, MAP, VA, 0, 4 * MIB, RW), 0);
    assert_int_equal(va(&s, REPLACE, VA, 0, 4 * MIB, KFD_VA_READ), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA + MIB, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    assert_int_equal(va(&s, REPLACE, VA + MIB, 5 * MIB, MIB, RW), 0);
    expect(&s, VA + MIB - 1, MIB - 1);
    expect(&s, VA + MIB, 5 * MIB);
    expect(&s, VA + 2 * MIB, 2 * MIB);
    assert_int_equal(va(&s, REPLACE, VA, 8 * MIB, MIB, RW), -EINVAL);
    expect(&s, VA, 0);
    rig_end(&s.r);
}

static void test_cutting_a_huge_page_loses_its_rest(void **state)
{
    struct setup s;

    start(&s, "mi300x:1", "6.12", FAKE_QUIRK_T5);
    assert_int_equal(va(&s, MAP, VA, 0, 4 * MIB, RW), 0);
    assert_int_equal(va(&s, CLEAR, VA + MIB, 0, 4096, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_fault(&s.r, 0, VA + 2 * MIB - 4096, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    expect(&s, VA + 2 * MIB, 2 * MIB);
    /* The next mapping of the same object writes the rests. */
    assert_int_equal(va(&s, MAP, VA + 64 * MIB, 0, 4096, RW), 0);
    expect(&s, VA, 0);
    expect(&s, VA + 2 * MIB - 4096, 2 * MIB - 4096);
    assert_int_equal(rig_fault(&s.r, 0, VA + MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&s.r);
}

static void test_the_end_of_a_rest_leaves_its_entries(void **state)
{
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    assert_int_equal(va(&s, MAP, VA, 0, 4 * MIB, RW), 0);
    assert_int_equal(va(&s, CLEAR, VA + MIB, 0, MIB, 0), 0);
    assert_int_equal(va(&s, UNMAP, VA, 0, MIB, 0), 0);
    expect(&s, VA, 0);
    /* Another mapping of the object makes the other rest a written one. */
    assert_int_equal(va(&s, MAP, VA + 64 * MIB, 0, 4096, RW), 0);
    assert_int_equal(va(&s, UNMAP, VA + 2 * MIB, 0, 2 * MIB, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA + 2 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    /* The handle's end leaves them too, and then the memory is another's. */
    assert_int_equal(va(&s, MAP, VA + 8 * MIB, 0, 4 * MIB, RW), 0);
    assert_int_equal(va(&s, CLEAR, VA + 9 * MIB, 0, MIB, 0), 0);
    assert_int_equal(rig_gem_close(&s.r, s.drm, s.gem), 0);
    expect(&s, VA + 8 * MIB, 0);
    assert_int_equal(rig_free(&s.r, s.h), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA + 8 * MIB, FAKE_READ), FAKE_FAULT_FREED);
    rig_end(&s.r);
}

static void test_an_import_before_acquire_stays_empty(void **state)
{
    uint32_t early, late;
    struct rig r;
    uint64_t h;
    int fd;

    rig_open(&r, "vega10-hollow:2", "6.12", 0);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    h = rig_must_alloc(&r, 0, 0, 4 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    assert_int_equal(rig_prime(&r, r.drm[1], fd, &early), 0);
    assert_int_equal(rig_acquire(&r, 1, r.drm[1]), 0);
    assert_int_equal(rig_va(&r, r.drm[1], MAP, early, VA, 0, 4 * MIB, RW), 0);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_va(&r, r.drm[1], UNMAP, early, VA, 0, 4 * MIB, 0), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[1], early), 0);
    assert_int_equal(rig_prime(&r, r.drm[1], fd, &late), 0);
    assert_int_equal(rig_va(&r, r.drm[1], MAP, late, VA, 0, 4 * MIB, RW), 0);
    assert_int_equal(rig_fault(&r, 1, VA, FAKE_READ), FAKE_FAULT_NONE);
    rig_close(&r, fd);
    rig_end(&r);
}

static void test_sparse_reads_zero_and_drops_writes(void **state)
{
    char buf[4] = "abc";
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_va(&s.r, s.drm, MAP, 0, VA, 0, MIB, AMDGPU_VM_PAGE_PRT), 0);
    assert_int_equal(fake_gpu_write(s.r.fake, 0, VA, "xyz", 4, NULL), 0);
    assert_int_equal(fake_gpu_read(s.r.fake, 0, VA, buf, 4, NULL), 0);
    assert_int_equal(buf[0] | buf[1] | buf[2], 0);
    assert_int_equal(va(&s, MAP, VA, 0, MIB, RW), -EINVAL);
    assert_int_equal(va(&s, REPLACE, VA, 0, MIB, RW), 0);
    expect(&s, VA, 0);
    rig_end(&s.r);
}

static void test_delayed_updates_wait_for_the_next_one(void **state)
{
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    assert_int_equal(va(&s, MAP, VA, 0, MIB, RW | AMDGPU_VM_DELAY_UPDATE), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(va(&s, MAP, VA + MIB, 0, MIB, RW), 0);
    expect(&s, VA, 0);
    assert_int_equal(va(&s, UNMAP, VA, 0, MIB, AMDGPU_VM_DELAY_UPDATE), 0);
    expect(&s, VA, 0);
    assert_int_equal(va(&s, UNMAP, VA + MIB, 0, MIB, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&s.r);
}

static void test_gem_va_takes_kfd_mappings_away_without_telling_it(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct setup s;

    start(&s, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&s.r, 0, VA, MIB, VRAM_RW);
    gem = rig_gem(&s.r, h, 0);
    assert_int_equal(rig_map(&s.r, h, 0), 0);
    assert_int_equal(rig_va(&s.r, s.drm, UNMAP, gem, VA, 0, MIB, 0), 0);
    assert_int_equal(rig_map(&s.r, h, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_unmap(&s.r, h, 0), 0);
    assert_int_equal(rig_map(&s.r, h, 0), 0);
    assert_int_equal(rig_fault(&s.r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    rig_end(&s.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks_in_the_kernels_order),
        cmocka_unit_test(test_libdrms_code_is_accepted_and_nothing_is_written_back),
        cmocka_unit_test(test_rights_belong_to_the_mapping),
        cmocka_unit_test(test_unmap_takes_the_exact_start_of_this_objects_mapping),
        cmocka_unit_test(test_unmap_looks_for_the_page_of_its_address),
        cmocka_unit_test(test_clear_splits_what_it_cuts),
        cmocka_unit_test(test_replace_changes_rights_and_memory),
        cmocka_unit_test(test_cutting_a_huge_page_loses_its_rest),
        cmocka_unit_test(test_the_end_of_a_rest_leaves_its_entries),
        cmocka_unit_test(test_an_import_before_acquire_stays_empty),
        cmocka_unit_test(test_sparse_reads_zero_and_drops_writes),
        cmocka_unit_test(test_delayed_updates_wait_for_the_next_one),
        cmocka_unit_test(test_gem_va_takes_kfd_mappings_away_without_telling_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
