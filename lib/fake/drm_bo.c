/* SPDX-License-Identifier: MIT */
/* DRM requests that ask about a buffer object or decorate it, and userptr objects. */
#include <errno.h>
#include <string.h>

#include "fake/gem.h"
#include "fake/handlers.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define USERPTR_FLAGS                                                                          \
    (AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_VALIDATE | \
     AMDGPU_GEM_USERPTR_REGISTER)

/* Wiped on release, and how caches treat it: what an import on another card has of the buffer's. */
#define IMPORT_KEEPS (AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE | UINT64_C(0xe000))

int fake_drm_gem_metadata(struct fake_call *call, void *arg)
{
    struct drm_amdgpu_gem_metadata *a = arg;
    struct fake_gem *gem = fake_gem_get(call->file, a->handle);
    struct fake_shared_bo *bo;
    uint8_t *bytes;

    if (gem == NULL)
        return -ENOENT;
    bo = fake_machine_bo(&call->fake->machine, gem->bo->mem->index);
    bytes = fake_machine_metadata(&call->fake->machine, gem->bo->mem->index);
    switch (a->op) {
    case AMDGPU_GEM_METADATA_OP_GET_METADATA:
        a->data.flags = bo->metadata_flags;
        a->data.tiling_info = bo->tiling;
        a->data.data_size_bytes = bo->metadata_size;
        memcpy(a->data.data, bytes, bo->metadata_size);
        return 0;
    case AMDGPU_GEM_METADATA_OP_SET_METADATA:
        if (a->data.data_size_bytes > sizeof(a->data.data))
            return -EINVAL;
        bo->metadata_flags = a->data.flags;
        bo->tiling = a->data.tiling_info;
        bo->metadata_size = a->data.data_size_bytes;
        memcpy(bytes, a->data.data, bo->metadata_size);
        return 0;
    default: /* the driver looks no further than for the two */
        return 0;
    }
}

/* No engine of the fake works on a buffer longer than its request takes. */
int fake_drm_gem_wait_idle(struct fake_call *call, void *arg)
{
    union drm_amdgpu_gem_wait_idle *a = arg;

    if (fake_gem_get(call->file, a->in.handle) == NULL)
        return -ENOENT;
    memset(a, 0, sizeof(*a));
    return 0;
}

int fake_drm_gem_op(struct fake_call *call, void *arg)
{
    const struct drm_amdgpu_gem_op *a = arg;
    const struct fake_gem *gem = fake_gem_get(call->file, a->handle);
    struct drm_amdgpu_gem_create_in info = {0};
    const struct fake_shared_bo *shared;
    const struct fake_mem *mem;

    if (gem == NULL)
        return -ENOENT;
    mem = gem->bo->mem;
    switch (a->op) {
    case AMDGPU_GEM_OP_GET_GEM_CREATE_INFO:
        shared = fake_machine_bo(&call->fake->machine, mem->index);
        info.bo_size = mem->size;
        info.alignment = shared->gem_alignment;
        info.domains = shared->gem_domains;
        info.domain_flags = shared->gem_flags;
        if (gem->bo != mem->home) { /* another card sees system memory of whichever kind */
            info.alignment = FAKE_PAGE;
            info.domains = AMDGPU_GEM_DOMAIN_GTT;
            info.domain_flags &= IMPORT_KEEPS;
        }
        return fake_copy_out(a->value, &info, sizeof(info));
    case AMDGPU_GEM_OP_SET_PLACEMENT:
        /* A wish for the next move, and nothing moves by itself here. */
        if (gem->bo != mem->home)
            return -EINVAL;
        return mem->domain == FAKE_DOMAIN_USERPTR ? -EPERM : 0;
    default:
        return -EINVAL;
    }
}

int fake_drm_gem_userptr(struct fake_call *call, void *arg)
{
    struct drm_amdgpu_gem_userptr *a = arg;
    struct fake_shared_bo wanted = {.owner = call->file->gpu,
                                    .domain = FAKE_DOMAIN_USERPTR,
                                    .charge = FAKE_CHARGE_GRAPHICS,
                                    .size = a->size,
                                    .gem_domains = AMDGPU_GEM_DOMAIN_GTT,
                                    .gem_flags =
                                        fake_gem_flags(&call->fake->profile->kernel, 0, false),
                                    .userptr = a->addr};
    struct fake_gem *gem;
    struct fake_bo *bo;
    int err;

    if (((a->addr | a->size) & (FAKE_PAGE - 1)) != 0)
        return -EINVAL;
    if ((a->flags & ~(uint32_t)USERPTR_FLAGS) != 0)
        return -EINVAL;
    /* Written pages must be watched, or a copy-on-write would part the two views. */
    if (!(a->flags & (AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_REGISTER)))
        return -EACCES;
    if (a->size == 0)
        return -ENOSPC;
    if (a->flags & AMDGPU_GEM_USERPTR_VALIDATE) {
        if ((a->flags & AMDGPU_GEM_USERPTR_ANONONLY) && fake_has_file(a->addr, a->size))
            return -EPERM;
        err = fake_check_userptr(a->addr, a->size);
        if (err != 0)
            return err;
    }
    err = fake_bo_create(call->fake, call->process, &wanted, &bo);
    if (err != 0)
        return err;
    err = fake_gem_add(call->fake, call->process, call->file, bo, &gem);
    if (err == 0)
        a->handle = gem->handle;
    return err;
}
