/* SPDX-License-Identifier: MIT */
/* The families that ask about a file: stat, access, readlink, realpath. */
#include "fake/preload/preload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"
#include "fake/sysfs.h"

#define NODE_DEVICE 5u /* where device nodes live: devtmpfs */
#define PRIMARY_MINORS 128u

/* Device number and presence of a node by its path; -ENOENT. */
static int node_number(const struct fake *fake, const char *path, dev_t *dev, uint32_t *presence)
{
    unsigned int minor;
    int gpu, end = 0;

    if (fake == NULL)
        return -ENOENT;
    if (strcmp(path, "/dev/kfd") == 0) {
        *dev = makedev(FAKE_KFD_MAJOR, 0);
        *presence = fake->profile->kfd_node;
        return *presence == FAKE_MISSING ? -ENOENT : 0;
    }
    if (sscanf(path, "/dev/dri/renderD%u%n", &minor, &end) == 1 && path[end] == '\0') {
        gpu = fake_profile_gpu_by_minor(fake->profile, minor);
    } else if (sscanf(path, "/dev/dri/card%u%n", &minor, &end) == 1 && path[end] == '\0') {
        gpu = fake_profile_gpu_by_minor(fake->profile, minor + PRIMARY_MINORS);
    } else {
        return -ENOENT;
    }
    if (gpu < 0 || fake->profile->gpus[gpu].render_node == FAKE_MISSING)
        return -ENOENT;
    *dev = makedev(FAKE_DRM_MAJOR, minor);
    *presence = fake->profile->gpus[gpu].render_node;
    return 0;
}

static void fill_stat(dev_t dev, uint32_t presence, struct stat64 *st)
{
    memset(st, 0, sizeof(*st));
    st->st_dev = NODE_DEVICE;
    st->st_ino = major(dev) * 1000u + minor(dev);
    st->st_mode = S_IFCHR | (presence == FAKE_DENIED ? 0660 : 0666);
    st->st_nlink = 1;
    st->st_rdev = dev;
    st->st_blksize = 4096;
}

static void fill_statx(dev_t dev, uint32_t presence, struct statx *stx)
{
    struct stat64 st;

    fill_stat(dev, presence, &st);
    memset(stx, 0, sizeof(*stx));
    stx->stx_mask = STATX_BASIC_STATS;
    stx->stx_blksize = 4096;
    stx->stx_nlink = 1;
    stx->stx_mode = (uint16_t)st.st_mode;
    stx->stx_ino = st.st_ino;
    stx->stx_rdev_major = major(dev);
    stx->stx_rdev_minor = minor(dev);
    stx->stx_dev_minor = NODE_DEVICE;
}

/* In sysfs all is root's, and a file's size is a page whatever is in it. */
static void dress(const char *path, struct stat64 *st)
{
    st->st_uid = 0;
    st->st_gid = 0;
    if (!S_ISDIR(st->st_mode))
        st->st_blocks = 0;
    st->st_size = S_ISREG(st->st_mode) && strstr(path, "/proc/") == NULL ? 4096 : 0;
}

/* A call about a descriptor itself, as fstat is: the device behind it, or false. */
static bool device_of_fd(int dirfd, const char *path, int flags, dev_t *dev)
{
    struct preload_device device;
    char name[PRELOAD_PATH];
    uint32_t presence;

    if ((path != NULL && path[0] != '\0') || !(flags & AT_EMPTY_PATH))
        return false;
    if (preload_marked(dirfd)) {
        enum preload_kind kind = preload_kind_of(dirfd, &device);

        *dev = device.number;
        return kind == PRELOAD_KFD || kind == PRELOAD_DRM;
    }
    return preload_marks_of(dirfd) & PRELOAD_FOLDER && preload_fake_if_made() != NULL &&
           !preload_inside() && preload_path_of(dirfd, name) == 0 &&
           node_number(preload_fake(), name, dev, &presence) == 0;
}

