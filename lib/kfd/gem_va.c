/* SPDX-License-Identifier: MIT */
/* GEM_VA: page tables of the acquired VM, mapping by mapping. */
#include <errno.h>

#include <kfdirect/kfd.h>
#include "kfd/caps.h"
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/request.h"
#include "kfd/uapi.h"
#include "kfd/vm.h"
#include "kfd/poison.h"

#define RIGHTS (KFD_VA_READ | KFD_VA_WRITE | KFD_VA_EXEC)

static int va_request(struct kfd_device *dev, unsigned long request, void *arg)
{
    int ret = kfd_request(dev->kfd, dev->vm->fd, request, arg);

    return ret < 0 ? kfd_fail_in(ret, "device %u (%s)", dev->info.index, dev->info.name) : 0;
}

static int need_syncobj(struct kfd_device *dev)
{
    struct drm_syncobj_create args = {0};
    int ret;

    if (dev->vm->syncobj)
        return 0;
    ret = va_request(dev, DRM_CODE_SYNCOBJ_CREATE, &args);
    if (ret == 0)
        dev->vm->syncobj = args.handle;
    return ret;
}

/* A failed request signals no point, so its number is given to the next. */
static int change_on_timeline(struct kfd_device *dev, struct kfd_uapi_gem_va *args)
{
    struct kfd_vm *vm = dev->vm;
    int ret;

    pthread_mutex_lock(&vm->lock);
    ret = need_syncobj(dev);
    if (ret == 0) {
        args->vm_timeline_syncobj_out = vm->syncobj;
        args->vm_timeline_point = vm->point + 1;
        ret = va_request(dev, DRM_CODE_GEM_VA, args);
    }
    if (ret == 0)
        vm->point++;
    pthread_mutex_unlock(&vm->lock);
    return ret;
}

int kfd_gem_va(struct kfd_device *dev, enum kfd_va_op op, uint32_t gem, uint64_t va,
               uint64_t offset, uint64_t size, uint32_t flags)
{
    struct kfd_uapi_gem_va args = {
        .handle = gem,
        .operation = op,
        .flags = flags,
        .va_address = va,
        .offset_in_bo = offset,
        .map_size = size,
    };

    if (op < KFD_VA_MAP || op > KFD_VA_REPLACE)
        return kfd_fail(-EINVAL, "device %u: GEM_VA: there is no operation %d", dev->info.index,
                        (int)op);
    if (flags & ~RIGHTS)
        return kfd_fail(-EINVAL, "device %u: GEM_VA: flags 0x%x has bits that are not rights",
                        dev->info.index, flags);
    if (kfd_caps_drm_timeline(&dev->info) && kfd_is_owner(dev->kfd))
        return change_on_timeline(dev, &args);
    return va_request(dev, DRM_CODE_GEM_VA_OLD, &args);
}

/* The device's timeline in device 0's file, where one request waits for those of several devices.
 */
static int share_syncobj(struct kfd_device *dev, uint32_t *handle)
{
    struct kfd *kfd = dev->kfd;
    struct kfd_device *home = &kfd->devices[0];
    struct drm_syncobj_handle args = {.handle = dev->vm->syncobj};
    uint32_t *shared = &kfd->syncobjs[dev->info.index];
    int ret = 0;

    pthread_mutex_lock(&home->vm->lock);
    if (!*shared) {
        ret = va_request(dev, DRM_CODE_SYNCOBJ_HANDLE_TO_FD, &args);
        if (ret == 0) {
            args.handle = 0;
            ret = va_request(home, DRM_CODE_SYNCOBJ_FD_TO_HANDLE, &args);
            kfd->sys->ops->close_fd(kfd->sys, args.fd);
        }
        if (ret == 0)
            *shared = args.handle;
    }
    *handle = *shared;
    pthread_mutex_unlock(&home->vm->lock);
    return ret;
}

/* What there is to wait for. */
struct wait {
    uint32_t count;
    struct kfd_device *devs[KFD_MAX_DEVICES];
    uint32_t handles[KFD_MAX_DEVICES];
    uint64_t points[KFD_MAX_DEVICES];
};

static void collect(struct wait *w, struct kfd_device *const *devs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct kfd_vm *vm = devs[i]->vm;

        pthread_mutex_lock(&vm->lock);
        if (vm->waited < vm->point) {
            w->devs[w->count] = devs[i];
            w->handles[w->count] = vm->syncobj;
            w->points[w->count++] = vm->point;
        }
        pthread_mutex_unlock(&vm->lock);
    }
}

static int wait_for(struct wait *w)
{
    struct kfd_device *file = w->devs[0];
    struct drm_syncobj_timeline_wait args = {
        .handles = (uintptr_t)w->handles,
        .points = (uintptr_t)w->points,
        .timeout_nsec = INT64_MAX,
        .count_handles = w->count,
        .flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
    };
    int ret = 0;

    if (w->count > 1) {
        file = &file->kfd->devices[0];
        for (uint32_t i = 0; i < w->count && ret == 0; i++)
            ret = w->devs[i] == file ? 0 : share_syncobj(w->devs[i], &w->handles[i]);
    }
    return ret < 0 ? ret : va_request(file, DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &args);
}

int kfd_gem_va_wait(struct kfd_device *const *devs, uint32_t n)
{
    struct wait w = {.count = 0};
    int ret;

    if (n == 0 || n > KFD_MAX_DEVICES)
        return kfd_fail(-EINVAL, "%u devices: not 1 to %u", n, KFD_MAX_DEVICES);
    for (uint32_t i = 0; i < n; i++) {
        if (!devs[i] || devs[i]->kfd != devs[0]->kfd)
            return kfd_fail(-EINVAL, "device %u of %u belongs to another kfd", i + 1, n);
    }
    if (!kfd_caps_drm_timeline(&devs[0]->info))
        return 0;
    if (!kfd_is_owner(devs[0]->kfd))
        return va_request(devs[0], DRM_CODE_SYNCOBJ_TIMELINE_WAIT,
                          &(struct drm_syncobj_timeline_wait){0});
    collect(&w, devs, n);
    ret = w.count ? wait_for(&w) : 0;
    for (uint32_t i = 0; i < w.count && ret == 0; i++) {
        struct kfd_vm *vm = w.devs[i]->vm;

        pthread_mutex_lock(&vm->lock);
        if (vm->waited < w.points[i])
            vm->waited = w.points[i];
        pthread_mutex_unlock(&vm->lock);
    }
    return ret;
}

void kfd_gem_va_close(struct kfd *kfd)
{
    for (uint32_t i = 0; i < kfd->device_count; i++) {
        struct drm_syncobj_destroy args = {.handle = kfd->syncobjs[i]};

        if (args.handle)
            va_request(&kfd->devices[0], DRM_CODE_SYNCOBJ_DESTROY, &args);
    }
}
