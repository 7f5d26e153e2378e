/* SPDX-License-Identifier: MIT */
#include "vmm/host.h"

#include <errno.h>
#include <sys/mman.h>

#include "kfd/poison.h"

int vmm_host_prot(uint8_t prot)
{
    return (prot & VMM_PROT_READ ? PROT_READ : 0) | (prot & VMM_PROT_WRITE ? PROT_WRITE : 0);
}

/* Two of different rights, shared, so that the kernel makes them one with nothing: for the memory
 * of a plan, and for a view. */
int vmm_host_save(struct vmm *vmm)
{
    struct kfd_sys *sys = vmm->sys;
    void *pages;
    int err = 0;

    vmm_lock_acquire(&vmm->space_lock);
    if (!vmm->savings) {
        err = sys->ops->map_pages(sys, NULL, 2 * vmm->granule, PROT_NONE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0, &pages);
        if (!err) {
            vmm->savings = pages;
            err = sys->ops->protect_pages(sys, pages, vmm->granule, PROT_READ);
        }
    }
    vmm_lock_release(&vmm->space_lock);
    if (err)
        vmm_host_spend(vmm);
    return err ? kfd_fail(err, "one more CPU view: %s", kfd_errno_name(err)) : 0;
}

bool vmm_host_spend(struct vmm *vmm)
{
    void *pages;

    vmm_lock_acquire(&vmm->space_lock);
    pages = vmm->savings;
    vmm->savings = NULL;
    vmm_lock_release(&vmm->space_lock);
    if (pages)
        vmm->sys->ops->unmap_pages(vmm->sys, pages, 2 * vmm->granule);
    return pages;
}

int vmm_host_clear(struct vmm *vmm, uint64_t va, uint64_t size)
{
    int err = vmm_space_blank(&vmm->space, va, size);

    if (err == -ENOMEM && vmm_host_spend(vmm))
        err = vmm_space_blank(&vmm->space, va, size);
    return err ? kfd_fail(err, "taking the CPU's view of " VMM_RANGE " away: %s",
                          VMM_RANGE_ARGS(va, size), kfd_errno_name(err))
               : 0;
}

int vmm_host_apply(struct vmm *vmm, const struct vmm_mapping *map, uint8_t from, uint8_t to)
{
    void *at = (void *)(uintptr_t)map->va;
    struct vmm_view view;
    int err;

    if (!to)
        return vmm_host_clear(vmm, map->va, map->size);
    if (!from)
        return vmm_alloc_view(map->alloc, map->offset, map->size, vmm_host_prot(to), at, &view);
    err = vmm->sys->ops->protect_pages(vmm->sys, at, map->size, vmm_host_prot(to));
    return err ? kfd_fail(err, "changing the CPU's rights on " VMM_RANGE ": %s",
                          VMM_RANGE_ARGS(map->va, map->size), kfd_errno_name(err))
               : 0;
}
