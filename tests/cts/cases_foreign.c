/* SPDX-License-Identifier: MIT */
/*
 * Dma-bufs that no amdgpu made, and callers that are not root. Only a kernel has either: the fake's
 * nodes are open or denied for everybody, and its IMPORT knows the fake's own dma-bufs.
 */
#include <stdio.h>
#include <grp.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <xf86drm.h>

#include "cts.h"

enum {
    MAP = 1,
    UNMAP = 2
};

#define SIZE MiB(1)
#define USER 1000

static int from_udmabuf(void)
{
    struct udmabuf_create a = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE};
    int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memfd, fd = -1;

    if (dev < 0)
        return -1;
    memfd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd >= 0 && !ftruncate(memfd, SIZE) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        a.memfd = (uint32_t)memfd;
        fd = ioctl(dev, UDMABUF_CREATE, &a);
    }
    close(memfd);
    close(dev);
    return fd;
}

static int from_heap(void)
{
    struct dma_heap_allocation_data a = {.len = SIZE, .fd_flags = O_RDWR | O_CLOEXEC};
    int dev = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC), ret;

    if (dev < 0)
        return -1;
    ret = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &a);
    close(dev);
    return ret < 0 ? -1 : (int)a.fd;
}

static int open_vgem(void)
{
    for (int i = 0; i < 16; i++) {
        char name[8] = "";
        struct drm_version v = {.name = name, .name_len = sizeof name - 1};
        int dev = open(cts_text("/dev/dri/card%d", i), O_RDWR | O_CLOEXEC);

        if (dev >= 0 && !ioctl(dev, DRM_IOCTL_VERSION, &v) && !strcmp(name, "vgem"))
            return dev;
        if (dev >= 0)
            close(dev);
    }
    return -1;
}

static int from_vgem(void)
{
    struct drm_mode_create_dumb dumb = {.height = SIZE / 4096, .width = 1024, .bpp = 32};
    struct drm_prime_handle prime = {.flags = O_CLOEXEC | O_RDWR, .fd = -1};
    int dev = open_vgem();

    if (dev < 0)
        return -1;
    if (!ioctl(dev, DRM_IOCTL_MODE_CREATE_DUMB, &dumb)) {
        prime.handle = dumb.handle;
        if (ioctl(dev, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime))
            prime.fd = -1;
    }
    close(dev);
    return prime.fd;
}

static void look(struct cts *c, const char *step, uint64_t va)
{
    struct cts_pte p;

    if (cts_translate(c, 0, va, &p) < 0)
        cts_row(c, step, 0, 0, "?");
    else
        cts_row(c, step, 0, 0, "%s%s%s%s",
                !p.page_size ? "not mapped"
                : p.system   ? "system"
                             : "VRAM",
                p.flags & KFD_VA_READ ? " r" : "", p.flags & KFD_VA_WRITE ? "w" : "",
                p.flags & KFD_VA_EXEC ? "x" : "");
}

/* 6.12 takes every exporter's, 6.1 those of amdgpu alone. */
static void by_kfd(struct cts *c, int fd, long want)
{
    uint32_t id = c->gpu[0].id;
    uint64_t h;
    int again;

    cts_info(c, "GET_DMABUF_INFO", -EINVAL, fd);
    cts_import(c, "KFD import, unknown GPU", -EINVAL, CTS_BAD_GPU, fd, c->va);
    h = cts_import(c, "KFD import", want, id, fd, c->va);
    if (!h)
        return;
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    look(c, "first page", c->va);
    look(c, "last page", c->va + SIZE - 4096);
    again = cts_export(c, "KFD export of it", CTS_ANY, h);
    cts_close(c, again);
    cts_free(c, "free while mapped", -EBUSY, h);
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    look(c, "after the unmap", c->va);
    cts_free(c, "free", 0, h);
}

static void by_drm(struct cts *c, int fd)
{
    int drm = c->gpu[0].drm;
    uint32_t gem = cts_prime(c, "PRIME", CTS_ANY, drm, fd);

    if (!gem)
        return;
    cts_gem_va(c, "GEM_VA map", CTS_ANY, drm, gem, MAP, c->va, 0, SIZE, 2);
    look(c, "first page", c->va);
    look(c, "last page", c->va + SIZE - 4096);
    cts_gem_mmap(c, "mmap offset", CTS_ANY, drm, gem);
    cts_gem_va(c, "GEM_VA unmap", CTS_ANY, drm, gem, UNMAP, c->va, 0, SIZE, 0);
    look(c, "after the unmap", c->va);
    cts_gem_close(c, "close", 0, drm, gem);
}

