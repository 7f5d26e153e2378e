/* SPDX-License-Identifier: MIT */
/*
 * The preload attachment: libc's names for files and descriptors, in front of libc. A path that
 * belongs to the fake is answered from it, a descriptor that came from it is handled by it, all
 * else goes on to libc untouched.
 *
 *   path of sysfs ──> the same path below a folder that holds the written-out tree
 *   path of a device node ──> the fake's own open; the descriptor is real and is marked
 *   marked descriptor ──> close, ioctl, mmap, fstat by the fake
 *
 * Nothing happens until a path or request of the fake's is seen. The fake's own calls to libc come
 * through here again: a thread inside the fake is let through.
 *
 * The project's build switches names to their 64-bit forms by macro; the sources here define both
 * forms, so they undo that first.
 */
#ifndef FAKE_PRELOAD_H
#define FAKE_PRELOAD_H

#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef _LARGEFILE64_SOURCE
#define _LARGEFILE64_SOURCE
#endif

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "fake/fake_internal.h"

#define PRELOAD_API __attribute__((visibility("default")))
#define PRELOAD_PATH 1024u

/* libc's functions behind ours. One form of each family is enough. */
#define PRELOAD_REAL(X)                                                             \
    X(int, openat64, (int, const char *, int, ...))                                 \
    X(FILE *, fopen64, (const char *, const char *))                                \
    X(FILE *, freopen64, (const char *, const char *, FILE *))                      \
    X(DIR *, opendir, (const char *))                                               \
    X(int, scandir64,                                                               \
      (const char *, struct dirent64 ***, int (*)(const struct dirent64 *),         \
       int (*)(const struct dirent64 **, const struct dirent64 **)))                \
    X(int, close, (int))                                                            \
    X(int, close_range, (unsigned int, unsigned int, int))                          \
    X(int, dup, (int))                                                              \
    X(int, dup2, (int, int))                                                        \
    X(int, dup3, (int, int, int))                                                   \
    X(int, fcntl64, (int, int, ...))                                                \
    X(int, ioctl, (int, unsigned long, ...))                                        \
    X(void *, mmap64, (void *, size_t, int, int, int, off64_t))                     \
    X(int, munmap, (void *, size_t))                                                \
    X(int, fstatat64, (int, const char *, struct stat64 *, int))                    \
    X(int, statx, (int, const char *, int, unsigned int, struct statx *))           \
    X(int, faccessat, (int, const char *, int, int))                                \
    X(ssize_t, getxattr, (const char *, const char *, void *, size_t))              \
    X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))             \
    X(ssize_t, listxattr, (const char *, char *, size_t))                           \
    X(ssize_t, llistxattr, (const char *, char *, size_t))                          \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t))                     \
    X(char *, realpath, (const char *, char *))                                     \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                \
    X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *)) \
    X(int, pidfd_getfd, (int, int, unsigned int))

struct preload_real {
#define PRELOAD_FIELD(ret, name, args) ret(*name) args;
    PRELOAD_REAL(PRELOAD_FIELD)
#undef PRELOAD_FIELD
};

const struct preload_real *preload_real(void);

/* Whether this thread is inside the fake; preload_enter and _leave nest. */
bool preload_inside(void);
void preload_enter(void);
void preload_leave(void);

/* The fake, made at the first call; NULL: none was asked for, or it can't be made (said once on
 * stderr). */
struct fake *preload_fake(void);
/* The same, but only if it was made already. */
struct fake *preload_fake_if_made(void);
/* The fake's system, decorated by the log if there is one. */
struct kfd_sys *preload_sys(void);
/* The folder that holds the tree, without a trailing slash; NULL: it can't be written. */
const char *preload_root(void);
/* False in a child that shares the parent's memory (vfork) or has not called the fake yet. */
bool preload_is_own_process(struct fake *fake);

/* Marks of descriptors. */
bool preload_marked(int fd);
void preload_mark(int fd, bool on);
/* Marks fd if it is the fake's, though it did not come through here; true if it is. */
bool preload_adopt(int fd);

enum preload_where {
    PRELOAD_HOST,
    PRELOAD_TREE, /* out: the path below the tree */
    PRELOAD_NODE, /* out: the node's canonical path */
};

/* Where a path leads; out has PRELOAD_PATH bytes. */
enum preload_where preload_find(int dirfd, const char *path, char *out);

/* -errno to libc's convention. */
int preload_result(int ret);

int preload_openat(int dirfd, const char *path, int flags, mode_t mode);

/* Tells libkfdirect in the same process that its system calls are served here. */
PRELOAD_API extern const int kfdirect_fake_preloaded;

#endif
