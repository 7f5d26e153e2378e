/* SPDX-License-Identifier: MIT */
/* The families that say where a link leads: readlink and realpath. */
#include "fake/preload/preload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

/* What buf holds of a link into the machine's folder, as those of /proc/N/fd are, in the program's
 * words: its size. */
static ssize_t translate(const struct preload_place *at, char *buf, size_t size, size_t n)
{
    char name[PATH_MAX];
    ssize_t all;
    size_t len;

    if (memmem(buf, n, "/kfdirect-fake-", 15) == NULL && n < size)
        return (ssize_t)n;
    all = preload_real()->readlinkat(at->dirfd, at->name, name, sizeof(name) - 1);
    if (all <= 0 || all >= (ssize_t)PRELOAD_PATH)
        return (ssize_t)n;
    name[all] = '\0';
    if (!preload_known_as(name))
        return (ssize_t)n;
    len = strlen(name) < size ? strlen(name) : size;
    memcpy(buf, name, len);
    /* Whoever made it zero before finds the end of the name. */
    memset(buf + len, 0, n - len);
    return (ssize_t)len;
}

static ssize_t readlink_at(int dirfd, const char *path, char *buf, size_t size)
{
    struct preload_place at = {.dirfd = dirfd, .name = path};
    ssize_t n;

    /* A link to an open file is read as it is, whatever it leads to. */
    if ((path == NULL || preload_link_to_fd(path) < 0) &&
        preload_find(dirfd, path, &at) == PRELOAD_NODE)
        return preload_result(access(path, F_OK) == 0 ? -EINVAL : -errno);
    n = preload_real()->readlinkat(at.dirfd, at.name, buf, size);
    return n > 0 && !preload_inside() ? translate(&at, buf, size, (size_t)n) : n;
}

ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room);

PRELOAD_API ssize_t readlink(const char *path, char *buf, size_t size)
{
    return readlink_at(AT_FDCWD, path, buf, size);
}

PRELOAD_API ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
    return readlink_at(dirfd, path, buf, size);
}

PRELOAD_API ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
    return readlink_at(AT_FDCWD, path, buf, size < room ? size : room);
}

PRELOAD_API ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size,
                                     size_t room)
{
    return readlink_at(dirfd, path, buf, size < room ? size : room);
}

PRELOAD_API char *realpath(const char *path, char *out)
{
    char full[PATH_MAX];
    struct preload_place at;
    struct stat64 st;

    if (preload_inside())
        return preload_real()->realpath(path, out);
    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE) {
        if (stat64(path, &st) != 0)
            return NULL;
        strcpy(full, at.name);
    } else {
        if (preload_real()->realpath(at.name, full) == NULL)
            return NULL;
        if (strlen(full) < PRELOAD_PATH)
            preload_known_as(full);
    }
    return out != NULL ? strcpy(out, full) : strdup(full);
}

PRELOAD_API char *__realpath_chk(const char *path, char *out, size_t room)
{
    return realpath(path, out);
}

PRELOAD_API char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}
