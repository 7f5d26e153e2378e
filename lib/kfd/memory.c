/* SPDX-License-Identifier: MIT */
/* KFD memory: allocation, and mapping of whole objects at the address they were made with. */
#include <errno.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/request.h"
#include "kfd/uapi.h"
#include "kfd/vm.h"
#include "kfd/poison.h"

#define TYPES (KFD_MEM_VRAM | KFD_MEM_GTT | KFD_MEM_USERPTR | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP)
#define VRAM_ONLY (KFD_MEM_CONTIGUOUS | KFD_MEM_PUBLIC)
#define KNOWN                                                                         \
    (TYPES | VRAM_ONLY | KFD_MEM_EXT_COHERENT | KFD_MEM_UNCACHED | KFD_MEM_COHERENT | \
     KFD_MEM_NO_SUBSTITUTE | KFD_MEM_EXECUTABLE | KFD_MEM_WRITABLE)

static bool aligned(uint64_t value)
{
    return value % KFD_PAGE_SIZE == 0;
}

/* Puts the device in front of the text of a failed request. */
static int fail_on(const struct kfd_device *dev, int err)
{
    return kfd_fail_in(err, "device %u (%s)", dev->info.index, dev->info.name);
}

/* The kernel takes any mix of flags and settles on something; say what is wrong with it instead. */
static int check_flags(const struct kfd_device *dev, uint32_t flags)
{
    uint32_t type = flags & TYPES;

    if (flags & ~KNOWN)
        return kfd_fail(-EINVAL, "flags 0x%08x: unknown 0x%08x", flags, flags & ~KNOWN);
    if (type == 0 || (type & (type - 1)))
        return kfd_fail(-EINVAL, "flags 0x%08x: not exactly one memory type", flags);
    if ((flags & VRAM_ONLY) && type != KFD_MEM_VRAM)
        return kfd_fail(-EINVAL, "flags 0x%08x: PUBLIC and CONTIGUOUS are for VRAM", flags);
    if ((flags & KFD_MEM_PUBLIC) && !dev->info.large_bar && !dev->info.apu)
        return kfd_fail(-EINVAL, "flags 0x%08x: PUBLIC, but the CPU does not see all VRAM", flags);
    if ((flags & KFD_MEM_CONTIGUOUS) && !kfd_has(dev->kfd, KFD_CAP_CONTIGUOUS))
        return kfd_fail(-EOPNOTSUPP, "KFD %u.%u has no contiguous VRAM (1.16 has)", dev->kfd->major,
                        dev->kfd->minor);
    return 0;
}

static int check_range(const struct kfd_device *dev, uint64_t va, uint64_t size)
{
    const struct kfd_device_info *info = &dev->info;

    if (size == 0)
        return kfd_fail(-EINVAL, "va 0x%llx: size is 0", (unsigned long long)va);
    if (!aligned(size) || !aligned(va))
        return kfd_fail(-EINVAL, "va 0x%llx, size 0x%llx: not multiples of the GPU page",
                        (unsigned long long)va, (unsigned long long)size);
    if (va && (va < info->va_base || va > info->va_limit || size - 1 > info->va_limit - va))
        return kfd_fail(-EINVAL, "va 0x%llx, size 0x%llx: outside the aperture 0x%llx..0x%llx",
                        (unsigned long long)va, (unsigned long long)size,
                        (unsigned long long)info->va_base, (unsigned long long)info->va_limit);
    return 0;
}

int kfd_mem_alloc(struct kfd_device *dev, uint64_t va, uint64_t size, uint32_t flags,
                  uint64_t *handle, uint64_t *mmap_offset)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args args = {
        .va_addr = va,
        .size = size,
        .gpu_id = dev->info.gpu_id,
        .flags = flags,
    };
    int ret = check_flags(dev, flags);

    if (ret == 0)
        ret = check_range(dev, va, size);
    if (ret == 0 && (flags & KFD_MEM_USERPTR)) {
        args.mmap_offset = mmap_offset ? *mmap_offset : 0;
        if (!mmap_offset)
            ret = kfd_fail(-EINVAL, "USERPTR: mmap_offset is NULL, and should hold the address");
        else if (args.mmap_offset == 0 || !aligned(args.mmap_offset))
            ret = kfd_fail(-EINVAL, "USERPTR: mmap_offset 0x%llx is no page of this process",
                           (unsigned long long)args.mmap_offset);
    }
    if (ret == 0)
        ret = kfd_request(dev->kfd, dev->kfd->fd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &args);
    if (ret < 0)
        return fail_on(dev, ret);
    *handle = args.handle;
    if (mmap_offset)
        *mmap_offset = args.mmap_offset;
    return 0;
}

