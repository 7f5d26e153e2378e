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

/* One object may have handles in several files, and descriptors. */
struct fake_syncobj {
    uint32_t refs;
    uint64_t submitted, signaled; /* points; a binary fence is point 0 */
    bool has_fence;
    struct fake_vm *vm; /* whose change signals the last point; NULL: it is signaled */
};

int fake_drm_syncobj_create(struct fake_call *call, void *arg);
int fake_drm_syncobj_destroy(struct fake_call *call, void *arg);
/* A descriptor works in the process that made it, as a dup of it does; another process's is unknown
 * here. */
int fake_drm_syncobj_handle_to_fd(struct fake_call *call, void *arg);
int fake_drm_syncobj_fd_to_handle(struct fake_call *call, void *arg);
/* Sleeps: takes the process lock by itself. */
int fake_drm_syncobj_timeline_wait(struct fake_call *call, void *arg);

/* NULL: unknown. */
struct fake_syncobj *fake_syncobj_get(const struct fake_file *file, uint32_t handle);
/* The point will be reached with the VM's update under way: at once, or when the VM settles. */
void fake_syncobj_submit(struct fake_syncobj *obj, struct fake_vm *vm, uint64_t point);
void fake_syncobj_destroy_all(struct fake_file *file);
void fake_syncobj_close_fds(struct fake_process *p);

#endif
