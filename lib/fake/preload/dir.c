/* SPDX-License-Identifier: MIT */
/*
 * Reading folders. One that host and fake share is the host's, with what the fake adds behind the
 * host's own entries; one of the fake's below /dev says what its nodes are. All others are read by
 * libc alone.
 */
#include "fake/preload/preload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

#define MACHINES "/kfdirect-fake-" /* what the names of their folders begin with */
#define IN_TREE (1L << 62)         /* in a position of telldir */

/* A folder being read that needs more than libc. */
struct reading {
    DIR *dir;   /* as the program knows it */
    DIR *tree;  /* what is added, or dir itself */
    bool added; /* dir is read to its end, tree is not */
    bool nodes; /* the tree's files stand for device nodes */
    bool hides; /* the folders of machines, which no real one has */
    struct reading *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reading *readings; /* under lock */
static atomic_uint count;

static struct reading *find(DIR *dir)
{
    struct reading *r = NULL;

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0 || preload_inside())
        return NULL;
    pthread_mutex_lock(&lock);
    for (r = readings; r != NULL && r->dir != dir; r = r->next)
        ;
    pthread_mutex_unlock(&lock);
    return r;
}

/* dir as it is returned; NULL when there is no memory. */
static DIR *add(DIR *dir, DIR *tree, bool nodes, bool hides)
{
    struct reading *r = malloc(sizeof(*r));

    if (r == NULL) {
        if (tree != dir)
            preload_real()->closedir(tree);
        preload_real()->closedir(dir);
        errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&lock);
    *r = (struct reading){
        .dir = dir, .tree = tree, .nodes = nodes, .hides = hides, .next = readings};
    r->added = dir == tree;
    readings = r;
    atomic_fetch_add(&count, 1);
    pthread_mutex_unlock(&lock);
    return dir;
}

/* Is it the folder below which the machine's lies, in /dev? */
static bool has_machines(DIR *dir)
{
    const char *root = preload_fake_if_made() != NULL ? preload_root() : NULL,
               *at = root != NULL ? strstr(root, MACHINES) : NULL;
    char path[PRELOAD_PATH];

    return at != NULL && preload_marks_of(dirfd(dir)) & PRELOAD_FOLDER &&
           preload_path_of(dirfd(dir), path) == 0 && strlen(path) == (size_t)(at - root) &&
           memcmp(path, root, (size_t)(at - root)) == 0;
}

static DIR *take_up(DIR *dir, enum preload_where where, const struct preload_place *at)
{
    const struct preload_real *real = preload_real();
    DIR *tree;

    if (dir == NULL || preload_inside())
        return dir;
    if (where == PRELOAD_TREE)
        return strstr(at->name, "/dev/dri") != NULL ? add(dir, dir, true, false) : dir;
    if (at->tree == NULL)
        return has_machines(dir) ? add(dir, dir, false, true) : dir;
    tree = real->opendir(at->tree);
    return tree != NULL
               ? add(dir, tree, strcmp(at->tree + strlen(at->tree) - 4, "/dev") == 0, false)
               : dir;
}

