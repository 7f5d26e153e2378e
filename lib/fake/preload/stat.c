/* SPDX-License-Identifier: MIT */
/* The families that ask about a file: stat and access. */
#include "fake/preload/preload.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"
#include "fake/sysfs.h"

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

/* The file of the tree that stands for a node tells times and a number. */
static void fill_stat(const char *path, dev_t dev, uint32_t presence, struct stat64 *st)
{
    const struct preload_real *real = preload_real();
    const char *root = preload_root();
    char file[PRELOAD_PATH + 32];
    struct stat64 host = {0};

    snprintf(file, sizeof(file), "%.*s%s", (int)PRELOAD_PATH - 32, root != NULL ? root : "", path);
    if (root == NULL || real->fstatat64(AT_FDCWD, file, st, 0) != 0)
        memset(st, 0, sizeof(*st));
    real->fstatat64(AT_FDCWD, preload_host_like(path), &host, 0);
    st->st_dev = host.st_dev;
    st->st_mode = S_IFCHR | (presence == FAKE_DENIED ? 0660 : 0666);
    st->st_nlink = 1;
    st->st_uid = 0;
    st->st_gid = 0;
    st->st_rdev = dev;
    st->st_size = 0;
    st->st_blksize = 4096;
    st->st_blocks = 0;
}

/* A PCI function's. */
static bool is_config(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strcmp(slash, "/config") == 0;
}

/* In sysfs all is root's, and a file's size is a page whatever is in it, but for binary ones. */
static void dress(const char *path, struct stat64 *st)
{
    const char *like = preload_host_like(path);
    struct stat64 host;

    if (preload_real()->fstatat64(AT_FDCWD, like, &host, 0) == 0)
        st->st_dev = host.st_dev;
    st->st_uid = 0;
    st->st_gid = 0;
    st->st_blocks = 0;
    st->st_blksize = 4096;
    if (strncmp(like, "/dev", 4) != 0)
        st->st_size = !S_ISREG(st->st_mode) || strcmp(like, "/sys") != 0 ? 0
                      : is_config(path)                                  ? st->st_size
                                                                         : 4096;
}

/* What stat says of a path of the fake's, as the program knows it, or of the open file. */
static int stat_known(const char *path, int fd, struct stat64 *st)
{
    uint32_t presence;
    dev_t dev;

    if (node_number(preload_fake(), path, &dev, &presence) == 0) {
        fill_stat(path, dev, presence, st);
        return 0;
    }
    if (preload_real()->fstatat64(fd, "", st, AT_EMPTY_PATH) != 0)
        return -1;
    dress(path, st);
    return 0;
}

/* Is it a call about a descriptor itself, as fstat is, and is that the fake's? */
static bool is_fakes_fd(int dirfd, const char *path, int flags, char *name)
{
    return (path == NULL || path[0] == '\0') && flags & AT_EMPTY_PATH &&
           preload_is_fakes_fd(dirfd, name);
}

/* The links to open files are the host's, whatever they lead to. */
static bool is_link_to_fd(const char *path, int flags)
{
    return flags & AT_SYMLINK_NOFOLLOW && path != NULL && preload_link_to_fd(path) >= 0;
}

static int stat_at(int dirfd, const char *path, struct stat64 *st, int flags)
{
    char name[PRELOAD_PATH];
    struct preload_place at;
    uint32_t presence;
    dev_t dev;
    int err;

    if (is_fakes_fd(dirfd, path, flags, name))
        return stat_known(name, dirfd, st);
    if (is_link_to_fd(path, flags))
        return preload_real()->fstatat64(dirfd, path, st, flags);
    switch (preload_find(dirfd, path, &at)) {
    case PRELOAD_NODE:
        err = node_number(preload_fake(), at.name, &dev, &presence);
        if (err == 0)
            fill_stat(at.name, dev, presence, st);
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

static struct statx_timestamp time_of(const struct timespec *t)
{
    return (struct statx_timestamp){.tv_sec = t->tv_sec, .tv_nsec = (uint32_t)t->tv_nsec};
}

/* In the words of statx; the mount is that of what the host has there. */
static int fill_statx(const char *path, const struct stat64 *st, unsigned int mask,
                      struct statx *stx)
{
    if (preload_real()->statx(AT_FDCWD, preload_host_like(path), 0, mask, stx) != 0)
        return -1;
    if (stx->stx_mask & STATX_BTIME)
        stx->stx_btime = time_of(&st->st_mtim);
    stx->stx_mask |= STATX_BASIC_STATS;
    stx->stx_mode = (uint16_t)st->st_mode;
    stx->stx_nlink = (uint32_t)st->st_nlink;
    stx->stx_uid = st->st_uid;
    stx->stx_gid = st->st_gid;
    stx->stx_ino = st->st_ino;
    stx->stx_size = (uint64_t)st->st_size;
    stx->stx_blocks = (uint64_t)st->st_blocks;
    stx->stx_blksize = (uint32_t)st->st_blksize;
    stx->stx_rdev_major = major(st->st_rdev);
    stx->stx_rdev_minor = minor(st->st_rdev);
    stx->stx_atime = time_of(&st->st_atim);
    stx->stx_mtime = time_of(&st->st_mtim);
    stx->stx_ctime = time_of(&st->st_ctim);
    stx->stx_attributes &= ~(uint64_t)STATX_ATTR_MOUNT_ROOT;
    return 0;
}

PRELOAD_API int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
                      struct statx *restrict stx)
{
    char name[PRELOAD_PATH];
    struct preload_place at;
    struct stat64 st;

    if (is_fakes_fd(dirfd, path, flags, name))
        return stat_known(name, dirfd, &st) == 0 ? fill_statx(name, &st, mask, stx) : -1;
    if (is_link_to_fd(path, flags))
        return preload_real()->statx(dirfd, path, flags, mask, stx);
    if (preload_find(dirfd, path, &at) == PRELOAD_HOST)
        return preload_real()->statx(at.dirfd, at.name, flags, mask, stx);
    return stat_at(dirfd, path, &st, flags) == 0 ? fill_statx(at.name, &st, mask, stx) : -1;
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
