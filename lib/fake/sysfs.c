/* SPDX-License-Identifier: MIT */
#include "fake/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES FAKE_SYSFS_PATH
#define NAME_BYTES 64u
#define MAX_ARGS 4u
#define KNOWN_NAMES 1024u
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

/* Tries every i for one that gives a '#' the name in [at, at + len). */
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

/* An answer of search_name. Whoever reads a tree asks the same few questions for every file of it,
 * and each asks for all names of a folder. */
struct known_name {
    uint64_t profile; /* its serial */
    const struct fake_sysfs_row *row;
    uint32_t args[MAX_ARGS], n, index;
    bool found;
    char name[NAME_BYTES];
};

static bool match_name(const struct fake_profile *p, const struct fake_sysfs_row *row,
                       uint32_t *args, unsigned int n, const char *at, size_t len)
{
    static _Thread_local struct known_name known[KNOWN_NAMES];
    uint64_t hash = (uintptr_t)row ^ p->serial << 20;
    struct known_name *k;

    if (len >= NAME_BYTES)
        return false;
    if (p->serial == 0) /* not from fake_profile_load */
        return search_name(p, row, args, n, at, len);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)at[i]) * 0x100000001b3ull;
    for (unsigned int i = 0; i < n; i++)
        hash = (hash ^ args[i]) * 0x100000001b3ull;
    k = &known[(hash >> 24) % KNOWN_NAMES];
    if (k->profile != p->serial || k->row != row || k->n != n || k->name[len] != '\0' ||
        memcmp(k->name, at, len) != 0 || memcmp(k->args, args, n * sizeof(args[0])) != 0) {
        *k = (struct known_name){.profile = p->serial, .row = row, .n = n};
        memcpy(k->args, args, n * sizeof(args[0]));
        memcpy(k->name, at, len);
        k->found = search_name(p, row, args, n, at, len);
        k->index = k->found ? args[n] : 0;
    }
    if (k->found)
        args[n] = k->index;
    return k->found;
}

/* The row that names the folder a '#' stands in: the one whose pattern ends right there. */
static const struct fake_sysfs_row *naming_row(const struct fake_sysfs_row *row, size_t len)
{
    const struct fake_sysfs_row *r;

    if (row->pattern[len] == '\0')
        return row;
    for (size_t i = 0; (r = row_at(i)) != NULL; i++) {
        if (strlen(r->pattern) == len && memcmp(r->pattern, row->pattern, len) == 0)
            return r;
    }
    return NULL;
}

/* Matches path with the first `len` bytes of a row's pattern. */
static bool match(const struct fake_profile *p, const struct fake_sysfs_row *row, size_t len,
                  const char *path, uint32_t *args)
{
    const char *pattern = row->pattern, *end = pattern + len;
    unsigned int n = 0;

    while (pattern < end) {
        if (*pattern != '#') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        const struct fake_sysfs_row *names = naming_row(row, (size_t)(pattern + 1 - row->pattern));
        size_t size = strcspn(path, "/");

        if (size == 0 || n == MAX_ARGS || !match_name(p, names, args, n, path, size))
            return false;
        n++;
        pattern++;
        path += size;
    }
    return *path == '\0';
}

static const struct fake_sysfs_row *find_exact(const struct fake_profile *p, const char *path,
                                               uint32_t *args)
{
    const struct fake_sysfs_row *row;

    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        if (match(p, row, strlen(row->pattern), path, args))
            return row;
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

/*
 * Follows the links of every component but, unless follow_last, the last. A ".." behind a link is
 * resolved by name before the link is; nothing in this tree is reached that way.
 */
static int resolve(const struct fake_profile *p, const char *path, bool follow_last, char *out)
{
    char next[PATH_BYTES];

    if (fake_sysfs_normalise(path, out) != 0)
        return -ENOENT;
    for (unsigned int links = 0; links < MAX_LINKS; links++) {
        bool again = false;

        for (size_t at = 1; out[at - 1] != '\0' && !again; at++) {
            const struct fake_sysfs_row *row;
            struct fake_text text = {next, sizeof(next), 0};
            uint32_t args[MAX_ARGS];
            char last = out[at];

            if (last != '/' && !(last == '\0' && follow_last))
                continue;
            out[at] = '\0';
            row = find_exact(p, out, args);
            out[at] = last;
            if (row == NULL || row->target == NULL)
                continue;
            row->target(p, args, &text);
            fake_text_add(&text, "%s", out + at);
            again = true;
        }
        if (!again)
            return 0;
        strcpy(out, next);
    }
    return -ELOOP;
}

static const struct fake_sysfs_row *find(const struct fake_profile *p, const char *path,
                                         bool follow_last, char *real, uint32_t *args)
{
    return resolve(p, path, follow_last, real) == 0 ? find_exact(p, real, args) : NULL;
}

bool fake_sysfs_owns(const struct fake_profile *p, const char *path)
{
    static const char *const roots[] = {
        "/sys/class/kfd",     "/sys/class/drm", "/sys/devices/virtual/kfd",
        "/sys/module/amdgpu", "/dev/dri",       "/dev/kfd"};
    char real[PATH_BYTES];

    if (fake_sysfs_normalise(path, real) != 0)
        return false;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        size_t len = strlen(roots[i]);

        if (strncmp(real, roots[i], len) == 0 && (real[len] == '/' || real[len] == '\0'))
            return true;
    }
    /* Anything below a folder or link of ours in a folder of the host's. */
    for (size_t at = strlen(real); at > 1; at--) {
        uint32_t args[MAX_ARGS];

        if (real[at] != '/' && real[at] != '\0')
            continue;
        real[at] = '\0';
        if (find_exact(p, real, args) != NULL)
            return true;
    }
    return false;
}