static int stat_at(int dirfd, const char *path, struct stat64 *st, int flags)
{
    struct preload_place at;
    uint32_t presence;
    dev_t dev;
    int err;

    if (device_of_fd(dirfd, path, flags, &dev)) {
        fill_stat(dev, FAKE_PRESENT, st);
        return 0;
    }
    switch (preload_find(dirfd, path, &at)) {
    case PRELOAD_NODE:
        err = node_number(preload_fake(), at.name, &dev, &presence);
        if (err == 0)
            fill_stat(dev, presence, st);
        return preload_result(err);
    case PRELOAD_TREE:
        err = preload_real()->fstatat64(at.dirfd, at.name, st, flags & AT_SYMLINK_NOFOLLOW);
        if (err == 0)
            dress(at.name, st);
        return err;
    default:
        return preload_real()->fstatat64(at.dirfd, at.name, st, flags);
    }
}

#define STAT(name, type)                                        \
    PRELOAD_API int name(const char *path, struct type *st)     \
    {                                                           \
        return stat_at(AT_FDCWD, path, (struct stat64 *)st, 0); \
    }
#define LSTAT(name, type)                                                         \
    PRELOAD_API int name(const char *path, struct type *st)                       \
    {                                                                             \
        return stat_at(AT_FDCWD, path, (struct stat64 *)st, AT_SYMLINK_NOFOLLOW); \
    }
#define FSTAT(name, type)                                           \
    PRELOAD_API int name(int fd, struct type *st)                   \
    {                                                               \
        return stat_at(fd, "", (struct stat64 *)st, AT_EMPTY_PATH); \
    }
#define FSTATAT(name, type)                                                       \
    PRELOAD_API int name(int dirfd, const char *path, struct type *st, int flags) \
    {                                                                             \
        return stat_at(dirfd, path, (struct stat64 *)st, flags);                  \
    }

STAT(stat, stat)
STAT(stat64, stat64)
LSTAT(lstat, stat)
LSTAT(lstat64, stat64)
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

/* What programs built before glibc 2.33 call. */
#define OLD(name, now, args, type, ...)            \
    int name(int version, __VA_ARGS__);            \
    PRELOAD_API int name(int version, __VA_ARGS__) \
    {                                              \
        return now args;                           \
    }

OLD(__xstat, stat, (path, st), stat, const char *path, struct stat *st)
OLD(__xstat64, stat64, (path, st), stat64, const char *path, struct stat64 *st)
OLD(__lxstat, lstat, (path, st), stat, const char *path, struct stat *st)
OLD(__lxstat64, lstat64, (path, st), stat64, const char *path, struct stat64 *st)
OLD(__fxstat, fstat, (fd, st), stat, int fd, struct stat *st)
OLD(__fxstat64, fstat64, (fd, st), stat64, int fd, struct stat64 *st)
OLD(__fxstatat, fstatat, (fd, path, st, flags), stat, int fd, const char *path, struct stat *st,
    int flags)
OLD(__fxstatat64, fstatat64, (fd, path, st, flags), stat64, int fd, const char *path,
    struct stat64 *st, int flags)

PRELOAD_API int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
                      struct statx *restrict stx)
{
    struct preload_place at;
    uint32_t presence;
    dev_t dev;
    int err;

    if (device_of_fd(dirfd, path, flags, &dev)) {
        fill_statx(dev, FAKE_PRESENT, stx);
        return 0;
    }
    switch (preload_find(dirfd, path, &at)) {
    case PRELOAD_NODE:
        err = node_number(preload_fake(), at.name, &dev, &presence);
        if (err == 0)
            fill_statx(dev, presence, stx);
        return preload_result(err);
    case PRELOAD_TREE:
        err = preload_real()->statx(at.dirfd, at.name, flags, mask, stx);
        if (err == 0) {
            stx->stx_uid = 0;
            stx->stx_gid = 0;
            if (!S_ISDIR(stx->stx_mode))
                stx->stx_blocks = 0;
            stx->stx_size = S_ISREG(stx->stx_mode) && strstr(at.name, "/proc/") == NULL ? 4096 : 0;
        }
        return err;
    default:
        return preload_real()->statx(at.dirfd, at.name, flags, mask, stx);
    }
}

