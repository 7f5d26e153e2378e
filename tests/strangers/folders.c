/* SPDX-License-Identifier: MIT */
/* Folders of a fake machine with two GPUs, and ways to a path: lists, walks, patterns, relative
 * names. What host and fake share lists both. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "fails.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

/* How often a folder lists a name, and as what. */
static int listed(DIR *dir, const char *name, int *type)
{
    struct dirent *e;
    int n = 0;

    assert_non_null(dir);
    rewinddir(dir);
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, name) != 0)
            continue;
        n++;
        if (type != NULL)
            *type = e->d_type;
    }
    return n;
}

static void test_shared_folders_list_host_and_fake(void **state)
{
    static const struct {
        const char *folder, *hosts, *fakes;
    } shared[] = {
        {"/dev", "null", "kfd"},
        {"/dev", "zero", "dri"},
        {"/sys/class", "mem", "kfd"},
        {"/sys/class", "mem", "drm"},
        {"/sys/dev/char", "1:3", "226:128"},
        {"/sys/devices", "system", "virtual"},
        {"/sys/devices/virtual", "mem", "kfd"},
        {"/sys/module", "kernel", "amdgpu"},
    };

    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        DIR *dir = opendir(shared[i].folder);

        if (dir == NULL || listed(dir, shared[i].hosts, NULL) != 1 ||
            listed(dir, shared[i].fakes, NULL) != 1 || listed(dir, ".", NULL) != 1)
            fail_msg("%s", shared[i].folder);
        closedir(dir);
    }
}

static void test_entries_have_the_type_of_what_they_name(void **state)
{
    DIR *dev = opendir("/dev"), *dri = opendir("/dev/dri");
    int type;

    assert_int_equal(listed(dev, "kfd", &type), 1);
    assert_int_equal(type, DT_CHR);
    assert_int_equal(listed(dev, "dri", &type), 1);
    assert_int_equal(type, DT_DIR);
    assert_int_equal(listed(dri, "renderD129", &type), 1);
    assert_int_equal(type, DT_CHR);
    closedir(dev);
    closedir(dri);
}

static void test_a_position_is_found_again(void **state)
{
    DIR *dir = opendir("/dev");
    struct dirent *e;
    static char names[512][256];
    long at[512];
    int n = 0;

    assert_non_null(dir);
    do {
        at[n] = telldir(dir);
        e = readdir(dir);
        snprintf(names[n], sizeof(names[n]), "%s", e != NULL ? e->d_name : "");
    } while (e != NULL && ++n < 511);
    while (n-- > 0) {
        seekdir(dir, at[n]);
        e = readdir(dir);
        assert_non_null(e);
        assert_string_equal(e->d_name, names[n]);
    }
    closedir(dir);
}

static int is_kfd_or_null(const struct dirent *e)
{
    return strcmp(e->d_name, "kfd") == 0 || strcmp(e->d_name, "null") == 0;
}

static void test_scandir_sorts_both(void **state)
{
    int root = open("/", O_RDONLY | O_DIRECTORY);
    struct dirent **list;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(i == 0 ? scandir("/dev", &list, is_kfd_or_null, alphasort)
                                : scandirat(root, "dev", &list, is_kfd_or_null, alphasort),
                         2);
        assert_string_equal(list[0]->d_name, "kfd");
        assert_string_equal(list[1]->d_name, "null");
        free(list[0]);
        free(list[1]);
        free(list);
    }
    close(root);
}

static void test_patterns(void **state)
{
    static const struct {
        const char *pattern;
        size_t matches;
    } patterns[] = {
        {NODES "/*/gpu_id", 4},      {"/dev/dri/renderD*", 2},
        {"/dev/k[f]d", 1},           {"/d*v/dr?/card[01]", 2},
        {"/sys/class/{kfd,drm}", 2}, {"/sys/c*s/kfd/kfd/topology/sys*", 1},
        {"/dev/n[u]ll", 1},          {"/dev/dri/renderD4*", 0},
    };

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found;
        int err = glob(patterns[i].pattern, GLOB_BRACE, NULL, &found);

        if (err != (patterns[i].matches == 0 ? GLOB_NOMATCH : 0) ||
            found.gl_pathc != patterns[i].matches)
            fail_msg("%s: %zu matches, error %d", patterns[i].pattern, found.gl_pathc, err);
        globfree(&found);
    }
}

static int walked, nodes_seen;

static int count_files(const char *path, const struct stat *st, int type, struct FTW *where)
{
    walked++;
    if (strcmp(path + where->base, "gpu_id") == 0 && type == FTW_F)
        nodes_seen++;
    return 0;
}

static int only_devices(const char *path, const struct stat *st, int type, struct FTW *where)
{
    if (S_ISCHR(st->st_mode) && (major(st->st_rdev) == 226 || major(st->st_rdev) == 235))
        nodes_seen++;
    if (type == FTW_D && where->level == 1 && strcmp(path, "/dev/dri") != 0)
        return FTW_SKIP_SUBTREE;
    return FTW_CONTINUE;
}

