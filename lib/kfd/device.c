/* SPDX-License-Identifier: MIT */
/* What an open kfd and its devices are. */
#include <kfdirect/kfd.h>
#include "kfd/object.h"
#include "kfd/process.h"
#include "kfd/vm.h"
#include "kfd/poison.h"

struct kfd_sys *kfd_get_sys(struct kfd *kfd)
{
    return kfd->sys;
}

bool kfd_is_owner(const struct kfd *kfd)
{
    return kfd->generation == kfd_process_generation();
}

void kfd_version(const struct kfd *kfd, uint32_t *major, uint32_t *minor)
{
    *major = kfd->major;
    *minor = kfd->minor;
}

uint32_t kfd_device_count(const struct kfd *kfd)
{
    return kfd->device_count;
}

struct kfd_device *kfd_device_at(const struct kfd *kfd, uint32_t index)
{
    return index < kfd->device_count ? &kfd->devices[index] : NULL;
}

struct kfd_device *kfd_device_by_gpu_id(const struct kfd *kfd, uint32_t gpu_id)
{
    for (uint32_t i = 0; i < kfd->device_count; i++) {
        if (kfd->devices[i].info.gpu_id == gpu_id)
            return &kfd->devices[i];
    }
    return NULL;
}

const struct kfd_device_info *kfd_device_info(const struct kfd_device *dev)
{
    return &dev->info;
}

struct kfd *kfd_device_kfd(const struct kfd_device *dev)
{
    return dev->kfd;
}

int kfd_device_drm_fd(const struct kfd_device *dev)
{
    return dev->vm->fd;
}

const char *kfd_skipped(const struct kfd *kfd, uint32_t i)
{
    return i < kfd->skipped.count ? kfd->skipped.text[i] : NULL;
}

uint32_t kfd_cpu_node_count(const struct kfd *kfd)
{
    return kfd->cpu_count;
}

uint32_t kfd_link_count(const struct kfd *kfd)
{
    return kfd->link_count;
}

void kfd_link_info(const struct kfd *kfd, uint32_t i, struct kfd_link_info *out)
{
    *out = i < kfd->link_count ? kfd->links[i] : (struct kfd_link_info){0};
}

bool kfd_can_access(const struct kfd_device *dev, const struct kfd_device *owner)
{
    return dev->kfd == owner->kfd && (dev->reach >> owner->info.index & 1);
}
