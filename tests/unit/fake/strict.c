/* SPDX-License-Identifier: MIT */
/* What strict mode reports and the plain fake lets pass, as the kernel does. */
#include "rig.h"

#define RW (KFD_VA_READ | KFD_VA_WRITE)

struct setup {
    struct rig r;
    uint32_t flags;
    uint64_t h;
    uint32_t gem;
};

static void start(struct setup *s, bool strict)
{
    s->flags = strict ? FAKE_STRICT : 0;
    rig_start(&s->r, "mi300x:2", "6.12", s->flags);
    s->h = rig_must_alloc(&s->r, 0, VA, 4 * MIB, VRAM_RW);
    s->gem = rig_gem(&s->r, s->h, 0);
}

static int va(struct setup *s, uint32_t op, uint64_t addr, uint64_t size)
{
    return rig_va(&s->r, s->r.drm[0], op, s->gem, addr, 0, size, RW);
}

static int clear_a_kfd_mapping(struct setup *s)
{
    assert_int_equal(rig_map(&s->r, s->h, 0), 0);
    return va(s, AMDGPU_VA_OP_CLEAR, VA, 4 * MIB);
}

static int unmap_a_kfd_mapping(struct setup *s)
{
    assert_int_equal(rig_map(&s->r, s->h, 0), 0);
    return va(s, AMDGPU_VA_OP_UNMAP, VA, 4 * MIB);
}

static int cut_a_mapping(struct setup *s)
{
    assert_int_equal(va(s, AMDGPU_VA_OP_MAP, VA, 4 * MIB), 0);
    return va(s, AMDGPU_VA_OP_CLEAR, VA + MIB, MIB);
}

static int replace_a_part(struct setup *s)
{
    assert_int_equal(va(s, AMDGPU_VA_OP_MAP, VA, 4 * MIB), 0);
    return va(s, AMDGPU_VA_OP_REPLACE, VA, MIB);
}

static int free_under_a_mapping(struct setup *s)
{
    assert_int_equal(va(s, AMDGPU_VA_OP_MAP, VA, 4 * MIB), 0);
    return rig_free(&s->r, s->h);
}

static int import_before_acquire(struct setup *s)
{
    int fd = rig_export(&s->r, s->h), drm = rig_open_render(&s->r, 1), ret;
    uint32_t gem;

    ret = rig_prime(&s->r, drm, fd, &gem);
    rig_close(&s->r, fd);
    rig_close(&s->r, drm);
    return ret;
}

static int use_a_stale_translation(struct setup *s)
{
    char c;

    assert_int_equal(va(s, AMDGPU_VA_OP_MAP, VA, 4 * MIB), 0);
    assert_int_equal(fake_gpu_read(s->r.fake, 0, VA, &c, 1, NULL), 0);
    assert_int_equal(va(s, AMDGPU_VA_OP_UNMAP, VA, 4 * MIB), 0);
    return fake_gpu_read(s->r.fake, 0, VA, &c, 1, NULL);
}

static int free_what_a_signal_stopped(struct setup *s)
{
    const struct fake_injection half = {.size = sizeof(half),
                                        .request = 'K' << 8 | KFD_NR_FREE_MEMORY_OF_GPU,
                                        .gpu = FAKE_ANY_GPU,
                                        .fd = FAKE_ANY_FD,
                                        .count = 1,
                                        .point = FAKE_INJECT_MIDDLE,
                                        .error = EINTR};

    assert_int_equal(fake_inject(s->r.fake, &half, NULL), 0);
    assert_int_equal(rig_free(&s->r, s->h), -EINTR);
    return rig_free(&s->r, s->h);
}

static int acquire_through_another_gpus_node(struct setup *s)
{
    struct rig *r = &s->r;
    int drm, ret;

    /* A machine of its own, whose VMs are not acquired. */
    rig_end(r);
    rig_open(r, "mi300x:2", "6.12", s->flags);
    drm = rig_open_render(r, 0);
    ret = rig_acquire(r, 1, drm);
    rig_close(r, drm);
    return ret;
}