static int count_all(const char *path, const struct stat *st, int type)
{
    nodes_seen += strstr(path, "/gpu_id") != NULL && type == FTW_F;
    return 0;
}

static void test_walks(void **state)
{
    nodes_seen = 0;
    assert_int_equal(nftw("/sys/class/kfd/kfd/topology", count_files, 8, FTW_PHYS), 0);
    assert_int_equal(nodes_seen, 4);
    assert_true(walked > 20);
    nodes_seen = 0;
    assert_int_equal(nftw("/dev", only_devices, 8, FTW_PHYS | FTW_ACTIONRETVAL), 0);
    assert_int_equal(nodes_seen, 5);
    /* Links lead around in circles. */
    nodes_seen = 0;
    assert_int_equal(ftw("/sys/class/kfd", count_all, 8), 0);
    assert_int_equal(nodes_seen, 4);
    assert_fails(nftw("/sys/class/kfd/none", count_files, 8, FTW_PHYS), ENOENT);
}

static void must_be_here(const char *expected)
{
    char here[4096];

    assert_non_null(getcwd(here, sizeof(here)));
    assert_string_equal(here, expected);
}

static void test_the_working_directory_can_be_the_fakes(void **state)
{
    int before = open(".", O_RDONLY | O_DIRECTORY), fd;
    char here[4096], small[4];
    struct stat st;
    DIR *dir;

    assert_fails(chdir("/dev/kfd"), ENOTDIR);
    assert_int_equal(chdir("/dev/dri"), 0);
    must_be_here("/dev/dri");
    assert_null(getcwd(small, sizeof(small)));
    assert_int_equal(errno, ERANGE);
    assert_int_equal(stat("renderD128", &st), 0);
    assert_int_equal(st.st_rdev, makedev(226, 128));
    assert_int_equal(stat("../kfd", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    dir = opendir(".");
    assert_int_equal(listed(dir, "card1", NULL), 1);
    closedir(dir);
    assert_int_equal(chdir(".."), 0);
    must_be_here("/dev");
    fd = open("null", O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chdir("/sys/class/drm/renderD128"), 0);
    assert_non_null(getcwd(here, sizeof(here)));
    assert_memory_equal(here, "/sys/devices/pci", 16);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(access("dev/kfd", R_OK | W_OK), 0);
    assert_int_equal(access("sys/class/kfd/../mem", F_OK), 0);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_int_equal(access("dev/kfd", F_OK), -1);
}

static void test_names_that_go_on_from_a_descriptor(void **state)
{
    int root = open("/", O_PATH), sys, class, kfd;
    struct stat by_fd, by_name;
    DIR *dir;

    sys = openat(root, "sys", O_RDONLY | O_DIRECTORY);
    class = openat(sys, "class", O_PATH | O_DIRECTORY);
    kfd = openat(class, "kfd", O_RDONLY | O_DIRECTORY);
    assert_true(root >= 0 && sys >= 0 && class >= 0 && kfd >= 0);
    assert_int_equal(faccessat(kfd, "kfd/topology/nodes/0/gpu_id", R_OK, 0), 0);
    /* Out of the fake's folder again. */
    assert_int_equal(faccessat(kfd, "../mem", F_OK, 0), 0);
    assert_int_equal(faccessat(kfd, "../kfd", F_OK, 0), 0);
    assert_int_equal(faccessat(kfd, "../no-such-class", F_OK, 0), -1);
    assert_int_equal(fstatat(root, "dev/kfd", &by_name, 0), 0);
    assert_true(S_ISCHR(by_name.st_mode));
    dir = fdopendir(openat(root, "dev", O_RDONLY | O_DIRECTORY));
    assert_int_equal(listed(dir, "kfd", NULL), 1);
    assert_int_equal(fstatat(dirfd(dir), "kfd", &by_fd, 0), 0);
    assert_int_equal(by_fd.st_rdev, by_name.st_rdev);
    closedir(dir);
    close(kfd);
    close(class);
    close(sys);
    close(root);
}

static void test_dots_behind_a_link_lead_where_it_leads(void **state)
{
    char text[16] = "";
    FILE *f = fopen("/sys/class/drm/renderD128/../../vendor", "r");

    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    assert_string_equal(text, "0x1002\n");
    fclose(f);
    assert_int_equal(access("/sys/class/kfd/kfd/../../mem", F_OK), 0);
    assert_int_equal(access("/tmp/../dev/kfd", F_OK), 0);
    assert_int_equal(access("/dev/./dri//renderD128", F_OK), 0);
    assert_fails(access("/no-such-folder/../dev/kfd", F_OK), ENOENT);
}

static void test_nothing_of_the_fakes_can_be_changed(void **state)
{
    const char *paths[] = {"/dev/kfd", "/dev/dri/renderD128", NODES "/0/gpu_id"};

    for (int i = 0; i < 3; i++) {
        assert_fails(unlink(paths[i]), EPERM);
        assert_fails(rename(paths[i], "/tmp/strangers-moved"), EPERM);
        assert_fails(link(paths[i], "/tmp/strangers-moved"), EPERM);
        assert_fails(chmod(paths[i], 0600), EPERM);
        assert_fails(chown(paths[i], 1, 1), EPERM);
        assert_int_equal(access(paths[i], F_OK), 0);
    }
    assert_fails(mkdir("/dev/dri", 0700), EEXIST);
    assert_fails(mkdir("/dev/dri/more", 0700), EPERM);
    assert_fails(symlink("/tmp", "/sys/class/kfd/more"), EPERM);
    assert_fails(open(NODES "/0/more", O_RDWR | O_CREAT, 0600), EACCES);
}

static void test_nothing_can_be_made_there(void **state)
{
    const char *paths[] = {"/dev/kfd", "/dev/dri", "/dev/dri/renderD128", "/sys/class/kfd",
                           NODES "/0/gpu_id"};
    struct timeval times[2] = {{1, 0}, {1, 0}};
    struct utimbuf both = {1, 1};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const char *path = paths[i];

        assert_fails(remove(path), EPERM);
        assert_fails(mknod(path, S_IFCHR | 0666, makedev(1, 3)), EEXIST);
        assert_fails(mkfifo(path, 0600), EEXIST);
        assert_fails(setxattr(path, "user.x", "y", 1, 0), EPERM);
        assert_fails(lremovexattr(path, "user.x"), EPERM);
        assert_fails(utimes(path, times), EPERM);
        assert_fails(lutimes(path, times), EPERM);
        assert_fails(utime(path, &both), EPERM);
        assert_fails(utime(path, NULL), EPERM);
    }
    assert_fails(mknod("/dev/dri/renderD7", S_IFCHR | 0666, makedev(1, 3)), EPERM);
    assert_fails(mkfifo("/sys/class/kfd/more", 0600), EPERM);
}

/* The folder of the machine's that holds the tree, by its own name: it is mapped. */
static void find_tree(char *path, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], *start = NULL, *end;

    assert_non_null(maps);
    while (start == NULL && fgets(line, sizeof(line), maps) != NULL) {
        end = strstr(line, "/state");
        if (strstr(line, "/kfdirect-fake-") != NULL && end != NULL) {
            *end = '\0';
            start = strchr(line, '/');
        }
    }
    fclose(maps);
    assert_non_null(start);
    snprintf(path, size, "%s/tree", start);
}

