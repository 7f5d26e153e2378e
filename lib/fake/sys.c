/* SPDX-License-Identifier: MIT */
#include "fake/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fake/file.h"
#include "fake/ioctl.h"
#include "fake/log.h"
#include "fake/node_mmap.h"
#include "fake/proctree.h"
#include "fake/sysfs.h"
#include "kfd/kept.h"

#define SYSFS_PAGE 4096u
#define PRIMARY_MINORS 128u
/* A number that no host gives to a user. */
#define RENDER_GROUP 0x7ffffffeu

struct sys {
    struct kfd_sys base;
    struct fake *fake;
    struct kfd_sys_state *state; /* lib/kfd's */
};

static struct fake *fake_of(struct kfd_sys *base)
{
    return ((struct sys *)(void *)base)->fake;
}

static int check_presence(uint32_t presence)
{
    return presence == FAKE_PRESENT ? 0 : presence == FAKE_DENIED ? -EACCES : -ENOENT;
}

static int open_node(struct fake *fake, enum fake_file_kind kind, uint32_t gpu, int flags)
{
    struct fake_process *p;
    int fd, err;

    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    fd = fake_file_open(fake, p, kind, gpu, flags);
    fake_log_open(fake, p, kind, gpu, fd);
    return fd;
}

/* The GPU of a node in /dev/dri, and which of its two nodes it is; -ENOENT. */
static int dri_gpu(const struct fake *fake, const char *path, enum fake_file_kind *kind)
{
    unsigned int minor;
    int gpu, end = 0;

    *kind = FAKE_FILE_RENDER;
    if (sscanf(path, "/dev/dri/renderD%u%n", &minor, &end) != 1 || path[end] != '\0') {
        if (sscanf(path, "/dev/dri/card%u%n", &minor, &end) != 1 || path[end] != '\0')
            return -ENOENT;
        *kind = FAKE_FILE_PRIMARY;
        minor += PRIMARY_MINORS;
    }
    gpu = fake_profile_gpu_by_minor(fake->profile, minor);
    return gpu < 0 ? -ENOENT : gpu;
}

static int open_dri(struct fake *fake, const char *path, int flags)
{
    enum fake_file_kind kind;
    int gpu = dri_gpu(fake, path, &kind);

    if (gpu < 0)
        return gpu;
    if (check_presence(fake->profile->gpus[gpu].render_node) != 0)
        return check_presence(fake->profile->gpus[gpu].render_node);
    if (fake->profile->gpus[gpu].hidden)
        return -EPERM;
    return open_node(fake, kind, (uint32_t)gpu, flags);
}

static int read_sysfs(struct fake *fake, const char *path, char *buf, size_t size)
{
    return fake_proctree_owns(path) ? fake_proctree_read(fake, path, buf, size)
                                    : fake_sysfs_read(fake->profile, path, buf, size);
}

/* A sysfs file as a descriptor: its text, as it is now. */
static int open_sysfs(struct fake *fake, const char *path, int flags)
{
    char text[SYSFS_PAGE + 1];
    int n = read_sysfs(fake, path, text, sizeof(text)), fd;

    if (n < 0)
        return n;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EACCES;
    fd = memfd_create("sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -errno;
    if (write(fd, text, (size_t)n) != n || lseek(fd, 0, SEEK_SET) != 0) {
        close(fd);
        return -EIO;
    }
    return fd;
}

static int open_real(const char *path, int flags)
{
    int fd = open(path, flags, 0666);

    return fd >= 0 ? fd : -errno;
}

static int sys_open(struct kfd_sys *base, const char *path, int flags)
{
    struct fake *fake = fake_of(base);
    struct kfd_kept kept = kfd_keep();
    int fd;

    if (strcmp(path, "/dev/kfd") == 0) {
        fd = check_presence(fake->profile->kfd_node);
        if (fd == 0)
            fd = open_node(fake, FAKE_FILE_KFD, 0, flags);
    } else if (strncmp(path, "/dev/dri/", 9) == 0) {
        fd = open_dri(fake, path, flags);
    } else if (fake_sysfs_owns(fake->profile, path)) {
        fd = open_sysfs(fake, path, flags);
    } else {
        fd = open_real(path, flags);
    }
    return kfd_let_go(kept, fd);
}

static int sys_close(struct kfd_sys *base, int fd)
{
    struct fake *fake = fake_of(base);
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_process *p, *owner;
    struct kfd_kept kept = kfd_keep();
    int probe = -1, err, ret;

    p = fake_process_get(fake, &err);
    if (p == NULL) {
        ret = close(fd) == 0 ? 0 : -errno;
        return kfd_let_go(kept, ret);
    }
    fake_log_close(fake, p, fd);
    if (fake_fd_lock(fake, p, fd, &owner, &file, &kind) == FAKE_FD_FILE)
        probe = fake_file_probe(fake, file);
    ret = close(fd) == 0 ? 0 : -errno;
    if (file != NULL)
        fake_file_closed(fake, owner, file, probe);
    fake_process_unlock(owner);
    return kfd_let_go(kept, ret);
}

static int sys_dup(struct kfd_sys *base, int fd, int min)
{
    struct kfd_kept kept = kfd_keep();
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, min);

    return kfd_let_go(kept, copy >= 0 ? copy : -errno);
}