static void foreign(struct cts *c, int fd)
{
    if (fd < 0)
        cts_skip(c, "this kernel has no such exporter");
    cts_open(c);
    if (c->minor >= 12)
        cts_import(c, "KFD import before the VM", -ENODEV, c->gpu[0].id, fd, c->va);
    cts_close(c, c->kfd);
    for (uint32_t i = 0; i < c->gpus; i++)
        cts_close(c, c->gpu[i].drm);
    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    by_kfd(c, fd, c->minor >= 12 ? 0 : -EINVAL);
    by_drm(c, fd);
    cts_close(c, fd);
}

static void udmabuf(struct cts *c)
{
    foreign(c, from_udmabuf());
}

static void heap(struct cts *c)
{
    foreign(c, from_heap());
}

static void vgem(struct cts *c)
{
    foreign(c, from_vgem());
}

/* Modes are the node's only guard; what was opened before goes on working. */
static void as_user(struct cts *c, void *arg)
{
    const char *render = cts_text("/dev/dri/renderD%u", c->gpu[0].minor);
    struct kfd_ioctl_criu_args criu = {0};
    uint64_t h;
    int drm, fd;

    if (setgroups(0, NULL) || setgid(USER) || setuid(USER))
        cts_skip(c, "not root");
    fd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    cts_row(c, "user: open /dev/kfd", arg ? 0 : -EACCES, fd, "-");
    drm = c->sys->ops->open_path(c->sys, render, O_RDWR | O_CLOEXEC);
    cts_row(c, "user: open the render node", arg ? 0 : -EACCES, drm, "-");
    if (fd < 0 || drm < 0)
        return;
    c->kfd = fd;
    cts_acquire(c, "user: acquire", 0, drm, c->gpu[0].id);
    h = cts_alloc(c, "user: alloc", 0, 0, c->va, SIZE, KFD_MEM_VRAM | CTS_RW);
    cts_map(c, "user: map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_row(c, "user: CRIU", -EACCES, cts_request(c, fd, KFD_CODE_CRIU_OP, &criu), "-");
    cts_unmap(c, "user: unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    if (arg && *(int *)arg >= 0) {
        uint64_t in = cts_import(c, "user: import from root", 0, c->gpu[0].id, *(int *)arg, 0);

        cts_free(c, "user: free the import", 0, in);
    }
    cts_free(c, "user: free", 0, h);
}

static void users(struct cts *c)
{
    const char *render = cts_text("/dev/dri/renderD%u", c->gpu[0].minor);
    struct stat k, r;
    uint64_t h;
    int fd = -1;

    if (getuid() || stat("/dev/kfd", &k) || stat(render, &r) || chmod("/dev/kfd", 0600) ||
        chmod(render, 0600))
        cts_skip(c, "not root");
    cts_start(c);
    h = cts_alloc(c, "root: alloc", 0, 0, 0, SIZE, KFD_MEM_VRAM | CTS_RW);
    if (c->minor >= 12)
        fd = cts_export(c, "root: export", 0, h);
    cts_fork(c, as_user, NULL);
    cts_row(c, "both nodes for everybody", 0,
            chmod("/dev/kfd", 0666) || chmod(render, 0666) ? -errno : 0, "-");
    cts_fork(c, as_user, &fd);
    if (chmod("/dev/kfd", k.st_mode & 07777) || chmod(render, r.st_mode & 07777))
        cts_row(c, "the modes are put back", 0, -errno, "-");
    cts_free(c, "root: free", 0, h);
    if (setuid(USER))
        cts_skip(c, "no such change");
    h = cts_alloc(c, "root that became a user: alloc", 0, 0, 0, SIZE, KFD_MEM_VRAM | CTS_RW);
    cts_free(c, "and free", 0, h);
}

const struct cts_case cts_foreign_cases[] = {
    {"foreign.udmabuf", CTS_DRIVER, udmabuf},
    {"foreign.heap", CTS_DRIVER, heap},
    {"foreign.vgem", CTS_DRIVER, vgem},
    {"foreign.users", CTS_DRIVER, users},
    {0},
};
