/* SPDX-License-Identifier: MIT */
/*
 * The preload attachment: libc's names for files and descriptors, in front of libc. A path that
 * belongs to the fake is answered from it, a descriptor that came from it is handled by it, all
 * else goes on to libc untouched.
 *
 *   path of sysfs ──> the same path below a folder that holds the written-out tree
 *   path of a device node ──> the fake's own open; the descriptor is real and is marked
 *   marked descriptor ──> close, ioctl, mmap, fstat, read, write by the fake
 *   folder that host and fake share ──> the host's, listed with the fake's entries behind its own
 *
 * Nothing happens until a path or request of the fake's is seen. The fake's own calls to libc come
 * through here again: a thread inside the fake is let through.
 *
 * The project's build switches names to their 64-bit forms by macro; the sources here define both
 * forms, so they undo that first: this header comes before all others.
 */
#ifndef FAKE_PRELOAD_H
#define FAKE_PRELOAD_H

#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef _LARGEFILE64_SOURCE
#define _LARGEFILE64_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "fake/fake_internal.h"

#define PRELOAD_API __attribute__((visibility("default")))
#define PRELOAD_PATH 1024u

/* On 64-bit machines the two kinds of each are one, and one form of each call serves both. */
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one struct dirent");
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat");
_Static_assert(sizeof(off_t) == sizeof(off64_t), "one off_t");

/* Whether this thread is inside the fake; preload_enter and _leave nest. */
extern __thread int preload_depth __attribute__((tls_model("initial-exec")));

static inline bool preload_inside(void)
{
    return preload_depth != 0;
}

static inline void preload_enter(void)
{
    preload_depth++;
}

static inline void preload_leave(void)
{
    preload_depth--;
}

/* The fake, made at the first call; NULL: none was asked for, or it can't be made (said once on
 * stderr). */
struct fake *preload_fake(void);
/* Was one asked for that can't be made? Then there are no devices: the host's are not meant. */
bool preload_failed(void);
/* The same as preload_fake, but only if it was made already. */
struct fake *preload_fake_if_made(void);
/* The fake's system. */
struct kfd_sys *preload_sys(void);
/* Says once, on stderr, that the fake serves. */
void preload_announce(void);
/* False in a child that shares the parent's memory: between vfork and exec. */
bool preload_is_self(void);
/* False there, and in a child that has not called the fake yet. */
bool preload_is_own_process(struct fake *fake);

/* The folder that holds the tree, without a trailing slash; NULL: it can't be written. */
const char *preload_root(void);

/* -errno to libc's convention. */
static inline int preload_result(int ret)
{
    if (ret >= 0)
        return ret;
    errno = -ret;
    return -1;
}

int preload_openat(int dirfd, const char *path, int flags, mode_t mode);

/* Tells libkfdirect in the same process that its system calls are served here. */
PRELOAD_API extern const int kfdirect_fake_preloaded;

#endif
