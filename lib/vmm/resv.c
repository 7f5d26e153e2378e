/* SPDX-License-Identifier: MIT */
#include "vmm/resv.h"

#include <errno.h>

#include "vmm/check.h"

#include "kfd/poison.h"

int vmm_resv_new(struct vmm *vmm, uint64_t size, uint64_t align, uint64_t hint,
                 struct vmm_resv **out)
{
    struct vmm_resv *resv;
    int err;

    resv = vmm_calloc(1, sizeof(*resv));
    if (!resv)
        return kfd_fail(-ENOMEM, "no host memory for a reservation record");
    err = vmm_lock_init(&resv->lock, VMM_RANK_RESERVATION);
    if (err) {
        kfd_error_set("no host memory for a lock");
        goto fail;
    }
    resv->vmm = vmm;
    resv->refs = 1;
    vmm_maptab_init(&resv->maps);
    vmm_lock_acquire(&vmm->space_lock);
    err = vmm_space_reserve(&vmm->space, size, align, hint, &resv->space);
    vmm_lock_release(&vmm->space_lock);
    if (err)
        goto fail_lock;
    *out = resv;
    return 0;

fail_lock:
    vmm_lock_destroy(&resv->lock);
fail:
    vmm_free_mem(resv);
    return err;
}

void vmm_resv_publish(struct vmm_resv *resv)
{
    struct vmm *vmm = resv->vmm;

    vmm_lock_acquire(&vmm->space_lock);
    resv->live = true;
    vmm_lock_release(&vmm->space_lock);
}

static void resv_delete(struct vmm_resv *resv)
{
    vmm_maptab_fini(&resv->maps);
    vmm_lock_destroy(&resv->lock);
    vmm_free_mem(resv);
}

void vmm_resv_drop(struct vmm_resv *resv)
{
    struct vmm *vmm = resv->vmm;

    vmm_lock_acquire(&vmm->space_lock);
    vmm_space_free(&vmm->space, &resv->space);
    vmm_lock_release(&vmm->space_lock);
    resv_delete(resv);
}

static void resv_put(struct vmm_resv *resv)
{
    struct vmm *vmm = resv->vmm;
    bool last;

    vmm_lock_acquire(&vmm->space_lock);
    last = --resv->refs == 0;
    vmm_lock_release(&vmm->space_lock);
    if (last)
        resv_delete(resv);
}

struct vmm_resv *vmm_resv_lock(struct vmm *vmm, uint64_t va)
{
    struct vmm_resv *resv;

    if (!vmm->space_ready)
        return NULL;
    vmm_lock_acquire(&vmm->space_lock);
    resv = vmm_resv_of(vmm_space_find(&vmm->space, va));
    if (resv && !resv->live)
        resv = NULL;
    if (resv)
        resv->refs++;
    vmm_lock_release(&vmm->space_lock);
    if (!resv)
        return NULL;
    vmm_lock_acquire(&resv->lock);
    if (!resv->live) {
        vmm_resv_unlock(resv);
        return NULL;
    }
    return resv;
}

int vmm_resv_lock_range(struct vmm *vmm, uint64_t va, uint64_t size, struct vmm_resv **out)
{
    int err = vmm_need_engine(vmm);
    struct vmm_resv *resv;
    uint64_t base, end;
    bool one_step;

    if (err)
        return err;
    if (size == 0)
        return kfd_fail(-EINVAL, "size is 0");
    resv = vmm_resv_lock(vmm, va);
    if (!resv)
        return kfd_fail(-EINVAL, "address 0x%llx is in no reservation", (unsigned long long)va);
    base = vmm_resv_base(resv);
    end = vmm_resv_end(resv);
    one_step = resv->one_step;
    if (!one_step && size <= end - va) {
        *out = resv;
        return 0;
    }
    vmm_resv_unlock(resv);
    if (one_step)
        return kfd_fail(-EINVAL, "address 0x%llx is one-step memory, not a reservation",
                        (unsigned long long)va);
    return kfd_fail(-EINVAL, VMM_RANGE " leaves its reservation " VMM_RANGE,
                    VMM_RANGE_ARGS(va, size), VMM_RANGE_ARGS(base, end - base));
}

void vmm_resv_unlock(struct vmm_resv *resv)
{
    vmm_check_resv(resv);
    vmm_lock_release(&resv->lock);
    resv_put(resv);
}

void vmm_resv_retire(struct vmm_resv *resv)
{
    struct vmm *vmm = resv->vmm;

    vmm_lock_acquire(&vmm->space_lock);
    resv->live = false;
    vmm_space_free(&vmm->space, &resv->space);
    resv->refs--;
    vmm_lock_release(&vmm->space_lock);
    vmm_resv_unlock(resv);
}

int vmm_reserve(struct vmm *vmm, uint64_t size, uint64_t align, uint64_t hint, uint64_t *va)
{
    struct vmm_resv *resv;
    int err;

    err = vmm_need_engine(vmm);
    if (err)
        return err;
    if (!va)
        return kfd_fail(-EINVAL, "va is NULL");
    err = vmm_check_size(vmm, size);
    if (err)
        return err;
    if (align & (align - 1))
        return kfd_fail(-EINVAL, "alignment 0x%llx is not a power of two",
                        (unsigned long long)align);
    err = vmm_check_multiple(vmm, "hint", hint);
    if (err)
        return err;
    err = vmm_resv_new(vmm, size, align, hint, &resv);
    if (err)
        return err;
    *va = vmm_resv_base(resv);
    atomic_fetch_add(&vmm->n_resv, 1);
    atomic_fetch_add(&vmm->resv_bytes, size);
    vmm_resv_publish(resv);
    return 0;
}

int vmm_address_free(struct vmm *vmm, uint64_t va, uint64_t size)
{
    struct vmm_resv *resv;
    int err;

    err = vmm_resv_lock_range(vmm, va, size, &resv);
    if (err)
        return err;
    if (va != vmm_resv_base(resv) || size != resv->space.size) {
        err = kfd_fail(-EINVAL, VMM_RANGE " is not the whole reservation " VMM_RANGE,
                       VMM_RANGE_ARGS(va, size),
                       VMM_RANGE_ARGS(vmm_resv_base(resv), resv->space.size));
    } else if (resv->maps.count) {
        err = kfd_fail(-EINVAL, VMM_RANGE " still has mappings: %llu, the first at 0x%llx",
                       VMM_RANGE_ARGS(va, size), (unsigned long long)resv->maps.count,
                       (unsigned long long)vmm_maptab_first(&resv->maps)->va);
    }
    if (err) {
        vmm_resv_unlock(resv);
        return err;
    }
    atomic_fetch_sub(&vmm->n_resv, 1);
    atomic_fetch_sub(&vmm->resv_bytes, size);
    vmm_resv_retire(resv);
    return 0;
}
