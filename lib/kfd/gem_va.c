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
        return kfd_fail(-EINVAL, "GEM_VA operation %d", (int)op);
    if (flags & ~RIGHTS)
        return kfd_fail(-EINVAL, "GEM_VA flags 0x%x", flags);
    if (kfd_caps_drm_timeline(&dev->info) && kfd_is_owner(dev->kfd))
        return change_on_timeline(dev, &args);
    return va_request(dev, DRM_CODE_GEM_VA_OLD, &args);
}

int kfd_gem_va_wait(struct kfd_device *dev)
{
    struct kfd_vm *vm = dev->vm;
    struct drm_syncobj_timeline_wait args = {
        .timeout_nsec = INT64_MAX,
        .count_handles = 1,
        .flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
    };
    uint32_t handle;
    uint64_t point;
    bool idle;
    int ret;

    if (!kfd_caps_drm_timeline(&dev->info))
        return 0;
    if (!kfd_is_owner(dev->kfd))
        return va_request(dev, DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &args);
    pthread_mutex_lock(&vm->lock);
    handle = vm->syncobj;
    point = vm->point;
    idle = vm->waited >= point;
    pthread_mutex_unlock(&vm->lock);
    if (idle)
        return 0;
    args.handles = (uintptr_t)&handle;
    args.points = (uintptr_t)&point;
    ret = va_request(dev, DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &args);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&vm->lock);
    if (vm->waited < point)
        vm->waited = point;
    pthread_mutex_unlock(&vm->lock);
    return 0;
}
