/* SPDX-License-Identifier: MIT */
#include "vmm/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "vmm/engine.h"
#include "vmm/userptr.h"

#include "kfd/poison.h"

/* Above this the per-operation check would make long runs quadratic. */
#define CHECK_LIMIT 256

static int check_mapping(const struct vmm_resv *resv, const struct vmm_mapping *map)
{
    const struct vmm *vmm = resv->vmm;
    unsigned long long va = map->va;
    uint64_t all = vmm->device_count == 64 ? UINT64_MAX : vmm_bit(vmm->device_count) - 1;

    if (map->read_mask & ~all)
        return kfd_fail(-EUCLEAN, "mapping 0x%llx: rights for devices that do not exist", va);
    if (map->write_mask & ~map->read_mask)
        return kfd_fail(-EUCLEAN, "mapping 0x%llx: writable but not readable", va);
    if (!map->alloc || atomic_load(&map->alloc->maps) == 0)
        return kfd_fail(-EUCLEAN, "mapping 0x%llx: its allocation does not count it", va);
    if (map->offset + map->size > map->alloc->size)
        return kfd_fail(-EUCLEAN, "mapping 0x%llx: beyond its allocation", va);
    if (atomic_load(&map->alloc->refs) < atomic_load(&map->alloc->users))
        return kfd_fail(-EUCLEAN, "mapping 0x%llx: fewer references than users", va);
    return 0;
}

static int check_resv(const struct vmm_resv *resv)
{
    const struct vmm_mapping *map;
    int err;

    err = vmm_maptab_validate(&resv->maps, vmm_resv_base(resv), resv->space.size);
    if (err)
        return kfd_fail_in(err, "reservation 0x%llx", (unsigned long long)vmm_resv_base(resv));
    for (map = vmm_maptab_first(&resv->maps); map; map = vmm_maptab_next(&resv->maps, map)) {
        err = check_mapping(resv, map);
        if (err)
            return err;
    }
    return 0;
}

#ifdef KFDIRECT_DEBUG
static atomic_bool found;
static char found_text[256];

void vmm_check_resv(const struct vmm_resv *resv)
{
    char before[512];

    if (resv->maps.count > CHECK_LIMIT)
        return;
    snprintf(before, sizeof(before), "%s", kfd_error_text());
    if (check_resv(resv) != 0 && !atomic_exchange(&found, true))
        snprintf(found_text, sizeof(found_text), "%s", kfd_error_text());
    kfd_error_set("%s", before);
}
#endif

struct totals {
    uint64_t allocs, alloc_bytes, maps, installed;
};

static int count_alloc(void *arg, uint64_t handle, void *object)
{
    const struct vmm_alloc *alloc = object;
    struct totals *totals = arg;

    if (alloc->handle != handle)
        return kfd_fail(-EUCLEAN, "handle 0x%" PRIx64 ": leads to allocation 0x%" PRIx64, handle,
                        alloc->handle);
    if (atomic_load(&alloc->refs) != atomic_load(&alloc->users) + atomic_load(&alloc->maps))
        return kfd_fail(-EUCLEAN,
                        "handle 0x%" PRIx64 ": %" PRIu64 " references, %" PRIu64 " users + %" PRIu64
                        " mappings",
                        handle, atomic_load(&alloc->refs), atomic_load(&alloc->users),
                        atomic_load(&alloc->maps));
    totals->allocs++;
    totals->alloc_bytes += alloc->size;
    totals->maps += atomic_load(&alloc->maps);
    for (uint32_t d = 0; d < alloc->vmm->device_count; d++)
        totals->installed += alloc->imports[d].users;
    return 0;
}

static int validate_resvs(struct vmm *vmm, struct totals *seen, uint64_t *one_step)
{
    struct vmm_space_node *node;
    int err;

    err = vmm_space_validate(&vmm->space);
    for (node = vmm_space_first(&vmm->space); node && !err; node = vmm_space_next(node)) {
        struct vmm_resv *resv = vmm_resv_of(node);
        const struct vmm_mapping *map;

        err = check_resv(resv);
        if (resv->one_step) {
            ++*one_step;
            continue;
        }
        map = vmm_maptab_first(&resv->maps);
        for (; map; map = vmm_maptab_next(&resv->maps, map)) {
            seen->maps++;
            seen->installed += (uint64_t)__builtin_popcountll(map->read_mask);
        }
    }
    return err;
}

