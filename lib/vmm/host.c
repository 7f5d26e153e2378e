/* SPDX-License-Identifier: MIT */
#include "vmm/host.h"

#include <errno.h>
#include <sys/mman.h>

#include "kfd/poison.h"

int vmm_host_prot(uint8_t prot)
{
    return (prot & VMM_PROT_READ ? PROT_READ : 0) | (prot & VMM_PROT_WRITE ? PROT_WRITE : 0);
}

int vmm_host_clear(struct vmm *vmm, uint64_t va, uint64_t size)
{
    int err = vmm_space_blank(&vmm->space, va, size);

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
