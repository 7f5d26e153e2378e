/* SPDX-License-Identifier: MIT */
/* The families that open: open, fopen, opendir. */
#include "fake/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static int open_node(const char *path, int flags)
{
    struct kfd_sys *sys = preload_sys();
    int fd;

    if (flags & O_DIRECTORY)
        return preload_result(-ENOTDIR);
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return preload_result(-EEXIST);
    preload_enter();
    fd = sys->ops->open_path(sys, path, flags);
    preload_leave();
    if (fd >= 0)
        preload_mark(fd, true);
    return preload_result(fd);
}

/* A file of the tree. What its reader may not see has no permission bits. */
static int open_tree(const char *path, int flags, mode_t mode)
{
    const struct preload_real *real = preload_real();
    struct stat64 st;

    if (real->fstatat64(AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode)) {
        if ((st.st_mode & 0777) == 0)
            return preload_result(-EPERM);
        if ((flags & O_ACCMODE) != O_RDONLY)
            return preload_result(-EACCES);
    } else if (flags & O_CREAT) {
        return preload_result(-EACCES);
    }
    return real->openat64(AT_FDCWD, path, flags, mode);
}

int preload_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    char where[PRELOAD_PATH];

    switch (preload_find(dirfd, path, where)) {
    case PRELOAD_NODE:
        return open_node(where, flags);
    case PRELOAD_TREE:
        return open_tree(where, flags, mode);
    default:
        return preload_real()->openat64(dirfd, path, flags, mode);
    }
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
    char where[PRELOAD_PATH];
    FILE *f;
    int fd;

    if (preload_find(AT_FDCWD, path, where) == PRELOAD_HOST)
        return preload_real()->fopen64(path, mode);
    fd = preload_openat(AT_FDCWD, path, flags_of(mode), 0666);
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
    char where[PRELOAD_PATH];

    /* A device node makes no sense as a stream; it is opened as what stands for it in the tree. */
    if (preload_find(AT_FDCWD, path, where) != PRELOAD_TREE)
        return preload_real()->freopen64(path, mode, f);
    return preload_real()->freopen64(where, mode, f);
}

PRELOAD_API FILE *freopen(const char *path, const char *mode, FILE *f)
{
    return reopen_stream(path, mode, f);
}

PRELOAD_API FILE *freopen64(const char *path, const char *mode, FILE *f)
{
    return reopen_stream(path, mode, f);
}

PRELOAD_API DIR *opendir(const char *path)
{
    char where[PRELOAD_PATH];

    switch (preload_find(AT_FDCWD, path, where)) {
    case PRELOAD_NODE:
        errno = ENOTDIR;
        return NULL;
    case PRELOAD_TREE:
        return preload_real()->opendir(where);
    default:
        return preload_real()->opendir(path);
    }
}

PRELOAD_API int scandir64(const char *path, struct dirent64 ***list,
                          int (*filter)(const struct dirent64 *),
                          int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    char where[PRELOAD_PATH];

    return preload_real()->scandir64(
        preload_find(AT_FDCWD, path, where) == PRELOAD_TREE ? where : path, list, filter, compare);
}

/* On 64-bit machines the two kinds of entries are one. */
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one struct dirent");
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat");
_Static_assert(sizeof(off_t) == sizeof(off64_t), "one off_t");

PRELOAD_API int scandir(const char *path, struct dirent ***list,
                        int (*filter)(const struct dirent *),
                        int (*compare)(const struct dirent **, const struct dirent **))
{
    return scandir64(path, (struct dirent64 ***)list,
                     (int (*)(const struct dirent64 *))(void *)filter,
                     (int (*)(const struct dirent64 **, const struct dirent64 **))(void *)compare);
}
