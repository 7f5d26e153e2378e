/* SPDX-License-Identifier: MIT */
/* glob, ftw and nftw: libc's own read folders by ways that can't be seen from here. */
#include "fake/preload/preload.h"

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

static void *glob_open(const char *path)
{
    return opendir(path);
}

static void glob_close(void *dir)
{
    closedir(dir);
}

static struct dirent64 *glob_read(void *dir)
{
    return readdir64(dir);
}

/* The folders of a pattern are read through here. */
static int match(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *out)
{
    glob64_t before = *out;
    int ret;

    if (preload_inside() || flags & GLOB_ALTDIRFUNC)
        return preload_real()->glob64(pattern, flags, failed, out);
    out->gl_opendir = glob_open;
    out->gl_closedir = glob_close;
    out->gl_readdir = glob_read;
    out->gl_stat = stat64;
    out->gl_lstat = lstat64;
    ret = preload_real()->glob64(pattern, flags | GLOB_ALTDIRFUNC, failed, out);
    out->gl_flags &= ~GLOB_ALTDIRFUNC;
    out->gl_opendir = before.gl_opendir;
    out->gl_closedir = before.gl_closedir;
    out->gl_readdir = before.gl_readdir;
    out->gl_stat = before.gl_stat;
    out->gl_lstat = before.gl_lstat;
    return ret;
}

PRELOAD_API int glob64(const char *restrict pattern, int flags, int (*failed)(const char *, int),
                       glob64_t *restrict out)
{
    return match(pattern, flags, failed, out);
}

PRELOAD_API int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int),
                     glob_t *restrict out)
{
    return match(pattern, flags, failed, (glob64_t *)(void *)out);
}

/* A folder that was visited. */
struct visit {
    dev_t dev;
    ino64_t ino;
};

struct walk {
    __ftw_func_t plain; /* one of the two */
    __nftw_func_t full;
    int flags;
    dev_t dev; /* of the start, for FTW_MOUNT */
    struct visit *visits;
    size_t count, room;
    char path[PATH_MAX];
};

/* Several names may lead to a folder where links are followed. 1: it is new, 0: not, -1: no
 * memory. */
static int is_new(struct walk *w, const struct stat64 *st)
{
    struct visit *grown;

    if (w->flags & FTW_PHYS)
        return 1;
    for (size_t i = 0; i < w->count; i++) {
        if (w->visits[i].dev == st->st_dev && w->visits[i].ino == st->st_ino)
            return 0;
    }
    if (w->count == w->room) {
        grown = realloc(w->visits, (w->room * 2 + 64) * sizeof(*grown));
        if (grown == NULL)
            return -1;
        w->visits = grown;
        w->room = w->room * 2 + 64;
    }
    w->visits[w->count++] = (struct visit){st->st_dev, st->st_ino};
    return 1;
}

/* Tells the program; what ends the walk is not 0 (or FTW_CONTINUE). */
static int tell(const struct walk *w, const struct stat64 *st, int type, int level)
{
    const char *slash = strrchr(w->path, '/');
    struct FTW where = {.base = slash != NULL ? (int)(slash + 1 - w->path) : 0, .level = level};

    if (w->plain != NULL)
        return w->plain(w->path, (const struct stat *)(const void *)st,
                        type == FTW_SL || type == FTW_SLN ? FTW_NS : type);
    return w->full(w->path, (const struct stat *)(const void *)st, type, &where);
}

static int type_of(const struct walk *w, struct stat64 *st)
{
    if ((w->flags & FTW_PHYS ? lstat64(w->path, st) : stat64(w->path, st)) == 0)
        return S_ISDIR(st->st_mode) ? FTW_D : S_ISLNK(st->st_mode) ? FTW_SL : FTW_F;
    if (!(w->flags & FTW_PHYS) && lstat64(w->path, st) == 0 && S_ISLNK(st->st_mode))
        return FTW_SLN;
    memset(st, 0, sizeof(*st));
    return FTW_NS;
}

