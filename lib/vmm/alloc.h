/* SPDX-License-Identifier: MIT */
/* Physical allocations: memory, references, its GEM handle on every device that uses it. */
#ifndef VMM_ALLOC_H
#define VMM_ALLOC_H

#include "vmm/vmm.h"

struct vmm_resv;

/* One device's use of an allocation. Guarded by the allocation's lock. */
struct vmm_import {
    uint32_t gem;   /* GEM handle on the device's render node, 0: none */
    uint32_t users; /* installed or planned mappings that need it */
};

/*
 * Lives while refs is not 0: one reference for each user reference, mapping and call under way.
 * The memory behind it never changes; imports come and go under lock (rank 30), which may be held
 * over an ioctl. Once made, a peer's import is kept until the allocation dies.
 */
struct vmm_alloc {
    struct vmm *vmm;
    struct vmm_lock lock;
    vmm_handle handle; /* 0 for one-step memory, which is in no table */
    /* So wide that a program which goes on retaining and never releases cannot wrap them. */
    atomic_uint_fast64_t refs;
    atomic_uint_fast64_t users; /* user references, part of refs */
    atomic_uint_fast64_t maps;  /* mapping references, part of refs */
    struct vmm_props props;
    uint64_t size;
    bool has_kfd;          /* kfd_handle is valid; KFD handles may be any value */
    uint64_t kfd_handle;   /* keeps the memory resident, and serves flushes */
    uint64_t mmap_offset;  /* of the whole BO on the owner's render node; 0: unknown */
    uint64_t mapped;       /* one-step memory: devices that have it mapped */
    struct vmm_resv *resv; /* one-step memory that failed: its address, not to be reserved anew
                            * while a device has it mapped */
    struct vmm_alloc *next_zombie;
    struct vmm_import imports[]; /* vmm->device_count entries */
};

/* Makes the object with one reference, owned by the caller, and no memory behind it yet. */
int vmm_alloc_new(struct vmm *vmm, const struct vmm_props *props, uint64_t size,
                  struct vmm_alloc **out);
/* Looks a handle up and takes a reference. -EINVAL with a text: stale, foreign or made up. */
int vmm_alloc_get(struct vmm *vmm, vmm_handle handle, struct vmm_alloc **out);
void vmm_alloc_ref(struct vmm_alloc *alloc);
/* Frees the record of an allocation that never had memory. */
void vmm_alloc_delete(struct vmm_alloc *alloc);
/* Drops a reference; the last one frees the memory. Cannot fail: what the kernel refuses to free is
 * kept and tried again by vmm_alloc_reap. */
void vmm_alloc_put(struct vmm_alloc *alloc);
void vmm_alloc_reap(struct vmm *vmm);
/* The last attempt: the record goes, and what the kernel still refuses stays with it. */
void vmm_alloc_abandon(struct vmm_alloc *alloc);

static inline struct kfd_device *vmm_alloc_owner(const struct vmm_alloc *alloc)
{
    return alloc->vmm->devices[alloc->props.device];
}

/* KFD_MEM_* for what its properties ask. */
uint32_t vmm_alloc_flags(const struct vmm_alloc *alloc);
/* Devices that may map the allocation at all. */
uint64_t vmm_alloc_reach(const struct vmm_alloc *alloc);
/* Whether the CPU sees the memory without the kernel having to move it. */
bool vmm_alloc_host_visible(const struct vmm_alloc *alloc);

/* A CPU view: [at, at + size) is the asked part, inside a mapping of len bytes at base. */
struct vmm_view {
    void *base;
    uint64_t len;
    void *at;
};

/*
 * Maps [offset, offset + size) of the allocation for the CPU: at `fixed` over what is there, or
 * anywhere with fixed NULL. offset is a multiple of the page only when fixed. The view keeps the
 * memory alive in the kernel.
 */
int vmm_alloc_view(struct vmm_alloc *alloc, uint64_t offset, uint64_t size, int prot, void *fixed,
                   struct vmm_view *view);
/* vmm_export for an allocation at hand. */
int vmm_alloc_export(struct vmm_alloc *alloc, int *fd);

void vmm_alloc_unview(struct vmm *vmm, const struct vmm_view *view);

#endif
