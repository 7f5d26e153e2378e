/* SPDX-License-Identifier: MIT */
/* How memory is made and mapped on a given kernel: the three mapping engines behind one table. */
#ifndef VMM_ENGINE_H
#define VMM_ENGINE_H

#include "vmm/alloc.h"

/* Rights of all devices on one mapping. write_mask is a subset of read_mask. */
struct vmm_rights {
    uint64_t read_mask;
    uint64_t write_mask;
};

struct vmm_engine_ops {
    enum vmm_engine id;
    const char *name;
    uint32_t can; /* VMM_CAN_* */

    /* Makes the memory of an allocation. On failure destroy takes what is there. flags: KFD_MEM_*
     */
    int (*create)(struct vmm_alloc *alloc, uint32_t flags);
    /* Takes over a dma-buf that kfd_dmabuf_info has described. fd stays the caller's. On failure
     * as create. */
    int (*import)(struct vmm_alloc *alloc, int fd);
    /* Gives the memory back. On failure what is left stays recorded in alloc, for another try. */
    int (*destroy)(struct vmm_alloc *alloc);
    int (*export_fd)(struct vmm_alloc *alloc, int *fd);
    /* Makes sure that `devices` can be given the allocation; *fresh: those that could not before.
     * Changes nothing on failure. Each success is paired with unprepare of the same devices, which
     * forgets the fresh ones again when `undo`. */
    int (*prepare)(struct vmm_alloc *alloc, uint64_t devices, uint64_t *fresh);
    void (*unprepare)(struct vmm_alloc *alloc, uint64_t devices, uint64_t undo);
    /* Devices the engine can give this allocation to, within vmm_alloc_reach. */
    uint64_t (*reach)(const struct vmm_alloc *alloc);
    /* Changes the rights of a prepared mapping, whose masks follow device by device: after a
     * failure they tell what is installed, and another apply goes on from there. */
    int (*apply)(struct vmm_mapping *map, const struct vmm_rights *to);
    /* Makes changes visible: waits for the page tables of `changed`, then flushes the TLBs of
     * `flush`; alloc is any live allocation. */
    int (*settle)(struct vmm_alloc *alloc, uint64_t changed, uint64_t flush);
};

extern const struct vmm_engine_ops vmm_engine_drm;
extern const struct vmm_engine_ops vmm_engine_kfd;
extern const struct vmm_engine_ops vmm_engine_gem;

/* Chooses and notes the reason. -EOPNOTSUPP: the wanted one does not work here. */
int vmm_engine_choose(struct vmm *vmm, enum vmm_engine wanted);

/* The part that every engine with a KFD handle shares: ALLOC with va 0, then EXPORT at once, so
 * that the kernel caches the dma-buf in the allocation and never looks at the GEM handle number
 * that a later FREE of an import deletes (kernel-notes T1). *fd is the caller's. */
int vmm_engine_alloc(struct vmm_alloc *alloc, uint32_t flags, int *fd);

/* The devices of a set, in order; returns how many. */
uint32_t vmm_engine_list(const struct vmm *vmm, uint64_t set,
                         struct kfd_device *devices[KFD_MAX_DEVICES]);

/* KFD's MAP and UNMAP of a handle for a set of devices; *done: those it was done for, which on
 * failure may be some of them. */
int vmm_engine_map(struct vmm *vmm, uint64_t kfd_handle, uint64_t devices, uint64_t *done);
int vmm_engine_unmap_handle(struct vmm *vmm, uint64_t kfd_handle, uint64_t devices, uint64_t *done);
/* With a flush where the chip does not flush by itself. */
int vmm_engine_unmap(const struct vmm_alloc *alloc, uint64_t kfd_handle, uint64_t devices,
                     uint64_t *done);

#endif
