/* SPDX-License-Identifier: MIT */
/* What a GPU sees: TLB, stale translations, page sizes, faults. */
#include "rig.h"

#include <stdlib.h>

#define RW (KFD_VA_READ | KFD_VA_WRITE)

static int gem_va(struct rig *r, uint32_t op, uint32_t gem, uint64_t va, uint64_t offset,
                  uint64_t size, uint32_t flags)
{
    return rig_va(r, r->drm[0], op, gem, va, offset, size, flags);
}

static void test_gem_va_unmap_leaves_the_tlb_until_a_flush(void **state)
{
    struct fake_translation t;
    uint64_t a, b;
    uint32_t ga, gb;
    char c = 'b';
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    b = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    ga = rig_gem(&r, a, 0);
    gb = rig_gem(&r, b, 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, ga, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, "a", 1, NULL), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_UNMAP, ga, VA, 0, 2 * MIB, 0), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gb, VA, 0, 2 * MIB, RW), 0);
    /* The new mapping is served by the old translation. */
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, &t), 0);
    assert_int_equal(c, 'a');
    assert_true(t.from_tlb && t.stale);
    assert_non_null(strstr(t.text, "stale"));
    assert_int_equal(rig_flush(&r, a, 0), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, &t), 0);
    assert_int_equal(c, 0);
    assert_false(t.from_tlb);
    rig_end(&r);
}

static void test_a_change_of_rights_needs_a_flush_too(void **state)
{
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, "a", 1, NULL), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_REPLACE, gem, VA, 0, 2 * MIB, KFD_VA_READ), 0);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, "b", 1, NULL), 0);
    assert_int_equal(rig_flush(&r, h, 0), 0);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, "c", 1, NULL), -EFAULT);
    rig_end(&r);
}

static void test_a_stale_translation_of_freed_memory_faults(void **state)
{
    struct fake_translation t;
    uint64_t h;
    uint32_t gem;
    char c;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, NULL), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, &t), -EFAULT);
    assert_int_equal(t.reason, FAKE_FAULT_FREED);
    /* Its record may be another object's by now. */
    rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, &t), -EFAULT);
    assert_int_equal(t.reason, FAKE_FAULT_FREED);
    rig_end(&r);
}

static void check_fault(struct rig *r, enum fake_access access, const char *says)
{
    struct fake_translation t;

    assert_int_equal(fake_gpu_translate(r->fake, 0, VA, access, &t), -EFAULT);
    if (strstr(t.text, says) == NULL)
        fail_msg("'%s' without '%s'", t.text, says);
}

static void test_faults_say_since_when(void **state)
{
    const struct fake_injection silent = {.size = sizeof(silent),
                                          .request = 'd' << 8 | DRM_NR_GEM_VA,
                                          .gpu = FAKE_ANY_GPU,
                                          .fd = FAKE_ANY_FD,
                                          .count = 1,
                                          .point = FAKE_INJECT_SILENT};
    uint64_t h;
    uint32_t gem;
    char c, text[64];
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    check_fault(&r, FAKE_READ, "GPU 0, read at 0x700000000000: not mapped; never mapped");
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(fake_inject(r.fake, &silent, NULL), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    check_fault(&r, FAKE_READ, "; its page tables were not written or lost it; mapped by request");
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_REPLACE, gem, VA, 0, 2 * MIB, KFD_VA_READ), 0);
    snprintf(text, sizeof(text), "of process %d (GEM_VA REPLACE), 0 requests ago", getpid());
    check_fault(&r, FAKE_WRITE, text);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_CLEAR, 0, VA, 0, 4096, 0), 0);
    check_fault(&r, FAKE_READ, "; unmapped by request");
    check_fault(&r, FAKE_READ, "(GEM_VA CLEAR), 0 requests ago");
    /* The rest behind the cut has not been unmapped. */
    assert_int_equal(rig_fault(&r, 0, VA + 4096, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_CLEAR, 0, VA, 0, 2 * MIB, 0), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, NULL), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(rig_free(&r, h), 0);
    check_fault(&r, FAKE_READ, "(a stale TLB entry); freed by request");
    check_fault(&r, FAKE_READ, "(FREE_MEMORY_OF_GPU), 0 requests ago");
    rig_end(&r);
}

