/* SPDX-License-Identifier: MIT */
/* A system in which one chosen operation fails without reaching the next system. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/poison.h"

struct inject_sys {
    struct kfd_sys base;
    struct kfd_sys *next;
    pthread_mutex_t lock; /* of all below; never held over an operation */
    struct kfd_sys_fault fault;
    bool armed, fired;
    uint64_t seen;
};

static struct kfd_sys *below(struct kfd_sys *sys)
{
    return ((struct inject_sys *)sys)->next;
}

static bool matches(const struct kfd_sys_fault *fault, enum kfd_sys_op op, unsigned long request)
{
    if (fault->op == KFD_SYS_ANY)
        return true;
    if (fault->op != op)
        return false;
    return op != KFD_SYS_REQUEST || fault->request == 0 ||
           fault->request == (uint16_t)(request & 0xffff);
}

/* 0, or the error that this operation is to fail with. */
static int strike(struct kfd_sys *sys, enum kfd_sys_op op, unsigned long request)
{
    struct inject_sys *self = (struct inject_sys *)sys;
    int ret = 0;

    pthread_mutex_lock(&self->lock);
    if (self->armed && matches(&self->fault, op, request)) {
        uint64_t before = self->seen++;

        if (before == self->fault.skip || (self->fault.forever && before > self->fault.skip)) {
            self->fired = true;
            ret = -self->fault.error;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return ret;
}

static int inject_open_path(struct kfd_sys *sys, const char *path, int flags)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_OPEN, 0);

    return ret < 0 ? ret : next->ops->open_path(next, path, flags);
}

static int inject_close_fd(struct kfd_sys *sys, int fd)
{
    struct kfd_sys *next = below(sys);

    return next->ops->close_fd(next, fd);
}

static int inject_dup_fd(struct kfd_sys *sys, int fd, int min)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_DUP, 0);

    return ret < 0 ? ret : next->ops->dup_fd(next, fd, min);
}

static int inject_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_REQUEST, request);

    return ret < 0 ? ret : next->ops->request(next, fd, request, arg);
}

static int inject_map_pages(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags,
                            int fd, uint64_t offset, void **out)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_MAP, 0);

    return ret < 0 ? ret : next->ops->map_pages(next, addr, size, prot, flags, fd, offset, out);
}

static int inject_unmap_pages(struct kfd_sys *sys, void *addr, size_t size)
{
    struct kfd_sys *next = below(sys);

    return next->ops->unmap_pages(next, addr, size);
}

static int inject_protect_pages(struct kfd_sys *sys, void *addr, size_t size, int prot)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_PROTECT, 0);

    return ret < 0 ? ret : next->ops->protect_pages(next, addr, size, prot);
}

static int inject_advise_pages(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct kfd_sys *next = below(sys);

    return next->ops->advise_pages(next, addr, size, advice);
}

static int inject_read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_READ, 0);

    return ret < 0 ? ret : next->ops->read_file(next, path, buf, size);
}

static int inject_list_dir(struct kfd_sys *sys, const char *path,
                           int (*each)(void *arg, const char *name), void *arg)
{
    struct kfd_sys *next = below(sys);
    int ret = strike(sys, KFD_SYS_READ, 0);

    return ret < 0 ? ret : next->ops->list_dir(next, path, each, arg);
}

static int inject_stat_path(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct kfd_sys *next = below(sys);

    return next->ops->stat_path ? next->ops->stat_path(next, path, out) : -ENOSYS;
}

static int inject_product_name(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    struct kfd_sys *next = below(sys);

    return next->ops->product_name(next, drm_fd, buf, size);
}

static struct kfd_sys_state **inject_state(struct kfd_sys *sys)
{
    struct kfd_sys *next = below(sys);

    return next->ops->state ? next->ops->state(next) : NULL;
}

static void inject_destroy(struct kfd_sys *sys)
{
    struct inject_sys *self = (struct inject_sys *)sys;

    pthread_mutex_destroy(&self->lock);
    free(self);
}

static const struct kfd_sys_ops inject_ops = {
    .open_path = inject_open_path,
    .close_fd = inject_close_fd,
    .dup_fd = inject_dup_fd,
    .request = inject_request,
    .map_pages = inject_map_pages,
    .unmap_pages = inject_unmap_pages,
    .protect_pages = inject_protect_pages,
    .advise_pages = inject_advise_pages,
    .read_file = inject_read_file,
    .list_dir = inject_list_dir,
    .stat_path = inject_stat_path,
    .product_name = inject_product_name,
    .state = inject_state,
    .destroy = inject_destroy,
};

int kfd_sys_inject_new(struct kfd_sys *next, struct kfd_sys **out)
{
    struct inject_sys *self = calloc(1, sizeof(*self));

    if (!self)
        return kfd_fail(-ENOMEM, "no memory for an injector");
    self->base.ops = &inject_ops;
    self->next = next;
    pthread_mutex_init(&self->lock, NULL);
    *out = &self->base;
    return 0;
}

void kfd_sys_inject_set(struct kfd_sys *injector, const struct kfd_sys_fault *fault)
{
    struct inject_sys *self = (struct inject_sys *)injector;

    pthread_mutex_lock(&self->lock);
    self->armed = fault != NULL;
    self->fired = false;
    self->seen = 0;
    if (fault)
        self->fault = *fault;
    pthread_mutex_unlock(&self->lock);
}

uint64_t kfd_sys_inject_seen(struct kfd_sys *injector, bool *fired)
{
    struct inject_sys *self = (struct inject_sys *)injector;
    uint64_t seen;

    pthread_mutex_lock(&self->lock);
    seen = self->seen;
    if (fired)
        *fired = self->fired;
    pthread_mutex_unlock(&self->lock);
    return seen;
}