static int sys_request(struct kfd_sys *base, int fd, unsigned long request, void *arg)
{
    struct kfd_kept kept = kfd_keep();

    return kfd_let_go(kept, fake_ioctl(fake_of(base), fd, request, arg));
}

static int sys_map(struct kfd_sys *base, void *addr, size_t size, int prot, int flags, int fd,
                   uint64_t offset, void **out)
{
    struct kfd_kept kept = kfd_keep();

    return kfd_let_go(kept, fake_mmap(fake_of(base), addr, size, prot, flags, fd, offset, out));
}

static int sys_unmap(struct kfd_sys *base, void *addr, size_t size)
{
    struct kfd_kept kept = kfd_keep();
    int ret = munmap(addr, size);

    return kfd_let_go(kept, ret == 0 ? 0 : -errno);
}

static int sys_protect(struct kfd_sys *base, void *addr, size_t size, int prot)
{
    struct kfd_kept kept = kfd_keep();
    int ret = mprotect(addr, size, prot);

    return kfd_let_go(kept, ret == 0 ? 0 : -errno);
}

static int sys_advise(struct kfd_sys *base, void *addr, size_t size, int advice)
{
    struct kfd_kept kept = kfd_keep();
    int ret = madvise(addr, size, advice);

    return kfd_let_go(kept, ret == 0 ? 0 : -errno);
}

static int read_real(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
    size_t len = 0;

    if (fd < 0)
        return -errno;
    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);

        if (n < 0)
            err = -errno;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (err != 0)
        return err;
    if (len == size)
        return -EFBIG;
    buf[len] = '\0';
    return (int)len;
}

static int sys_read(struct kfd_sys *base, const char *path, char *buf, size_t size)
{
    struct fake *fake = fake_of(base);
    struct kfd_kept kept = kfd_keep();

    if (fake_sysfs_owns(fake->profile, path))
        return kfd_let_go(kept, read_sysfs(fake, path, buf, size));
    return kfd_let_go(kept, read_real(path, buf, size));
}

static int sys_list(struct kfd_sys *base, const char *path,
                    int (*each)(void *arg, const char *name), void *arg)
{
    struct fake *fake = fake_of(base);
    struct kfd_kept kept = kfd_keep();

    if (fake_proctree_owns(path))
        return kfd_let_go(kept, fake_proctree_list(fake, path, each, arg));
    /* Folders that the host fills too show the fake's part only. */
    return kfd_let_go(kept, fake_sysfs_list(fake->profile, path, each, arg));
}

/* Nodes as udev leaves them; one that may not be opened belongs to a group of its own. */
static int stat_node(uint32_t presence, uint32_t major, uint32_t minor, struct kfd_sys_stat *out)
{
    if (presence == FAKE_MISSING)
        return -ENOENT;
    *out = (struct kfd_sys_stat){.mode = S_IFCHR | (presence == FAKE_DENIED ? 0660 : 0666),
                                 .gid = RENDER_GROUP,
                                 .device_major = major,
                                 .device_minor = minor};
    return 0;
}

static int stat_dri(const struct fake *fake, uint32_t gpu, enum fake_file_kind kind,
                    struct kfd_sys_stat *out)
{
    const struct fake_gpu *profile = &fake->profile->gpus[gpu];

    return stat_node(profile->render_node, FAKE_DRM_MAJOR,
                     profile->render_minor - (kind == FAKE_FILE_PRIMARY ? PRIMARY_MINORS : 0), out);
}

