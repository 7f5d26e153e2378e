/* SPDX-License-Identifier: MIT */
/* Calls that would change what is at a path: nothing of the fake's can be changed that way. */
#include "fake/preload/preload.h"

#include <sys/time.h>
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
