/* SPDX-License-Identifier: MIT */
/* The VMM object and what its modules share. */
#ifndef VMM_VMM_H
#define VMM_VMM_H

#include <stdatomic.h>

#include <kfdirect/vmm.h>

#include "kfd/error.h"
#include "vmm/barrier.h"
#include "vmm/handle.h"
#include "vmm/lock.h"
#include "vmm/maptab.h"
#include "vmm/memory.h"
#include "vmm/space.h"
#include "vmm/tree.h"

struct vmm_engine_ops;

#define VMM_HANDLE_TAG 0x56u

/*
 * Immutable after vmm_open but for what the locks below guard. Whoever opened it owns it; every
 * other object lives inside it.
 */
struct vmm {
    struct kfd *kfd;
    struct kfd_sys *sys;
    const struct vmm_engine_ops *engine; /* NULL: VMM_ENGINE_NONE */
    char reason[256];
    uint64_t granule;     /* larger of GPU and host page: what everything is a multiple of */
    uint64_t granularity; /* reported minimum, >= granule */
    uint32_t device_count;
    struct kfd_device *devices[KFD_MAX_DEVICES];
    uint64_t reach[KFD_MAX_DEVICES]; /* reach[owner]: devices that may map VRAM of owner */

    struct vmm_lock space_lock; /* rank 40: space, userptrs, savings, vmm_resv.refs and live */
    bool space_ready;
    struct vmm_space space;
    struct vmm_tree userptrs; /* struct vmm_userptr */
    void *savings;            /* of vmm_host_save */

    struct vmm_handles handles; /* live allocations made by vmm_create and vmm_import */

    struct vmm_lock log_lock; /* rank 60: zombies */
    /* Allocations the kernel refused to free, the oldest first; tried again later. */
    struct vmm_alloc *zombies, **last_zombie;

    struct vmm_barrier barrier;

    atomic_uint_fast64_t unflushed; /* devices whose TLB flush failed */
    atomic_uint_fast64_t n_resv, resv_bytes, n_alloc, alloc_bytes, n_map, map_bytes, n_one,
        one_bytes;
};

/* The bit of a device in the masks. */
static inline uint64_t vmm_bit(uint32_t device)
{
    return (uint64_t)1 << device;
}

static inline bool vmm_aligned(uint64_t value, uint64_t to)
{
    return (value & (to - 1)) == 0;
}

/* "0x7f0000000000+0x200000", the way every text names a range. */
#define VMM_RANGE "0x%llx+0x%llx"
#define VMM_RANGE_ARGS(va, size) (unsigned long long)(va), (unsigned long long)(size)

/* The next number for a mapping or one-step allocation, of any VMM of the process. */
uint64_t vmm_new_id(void);

/* -EBADF in a forked child, else 0. Before any lock, which a thread that does not exist there may
 * hold, and before any view: what the addresses hold there is the child's own. */
int vmm_need_owner(const struct vmm *vmm);

/* Likewise, and -EOPNOTSUPP with the reason when no engine works. */
int vmm_need_engine(const struct vmm *vmm);

/* -EINVAL unless it is a multiple of the granule; a size must not be 0 either. */
int vmm_check_multiple(const struct vmm *vmm, const char *what, uint64_t value);
int vmm_check_size(const struct vmm *vmm, uint64_t size);
/* A sub-range check shared by every call that takes va and size: size not 0, both multiples of the
 * granule, no overflow. */
int vmm_check_range(const struct vmm *vmm, uint64_t va, uint64_t size);

#endif