/* An open node, of this process or inherited by it. -EBADF: the descriptor is of none. */
static int stat_open_node(struct fake *fake, int fd, struct kfd_sys_stat *out)
{
    int ret = -EBADF, err;
    struct fake_process *p = fake_process_get(fake, &err);
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_dev != fake->machine.dev)
        return ret;
    for (; p != NULL && ret == -EBADF; p = p->inherited) {
        const struct fake_file *file;

        fake_process_lock(p);
        file = fake_map_get(&p->files_by_ino, st.st_ino);
        if (file != NULL && file->kind == FAKE_FILE_KFD)
            ret = stat_node(FAKE_PRESENT, FAKE_KFD_MAJOR, 0, out);
        else if (file != NULL)
            ret = stat_dri(fake, file->gpu, file->kind, out);
        fake_process_unlock(p);
    }
    return ret;
}

static int stat_real(const char *path, struct kfd_sys_stat *out)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return -errno;
    *out = (struct kfd_sys_stat){.mode = st.st_mode,
                                 .uid = st.st_uid,
                                 .gid = st.st_gid,
                                 .device_major = major(st.st_rdev),
                                 .device_minor = minor(st.st_rdev)};
    return 0;
}

static int stat_path(struct fake *fake, const char *path, struct kfd_sys_stat *out)
{
    enum fake_file_kind kind;
    int gpu, fd, end = 0;

    if (strcmp(path, "/dev/kfd") == 0)
        return stat_node(fake->profile->kfd_node, FAKE_KFD_MAJOR, 0, out);
    if (sscanf(path, "/proc/self/fd/%d%n", &fd, &end) == 1 && path[end] == '\0' &&
        stat_open_node(fake, fd, out) == 0)
        return 0;
    if (strncmp(path, "/dev/dri/", 9) != 0)
        return stat_real(path, out);
    gpu = dri_gpu(fake, path, &kind);
    return gpu < 0 ? gpu : stat_dri(fake, (uint32_t)gpu, kind, out);
}

static int sys_stat_path(struct kfd_sys *base, const char *path, struct kfd_sys_stat *out)
{
    struct kfd_kept kept = kfd_keep();

    return kfd_let_go(kept, stat_path(fake_of(base), path, out));
}

static int sys_product_name(struct kfd_sys *base, int drm_fd, char *buf, size_t size)
{
    struct fake *fake = fake_of(base);
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_process *p, *owner;
    struct kfd_kept kept = kfd_keep();
    int err;

    p = fake_process_get(fake, &err);
    if (p == NULL)
        return kfd_let_go(kept, err);
    if (fake_fd_lock(fake, p, drm_fd, &owner, &file, &kind) != FAKE_FD_FILE || file->vm == NULL)
        err = -EBADF;
    else if (fake->profile->gpus[file->gpu].product[0] == '\0')
        err = -ENOENT;
    else
        err = snprintf(buf, size, "%s", fake->profile->gpus[file->gpu].product) < 0 ? -EIO : 0;
    fake_process_unlock(owner);
    return kfd_let_go(kept, err);
}

static struct kfd_sys_state **sys_state(struct kfd_sys *base)
{
    return &((struct sys *)(void *)base)->state;
}

static const struct kfd_sys_ops ops = {
    .open_path = sys_open,
    .close_fd = sys_close,
    .dup_fd = sys_dup,
    .request = sys_request,
    .map_pages = sys_map,
    .unmap_pages = sys_unmap,
    .protect_pages = sys_protect,
    .advise_pages = sys_advise,
    .read_file = sys_read,
    .list_dir = sys_list,
    .stat_path = sys_stat_path,
    .product_name = sys_product_name,
    .state = sys_state,
};

struct kfd_sys *fake_sys_new(struct fake *fake)
{
    struct sys *sys = calloc(1, sizeof(*sys));

    if (sys == NULL)
        return NULL;
    sys->base.ops = &ops;
    sys->fake = fake;
    return &sys->base;
}

void fake_sys_release(struct kfd_sys *base)
{
    struct sys *sys = (struct sys *)(void *)base;

    if (sys->state != NULL)
        sys->state->release(base, sys->state);
    sys->state = NULL;
}

void fake_sys_free(struct kfd_sys *sys)
{
    free(sys);
}
