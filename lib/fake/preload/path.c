/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include "fake/preload/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/preload/live.h"
#include "fake/preload/real.h"
#include "fake/sysfs.h"

#define NUMA "/sys/devices/system/node/node"
#define PCI "/sys/devices/pci"

/* What is known of the working directory. */
enum {
    CWD_UNKNOWN,
    CWD_FAR,
    CWD_NEAR,
};

static atomic_int cwd;

static bool begins(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

/* Is path the folder or below it? */
static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

#define WORD(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

struct word {
    const char *text;
    size_t len;
};

/* What the fake's paths begin with, and the folders on the way there: below /dev, /sys and /proc,
 * without that. */
static const struct word in_dev[] = {WORD("/kfd"), WORD("/dri"), {NULL, 0}};
static const struct word in_sys[] = {WORD("/class/kfd"),
                                     WORD("/class/drm"),
                                     WORD("/dev/char"),
                                     WORD("/module/amdgpu"),
                                     WORD("/devices/pci"),
                                     WORD("/devices/virtual/kfd"),
                                     WORD("/devices/system/node/node"),
                                     WORD("/devices/platform/amdgpu_xcp_"),
                                     WORD("/bus/pci/devices"),
                                     WORD("/bus/pci/drivers"),
                                     {NULL, 0}};
static const struct word in_proc[] = {WORD("/modules"), WORD("/cpuinfo"), {NULL, 0}};
static const char *const sys_folders[] = {"",
                                          "/class",
                                          "/bus",
                                          "/bus/pci",
                                          "/dev",
                                          "/module",
                                          "/devices",
                                          "/devices/virtual",
                                          "/devices/platform",
                                          "/devices/system",
                                          "/devices/system/node",
                                          NULL};

static bool begins_with_one(const char *path, const struct word *words)
{
    for (; words->text != NULL; words++) {
        if (path[1] == words->text[1] && strncmp(path, words->text, words->len) == 0)
            return true;
    }
    return false;
}

/* A folder from which there is a way down to the fake. */
static bool is_ancestor(const char *path)
{
    if (path[0] == '\0' || strcmp(path, "/") == 0 || strcmp(path, "/dev") == 0 ||
        strcmp(path, "/proc") == 0)
        return true;
    for (size_t i = 0; begins(path, "/sys") && sys_folders[i] != NULL; i++) {
        if (strcmp(path + 4, sys_folders[i]) == 0)
            return true;
    }
    return false;
}

/* Can this path be the fake's, or a folder that it adds to? Decided without the fake, as most paths
 * are not. */
static bool candidate(const char *path)
{
    if (begins(path, "/dev"))
        return path[4] == '\0' || begins_with_one(path + 4, in_dev);
    if (begins(path, "/sys"))
        return begins_with_one(path + 4, in_sys) || is_ancestor(path);
    return begins(path, "/proc") && begins_with_one(path + 5, in_proc);
}

bool preload_strip_root(char *path)
{
    const char *root;
    size_t len;

    if (strstr(path, "/kfdirect-fake-") == NULL)
        return false;
    root = preload_root();
    len = root != NULL ? strlen(root) : 0;
    if (len == 0 || !is_below(path, root))
        return false;
    memmove(path, path + len, strlen(path + len) + 1);
    if (path[0] == '\0')
        strcpy(path, "/");
    return true;
}

static int link_of(int fd, char *out)
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = preload_real()->readlinkat(AT_FDCWD, link, out, PRELOAD_PATH - 1);
    if (n <= 0)
        return -ENOENT;
    out[n] = '\0';
    return 0;
}

static int folder_of(int dirfd, char *out)
{
    if (dirfd != AT_FDCWD)
        return link_of(dirfd, out);
    return preload_real()->getcwd(out, PRELOAD_PATH) != NULL ? 0 : -errno;
}

int preload_path_of(int fd, char out[PRELOAD_PATH])
{
    int saved = errno, err = folder_of(fd, out);

    if (err == 0)
        preload_known_as(out);
    errno = saved;
    return err;
}

void preload_forget_cwd(void)
{
    atomic_store(&cwd, CWD_UNKNOWN);
}

static bool is_near(const char *folder)
{
    return folder[1] == '\0' || is_below(folder, "/sys") || is_below(folder, "/dev") ||
           strcmp(folder, "/proc") == 0 || strstr(folder, "/kfdirect-fake-") != NULL;
}

bool preload_near_cwd(void)
{
    int state = atomic_load_explicit(&cwd, memory_order_relaxed), saved = errno;
    char path[PRELOAD_PATH];

    if (state != CWD_UNKNOWN)
        return state == CWD_NEAR;
    state = folder_of(AT_FDCWD, path) == 0 && is_near(path) ? CWD_NEAR : CWD_FAR;
    /* A child of vfork has another in the same memory. */
    if (preload_is_self())
        atomic_store(&cwd, state);
    errno = saved;
    return state == CWD_NEAR;
}

