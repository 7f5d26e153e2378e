/* SPDX-License-Identifier: MIT */
#include "vmm/barrier.h"

#include "kfd/caps.h"
#include "vmm/engine.h"
#include "vmm/resv.h"

#include "kfd/poison.h"

static int make(struct vmm *vmm)
{
    struct vmm_barrier *b = &vmm->barrier;
    struct vmm_resv *resv;
    int err = vmm_resv_new(vmm, vmm->granule, 0, 0, &resv);

    if (err)
        return err;
    err = kfd_mem_alloc(vmm->devices[__builtin_ctzll(b->devices)], vmm_resv_base(resv),
                        vmm->granule, KFD_MEM_GTT | KFD_MEM_WRITABLE, &b->handle, NULL);
    if (err)
        vmm_resv_drop(resv);
    else
        b->resv = resv;
    return err;
}

int vmm_barrier_init(struct vmm *vmm)
{
    struct vmm_barrier *b = &vmm->barrier;
    int err = vmm_lock_init(&b->lock, VMM_RANK_BARRIER);

    if (err)
        return err;
    for (uint32_t d = 0; d < vmm->device_count; d++) {
        const struct kfd_device_info *info = kfd_device_info(vmm->devices[d]);

        /* The kernel lets the CPU write where it sees all of the memory. */
        if (!info->large_bar && !info->apu && !kfd_caps_drm_timeline(info))
            b->devices |= vmm_bit(d);
    }
    if (vmm_engine(vmm) == VMM_ENGINE_DRM && b->devices)
        err = make(vmm);
    if (err)
        vmm_lock_destroy(&b->lock);
    return err;
}

void vmm_barrier_fini(struct vmm *vmm)
{
    struct vmm_barrier *b = &vmm->barrier;

    if (b->resv) {
        /* What does not go now goes with the process. */
        if (b->mapped)
            vmm_engine_unmap_handle(vmm, b->handle, b->mapped, &b->mapped);
        kfd_mem_free(vmm->kfd, b->handle);
        vmm_resv_drop(b->resv);
    }
    vmm_lock_destroy(&b->lock);
}

static int take_back(struct vmm *vmm)
{
    struct vmm_barrier *b = &vmm->barrier;
    uint64_t gone = 0;
    int err = 0;

    if (b->mapped)
        err = vmm_engine_unmap_handle(vmm, b->handle, b->mapped, &gone);
    b->mapped &= ~gone;
    return err;
}

static void try_to_take_back(struct vmm *vmm)
{
    kfd_error_hold();
    take_back(vmm);
    kfd_error_resume();
}

void vmm_barrier_reap(struct vmm *vmm)
{
    struct vmm_barrier *b = &vmm->barrier;

    if (!b->resv)
        return;
    vmm_lock_acquire(&b->lock);
    try_to_take_back(vmm);
    vmm_lock_release(&b->lock);
}

int vmm_barrier_wait(struct vmm *vmm, uint64_t devices)
{
    struct vmm_barrier *b = &vmm->barrier;
    int err;

    vmm_lock_acquire(&b->lock);
    /* Mapped already, MAP would have nothing to wait for. */
    err = take_back(vmm);
    if (!err) {
        err = vmm_engine_map(vmm, b->handle, devices, &b->mapped);
        try_to_take_back(vmm); /* or before the next time */
    }
    vmm_lock_release(&b->lock);
    return err;
}