static int flush_without_a_vm(struct setup *s)
{
    struct rig *r = &s->r;

    rig_end(r);
    rig_open(r, "mi300x:2", "6.12", s->flags);
    assert_int_equal(rig_acquire(r, 0, r->drm[0]), 0);
    s->h = rig_must_alloc(r, 0, VA, 2 * MIB, VRAM_RW);
    return rig_flush(r, s->h, 1);
}

static void test_undefined_use_is_silent_or_reported(void **state)
{
    static const struct {
        int (*use)(struct setup *s);
        const char *says, *since;
    } rows[] = {
        {clear_a_kfd_mapping, "GEM_VA CLEAR at 0x", "(MAP_MEMORY_TO_GPU), 1 request ago"},
        {unmap_a_kfd_mapping, "GEM_VA UNMAP at 0x", "(MAP_MEMORY_TO_GPU), 1 request ago"},
        {cut_a_mapping, "cuts a mapping", "(GEM_VA MAP), 1 request ago"},
        {replace_a_part, "GEM_VA REPLACE over 0x", "(GEM_VA MAP), 1 request ago"},
        {free_under_a_mapping, "while GEM_VA maps", "(GEM_VA MAP), 1 request ago"},
        {import_before_acquire, "before its VM is acquired", "by an open after request"},
        {use_a_stale_translation, "stale", "unmapped by request"},
        {free_what_a_signal_stopped, "stopped half way", "(FREE_MEMORY_OF_GPU), 1 request ago"},
        {acquire_through_another_gpus_node, "render node of GPU 0 for GPU 1", "by an open after"},
        {flush_without_a_vm, "whose VM is not acquired", "began, 3 requests ago"},
    };
    struct setup s;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        start(&s, false);
        assert_int_equal(rows[i].use(&s), 0);
        assert_int_equal(fake_strict_count(s.r.fake), 0);
        rig_end(&s.r);
        start(&s, true);
        assert_int_equal(rows[i].use(&s), -ENOTRECOVERABLE);
        assert_int_equal(fake_strict_count(s.r.fake), 1);
        assert_non_null(strstr(fake_strict_report(s.r.fake), rows[i].says));
        assert_non_null(strstr(fake_strict_report(s.r.fake), rows[i].since));
        assert_string_equal(fake_error_text(), fake_strict_report(s.r.fake));
        rig_end(&s.r);
    }
}

static void test_proper_use_is_not_reported(void **state)
{
    struct setup s;
    uint64_t import;
    int fd;
    char c;

    start(&s, true);
    fd = rig_export(&s.r, s.h);
    assert_int_equal(rig_import(&s.r, 0, fd, 0, &import), 0);
    rig_close(&s.r, fd);
    assert_int_equal(va(&s, AMDGPU_VA_OP_MAP, VA, 2 * MIB), 0);
    assert_int_equal(va(&s, AMDGPU_VA_OP_MAP, VA + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(fake_gpu_read(s.r.fake, 0, VA, &c, 1, NULL), 0);
    assert_int_equal(va(&s, AMDGPU_VA_OP_REPLACE, VA, 2 * MIB), 0);
    assert_int_equal(rig_flush(&s.r, s.h, 0), 0);
    assert_int_equal(fake_gpu_read(s.r.fake, 0, VA, &c, 1, NULL), 0);
    /* Another handle of the process keeps the memory in place. */
    assert_int_equal(rig_free(&s.r, s.h), 0);
    assert_int_equal(va(&s, AMDGPU_VA_OP_CLEAR, VA, 4 * MIB), 0);
    assert_int_equal(rig_gem_close(&s.r, s.r.drm[0], s.gem), 0);
    assert_int_equal(rig_free(&s.r, import), 0);
    assert_int_equal(fake_strict_count(s.r.fake), 0);
    assert_null(fake_strict_report(s.r.fake));
    rig_end(&s.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undefined_use_is_silent_or_reported),
        cmocka_unit_test(test_proper_use_is_not_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
