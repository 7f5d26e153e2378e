/* SPDX-License-Identifier: MIT */
/* The fake as a system: its nodes' facts. Opening and reading are tested by all others. */
#include "rig.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void check(struct rig *r, const char *path, uint32_t mode, uint32_t major, uint32_t minor)
{
    struct kfd_sys_stat st;

    assert_int_equal(r->sys->ops->stat_path(r->sys, path, &st), 0);
    assert_int_equal(st.mode, S_IFCHR | mode);
    assert_int_equal(st.device_major, major);
    assert_int_equal(st.device_minor, minor);
    assert_int_equal(st.uid, 0);
}

static void test_nodes_have_their_numbers_and_modes(void **state)
{
    struct kfd_sys_stat st;
    struct rig r;

    rig_open(&r, "navi31:2", NULL, 0);
    check(&r, "/dev/kfd", 0666, 235, 0);
    check(&r, "/dev/dri/renderD129", 0666, 226, 129);
    check(&r, "/dev/dri/card1", 0666, 226, 1);
    assert_int_equal(r.sys->ops->stat_path(r.sys, "/dev/dri/renderD130", &st), -ENOENT);
    assert_int_equal(r.sys->ops->stat_path(r.sys, "/dev/dri/renderD129x", &st), -ENOENT);
    /* What is not the fake's is the host's. */
    assert_int_equal(r.sys->ops->stat_path(r.sys, "/dev/null", &st), 0);
    assert_int_equal(st.device_major, 1);
    rig_end(&r);
}

/* By its descriptor, the name of the folder's link, as lib/kfd asks in a forked child. */
static void check_fd(struct rig *r, int fd, uint32_t mode, uint32_t major, uint32_t minor)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    check(r, path, mode, major, minor);
}

static void test_an_open_node_is_told_by_its_descriptor(void **state)
{
    int fds[3], status;
    struct rig r;
    pid_t pid;

    rig_open(&r, "navi31:2", NULL, 0);
    fds[0] = rig_open_path(&r, "/dev/kfd");
    fds[1] = rig_open_path(&r, "/dev/dri/renderD129");
    fds[2] = rig_open_path(&r, "/dev/null");
    pid = fork();
    check_fd(&r, fds[0], 0666, 235, 0);
    check_fd(&r, fds[1], 0666, 226, 129);
    check_fd(&r, fds[2], 0666, 1, 3);
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 3; i++)
        r.sys->ops->close_fd(r.sys, fds[i]);
    rig_end(&r);
}

static void test_denied_and_missing_nodes(void **state)
{
    static const char text[] =
        "[machine]\nkfd_node = missing\n[cpu]\nram = 8 GiB\n[gpu]\nlike = navi31\n"
        "render_node = denied\n";
    char path[] = "/tmp/fake-sys-XXXXXX";
    struct fake_options o = {.size = sizeof(o), .machine = path};
    struct kfd_sys_stat st;
    struct rig r = {0};
    int fd = mkstemp(path);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(fake_create(&o, &r.fake), 0);
    unlink(path);
    r.sys = fake_sys(r.fake);
    assert_int_equal(r.sys->ops->stat_path(r.sys, "/dev/kfd", &st), -ENOENT);
    assert_int_equal(rig_open_path(&r, "/dev/kfd"), -ENOENT);
    check(&r, "/dev/dri/renderD128", 0660, 226, 128);
    assert_int_equal(rig_open_path(&r, "/dev/dri/renderD128"), -EACCES);
    fake_destroy(r.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_have_their_numbers_and_modes),
        cmocka_unit_test(test_an_open_node_is_told_by_its_descriptor),
        cmocka_unit_test(test_denied_and_missing_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
