/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include "fake/preload/marks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fake/file.h"
#include "fake/preload/path.h"
#include "fake/sysfs.h"

#define PRIMARY_MINORS 128u

_Atomic uint64_t preload_marks[PRELOAD_MARKS / 32];

void preload_mark_new(int fd, unsigned int marks)
{
    unsigned int shift = (unsigned int)fd % 32 * 2;

    if ((unsigned int)fd >= PRELOAD_MARKS || !preload_is_self())
        return;
    atomic_fetch_and(&preload_marks[fd / 32], ~(UINT64_C(3) << shift));
    atomic_fetch_or(&preload_marks[fd / 32], (uint64_t)marks << shift);
}

bool preload_marked_far(int fd)
{
    return fd >= 0 && preload_fake_if_made() != NULL && preload_adopt(fd);
}

/* Is it in a directory of some fake machine? Spares a process that has nothing to do with it from
 * making one. */
static bool looks_like_ours(int fd)
{
    char link[32], path[PRELOAD_PATH];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    return strstr(path, "/kfdirect-fake-") != NULL;
}

bool preload_adopt(int fd)
{
    bool ours;

    if (preload_inside())
        return false;
    preload_enter();
    ours = looks_like_ours(fd);
    preload_leave();
    ours = ours && preload_kind_of(fd, NULL) != PRELOAD_NONE;
    if (ours)
        preload_mark(fd, PRELOAD_OURS);
    return ours;
}

static dev_t number_of(const struct fake *fake, const struct fake_file *file)
{
    if (file->kind == FAKE_FILE_KFD)
        return makedev(FAKE_KFD_MAJOR, 0);
    return makedev(FAKE_DRM_MAJOR, fake->profile->gpus[file->gpu].render_minor -
                                       (file->kind == FAKE_FILE_PRIMARY ? PRIMARY_MINORS : 0));
}

/* Of a node that another process opened, by the name of its file. */
static dev_t number_behind(int fd)
{
    char path[PRELOAD_PATH];
    unsigned int minor;

    if (preload_path_of(fd, path) != 0)
        return 0;
    if (strcmp(path, "/dev/kfd") == 0)
        return makedev(FAKE_KFD_MAJOR, 0);
    return sscanf(path, "/dev/dri/renderD%u", &minor) == 1 ||
                   sscanf(path, "/dev/dri/card%u", &minor) == 1
               ? makedev(FAKE_DRM_MAJOR, minor)
               : 0;
}

static enum preload_kind look(struct fake *fake, struct fake_process *p, int fd,
                              struct preload_device *device)
{
    enum preload_kind what = PRELOAD_NONE;
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_process *owner;

    switch (fake_fd_lock(fake, p, fd, &owner, &file, &kind)) {
    case FAKE_FD_FILE:
        *device = (struct preload_device){number_of(fake, file), file->access};
        what = file->kind == FAKE_FILE_KFD ? PRELOAD_KFD : PRELOAD_DRM;
        break;
    case FAKE_FD_FOREIGN:
        what = kind == FAKE_FILE_KFD ? PRELOAD_KFD : PRELOAD_DRM;
        break;
    case FAKE_FD_DMABUF:
        what = PRELOAD_DMABUF;
        break;
    default:
        break;
    }
    fake_process_unlock(owner);
    return what;
}

enum preload_kind preload_kind_of(int fd, struct preload_device *device)
{
    struct preload_device found = {.access = O_RDWR};
    struct fake *fake = preload_fake();
    enum preload_kind kind = PRELOAD_NONE;
    struct fake_process *p;
    int saved = errno, err;

    preload_enter();
    p = fake != NULL && preload_is_self() ? fake_process_get(fake, &err) : NULL;
    if (p != NULL)
        kind = look(fake, p, fd, &found);
    preload_leave();
    if (found.number == 0 && (kind == PRELOAD_KFD || kind == PRELOAD_DRM))
        found.number = number_behind(fd);
    if (kind == PRELOAD_NONE)
        preload_mark(fd, preload_marks_of(fd) & ~(unsigned int)PRELOAD_OURS);
    if (device != NULL)
        *device = found;
    errno = saved;
    return kind;
}
