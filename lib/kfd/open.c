/* SPDX-License-Identifier: MIT */
/* Opening: version, topology, apertures, render nodes, VM acquisition. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kfdirect/kfd.h>
#include "kfd/access.h"
#include "kfd/caps.h"
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/process.h"
#include "kfd/request.h"
#include "kfd/topology.h"
#include "kfd/uapi.h"
#include "kfd/vm.h"
#include "kfd/poison.h"

#define KFD_PATH "/dev/kfd"
#define DRM_DRIVER "amdgpu"
#define LINK_NO_PEER 16u

struct apertures {
    struct kfd_process_device_apertures *at;
    uint32_t count;
};

static int open_kfd(struct kfd *kfd)
{
    struct kfd_ioctl_get_version_args args = {0};
    int ret =
        kfd_fd_lift(kfd->sys, kfd->sys->ops->open_path(kfd->sys, KFD_PATH, O_RDWR | O_CLOEXEC));

    if (ret == -ENOENT)
        return kfd_fail(ret, KFD_PATH ": ENOENT: the amdgpu driver is not loaded, or a container "
                                      "was not given the device; KFDIRECT_FAKE=mi300x:2 is a "
                                      "fake machine");
    /* What KFD answers where it drives no GPU; the process itself is short of nothing. */
    if (ret == -ENOMEM)
        return kfd_fail(-ENODEV, KFD_PATH ": ENOMEM: the driver supports none of this machine's "
                                          "GPUs, or the kernel has no memory left");
    if (ret < 0)
        return kfd_access_explain(kfd->sys, KFD_PATH, ret);
    kfd->fd = ret;
    ret = kfd_request(kfd, kfd->fd, KFD_CODE_GET_VERSION, &args);
    if (ret < 0)
        return ret;
    if (args.major_version != 1)
        return kfd_fail(-EPROTO, KFD_PATH " speaks interface %u.%u, this library 1.x",
                        args.major_version, args.minor_version);
    kfd->major = args.major_version;
    kfd->minor = args.minor_version;
    return 0;
}

/* Asks for the count first: a number above the kernel's own is refused, not clamped. */
static int read_apertures(struct kfd *kfd, struct apertures *out)
{
    struct kfd_ioctl_get_process_apertures_new_args args = {0};
    int ret = kfd_request(kfd, kfd->fd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &args);

    if (ret < 0 || args.num_of_nodes == 0)
        return ret;
    out->at = calloc(args.num_of_nodes, sizeof(*out->at));
    if (!out->at)
        return kfd_fail(-ENOMEM, "no memory for %u apertures", args.num_of_nodes);
    args.kfd_process_device_apertures_ptr = (uintptr_t)out->at;
    out->count = args.num_of_nodes;
    ret = kfd_request(kfd, kfd->fd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &args);
    if (ret == 0 && args.num_of_nodes < out->count)
        out->count = args.num_of_nodes;
    return ret;
}

static int find_aperture(const struct apertures *all, struct kfd_device_info *info)
{
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->at[i].gpu_id != info->gpu_id)
            continue;
        info->va_base = all->at[i].gpuvm_base;
        info->va_limit = all->at[i].gpuvm_limit;
        return 0;
    }
    return kfd_fail(-ENODEV, "the kernel gives this process no aperture for it");
}

static int check_driver(struct kfd_device *dev)
{
    char name[16] = "";
    struct drm_version args = {.name = name, .name_len = sizeof(name) - 1};
    int ret = kfd_request(dev->kfd, dev->vm->fd, DRM_CODE_VERSION, &args);

    if (ret < 0)
        return ret;
    if (strcmp(name, DRM_DRIVER) != 0 || args.version_major != 3)
        return kfd_fail(-ENODEV, "render node %u is driver %s %d.%d, not amdgpu 3.x",
                        dev->info.render_minor, name, args.version_major, args.version_minor);
    dev->info.drm_major = (uint32_t)args.version_major;
    dev->info.drm_minor = (uint32_t)args.version_minor;
    return 0;
}

