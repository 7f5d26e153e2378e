/* SPDX-License-Identifier: MIT */
#include "fake/gem.h"

#include <errno.h>

int fake_gem_add(struct fake *fake, struct fake_process *p, struct fake_file *file,
                 struct fake_bo *bo, struct fake_gem **out)
{
    struct fake_gem *gem = fake_calloc(sizeof(*gem));
    int err = -ENOMEM;

    if (gem == NULL)
        goto fail;
    gem->bo = bo;
    err = fake_ids_add(&file->gem, gem, &gem->handle);
    if (err != 0)
        goto fail;
    err = fake_vm_attach(file->vm, bo, &gem->va);
    if (err != 0) {
        fake_ids_take(&file->gem, gem->handle);
        goto fail;
    }
    gem->va->gems++;
    *out = gem;
    return 0;
fail:
    fake_free(gem);
    fake_bo_put(fake, p, bo);
    return err;
}

struct fake_gem *fake_gem_get(const struct fake_file *file, uint32_t handle)
{
    return handle == 0 ? NULL : fake_ids_get(&file->gem, handle);
}

void fake_gem_close(struct fake *fake, struct fake_process *p, struct fake_file *file,
                    struct fake_gem *gem)
{
    fake_ids_take(&file->gem, gem->handle);
    if (gem->shared)
        fake_map_take(&file->prime, gem->bo->mem->index);
    gem->va->gems--;
    fake_vm_detach(fake, p, gem->va);
    fake_bo_put(fake, p, gem->bo);
    fake_free(gem);
}

void fake_gem_close_all(struct fake *fake, struct fake_process *p, struct fake_file *file)
{
    for (uint32_t i = 1; i < file->gem.top; i++) {
        struct fake_gem *gem = fake_gem_get(file, i);

        if (gem != NULL)
            fake_gem_close(fake, p, file, gem);
    }
}