static int access_at(int dirfd, const char *path, int mode, int flags)
{
    struct preload_place at;
    uint32_t presence;
    dev_t dev;
    int err;

    switch (preload_find(dirfd, path, &at)) {
    case PRELOAD_NODE:
        err = node_number(preload_fake(), at.name, &dev, &presence);
        if (err == 0 && (mode & X_OK || (presence == FAKE_DENIED && mode != F_OK)))
            err = -EACCES;
        return preload_result(err);
    case PRELOAD_TREE:
        /* The tree is the user's, what it stands for is root's. */
        if (mode & W_OK && geteuid() != 0)
            return preload_result(-EACCES);
        break;
    default:
        break;
    }
    return preload_real()->faccessat(at.dirfd, at.name, mode, flags);
}

PRELOAD_API int access(const char *path, int mode)
{
    return access_at(AT_FDCWD, path, mode, 0);
}

PRELOAD_API int eaccess(const char *path, int mode)
{
    return access_at(AT_FDCWD, path, mode, AT_EACCESS);
}

PRELOAD_API int euidaccess(const char *path, int mode)
{
    return access_at(AT_FDCWD, path, mode, AT_EACCESS);
}

PRELOAD_API int faccessat(int dirfd, const char *path, int mode, int flags)
{
    return access_at(dirfd, path, mode, flags);
}

/* "/proc/self/fd/N" of a node names the node, and of a folder of the tree the folder. */
static bool name_behind(const char *path, char *out, size_t size)
{
    struct preload_device device;
    unsigned int number;
    int fd, end = 0;

    if (path == NULL || strncmp(path, "/proc/self/fd/", 14) != 0 ||
        sscanf(path, "/proc/self/fd/%d%n", &fd, &end) != 1 || path[end] != '\0')
        return false;
    if (!preload_marked(fd))
        return preload_marks_of(fd) != 0 && !preload_inside() && preload_path_of(fd, out) == 0;
    switch (preload_kind_of(fd, &device)) {
    case PRELOAD_KFD:
        snprintf(out, size, "/dev/kfd");
        return true;
    case PRELOAD_DRM:
        number = minor(device.number);
        snprintf(out, size, number >= PRIMARY_MINORS ? "/dev/dri/renderD%u" : "/dev/dri/card%u",
                 number);
        return true;
    default:
        return false;
    }
}

static ssize_t readlink_at(int dirfd, const char *path, char *buf, size_t size)
{
    char name[PRELOAD_PATH];
    struct preload_place at;
    size_t len;

    if (name_behind(path, name, sizeof(name))) {
        len = strlen(name) < size ? strlen(name) : size;
        memcpy(buf, name, len);
        return (ssize_t)len;
    }
    if (preload_find(dirfd, path, &at) == PRELOAD_NODE)
        return preload_result(-EINVAL);
    return preload_real()->readlinkat(at.dirfd, at.name, buf, size);
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
    enum preload_where where = preload_find(AT_FDCWD, path, &at);
    uint32_t presence;
    dev_t dev;
    int err;

    if (where == PRELOAD_HOST)
        return preload_real()->realpath(at.name, out);
    if (where == PRELOAD_NODE) {
        err = node_number(preload_fake(), at.name, &dev, &presence);
        if (err != 0) {
            errno = -err;
            return NULL;
        }
        strcpy(full, at.name);
    } else {
        if (preload_real()->realpath(at.name, full) == NULL)
            return NULL;
        preload_strip_root(full);
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

/* Extended attributes: neither the nodes nor the tree have any. */
static bool has_none(const char *path)
{
    struct preload_place at;

    return preload_find(AT_FDCWD, path, &at) != PRELOAD_HOST;
}

PRELOAD_API ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    return has_none(path) ? preload_result(-ENODATA)
                          : preload_real()->getxattr(path, name, value, size);
}

PRELOAD_API ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    return has_none(path) ? preload_result(-ENODATA)
                          : preload_real()->lgetxattr(path, name, value, size);
}

PRELOAD_API ssize_t listxattr(const char *path, char *list, size_t size)
{
    return has_none(path) ? 0 : preload_real()->listxattr(path, list, size);
}

PRELOAD_API ssize_t llistxattr(const char *path, char *list, size_t size)
{
    return has_none(path) ? 0 : preload_real()->llistxattr(path, list, size);
}
