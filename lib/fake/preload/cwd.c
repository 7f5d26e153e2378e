/* SPDX-License-Identifier: MIT */
/* The working directory, and other calls that take a path and change nothing of what is there. */
#include "fake/preload/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

PRELOAD_API int chdir(const char *path)
{
    struct preload_place at;

    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE)
        return preload_result(-ENOTDIR);
    if (!preload_inside())
        preload_forget_cwd();
    return preload_real()->chdir(at.name);
}

PRELOAD_API int fchdir(int fd)
{
    if (!preload_inside())
        preload_forget_cwd();
    return preload_marked(fd) ? preload_result(-ENOTDIR) : preload_real()->fchdir(fd);
}

/* The name without the folder in which the tree lies. */
PRELOAD_API char *getcwd(char *buf, size_t size)
{
    char path[PRELOAD_PATH];

    if (preload_inside() || !preload_near_cwd() || preload_path_of(AT_FDCWD, path) != 0)
        return preload_real()->getcwd(buf, size);
    if (buf == NULL && size == 0)
        return strdup(path);
    if (size == 0 || strlen(path) >= size) {
        errno = size == 0 ? EINVAL : ERANGE;
        return NULL;
    }
    if (buf == NULL)
        buf = malloc(size);
    return buf != NULL ? strcpy(buf, path) : NULL;
}

char *__getcwd_chk(char *buf, size_t size, size_t room);

PRELOAD_API char *__getcwd_chk(char *buf, size_t size, size_t room)
{
    return getcwd(buf, size < room ? size : room);
}

PRELOAD_API char *get_current_dir_name(void)
{
    return getcwd(NULL, 0);
}

/* The tree's files never change, as those of a machine at rest don't. */
PRELOAD_API int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    char file[PRELOAD_PATH];
    struct preload_place at;
    const char *root;

    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE) {
        root = preload_root();
        snprintf(file, sizeof(file), "%s%.*s", root != NULL ? root : "",
                 (int)(sizeof(file) - FAKE_PATH_SIZE - 64), at.name);
        at.name = file;
    }
    return preload_real()->inotify_add_watch(fd, at.name, mask);
}