int kfd_mem_free(struct kfd *kfd, uint64_t handle)
{
    struct kfd_ioctl_free_memory_of_gpu_args args = {.handle = handle};

    int ret = kfd_request(kfd, kfd->fd, KFD_CODE_FREE_MEMORY_OF_GPU, &args);

    return ret == -EBUSY ? kfd_fail_in(ret, "a device still maps it") : ret;
}

/* MAP and UNMAP share their layout (asserted in uapi.c) and their way of going on. */
static int map_request(struct kfd *kfd, unsigned long request, uint64_t handle,
                       struct kfd_device *const *devs, uint32_t n, uint32_t first, uint32_t *done)
{
    uint32_t ids[KFD_MAX_DEVICES];
    struct kfd_ioctl_map_memory_to_gpu_args args = {
        .handle = handle,
        .device_ids_array_ptr = (uintptr_t)ids,
        .n_devices = n,
        .n_success = first,
    };
    int ret;

    if (done)
        *done = 0;
    if (n == 0 || n > KFD_MAX_DEVICES)
        return kfd_fail(-EINVAL, "%u devices: not 1 to %u", n, KFD_MAX_DEVICES);
    for (uint32_t i = 0; i < n; i++) {
        if (!devs[i] || devs[i]->kfd != kfd)
            return kfd_fail(-EINVAL, "device %u of %u belongs to another kfd", i + 1, n);
        ids[i] = devs[i]->info.gpu_id;
    }
    ret = kfd_request(kfd, kfd->fd, request, &args);
    if (done)
        *done = args.n_success <= n ? args.n_success : n;
    if (ret < 0 && args.n_success < n)
        return fail_on(devs[args.n_success], ret);
    return ret;
}

int kfd_mem_map(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs, uint32_t n,
                uint32_t *done)
{
    return map_request(kfd, KFD_CODE_MAP_MEMORY_TO_GPU, handle, devs, n, 0, done);
}

int kfd_mem_unmap(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs, uint32_t n,
                  uint32_t *done)
{
    return map_request(kfd, KFD_CODE_UNMAP_MEMORY_FROM_GPU, handle, devs, n, 0, done);
}

int kfd_mem_flush(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs, uint32_t n)
{
    return map_request(kfd, KFD_CODE_MAP_MEMORY_TO_GPU, handle, devs, n, n, NULL);
}

/* Kernels before the KFD request: what the DRM side has not used. */
static int available_by_heap(struct kfd_device *dev, uint64_t *bytes)
{
    struct drm_amdgpu_memory_info heaps = {0};
    struct drm_amdgpu_info args = {
        .return_pointer = (uintptr_t)&heaps,
        .return_size = sizeof(heaps),
        .query = AMDGPU_INFO_MEMORY,
    };
    const struct drm_amdgpu_heap_info *vram = &heaps.vram;
    int ret = kfd_request(dev->kfd, dev->vm->fd, DRM_CODE_INFO, &args);

    if (ret < 0)
        return ret;
    *bytes =
        vram->heap_usage < vram->total_heap_size ? vram->total_heap_size - vram->heap_usage : 0;
    *bytes -= *bytes % KFD_HUGE_PAGE_SIZE;
    return 0;
}

int kfd_mem_available(struct kfd_device *dev, uint64_t *bytes)
{
    struct kfd_ioctl_get_available_memory_args args = {.gpu_id = dev->info.gpu_id};
    int ret;

    if (!kfd_has(dev->kfd, KFD_CAP_AVAILABLE_MEMORY)) {
        ret = available_by_heap(dev, bytes);
    } else {
        ret = kfd_request(dev->kfd, dev->kfd->fd, KFD_CODE_AVAILABLE_MEMORY, &args);
        if (ret == 0)
            *bytes = args.available;
    }
    return ret < 0 ? fail_on(dev, ret) : 0;
}
