/* SPDX-License-Identifier: MIT */
/*
 * Sync objects of a DRM file, as far as GEM_VA's timeline needs them, and the page-table updates
 * that a timeline point stands for. Where the CPU can't see all VRAM the copy engine writes the
 * tables, some time after the request: such a change is kept back until it is waited for, or until
 * another request works on the VM.
 */
#ifndef FAKE_SYNCOBJ_H
#define FAKE_SYNCOBJ_H

#include "fake/vm.h"

struct fake_syncobj {
    uint64_t submitted, signaled; /* points; a binary fence is point 0 */
    bool has_fence;
};

int fake_drm_syncobj_create(struct fake_call *call, void *arg);
int fake_drm_syncobj_destroy(struct fake_call *call, void *arg);
/* Sleeps: takes the process lock by itself. */
int fake_drm_syncobj_timeline_wait(struct fake_call *call, void *arg);

/* NULL: unknown. */
struct fake_syncobj *fake_syncobj_get(const struct fake_file *file, uint32_t handle);
/* The point will be reached with the update under way: at once, or when the VM settles. */
void fake_syncobj_submit(struct fake_syncobj *obj, uint64_t point, bool at_once);
/* Lets the updates that were kept back happen, and their points be reached. */
void fake_syncobj_settle(struct fake_file *file);
void fake_syncobj_destroy_all(struct fake_file *file);

#endif
