/* SPDX-License-Identifier: MIT */
/* What processes share: accounting, dead processes, the robust lock, sweeping. */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "fake/fake_internal.h"
#include "fake/machine_state.h"

static void machine_of(const struct rig *r, struct fake_machine *m)
{
    *m = r->fake->machine;
}

static void run_child(void (*body)(struct rig *r), struct rig *r, int how)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        body(r);
        if (how == SIGKILL)
            raise(SIGKILL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, how == SIGKILL ? SIGKILL : 0);
}

static void child_allocates(struct rig *r)
{
    struct rig mine = *r;

    mine.kfd = rig_open_path(&mine, "/dev/kfd");
    mine.drm[0] = rig_open_render(&mine, 0);
    if (rig_acquire(&mine, 0, mine.drm[0]) != 0)
        _exit(1);
    for (int i = 0; i < 10; i++)
        rig_must_alloc(&mine, 0, 0, 2 * MIB, VRAM_RW);
}

static void test_a_killed_processs_memory_comes_back(void **state)
{
    struct fake_usage u;
    uint64_t all;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    run_child(child_allocates, &r, SIGKILL);
    assert_int_equal(rig_available(&r, 0), all);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    assert_int_equal(fake_machine_validate(&r.fake->machine), 0);
    rig_end(&r);
}

static void child_dies_with_the_lock(struct rig *r)
{
    child_allocates(r);
    fake_machine_lock(&r->fake->machine);
}

static void test_the_state_survives_a_process_that_dies_with_the_lock(void **state)
{
    uint64_t all, h;
    struct rig r;
    int fd;

    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    run_child(child_dies_with_the_lock, &r, SIGKILL);
    assert_int_equal(rig_available(&r, 0), all - 2 * MIB);
    assert_int_equal(fake_machine_validate(&r.fake->machine), 0);
    assert_int_equal(rig_import(&r, 0, fd, 0, &h), 0);
    close(fd);
    rig_end(&r);
}

static void test_a_destroyed_machine_leaves_no_files(void **state)
{
    struct fake_machine m;
    struct stat st;
    uint64_t h;
    struct rig r;
    int fd;

    rig_start(&r, "mi300x:1", "6.12", 0);
    machine_of(&r, &m);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    assert_int_equal(stat(m.dir, &st), 0);
    rig_end(&r);
    assert_int_equal(stat(m.dir, &st), -1);
    /* Descriptors become plain files. */
    assert_int_equal(lseek(fd, 0, SEEK_END), 2 * MIB);
    close(fd);
}

static void abandon(struct rig *r)
{
    static struct rig mine;

    rig_start(&mine, "mi300x:1", "6.12", 0);
    if (write(r->kfd, mine.fake->machine.dir, FAKE_PATH_SIZE) != FAKE_PATH_SIZE)
        _exit(1);
}

