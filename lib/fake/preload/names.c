/* SPDX-License-Identifier: MIT */
/* By which names the program knows what lies in the machine's folder. */
#include "fake/preload/preload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"
#include "fake/sysfs.h"

#define PRIMARY_MINORS 128u

static bool is_below(const char *path, const char *folder, size_t len)
{
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

void preload_node_path(dev_t number, char out[PRELOAD_PATH])
{
    if (major(number) == FAKE_KFD_MAJOR)
        snprintf(out, PRELOAD_PATH, "/dev/kfd");
    else
        snprintf(out, PRELOAD_PATH,
                 minor(number) >= PRIMARY_MINORS ? "/dev/dri/renderD%u" : "/dev/dri/card%u",
                 minor(number));
}

/* Of an open node or a buffer: the file's name begins with what it is. */
static bool known_file(const char *name, char out[PRELOAD_PATH])
{
    unsigned int number;

    if (strchr(name, '/') != NULL || sscanf(name + 1, "%u", &number) != 1)
        return false;
    if (name[0] == 'b')
        strcpy(out, "/dmabuf:");
    else if (name[0] == 'k')
        preload_node_path(makedev(FAKE_KFD_MAJOR, 0), out);
    else if (name[0] == 'r' || name[0] == 'c')
        preload_node_path(makedev(FAKE_DRM_MAJOR, number), out);
    else
        return false;
    return true;
}

bool preload_known_as(char path[PRELOAD_PATH])
{
    const char *root;
    size_t len;

    if (strstr(path, "/kfdirect-fake-") == NULL)
        return false;
    root = preload_root();
    if (root == NULL)
        return false;
    if (preload_strip_root(path))
        return true;
    len = (size_t)(strrchr(root, '/') - root);
    return is_below(path, root, len) && path[len] == '/' && known_file(path + len + 1, path);
}

/* Skips a word; NULL: it is not there. */
static const char *skip(const char *at, const char *word)
{
    size_t len = strlen(word);

    return at != NULL && strncmp(at, word, len) == 0 ? at + len : NULL;
}

/* The number at the end of a path, or -1. */
static int last_number(const char *at)
{
    int number = 0;

    if (at == NULL || *at == '\0' || strlen(at) > 9)
        return -1;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (*at - '0');
    return *at == '\0' ? number : -1;
}

int preload_link_to_fd(const char *path)
{
    static const char *const streams[] = {"in", "out", "err"};
    const char *at = skip(path, "/dev/");
    int i = 0;

    if (at != NULL && at[0] == 's') {
        at = skip(at, "std");
        while (i < 3 && (at == NULL || strcmp(at, streams[i]) != 0))
            i++;
        return i < 3 ? i : -1;
    }
    if (at != NULL)
        return last_number(skip(at, "fd/"));
    at = skip(path, "/proc/");
    at = at != NULL ? strstr(at, "/fd/") : NULL;
    return last_number(skip(at, "/fd/"));
}

const char *preload_host_like(const char *path)
{
    const char *root = preload_root();
    size_t len = root != NULL ? strlen(root) : 0;

    if (len > 0 && is_below(path, root, len))
        path += len;
    if (strncmp(path, "/proc", 5) == 0)
        return "/proc";
    if (strncmp(path, "/dev", 4) != 0)
        return "/sys";
    return strcmp(path, "/dev/dri") == 0 ? "/dev" : "/dev/null";
}

bool preload_look_at_fd(int fd, char out[PRELOAD_PATH])
{
    struct preload_device device;
    enum preload_kind kind;
    char link[32];
    ssize_t n;

    if (preload_marked(fd)) {
        kind = preload_kind_of(fd, &device);
        if (kind == PRELOAD_KFD || kind == PRELOAD_DRM)
            preload_node_path(device.number, out);
        return kind == PRELOAD_KFD || kind == PRELOAD_DRM;
    }
    if (!(preload_marks_of(fd) & PRELOAD_FOLDER) || preload_fake_if_made() == NULL ||
        preload_inside())
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = preload_real()->readlinkat(AT_FDCWD, link, out, PRELOAD_PATH - 1);
    out[n > 0 ? n : 0] = '\0';
    return preload_strip_root(out);
}
