/* SPDX-License-Identifier: MIT */
/* GEM handles of a DRM file. Guarded by the process lock. */
#ifndef FAKE_GEM_H
#define FAKE_GEM_H

#include "fake/mem.h"
#include "fake/vm.h"

struct fake_gem {
    struct fake_bo *bo;
    struct fake_va *va; /* its attachment to the file's VM */
    uint32_t handle;
    bool shared; /* in the prime cache */
};

/* Gives bo a handle in file; consumes the caller's reference on bo, also on failure. */
int fake_gem_add(struct fake *fake, struct fake_process *p, struct fake_file *file,
                 struct fake_bo *bo, struct fake_gem **out);
/* What GEM_OP says of a buffer asked for with these flags. */
uint64_t fake_gem_flags(const struct fake_kernel *kernel, uint64_t flags, bool cleared);
/* NULL: unknown. */
struct fake_gem *fake_gem_get(const struct fake_file *file, uint32_t handle);
void fake_gem_close(struct fake *fake, struct fake_process *p, struct fake_file *file,
                    struct fake_gem *gem);
void fake_gem_close_all(struct fake *fake, struct fake_process *p, struct fake_file *file);

#endif