static void test_the_next_machine_sweeps_what_a_killed_process_left(void **state)
{
    char dir[FAKE_PATH_SIZE];
    struct stat st;
    struct rig r = {0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    r.kfd = fds[1];
    run_child(abandon, &r, SIGKILL);
    assert_int_equal(read(fds[0], dir, sizeof(dir)), sizeof(dir));
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(dir[0], '/'); /* a fake of another program may have swept it by now */
    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(stat(dir, &st), -1);
    rig_end(&r);
}

static void base_of(const struct rig *r, char *base)
{
    strcpy(base, r->fake->machine.dir);
    *strrchr(base, '/') = '\0';
}

/* A directory of that age with a state file of that many zeros. */
static void leave_unborn(const char *base, int nr, off_t size, time_t age, char *dir)
{
    struct timespec then[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    char path[FAKE_PATH_SIZE + 8];
    int fd;

    snprintf(dir, FAKE_PATH_SIZE, "%.100s/kfdirect-fake-%d-unborn%d", base, getpid(), nr);
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/state", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
    assert_int_equal(utimensat(AT_FDCWD, dir, then, 0), 0);
}

static void test_old_folders_without_a_state_are_swept(void **state)
{
    static const off_t sizes[] = {0, 4, 4096, sizeof(struct fake_shared)};
    char base[FAKE_PATH_SIZE], old[4][FAKE_PATH_SIZE], young[FAKE_PATH_SIZE];
    char path[FAKE_PATH_SIZE + 8];
    struct stat st;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    base_of(&r, base);
    rig_end(&r);
    for (int i = 0; i < 4; i++)
        leave_unborn(base, i, sizes[i], 3600, old[i]);
    leave_unborn(base, 4, 0, 0, young);
    rig_start(&r, "mi300x:1", "6.12", 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(stat(old[i], &st), -1);
    assert_int_equal(stat(young, &st), 0);
    rig_end(&r);
    snprintf(path, sizeof(path), "%s/state", young);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(young), 0);
}

static void test_a_machine_that_cannot_be_made_leaves_no_folder(void **state)
{
    struct fake_options options = {.size = sizeof(options)};
    char base[FAKE_PATH_SIZE], dir[FAKE_PATH_SIZE], name[32];
    struct rlimit all, none;
    struct fake *fake;
    struct stat st;
    struct rig r;
    int err;

    rig_start(&r, "mi300x:1", "6.12", 0);
    base_of(&r, base);
    rig_end(&r);
    snprintf(name, sizeof(name), "stillborn-%d", getpid());
    snprintf(dir, sizeof(dir), "%.100s/kfdirect-fake-%u-%s", base, geteuid(), name);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    none = (struct rlimit){.rlim_cur = 4096, .rlim_max = all.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    err = fake_create_named(&options, name, &fake);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(err, -EFBIG);
    assert_int_equal(stat(dir, &st), -1);
}

static void test_a_named_machine_is_found_in_any_of_its_places(void **state)
{
    struct fake_options options = {.size = sizeof(options)};
    char tmp[] = "/tmp/fake-places-XXXXXX", dir[FAKE_PATH_SIZE], name[32];
    char before[FAKE_PATH_SIZE];
    const char *old = getenv("TMPDIR");
    struct fake *fake;

    if (old != NULL)
        snprintf(before, sizeof(before), "%s", old);
    assert_non_null(mkdtemp(tmp));
    assert_int_equal(setenv("TMPDIR", tmp, 1), 0);
    snprintf(name, sizeof(name), "places-%d", getpid());
    snprintf(dir, sizeof(dir), "%s/kfdirect-fake-%u-%s", tmp, geteuid(), name);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(fake_create_named(&options, name, &fake), 0);
    assert_string_equal(fake->machine.dir, dir);
    fake_destroy(fake);
    assert_int_equal(rmdir(tmp), 0);
    assert_int_equal(old != NULL ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
}

static void test_no_size_wraps_past_the_limits(void **state)
{
    static const uint32_t kinds[] = {VRAM_RW, KFD_MEM_GTT | KFD_MEM_WRITABLE};
    struct fake_usage before, after;
    struct rig r;
    uint64_t h;

    rig_start(&r, "mi300x:1", "6.12", 0);
    rig_must_alloc(&r, 0, 0, 64 * MIB, VRAM_RW);
    rig_must_alloc(&r, 0, 0, 64 * MIB, kinds[1]);
    assert_int_equal(fake_get_usage(r.fake, &before), 0);
    for (int k = 0; k < 2; k++)
        for (uint64_t less = 4096; less != 0; less <<= 1)
            assert_int_not_equal(rig_alloc(&r, 0, 0, 0 - less, kinds[k], &h), 0);
    assert_int_equal(fake_get_usage(r.fake, &after), 0);
    assert_memory_equal(&before, &after, sizeof(before));
    rig_end(&r);
}

static void test_two_machines_know_nothing_of_each_other(void **state)
{
    uint64_t h;
    struct rig a, b;
    int fd;

    rig_start(&a, "mi300x:1", "6.12", 0);
    rig_open(&b, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&a, 0, 0, 2 * MIB, VRAM_RW);
    fd = rig_export(&a, h);
    assert_int_equal(rig_acquire(&b, 0, a.drm[0]), -EINVAL);
    assert_int_equal(rig_acquire(&b, 0, b.drm[0]), 0);
    assert_int_equal(rig_import(&b, 0, fd, 0, &h), -EINVAL);
    rig_close(&a, fd);
    rig_end(&a);
    rig_end(&b);
}

/* Objects, references and files by chance; the derived state must agree with the records. */
static void test_random_use_keeps_the_books(void **state)
{
    const char *text = getenv("KFDIRECT_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1, all, handles[64] = {0};
    int fds[64];
    struct rig r;

    print_message("# KFDIRECT_SEED=%llu\n", (unsigned long long)seed);
    memset(fds, 0xff, sizeof(fds));
    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    for (int step = 0; step < 4000; step++) {
        uint32_t i, what;

        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        i = (uint32_t)(seed >> 33) % 64;
        what = (uint32_t)(seed >> 40) % 4;
        if (handles[i] == 0 && fds[i] >= 0 && what < 3) {
            assert_int_equal(rig_import(&r, 0, fds[i], 0, &handles[i]), 0);
        } else if (handles[i] == 0) {
            handles[i] = rig_must_alloc(&r, 0, 0, (1 + seed % 4) * MIB, VRAM_RW);
        } else if (fds[i] < 0 && what < 2) {
            fds[i] = rig_export(&r, handles[i]);
        } else if (what < 3) {
            assert_int_equal(rig_free(&r, handles[i]), 0);
            handles[i] = 0;
        }
        if (fds[i] >= 0 && what == 3) {
            rig_close(&r, fds[i]);
            fds[i] = -1;
        }
        if (step % 500 == 0)
            assert_int_equal(fake_machine_validate(&r.fake->machine), 0);
    }
    for (int i = 0; i < 64; i++) {
        if (fds[i] >= 0)
            rig_close(&r, fds[i]);
        if (handles[i] != 0)
            assert_int_equal(rig_free(&r, handles[i]), 0);
    }
    assert_int_equal(rig_available(&r, 0), all);
    assert_int_equal(fake_machine_validate(&r.fake->machine), 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_processs_memory_comes_back),
        cmocka_unit_test(test_the_state_survives_a_process_that_dies_with_the_lock),
        cmocka_unit_test(test_a_destroyed_machine_leaves_no_files),
        cmocka_unit_test(test_the_next_machine_sweeps_what_a_killed_process_left),
        cmocka_unit_test(test_old_folders_without_a_state_are_swept),
        cmocka_unit_test(test_a_machine_that_cannot_be_made_leaves_no_folder),
        cmocka_unit_test(test_a_named_machine_is_found_in_any_of_its_places),
        cmocka_unit_test(test_no_size_wraps_past_the_limits),
        cmocka_unit_test(test_two_machines_know_nothing_of_each_other),
        cmocka_unit_test(test_random_use_keeps_the_books),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
