/* SPDX-License-Identifier: MIT */
/* What is known of descriptors: nothing, for nearly all of them. */
#ifndef FAKE_PRELOAD_MARKS_H
#define FAKE_PRELOAD_MARKS_H

#include "fake/preload/preload.h"

enum preload_mark {
    PRELOAD_OURS = 1,   /* an open node or a dma-buf of the fake's */
    PRELOAD_FOLDER = 2, /* a folder (or O_PATH) from which a relative path could lead to the fake,
                         * or a file of the tree */
};

#define PRELOAD_MARKS 65536u /* descriptors from here on are looked at each time */

/* 32 descriptors a word. */
extern _Atomic uint64_t preload_marks[PRELOAD_MARKS / 32];

static inline unsigned int preload_marks_of(int fd)
{
    if ((unsigned int)fd >= PRELOAD_MARKS)
        return 0;
    return (unsigned int)(atomic_load_explicit(&preload_marks[fd / 32], memory_order_relaxed) >>
                          fd % 32 * 2) &
           3u;
}

bool preload_marked_far(int fd);

/* Is it the fake's, and does this thread not come from the fake itself? */
static inline bool preload_marked(int fd)
{
    if ((unsigned int)fd >= PRELOAD_MARKS)
        return preload_marked_far(fd);
    return (preload_marks_of(fd) & PRELOAD_OURS) != 0 && !preload_inside();
}

void preload_mark_new(int fd, unsigned int marks);

/* Replaces the marks of a descriptor. */
static inline void preload_mark(int fd, unsigned int marks)
{
    if (preload_marks_of(fd) != marks)
        preload_mark_new(fd, marks);
}

/* Marks fd if it is the fake's, though it did not come through here; true if it is. */
bool preload_adopt(int fd);

/* What a marked descriptor is now. */
enum preload_kind {
    PRELOAD_NONE, /* the mark is stale: it was closed by a way that is not watched */
    PRELOAD_KFD,
    PRELOAD_DRM,
    PRELOAD_DMABUF,
};

struct preload_device {
    dev_t number; /* of a node */
    int access;   /* O_ACCMODE bits */
};

/* device may be NULL. */
enum preload_kind preload_kind_of(int fd, struct preload_device *device);

#endif
