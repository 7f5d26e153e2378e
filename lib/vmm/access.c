/* SPDX-License-Identifier: MIT */
/* Access rights. The calls are declared in <kfdirect/vmm.h>. */
#include <errno.h>

#include "vmm/plan.h"

#include "kfd/poison.h"

static int check_entry(const struct vmm *vmm, const struct vmm_access *access)
{
    if (access->device != VMM_HOST && access->device >= vmm->device_count)
        return kfd_fail(-ENODEV, "device %u: there are %u", access->device, vmm->device_count);
    if (access->prot != VMM_PROT_NONE && access->prot != VMM_PROT_READ &&
        access->prot != VMM_PROT_READ_WRITE)
        return kfd_fail(-EINVAL, "device %u: rights %u are not 0, 1 or 3", access->device,
                        access->prot);
    if (access->device != VMM_HOST && access->prot == VMM_PROT_READ &&
        !(vmm->engine->can & VMM_CAN_READ_ONLY))
        return kfd_fail(-EOPNOTSUPP, "device %u: read-only access needs engine drm (%s)",
                        access->device, vmm->reason);
    return 0;
}

/* Whether one mapping's memory can be given to one entry. */
static int check_mapping(const struct vmm *vmm, const struct vmm_mapping *map,
                         const struct vmm_access *access)
{
    const struct vmm_alloc *alloc = map->alloc;
    unsigned long long va = map->va;

    if (access->prot == VMM_PROT_NONE)
        return 0;
    if (access->device == VMM_HOST) {
        if (vmm_alloc_host_visible(alloc))
            return 0;
        return kfd_fail(-EOPNOTSUPP,
                        "mapping at 0x%llx: the CPU cannot see all memory of device %u", va,
                        alloc->props.device);
    }
    if (!(vmm_alloc_reach(alloc) & vmm_bit(access->device)))
        return kfd_fail(-EINVAL,
                        "mapping at 0x%llx: device %u cannot reach the memory of device %u", va,
                        access->device, alloc->props.device);
    if (!(vmm->engine->reach(alloc) & vmm_bit(access->device)))
        return kfd_fail(
            -EOPNOTSUPP,
            "mapping at 0x%llx: engine %s cannot give device %u memory of device %u (%s)", va,
            vmm->engine->name, access->device, alloc->props.device, vmm->reason);
    return 0;
}

static void grant(const struct vmm_access *access, struct vmm_rights *rights, uint8_t *host)
{
    uint64_t bit;

    if (access->device == VMM_HOST) {
        *host = (uint8_t)access->prot;
        return;
    }
    bit = vmm_bit(access->device);
    rights->read_mask =
        access->prot & VMM_PROT_READ ? rights->read_mask | bit : rights->read_mask & ~bit;
    rights->write_mask =
        access->prot & VMM_PROT_WRITE ? rights->write_mask | bit : rights->write_mask & ~bit;
}

static int build(struct vmm_plan *plan, uint64_t va, uint64_t size, const struct vmm_access *access,
                 size_t count)
{
    const struct vmm_maptab *maps = &plan->resv->maps;
    struct vmm_mapping *map;

    for (map = vmm_maptab_first_in(maps, va, size); map && map->va - va < size;
         map = vmm_maptab_next(maps, map)) {
        struct vmm_rights to = {map->read_mask, map->write_mask};
        uint8_t host = map->host_prot;

        for (size_t i = 0; i < count; i++) {
            int err = check_mapping(plan->resv->vmm, map, &access[i]);

            if (err)
                return err;
            grant(&access[i], &to, &host);
        }
        vmm_plan_add(plan, map, &to, host);
    }
    return 0;
}

static int set_locked(struct vmm_resv *resv, uint64_t va, uint64_t size,
                      const struct vmm_access *access, size_t count)
{
    struct vmm_plan plan;
    uint64_t maps, bad;
    int err;

    switch (vmm_maptab_cover(&resv->maps, va, size, &maps, &bad)) {
    case VMM_COVER_WHOLE:
        break;
    case VMM_COVER_HOLES:
        return kfd_fail(-EINVAL, VMM_RANGE " has a hole at 0x%llx", VMM_RANGE_ARGS(va, size),
                        (unsigned long long)bad);
    case VMM_COVER_CUT:
        return kfd_fail(-EINVAL, VMM_RANGE " cuts the mapping at 0x%llx", VMM_RANGE_ARGS(va, size),
                        (unsigned long long)bad);
    case VMM_COVER_NONE:
        return kfd_fail(-EINVAL, "nothing is mapped in " VMM_RANGE, VMM_RANGE_ARGS(va, size));
    }
    err = vmm_plan_init(&plan, resv, maps);
    if (err)
        return err;
    err = build(&plan, va, size, access, count);
    if (!err)
        err = vmm_plan_run(&plan);
    vmm_plan_fini(&plan);
    return err;
}

int vmm_set_access(struct vmm *vmm, uint64_t va, uint64_t size, const struct vmm_access *access,
                   size_t count)
{
    struct vmm_resv *resv;
    int err;

    err = vmm_need_engine(vmm);
    if (err)
        return err;
    if (!access || count == 0)
        return kfd_fail(-EINVAL, "there is no entry");
    for (size_t i = 0; i < count; i++) {
        err = check_entry(vmm, &access[i]);
        if (err)
            return err;
    }
    err = vmm_resv_lock_range(vmm, va, size, &resv);
    if (err)
        return err;
    err = set_locked(resv, va, size, access, count);
    vmm_resv_unlock(resv);
    return err;
}

int vmm_get_access(struct vmm *vmm, uint64_t va, uint32_t device, uint32_t *prot)
{
    const struct vmm_mapping *map;
    struct vmm_resv *resv;
    int err;

    if (!prot)
        return kfd_fail(-EINVAL, "prot is NULL");
    if (device != VMM_HOST && device >= vmm->device_count)
        return kfd_fail(-ENODEV, "device %u: there are %u", device, vmm->device_count);
    err = vmm_resv_lock_range(vmm, va, 1, &resv);
    if (err)
        return err;
    map = vmm_maptab_at(&resv->maps, va);
    if (!map)
        err = kfd_fail(-EINVAL, "nothing is mapped at 0x%llx", (unsigned long long)va);
    else if (device == VMM_HOST)
        *prot = map->host_prot;
    else
        *prot = (map->read_mask & vmm_bit(device) ? VMM_PROT_READ : 0u) |
                (map->write_mask & vmm_bit(device) ? VMM_PROT_WRITE : 0u);
    vmm_resv_unlock(resv);
    return err;
}
