/* SPDX-License-Identifier: MIT */
#include "fake/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES FAKE_SYSFS_PATH
#define NAME_BYTES 64u
#define MAX_ARGS 4u
#define MAX_ENTRIES 256u
#define MAX_LINKS 8u
#define PAGE_BYTES 4096u

void fake_text_add(struct fake_text *text, const char *fmt, ...)
{
    size_t room = text->size - text->len;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text->buf + text->len, room, fmt, args);
    va_end(args);
    text->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static const struct fake_sysfs_row *row_at(size_t i)
{
    if (i < fake_topology_row_count)
        return &fake_topology_rows[i];
    i -= fake_topology_row_count;
    return i < fake_device_row_count ? &fake_device_rows[i] : NULL;
}

/* The rows' patterns as a tree of components, made once. */
struct entry {
    const char *name; /* "#" stands for the names its row gives */
    size_t len;
    const struct fake_sysfs_row *row; /* NULL: a folder of the host's */
    struct entry *child, *next;       /* in the rows' order */
};

static struct entry top;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct entry *entry_add(struct entry *parent, const char *name, size_t len)
{
    static struct entry pool[MAX_ENTRIES];
    static size_t used;
    struct entry **link = &parent->child, *e;

    while (*link != NULL)
        link = &(*link)->next;
    if (used == MAX_ENTRIES)
        return NULL;
    e = &pool[used++];
    *e = (struct entry){.name = name, .len = len};
    *link = e;
    return e;
}

static struct entry *entry_find(const struct entry *parent, const char *name, size_t len)
{
    struct entry *e = parent->child;

    while (e != NULL && (e->len != len || memcmp(e->name, name, len) != 0))
        e = e->next;
    return e;
}

/* Two rows may give names for the same '#': each has an entry, and only the first what is below. */
static void make_tree(void)
{
    const struct fake_sysfs_row *row;

    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        const char *at = row->pattern;
        struct entry *e = &top;

        while (e != NULL && *at == '/') {
            size_t n = strcspn(++at, "/");
            struct entry *below = entry_find(e, at, n);

            if (below == NULL || (at[n] == '\0' && below->row != NULL))
                below = entry_add(e, at, n);
            e = below;
            at += n;
        }
        if (e != NULL)
            e->row = row;
    }
}

static const struct entry *tree(void)
{
    pthread_once(&once, make_tree);
    return &top;
}

static bool is_names(const struct entry *e)
{
    return e->name[0] == '#';
}

/* Tries every i for one that gives an entry the name in [at, at + len). */
static bool search_name(const struct fake_profile *p, const struct fake_sysfs_row *row,
                        uint32_t *args, unsigned int n, const char *at, size_t len)
{
    char name[NAME_BYTES];
    uint32_t guess;

    /* Most names are numbers that count from 0. */
    if (at[0] >= '0' && at[0] <= '9') {
        guess = (uint32_t)strtoul(at, NULL, 10);
        if (row->name(p, args, guess, name, sizeof(name)) == 0 && strlen(name) == len &&
            memcmp(name, at, len) == 0) {
            args[n] = guess;
            return true;
        }
    }
    for (uint32_t i = 0; row->name(p, args, i, name, sizeof(name)) == 0; i++) {
        if (strlen(name) == len && memcmp(name, at, len) == 0) {
            args[n] = i;
            return true;
        }
    }
    return false;
}

/* The entry that a component names, or NULL; args and n go on behind a '#'. */
static const struct entry *descend(const struct fake_profile *p, const struct entry *parent,
                                   const char *at, size_t len, uint32_t *args, unsigned int *n)
{
    for (const struct entry *e = parent->child; e != NULL; e = e->next) {
        if (!is_names(e)) {
            if (e->len == len && memcmp(e->name, at, len) == 0)
                return e;
        } else if (e->row != NULL && *n < MAX_ARGS && search_name(p, e->row, args, *n, at, len)) {
            ++*n;
            return e;
        }
    }
    return NULL;
}