/* The kernel acquires any amdgpu file for any gpu_id, so make sure that they are the same chip. */
static int check_chip(struct kfd_device *dev)
{
    struct drm_amdgpu_info_device chip = {0};
    struct drm_amdgpu_info args = {
        .return_pointer = (uintptr_t)&chip,
        .return_size = sizeof(chip),
        .query = AMDGPU_INFO_DEV_INFO,
    };
    int ret = kfd_request(dev->kfd, dev->vm->fd, DRM_CODE_INFO, &args);

    if (ret < 0)
        return ret;
    if (chip.device_id != dev->info.device_id)
        return kfd_fail(-ENODEV, "render node %u is PCI device %04x, the topology says %04x",
                        dev->info.render_minor, chip.device_id, dev->info.device_id);
    dev->info.apu = chip.ids_flags & AMDGPU_IDS_FLAGS_FUSION;
    return 0;
}

static int acquire(struct kfd_device *dev)
{
    struct kfd_ioctl_acquire_vm_args args = {
        .drm_fd = (uint32_t)dev->vm->fd,
        .gpu_id = dev->info.gpu_id,
    };
    int ret = kfd_request(dev->kfd, dev->kfd->fd, KFD_CODE_ACQUIRE_VM, &args);

    if (ret == -EBUSY)
        return kfd_fail_in(ret, "another library of this process already drives this GPU");
    return ret;
}

static void name_device(struct kfd_device *dev)
{
    struct kfd_device_info *info = &dev->info;
    struct kfd_sys *sys = dev->kfd->sys;
    char product[sizeof(info->product)];

    snprintf(info->name, sizeof(info->name), "gfx%u%x%x", info->gfx_version / 10000,
             info->gfx_version / 100 % 100, info->gfx_version % 100);
    if (sys->ops->product_name(sys, dev->vm->fd, product, sizeof(product)) == 0)
        memcpy(info->product, product, sizeof(product));
}

/* Adds one GPU as the next device. A reason to leave it out is a negative errno; a shortage is
 * none.
 */
static int add_device(struct kfd *kfd, const struct kfd_device_info *info,
                      const struct apertures *apertures)
{
    struct kfd_device *dev = &kfd->devices[kfd->device_count];
    int ret;

    *dev = (struct kfd_device){.kfd = kfd, .info = *info};
    dev->info.index = kfd->device_count;
    if (kfd->device_count == KFD_MAX_DEVICES)
        return kfd_fail(-E2BIG, "this library takes %u GPUs", KFD_MAX_DEVICES);
    ret = find_aperture(apertures, &dev->info);
    if (ret < 0)
        return ret;
    ret = kfd_vm_get(kfd->sys, info->gpu_id, info->render_minor, &dev->vm);
    if (ret < 0)
        return ret;
    ret = check_driver(dev);
    if (ret == 0)
        ret = check_chip(dev);
    if (ret == 0)
        ret = acquire(dev);
    if (ret < 0) {
        kfd_vm_put(kfd, dev->vm);
        return ret;
    }
    kfd_vm_keep(kfd->sys, dev->vm);
    name_device(dev);
    kfd->device_count++;
    return 0;
}

static int add_devices(struct kfd *kfd, const struct kfd_topology *topo)
{
    struct apertures apertures = {0};
    int ret = read_apertures(kfd, &apertures);

    /* One more than there are GPUs: the place of the one being tried. */
    kfd->devices = ret == 0 ? calloc(topo->gpu_count + 1, sizeof(*kfd->devices)) : NULL;
    if (ret == 0 && !kfd->devices)
        ret = kfd_fail(-ENOMEM, "no memory for %u devices", topo->gpu_count);
    for (uint32_t i = 0; ret == 0 && i < topo->gpu_count; i++) {
        const struct kfd_device_info *info = &topo->gpus[i];
        int err = add_device(kfd, info, &apertures);

        if (kfd_error_is_shortage(err))
            ret = kfd_fail_in(err, "GPU node %u (gpu_id %u)", info->node, info->gpu_id);
        else if (err < 0)
            ret = kfd_notes_add(&kfd->skipped, "GPU node %u (gpu_id %u): %s", info->node,
                                info->gpu_id, kfd_error_text());
    }
    free(apertures.at);
    return ret;
}

