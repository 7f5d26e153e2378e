/* SPDX-License-Identifier: MIT */
/* Calls that would change what is at a path: nothing of the fake's can be changed that way. */
#include "fake/preload/preload.h"

#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

static bool is_fakes(int dirfd, const char *path, struct preload_place *at)
{
    return preload_find(dirfd, path, at) != PRELOAD_HOST;
}

/* The call on a path of the host's, EPERM on one of the fake's. */
#define AT(dirfd, path, call)          \
    struct preload_place at;           \
                                       \
    if (is_fakes(dirfd, path, &at))    \
        return preload_result(-EPERM); \
    return preload_real()->call

PRELOAD_API int chmod(const char *path, mode_t mode)
{
    AT(AT_FDCWD, path, fchmodat(at.dirfd, at.name, mode, 0));
}

PRELOAD_API int fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    AT(dirfd, path, fchmodat(at.dirfd, at.name, mode, flags));
}

PRELOAD_API int chown(const char *path, uid_t user, gid_t group)
{
    AT(AT_FDCWD, path, fchownat(at.dirfd, at.name, user, group, 0));
}

PRELOAD_API int lchown(const char *path, uid_t user, gid_t group)
{
    AT(AT_FDCWD, path, fchownat(at.dirfd, at.name, user, group, AT_SYMLINK_NOFOLLOW));
}

PRELOAD_API int fchownat(int dirfd, const char *path, uid_t user, gid_t group, int flags)
{
    AT(dirfd, path, fchownat(at.dirfd, at.name, user, group, flags));
}

PRELOAD_API int utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
    AT(dirfd, path, utimensat(at.dirfd, at.name, times, flags));
}

static struct timespec from_micro(const struct timeval *t)
{
    return (struct timespec){t->tv_sec, t->tv_usec * 1000};
}

static int set_times(const char *path, const struct timeval times[2], int flags)
{
    struct timespec both[2];

    if (times == NULL)
        return utimensat(AT_FDCWD, path, NULL, flags);
    if (times[0].tv_usec < 0 || times[0].tv_usec >= 1000000 || times[1].tv_usec < 0 ||
        times[1].tv_usec >= 1000000)
        return preload_result(-EINVAL);
    both[0] = from_micro(&times[0]);
    both[1] = from_micro(&times[1]);
    return utimensat(AT_FDCWD, path, both, flags);
}

PRELOAD_API int utimes(const char *path, const struct timeval times[2])
{
    return set_times(path, times, 0);
}

PRELOAD_API int lutimes(const char *path, const struct timeval times[2])
{
    return set_times(path, times, AT_SYMLINK_NOFOLLOW);
}

PRELOAD_API int utime(const char *path, const struct utimbuf *times)
{
    const struct timespec both[2] = {{times != NULL ? times->actime : 0, 0},
                                     {times != NULL ? times->modtime : 0, 0}};

    return utimensat(AT_FDCWD, path, times != NULL ? both : NULL, 0);
}

PRELOAD_API int unlink(const char *path)
{
    AT(AT_FDCWD, path, unlinkat(at.dirfd, at.name, 0));
}

PRELOAD_API int rmdir(const char *path)
{
    AT(AT_FDCWD, path, unlinkat(at.dirfd, at.name, AT_REMOVEDIR));
}

PRELOAD_API int unlinkat(int dirfd, const char *path, int flags)
{
    AT(dirfd, path, unlinkat(at.dirfd, at.name, flags));
}

PRELOAD_API int mkdirat(int dirfd, const char *path, mode_t mode)
{
    struct preload_place at;

    if (is_fakes(dirfd, path, &at))
        return preload_result(faccessat(dirfd, path, F_OK, 0) == 0 ? -EEXIST : -EPERM);
    return preload_real()->mkdirat(at.dirfd, at.name, mode);
}

PRELOAD_API int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

PRELOAD_API int remove(const char *path)
{
    AT(AT_FDCWD, path, remove(at.name));
}

