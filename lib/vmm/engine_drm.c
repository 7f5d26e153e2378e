/* SPDX-License-Identifier: MIT */
/*
 * ALLOC with va 0 keeps the memory; GEM_VA on each device's acquired render node maps it. Offsets,
 * parts, aliases, read-only and per-device rights all work.
 */
#include "vmm/engine.h"

#include <errno.h>

#include "kfd/poison.h"

static int drm_create(struct vmm_alloc *alloc, uint32_t flags)
{
    struct vmm *vmm = alloc->vmm;
    uint32_t owner = alloc->props.device;
    int fd, err;

    err = vmm_engine_alloc(alloc, flags, &fd);
    if (err)
        return err;
    err = kfd_gem_import(vmm->devices[owner], fd, &alloc->imports[owner].gem);
    vmm->sys->ops->close_fd(vmm->sys, fd);
    return err;
}

/* PRIME alone leaves an import without the process's eviction fence: a KFD import on the owner
 * keeps it resident and its mappings maintained (kernel-notes T7). */
static int drm_import(struct vmm_alloc *alloc, int fd)
{
    struct vmm *vmm = alloc->vmm;
    uint32_t owner = alloc->props.device;
    int err;

    err = kfd_dmabuf_import(vmm->devices[owner], fd, 0, &alloc->kfd_handle);
    if (err)
        return err;
    alloc->has_kfd = true;
    return kfd_gem_import(vmm->devices[owner], fd, &alloc->imports[owner].gem);
}

/* No mapping is left, so the order of FREE and GEM_CLOSE does not matter for residency; FREE comes
 * first because it is the one that may be refused. */
static int drm_destroy(struct vmm_alloc *alloc)
{
    struct vmm *vmm = alloc->vmm;
    int err, result = 0;

    if (alloc->has_kfd) {
        err = kfd_mem_free(vmm->kfd, alloc->kfd_handle);
        if (err)
            return err;
        alloc->has_kfd = false;
    }
    for (uint32_t d = 0; d < vmm->device_count; d++) {
        if (!alloc->imports[d].gem)
            continue;
        err = kfd_gem_close(vmm->devices[d], alloc->imports[d].gem);
        if (err)
            result = err;
        else
            alloc->imports[d].gem = 0;
    }
    return result;
}

static int drm_export(struct vmm_alloc *alloc, int *fd)
{
    return kfd_dmabuf_export(alloc->vmm->kfd, alloc->kfd_handle, fd);
}

static void drm_unprepare(struct vmm_alloc *alloc, uint64_t devices, uint64_t undo)
{
    kfd_error_hold();
    vmm_lock_acquire(&alloc->lock);
    for (uint64_t left = devices; left; left &= left - 1) {
        uint32_t d = (uint32_t)__builtin_ctzll(left);
        struct vmm_import *import = &alloc->imports[d];

        import->users--;
        if ((undo & vmm_bit(d)) && import->users == 0 &&
            kfd_gem_close(alloc->vmm->devices[d], import->gem) == 0)
            import->gem = 0;
    }
    vmm_lock_release(&alloc->lock);
    kfd_error_resume();
}

static int drm_prepare(struct vmm_alloc *alloc, uint64_t devices, uint64_t *fresh)
{
    struct vmm *vmm = alloc->vmm;
    uint64_t ready = 0, made = 0;
    int fd = -1, err = 0;

    vmm_lock_acquire(&alloc->lock);
    for (uint64_t left = devices; left && !err; left &= left - 1) {
        uint32_t d = (uint32_t)__builtin_ctzll(left);
        struct vmm_import *import = &alloc->imports[d];

        if (!import->gem) {
            if (fd < 0)
                err = drm_export(alloc, &fd);
            if (!err)
                err = kfd_gem_import(vmm->devices[d], fd, &import->gem);
            if (err)
                break;
            made |= vmm_bit(d);
        }
        import->users++;
        ready |= vmm_bit(d);
    }
    vmm_lock_release(&alloc->lock);
    if (fd >= 0)
        vmm->sys->ops->close_fd(vmm->sys, fd);
    if (err)
        drm_unprepare(alloc, ready, made);
    else
        *fresh = made;
    return err;
}

static uint32_t page_flags(const struct vmm_rights *rights, uint32_t device)
{
    uint32_t flags = 0;

    if (rights->read_mask & vmm_bit(device))
        flags |= KFD_VA_READ;
    if (rights->write_mask & vmm_bit(device))
        flags |= KFD_VA_WRITE;
    return flags;
}

static int set_device(const struct vmm_mapping *map, uint32_t device, uint32_t from, uint32_t to)
{
    struct vmm_alloc *alloc = map->alloc;
    enum kfd_va_op op = !from ? KFD_VA_MAP : !to ? KFD_VA_UNMAP : KFD_VA_REPLACE;

    return kfd_gem_va(alloc->vmm->devices[device], op, alloc->imports[device].gem, map->va,
                      map->offset, map->size, to);
}

/* A REPLACE covers exactly one whole mapping, never a part of one (kernel-notes T5). */
static int drm_apply(struct vmm_mapping *map, const struct vmm_rights *to)
{
    uint64_t changed = (map->read_mask ^ to->read_mask) | (map->write_mask ^ to->write_mask);

    for (; changed; changed &= changed - 1) {
        uint32_t d = (uint32_t)__builtin_ctzll(changed);
        struct vmm_rights from = {map->read_mask, map->write_mask};
        uint64_t bit = vmm_bit(d);
        int err = set_device(map, d, page_flags(&from, d), page_flags(to, d));

        if (err)
            return err;
        map->read_mask = (map->read_mask & ~bit) | (to->read_mask & bit);
        map->write_mask = (map->write_mask & ~bit) | (to->write_mask & bit);
    }
    return 0;
}

/* Devices whose flush failed are flushed with the next change. What waits for an engine flushes. */
static int drm_settle(struct vmm_alloc *alloc, uint64_t changed, uint64_t flush)
{
    struct vmm *vmm = alloc->vmm;
    struct kfd_device *devices[KFD_MAX_DEVICES];
    uint64_t late = changed & vmm->barrier.devices;
    uint32_t n;
    int err;

    flush |= atomic_exchange(&vmm->unflushed, 0);
    n = vmm_engine_list(vmm, changed, devices);
    err = kfd_gem_va_wait(devices, n);
    if (!err && late)
        err = vmm_barrier_wait(vmm, late);
    n = vmm_engine_list(vmm, flush & ~late, devices);
    if (!err && n)
        err = kfd_mem_flush(vmm->kfd, alloc->kfd_handle, devices, n);
    if (err)
        atomic_fetch_or(&vmm->unflushed, flush);
    return err;
}

const struct vmm_engine_ops vmm_engine_drm = {
    .id = VMM_ENGINE_DRM,
    .name = "drm",
    .can = VMM_CAN_OFFSET | VMM_CAN_READ_ONLY | VMM_CAN_PER_DEVICE,
    .create = drm_create,
    .import = drm_import,
    .destroy = drm_destroy,
    .export_fd = drm_export,
    .prepare = drm_prepare,
    .unprepare = drm_unprepare,
    .reach = vmm_alloc_reach,
    .apply = drm_apply,
    .settle = drm_settle,
};