static void test_kfd_unmap_flushes_by_the_owners_generation(void **state)
{
    const struct {
        const char *machine;
        int err; /* of a read after UNMAP */
    } rows[] = {{"mi300x:1", -EFAULT}, {"mi210:1", -EFAULT}, {"vega10-hollow", 0}};
    uint64_t h;
    char c;
    struct rig r;

    for (size_t i = 0; i < 3; i++) {
        rig_start(&r, rows[i].machine, "6.12", 0);
        h = rig_must_alloc(&r, 0, VA, 2 * MIB, VRAM_RW);
        assert_int_equal(rig_map(&r, h, 0), 0);
        assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, NULL), 0);
        assert_int_equal(rig_unmap(&r, h, 0), 0);
        assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, NULL), rows[i].err);
        assert_int_equal(rig_flush(&r, h, 0), 0);
        assert_int_equal(fake_gpu_read(r.fake, 0, VA, &c, 1, NULL), -EFAULT);
        rig_end(&r);
    }
}

static void test_a_flush_names_its_gpus_only(void **state)
{
    struct fake_cost before[2], after[2];
    uint64_t h;
    uint32_t gem[2];
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    for (uint32_t i = 0; i < 2; i++) {
        gem[i] = rig_gem(&r, h, i);
        assert_int_equal(rig_va(&r, r.drm[i], AMDGPU_VA_OP_MAP, gem[i], VA, 0, MIB, RW), 0);
        assert_int_equal(rig_va(&r, r.drm[i], AMDGPU_VA_OP_UNMAP, gem[i], VA, 0, MIB, 0), 0);
        fake_get_cost(r.fake, i, &before[i]);
    }
    assert_int_equal(rig_flush(&r, h, 1), 0);
    for (uint32_t i = 0; i < 2; i++)
        fake_get_cost(r.fake, i, &after[i]);
    assert_int_equal(after[0].tlb_flushes, before[0].tlb_flushes);
    assert_int_equal(after[1].tlb_flushes, before[1].tlb_flushes + 1);
    /* Without a change there is nothing to flush. */
    assert_int_equal(rig_flush(&r, h, 1), 0);
    fake_get_cost(r.fake, 1, &before[1]);
    assert_int_equal(after[1].tlb_flushes, before[1].tlb_flushes);
    rig_end(&r);
}

static void test_page_size_follows_alignment_and_placement(void **state)
{
    const struct {
        uint64_t bo, va, offset, size, page;
        uint32_t flags;
    } rows[] = {
        {8 * MIB, VA, 0, 8 * MIB, 2 * MIB, VRAM_RW},
        {8 * MIB, VA + MIB, MIB, 4 * MIB, MIB, VRAM_RW},
        {8 * MIB, VA + 4096, 0, 4 * MIB, 4096, VRAM_RW},
        {8 * MIB, VA, 65536, MIB, MIB, VRAM_RW},
        {8 * MIB, VA, 0, 4096, 4096, VRAM_RW},
        {3 * MIB, VA, 0, 2 * MIB, 4096, VRAM_RW},
        {8 * MIB, VA, 0, 8 * MIB, 4096, KFD_MEM_GTT},
        {2048 * MIB, VA, 0, 2048 * MIB, 1024 * MIB, VRAM_RW},
    };
    struct fake_translation t;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t h = rig_must_alloc(&r, 0, 0, rows[i].bo, rows[i].flags);
        uint32_t gem = rig_gem(&r, h, 0);

        assert_int_equal(
            gem_va(&r, AMDGPU_VA_OP_MAP, gem, rows[i].va, rows[i].offset, rows[i].size, RW), 0);
        assert_int_equal(fake_gpu_translate(r.fake, 0, rows[i].va, FAKE_READ, &t), 0);
        assert_int_equal(t.page_size, rows[i].page);
        assert_int_equal(t.offset, rows[i].offset);
        assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
        assert_int_equal(rig_free(&r, h), 0);
    }
    rig_end(&r);
}