int fake_sysfs_normalise(const char *path, char *out)
{
    size_t len = 0;

    if (path[0] != '/')
        return -ENOENT;
    while (*path != '\0') {
        size_t n;

        while (*path == '/')
            path++;
        n = strcspn(path, "/");
        if (n == 2 && memcmp(path, "..", 2) == 0) {
            while (len > 0 && out[--len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && *path == '.')) {
            if (len + n + 2 > PATH_BYTES)
                return -ENAMETOOLONG;
            out[len++] = '/';
            memcpy(out + len, path, n);
            len += n;
        }
        path += n;
    }
    out[len] = '\0';
    return 0;
}

/* Replaces the link at [0, end) of path by what it leads to. */
static int follow(const struct fake_profile *p, const struct fake_sysfs_row *row,
                  const uint32_t *args, char *path, size_t end)
{
    char next[PATH_BYTES];
    struct fake_text text = {next, sizeof(next), 0};

    row->target(p, args, &text);
    fake_text_add(&text, "%s", path + end);
    if (text.len + 1 >= sizeof(next))
        return -ENAMETOOLONG;
    memcpy(path, next, text.len + 1);
    return 0;
}

/*
 * Looks path up, following the links of every component but, unless follow_last, the last; real is
 * where it led. A ".." behind a link is resolved by name before the link is; nothing in this tree
 * is reached that way.
 */
static const struct entry *find(const struct fake_profile *p, const char *path, bool follow_last,
                                char *real, uint32_t *args)
{
    const struct entry *e = tree();
    unsigned int links = 0, n = 0;
    size_t at = 0;

    if (fake_sysfs_normalise(path, real) != 0)
        return NULL;
    while (e != NULL && real[at] == '/') {
        size_t len = strcspn(real + at + 1, "/"), end = at + 1 + len;

        e = descend(p, e, real + at + 1, len, args, &n);
        at = end;
        if (e == NULL || e->row == NULL || e->row->target == NULL ||
            (real[end] == '\0' && !follow_last))
            continue;
        if (links++ == MAX_LINKS || follow(p, e->row, args, real, end) != 0)
            return NULL;
        e = tree();
        at = 0;
        n = 0;
    }
    return e != NULL && e->row != NULL ? e : NULL;
}

bool fake_sysfs_owns(const struct fake_profile *p, const char *path)
{
    static const char *const roots[] = {
        "/sys/class/kfd",     "/sys/class/drm", "/sys/devices/virtual/kfd",
        "/sys/module/amdgpu", "/dev/dri",       "/dev/kfd"};
    const struct entry *e = tree();
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES];
    unsigned int n = 0;

    if (fake_sysfs_normalise(path, real) != 0)
        return false;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        size_t len = strlen(roots[i]);

        if (strncmp(real, roots[i], len) == 0 && (real[len] == '/' || real[len] == '\0'))
            return true;
    }
    /* Anything below a folder or link of ours in a folder of the host's. */
    for (size_t at = 0; e != NULL && real[at] == '/';) {
        size_t len = strcspn(real + at + 1, "/");

        e = descend(p, e, real + at + 1, len, args, &n);
        if (e != NULL && e->row != NULL)
            return true;
        at += 1 + len;
    }
    return false;
}

enum fake_sysfs_kind fake_sysfs_lookup(const struct fake_profile *p, const char *path)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES];
    const struct entry *e = find(p, path, false, real, args);

    if (e == NULL)
        return FAKE_SYSFS_NONE;
    return e->row->print != NULL    ? FAKE_SYSFS_FILE
           : e->row->target != NULL ? FAKE_SYSFS_LINK
                                    : FAKE_SYSFS_DIR;
}

int fake_sysfs_read(const struct fake_profile *p, const char *path, char *buf, size_t size)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES], page[PAGE_BYTES];
    const struct entry *e = find(p, path, true, real, args);
    struct fake_text text = {page, sizeof(page), 0};
    int err;

    if (e == NULL)
        return -ENOENT;
    if (e->row->print == NULL)
        return -EISDIR;
    page[0] = '\0';
    err = e->row->print(p, args, &text);
    if (err != 0)
        return err;
    if (text.len >= size)
        return -EFBIG;
    memcpy(buf, page, text.len + 1);
    return (int)text.len;
}

int fake_sysfs_list(const struct fake_profile *p, const char *path,
                    int (*each)(void *arg, const char *name), void *arg)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES], name[NAME_BYTES];
    const struct entry *dir = find(p, path, true, real, args);
    int err = 0;

    if (dir == NULL)
        return -ENOENT;
    if (dir->row->print != NULL)
        return -ENOTDIR;
    for (const struct entry *e = dir->child; e != NULL && err == 0; e = e->next) {
        if (e->row == NULL)
            continue;
        if (!is_names(e)) {
            snprintf(name, sizeof(name), "%.*s", (int)e->len, e->name);
            err = each(arg, name);
            continue;
        }
        for (uint32_t k = 0; err == 0 && e->row->name(p, args, k, name, sizeof(name)) == 0; k++)
            err = each(arg, name);
    }
    return err;
}