enum fake_sysfs_kind fake_sysfs_lookup(const struct fake_profile *p, const char *path)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES];
    const struct fake_sysfs_row *row = find(p, path, false, real, args);

    if (row == NULL)
        return FAKE_SYSFS_NONE;
    return row->print != NULL    ? FAKE_SYSFS_FILE
           : row->target != NULL ? FAKE_SYSFS_LINK
                                 : FAKE_SYSFS_DIR;
}

int fake_sysfs_read(const struct fake_profile *p, const char *path, char *buf, size_t size)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES], page[PAGE_BYTES];
    const struct fake_sysfs_row *row = find(p, path, true, real, args);
    struct fake_text text = {page, sizeof(page), 0};
    int err;

    if (row == NULL)
        return -ENOENT;
    if (row->print == NULL)
        return -EISDIR;
    page[0] = '\0';
    err = row->print(p, args, &text);
    if (err != 0)
        return err;
    if (text.len >= size)
        return -EFBIG;
    memcpy(buf, page, text.len + 1);
    return (int)text.len;
}

/* Is row's last component a child of the folder pattern that path matched? */
static bool child_of(const struct fake_profile *p, const struct fake_sysfs_row *row,
                     const char *path, uint32_t *args, const char **last)
{
    const char *slash = strrchr(row->pattern, '/');

    *last = slash + 1;
    return slash != row->pattern && match(p, row, (size_t)(slash - row->pattern), path, args);
}

int fake_sysfs_list(const struct fake_profile *p, const char *path,
                    int (*each)(void *arg, const char *name), void *arg)
{
    uint32_t args[MAX_ARGS];
    char real[PATH_BYTES], name[NAME_BYTES];
    const struct fake_sysfs_row *dir = find(p, path, true, real, args), *row;
    int err = 0;

    if (dir == NULL)
        return -ENOENT;
    if (dir->print != NULL)
        return -ENOTDIR;
    for (size_t i = 0; err == 0 && (row = row_at(i)) != NULL; i++) {
        const char *last;

        if (!child_of(p, row, real, args, &last))
            continue;
        if (*last != '#') {
            err = each(arg, last);
            continue;
        }
        for (uint32_t k = 0; err == 0 && row->name(p, args, k, name, sizeof(name)) == 0; k++)
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
    const struct fake_sysfs_row *row = find(p, path, false, real, args);
    struct fake_text absolute = {target, sizeof(target), 0}, out = {buf, size, 0};

    if (row == NULL)
        return -ENOENT;
    if (row->target == NULL)
        return -EINVAL;
    row->target(p, args, &absolute);
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

static int write_entry(const struct fake_profile *p, const struct fake_sysfs_row *row,
                       const uint32_t *args, char *path, size_t root)
{
    char page[PAGE_BYTES], target[PATH_BYTES];
    struct fake_text text = {page, sizeof(page), 0}, absolute = {target, sizeof(target), 0};
    int err = make_parents(path, root);

    if (err != 0)
        return err;
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

/* Writes every instance of a row, the pattern from `at` on being still to be filled in. */
static int write_row(const struct fake_profile *p, const struct fake_sysfs_row *row, size_t at,
                     uint32_t *args, unsigned int n, char *path, size_t root, size_t len)
{
    while (row->pattern[at] != '\0' && row->pattern[at] != '#' && len + 1 < PATH_BYTES)
        path[len++] = row->pattern[at++];
    path[len] = '\0';
    if (row->pattern[at] == '\0')
        return write_entry(p, row, args, path, root);
    const struct fake_sysfs_row *names = naming_row(row, at + 1);
    char name[NAME_BYTES];
    int err = 0;

    for (uint32_t i = 0; err == 0 && names->name(p, args, i, name, sizeof(name)) == 0; i++) {
        if (len + strlen(name) + 1 >= PATH_BYTES)
            return -ENAMETOOLONG;
        strcpy(path + len, name);
        args[n] = i;
        err = write_row(p, row, at + 1, args, n + 1, path, root, len + strlen(name));
    }
    return err;
}

int fake_sysfs_write_tree(const struct fake_profile *p, const char *root)
{
    const struct fake_sysfs_row *row;
    char path[PATH_BYTES];
    uint32_t args[MAX_ARGS];
    size_t len = strlen(root);

    if (len >= PATH_BYTES / 2)
        return -ENAMETOOLONG;
    strcpy(path, root);
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        int err = write_row(p, row, 0, args, 0, path, len, len);

        if (err != 0)
            return err;
    }
    return 0;
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
