/* SPDX-License-Identifier: MIT */
#include "vmm/engine.h"

#include <errno.h>
#include <stdio.h>

#include "kfd/poison.h"

static const struct {
    const struct vmm_engine_ops *ops;
    bool needs_cap;
    enum kfd_cap cap;
} engines[] = {
    {&vmm_engine_drm, true, KFD_CAP_GEM_VA},
    {&vmm_engine_kfd, true, KFD_CAP_EXPORT_DMABUF},
    {&vmm_engine_gem, false, 0},
};

#define ENGINE_COUNT (sizeof(engines) / sizeof(engines[0]))

const char *vmm_engine_name(enum vmm_engine engine)
{
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        if (engines[i].ops->id == engine)
            return engines[i].ops->name;
    }
    return engine == VMM_ENGINE_AUTO ? "auto" : "none";
}

static void note_missing(struct vmm *vmm, enum kfd_cap cap)
{
    struct kfd_cap_info info;
    uint32_t major, minor;
    size_t len = 0;

    while (vmm->reason[len] != '\0')
        len++;
    kfd_cap_info(vmm->kfd, cap, &info);
    kfd_version(vmm->kfd, &major, &minor);
    if (len == 0)
        snprintf(vmm->reason, sizeof(vmm->reason), "KFD %u.%u lacks %s", major, minor, info.name);
    else
        snprintf(vmm->reason + len, sizeof(vmm->reason) - len, " and %s", info.name);
}

int vmm_engine_choose(struct vmm *vmm, enum vmm_engine wanted)
{
    if (vmm->device_count == 0) {
        snprintf(vmm->reason, sizeof(vmm->reason), "no usable GPU");
        return 0;
    }
    for (size_t i = 0; i < ENGINE_COUNT && !vmm->engine; i++) {
        if (engines[i].needs_cap && !kfd_has(vmm->kfd, engines[i].cap)) {
            note_missing(vmm, engines[i].cap);
            if (wanted == engines[i].ops->id)
                return kfd_fail(-EOPNOTSUPP, "engine %s: %s", engines[i].ops->name, vmm->reason);
            continue;
        }
        if (wanted == VMM_ENGINE_AUTO || wanted == engines[i].ops->id)
            vmm->engine = engines[i].ops;
    }
    if (!vmm->engine && wanted != VMM_ENGINE_NONE)
        return kfd_fail(-EINVAL, "engine %d is not known", (int)wanted);
    if (wanted != VMM_ENGINE_AUTO && vmm->reason[0] == '\0' && wanted != VMM_ENGINE_DRM)
        snprintf(vmm->reason, sizeof(vmm->reason), "engine %s was asked for",
                 vmm_engine_name(wanted));
    return 0;
}

int vmm_engine_alloc(struct vmm_alloc *alloc, uint32_t flags, int *fd)
{
    int err = kfd_mem_alloc(vmm_alloc_owner(alloc), 0, alloc->size, flags, &alloc->kfd_handle,
                            &alloc->mmap_offset);

    if (err)
        return err;
    alloc->has_kfd = true;
    return kfd_dmabuf_export(alloc->vmm->kfd, alloc->kfd_handle, fd);
}

uint32_t vmm_engine_list(const struct vmm *vmm, uint64_t set,
                         struct kfd_device *devices[KFD_MAX_DEVICES])
{
    uint32_t n = 0;

    for (; set; set &= set - 1)
        devices[n++] = vmm->devices[__builtin_ctzll(set)];
    return n;
}

/* The lowest n of a set. */
static uint64_t lowest(uint64_t devices, uint32_t n)
{
    uint64_t rest = devices;

    while (n--)
        rest &= rest - 1;
    return devices & ~rest;
}

int vmm_engine_map(struct vmm *vmm, uint64_t kfd_handle, uint64_t devices, uint64_t *done)
{
    struct kfd_device *list[KFD_MAX_DEVICES];
    uint32_t n = vmm_engine_list(vmm, devices, list), mapped = 0;
    int err = kfd_mem_map(vmm->kfd, kfd_handle, list, n, &mapped);

    *done = err ? lowest(devices, mapped) : devices;
    return err;
}

/* Chips before gfx906 leave their TLBs alone at UNMAP, and so does gfx908 with an old SDMA
 * firmware, which cannot be asked for here. */
static bool flushes_at_unmap(uint32_t gfx_version)
{
    return gfx_version == 90006 || gfx_version >= 90010;
}

int vmm_engine_unmap_handle(struct vmm *vmm, uint64_t kfd_handle, uint64_t devices, uint64_t *done)
{
    struct kfd_device *list[KFD_MAX_DEVICES];
    uint32_t n = vmm_engine_list(vmm, devices, list), unmapped = 0;
    int err = kfd_mem_unmap(vmm->kfd, kfd_handle, list, n, &unmapped);

    *done = err ? lowest(devices, unmapped) : devices;
    return err;
}

int vmm_engine_unmap(const struct vmm_alloc *alloc, uint64_t kfd_handle, uint64_t devices,
                     uint64_t *done)
{
    struct kfd_device *list[KFD_MAX_DEVICES];
    struct vmm *vmm = alloc->vmm;
    uint32_t n = vmm_engine_list(vmm, devices, list);
    int err = vmm_engine_unmap_handle(vmm, kfd_handle, devices, done);

    if (!err && !flushes_at_unmap(kfd_device_info(vmm_alloc_owner(alloc))->gfx_version)) {
        err = kfd_mem_flush(vmm->kfd, kfd_handle, list, n);
        if (err)
            atomic_fetch_or(&vmm->unflushed, devices);
    }
    return err;
}