static DIR *open_at(int folder, const char *path)
{
    struct preload_place at;
    enum preload_where where = preload_find(folder, path, &at);
    DIR *dir;
    int fd;

    if (where == PRELOAD_NODE) {
        /* That there is no such node, or that it is no folder. */
        fd = preload_openat(folder, path, O_PATH | O_DIRECTORY, 0);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (at.dirfd == AT_FDCWD) {
        dir = preload_real()->opendir(at.name);
    } else {
        fd = preload_real()->openat64(at.dirfd, at.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd >= 0 ? preload_real()->fdopendir(fd) : NULL;
    }
    if (dir != NULL && path != NULL)
        preload_mark_opened(dirfd(dir), folder, path, O_DIRECTORY);
    return take_up(dir, where, &at);
}

PRELOAD_API DIR *opendir(const char *path)
{
    return open_at(AT_FDCWD, path);
}

PRELOAD_API DIR *fdopendir(int fd)
{
    DIR *dir = preload_real()->fdopendir(fd);
    char path[PRELOAD_PATH];
    struct preload_place at;

    if (dir == NULL || !(preload_marks_of(fd) & PRELOAD_FOLDER) || preload_inside() ||
        preload_path_of(fd, path) != 0)
        return dir;
    return take_up(dir, preload_find(AT_FDCWD, path, &at), &at);
}

/* The next of the tree's, but those that every folder has. */
static struct dirent64 *next_added(struct reading *r)
{
    struct dirent64 *e;

    do {
        e = preload_real()->readdir64(r->tree);
    } while (e != NULL && (r->hides ? strncmp(e->d_name, &MACHINES[1], strlen(MACHINES) - 1) == 0
                                    : r->tree != r->dir && (strcmp(e->d_name, ".") == 0 ||
                                                            strcmp(e->d_name, "..") == 0)));
    if (e != NULL && r->nodes && e->d_type == DT_REG)
        e->d_type = DT_CHR;
    return e;
}

/* Is this entry of the host's replaced by one of the fake's? */
static bool is_replaced(const struct reading *r, const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           preload_real()->faccessat(dirfd(r->tree), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct dirent64 *next(DIR *dir)
{
    struct reading *r = find(dir);
    struct dirent64 *e;
    int saved = errno;

    if (r == NULL)
        return preload_real()->readdir64(dir);
    while (!r->added) {
        e = preload_real()->readdir64(dir);
        if (e == NULL)
            r->added = true;
        else if (!is_replaced(r, e->d_name))
            return e;
        errno = saved;
    }
    return next_added(r);
}

PRELOAD_API struct dirent64 *readdir64(DIR *dir)
{
    return next(dir);
}

PRELOAD_API struct dirent *readdir(DIR *dir)
{
    return (struct dirent *)(void *)next(dir);
}

static int next_into(DIR *dir, struct dirent64 *entry, struct dirent64 **result)
{
    struct dirent64 *e;

    if (find(dir) == NULL)
        return preload_real()->readdir64_r(dir, entry, result);
    e = next(dir);
    *result = e != NULL ? memcpy(entry, e, sizeof(*e)) : NULL;
    return 0;
}

PRELOAD_API int readdir64_r(DIR *dir, struct dirent64 *entry, struct dirent64 **result)
{
    return next_into(dir, entry, result);
}

PRELOAD_API int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
    return next_into(dir, (struct dirent64 *)(void *)entry, (struct dirent64 **)(void *)result);
}

PRELOAD_API void rewinddir(DIR *dir)
{
    struct reading *r = find(dir);

    preload_real()->rewinddir(dir);
    if (r != NULL && r->tree != dir) {
        preload_real()->rewinddir(r->tree);
        r->added = false;
    }
}

PRELOAD_API long telldir(DIR *dir)
{
    const struct reading *r = find(dir);

    if (r == NULL || !r->added || r->tree == dir)
        return preload_real()->telldir(dir);
    return preload_real()->telldir(r->tree) | IN_TREE;
}

PRELOAD_API void seekdir(DIR *dir, long position)
{
    struct reading *r = find(dir);

    if (r == NULL || r->tree == dir) {
        preload_real()->seekdir(dir, position);
        return;
    }
    r->added = (position & IN_TREE) != 0;
    if (r->added) {
        preload_real()->seekdir(r->tree, position & ~IN_TREE);
    } else {
        preload_real()->seekdir(dir, position);
        preload_real()->rewinddir(r->tree);
    }
}

/* closedir(NULL) is an error, not a crash. */
static int number_of(void *dir)
{
    return dir != NULL ? dirfd(dir) : -1;
}

PRELOAD_API int closedir(DIR *dir)
{
    struct reading *r = find(dir), **link = &readings;

    if (!preload_inside())
        preload_mark(number_of(dir), 0);
    if (r != NULL) {
        pthread_mutex_lock(&lock);
        while (*link != r)
            link = &(*link)->next;
        *link = r->next;
        atomic_fetch_sub(&count, 1);
        pthread_mutex_unlock(&lock);
        if (r->tree != dir)
            preload_real()->closedir(r->tree);
        free(r);
    }
    return preload_real()->closedir(dir);
}

typedef int choose_fn(const struct dirent64 *);
typedef int order_fn(const struct dirent64 **, const struct dirent64 **);

struct list {
    struct dirent64 **entries;
    size_t count, room;
};

static int append(struct list *l, const struct dirent64 *e)
{
    struct dirent64 **grown;

    if (l->count == l->room) {
        grown = realloc(l->entries, (l->room * 2 + 16) * sizeof(*grown));
        if (grown == NULL)
            return -ENOMEM;
        l->entries = grown;
        l->room = l->room * 2 + 16;
    }
    l->entries[l->count] = malloc(e->d_reclen);
    if (l->entries[l->count] == NULL)
        return -ENOMEM;
    memcpy(l->entries[l->count++], e, e->d_reclen);
    return 0;
}

static int scan(DIR *dir, struct dirent64 ***out, choose_fn *choose, order_fn *order)
{
    struct list l = {0};
    struct dirent64 *e;
    int err = 0;

    while (err == 0 && (e = next(dir)) != NULL) {
        if (choose == NULL || choose(e))
            err = append(&l, e);
    }
    closedir(dir);
    if (err != 0) {
        for (size_t i = 0; i < l.count; i++)
            free(l.entries[i]);
        free(l.entries);
        return preload_result(err);
    }
    if (order != NULL && l.count > 1)
        qsort(l.entries, l.count, sizeof(struct dirent64 *),
              (int (*)(const void *, const void *))(void *)order);
    *out = l.entries;
    return (int)l.count;
}

static int scan_at(int folder, const char *path, struct dirent64 ***out, choose_fn *choose,
                   order_fn *order)
{
    struct preload_place at;
    DIR *dir;

    if (preload_find(folder, path, &at) == PRELOAD_HOST && at.tree == NULL)
        return preload_real()->scandirat64(at.dirfd, at.name, out, choose, order);
    dir = open_at(folder, path);
    return dir != NULL ? scan(dir, out, choose, order) : -1;
}

#define SCAN(name, type)                                                                           \
    PRELOAD_API int name(const char *path, struct type ***out, int (*choose)(const struct type *), \
                         int (*order)(const struct type **, const struct type **))                 \
    {                                                                                              \
        return scan_at(AT_FDCWD, path, (struct dirent64 ***)out, (choose_fn *)(void *)choose,      \
                       (order_fn *)(void *)order);                                                 \
    }
#define SCANAT(name, type)                                                                  \
    PRELOAD_API int name(int folder, const char *path, struct type ***out,                  \
                         int (*choose)(const struct type *),                                \
                         int (*order)(const struct type **, const struct type **))          \
    {                                                                                       \
        return scan_at(folder, path, (struct dirent64 ***)out, (choose_fn *)(void *)choose, \
                       (order_fn *)(void *)order);                                          \
    }

SCAN(scandir, dirent)
SCAN(scandir64, dirent64)
SCANAT(scandirat, dirent)
SCANAT(scandirat64, dirent64)
