/* SPDX-License-Identifier: MIT */
/* The shared GEM number that is deleted twice. */
#include "rig.h"

#include <sys/wait.h>

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

/* The file is the GPU's, so a stranger's free takes a number away as well, and so does its end. */
static void test_another_process_deletes_the_number_too(void **state)
{
    uint64_t a, import, victim;
    int fd, status;
    struct rig r;
    pid_t pid;

    for (int frees = 0; frees < 2; frees++) {
        rig_start(&r, "mi300x:1", "6.12", FAKE_QUIRK_T1);
        a = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
        fd = rig_export(&r, a);
        pid = fork();
        if (pid == 0) {
            struct rig own = {.fake = r.fake, .sys = r.sys, .gpus = 1, .id = {r.id[0]}};

            own.kfd = rig_open_path(&own, "/dev/kfd");
            own.drm[0] = rig_open_render(&own, 0);
            if (rig_acquire(&own, 0, own.drm[0]) != 0 || rig_import(&own, 0, fd, VA, &import) != 0)
                _exit(1);
            _exit(frees ? rig_free(&own, import) != 0 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        victim = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
        assert_int_equal(rig_free(&r, a), 0);
        assert_int_equal(rig_export(&r, victim), -ENOENT);
        rig_close(&r, fd);
        rig_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_frees_delete_a_third_objects_number),
        cmocka_unit_test(test_a_reused_number_exports_other_memory),
        cmocka_unit_test(test_exporting_at_once_is_safe),
        cmocka_unit_test(test_another_process_deletes_the_number_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
