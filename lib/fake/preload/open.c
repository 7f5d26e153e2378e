/* SPDX-License-Identifier: MIT */
/* The families that open: open and fopen. */
#include "fake/preload/preload.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

/* A path without rights to the device: of the file that stands for it in the tree. */
static int open_place(const char *path, int flags)
{
    char file[PRELOAD_PATH];
    const char *root = preload_root();
    int fd;

    if (root == NULL || strlen(root) + strlen(path) >= sizeof(file))
        return preload_result(-ENOENT);
    snprintf(file, sizeof(file), "%s%s", root, path);
    fd = preload_real()->openat64(AT_FDCWD, file, flags);
    preload_mark(fd, PRELOAD_FOLDER);
    return fd;
}

static int open_node(const char *path, int flags)
{
    struct kfd_sys *sys = preload_sys();
    int fd;

    if (flags & (O_PATH | O_DIRECTORY))
        return open_place(path, flags);
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return preload_result(-EEXIST);
    /* The file would belong to the parent, whose memory this is. */
    if (!preload_is_self() || sys == NULL)
        return preload_result(-ENXIO);
    preload_enter();
    fd = sys->ops->open_path(sys, path, flags);
    preload_leave();
    preload_mark(fd, PRELOAD_OURS);
    return preload_result(fd);
}

/* A file of the tree. What its reader may not see has no permission bits. */
static int open_tree(const char *path, int flags, mode_t mode)
{
    const struct preload_real *real = preload_real();
    struct stat64 st = {0};
    int fd;

    if (!(flags & O_PATH) && real->fstatat64(AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode)) {
        if ((st.st_mode & 0777) == 0)
            return preload_result(-EPERM);
        if ((flags & O_ACCMODE) != O_RDONLY)
            return preload_result(-EACCES);
        flags &= ~(O_TRUNC | O_CREAT);
    } else if (!(flags & O_PATH) && flags & O_CREAT && !S_ISDIR(st.st_mode)) {
        return preload_result(-EACCES);
    }
    fd = real->openat64(AT_FDCWD, path, flags, mode);
    preload_mark(fd, PRELOAD_FOLDER);
    return fd;
}

static int open_found(enum preload_where where, const struct preload_place *at, int flags,
                      mode_t mode)
{
    return where == PRELOAD_NODE ? open_node(at->name, flags) : open_tree(at->name, flags, mode);
}

int preload_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    struct preload_place at;
    enum preload_where where;
    int fd;

    if (preload_inside() || path == NULL)
        return preload_real()->openat64(dirfd, path, flags, mode);
    if (preload_is_far(dirfd, path)) {
        fd = preload_real()->openat64(dirfd, path, flags, mode);
        preload_mark(fd, 0); /* whoever had the number before is gone */
        return fd;
    }
    where = preload_find(dirfd, path, &at);
    if (where != PRELOAD_HOST)
        return open_found(where, &at, flags, mode);
    fd = preload_real()->openat64(at.dirfd, at.name, flags, mode);
    preload_mark_opened(fd, dirfd, path, flags);
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN(name)                                          \
    PRELOAD_API int name(const char *path, int flags, ...)  \
    {                                                       \
        va_list args;                                       \
        mode_t mode;                                        \
                                                            \
        va_start(args, flags);                              \
        mode = mode_of(flags, args);                        \
        va_end(args);                                       \
        return preload_openat(AT_FDCWD, path, flags, mode); \
    }

#define OPENAT(name)                                                  \
    PRELOAD_API int name(int dirfd, const char *path, int flags, ...) \
    {                                                                 \
        va_list args;                                                 \
        mode_t mode;                                                  \
                                                                      \
        va_start(args, flags);                                        \
        mode = mode_of(flags, args);                                  \
        va_end(args);                                                 \
        return preload_openat(dirfd, path, flags, mode);              \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* The checked forms, which compilers put where no mode is given. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

PRELOAD_API int __open_2(const char *path, int flags)
{
    return preload_openat(AT_FDCWD, path, flags, 0);
}

PRELOAD_API int __open64_2(const char *path, int flags)
{
    return preload_openat(AT_FDCWD, path, flags, 0);
}

PRELOAD_API int __openat_2(int dirfd, const char *path, int flags)
{
    return preload_openat(dirfd, path, flags, 0);
}

PRELOAD_API int __openat64_2(int dirfd, const char *path, int flags)
{
    return preload_openat(dirfd, path, flags, 0);
}

PRELOAD_API int creat(const char *path, mode_t mode)
{
    return preload_openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

PRELOAD_API int creat64(const char *path, mode_t mode)
{
    return creat(path, mode);
}

/* open(2)'s flags of an fopen mode. */
static int flags_of(const char *mode)
{
    int flags = mode[0] == 'r'   ? O_RDONLY
                : mode[0] == 'w' ? O_WRONLY | O_TRUNC
                                 : O_WRONLY | O_APPEND;

    if (strchr(mode, '+') != NULL)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    return flags | (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0);
}

static FILE *open_stream(const char *path, const char *mode)
{
    struct preload_place at;
    enum preload_where where = preload_find(AT_FDCWD, path, &at);
    FILE *f;
    int fd;

    if (where == PRELOAD_HOST)
        return preload_real()->fopen64(at.name, mode);
    fd = open_found(where, &at, flags_of(mode), 0666);
    if (fd < 0)
        return NULL;
    f = fdopen(fd, mode);
    if (f == NULL)
        close(fd);
    return f;
}

PRELOAD_API FILE *fopen(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

PRELOAD_API FILE *fopen64(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

static FILE *reopen_stream(const char *path, const char *mode, FILE *f)
{
    struct preload_place at;

    /* A device node makes no sense as a stream. */
    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE) {
        fclose(f);
        errno = ENXIO;
        return NULL;
    }
    return preload_real()->freopen64(at.name, mode, f);
}

PRELOAD_API FILE *freopen(const char *path, const char *mode, FILE *f)
{
    return reopen_stream(path, mode, f);
}

PRELOAD_API FILE *freopen64(const char *path, const char *mode, FILE *f)
{
    return reopen_stream(path, mode, f);
}
