/* SPDX-License-Identifier: MIT */
#include "hook.h"

#include <errno.h>
#include <string.h>

static struct hook *hook_of(struct kfd_sys *sys)
{
    return (struct hook *)sys;
}

int hook_pass_open(struct hook *hook, const char *path, int flags)
{
    return hook->next->ops->open_path(hook->next, path, flags);
}

int hook_pass_request(struct hook *hook, int fd, unsigned long request, void *arg)
{
    return hook->next->ops->request(hook->next, fd, request, arg);
}

int hook_pass_read(struct hook *hook, const char *path, char *buf, size_t size)
{
    return hook->next->ops->read_file(hook->next, path, buf, size);
}

static int on_open(struct kfd_sys *sys, const char *path, int flags)
{
    struct hook *hook = hook_of(sys);

    return hook->open_path ? hook->open_path(hook, path, flags) : hook_pass_open(hook, path, flags);
}

static int on_close(struct kfd_sys *sys, int fd)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->close_fd(hook->next, fd);
}

static int on_dup(struct kfd_sys *sys, int fd, int min)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->dup_fd(hook->next, fd, min);
}

static int on_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct hook *hook = hook_of(sys);

    return hook->request ? hook->request(hook, fd, request, arg)
                         : hook_pass_request(hook, fd, request, arg);
}

static int on_map(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                  uint64_t offset, void **out)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->map_pages(hook->next, addr, size, prot, flags, fd, offset, out);
}

static int on_unmap(struct kfd_sys *sys, void *addr, size_t size)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->unmap_pages(hook->next, addr, size);
}

static int on_protect(struct kfd_sys *sys, void *addr, size_t size, int prot)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->protect_pages(hook->next, addr, size, prot);
}

static int on_advise(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->advise_pages(hook->next, addr, size, advice);
}

static int on_read(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct hook *hook = hook_of(sys);

    return hook->read_file ? hook->read_file(hook, path, buf, size)
                           : hook_pass_read(hook, path, buf, size);
}

static int on_list(struct kfd_sys *sys, const char *path, int (*each)(void *arg, const char *name),
                   void *arg)
{
    struct hook *hook = hook_of(sys);

    if (hook->list_dir)
        return hook->list_dir(hook, path, each, arg);
    return hook->next->ops->list_dir(hook->next, path, each, arg);
}

static int on_product(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->product_name(hook->next, drm_fd, buf, size);
}

static int on_stat(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct hook *hook = hook_of(sys);

    if (hook->stat_path)
        return hook->stat_path(hook, path, out);
    if (!hook->next->ops->stat_path)
        return -ENOSYS;
    return hook->next->ops->stat_path(hook->next, path, out);
}

static struct kfd_sys_state **on_state(struct kfd_sys *sys)
{
    struct hook *hook = hook_of(sys);

    return hook->next->ops->state ? hook->next->ops->state(hook->next) : NULL;
}

static const struct kfd_sys_ops hook_ops = {
    .open_path = on_open,
    .close_fd = on_close,
    .dup_fd = on_dup,
    .request = on_request,
    .map_pages = on_map,
    .unmap_pages = on_unmap,
    .protect_pages = on_protect,
    .advise_pages = on_advise,
    .read_file = on_read,
    .list_dir = on_list,
    .product_name = on_product,
    .stat_path = on_stat,
    .state = on_state,
};

void hook_init(struct hook *hook, struct kfd_sys *next)
{
    memset(hook, 0, sizeof(*hook));
    hook->sys.ops = &hook_ops;
    hook->next = next ? next : kfd_sys_linux();
}
