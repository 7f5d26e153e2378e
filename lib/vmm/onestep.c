/* SPDX-License-Identifier: MIT */
/*
 * One-step memory: ALLOC at its final address and one MAP for every device that can reach it. It is
 * a reservation with one mapping, so that look-ups, copies and pictures need no second kind of
 * object.
 */
#include <errno.h>
#include <sys/mman.h>

#include "vmm/engine.h"
#include "vmm/host.h"
#include "vmm/map.h"

#include "kfd/poison.h"

/* Gives the reserved range its memory, page tables and, for host memory, the CPU's view. */
static int fill(struct vmm_mapping *map)
{
    struct vmm_alloc *alloc = map->alloc;
    struct vmm *vmm = alloc->vmm;
    struct vmm_view view;
    int err;

    err = kfd_mem_alloc(vmm_alloc_owner(alloc), map->va, map->size, vmm_alloc_flags(alloc),
                        &alloc->kfd_handle, &alloc->mmap_offset);
    if (err)
        return err;
    alloc->has_kfd = true;
    map->kfd_handle = alloc->kfd_handle;
    err = vmm_engine_map(vmm, map->kfd_handle, vmm_alloc_reach(alloc), &alloc->mapped);
    if (err || alloc->props.location != VMM_LOCATION_HOST)
        return err;
    return vmm_alloc_view(alloc, 0, map->size, PROT_READ | PROT_WRITE, (void *)(uintptr_t)map->va,
                          &view);
}

int vmm_alloc(struct vmm *vmm, const struct vmm_props *props, uint64_t size, uint64_t *va)
{
    struct vmm_mapping new = {.size = 0}, *map;
    struct vmm_alloc *alloc;
    struct vmm_resv *resv;
    int err;

    if (!props || !va)
        return kfd_fail(-EINVAL, "%s is NULL", props ? "va" : "props");
    if (props->location != VMM_LOCATION_DEVICE && props->location != VMM_LOCATION_HOST)
        return kfd_fail(-EINVAL, "location %d is neither device nor host", (int)props->location);
    if (props->device >= vmm->device_count)
        return kfd_fail(-ENODEV, "device %u: there are %u", props->device, vmm->device_count);
    if (size == 0)
        return kfd_fail(-EINVAL, "size is 0");
    err = vmm_need_owner(vmm);
    if (err)
        return err;
    if (size > UINT64_MAX - vmm->granule)
        return kfd_fail(-ENOMEM, "size 0x%llx is more than the address space",
                        (unsigned long long)size);
    size = (size + vmm->granule - 1) & ~(vmm->granule - 1);
    vmm_alloc_reap(vmm);
    err = vmm_alloc_new(vmm, props, size, &alloc);
    if (err)
        return err;
    err = vmm_resv_new(vmm, size, 0, 0, &resv);
    if (err)
        goto fail_alloc;
    new.va = vmm_resv_base(resv);
    new.size = size;
    new.alloc = alloc;
    new.id = vmm_new_id() & VMM_ID_MASK;
    err = vmm_maptab_insert(&resv->maps, &new);
    if (err)
        goto fail_resv;
    map = vmm_maptab_at(&resv->maps, new.va);
    err = fill(map);
    if (err)
        goto fail_resv;
    resv->one_step = true;
    resv->device = props->device;
    map->read_mask = map->write_mask = vmm_alloc_reach(alloc);
    map->host_prot = props->location == VMM_LOCATION_HOST ? VMM_PROT_READ_WRITE : VMM_PROT_NONE;
    atomic_fetch_add(&alloc->maps, 1);
    atomic_fetch_add(&vmm->n_one, 1);
    atomic_fetch_add(&vmm->one_bytes, size);
    *va = map->va;
    vmm_resv_publish(resv);
    return 0;

fail_resv:
    vmm_maptab_fini(&resv->maps);
    alloc->resv = resv;
fail_alloc:
    if (alloc->has_kfd)
        vmm_alloc_put(alloc);
    else
        vmm_alloc_delete(alloc);
    return kfd_fail_in(err, "0x%llx bytes", (unsigned long long)size);
}

/* Takes a one-step mapping from every device and the CPU, or puts it back; its record tells what
 * could not be. */
static int empty(struct vmm *vmm, struct vmm_mapping *map)
{
    struct vmm_alloc *alloc = map->alloc;
    uint64_t gone = 0, back = 0;
    int err = 0;

    if (alloc->mapped)
        err = vmm_engine_unmap(alloc, map->kfd_handle, alloc->mapped, &gone);
    if (!err && map->host_prot)
        err = vmm_host_clear(vmm, map->va, map->size);
    if (err && gone) {
        kfd_error_hold();
        vmm_engine_map(vmm, map->kfd_handle, gone, &back);
        kfd_error_resume();
    }
    alloc->mapped &= ~(gone & ~back);
    map->read_mask = map->write_mask = alloc->mapped;
    return err;
}

int vmm_free(struct vmm *vmm, uint64_t va)
{
    int err = vmm_need_owner(vmm);
    struct vmm_resv *resv = err ? NULL : vmm_resv_lock(vmm, va);
    struct vmm_mapping *map;
    struct vmm_alloc *alloc;
    uint64_t size;

    if (err)
        return err;
    if (!resv)
        return kfd_fail(-EINVAL, "address 0x%llx is not this library's", (unsigned long long)va);
    if (!resv->one_step || va != vmm_resv_base(resv)) {
        err = kfd_fail(-EINVAL, "address 0x%llx is not the start of one-step memory",
                       (unsigned long long)va);
        vmm_resv_unlock(resv);
        return err;
    }
    map = vmm_maptab_at(&resv->maps, va);
    err = empty(vmm, map);
    if (err) {
        vmm_resv_unlock(resv);
        return kfd_fail_in(err, "memory at 0x%llx", (unsigned long long)va);
    }
    alloc = map->alloc;
    size = map->size;
    vmm_maptab_remove(&resv->maps, map);
    atomic_fetch_sub(&vmm->n_one, 1);
    atomic_fetch_sub(&vmm->one_bytes, size);
    atomic_fetch_sub(&alloc->maps, 1);
    vmm_alloc_put(alloc);
    vmm_resv_retire(resv);
    return 0;
}

/* The lowest one-step memory of the device at va or above; UINT64_MAX: there is none. */
static uint64_t next_of_device(struct vmm *vmm, uint64_t va, uint32_t device)
{
    uint64_t found = UINT64_MAX;
    struct vmm_space_node *node;

    vmm_lock_acquire(&vmm->space_lock);
    for (node = vmm_space_above(&vmm->space, va); node; node = vmm_space_next(node)) {
        const struct vmm_resv *resv = vmm_resv_of(node);

        if (resv->live && resv->one_step && resv->device == device) {
            found = vmm_resv_base(resv);
            break;
        }
    }
    vmm_lock_release(&vmm->space_lock);
    return found;
}

int vmm_free_all(struct vmm *vmm, uint32_t device)
{
    int err = vmm_need_owner(vmm);

    if (err)
        return err;
    if (device >= vmm->device_count)
        return kfd_fail(-ENODEV, "device %u: there are %u", device, vmm->device_count);
    for (uint64_t va = 0; (va = next_of_device(vmm, va, device)) != UINT64_MAX; va++) {
        int one = vmm_free(vmm, va);

        /* -EINVAL: another thread was faster. */
        if (one && one != -EINVAL)
            err = one;
    }
    return err;
}