/* The way from the folder of `from` to `to`, both absolute. */
static void relative(const char *from, const char *to, struct fake_text *out)
{
    size_t common = 0;

    for (size_t i = 0; from[i] == to[i] && from[i] != '\0'; i++) {
        if (from[i] == '/')
            common = i + 1;
    }
    for (const char *c = from + common; *c != '\0'; c++) {
        if (*c == '/')
            fake_text_add(out, "../");
    }
    fake_text_add(out, "%s", to + common);
}

int fake_sysfs_readlink(const struct fake_profile *p, const char *path, char *buf, size_t size)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES], target[PATH_BYTES];
    const struct entry *e = find(p, path, false, real, args);
    struct fake_text absolute = {target, sizeof(target), 0}, out = {buf, size, 0};

    if (e == NULL)
        return -ENOENT;
    if (e->row->target == NULL)
        return -EINVAL;
    e->row->target(p, args, &absolute);
    relative(real, target, &out);
    return (int)out.len;
}

static int make_parents(char *path, size_t from)
{
    for (size_t i = from + 1; path[i] != '\0'; i++) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return -errno;
        path[i] = '/';
    }
    return 0;
}

static int write_file(const char *path, const char *text, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    int err = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, text, len) != (ssize_t)len)
        err = -EIO;
    close(fd);
    return err;
}

static int write_row(const struct fake_profile *p, const struct fake_sysfs_row *row,
                     const uint32_t *args, const char *path, size_t root)
{
    char page[PAGE_BYTES], target[PATH_BYTES];
    struct fake_text text = {page, sizeof(page), 0}, absolute = {target, sizeof(target), 0};
    int err;

    if (row->target != NULL) {
        row->target(p, args, &absolute);
        relative(path + root, target, &text);
        return symlink(page, path) == 0 || errno == EEXIST ? 0 : -errno;
    }
    if (row->print == NULL)
        return mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : -errno;
    /* What may not be read has no permission bits, which the preload looks at. */
    err = row->print(p, args, &text);
    return write_file(path, page, err == 0 ? text.len : 0, err == 0 ? 0444 : 0);
}

/* Most folders have been made by what came before. */
static int write_entry(const struct fake_profile *p, const struct fake_sysfs_row *row,
                       const uint32_t *args, char *path, size_t root)
{
    int err = write_row(p, row, args, path, root);

    if (err != -ENOENT)
        return err;
    err = make_parents(path, root);
    return err != 0 ? err : write_row(p, row, args, path, root);
}

static int write_children(const struct fake_profile *p, const struct entry *dir, uint32_t *args,
                          unsigned int n, char *path, size_t root, size_t len);

/* The entry of that name, and what is below it. */
static int write_named(const struct fake_profile *p, const struct entry *e, const char *name,
                       size_t size, uint32_t *args, unsigned int n, char *path, size_t root,
                       size_t len)
{
    int err = 0;

    if (len + size + 2 > PATH_BYTES)
        return -ENAMETOOLONG;
    path[len] = '/';
    memcpy(path + len + 1, name, size);
    len += size + 1;
    path[len] = '\0';
    if (e->row != NULL)
        err = write_entry(p, e->row, args, path, root);
    return err != 0 ? err : write_children(p, e, args, n, path, root, len);
}

static int write_children(const struct fake_profile *p, const struct entry *dir, uint32_t *args,
                          unsigned int n, char *path, size_t root, size_t len)
{
    char name[NAME_BYTES];
    int err = 0;

    for (const struct entry *e = dir->child; e != NULL && err == 0; e = e->next) {
        if (!is_names(e)) {
            err = write_named(p, e, e->name, e->len, args, n, path, root, len);
            continue;
        }
        for (uint32_t i = 0; err == 0 && e->row->name(p, args, i, name, sizeof(name)) == 0; i++) {
            args[n] = i;
            err = write_named(p, e, name, strlen(name), args, n + 1, path, root, len);
        }
    }
    return err;
}

int fake_sysfs_write_tree(const struct fake_profile *p, const char *root)
{
    char path[PATH_BYTES];
    uint32_t args[MAX_ARGS];
    size_t len = strlen(root);

    if (len >= PATH_BYTES / 2)
        return -ENAMETOOLONG;
    memcpy(path, root, len + 1);
    return write_children(p, tree(), args, 0, path, len, len);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove(path);
    return 0;
}

void fake_sysfs_remove_tree(const char *root)
{
    nftw(root, remove_entry, 16, FTW_PHYS | FTW_DEPTH);
}