/* Whoever removes a folder by names relative to it must not remove the host's. */
static void test_the_machines_own_folder_leads_nowhere_else(void **state)
{
    int before = open(".", O_RDONLY | O_DIRECTORY), kfd = open("/dev/kfd", O_RDWR), tree, dev;
    char path[4096];
    struct stat st, host;

    assert_true(kfd >= 0);
    assert_int_equal(access("/sys/class/kfd/kfd/dev", F_OK), 0);
    find_tree(path, sizeof(path));
    tree = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(tree >= 0);
    assert_int_equal(stat("/dev", &host), 0);
    assert_int_equal(fstatat(tree, "dev", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(st.st_dev != host.st_dev || st.st_ino != host.st_ino);
    assert_fails(faccessat(tree, "dev/null", F_OK, 0), ENOENT);
    assert_fails(faccessat(tree, "proc/self", F_OK, 0), ENOENT);
    dev = openat(tree, "dev", O_RDONLY | O_DIRECTORY);
    assert_true(dev >= 0);
    assert_fails(faccessat(dev, "null", F_OK, 0), ENOENT);
    assert_fails(faccessat(dev, "shm", F_OK, 0), ENOENT);
    assert_int_equal(fchdir(dev), 0);
    assert_fails(access("null", F_OK), ENOENT);
    assert_int_equal(chdir(path), 0);
    assert_fails(access("dev/null", F_OK), ENOENT);
    assert_int_equal(fchdir(before), 0);
    close(before);
    close(kfd);
    close(tree);
    close(dev);
}

static void test_a_watch_can_be_set(void **state)
{
    int fd = inotify_init1(IN_NONBLOCK);
    char buf[256];

    assert_true(inotify_add_watch(fd, "/dev/dri", IN_CREATE) >= 0);
    assert_true(inotify_add_watch(fd, "/dev/kfd", IN_DELETE_SELF) >= 0);
    assert_true(inotify_add_watch(fd, NODES "/0/gpu_id", IN_MODIFY) >= 0);
    assert_fails(read(fd, buf, sizeof(buf)), EAGAIN);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_folders_list_host_and_fake),
        cmocka_unit_test(test_entries_have_the_type_of_what_they_name),
        cmocka_unit_test(test_a_position_is_found_again),
        cmocka_unit_test(test_scandir_sorts_both),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_the_working_directory_can_be_the_fakes),
        cmocka_unit_test(test_names_that_go_on_from_a_descriptor),
        cmocka_unit_test(test_dots_behind_a_link_lead_where_it_leads),
        cmocka_unit_test(test_nothing_of_the_fakes_can_be_changed),
        cmocka_unit_test(test_nothing_can_be_made_there),
        cmocka_unit_test(test_the_machines_own_folder_leads_nowhere_else),
        cmocka_unit_test(test_a_watch_can_be_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
