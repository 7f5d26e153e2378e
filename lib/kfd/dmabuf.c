/* SPDX-License-Identifier: MIT */
/* KFD memory as dma-buf descriptors. */
#include <errno.h>
#include <fcntl.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/request.h"
#include "kfd/uapi.h"
#include "kfd/poison.h"

int kfd_dmabuf_export(struct kfd *kfd, uint64_t handle, int *fd)
{
    struct kfd_uapi_export_dmabuf args = {.handle = handle, .flags = O_CLOEXEC};
    int ret;

    if (!kfd_has(kfd, KFD_CAP_EXPORT_DMABUF))
        return kfd_fail(-EOPNOTSUPP, "KFD %u.%u cannot export a dma-buf (1.12 can)", kfd->major,
                        kfd->minor);
    ret = kfd_request(kfd, kfd->fd, KFD_CODE_EXPORT_DMABUF, &args);
    if (ret < 0)
        return ret;
    ret = kfd_fd_lift(kfd->sys, (int)args.dmabuf_fd);
    if (ret < 0)
        return kfd_fail(ret, "dma-buf of handle 0x%llx: %s", (unsigned long long)handle,
                        kfd_errno_name(ret));
    *fd = ret;
    return 0;
}

int kfd_dmabuf_import(struct kfd_device *dev, int fd, uint64_t va, uint64_t *handle)
{
    struct kfd_ioctl_import_dmabuf_args args = {
        .va_addr = va,
        .gpu_id = dev->info.gpu_id,
        .dmabuf_fd = (uint32_t)fd,
    };
    int ret;

    if (fd < 0)
        return kfd_fail(-EBADF, "dma-buf %d: not a descriptor", fd);
    if (va % KFD_PAGE_SIZE || (va && (va < dev->info.va_base || va > dev->info.va_limit)))
        return kfd_fail(-EINVAL, "va 0x%llx: no GPU page of the aperture 0x%llx..0x%llx",
                        (unsigned long long)va, (unsigned long long)dev->info.va_base,
                        (unsigned long long)dev->info.va_limit);
    ret = kfd_request(dev->kfd, dev->kfd->fd, KFD_CODE_IMPORT_DMABUF, &args);
    if (ret < 0)
        return kfd_fail_in(ret, "device %u (%s)", dev->info.index, dev->info.name);
    *handle = args.handle;
    return 0;
}

int kfd_dmabuf_info(struct kfd *kfd, int fd, struct kfd_dmabuf_info *out)
{
    struct kfd_ioctl_get_dmabuf_info_args args = {.dmabuf_fd = (uint32_t)fd};
    /* A buffer made by a graphics program carries metadata, at most this much; what it says is of
     * no use here, but the kernel refuses to leave it behind. */
    char metadata[256];
    int ret;

    if (fd < 0)
        return kfd_fail(-EBADF, "dma-buf %d: not a descriptor", fd);
    args.metadata_ptr = (uintptr_t)metadata;
    args.metadata_size = sizeof(metadata);
    ret = kfd_request(kfd, kfd->fd, KFD_CODE_GET_DMABUF_INFO, &args);
    if (ret < 0)
        return ret;
    *out = (struct kfd_dmabuf_info){
        .size = args.size,
        .flags = args.flags,
        .owner = kfd_device_by_gpu_id(kfd, args.gpu_id),
        .gpu_id = args.gpu_id,
    };
    return 0;
}
