/* SPDX-License-Identifier: MIT */
/*
 * The two engines that map through KFD: IMPORT_DMABUF at the VA, then one MAP for all devices. They
 * differ in where the dma-buf comes from: KFD's EXPORT, or on kernels without it a GEM buffer's
 * PRIME descriptor. Whole handles, read-write; MAP flushes by itself, UNMAP on the chips that do
 * it.
 */
#include "vmm/engine.h"

#include <errno.h>

#include "kfd/poison.h"

static int kfd_create(struct vmm_alloc *alloc, uint32_t flags)
{
    struct vmm *vmm = alloc->vmm;
    int fd, err;

    err = vmm_engine_alloc(alloc, flags, &fd);
    if (!err)
        vmm->sys->ops->close_fd(vmm->sys, fd);
    return err;
}

static int kfd_import(struct vmm_alloc *alloc, int fd)
{
    int err = kfd_dmabuf_import(vmm_alloc_owner(alloc), fd, 0, &alloc->kfd_handle);

    if (!err)
        alloc->has_kfd = true;
    return err;
}

static int kfd_destroy(struct vmm_alloc *alloc)
{
    int err = alloc->has_kfd ? kfd_mem_free(alloc->vmm->kfd, alloc->kfd_handle) : 0;

    if (!err)
        alloc->has_kfd = false;
    return err;
}

static int kfd_export(struct vmm_alloc *alloc, int *fd)
{
    return kfd_dmabuf_export(alloc->vmm->kfd, alloc->kfd_handle, fd);
}

static int gem_create(struct vmm_alloc *alloc, uint32_t flags)
{
    uint32_t owner = alloc->props.device;
    struct kfd_device *dev = alloc->vmm->devices[owner];
    int err;

    if (flags & KFD_MEM_UNCACHED)
        return kfd_fail(-EOPNOTSUPP, "engine gem cannot make uncached memory");
    err = kfd_gem_create(dev, alloc->size, flags & KFD_MEM_VRAM, &alloc->imports[owner].gem);
    if (err)
        return err;
    return kfd_gem_mmap_offset(dev, alloc->imports[owner].gem, &alloc->mmap_offset);
}

static int gem_import(struct vmm_alloc *alloc, int fd)
{
    return kfd_gem_import(vmm_alloc_owner(alloc), fd, &alloc->imports[alloc->props.device].gem);
}

static int gem_destroy(struct vmm_alloc *alloc)
{
    uint32_t owner = alloc->props.device;
    int err = 0;

    if (alloc->imports[owner].gem)
        err = kfd_gem_close(alloc->vmm->devices[owner], alloc->imports[owner].gem);
    if (!err)
        alloc->imports[owner].gem = 0;
    return err;
}

static int gem_export(struct vmm_alloc *alloc, int *fd)
{
    return kfd_gem_export(vmm_alloc_owner(alloc), alloc->imports[alloc->props.device].gem, fd);
}

/* A GEM buffer has no KFD attachment of its own, so only its own card may map its VRAM. */
static uint64_t gem_reach(const struct vmm_alloc *alloc)
{
    if (alloc->props.location == VMM_LOCATION_HOST)
        return vmm_alloc_reach(alloc);
    return vmm_bit(alloc->props.device);
}

static int nothing_to_prepare(struct vmm_alloc *alloc, uint64_t devices, uint64_t *fresh)
{
    (void)alloc;
    (void)devices;
    *fresh = 0;
    return 0;
}

static void nothing_to_unprepare(struct vmm_alloc *alloc, uint64_t devices, uint64_t undo)
{
    (void)alloc;
    (void)devices;
    (void)undo;
}

/* The mapping's own KFD handle, at its address. */
static int attach(struct vmm_mapping *map)
{
    struct vmm_alloc *alloc = map->alloc;
    struct vmm *vmm = alloc->vmm;
    int fd, err;

    err = vmm->engine->export_fd(alloc, &fd);
    if (err)
        return err;
    err = kfd_dmabuf_import(vmm_alloc_owner(alloc), fd, map->va, &map->kfd_handle);
    vmm->sys->ops->close_fd(vmm->sys, fd);
    if (err)
        map->kfd_handle = 0;
    return err;
}

static int detach(struct vmm_mapping *map)
{
    int err = kfd_mem_free(map->alloc->vmm->kfd, map->kfd_handle);

    if (!err)
        map->kfd_handle = 0;
    return err;
}

static int kfd_apply(struct vmm_mapping *map, const struct vmm_rights *to)
{
    struct vmm *vmm = map->alloc->vmm;
    uint64_t add = to->read_mask & ~map->read_mask, drop = map->read_mask & ~to->read_mask;
    uint64_t done;
    int err = 0;

    if (add && !map->kfd_handle)
        err = attach(map);
    if (!err && add) {
        err = vmm_engine_map(vmm, map->kfd_handle, add, &done);
        map->read_mask |= done;
    }
    if (!err && drop) {
        err = vmm_engine_unmap(map->alloc, map->kfd_handle, drop, &done);
        map->read_mask &= ~done;
    }
    map->write_mask = map->read_mask;
    if (!err && !map->read_mask && map->kfd_handle)
        err = detach(map);
    return err;
}

static int nothing_to_settle(struct vmm_alloc *alloc, uint64_t changed, uint64_t flush)
{
    (void)alloc;
    (void)changed;
    (void)flush;
    return 0;
}

const struct vmm_engine_ops vmm_engine_kfd = {
    .id = VMM_ENGINE_KFD,
    .name = "kfd",
    .can = 0,
    .create = kfd_create,
    .import = kfd_import,
    .destroy = kfd_destroy,
    .export_fd = kfd_export,
    .prepare = nothing_to_prepare,
    .unprepare = nothing_to_unprepare,
    .reach = vmm_alloc_reach,
    .apply = kfd_apply,
    .settle = nothing_to_settle,
};

const struct vmm_engine_ops vmm_engine_gem = {
    .id = VMM_ENGINE_GEM,
    .name = "gem",
    .can = 0,
    .create = gem_create,
    .import = gem_import,
    .destroy = gem_destroy,
    .export_fd = gem_export,
    .prepare = nothing_to_prepare,
    .unprepare = nothing_to_unprepare,
    .reach = gem_reach,
    .apply = kfd_apply,
    .settle = nothing_to_settle,
};
