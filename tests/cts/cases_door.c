/* SPDX-License-Identifier: MIT */
/* Opening, sharing and inheriting the device files. */
#include "cts.h"

static void version_row(struct cts *c, const char *step, long want, int fd)
{
    struct kfd_ioctl_get_version_args v = {0};
    long ret = cts_request(c, fd, KFD_CODE_GET_VERSION, &v);

    cts_row(c, step, want, ret, "%u.%u", v.major_version, v.minor_version);
}

static int open_kfd(struct cts *c, const char *step, int flags)
{
    int fd = c->sys->ops->open_path(c->sys, "/dev/kfd", flags | O_CLOEXEC);

    cts_row(c, step, 0, fd, "-");
    return fd;
}

static void event_row(struct cts *c, const char *step, long want, int fd, unsigned long code,
                      uint32_t id)
{
    struct kfd_ioctl_set_event_args a = {.event_id = id};

    cts_row(c, step, want, cts_request(c, fd, code, &a), "-");
}

static void door_open(struct cts *c)
{
    struct kfd_ioctl_create_event_args e = {.event_type = KFD_IOC_EVENT_SIGNAL};
    int first = open_kfd(c, "open read-write", O_RDWR), second, third, twin;

    version_row(c, "version", 0, first);
    second = open_kfd(c, "open read-only", O_RDONLY);
    version_row(c, "version through the read-only one", 0, second);
    cts_row(c, "create an event through it", 0, cts_request(c, second, KFD_CODE_CREATE_EVENT, &e),
            "id=%u", e.event_id);
    third = open_kfd(c, "open again", O_RDWR);
    event_row(c, "set the event through another file", 0, third, KFD_CODE_SET_EVENT, e.event_id);
    twin = c->sys->ops->dup_fd(c->sys, third, 3);
    version_row(c, "version through a dup", 0, twin);
    cts_close(c, third);
    version_row(c, "the dup after the original is closed", 0, twin);
    cts_close(c, twin);
    cts_close(c, second);
    cts_close(c, first);
    first = open_kfd(c, "reopen after the last close", O_RDWR);
    event_row(c, "the event outlives every file", 0, first, KFD_CODE_SET_EVENT, e.event_id);
}

static void door_reopen(struct cts *c)
{
    long bad = 0;

    for (int i = 0; i < 50; i++) {
        int fd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);

        bad += fd < 0;
        cts_close(c, fd);
    }
    cts_row(c, "50 pairs of open and close", 0, bad ? -EIO : 0, "-");
}

static void forked_kfd(struct cts *c, void *arg)
{
    uint8_t big[64] = {0};
    void *p;
    int own;

    version_row(c, "child: version on the inherited file", -EBADF, c->kfd);
    cts_free(c, "child: free on the inherited file", -EBADF, 1);
    cts_row(c, "child: unknown number on the inherited file", -ENOTTY,
            cts_request(c, c->kfd, _IOWR('K', 0x7f, uint64_t), big), "-");
    p = cts_mmap(c, "child: mmap of the inherited file", -EINVAL, c->kfd, 0, 4096, PROT_READ,
                 MAP_SHARED);
    cts_munmap(c, p, 4096);
    own = open_kfd(c, "child: open its own", O_RDWR);
    version_row(c, "child: version on its own", 0, own);
    version_row(c, "child: the inherited file stays dead", -EBADF, c->kfd);
    cts_close(c, own);
}

static void door_fork(struct cts *c)
{
    c->kfd = open_kfd(c, "open", O_RDWR);
    cts_fork(c, forked_kfd, NULL);
    version_row(c, "parent: version afterwards", 0, c->kfd);
    cts_mmap(c, "parent: mmap at offset 0", -ENODEV, c->kfd, 0, 4096, PROT_READ, MAP_SHARED);
}

struct inherited {
    uint32_t gem;
    int fd;
    uint64_t handle;
};

static void forked_render(struct cts *c, void *arg)
{
    struct inherited *in = arg;
    int drm = c->gpu[0].drm, fresh;
    uint64_t at;
    char *view;

    cts_gem_mmap(c, "child: the inherited render file knows the parent's handle", 0, drm, in->gem);
    at = cts_gem_mmap(c, "child: where to map it", 0, drm, in->gem);
    view = cts_mmap(c, "child: map it", 0, drm, at, MiB(2), PROT_READ | PROT_WRITE, MAP_SHARED);
    if (view)
        strcpy(view, "child");
    cts_gem_create(c, "child: a buffer of its own there", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    cts_gem_va(c, "child: map over the parent's mapping", -EINVAL, drm, in->gem, 1, c->va, 0,
               MiB(2), 6);
    cts_gem_va(c, "child: unmap the parent's mapping", 0, drm, in->gem, 2, c->va, 0, MiB(2), 0);
    cts_gem_va(c, "child: map elsewhere", 0, drm, in->gem, 1, c->va + MiB(8), 0, MiB(2), 6);
    cts_prime(c, "child: PRIME import of the parent's buffer", 0, drm, in->fd);
    c->kfd = open_kfd(c, "child: open its own", O_RDWR);
    cts_free(c, "child: the parent's KFD handle is unknown", -EINVAL, in->handle);
    cts_acquire(c, "child: acquire through the parent's render file", -EINVAL, drm, c->gpu[0].id);
    fresh = cts_open_render(c, 0);
    cts_acquire(c, "child: acquire through a render file of its own", 0, fresh, c->gpu[0].id);
}

/* The inherited file still is the parent's: its handles and its VM. */
static void door_fork_render(struct cts *c)
{
    struct inherited in;
    uint64_t at;
    char *view;
    int drm;

    cts_start(c);
    drm = c->gpu[0].drm;
    in.gem = cts_gem_create(c, "create", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    in.fd = cts_prime_export(c, "PRIME export", 0, drm, in.gem, O_CLOEXEC | O_RDWR);
    cts_gem_va(c, "map", 0, drm, in.gem, 1, c->va, 0, MiB(2), 6);
    in.handle = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_fork(c, forked_render, &in);
    cts_free(c, "free in the parent", 0, in.handle);
    cts_gem_va(c, "the mapping is gone", -ENOENT, drm, in.gem, 2, c->va, 0, MiB(2), 0);
    cts_gem_va(c, "the child's is there", -EINVAL, drm, in.gem, 1, c->va + MiB(8), 0, MiB(2), 6);
    cts_gem_mmap(c, "the child's buffer too", 0, drm, in.gem + 1);
    at = cts_gem_mmap(c, "where the parent's is", 0, drm, in.gem);
    view = cts_mmap(c, "map it", 0, drm, at, MiB(2), PROT_READ, MAP_SHARED);
    cts_row(c, "what the child wrote", 0, view && !strcmp(view, "child") ? 0 : -EIO, "-");
    cts_munmap(c, view, MiB(2));
    cts_close(c, in.fd);
}

const struct cts_case cts_door_cases[] = {
    {"door.open", CTS_NO_GPU, door_open},
    {"door.reopen", CTS_NO_GPU, door_reopen},
    {"door.fork", CTS_NO_GPU, door_fork},
    {"door.fork_render", 0, door_fork_render},
    {0},
};
