/* SPDX-License-Identifier: MIT */
#include "fake/handle.h"

#include <errno.h>

#include "fake/client.h"
#include "kfd/uapi.h"

struct fake_handle *fake_handle_get(const struct fake *fake, const struct fake_process *p,
                                    uint64_t value, int *gpu)
{
    *gpu = fake_gpu_of_id(fake, (uint32_t)(value >> 32));
    return *gpu < 0 ? NULL : fake_ids_get(&p->gpus[*gpu].handles, (uint32_t)value);
}

/* What sysfs says the process has of a GPU's memory. */
static void count_vram(struct fake *fake, struct fake_process *p, const struct fake_handle *h,
                       uint64_t by)
{
    uint64_t *sum = &fake_machine_kfd(&fake->machine, p->slot)->vram[h->gpu];

    if (!h->imported && h->domain == FAKE_DOMAIN_VRAM)
        __atomic_fetch_add(sum, by, __ATOMIC_RELAXED);
}

int fake_handle_add(struct fake *fake, struct fake_process *p, struct fake_bo *bo, uint32_t gpu,
                    uint64_t va, uint32_t flags, bool imported, struct fake_handle **out)
{
    struct fake_handle *h = fake_calloc(sizeof(*h));

    if (h == NULL || fake_ids_add(&p->gpus[gpu].handles, h, &h->id) != 0) {
        fake_free(h);
        fake_bo_put(fake, p, bo);
        return -ENOMEM;
    }
    h->bo = bo;
    h->gpu = gpu;
    h->va = va;
    h->flags = flags;
    h->domain = bo == bo->mem->home ? bo->mem->domain : FAKE_DOMAIN_GTT;
    /* Another card's import stays system memory, whatever the memory was made for. */
    if (bo == bo->mem->home && h->domain == FAKE_DOMAIN_GTT &&
        fake_machine_bo(&fake->machine, bo->mem->index)->gem_domains & AMDGPU_GEM_DOMAIN_VRAM)
        h->domain = FAKE_DOMAIN_VRAM;
    h->imported = imported;
    bo->kfd_handles++;
    fake_machine_hold(&fake->machine, bo->mem->ref, 1);
    count_vram(fake, p, h, bo->mem->size);
    if (fake_client_add(fake, h, imported) != 0) {
        fake_handle_free(fake, p, h);
        return -ENOMEM;
    }
    *out = h;
    return 0;
}

static void detach_all(struct fake *fake, struct fake_process *p, struct fake_handle *h)
{
    while (h->attached != NULL) {
        struct fake_attach *a = h->attached;

        h->attached = a->next;
        fake_vm_detach(fake, p, a->va);
        fake_free(a);
    }
}

void fake_handle_free(struct fake *fake, struct fake_process *p, struct fake_handle *h)
{
    detach_all(fake, p, h);
    fake_client_free(fake, h);
    fake_ids_take(&p->gpus[h->gpu].handles, h->id);
    count_vram(fake, p, h, 0 - h->bo->mem->size);
    h->bo->kfd_handles--;
    fake_machine_hold(&fake->machine, h->bo->mem->ref, -1);
    fake_bo_put(fake, p, h->bo);
    fake_free(h);
}

void fake_handle_free_all(struct fake *fake, struct fake_process *p, uint32_t gpu)
{
    struct fake_ids *ids = &p->gpus[gpu].handles;

    for (uint32_t i = 0; i < ids->top; i++) {
        struct fake_handle *h = fake_ids_get(ids, i);

        if (h != NULL)
            fake_handle_free(fake, p, h);
    }
    fake_ids_clear(ids);
}

bool fake_handle_mapped(const struct fake_handle *h)
{
    for (const struct fake_attach *a = h->attached; a != NULL; a = a->next)
        if (a->mapped)
            return true;
    return false;
}

static struct fake_attach *find(struct fake_handle *h, uint32_t gpu)
{
    struct fake_attach *a = h->attached;

    while (a != NULL && a->gpu != gpu)
        a = a->next;
    return a;
}

