/* SPDX-License-Identifier: MIT */
#include "vmm/map.h"

#include <errno.h>

#include "vmm/plan.h"

#include "kfd/poison.h"

static int check_part(const struct vmm_alloc *alloc, uint64_t size, uint64_t offset)
{
    struct vmm *vmm = alloc->vmm;
    int err = vmm_check_multiple(vmm, "offset", offset);

    if (err)
        return err;
    if (offset > alloc->size || size > alloc->size - offset)
        return kfd_fail(-EINVAL, "offset 0x%llx + size 0x%llx is beyond the handle's 0x%llx bytes",
                        (unsigned long long)offset, (unsigned long long)size,
                        (unsigned long long)alloc->size);
    if (!(vmm->engine->can & VMM_CAN_OFFSET) && (offset != 0 || size != alloc->size))
        return kfd_fail(-EOPNOTSUPP, "a part of a handle needs engine drm (%s)", vmm->reason);
    return 0;
}

int vmm_map(struct vmm *vmm, uint64_t va, uint64_t size, uint64_t offset, vmm_handle handle)
{
    struct vmm_mapping map = {.va = va, .size = size, .offset = offset};
    struct vmm_resv *resv = NULL;
    int err;

    err = vmm_need_engine(vmm);
    if (!err)
        err = vmm_check_range(vmm, va, size);
    if (!err)
        err = vmm_alloc_get(vmm, handle, &map.alloc);
    if (err)
        return err;
    err = check_part(map.alloc, size, offset);
    if (err)
        goto fail;
    map.id = vmm_new_id() & VMM_ID_MASK;
    err = vmm_resv_lock_range(vmm, va, size, &resv);
    if (err)
        goto fail;
    err = vmm_maptab_insert(&resv->maps, &map);
    if (err == -EEXIST)
        err =
            kfd_fail(-EINVAL, VMM_RANGE " overlaps the mapping at 0x%llx", VMM_RANGE_ARGS(va, size),
                     (unsigned long long)vmm_maptab_first_in(&resv->maps, va, size)->va);
    if (err)
        goto fail;
    atomic_fetch_add(&map.alloc->maps, 1);
    atomic_fetch_add(&vmm->n_map, 1);
    atomic_fetch_add(&vmm->map_bytes, size);
    vmm_resv_unlock(resv);
    return 0;

fail:
    if (resv)
        vmm_resv_unlock(resv);
    vmm_alloc_put(map.alloc);
    return err;
}

void vmm_map_remove(struct vmm_resv *resv, struct vmm_mapping *map)
{
    struct vmm_alloc *alloc = map->alloc;
    struct vmm *vmm = resv->vmm;

    atomic_fetch_sub(&vmm->n_map, 1);
    atomic_fetch_sub(&vmm->map_bytes, map->size);
    vmm_maptab_remove(&resv->maps, map);
    atomic_fetch_sub(&alloc->maps, 1);
    vmm_alloc_put(alloc);
}

int vmm_map_remove_range(struct vmm_resv *resv, uint64_t va, uint64_t size, uint64_t count)
{
    static const struct vmm_rights none;
    struct vmm_mapping *map;
    struct vmm_plan plan;
    int err;

    err = vmm_plan_init(&plan, resv, count);
    if (err)
        return err;
    for (map = vmm_maptab_first_in(&resv->maps, va, size); map && map->va - va < size;
         map = vmm_maptab_next(&resv->maps, map))
        vmm_plan_add(&plan, map, &none, VMM_PROT_NONE);
    err = vmm_plan_run(&plan);
    vmm_plan_fini(&plan);
    if (err)
        return err;
    while ((map = vmm_maptab_first_in(&resv->maps, va, size)))
        vmm_map_remove(resv, map);
    return 0;
}

int vmm_unmap(struct vmm *vmm, uint64_t va, uint64_t size)
{
    struct vmm_resv *resv;
    uint64_t count, bad;
    int err;

    err = vmm_resv_lock_range(vmm, va, size, &resv);
    if (err)
        return err;
    switch (vmm_maptab_cover(&resv->maps, va, size, &count, &bad)) {
    case VMM_COVER_WHOLE:
    case VMM_COVER_HOLES:
        err = vmm_map_remove_range(resv, va, size, count);
        break;
    case VMM_COVER_NONE:
        err = kfd_fail(-EINVAL, "nothing is mapped in " VMM_RANGE, VMM_RANGE_ARGS(va, size));
        break;
    case VMM_COVER_CUT:
        err = kfd_fail(-EINVAL, VMM_RANGE " cuts the mapping at 0x%llx", VMM_RANGE_ARGS(va, size),
                       (unsigned long long)bad);
        break;
    }
    vmm_resv_unlock(resv);
    if (!err)
        vmm_alloc_reap(vmm);
    return err;
}
