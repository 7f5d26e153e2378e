/* SPDX-License-Identifier: MIT */
/* Questions about addresses, and the CPU's way through them. Declared in <kfdirect/vmm.h>. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "vmm/alloc.h"
#include "vmm/resv.h"
#include "vmm/userptr.h"

#include "kfd/poison.h"

int vmm_query(struct vmm *vmm, uint64_t va, struct vmm_range *out)
{
    int err = vmm_need_owner(vmm);
    const struct vmm_mapping *map;
    struct vmm_resv *resv;

    if (err)
        return err;
    if (!out)
        return kfd_fail(-EINVAL, "out is NULL");
    memset(out, 0, sizeof(*out));
    resv = vmm_resv_lock(vmm, va);
    if (!resv) {
        vmm_lock_acquire(&vmm->space_lock);
        if (vmm_space_holds(&vmm->space, va, 1))
            out->kind = VMM_KIND_FREE;
        else
            vmm_userptr_query(vmm, va, out);
        vmm_lock_release(&vmm->space_lock);
        return 0;
    }
    out->kind = VMM_KIND_RESERVED;
    out->resv_base = vmm_resv_base(resv);
    out->resv_size = resv->space.size;
    map = vmm_maptab_at(&resv->maps, va);
    if (map) {
        out->kind = !resv->one_step                                   ? VMM_KIND_MAPPED
                    : map->alloc->props.location == VMM_LOCATION_HOST ? VMM_KIND_HOST
                                                                      : VMM_KIND_DEVICE;
        out->base = map->va;
        out->size = map->size;
        out->offset = map->offset;
        out->props = map->alloc->props;
        out->id = map->id;
        out->read_mask = map->read_mask;
        out->write_mask = map->write_mask;
        out->host_prot = map->host_prot;
        out->handle = map->alloc->handle;
    }
    vmm_resv_unlock(resv);
    return 0;
}

bool vmm_holds(struct vmm *vmm, uint64_t va, uint64_t size)
{
    bool holds;

    if (vmm_need_owner(vmm))
        return false;
    vmm_lock_acquire(&vmm->space_lock);
    holds = vmm_space_holds(&vmm->space, va, size);
    vmm_lock_release(&vmm->space_lock);
    return holds;
}

int vmm_retain(struct vmm *vmm, uint64_t va, vmm_handle *handle)
{
    struct vmm_mapping *map;
    struct vmm_resv *resv;
    int err;

    if (!handle)
        return kfd_fail(-EINVAL, "handle is NULL");
    err = vmm_resv_lock_range(vmm, va, 1, &resv);
    if (err)
        return err;
    map = vmm_maptab_at(&resv->maps, va);
    if (map) {
        vmm_alloc_ref(map->alloc);
        atomic_fetch_add(&map->alloc->users, 1);
        *handle = map->alloc->handle;
    } else {
        err = kfd_fail(-EINVAL, "nothing is mapped at 0x%llx", (unsigned long long)va);
    }
    vmm_resv_unlock(resv);
    return err;
}

/* A piece of an allocation, kept alive by a reference. */
struct piece {
    struct vmm_alloc *alloc;
    uint64_t offset, size;
};

struct pieces {
    struct piece *at;
    uint64_t count, room;
};

static int piece_add(struct pieces *pieces, const struct vmm_mapping *map, uint64_t va,
                     uint64_t size)
{
    struct piece *grown;

    if (pieces->count == pieces->room) {
        uint64_t room = pieces->room ? 2 * pieces->room : 8;

        grown = vmm_calloc(room, sizeof(*grown));
        if (!grown)
            return kfd_fail(-ENOMEM, "no host memory for a list of pieces");
        if (pieces->count)
            memcpy(grown, pieces->at, pieces->count * sizeof(*grown));
        vmm_free_mem(pieces->at);
        pieces->at = grown;
        pieces->room = room;
    }
    vmm_alloc_ref(map->alloc);
    pieces->at[pieces->count++] = (struct piece){map->alloc, map->offset + (va - map->va), size};
    return 0;
}

static void pieces_fini(struct pieces *pieces)
{
    for (uint64_t i = 0; i < pieces->count; i++)
        vmm_alloc_put(pieces->at[i].alloc);
    vmm_free_mem(pieces->at);
}

