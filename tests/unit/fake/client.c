/* SPDX-License-Identifier: MIT */
/* The shared GEM number that is deleted twice. */
#include "rig.h"

static void test_two_frees_delete_a_third_objects_number(void **state)
{
    const uint32_t flags[] = {0, FAKE_QUIRK_T1};
    uint64_t a, import, victim;
    struct rig r;
    int fd, got;

    for (int i = 0; i < 2; i++) {
        rig_start(&r, "mi300x:1", "6.12", flags[i]);
        a = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
        fd = rig_export(&r, a);
        assert_int_equal(rig_import(&r, 0, fd, VA, &import), 0);
        assert_int_equal(rig_free(&r, import), 0);
        victim = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
        assert_int_equal(rig_free(&r, a), 0);
        /* Its number was the shared one. */
        got = rig_export(&r, victim);
        if (flags[i] == 0)
            assert_true(got >= 0);
        else
            assert_int_equal(got, -ENOENT);
        if (got >= 0)
            rig_close(&r, got);
        rig_close(&r, fd);
        rig_end(&r);
    }
}

static void test_a_reused_number_exports_other_memory(void **state)
{
    uint64_t a, import, victim, thief;
    struct kfd_ioctl_get_dmabuf_info_args info = {0};
    struct rig r;
    int fd;

    rig_start(&r, "mi300x:1", "6.12", FAKE_QUIRK_T1);
    a = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    fd = rig_export(&r, a);
    assert_int_equal(rig_import(&r, 0, fd, VA, &import), 0);
    rig_close(&r, fd);
    assert_int_equal(rig_free(&r, import), 0);
    victim = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    assert_int_equal(rig_free(&r, a), 0);
    thief = rig_must_alloc(&r, 0, 0, 8 * MIB, VRAM_RW);
    fd = rig_export(&r, victim);
    assert_true(fd >= 0);
    info.dmabuf_fd = (uint32_t)fd;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_DMABUF_INFO, &info), 0);
    assert_int_equal(info.size, 8 * MIB);
    rig_close(&r, fd);
    assert_int_equal(rig_free(&r, thief), 0);
    rig_end(&r);
}

static void test_exporting_at_once_is_safe(void **state)
{
    uint64_t a, import, b;
    struct rig r;
    int fd, again;

    rig_start(&r, "mi300x:1", "6.12", FAKE_QUIRK_T1);
    a = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    fd = rig_export(&r, a);
    assert_int_equal(rig_import(&r, 0, fd, VA, &import), 0);
    rig_close(&r, fd);
    assert_int_equal(rig_free(&r, import), 0);
    b = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    fd = rig_export(&r, b);
    assert_int_equal(rig_free(&r, a), 0);
    again = rig_export(&r, b);
    assert_int_equal(lseek(again, 0, SEEK_END), 2 * MIB);
    rig_close(&r, fd);
    rig_close(&r, again);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_frees_delete_a_third_objects_number),
        cmocka_unit_test(test_a_reused_number_exports_other_memory),
        cmocka_unit_test(test_exporting_at_once_is_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
