/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include "fake/preload/live.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fake/proctree.h"

#define PROC "/sys/devices/virtual/kfd/kfd/proc"

/* A folder of the fake's, and where it is written out. */
struct folder {
    struct fake *fake;
    const char *path, *file;
    const char *root; /* of the tree */
};

static void write_folder(const struct folder *folder);

static void write_file(const struct folder *at)
{
    char text[4096], fresh[PRELOAD_PATH + 16];
    int n = fake_proctree_read(at->fake, at->path, text, sizeof(text)), fd;

    /* Not where somebody lists. */
    snprintf(fresh, sizeof(fresh), "%s/.new", at->root);
    fd = n >= 0 ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444) : -1;
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)n) != n || rename(fresh, at->file) != 0)
        unlink(fresh);
    close(fd);
}

static int write_entry(void *arg, const char *name)
{
    const struct folder *folder = arg;
    char path[PRELOAD_PATH], file[PRELOAD_PATH];
    struct folder entry = {folder->fake, path, file, folder->root};

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= sizeof(path) ||
        (size_t)snprintf(file, sizeof(file), "%s/%s", folder->file, name) >= sizeof(file))
        return 0;
    if (fake_proctree_lookup(folder->fake, path) != FAKE_SYSFS_DIR) {
        write_file(&entry);
    } else if (mkdir(file, 0755) == 0 || errno == EEXIST) {
        write_folder(&entry);
    }
    return 0;
}

/* What is gone. */
static void remove_rest(const struct folder *folder)
{
    char path[PRELOAD_PATH], file[PRELOAD_PATH];
    DIR *dir = opendir(folder->file);
    struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", folder->path, e->d_name) >=
                sizeof(path) ||
            (size_t)snprintf(file, sizeof(file), "%s/%s", folder->file, e->d_name) >= sizeof(file))
            continue;
        if (fake_proctree_lookup(folder->fake, path) == FAKE_SYSFS_NONE)
            fake_sysfs_remove_tree(file);
    }
    if (dir != NULL)
        closedir(dir);
}

static void write_folder(const struct folder *folder)
{
    fake_proctree_list(folder->fake, folder->path, write_entry, (void *)(uintptr_t)folder);
    remove_rest(folder);
}

void preload_refresh(struct fake *fake, const char *root, const char *path)
{
    char file[PRELOAD_PATH];
    struct folder all = {fake, PROC, file, root};
    int saved = errno, lock;

    if (!fake_proctree_owns(path) || preload_inside() || !preload_is_self())
        return;
    preload_enter();
    snprintf(file, sizeof(file), "%.*s" PROC, (int)FAKE_PATH_SIZE + 32, root);
    /* One process at a time, threads included: each opens the folder anew. */
    lock = open(file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX) == 0)
        write_folder(&all);
    if (lock >= 0)
        close(lock);
    preload_leave();
    errno = saved;
}
