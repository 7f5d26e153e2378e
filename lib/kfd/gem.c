/* SPDX-License-Identifier: MIT */
/* GEM handles of the acquired render nodes, counted. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/request.h"
#include "kfd/uapi.h"
#include "kfd/vm.h"
#include "kfd/poison.h"

static int gem_request(struct kfd_device *dev, unsigned long request, void *arg)
{
    int ret = kfd_request(dev->kfd, dev->vm->fd, request, arg);

    return ret < 0 ? kfd_fail_in(ret, "device %u (%s)", dev->info.index, dev->info.name) : 0;
}

static void gem_close(struct kfd_device *dev, uint32_t gem)
{
    struct drm_gem_close args = {.handle = gem};

    gem_request(dev, DRM_CODE_GEM_CLOSE, &args);
}

/* Counts one more use of a handle the kernel just gave. Without room for a count the handle can
 * only be new, so closing it takes it from nobody. Under vm->lock. */
static int count_use(struct kfd_device *dev, uint32_t gem)
{
    struct kfd_vm *vm = dev->vm;

    if (gem >= vm->gem_room) {
        uint32_t room = vm->gem_room ? vm->gem_room : 64;
        uint32_t *refs;

        while (room <= gem && room < UINT32_MAX / 2)
            room *= 2;
        refs = room > gem ? realloc(vm->gem_refs, room * sizeof(*refs)) : NULL;
        if (!refs) {
            gem_close(dev, gem);
            return kfd_fail(-ENOMEM, "no memory to count GEM handle %u", gem);
        }
        memset(refs + vm->gem_room, 0, (room - vm->gem_room) * sizeof(*refs));
        vm->gem_refs = refs;
        vm->gem_room = room;
    }
    vm->gem_refs[gem]++;
    return 0;
}

int kfd_gem_import(struct kfd_device *dev, int fd, uint32_t *gem)
{
    struct drm_prime_handle args = {.fd = fd};
    int ret;

    if (!kfd_is_owner(dev->kfd))
        return gem_request(dev, DRM_CODE_PRIME_FD_TO_HANDLE, &args);
    pthread_mutex_lock(&dev->vm->lock);
    ret = gem_request(dev, DRM_CODE_PRIME_FD_TO_HANDLE, &args);
    if (ret == 0)
        ret = count_use(dev, args.handle);
    pthread_mutex_unlock(&dev->vm->lock);
    if (ret == 0)
        *gem = args.handle;
    return ret;
}

int kfd_gem_close(struct kfd_device *dev, uint32_t gem)
{
    struct drm_gem_close args = {.handle = gem};
    struct kfd_vm *vm = dev->vm;
    int ret = 0;

    if (!kfd_is_owner(dev->kfd))
        return gem_request(dev, DRM_CODE_GEM_CLOSE, &args);
    pthread_mutex_lock(&vm->lock);
    if (gem >= vm->gem_room || vm->gem_refs[gem] == 0)
        ret = kfd_fail(-EINVAL, "device %u (%s): GEM handle %u is not open", dev->info.index,
                       dev->info.name, gem);
    else if (vm->gem_refs[gem] == 1)
        ret = gem_request(dev, DRM_CODE_GEM_CLOSE, &args);
    if (ret == 0)
        vm->gem_refs[gem]--;
    pthread_mutex_unlock(&vm->lock);
    return ret;
}

int kfd_gem_create(struct kfd_device *dev, uint64_t size, bool vram, uint32_t *gem)
{
    union drm_amdgpu_gem_create args = {0};
    int ret;

    if (size == 0 || size % KFD_PAGE_SIZE)
        return kfd_fail(-EINVAL, "size 0x%llx: not a multiple of the GPU page",
                        (unsigned long long)size);
    args.in.bo_size = size;
    args.in.alignment = size % KFD_HUGE_PAGE_SIZE ? KFD_PAGE_SIZE : KFD_HUGE_PAGE_SIZE;
    args.in.domains = vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT;
    /* As KFD does with its own VRAM: no program sees another's data. (Wiping on release as well is
     * not for programs to ask: the kernel refuses the flag.) */
    if (vram)
        args.in.domain_flags = AMDGPU_GEM_CREATE_VRAM_CLEARED;
    if (!vram || dev->info.large_bar || dev->info.apu)
        args.in.domain_flags |= AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
    if (!kfd_is_owner(dev->kfd))
        return gem_request(dev, DRM_CODE_GEM_CREATE, &args);
    pthread_mutex_lock(&dev->vm->lock);
    ret = gem_request(dev, DRM_CODE_GEM_CREATE, &args);
    if (ret == 0)
        ret = count_use(dev, args.out.handle);
    pthread_mutex_unlock(&dev->vm->lock);
    if (ret == 0)
        *gem = args.out.handle;
    return ret;
}

int kfd_gem_export(struct kfd_device *dev, uint32_t gem, int *fd)
{
    struct drm_prime_handle args = {.handle = gem, .flags = DRM_CLOEXEC | DRM_RDWR};
    int ret = gem_request(dev, DRM_CODE_PRIME_HANDLE_TO_FD, &args);

    if (ret < 0)
        return ret;
    ret = kfd_fd_lift(dev->kfd->sys, args.fd);
    if (ret < 0)
        return kfd_fail(ret, "dma-buf of GEM handle %u: %s", gem, kfd_errno_name(ret));
    *fd = ret;
    return 0;
}

int kfd_gem_mmap_offset(struct kfd_device *dev, uint32_t gem, uint64_t *offset)
{
    union drm_amdgpu_gem_mmap args = {.in.handle = gem};
    int ret = gem_request(dev, DRM_CODE_GEM_MMAP, &args);

    if (ret == 0)
        *offset = args.out.addr_ptr;
    return ret;
}