/* Somebody must hold the rights a copy uses: the copy stands in for a device that does. */
static int check_piece(const struct vmm_mapping *map, uint64_t va, uint32_t need)
{
    uint32_t held = (map->read_mask ? VMM_PROT_READ : 0u) |
                    (map->write_mask ? VMM_PROT_WRITE : 0u) | map->host_prot;

    if ((need & held) != need)
        return kfd_fail(-EINVAL,
                        "address 0x%llx: nobody was given %s access to the mapping at 0x%llx",
                        (unsigned long long)va, need & VMM_PROT_WRITE ? "write" : "read",
                        (unsigned long long)map->va);
    if (!vmm_alloc_host_visible(map->alloc))
        return kfd_fail(-EOPNOTSUPP, "address 0x%llx: the CPU cannot see all memory of device %u",
                        (unsigned long long)va, map->alloc->props.device);
    return 0;
}

static int collect_locked(struct vmm_resv *resv, uint64_t *va, uint64_t end, uint32_t need,
                          struct pieces *pieces)
{
    uint64_t stop = end < vmm_resv_end(resv) ? end : vmm_resv_end(resv);

    while (*va < stop) {
        const struct vmm_mapping *map = vmm_maptab_at(&resv->maps, *va);
        uint64_t size;
        int err;

        if (!map)
            return kfd_fail(-EINVAL, "nothing is mapped at 0x%llx", (unsigned long long)*va);
        err = check_piece(map, *va, need);
        if (err)
            return err;
        size = map->va + map->size - *va;
        if (size > stop - *va)
            size = stop - *va;
        err = piece_add(pieces, map, *va, size);
        if (err)
            return err;
        *va += size;
    }
    return 0;
}

static int collect(struct vmm *vmm, uint64_t va, uint64_t size, uint32_t need,
                   struct pieces *pieces)
{
    uint64_t end = va + size;
    int err = 0;

    while (va < end && !err) {
        struct vmm_resv *resv = vmm_resv_lock(vmm, va);

        if (!resv)
            return kfd_fail(-EINVAL, "address 0x%llx is not this library's",
                            (unsigned long long)va);
        err = collect_locked(resv, &va, end, need, pieces);
        vmm_resv_unlock(resv);
    }
    return err;
}

int vmm_cpu_walk(struct vmm *vmm, uint64_t va, uint64_t size, uint32_t need,
                 int (*each)(void *arg, void *cpu, uint64_t size), void *arg)
{
    int prot = need & VMM_PROT_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    struct pieces pieces = {0};
    int err = vmm_need_owner(vmm);
    struct vmm_view view;

    if (err)
        return err;
    if (!each)
        return kfd_fail(-EINVAL, "each is NULL");
    if (size > UINT64_MAX - va)
        return kfd_fail(-EINVAL, VMM_RANGE " leaves the address space", VMM_RANGE_ARGS(va, size));
    err = collect(vmm, va, size, need, &pieces);
    for (uint64_t i = 0; i < pieces.count && !err; i++) {
        const struct piece *piece = &pieces.at[i];

        err = vmm_alloc_view(piece->alloc, piece->offset, piece->size, prot, NULL, &view);
        if (err)
            break;
        err = each(arg, view.at, piece->size);
        vmm_alloc_unview(vmm, &view);
    }
    pieces_fini(&pieces);
    return err;
}

int vmm_export_range(struct vmm *vmm, uint64_t va, uint64_t size, int *fd, uint64_t *offset)
{
    struct vmm_alloc *alloc = NULL;
    const struct vmm_mapping *map;
    struct vmm_resv *resv;
    int err = vmm_need_owner(vmm), got;
    uint64_t at = 0;

    if (err)
        return err;
    if (!fd)
        return kfd_fail(-EINVAL, "fd is NULL");
    resv = size ? vmm_resv_lock(vmm, va) : NULL;
    if (!resv)
        return kfd_fail(-EINVAL, VMM_RANGE " is not inside memory of this library",
                        VMM_RANGE_ARGS(va, size));
    map = vmm_maptab_at(&resv->maps, va);
    if (!map) {
        err = kfd_fail(-EINVAL, "nothing is mapped at 0x%llx", (unsigned long long)va);
    } else if (size > map->va + map->size - va) {
        err = kfd_fail(-EOPNOTSUPP, VMM_RANGE " is more than the one mapping at 0x%llx",
                       VMM_RANGE_ARGS(va, size), (unsigned long long)map->va);
    } else {
        alloc = map->alloc;
        at = map->offset + (va - map->va);
        vmm_alloc_ref(alloc);
    }
    vmm_resv_unlock(resv);
    if (err)
        return err;
    err = vmm_alloc_export(alloc, &got);
    vmm_alloc_put(alloc);
    if (err)
        return err;
    *fd = got;
    if (offset)
        *offset = at;
    return 0;
}