static struct kfd_device *device_of_node(struct kfd *kfd, uint32_t node)
{
    for (uint32_t i = 0; i < kfd->device_count; i++) {
        if (kfd->devices[i].info.node == node)
            return &kfd->devices[i];
    }
    return NULL;
}

static bool opens_peer(const struct kfd_link_info *link)
{
    return link->peer ? link->type == KFD_LINK_PCIE && !(link->flags & LINK_NO_PEER)
                      : link->type == KFD_LINK_XGMI;
}

static void find_peers(struct kfd *kfd)
{
    for (uint32_t i = 0; i < kfd->device_count; i++)
        kfd->devices[i].reach = kfd->devices[i].info.apu ? UINT64_MAX : UINT64_C(1) << i;
    for (uint32_t i = 0; i < kfd->link_count; i++) {
        const struct kfd_link_info *link = &kfd->links[i];
        struct kfd_device *from, *to;

        if (!opens_peer(link))
            continue;
        from = device_of_node(kfd, link->node_from);
        to = device_of_node(kfd, link->node_to);
        if (from && to)
            from->reach |= UINT64_C(1) << to->info.index;
    }
}

static int start(struct kfd *kfd)
{
    struct kfd_topology topo;
    int ret = open_kfd(kfd);

    if (ret < 0)
        return ret;
    ret = kfd_topology_read(kfd->sys, &topo);
    if (ret < 0)
        return ret;
    kfd->cpu_count = topo.cpu_count;
    kfd->links = topo.links;
    kfd->link_count = topo.link_count;
    kfd->skipped = topo.skipped;
    topo.links = NULL;
    topo.skipped = (struct kfd_notes){0};
    ret = add_devices(kfd, &topo);
    kfd_topology_free(&topo);
    if (ret < 0)
        return ret;
    find_peers(kfd);
    kfd->caps = kfd_caps_find(kfd);
    return 0;
}

/* Under the opening lock. */
static void stop(struct kfd *kfd)
{
    kfd_error_hold();
    kfd_vm_forget_parent(kfd->sys);
    kfd_gem_va_close(kfd);
    for (uint32_t i = 0; i < kfd->device_count; i++)
        kfd_vm_put(kfd, kfd->devices[i].vm);
    if (kfd->fd >= 0)
        kfd_fd_close_node(kfd->sys, kfd->fd, KFD_PATH);
    free(kfd->devices);
    free(kfd->links);
    kfd_notes_free(&kfd->skipped);
    free(kfd);
    kfd_error_resume();
}

int kfd_open(struct kfd_sys *sys, struct kfd **out)
{
    struct kfd *kfd;
    int ret = 0;

    if (!sys)
        ret = kfd_sys_default(&sys);
    if (ret < 0)
        return ret;
    kfd = calloc(1, sizeof(*kfd));
    if (!kfd)
        return kfd_fail(-ENOMEM, "no memory for a struct kfd");
    kfd->sys = sys;
    kfd->fd = -1;
    kfd->pid = getpid();
    kfd_process_lock();
    kfd->generation = kfd_process_generation();
    kfd_vm_forget_parent(sys);
    ret = start(kfd);
    if (ret < 0)
        stop(kfd);
    else
        *out = kfd;
    kfd_process_unlock();
    return ret;
}

void kfd_close(struct kfd *kfd)
{
    if (!kfd)
        return;
    kfd_process_lock();
    stop(kfd);
    kfd_process_unlock();
}
