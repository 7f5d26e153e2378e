/* SPDX-License-Identifier: MIT */
/* ALLOC, FREE, MAP and UNMAP. */
#include <errno.h>
#include <stdlib.h>

#include "fake/gem.h"
#include "fake/handle.h"
#include "fake/handlers.h"
#include "fake/inject.h"
#include "fake/svm.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define TYPES (KFD_MEM_VRAM | KFD_MEM_GTT | KFD_MEM_USERPTR | KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP)
/* The largest array the kernel's allocator gives. */
#define MAX_ARRAY ((4u << 20) / sizeof(uint32_t))

static uint32_t domain_of(uint32_t flags)
{
    if (flags & KFD_MEM_VRAM)
        return FAKE_DOMAIN_VRAM;
    if (flags & KFD_MEM_GTT)
        return FAKE_DOMAIN_GTT;
    if (flags & KFD_MEM_USERPTR)
        return FAKE_DOMAIN_USERPTR;
    return flags & KFD_MEM_DOORBELL ? FAKE_DOMAIN_DOORBELL : FAKE_DOMAIN_MMIO;
}

/* Accounting looks at the type bits in another order than placement does. */
static uint32_t charge_of(uint32_t flags, bool apu)
{
    if (flags & KFD_MEM_GTT || (flags & KFD_MEM_VRAM && apu))
        return FAKE_CHARGE_SYSTEM | FAKE_CHARGE_TTM;
    if (flags & KFD_MEM_VRAM)
        return FAKE_CHARGE_VRAM;
    return flags & KFD_MEM_USERPTR ? FAKE_CHARGE_SYSTEM : 0;
}

/* Only a kernel with SVM has ranges to meet. */
static bool meets_svm(const struct fake_process *p,
                      const struct kfd_ioctl_alloc_memory_of_gpu_args *a)
{
    if ((a->va_addr != 0 || !(a->flags & KFD_MEM_VRAM)) &&
        fake_svm_overlaps(p, a->va_addr, a->size))
        return true;
    return a->flags & KFD_MEM_USERPTR && fake_svm_overlaps(p, a->mmap_offset, a->size);
}

static int check_alloc(const struct fake_call *call,
                       const struct kfd_ioctl_alloc_memory_of_gpu_args *a, int *gpu)
{
    const struct fake_gpu *g;

    if (a->size == 0)
        return -EINVAL;
    if (meets_svm(call->process, a))
        return -EADDRINUSE;
    *gpu = fake_gpu_of_id(call->fake, a->gpu_id);
    if (*gpu < 0)
        return -EINVAL;
    g = &call->fake->profile->gpus[*gpu];
    if (a->flags & KFD_MEM_PUBLIC && a->flags & KFD_MEM_VRAM && !fake_gpu_large_bar(g))
        return -EINVAL;
    if (call->process->gpus[*gpu].file == NULL)
        return -ENODEV;
    if (a->flags & KFD_MEM_DOORBELL) {
        if (a->size != g->doorbell_size)
            return -EINVAL;
    } else if (a->flags & KFD_MEM_MMIO_REMAP && a->size != FAKE_PAGE) {
        return -EINVAL;
    } else if (a->flags & KFD_MEM_MMIO_REMAP && fake_gpu_gfx_major(g) < 9) {
        return -ENOMEM;
    }
    if ((a->flags & TYPES) == 0)
        return -EINVAL;
    if (domain_of(a->flags) == FAKE_DOMAIN_USERPTR && a->mmap_offset == 0)
        return -EINVAL;
    return 0;
}

/* What DRM says of the buffer when it is imported there. */
static void created_as(const struct fake_kernel *kernel, uint32_t flags,
                       struct fake_shared_bo *wanted)
{
    /* younger than some headers */
    const uint64_t coherent = UINT64_C(1) << 13, uncached = UINT64_C(1) << 14,
                   ext_coherent = UINT64_C(1) << 15;
    bool vram = wanted->domain == FAKE_DOMAIN_VRAM;

    wanted->gem_alignment = FAKE_PAGE;
    wanted->gem_domains = vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT;
    wanted->gem_flags = fake_gem_flags(
        kernel,
        (flags & KFD_MEM_COHERENT ? coherent : 0) | (flags & KFD_MEM_UNCACHED ? uncached : 0) |
            (flags & KFD_MEM_EXT_COHERENT && kernel->mem_flags_new ? ext_coherent : 0),
        vram);
}