int vmm_validate(struct vmm *vmm)
{
    struct totals handles = {0}, seen = {0};
    uint64_t one_step = 0;
    const char *text;
    int err = 0;

#ifdef KFDIRECT_DEBUG
    if (atomic_load(&found))
        return kfd_fail(-EUCLEAN, "%s", found_text);
#endif
    if (vmm_lock_violations(&text))
        return kfd_fail(-EUCLEAN, "%s", text);
    if (!vmm->space_ready)
        return 0;
    vmm_lock_acquire(&vmm->space_lock);
    err = validate_resvs(vmm, &seen, &one_step);
    vmm_lock_release(&vmm->space_lock);
    if (!err)
        err = vmm_handles_each(&vmm->handles, count_alloc, &handles);
    if (err)
        return err;
    if (seen.maps != handles.maps || seen.maps != atomic_load(&vmm->n_map))
        return kfd_fail(-EUCLEAN, "%" PRIu64 " mappings, allocations count %" PRIu64, seen.maps,
                        handles.maps);
    if (vmm->engine && vmm->engine->id == VMM_ENGINE_DRM && seen.installed != handles.installed)
        return kfd_fail(-EUCLEAN, "%" PRIu64 " device mappings, imports count %" PRIu64,
                        seen.installed, handles.installed);
    if (one_step != atomic_load(&vmm->n_one) || handles.allocs != atomic_load(&vmm->n_alloc) ||
        handles.alloc_bytes != atomic_load(&vmm->alloc_bytes))
        return kfd_fail(-EUCLEAN, "the totals do not match the objects");
    return 0;
}

static void print_rights(FILE *out, const struct vmm *vmm, const struct vmm_mapping *map)
{
    static const char letters[] = "-r?w";

    for (uint32_t d = 0; d < vmm->device_count; d++) {
        unsigned prot = (unsigned)(map->read_mask >> d & 1) | (unsigned)(map->write_mask >> d & 1)
                                                                  << 1;

        fputc(letters[prot], out);
    }
    fprintf(out, " cpu %c", letters[map->host_prot]);
}

static void print_resv(FILE *out, const struct vmm_resv *resv)
{
    const struct vmm *vmm = resv->vmm;
    const struct vmm_mapping *map;

    fprintf(out, "%s " VMM_RANGE ", %" PRIu64 " mapping%s\n",
            resv->one_step ? "one-step" : "reservation",
            VMM_RANGE_ARGS(vmm_resv_base(resv), resv->space.size), resv->maps.count,
            resv->maps.count == 1 ? "" : "s");
    for (map = vmm_maptab_first(&resv->maps); map; map = vmm_maptab_next(&resv->maps, map)) {
        fprintf(out, "  " VMM_RANGE " -> 0x%" PRIx64 "+0x%" PRIx64 " %s %u ",
                VMM_RANGE_ARGS(map->va, map->size), map->alloc->handle, map->offset,
                map->alloc->props.location == VMM_LOCATION_HOST ? "host memory of device"
                                                                : "device",
                map->alloc->props.device);
        print_rights(out, vmm, map);
        fputc('\n', out);
    }
}

static int print_alloc(void *arg, uint64_t handle, void *object)
{
    const struct vmm_alloc *alloc = object;
    FILE *out = arg;

    fprintf(out,
            "allocation 0x%" PRIx64 ": 0x%" PRIx64 " bytes, %s %u%s%s, users %" PRIu64
            ", mappings %" PRIu64,
            handle, alloc->size,
            alloc->props.location == VMM_LOCATION_HOST ? "host memory of device" : "device",
            alloc->props.device, alloc->props.uncached ? ", uncached" : "",
            alloc->props.imported ? ", imported" : "", atomic_load(&alloc->users),
            atomic_load(&alloc->maps));
    fputs(", imports ", out);
    for (uint32_t d = 0; d < alloc->vmm->device_count; d++)
        fputc(alloc->imports[d].gem ? '+' : '-', out);
    fputc('\n', out);
    return 0;
}

void vmm_print(struct vmm *vmm, FILE *out)
{
    struct vmm_space_node *node;

    fprintf(out, "engine %s, %u devices\n", vmm_engine_name(vmm_engine(vmm)), vmm->device_count);
    if (!vmm->space_ready)
        return;
    vmm_lock_acquire(&vmm->space_lock);
    for (node = vmm_space_first(&vmm->space); node; node = vmm_space_next(node))
        print_resv(out, vmm_resv_of(node));
    vmm_lock_release(&vmm->space_lock);
    vmm_handles_each(&vmm->handles, print_alloc, out);
}

void vmm_get_stats(struct vmm *vmm, struct vmm_stats *out)
{
    *out = (struct vmm_stats){
        .reservations = atomic_load(&vmm->n_resv),
        .reserved_bytes = atomic_load(&vmm->resv_bytes),
        .allocations = atomic_load(&vmm->n_alloc),
        .allocated_bytes = atomic_load(&vmm->alloc_bytes),
        .mappings = atomic_load(&vmm->n_map),
        .mapped_bytes = atomic_load(&vmm->map_bytes),
        .one_step = atomic_load(&vmm->n_one),
        .one_step_bytes = atomic_load(&vmm->one_bytes),
    };
    if (!vmm->space_ready)
        return;
    vmm_lock_acquire(&vmm->space_lock);
    out->arenas = vmm_space_arenas(&vmm->space);
    vmm_userptr_count(vmm, out);
    vmm_lock_release(&vmm->space_lock);
}
