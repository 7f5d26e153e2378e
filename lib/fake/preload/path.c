/* SPDX-License-Identifier: MIT */
/* Which paths are the fake's. */
#include "fake/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/sysfs.h"

static bool begins(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

/* Can this absolute path be the fake's? Decided without the fake, as most paths are not. */
static bool candidate(const char *path)
{
    static const char *const starts[] = {
        "/dev/kfd",
        "/dev/dri",
        "/sys/class/kfd",
        "/sys/class/drm",
        "/sys/dev/char/226:",
        "/sys/dev/char/235:",
        "/sys/module/amdgpu",
        "/sys/devices/virtual/kfd",
        "/sys/devices/pci",
        "/sys/devices/platform/amdgpu_xcp_",
        "/sys/bus/pci/devices",
        "/sys/devices/system/node/node",
        "/proc/modules",
        "/proc/cpuinfo",
    };

    if (path[1] != 'd' && path[1] != 's' && path[1] != 'p')
        return false;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (begins(path, starts[i]))
            return true;
    }
    return false;
}

/* A name that is not absolute but could lead to the fake all the same. */
static bool relative_candidate(const char *path)
{
    static const char *const words[] = {"kfd",  "dri",     "drm",  "226:",   "235:", "renderD",
                                        "card", "cpuinfo", "node", "amdgpu", "pci",  "modules"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(path, words[i]) != NULL)
            return true;
    }
    return false;
}

static int folder_of(int dirfd, char *out)
{
    char link[32];
    ssize_t n;

    if (dirfd == AT_FDCWD)
        return getcwd(out, PRELOAD_PATH) != NULL ? 0 : -errno;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
    n = preload_real()->readlinkat(AT_FDCWD, link, out, PRELOAD_PATH - 1);
    if (n <= 0)
        return -ENOENT;
    out[n] = '\0';
    return 0;
}

/* Makes path absolute in out; false when it can't be the fake's. */
static bool absolute(int dirfd, const char *path, char *out)
{
    const char *root;
    size_t len;

    if (path[0] == '/') {
        while (path[1] == '/')
            path++;
        if (strlen(path) >= PRELOAD_PATH)
            return false;
        strcpy(out, path);
        return true;
    }
    if (path[0] == '\0' || !relative_candidate(path) || folder_of(dirfd, out) != 0)
        return false;
    len = strlen(out);
    if (len + strlen(path) + 2 > PRELOAD_PATH)
        return false;
    if (len > 0 && out[len - 1] != '/')
        out[len++] = '/';
    strcpy(out + len, path);
    /* A folder of the tree that was opened before. */
    root = preload_fake_if_made() != NULL ? preload_root() : NULL;
    if (root != NULL && begins(out, root) && out[strlen(root)] == '/')
        memmove(out, out + strlen(root), strlen(out) - strlen(root) + 1);
    return true;
}

/* A NUMA node that the host has is the host's; the machine may have more of them. */
static bool is_host_numa_node(const char *path)
{
    static const char numa[] = "/sys/devices/system/node/node";
    char folder[sizeof(numa) + 16];

    if (!begins(path, numa))
        return false;
    snprintf(folder, sizeof(folder), "%.*s",
             (int)(sizeof(numa) - 1 + strspn(path + sizeof(numa) - 1, "0123456789")), path);
    return preload_real()->faccessat(AT_FDCWD, folder, F_OK, 0) == 0;
}

/* Folders of the host's whose listing in the tree has the host's entries too. */
static bool is_common_folder(const char *path)
{
    return strcmp(path, "/sys/bus/pci/devices") == 0;
}

static bool is_node(const char *path)
{
    return strcmp(path, "/dev/kfd") == 0 ||
           (begins(path, "/dev/dri/") && strchr(path + 9, '/') == NULL);
}

enum preload_where preload_find(int dirfd, const char *path, char *out)
{
    char full[PRELOAD_PATH], clean[FAKE_SYSFS_PATH];
    enum preload_where where = PRELOAD_HOST;
    int saved = errno;
    const char *root;
    struct fake *fake;

    if (path == NULL || preload_inside() || !absolute(dirfd, path, full) ||
        fake_sysfs_normalise(full, clean) != 0 || !(candidate(full) || candidate(clean))) {
        errno = saved;
        return PRELOAD_HOST;
    }
    fake = preload_fake();
    if (fake != NULL) {
        if (is_node(clean)) {
            strcpy(out, clean);
            where = PRELOAD_NODE;
        } else if (begins(clean, "/proc/") || is_common_folder(clean) ||
                   (!is_host_numa_node(clean) && fake_sysfs_owns(fake->profile, clean))) {
            root = preload_root();
            if (root != NULL && strlen(root) + strlen(full) < PRELOAD_PATH) {
                strcpy(out, root);
                strcat(out, full);
                where = PRELOAD_TREE;
            }
        }
    }
    errno = saved;
    return where;
}