int fake_kfd_alloc_memory_of_gpu(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args *a = arg;
    struct fake *fake = call->fake;
    struct fake_process *p = call->process;
    struct fake_shared_bo wanted = {.flags = a->flags, .domain = domain_of(a->flags)};
    struct fake_handle *h;
    struct fake_bo *bo;
    int gpu, err = check_alloc(call, a, &gpu);

    if (err != 0)
        return err;
    wanted.owner = (uint32_t)gpu;
    wanted.charge = charge_of(a->flags, fake->profile->gpus[gpu].apu);
    wanted.size = a->flags & KFD_MEM_AQL_QUEUE ? a->size / 2 : a->size;
    wanted.size = fake_page_up(wanted.size);
    /* Rounded to nothing; older kernels ask the allocator for it. */
    if (wanted.size == 0)
        return fake->profile->kernel.kfd_minor >= 12 ? -EINVAL : -ENOSPC;
    created_as(&fake->profile->kernel, a->flags, &wanted);
    err = fake_bo_create(fake, p, &wanted, &bo);
    if (err != 0)
        return err;
    if (wanted.domain == FAKE_DOMAIN_USERPTR) {
        bo->mem->userptr = a->mmap_offset;
        err = fake_check_userptr(a->mmap_offset, wanted.size);
        if (err != 0) {
            fake_bo_put(fake, p, bo);
            return err;
        }
    }
    err = fake_handle_add(fake, p, bo, (uint32_t)gpu, a->va_addr, a->flags, false, &h);
    if (err != 0)
        return err;
    a->handle = fake_handle_value(fake, h);
    a->mmap_offset =
        wanted.domain == FAKE_DOMAIN_MMIO ? (uint64_t)a->gpu_id << 46 : bo->mmap_offset;
    return 0;
}

static bool last_handle(const struct fake_handle *h)
{
    const struct fake_mem *mem = h->bo->mem;
    uint32_t handles = mem->home != NULL ? mem->home->kfd_handles : 0;

    for (const struct fake_bo *bo = mem->client; bo != NULL; bo = bo->next_import)
        handles += bo->kfd_handles;
    return handles == 1;
}

static const struct fake_mapping *gem_va_mapping(const struct fake_process *p,
                                                 const struct fake_mem *mem)
{
    for (const struct fake_file *file = p->files; file != NULL; file = file->next) {
        const struct fake_gem *gem =
            file->vm != NULL && file->vm->compute ? fake_map_get(&file->prime, mem->index) : NULL;

        if (gem != NULL && (gem->va->mappings != NULL || gem->va->unwritten != NULL))
            return gem->va->mappings != NULL ? gem->va->mappings : gem->va->unwritten;
    }
    return NULL;
}

int fake_kfd_free_memory_of_gpu(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_free_memory_of_gpu_args *a = arg;
    const struct fake_mapping *left;
    struct fake_handle *h;
    int gpu, err;

    if (call->process->event_page != 0 && a->handle == call->process->event_page)
        return -EPERM;
    h = fake_handle_get(call->fake, call->process, a->handle, &gpu);
    if (h == NULL)
        return -EINVAL;
    if (fake_handle_mapped(h))
        return -EBUSY;
    left = last_handle(h) ? gem_va_mapping(call->process, h->bo->mem) : NULL;
    if (left != NULL) {
        err = fake_strict(call->fake, call->process, 0, &left->made,
                          "FREE of handle 0x%llx while GEM_VA maps its memory at 0x%llx on GPU %u, "
                          "and nothing keeps it in place any more",
                          (unsigned long long)a->handle, (unsigned long long)left->node.key,
                          left->va->vm->gpu);
        if (err != 0)
            return err;
    }
    if (h->half_freed.pid != 0) {
        err = fake_strict(call->fake, call->process, 0, &h->half_freed,
                          "FREE of handle 0x%llx, which a signal stopped half way",
                          (unsigned long long)a->handle);
        if (err != 0)
            return err;
    }
    if (call->strike.armed && call->strike.point == FAKE_INJECT_MIDDLE) {
        h->half_freed = call->process->now;
        return call->strike.error;
    }
    fake_handle_free(call->fake, call->process, h);
    return 0;
}

