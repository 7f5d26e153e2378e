/* SPDX-License-Identifier: MIT */
/*
 * What the file system tells: its size and kind, limits, extended attributes, file handles. Of the
 * fake's the host is asked about what it has in the same file system.
 */
#include "fake/preload/preload.h"

#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

#define DMABUF_MAGIC 0x444d4142

_Static_assert(sizeof(struct statfs) == sizeof(struct statfs64), "one struct statfs");
_Static_assert(sizeof(struct statvfs) == sizeof(struct statvfs64), "one struct statvfs");

/* The path to ask about in place of this one; NULL: it is the fake's, and not there. */
static const char *to_ask(const char *path, bool follow, struct preload_place *at)
{
    struct stat64 st;

    if (preload_find(AT_FDCWD, path, at) == PRELOAD_HOST)
        return at->name;
    return (follow ? stat64(path, &st) : lstat64(path, &st)) == 0 ? preload_host_like(at->name)
                                                                  : NULL;
}

/* The same for a descriptor; NULL: itself. */
static const char *to_ask_of(int fd)
{
    char name[PRELOAD_PATH];

    return preload_is_fakes_fd(fd, name) ? preload_host_like(name) : NULL;
}

static bool is_dmabuf(int fd)
{
    return preload_marked(fd) && preload_kind_of(fd, NULL) == PRELOAD_DMABUF;
}

/* The call about a path. */
#define ASK(path, follow, call)                  \
    struct preload_place at;                     \
    const char *ask = to_ask(path, follow, &at); \
                                                 \
    return ask != NULL ? preload_real()->call : -1

PRELOAD_API int statfs64(const char *path, struct statfs64 *out)
{
    ASK(path, true, statfs64(ask, out));
}

PRELOAD_API int statfs(const char *path, struct statfs *out)
{
    return statfs64(path, (struct statfs64 *)(void *)out);
}

PRELOAD_API int fstatfs64(int fd, struct statfs64 *out)
{
    const char *ask = to_ask_of(fd);

    if (is_dmabuf(fd)) {
        *out = (struct statfs64){
            .f_type = DMABUF_MAGIC, .f_bsize = 4096, .f_frsize = 4096, .f_namelen = 255};
        return 0;
    }
    return ask != NULL ? preload_real()->statfs64(ask, out) : preload_real()->fstatfs64(fd, out);
}

PRELOAD_API int fstatfs(int fd, struct statfs *out)
{
    return fstatfs64(fd, (struct statfs64 *)(void *)out);
}

PRELOAD_API int statvfs64(const char *path, struct statvfs64 *out)
{
    ASK(path, true, statvfs64(ask, out));
}

PRELOAD_API int statvfs(const char *path, struct statvfs *out)
{
    return statvfs64(path, (struct statvfs64 *)(void *)out);
}

PRELOAD_API int fstatvfs64(int fd, struct statvfs64 *out)
{
    const char *ask = to_ask_of(fd);

    if (is_dmabuf(fd)) {
        *out = (struct statvfs64){.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};
        return 0;
    }
    return ask != NULL ? preload_real()->statvfs64(ask, out) : preload_real()->fstatvfs64(fd, out);
}

PRELOAD_API int fstatvfs(int fd, struct statvfs *out)
{
    return fstatvfs64(fd, (struct statvfs64 *)(void *)out);
}

PRELOAD_API long pathconf(const char *path, int name)
{
    ASK(path, true, pathconf(ask, name));
}

PRELOAD_API long fpathconf(int fd, int name)
{
    const char *ask = to_ask_of(fd);

    return ask != NULL ? preload_real()->pathconf(ask, name) : preload_real()->fpathconf(fd, name);
}

PRELOAD_API ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    ASK(path, true, getxattr(ask, name, value, size));
}

PRELOAD_API ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    ASK(path, false, lgetxattr(ask, name, value, size));
}

PRELOAD_API ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    const char *ask = to_ask_of(fd);

    /* It is neither a file nor a folder, which alone can have those of users. */
    if (is_dmabuf(fd))
        return preload_result(strncmp(name, "user.", 5) == 0 ? -ENODATA : -EOPNOTSUPP);
    return ask != NULL ? preload_real()->getxattr(ask, name, value, size)
                       : preload_real()->fgetxattr(fd, name, value, size);
}

PRELOAD_API ssize_t listxattr(const char *path, char *list, size_t size)
{
    ASK(path, true, listxattr(ask, list, size));
}

PRELOAD_API ssize_t llistxattr(const char *path, char *list, size_t size)
{
    ASK(path, false, llistxattr(ask, list, size));
}

PRELOAD_API ssize_t flistxattr(int fd, char *list, size_t size)
{
    const char *ask = to_ask_of(fd);

    if (is_dmabuf(fd))
        return 0;
    return ask != NULL ? preload_real()->listxattr(ask, list, size)
                       : preload_real()->flistxattr(fd, list, size);
}

/* The handle of the file in the tree, in the mount in which it seems to be. */
PRELOAD_API int name_to_handle_at(int dirfd, const char *path, struct file_handle *handle,
                                  int *mount, int flags)
{
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } other = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    char name[PRELOAD_PATH], file[PRELOAD_PATH + FAKE_PATH_SIZE];
    const struct preload_real *real = preload_real();
    struct preload_place at;
    struct stat64 st;
    int err;

    if (flags & AT_EMPTY_PATH && path[0] == '\0') {
        if (!preload_is_fakes_fd(dirfd, name))
            return real->name_to_handle_at(dirfd, path, handle, mount, flags);
    } else if (preload_find(dirfd, path, &at) == PRELOAD_HOST) {
        return real->name_to_handle_at(at.dirfd, at.name, handle, mount, flags);
    } else if (fstatat64(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return -1;
    } else {
        snprintf(name, sizeof(name), "%s", at.name);
        preload_strip_root(name);
    }
    snprintf(file, sizeof(file), "%s%s", preload_root(), name);
    err = real->name_to_handle_at(AT_FDCWD, file, handle, mount, flags & AT_SYMLINK_FOLLOW);
    if (err == 0)
        real->name_to_handle_at(AT_FDCWD, preload_host_like(name), &other.head, mount, 0);
    return err;
}