/* May gpu's page tables point at this memory? */
static bool reachable(const struct fake *fake, const struct fake_handle *h, uint32_t gpu)
{
    uint32_t owner = h->bo->gpu;

    if (h->domain == FAKE_DOMAIN_GTT || h->domain == FAKE_DOMAIN_USERPTR || owner == gpu)
        return true;
    return fake->profile->gpus[gpu].apu ||
           fake_profile_peer(fake->profile, gpu, owner, h->domain == FAKE_DOMAIN_VRAM);
}

static int attach(struct fake_process *p, struct fake_handle *h, uint32_t gpu,
                  struct fake_attach **out)
{
    struct fake_attach *a = fake_calloc(sizeof(*a));
    int err;

    if (a == NULL)
        return -ENOMEM;
    a->gpu = gpu;
    err = fake_vm_attach(p->gpus[gpu].file->vm, h->bo, &a->va);
    if (err != 0) {
        fake_free(a);
        return err;
    }
    a->next = h->attached;
    h->attached = a;
    *out = a;
    return 0;
}

static uint32_t pte_flags(uint32_t flags)
{
    return FAKE_MAPPING_KFD | FAKE_PTE_READ | (flags & KFD_MEM_WRITABLE ? FAKE_PTE_WRITE : 0) |
           (flags & KFD_MEM_EXECUTABLE ? FAKE_PTE_EXEC : 0);
}

/* The range, and for a doubled ring buffer the same memory once more behind it. */
static int map_ranges(struct fake_handle *h, struct fake_va *va)
{
    uint64_t size = h->bo->mem->size;
    int err = fake_vm_map(va, h->va, 0, size, pte_flags(h->flags));

    if (err == 0 && h->flags & KFD_MEM_AQL_QUEUE) {
        err = fake_vm_map(va, h->va + size, 0, size, pte_flags(h->flags));
        if (err != 0)
            fake_vm_unmap(va, h->va);
    }
    return err;
}

static void unmap_ranges(struct fake_handle *h, struct fake_va *va)
{
    /* GEM_VA may have taken the mapping away; the kernel does not tell. */
    fake_vm_unmap(va, h->va);
    if (h->flags & KFD_MEM_AQL_QUEUE)
        fake_vm_unmap(va, h->va + h->bo->mem->size);
}

/* A map places the memory where it is wanted, or fails. */
static int place(struct fake *fake, struct fake_handle *h)
{
    struct fake_mem *mem = h->bo->mem;
    int err;

    if (h->domain != FAKE_DOMAIN_VRAM || mem->domain != FAKE_DOMAIN_GTT)
        return 0;
    err = fake_machine_to_vram(&fake->machine, mem->index);
    if (err == 0)
        mem->domain = FAKE_DOMAIN_VRAM;
    return err;
}

int fake_handle_map(struct fake *fake, struct fake_process *p, struct fake_handle *h, uint32_t gpu)
{
    struct fake_attach *a = find(h, gpu);
    int err;

    if (h->va == 0)
        return -EINVAL;
    if (a == NULL) {
        if (!reachable(fake, h, gpu))
            return -EINVAL;
        err = attach(p, h, gpu, &a);
        if (err != 0)
            return err;
    }
    if (a->mapped)
        return 0;
    err = place(fake, h);
    if (err == 0)
        err = map_ranges(h, a->va);
    if (err != 0)
        return err;
    err = fake_vm_clear_freed(a->va->vm);
    if (err == 0)
        err = fake_vm_update(a->va);
    if (err != 0) {
        unmap_ranges(h, a->va);
        return err;
    }
    a->mapped = true;
    fake_vm_written(fake, a->va->vm);
    return 0;
}

int fake_handle_unmap(struct fake *fake, struct fake_process *p, struct fake_handle *h,
                      uint32_t gpu)
{
    struct fake_attach *a = find(h, gpu);

    if (a == NULL || !a->mapped)
        return -EINVAL;
    if (a->va->queues != 0)
        return -EBUSY;
    unmap_ranges(h, a->va);
    a->mapped = false;
    return fake_vm_clear_freed(a->va->vm);
}