/* The device array of MAP and UNMAP; freed by the caller. */
static int read_devices(uint64_t user, uint32_t n, uint32_t done, uint32_t **out)
{
    uint32_t *ids;

    if (n == 0 || done > n)
        return -EINVAL;
    if (n > MAX_ARRAY)
        return -ENOMEM;
    ids = malloc(n * sizeof(*ids));
    if (ids == NULL)
        return -ENOMEM;
    if (fake_copy_in(ids, user, n * sizeof(*ids)) != 0) {
        free(ids);
        return -EFAULT;
    }
    *out = ids;
    return 0;
}

/* Naming a GPU whose VM was never acquired makes the kernel follow a null pointer here. */
static int flush(struct fake_call *call, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int gpu = fake_gpu_of_id(call->fake, ids[i]), err = 0;

        if (gpu >= 0 && call->process->gpus[gpu].file != NULL)
            fake_vm_flush(call->process->gpus[gpu].file->vm);
        else if (gpu >= 0)
            err = fake_strict(call->fake, call->process, 0, NULL,
                              "flush of GPU %d, whose VM is not acquired", gpu);
        if (err != 0)
            return err;
    }
    return 0;
}

/* A signal while the request waited for the page tables: all devices done, nothing flushed. */
static int stopped_late(const struct fake_call *call, uint32_t n)
{
    return call->strike.armed && call->strike.point == FAKE_INJECT_MIDDLE && call->strike.done >= n
               ? call->strike.error
               : 0;
}

int fake_kfd_map_memory_to_gpu(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_map_memory_to_gpu_args *a = arg;
    struct fake_process *p = call->process;
    struct fake_handle *h;
    uint32_t *ids = NULL;
    int owner, err = read_devices(a->device_ids_array_ptr, a->n_devices, a->n_success, &ids);

    if (err != 0)
        return err;
    h = fake_handle_get(call->fake, p, a->handle, &owner);
    if (owner < 0)
        err = -EINVAL;
    else if (p->gpus[owner].file == NULL)
        err = -ENODEV;
    else if (h == NULL)
        err = -ENOMEM;
    for (uint32_t i = a->n_success; err == 0 && i < a->n_devices; i++) {
        int gpu = fake_gpu_of_id(call->fake, ids[i]);

        if (fake_strike_at(call, i))
            err = call->strike.error;
        else if (gpu < 0)
            err = -EINVAL;
        else if (p->gpus[gpu].file == NULL)
            err = -ENODEV;
        else
            err = fake_handle_map(call->fake, p, h, (uint32_t)gpu);
        if (err == 0)
            a->n_success = i + 1;
    }
    if (err == 0)
        err = stopped_late(call, a->n_devices);
    if (err == 0)
        err = flush(call, ids, a->n_devices);
    free(ids);
    return err;
}

/* By the handle's owner: older chips leave their TLBs to the next MAP. gfx 9.0.6 is GC 9.4.0, 9.0.8
 * is 9.4.1, 9.0.10 is 9.4.2. */
static bool flushes_after_unmap(const struct fake_gpu *g)
{
    switch (g->gfx_target_version) {
    case 90006:
        return true;
    case 90008:
        return g->sdma_fw_version >= 18;
    default:
        return g->gfx_target_version >= 90010;
    }
}

int fake_kfd_unmap_memory_from_gpu(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_unmap_memory_from_gpu_args *a = arg;
    struct fake_process *p = call->process;
    struct fake_handle *h;
    uint32_t *ids = NULL;
    int owner, err = read_devices(a->device_ids_array_ptr, a->n_devices, a->n_success, &ids);

    if (err != 0)
        return err;
    h = fake_handle_get(call->fake, p, a->handle, &owner);
    if (h == NULL)
        err = owner < 0 ? -EINVAL : -ENOMEM;
    for (uint32_t i = a->n_success; err == 0 && i < a->n_devices; i++) {
        int gpu = fake_gpu_of_id(call->fake, ids[i]);

        if (gpu < 0)
            err = -EINVAL;
        else if (p->gpus[gpu].file == NULL)
            err = fake_strict(call->fake, p, -EINVAL, NULL,
                              "UNMAP on GPU %d, whose VM is not acquired", gpu);
        else
            err = fake_handle_unmap(call->fake, p, h, (uint32_t)gpu);
        if (err == 0)
            a->n_success = i + 1;
    }
    if (err == 0)
        err = stopped_late(call, a->n_devices);
    if (err == 0 && flushes_after_unmap(&call->fake->profile->gpus[owner]))
        err = flush(call, ids, a->n_devices);
    free(ids);
    return err;
}