static int visit(struct walk *w, int level);

/* What is in a folder. */
static int descend(struct walk *w, DIR *dir, int level)
{
    size_t len = strlen(w->path);
    struct dirent64 *e;
    int ret = 0;

    while (ret == 0 && (e = readdir64(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            len + strlen(e->d_name) + 2 > sizeof(w->path))
            continue;
        snprintf(w->path + len, sizeof(w->path) - len, "%s%s",
                 len > 0 && w->path[len - 1] == '/' ? "" : "/", e->d_name);
        ret = visit(w, level + 1);
        w->path[len] = '\0';
        if (w->flags & FTW_ACTIONRETVAL && ret == FTW_SKIP_SIBLINGS) {
            ret = 0;
            break;
        }
    }
    return ret;
}

static int visit_folder(struct walk *w, const struct stat64 *st, int level)
{
    int ret = is_new(w, st);
    DIR *dir;

    if (ret <= 0)
        return ret;
    if (w->flags & FTW_MOUNT && st->st_dev != w->dev)
        return 0;
    dir = opendir(w->path);
    if (dir == NULL)
        return tell(w, st, FTW_DNR, level);
    ret = w->flags & FTW_DEPTH ? 0 : tell(w, st, FTW_D, level);
    if (ret == 0)
        ret = descend(w, dir, level);
    closedir(dir);
    if (w->flags & FTW_ACTIONRETVAL && ret == FTW_SKIP_SUBTREE)
        ret = 0;
    return ret == 0 && w->flags & FTW_DEPTH ? tell(w, st, FTW_DP, level) : ret;
}

static int visit(struct walk *w, int level)
{
    struct stat64 st;
    int type = type_of(w, &st), ret;

    if (level == 0) {
        if (type == FTW_NS)
            return -1;
        w->dev = st.st_dev;
    }
    ret = type == FTW_D ? visit_folder(w, &st, level) : tell(w, &st, type, level);
    return w->flags & FTW_ACTIONRETVAL && ret == FTW_SKIP_SUBTREE ? 0 : ret;
}

/* Is it a path from which the walk can come to the fake? */
static bool is_near(const char *path)
{
    return !preload_inside() && path != NULL && path[0] != '\0' && strlen(path) < PATH_MAX &&
           !preload_is_far(AT_FDCWD, path);
}

static int walk(const char *path, __ftw_func_t plain, __nftw_func_t full, int flags)
{
    struct walk *w = calloc(1, sizeof(*w));
    size_t len = strlen(path);
    int ret;

    if (w == NULL)
        return -1;
    while (len > 1 && path[len - 1] == '/')
        len--;
    snprintf(w->path, sizeof(w->path), "%.*s", (int)len, path);
    w->plain = plain;
    w->full = full;
    w->flags = flags;
    ret = visit(w, 0);
    free(w->visits);
    free(w);
    return ret;
}

PRELOAD_API int nftw(const char *path, __nftw_func_t tell_it, int files, int flags)
{
    /* Libc's own changes folders by itself. */
    if (!is_near(path) || flags & FTW_CHDIR)
        return preload_real()->nftw64(path, (void *)tell_it, files, flags);
    return walk(path, NULL, tell_it, flags);
}

PRELOAD_API int nftw64(const char *path, __nftw64_func_t tell_it, int files, int flags)
{
    return nftw(path, (__nftw_func_t)(void *)tell_it, files, flags);
}

PRELOAD_API int ftw(const char *path, __ftw_func_t tell_it, int files)
{
    if (!is_near(path))
        return preload_real()->ftw64(path, (void *)tell_it, files);
    return walk(path, tell_it, NULL, 0);
}

PRELOAD_API int ftw64(const char *path, __ftw64_func_t tell_it, int files)
{
    return ftw(path, (__ftw_func_t)(void *)tell_it, files);
}