/* Without O_DIRECTORY it is a file, but for the folders on the way. */
void preload_mark_opened(int fd, int dirfd, const char *path, int flags)
{
    unsigned int marks = 0;

    if (fd < 0 || preload_inside())
        return;
    if (!preload_is_far(dirfd, path) &&
        (flags & (O_DIRECTORY | O_PATH) || path[0] != '/' || is_ancestor(path)))
        marks = PRELOAD_FOLDER;
    preload_mark(fd, marks);
}

/* A link to a descriptor stands for what that is, if that can be the fake's. */
static bool behind_link(const char *path, char *out)
{
    int fd = preload_link_to_fd(path);
    ssize_t n;

    if (fd < 0)
        return false;
    if (begins(path, "/dev/"))
        return link_of(fd, out) == 0 && (preload_known_as(out) || is_near(out));
    n = preload_real()->readlinkat(AT_FDCWD, path, out, PRELOAD_PATH - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return preload_known_as(out) || is_near(out);
}

/* Is it there? In the tree, if path has the tree's folder before it. */
static bool exists(const char *path)
{
    struct stat64 st;

    return preload_real()->fstatat64(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool owns(const struct fake *fake, const char *path);

/* Is the folder of the tree one that stands for itself? One that the host has too is never given to
 * the program: who is in there came by the tree's own name, and must not end up in the host's. */
static bool is_given(const char *path)
{
    return candidate(path) && (owns(preload_fake(), path) || !exists(path));
}

/* Makes path absolute in out; moved: the host would look for it elsewhere, in the tree. */
static bool absolute(int dirfd, const char *path, char *out, bool *moved)
{
    size_t len;

    *moved = false;
    if (path[0] == '/') {
        while (path[1] == '/')
            path++;
        if (strlen(path) >= PRELOAD_PATH)
            return false;
        strcpy(out, path);
        return true;
    }
    if (folder_of(dirfd, out) != 0)
        return false;
    *moved = preload_strip_root(out);
    if (*moved && !is_given(out))
        return false;
    len = strlen(out);
    if (len + strlen(path) + 2 > PRELOAD_PATH)
        return false;
    if (len > 0 && out[len - 1] != '/')
        out[len++] = '/';
    strcpy(out + len, path);
    return true;
}

/* Is the function of this path, the component behind the root's, in the tree? */
static bool has_function(const char *path)
{
    char part[PRELOAD_PATH];
    size_t root = sizeof(PCI) - 1 + strcspn(path + sizeof(PCI) - 1, "/"), len = root;

    if (path[root] == '\0')
        return false;
    len += strcspn(path + root + 1, "/") + 1;
    snprintf(part, sizeof(part), "%s%.*s", preload_root(), (int)len, path);
    return exists(part);
}

/* A NUMA node that the host has is the host's; the machine may have more of them. */
static bool is_host_numa_node(const char *path)
{
    char folder[sizeof(NUMA) + 16];

    snprintf(folder, sizeof(folder), "%.*s",
             (int)(sizeof(NUMA) - 1 + strspn(path + sizeof(NUMA) - 1, "0123456789")), path);
    return exists(folder);
}

static bool owns(const struct fake *fake, const char *path)
{
    if (begins(path, "/proc/"))
        return true;
    if (begins(path, NUMA) && is_host_numa_node(path))
        return false;
    /* Functions behind a root that the host has as well are the host's. */
    if (begins(path, PCI))
        return has_function(path);
    return fake_sysfs_owns(fake->profile, path);
}

static bool is_node(const char *path)
{
    return strcmp(path, "/dev/kfd") == 0 ||
           (begins(path, "/dev/dri/") && strchr(path + 9, '/') == NULL);
}

/* Asking for one of these is asking for the device. */
static bool is_device(const char *path)
{
    return begins(path, "/dev/") || begins(path, "/sys/class/") ||
           begins(path, "/sys/devices/virtual/kfd");
}

/* A clean absolute path: without "..", "." and repeated slashes. */
static enum preload_where classify(const char *path, struct preload_place *out)
{
    const char *root;
    struct fake *fake;

    if (!candidate(path))
        return PRELOAD_HOST;
    fake = preload_fake();
    if (preload_failed() && is_node(path)) {
        strcpy(out->path, path);
        out->name = out->path;
        return PRELOAD_NODE;
    }
    root = fake != NULL ? preload_root() : NULL;
    if (root == NULL || strlen(root) + strlen(path) >= PRELOAD_PATH)
        return PRELOAD_HOST;
    if (is_node(path)) {
        preload_announce();
        strcpy(out->path, path);
        out->name = out->path;
        return PRELOAD_NODE;
    }
    snprintf(out->shared, sizeof(out->shared), "%s%s", root, path);
    if (!owns(fake, path)) {
        if (!exists(out->shared))
            return PRELOAD_HOST;
        if (exists(path)) {
            out->tree = out->shared;
            return PRELOAD_HOST;
        }
    }
    if (is_device(path))
        preload_announce();
    preload_refresh(fake, root, path);
    strcpy(out->path, out->shared);
    out->dirfd = AT_FDCWD;
    out->name = out->path;
    return PRELOAD_TREE;
}

/* The first ".." component, or NULL. */
static char *find_dots(char *path)
{
    for (char *at = strstr(path, "/.."); at != NULL; at = strstr(at + 1, "/..")) {
        if (at[3] == '/' || at[3] == '\0')
            return at;
    }
    return NULL;
}

/* A ".." behind a link leads to where the link's target lies. False: there is no such path. */
static bool resolve_dots(char *path)
{
    char *dots, *slash, clean[FAKE_SYSFS_PATH], rest[PRELOAD_PATH], folder[PATH_MAX];
    struct preload_place place;

    while ((dots = find_dots(path)) != NULL) {
        strcpy(rest, dots + 3);
        *dots = '\0';
        if (strspn(path, "/") == strlen(path)) { /* the root is its own parent */
            snprintf(path, PRELOAD_PATH, "%s", rest[0] != '\0' ? rest : "/");
            continue;
        }
        place.name = path;
        if (fake_sysfs_normalise(path, clean) != 0 || classify(clean, &place) == PRELOAD_NODE ||
            preload_real()->realpath(place.name, folder) == NULL)
            return false;
        preload_strip_root(folder);
        slash = strrchr(folder, '/');
        *slash = '\0';
        if (strlen(folder) + strlen(rest) + 1 >= PRELOAD_PATH)
            return false;
        snprintf(path, PRELOAD_PATH, "%s%s", folder,
                 folder[0] == '\0' && rest[0] == '\0' ? "/" : rest);
    }
    return true;
}

/* Is it worth resolving? Without following links it must begin or end where the fake can be. */
static bool may_lead_here(const char *path)
{
    char clean[FAKE_SYSFS_PATH];

    return fake_sysfs_normalise(path, clean) == 0 &&
           (is_below(path, "/sys") || is_below(path, "/dev") || is_below(clean, "/sys") ||
            is_below(clean, "/dev") || is_below(clean, "/proc"));
}

static enum preload_where look(int dirfd, const char *path, struct preload_place *out)
{
    char full[PRELOAD_PATH], clean[FAKE_SYSFS_PATH];
    enum preload_where where;
    bool moved = false;
    size_t len;

    if (!(path[0] == '/' && behind_link(path, full)) && !absolute(dirfd, path, full, &moved))
        return PRELOAD_HOST;
    if (find_dots(full) != NULL) {
        if (!may_lead_here(full) || !resolve_dots(full))
            return PRELOAD_HOST;
        moved = true;
    }
    if (fake_sysfs_normalise(full, clean) != 0)
        return PRELOAD_HOST;
    where = classify(clean, out);
    len = strlen(full);
    /* What only a folder may have behind its name: a link is followed, and the tree's file says
     * that it is none. */
    if (where != PRELOAD_HOST && len > 1 &&
        (full[len - 1] == '/' || (full[len - 1] == '.' && full[len - 2] == '/'))) {
        snprintf(out->path, sizeof(out->path), "%s%s/", preload_root(), clean);
        out->dirfd = AT_FDCWD;
        out->name = out->path;
        return PRELOAD_TREE;
    }
    if (where == PRELOAD_HOST && moved) {
        snprintf(out->path, sizeof(out->path), "%s%s", clean, clean[0] == '\0' ? "/" : "");
        out->dirfd = AT_FDCWD;
        out->name = out->path;
    }
    return where;
}

/* Is it clean as it stands, and none of the fake's? */
static bool is_plainly_far(const char *path)
{
    if (path[0] != '/' || preload_link_to_fd(path) >= 0)
        return false;
    for (const char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
        if (p[1] == '/' || p[1] == '.' || p[1] == '\0')
            return false;
    }
    return !candidate(path);
}

enum preload_where preload_look(int dirfd, const char *path, struct preload_place *out)
{
    int saved = errno;
    enum preload_where where = is_plainly_far(path) ? PRELOAD_HOST : look(dirfd, path, out);

    errno = saved;
    return where;
}
