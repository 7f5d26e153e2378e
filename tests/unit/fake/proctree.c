/* SPDX-License-Identifier: MIT */
/* /sys/class/kfd/kfd/proc. What the driver shows there is compared by the cts case process.tree. */
#include "rig.h"

#include <stdlib.h>
#include <sys/wait.h>

#define ROOT "/sys/class/kfd/kfd/proc"

static int read_at(struct rig *r, char *buf, size_t size, const char *fmt, ...)
{
    char path[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    return r->sys->ops->read_file(r->sys, path, buf, size);
}

static int join(void *arg, const char *name)
{
    strcat(strcat(arg, name), " ");
    return 0;
}

static int list_at(struct rig *r, char *names, const char *fmt, ...)
{
    char path[256];
    va_list args;

    names[0] = '\0';
    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    return r->sys->ops->list_dir(r->sys, path, join, names);
}

static void test_a_process_appears_with_its_memory(void **state)
{
    char text[512], want[256];
    int pid = getpid();
    struct rig r;
    uint64_t h;

    struct fake_options o = {.size = sizeof(o), .machine = "mi210:2"};

    memset(&r, 0, sizeof(r));
    assert_int_equal(fake_create(&o, &r.fake), 0);
    r.sys = fake_sys(r.fake);
    /* Not before it opens /dev/kfd. */
    assert_int_equal(list_at(&r, text, ROOT), 0);
    assert_string_equal(text, "");
    fake_destroy(r.fake);
    rig_start(&r, "mi210:2", "6.12", 0);
    assert_int_equal(list_at(&r, text, ROOT), 0);
    snprintf(want, sizeof(want), "%d ", pid);
    assert_string_equal(text, want);
    assert_int_equal(list_at(&r, text, "/sys/devices/virtual/kfd/kfd/proc/%d", pid), 0);
    snprintf(want, sizeof(want), "pasid queues stats_%u sdma_%u vram_%u stats_%u sdma_%u vram_%u ",
             r.id[0], r.id[0], r.id[0], r.id[1], r.id[1], r.id[1]);
    assert_string_equal(text, want);
    h = rig_must_alloc(&r, 1, 0, MIB + 1, VRAM_RW);
    rig_must_alloc(&r, 1, 0, MIB, KFD_MEM_GTT);
    assert_true(read_at(&r, text, sizeof(text), ROOT "/%d/vram_%u", pid, r.id[1]) > 0);
    assert_string_equal(text, "1052672\n");
    assert_true(read_at(&r, text, sizeof(text), ROOT "/%d/vram_%u", pid, r.id[0]) > 0);
    assert_string_equal(text, "0\n");
    assert_int_equal(rig_free(&r, h), 0);
    assert_true(read_at(&r, text, sizeof(text), ROOT "/%d/vram_%u", pid, r.id[1]) > 0);
    assert_string_equal(text, "0\n");
    rig_end(&r);
}

static void test_other_processes_are_seen_until_they_end(void **state)
{
    int to[2], from[2], status;
    char text[512], c;
    struct rig r;
    pid_t pid;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid = fork();
    if (pid == 0) {
        struct rig own = {.fake = r.fake, .sys = r.sys, .gpus = 1, .id = {r.id[0]}};
        uint64_t h;

        own.kfd = rig_open_path(&own, "/dev/kfd");
        own.drm[0] = rig_open_render(&own, 0);
        if (rig_acquire(&own, 0, own.drm[0]) != 0 || rig_alloc(&own, 0, 0, MIB, VRAM_RW, &h) != 0)
            _exit(1);
        (void)!write(from[1], "", 1);
        (void)!read(to[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(from[0], &c, 1), 1);
    assert_true(read_at(&r, text, sizeof(text), ROOT "/%d/vram_%u", pid, r.id[0]) > 0);
    assert_string_equal(text, "1048576\n");
    assert_true(read_at(&r, text, sizeof(text), ROOT "/%d/vram_%u", getpid(), r.id[0]) > 0);
    assert_string_equal(text, "0\n");
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(list_at(&r, text, ROOT "/%d", pid), -ENOENT);
    rig_end(&r);
}

static void test_paths_that_lead_nowhere(void **state)
{
    static const struct {
        const char *format; /* pid, then gpu_id */
        int read, list;
    } rows[] = {
        {ROOT "/%d/queues", -EISDIR, 0},
        {ROOT "/%d/queues/0", -ENOENT, -ENOENT},
        {ROOT "/%d/queues/0/size", -ENOENT, -ENOENT},
        {ROOT "/%d/nothing", -ENOENT, -ENOENT},
        {ROOT "/%d/pasid/more", -ENOENT, -ENOENT},
        {ROOT "/%d/pasid", 6, -ENOTDIR},
        {ROOT "/0%d", -ENOENT, -ENOENT},
        {ROOT "/%d/vram_1", -ENOENT, -ENOENT},
        {ROOT "/%d/vram_%u", 2, -ENOTDIR},
        {ROOT "/%d/stats_%u", -EISDIR, 0},
        {ROOT "/%d/stats_%u/cu_occupancy", 2, -ENOTDIR},
        {ROOT "/%d/stats_%u/faults", -ENOENT, -ENOENT},
        {ROOT "/%d/counters_%u", -ENOENT, -ENOENT},
        {ROOT "/%d/a/b/c/d/e", -ENOENT, -ENOENT},
        {ROOT "/%d/../%d/pasid", -ENOENT, -ENOENT},
    };
    char text[512], path[256];
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12+no-svm", 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(path, sizeof(path), rows[i].format, getpid(), r.id[0]);
        assert_int_equal(read_at(&r, text, sizeof(text), "%s", path), rows[i].read);
        assert_int_equal(list_at(&r, text, "%s", path), rows[i].list);
    }
    rig_end(&r);
}

static void test_svm_kernels_count_migrations(void **state)
{
    char text[512];
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12+svm", 0);
    assert_int_equal(list_at(&r, text, ROOT "/%d/counters_%u", getpid(), r.id[0]), 0);
    assert_string_equal(text, "faults page_in page_out ");
    assert_int_equal(
        read_at(&r, text, sizeof(text), ROOT "/%d/counters_%u/faults", getpid(), r.id[0]), 2);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_appears_with_its_memory),
        cmocka_unit_test(test_other_processes_are_seen_until_they_end),
        cmocka_unit_test(test_paths_that_lead_nowhere),
        cmocka_unit_test(test_svm_kernels_count_migrations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