static void test_cost_counts_entries_by_size(void **state)
{
    struct fake_cost before, after;
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 8 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    fake_get_cost(r.fake, 0, &before);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 0, 8 * MIB, RW), 0);
    fake_get_cost(r.fake, 0, &after);
    assert_int_equal(after.pte_writes - before.pte_writes, 4);
    assert_int_equal(after.table_allocs - before.table_allocs, 0);
    before = after;
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA + 64 * MIB + 4096, 0, 8 * MIB, RW), 0);
    fake_get_cost(r.fake, 0, &after);
    assert_int_equal(after.pte_writes - before.pte_writes, 2048);
    assert_int_equal(after.table_allocs - before.table_allocs, 5);
    rig_end(&r);
}

static void test_faults_say_who_where_and_why(void **state)
{
    struct fake_translation t;
    struct rig r;

    rig_open(&r, "mi300x:2", "6.12", 0);
    assert_int_equal(fake_gpu_write(r.fake, 1, VA, "x", 1, &t), -EFAULT);
    assert_int_equal(t.reason, FAKE_FAULT_NO_VM);
    assert_int_equal(rig_acquire(&r, 1, r.drm[1]), 0);
    assert_int_equal(fake_gpu_write(r.fake, 1, VA + 5, "x", 1, &t), -EFAULT);
    assert_int_equal(t.reason, FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(t.va, VA + 5);
    assert_string_equal(t.text, "GPU 1, write at 0x700000000005: not mapped; never mapped");
    assert_string_equal(fake_error_text(), t.text);
    assert_int_equal(fake_gpu_read(r.fake, 2, VA, &t, 1, NULL), -EINVAL);
    rig_end(&r);
}

static void test_an_access_crosses_mappings_and_stops_at_a_hole(void **state)
{
    static char out[3 * 4096], in[3 * 4096];
    struct fake_translation t;
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA, 65536, 4096, RW), 0);
    assert_int_equal(gem_va(&r, AMDGPU_VA_OP_MAP, gem, VA + 4096, 0, 4096, RW), 0);
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (char)(i * 7);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA + 100, out, 8000, NULL), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 100, in, 8000, NULL), 0);
    assert_memory_equal(in, out, 8000);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA, out, sizeof(out), &t), -EFAULT);
    assert_int_equal(t.va, VA + 8192);
    /* What came before the fault has happened, as on hardware. */
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, in, 8192, NULL), 0);
    assert_memory_equal(in, out, 8192);
    rig_end(&r);
}

static void test_a_translation_tells_host_memory(void **state)
{
    struct fake_translation t;
    struct rig r;

    rig_start(&r, "mi210", "6.12", 0);
    assert_int_equal(rig_map(&r, rig_must_alloc(&r, 0, VA, MIB, VRAM_RW), 0), 0);
    assert_int_equal(rig_map(&r, rig_must_alloc(&r, 0, VA + MIB, MIB, KFD_MEM_GTT), 0), 0);
    assert_int_equal(fake_gpu_translate(r.fake, 0, VA, FAKE_READ, &t), 0);
    assert_false(t.system);
    assert_int_equal(fake_gpu_translate(r.fake, 0, VA + MIB, FAKE_READ, &t), 0);
    assert_true(t.system);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gem_va_unmap_leaves_the_tlb_until_a_flush),
        cmocka_unit_test(test_a_change_of_rights_needs_a_flush_too),
        cmocka_unit_test(test_a_stale_translation_of_freed_memory_faults),
        cmocka_unit_test(test_faults_say_since_when),
        cmocka_unit_test(test_kfd_unmap_flushes_by_the_owners_generation),
        cmocka_unit_test(test_a_flush_names_its_gpus_only),
        cmocka_unit_test(test_page_size_follows_alignment_and_placement),
        cmocka_unit_test(test_cost_counts_entries_by_size),
        cmocka_unit_test(test_faults_say_who_where_and_why),
        cmocka_unit_test(test_an_access_crosses_mappings_and_stops_at_a_hole),
        cmocka_unit_test(test_a_translation_tells_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
