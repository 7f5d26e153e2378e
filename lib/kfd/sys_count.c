/* SPDX-License-Identifier: MIT */
/* A system that counts what passes through it. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/uapi.h"
#include "kfd/poison.h"

enum counter {
    OPENS,
    CLOSES,
    DUPS,
    MAPS,
    UNMAPS,
    PROTECTS,
    ADVISES,
    READS,
    LISTS,
    REQUESTS,
    COUNTERS,
};

struct count_sys {
    struct kfd_sys base;
    struct kfd_sys *next;
    atomic_ullong seen[COUNTERS];
    atomic_ullong kfd[256], drm[256];
};

/* Counts one operation and gives the system below. */
static struct kfd_sys *count(struct kfd_sys *sys, enum counter which)
{
    struct count_sys *self = (struct count_sys *)sys;

    atomic_fetch_add_explicit(&self->seen[which], 1, memory_order_relaxed);
    return self->next;
}

static struct kfd_sys *below(struct kfd_sys *sys)
{
    return ((struct count_sys *)sys)->next;
}

static int count_open_path(struct kfd_sys *sys, const char *path, int flags)
{
    struct kfd_sys *next = count(sys, OPENS);

    return next->ops->open_path(next, path, flags);
}

static int count_close_fd(struct kfd_sys *sys, int fd)
{
    struct kfd_sys *next = count(sys, CLOSES);

    return next->ops->close_fd(next, fd);
}

static int count_dup_fd(struct kfd_sys *sys, int fd, int min)
{
    struct kfd_sys *next = count(sys, DUPS);

    return next->ops->dup_fd(next, fd, min);
}

static int count_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct count_sys *self = (struct count_sys *)sys;
    struct kfd_sys *next = count(sys, REQUESTS);
    unsigned nr = _IOC_NR(request);

    if (_IOC_TYPE(request) == KFD_UAPI_TYPE_KFD)
        atomic_fetch_add_explicit(&self->kfd[nr], 1, memory_order_relaxed);
    else if (_IOC_TYPE(request) == KFD_UAPI_TYPE_DRM)
        atomic_fetch_add_explicit(&self->drm[nr], 1, memory_order_relaxed);
    return next->ops->request(next, fd, request, arg);
}

static int count_map_pages(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags,
                           int fd, uint64_t offset, void **out)
{
    struct kfd_sys *next = count(sys, MAPS);

    return next->ops->map_pages(next, addr, size, prot, flags, fd, offset, out);
}

static int count_unmap_pages(struct kfd_sys *sys, void *addr, size_t size)
{
    struct kfd_sys *next = count(sys, UNMAPS);

    return next->ops->unmap_pages(next, addr, size);
}

static int count_protect_pages(struct kfd_sys *sys, void *addr, size_t size, int prot)
{
    struct kfd_sys *next = count(sys, PROTECTS);

    return next->ops->protect_pages(next, addr, size, prot);
}

static int count_advise_pages(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct kfd_sys *next = count(sys, ADVISES);

    return next->ops->advise_pages(next, addr, size, advice);
}

static int count_read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct kfd_sys *next = count(sys, READS);

    return next->ops->read_file(next, path, buf, size);
}

static int count_list_dir(struct kfd_sys *sys, const char *path,
                          int (*each)(void *arg, const char *name), void *arg)
{
    struct kfd_sys *next = count(sys, LISTS);

    return next->ops->list_dir(next, path, each, arg);
}

static int count_stat_path(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct kfd_sys *next = below(sys);

    return next->ops->stat_path ? next->ops->stat_path(next, path, out) : -ENOSYS;
}

static int count_product_name(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    struct kfd_sys *next = below(sys);

    return next->ops->product_name(next, drm_fd, buf, size);
}

static struct kfd_sys_state **count_state(struct kfd_sys *sys)
{
    struct kfd_sys *next = below(sys);

    return next->ops->state ? next->ops->state(next) : NULL;
}

static void count_destroy(struct kfd_sys *sys)
{
    free(sys);
}

static const struct kfd_sys_ops count_ops = {
    .open_path = count_open_path,
    .close_fd = count_close_fd,
    .dup_fd = count_dup_fd,
    .request = count_request,
    .map_pages = count_map_pages,
    .unmap_pages = count_unmap_pages,
    .protect_pages = count_protect_pages,
    .advise_pages = count_advise_pages,
    .read_file = count_read_file,
    .list_dir = count_list_dir,
    .stat_path = count_stat_path,
    .product_name = count_product_name,
    .state = count_state,
    .destroy = count_destroy,
};

int kfd_sys_count_new(struct kfd_sys *next, struct kfd_sys **out)
{
    struct count_sys *self = calloc(1, sizeof(*self));

    if (!self)
        return kfd_fail(-ENOMEM, "no memory for a counter");
    self->base.ops = &count_ops;
    self->next = next;
    *out = &self->base;
    return 0;
}

static uint64_t load(atomic_ullong *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

void kfd_sys_count_get(struct kfd_sys *counter, struct kfd_sys_counts *out)
{
    struct count_sys *self = (struct count_sys *)counter;

    *out = (struct kfd_sys_counts){
        .opens = load(&self->seen[OPENS]),
        .closes = load(&self->seen[CLOSES]),
        .dups = load(&self->seen[DUPS]),
        .maps = load(&self->seen[MAPS]),
        .unmaps = load(&self->seen[UNMAPS]),
        .protects = load(&self->seen[PROTECTS]),
        .advises = load(&self->seen[ADVISES]),
        .reads = load(&self->seen[READS]),
        .lists = load(&self->seen[LISTS]),
        .requests = load(&self->seen[REQUESTS]),
    };
    for (unsigned nr = 0; nr < 256; nr++) {
        out->kfd[nr] = load(&self->kfd[nr]);
        out->drm[nr] = load(&self->drm[nr]);
    }
}

void kfd_sys_count_reset(struct kfd_sys *counter)
{
    struct count_sys *self = (struct count_sys *)counter;

    for (unsigned i = 0; i < COUNTERS; i++)
        atomic_store_explicit(&self->seen[i], 0, memory_order_relaxed);
    for (unsigned nr = 0; nr < 256; nr++) {
        atomic_store_explicit(&self->kfd[nr], 0, memory_order_relaxed);
        atomic_store_explicit(&self->drm[nr], 0, memory_order_relaxed);
    }
}
