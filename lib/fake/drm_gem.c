/* SPDX-License-Identifier: MIT */
/* DRM requests on buffer objects. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake/gem.h"
#include "fake/handlers.h"
#include "kfd/uapi.h"

int fake_drm_gem_close(struct fake_call *call, void *arg)
{
    const struct drm_gem_close *a = arg;
    struct fake_gem *gem = fake_gem_get(call->file, a->handle);

    if (gem == NULL)
        return -EINVAL;
    fake_gem_close(call->fake, call->process, call->file, gem);
    return 0;
}

static int share(struct fake_file *file, struct fake_gem *gem)
{
    uint32_t key = gem->bo->mem->index;
    int err = 0;

    if (!gem->shared && fake_map_get(&file->prime, key) == NULL) {
        err = fake_map_put(&file->prime, key, gem);
        gem->shared = err == 0;
    }
    return err;
}

int fake_drm_prime_handle_to_fd(struct fake_call *call, void *arg)
{
    struct drm_prime_handle *a = arg;
    struct fake_gem *gem;
    int fd, err;

    if ((a->flags & ~(uint32_t)(O_CLOEXEC | O_RDWR)) != 0)
        return -EINVAL;
    gem = fake_gem_get(call->file, a->handle);
    if (gem == NULL)
        return -ENOENT;
    if (gem->bo->always_valid || gem->bo->mem->domain == FAKE_DOMAIN_USERPTR)
        return -EPERM;
    err = share(call->file, gem);
    if (err != 0)
        return err;
    fd = fake_mem_export(call->fake, gem->bo->mem->index, (int)(a->flags & O_CLOEXEC),
                         (int)(a->flags & O_ACCMODE));
    if (fd < 0)
        return fd;
    a->fd = fd;
    return 0;
}

int fake_drm_prime_fd_to_handle(struct fake_call *call, void *arg)
{
    struct drm_prime_handle *a = arg;
    struct fake_file *file = call->file;
    struct fake_mem *mem;
    struct fake_gem *gem;
    struct fake_bo *bo;
    int err = fake_mem_from_fd(call->fake, call->process, a->fd, &mem);

    if (err != 0)
        return err;
    gem = fake_map_get(&file->prime, mem->index);
    if (gem != NULL) {
        fake_mem_put(call->fake, call->process, mem);
        a->handle = gem->handle;
        return 0;
    }
    if (!file->vm->compute &&
        call->fake->profile->gpus[mem->owner].card != call->fake->profile->gpus[file->gpu].card) {
        err = fake_strict(call->fake, call->process, 0, &file->opened,
                          "import of GPU %u's memory on GPU %u before its VM is acquired: its "
                          "mappings will stay empty",
                          mem->owner, file->gpu);
        if (err != 0) {
            fake_mem_put(call->fake, call->process, mem);
            return err;
        }
    }
    err = fake_bo_for_mem(call->fake, call->process, mem, file->gpu,
                          file->vm->compute ? FAKE_IMPORT_DRM : FAKE_IMPORT_EARLY, &bo);
    if (err != 0)
        return err;
    err = fake_gem_add(call->fake, call->process, file, bo, &gem);
    if (err != 0)
        return err;
    err = share(file, gem);
    if (err != 0) {
        fake_gem_close(call->fake, call->process, file, gem);
        return err;
    }
    a->handle = gem->handle;
    return 0;
}

/* Places the object in VRAM, and in system memory when there is no room for it there. */
static int create(struct fake_call *call, struct fake_shared_bo *wanted, uint64_t domains,
                  struct fake_bo **out)
{
    int err = -ENOMEM;

    if (domains & AMDGPU_GEM_DOMAIN_VRAM) {
        wanted->domain = FAKE_DOMAIN_VRAM;
        err = fake_bo_create(call->fake, call->process, wanted, out);
        if (err != -ENOMEM)
            return err;
    }
    wanted->domain = FAKE_DOMAIN_GTT;
    return fake_bo_create(call->fake, call->process, wanted, out);
}

/* What a program may ask for; the other flags are the driver's own. */
static uint64_t create_flags(const struct fake_kernel *kernel)
{
    /* younger than some headers */
    const uint64_t discardable = UINT64_C(1) << 12, gfx12_dcc = UINT64_C(1) << 16;

    return AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED | AMDGPU_GEM_CREATE_NO_CPU_ACCESS |
           AMDGPU_GEM_CREATE_CPU_GTT_USWC | AMDGPU_GEM_CREATE_VRAM_CLEARED |
           AMDGPU_GEM_CREATE_VM_ALWAYS_VALID | AMDGPU_GEM_CREATE_EXPLICIT_SYNC | discardable |
           (kernel->drm_minor >= 61 ? gfx12_dcc : 0);
}

uint64_t fake_gem_flags(const struct fake_kernel *kernel, uint64_t flags, bool cleared)
{
    flags &= ~(uint64_t)AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
    if (kernel->drm_minor < 61)
        return flags;
    return flags | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE |
           (cleared ? AMDGPU_GEM_CREATE_VRAM_CLEARED : 0);
}

int fake_drm_gem_create(struct fake_call *call, void *arg)
{
    union drm_amdgpu_gem_create *a = arg;
    uint64_t flags = a->in.domain_flags, domains = a->in.domains;
    struct fake_shared_bo wanted = {.owner = call->file->gpu, .charge = FAKE_CHARGE_GRAPHICS};
    struct fake_gem *gem;
    struct fake_bo *bo;
    int err;

    if ((domains & ~(uint64_t)AMDGPU_GEM_DOMAIN_MASK) != 0 ||
        (flags & ~create_flags(&call->fake->profile->kernel)) != 0 ||
        a->in.bo_size > UINT64_MAX - FAKE_PAGE)
        return -EINVAL;
    if (a->in.bo_size == 0)
        return -ENOSPC;
    wanted.size = fake_page_up(a->in.bo_size);
    wanted.gem_domains = (uint32_t)domains;
    wanted.gem_flags = fake_gem_flags(&call->fake->profile->kernel, flags, true);
    wanted.gem_alignment = fake_page_up(a->in.alignment);
    wanted.flags =
        KFD_MEM_WRITABLE | (flags & AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED ? KFD_MEM_PUBLIC : 0);
    err = create(call, &wanted, domains, &bo);
    if (err != 0)
        return err;
    bo->always_valid = (flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) != 0;
    bo->no_cpu = (flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS) != 0;
    err = fake_gem_add(call->fake, call->process, call->file, bo, &gem);
    if (err != 0)
        return err;
    memset(a, 0, sizeof(*a));
    a->out.handle = gem->handle;
    return 0;
}

int fake_drm_gem_mmap(struct fake_call *call, void *arg)
{
    union drm_amdgpu_gem_mmap *a = arg;
    struct fake_gem *gem = fake_gem_get(call->file, a->in.handle);

    if (gem == NULL)
        return -ENOENT;
    if (gem->bo->no_cpu || gem->bo->mem->domain == FAKE_DOMAIN_USERPTR)
        return -EPERM;
    a->out.addr_ptr = gem->bo->mmap_offset;
    return 0;
}