PRELOAD_API int mknodat(int dirfd, const char *path, mode_t mode, dev_t dev)
{
    struct preload_place at;

    if (is_fakes(dirfd, path, &at))
        return preload_result(faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST
                                                                                     : -EPERM);
    return preload_real()->mknodat(at.dirfd, at.name, mode, dev);
}

PRELOAD_API int mknod(const char *path, mode_t mode, dev_t dev)
{
    return mknodat(AT_FDCWD, path, mode, dev);
}

PRELOAD_API int mkfifoat(int dirfd, const char *path, mode_t mode)
{
    return mknodat(dirfd, path, (mode & 07777) | S_IFIFO, 0);
}

PRELOAD_API int mkfifo(const char *path, mode_t mode)
{
    return mkfifoat(AT_FDCWD, path, mode);
}

/* What programs built before glibc 2.33 call. */
int __xmknod(int version, const char *path, mode_t mode, dev_t *dev);
int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *dev);

PRELOAD_API int __xmknod(int version, const char *path, mode_t mode, dev_t *dev)
{
    return mknod(path, mode, *dev);
}

PRELOAD_API int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *dev)
{
    return mknodat(dirfd, path, mode, *dev);
}

PRELOAD_API int setxattr(const char *path, const char *name, const void *value, size_t size,
                         int flags)
{
    AT(AT_FDCWD, path, setxattr(at.name, name, value, size, flags));
}

PRELOAD_API int lsetxattr(const char *path, const char *name, const void *value, size_t size,
                          int flags)
{
    AT(AT_FDCWD, path, lsetxattr(at.name, name, value, size, flags));
}

PRELOAD_API int removexattr(const char *path, const char *name)
{
    AT(AT_FDCWD, path, removexattr(at.name, name));
}

PRELOAD_API int lremovexattr(const char *path, const char *name)
{
    AT(AT_FDCWD, path, lremovexattr(at.name, name));
}

PRELOAD_API int symlink(const char *to, const char *path)
{
    AT(AT_FDCWD, path, symlinkat(to, at.dirfd, at.name));
}

PRELOAD_API int symlinkat(const char *to, int dirfd, const char *path)
{
    AT(dirfd, path, symlinkat(to, at.dirfd, at.name));
}

static int cut(const char *path, off64_t size)
{
    struct preload_place at;

    switch (preload_find(AT_FDCWD, path, &at)) {
    case PRELOAD_NODE:
        return preload_result(-EINVAL);
    case PRELOAD_TREE:
        return preload_result(-EACCES);
    default:
        return preload_real()->truncate64(at.name, size);
    }
}

PRELOAD_API int truncate(const char *path, off_t size)
{
    return cut(path, size);
}

PRELOAD_API int truncate64(const char *path, off64_t size)
{
    return cut(path, size);
}

PRELOAD_API int renameat2(int dirfd, const char *path, int newfd, const char *to,
                          unsigned int flags)
{
    struct preload_place from, at;

    if (is_fakes(dirfd, path, &from) || is_fakes(newfd, to, &at))
        return preload_result(-EPERM);
    return preload_real()->renameat2(from.dirfd, from.name, at.dirfd, at.name, flags);
}

PRELOAD_API int rename(const char *path, const char *to)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, to, 0);
}

PRELOAD_API int renameat(int dirfd, const char *path, int newfd, const char *to)
{
    return renameat2(dirfd, path, newfd, to, 0);
}

PRELOAD_API int linkat(int dirfd, const char *path, int newfd, const char *to, int flags)
{
    struct preload_place from, at;

    if (is_fakes(dirfd, path, &from) || is_fakes(newfd, to, &at))
        return preload_result(-EPERM);
    return preload_real()->linkat(from.dirfd, from.name, at.dirfd, at.name, flags);
}

PRELOAD_API int link(const char *path, const char *to)
{
    return linkat(AT_FDCWD, path, AT_FDCWD, to, 0);
}
