/* SPDX-License-Identifier: MIT */
/* Which paths are the fake's. */
#ifndef FAKE_PRELOAD_PATH_H
#define FAKE_PRELOAD_PATH_H

#include <fcntl.h>
#include <string.h>

#include "fake/preload/marks.h"

enum preload_where {
    PRELOAD_HOST,
    PRELOAD_TREE, /* below the written-out tree */
    PRELOAD_NODE, /* a device node of the fake's, which may not exist */
};

/* Where a path leads. For HOST and TREE (dirfd, name) is what to give to libc in its place; for
 * NODE name is the node's canonical path. */
struct preload_place {
    int dirfd;
    const char *name;
    const char *tree; /* a folder of the host's, to which the fake adds what is in this one */
    char path[PRELOAD_PATH], shared[PRELOAD_PATH];
};

/* The long way of preload_find. */
enum preload_where preload_look(int dirfd, const char *path, struct preload_place *out);
/* Could a relative path lead from the working directory to the fake? */
bool preload_near_cwd(void);
/* Marks what was just opened if a relative path could lead from there to the fake. */
void preload_mark_opened(int fd, int dirfd, const char *path, int flags);
/* The working directory changed. */
void preload_forget_cwd(void);
/* The path behind a descriptor (or AT_FDCWD), as the program knows it; -errno. */
int preload_path_of(int fd, char out[PRELOAD_PATH]);
/* Makes the path of a file in the machine's folder that by which the program knows it; false: it is
 * none. */
bool preload_known_as(char path[PRELOAD_PATH]);
/* The number of the descriptor, of this process or another, that a path such as /proc/self/fd/N
 * means, or -1. */
int preload_link_to_fd(const char *path);
/* The path of a device node by its number. */
void preload_node_path(dev_t number, char out[PRELOAD_PATH]);
/* What the host has in the file system in which a path of the fake's would be. */
const char *preload_host_like(const char *path);
/* The path of a descriptor that is a node of the fake's or of the tree, as the program knows it;
 * false: it is neither. */
bool preload_look_at_fd(int fd, char out[PRELOAD_PATH]);
/* Takes the tree's folder off the front of a path; false: it was not there. */
bool preload_strip_root(char *path);

static inline bool preload_is_fakes_fd(int fd, char out[PRELOAD_PATH])
{
    return ((unsigned int)fd >= PRELOAD_MARKS || preload_marks_of(fd) != 0) &&
           preload_look_at_fd(fd, out);
}

/* Does a component begin with ".."? */
static inline bool preload_has_dots(const char *path)
{
    for (const char *p = strchr(path, '.'); p != NULL; p = strchr(p + 1, '.')) {
        if (p[1] == '.' && (p == path || p[-1] == '/'))
            return true;
    }
    return false;
}

/* Can this path be none of the fake's? So it is for most, and that must cost nothing. */
static inline bool preload_is_far(int dirfd, const char *path)
{
    const char *p = path + 1;

    if (path[0] != '/')
        return dirfd == AT_FDCWD ? !preload_near_cwd() && !preload_has_dots(path)
                                 : !(preload_marks_of(dirfd) & PRELOAD_FOLDER);
    if ((p[0] == 'd' && p[1] == 'e' && p[2] == 'v') ||
        (p[0] == 's' && p[1] == 'y' && p[2] == 's') ||
        (p[0] == 'p' && p[1] == 'r' && p[2] == 'o') || p[0] == '/' || p[0] == '.' || p[0] == '\0')
        return false;
    return !preload_has_dots(p);
}

static inline enum preload_where preload_find(int dirfd, const char *path,
                                              struct preload_place *out)
{
    out->dirfd = dirfd;
    out->name = path;
    out->tree = NULL;
    if (preload_inside() || path == NULL || path[0] == '\0' || preload_is_far(dirfd, path))
        return PRELOAD_HOST;
    return preload_look(dirfd, path, out);
}

#endif
