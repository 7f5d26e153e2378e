/* SPDX-License-Identifier: MIT */
/*
 * Memory pressure from elsewhere: every object in a GPU's VRAM is moved out and, if a KFD handle of
 * the process protects it, brought back with its page tables written again. What nothing protects
 * is moved behind the page tables' back.
 */
#include <errno.h>

#include "fake/handle.h"
#include "fake/mem.h"
#include "fake/vm.h"
#include "kfd/error.h"

/* A handle keeps its memory resident; until 6.1's successors only while it is mapped. */
static bool handle_protects(const struct fake *fake, const struct fake_handle *h)
{
    return fake->profile->kernel.residency == FAKE_RESIDENT_AT_ALLOC || fake_handle_mapped(h);
}

static bool is_protected(const struct fake *fake, const struct fake_process *p,
                         const struct fake_mem *mem)
{
    for (uint32_t gpu = 0; gpu < fake->profile->gpu_count; gpu++) {
        const struct fake_ids *ids = &p->gpus[gpu].handles;

        for (uint32_t i = 0; i < ids->top; i++) {
            const struct fake_handle *h = fake_ids_get(ids, i);

            if (h != NULL && h->bo->mem == mem && handle_protects(fake, h))
                return true;
        }
    }
    return false;
}

static bool lies_in(const struct fake_mem *mem, uint32_t gpu)
{
    return mem->domain == FAKE_DOMAIN_VRAM && mem->owner == gpu;
}

/* Moves what the VM maps of that GPU's VRAM, and writes again what the kernel would. */
static int evict_vm(struct fake *fake, struct fake_process *p, struct fake_vm *vm, uint32_t gpu)
{
    bool all = fake->profile->kernel.gem_va_restored, restored = false;

    for (uint64_t i = 0; i < vm->vas.capacity; i++) {
        struct fake_va *va = vm->vas.slots[i].value;
        int err;

        if (va == NULL || !lies_in(va->bo->mem, gpu))
            continue;
        fake_pt_move(&vm->pt, va->bo->mem->index, va->bo->mem->generation);
        fake_tlb_move(&vm->tlb, va->bo->mem->index, va->bo->mem->generation);
        if (va->moved.pid == 0)
            va->moved = *vm->now;
        if (!is_protected(fake, p, va->bo->mem))
            continue;
        err = fake_vm_rewrite(va, !all);
        if (err != 0)
            return err;
        restored = true;
    }
    /* KFD flushes after it has brought everything back; an unprotected move flushes nothing. */
    if (restored && vm->compute)
        fake_vm_flush(vm);
    return 0;
}

int fake_evict(struct fake *fake, uint32_t gpu)
{
    struct fake_process *p;
    int err = 0;

    if (gpu >= fake->profile->gpu_count)
        return kfd_fail(-EINVAL, "fake_evict: GPU %u of %u", gpu, fake->profile->gpu_count);
    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    fake_process_lock(p);
    fake_process_deed(p, FAKE_DEED_EVICTION);
    for (struct fake_file *file = p->files; file != NULL && err == 0; file = file->next)
        if (file->vm != NULL)
            err = evict_vm(fake, p, file->vm, gpu);
    fake_process_unlock(p);
    return err;
}
