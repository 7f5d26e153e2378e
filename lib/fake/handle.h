/* SPDX-License-Identifier: MIT */
/*
 * KFD memory handles: what ALLOC and IMPORT make, MAP and UNMAP work on and FREE ends. Guarded by
 * the process lock.
 */
#ifndef FAKE_HANDLE_H
#define FAKE_HANDLE_H

#include "fake/mem.h"
#include "fake/vm.h"

/* A handle's presence in one GPU's compute VM; kept by UNMAP, so that the next MAP is cheap. */
struct fake_attach {
    uint32_t gpu;
    bool mapped;
    struct fake_va *va;
    struct fake_attach *next;
};

struct fake_handle {
    struct fake_bo *bo;
    uint64_t va;
    uint32_t gpu, domain;
    uint32_t flags; /* KFD_MEM_* */
    uint32_t id;
    uint32_t client; /* number in KFD's own DRM file; 0: not modelled */
    bool imported;
    struct fake_stamp half_freed; /* FREE was interrupted: it can't be repeated safely */
    struct fake_attach *attached;
};

static inline uint64_t fake_handle_value(const struct fake *fake, const struct fake_handle *h)
{
    return (uint64_t)fake->profile->gpus[h->gpu].gpu_id << 32 | h->id;
}

/* Splits a handle value; gpu -1: unknown GPU. Returns NULL when there is no such handle. */
struct fake_handle *fake_handle_get(const struct fake *fake, const struct fake_process *p,
                                    uint64_t value, int *gpu);
/* Gives bo a handle on a GPU; consumes the caller's reference on bo, also on failure. */
int fake_handle_add(struct fake *fake, struct fake_process *p, struct fake_bo *bo, uint32_t gpu,
                    uint64_t va, uint32_t flags, bool imported, struct fake_handle **out);
/* The handle must not be mapped anywhere. */
void fake_handle_free(struct fake *fake, struct fake_process *p, struct fake_handle *h);
void fake_handle_free_all(struct fake *fake, struct fake_process *p, uint32_t gpu);

bool fake_handle_mapped(const struct fake_handle *h);
/* One device's part of MAP and UNMAP. */
int fake_handle_map(struct fake *fake, struct fake_process *p, struct fake_handle *h, uint32_t gpu);
int fake_handle_unmap(struct fake *fake, struct fake_process *p, struct fake_handle *h,
                      uint32_t gpu);

#endif
