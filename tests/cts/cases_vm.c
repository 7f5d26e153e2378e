/* SPDX-License-Identifier: MIT */
/* ACQUIRE_VM and what needs it. */
#include "cts.h"

static void before(struct cts *c)
{
    struct kfd_uapi_create_queue q = {
        .gpu_id = c->gpu[0].id, .queue_type = 0, .ring_size = 4096, .queue_percentage = 100};
    uint64_t handle = (uint64_t)c->gpu[0].id << 32;
    uint32_t gem;
    int fd;

    cts_open(c);
    cts_alloc(c, "alloc", -ENODEV, 0, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_map(c, "map", CTS_ANY, handle, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", -EINVAL, handle);
    gem = cts_gem_create(c, "create a GEM buffer", 0, c->gpu[0].drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    fd = cts_prime_export(c, "export it", 0, c->gpu[0].drm, gem, O_CLOEXEC | O_RDWR);
    cts_import(c, "import", -ENODEV, c->gpu[0].id, fd, c->va);
    cts_info(c, "dma-buf info needs no VM", 0, fd);
    cts_row(c, "queue", -ESRCH, cts_request(c, c->kfd, KFD_CODE_CREATE_QUEUE, &q), "-");
    cts_close(c, fd);
}

static void acquire(struct cts *c)
{
    uint32_t id = c->gpu[0].id;
    int other, twin, plain;

    cts_open(c);
    other = cts_open_render(c, 0);
    twin = c->sys->ops->dup_fd(c->sys, c->gpu[0].drm, 3);
    plain = open("/dev/null", O_RDWR | O_CLOEXEC);
    cts_acquire(c, "descriptor -1", -EINVAL, -1, id);
    cts_acquire(c, "closed descriptor", -EINVAL, 1000, id);
    cts_acquire(c, "/dev/null", -EINVAL, plain, id);
    cts_acquire(c, "/dev/kfd", -EINVAL, c->kfd, id);
    cts_acquire(c, "unknown GPU", -EINVAL, c->gpu[0].drm, CTS_BAD_GPU);
    cts_acquire(c, "GPU 0", -EINVAL, c->gpu[0].drm, 0);
    cts_acquire(c, "the render node", 0, c->gpu[0].drm, id);
    cts_acquire(c, "again", 0, c->gpu[0].drm, id);
    cts_acquire(c, "a dup of it", 0, twin, id);
    cts_acquire(c, "another open of the node", -EBUSY, other, id);
    cts_acquire(c, "/dev/null when acquired", -EBUSY, plain, id);
    cts_acquire(c, "descriptor -1 when acquired", -EINVAL, -1, id);
    close(plain);
    cts_close(c, twin);
    cts_close(c, other);
}

/* The kernel keeps the file: closing every descriptor changes nothing for KFD. */
static void closed(struct cts *c)
{
    uint64_t h;

    cts_start(c);
    cts_close(c, c->gpu[0].drm);
    h = cts_alloc(c, "alloc after the render node is closed", 0, 0, c->va, MiB(2),
                  KFD_MEM_GTT | CTS_RW);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", 0, h);
    cts_acquire(c, "a new open is another file", -EBUSY, cts_open_render(c, 0), c->gpu[0].id);
}

static void used(struct cts *c)
{
    int drm;
    uint32_t gem;

    cts_open(c);
    drm = c->gpu[0].drm;
    gem = cts_gem_create(c, "create", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    cts_gem_va(c, "map by GEM_VA", 0, drm, gem, 1, c->va, 0, MiB(2), 6);
    cts_acquire(c, "acquire a VM in use", c->minor < 12 ? -EINVAL : 0, drm, c->gpu[0].id);
    cts_gem_va(c, "the mapping is still there", -EINVAL, drm, gem, 1, c->va, 0, MiB(2), 6);
    cts_gem_va(c, "unmap", 0, drm, gem, 2, c->va, 0, MiB(2), 0);
}

static void kfd_reopened(struct cts *c)
{
    uint64_t h;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_close(c, c->kfd);
    c->kfd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    cts_row(c, "reopen", 0, c->kfd, "-");
    cts_acquire(c, "still acquired", 0, c->gpu[0].drm, c->gpu[0].id);
    cts_map(c, "the handle is still good", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", 0, h);
}

const struct cts_case cts_vm_cases[] = {
    {"vm.before", 0, before}, {"vm.acquire", 0, acquire},           {"vm.closed", 0, closed},
    {"vm.used", 0, used},     {"vm.kfd_reopened", 0, kfd_reopened}, {0},
};
