/* SPDX-License-Identifier: MIT */
/*
 * The VMM layer: address ranges, physical memory and mappings on top of kfdirect/kfd.h. It knows
 * nothing of HIP.
 *
 * Functions return 0 or a negative errno and leave the state as it was when they fail, whatever
 * step failed; only where putting a step back fails as well, rights stay as vmm_get_access then
 * tells. kfd_error_text() names the argument, range and device. -EINVAL: a bad argument or
 * range; -ENODEV: a bad device; -EOPNOTSUPP: this kernel or machine cannot express it; -ENOMEM:
 * physical memory or address space is exhausted, and nothing else; -EMFILE and others: as the
 * kernel gave them. Everything may be called from any thread; calls on different reservations run
 * in parallel. Sizes, offsets and addresses are bytes, in multiples of the granule. In a forked
 * child a VMM is as dead as its kfd: calls on it are -EBADF, the totals and checks below, which
 * take locks, must not be called, and vmm_close does nothing.
 */
#ifndef KFDIRECT_VMM_H
#define KFDIRECT_VMM_H

#include <kfdirect/kfd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A physical allocation: tag, generation and index. A value is never given out twice; stale,
 * foreign and made-up values are -EINVAL everywhere. */
typedef uint64_t vmm_handle;

enum vmm_engine {
    VMM_ENGINE_AUTO, /* the best that works here */
    VMM_ENGINE_NONE, /* no engine works: VMM calls are -EOPNOTSUPP */
    VMM_ENGINE_DRM,  /* GEM_VA per mapping and device; KFD >= 1.15 */
    VMM_ENGINE_KFD,  /* IMPORT at the VA + one MAP; KFD >= 1.12 */
    VMM_ENGINE_GEM,  /* GEM_CREATE + IMPORT at the VA + one MAP; any KFD */
};

/* What an engine can express. */
#define VMM_CAN_OFFSET 0x1u     /* offsets and sub-ranges of handles */
#define VMM_CAN_READ_ONLY 0x2u  /* read-only mappings */
#define VMM_CAN_PER_DEVICE 0x4u /* different rights per device */

#define VMM_PROT_NONE 0u
#define VMM_PROT_READ 1u
#define VMM_PROT_WRITE 2u
#define VMM_PROT_READ_WRITE 3u

/* Names the CPU where a device index is asked for. */
#define VMM_HOST UINT32_MAX

enum vmm_location {
    VMM_LOCATION_DEVICE,
    VMM_LOCATION_HOST, /* system memory (GTT), allocated through props.device */
};

/* What vmm_create is asked for. `tag` is the caller's, handed back by vmm_get_props. */
struct vmm_props {
    enum vmm_location location;
    uint32_t device; /* index of the owner, or of the GPU that anchors host memory */
    bool uncached;
    bool imported; /* out only */
    uint32_t tag[4];
};

struct vmm;

struct vmm_options {
    size_t size; /* sizeof(struct vmm_options) */
    enum vmm_engine engine;
    uint64_t min_granularity; /* 0: the larger of the GPU and the host page */
};

/*
 * Fills options from the environment, as the HIP calls and `kfdirect info` do: the engine from
 * KFDIRECT_ENGINE (drm, kfd, gem), the granularity from KFDIRECT_MIN_GRANULARITY (bytes, or with K,
 * M or G behind; a power of two from 4096 on). What is not set or empty is as in {0}. -EINVAL: a
 * NULL, options whose size is not set, a value that makes no sense; options is unchanged.
 */
KFDIRECT_API int vmm_options_from_env(struct vmm_options *options);

/*
 * Starts a VMM on an open kfd, which must outlive it. options may be NULL. An engine that the
 * kernel lacks is -EOPNOTSUPP; -EINVAL: a NULL, options of another size, a granularity that is no
 * power of two. With no device it succeeds and its engine is VMM_ENGINE_NONE.
 */
KFDIRECT_API int vmm_open(struct kfd *kfd, const struct vmm_options *options, struct vmm **out);
/*
 * Unmaps and frees everything that is left, and its address space. NULL is allowed. What the kernel
 * refuses even now stays mapped until the process ends; a later VMM that maps something at such an
 * address gets the kernel's -EINVAL.
 */
KFDIRECT_API void vmm_close(struct vmm *vmm);

/* What it was opened on. */
KFDIRECT_API struct kfd *vmm_kfd(struct vmm *vmm);
/* The engine in use, and the short name of any: "drm", "kfd", "gem", "auto", "none". */
KFDIRECT_API enum vmm_engine vmm_engine(const struct vmm *vmm);
KFDIRECT_API const char *vmm_engine_name(enum vmm_engine engine);
/* VMM_CAN_* of the engine in use. */
KFDIRECT_API uint32_t vmm_engine_can(const struct vmm *vmm);
/* Why a better engine is not in use, or why none works; "" if the best one is. */
KFDIRECT_API const char *vmm_engine_reason(const struct vmm *vmm);
/* What a caller should make sizes and addresses multiples of: at least the granule (the larger of
 * GPU and host page; the options may ask for more), and what lets the page tables use huge pages.
 */
KFDIRECT_API uint64_t vmm_min_granularity(const struct vmm *vmm);
KFDIRECT_API uint64_t vmm_recommended_granularity(const struct vmm *vmm);

/*
 * Reserves size bytes of address space valid on the CPU and every device. align: 0 or a power of
 * two; sizes of 2 MiB and more are 2-MiB aligned at least. hint: taken exactly when free and
 * aligned, else another address is found; 0 for none. No ioctl, no physical memory.
 * -EINVAL: va is NULL, size 0 or no multiple of the granule, align no power of two, hint no
 * multiple of the granule; -EOPNOTSUPP: no engine works; -ENOMEM: no such range is left.
 */
KFDIRECT_API int vmm_reserve(struct vmm *vmm, uint64_t size, uint64_t align, uint64_t hint,
                             uint64_t *va);
/* Ends a reservation: exact base and size, nothing mapped in it, else -EINVAL. */
KFDIRECT_API int vmm_address_free(struct vmm *vmm, uint64_t va, uint64_t size);

/*
 * Allocates physical memory, zeroed, with one user reference, which is the caller's. -EINVAL: a
 * NULL, a size that is 0 or no multiple of the granule, a location that is none; -ENODEV: bad
 * device; -ENOMEM: the device's or, for host memory, the driver's memory is exhausted; -EOPNOTSUPP:
 * no engine works, or uncached memory on engine gem. With VMM_ENGINE_GEM the kernel charges nothing
 * yet: VRAM that is not there is vmm_set_access's -ENOMEM.
 */
KFDIRECT_API int vmm_create(struct vmm *vmm, const struct vmm_props *props, uint64_t size,
                            vmm_handle *handle);
/* Drops one user reference. The memory goes when no user reference and no mapping is left; a value
 * whose user references are all gone is -EINVAL here. */
KFDIRECT_API int vmm_release(struct vmm *vmm, vmm_handle handle);
/* Adds a user reference, the caller's, to the allocation mapped at va (any byte of it). -EINVAL:
 * nothing is mapped there, or one-step memory. */
KFDIRECT_API int vmm_retain(struct vmm *vmm, uint64_t va, vmm_handle *handle);
/* What an allocation was made with, and its size; either may be NULL. -EINVAL: dead handle. */
KFDIRECT_API int vmm_get_props(struct vmm *vmm, vmm_handle handle, struct vmm_props *props,
                               uint64_t *size);

/*
 * Maps [offset, offset + size) of an allocation at va, with no access for anybody: bookkeeping
 * only. A handle without user references may be mapped while a mapping of it lives.
 * -EINVAL: not inside one reservation, overlap, beyond the allocation, alignment, dead handle.
 * -EOPNOTSUPP: an offset or a part on an engine without VMM_CAN_OFFSET.
 */
KFDIRECT_API int vmm_map(struct vmm *vmm, uint64_t va, uint64_t size, uint64_t offset,
                         vmm_handle handle);
/* Removes whole mappings; holes between them are skipped. A cut mapping, or no mapping at all, is
 * -EINVAL. When it returns no device can reach the old pages. */
KFDIRECT_API int vmm_unmap(struct vmm *vmm, uint64_t va, uint64_t size);

struct vmm_access {
    uint32_t device; /* index, or VMM_HOST */
    uint32_t prot;   /* VMM_PROT_NONE, READ or READ_WRITE */
};

/*
 * Sets the rights of count devices on a run of whole, contiguous mappings, all or nothing; devices
 * not named keep theirs; the last entry of a device wins. When it returns the change is visible to
 * work submitted afterwards. -EINVAL: a hole, a part of a mapping, a bad prot, an unreachable peer;
 * -ENODEV: bad device; -EOPNOTSUPP: rights the engine lacks, or host access to memory the CPU
 * cannot see.
 */
KFDIRECT_API int vmm_set_access(struct vmm *vmm, uint64_t va, uint64_t size,
                                const struct vmm_access *access, size_t count);
/* The rights of a device, or of VMM_HOST, on the mapping that contains va. -EINVAL: none there. */
KFDIRECT_API int vmm_get_access(struct vmm *vmm, uint64_t va, uint32_t device, uint32_t *prot);

/* A new close-on-exec descriptor (>= 3) for the allocation; the caller's. -EINVAL for an import. */
KFDIRECT_API int vmm_export(struct vmm *vmm, vmm_handle handle, int *fd);
/* A new handle for a dma-buf, with one user reference; fd stays the caller's and may be closed at
 * once. tag is kept in the properties; NULL: zeros. -EINVAL: not open, no dma-buf of the GPU
 * driver, or of a GPU that is not open here; -ENOMEM. */
KFDIRECT_API int vmm_import(struct vmm *vmm, int fd, const uint32_t tag[4], vmm_handle *handle);

/* A descriptor for the memory behind [va, va + size), which lies in one mapping or one-step
 * allocation; *offset (may be NULL) is where va is in it. -EINVAL: not mapped, an import;
 * -EOPNOTSUPP: more than one mapping. */
KFDIRECT_API int vmm_export_range(struct vmm *vmm, uint64_t va, uint64_t size, int *fd,
                                  uint64_t *offset);

enum vmm_kind {
    VMM_KIND_NONE,       /* no address of ours */
    VMM_KIND_FREE,       /* in our address space, reserved by nobody: no CPU access may touch it */
    VMM_KIND_RESERVED,   /* reserved, nothing mapped at this byte */
    VMM_KIND_MAPPED,     /* a mapping */
    VMM_KIND_DEVICE,     /* vmm_alloc of device memory */
    VMM_KIND_HOST,       /* vmm_alloc of host memory */
    VMM_KIND_REGISTERED, /* the program's own memory, by vmm_register */
};

struct vmm_range {
    enum vmm_kind kind;
    uint64_t base, size;            /* the mapping or one-step allocation */
    uint64_t resv_base, resv_size;  /* the reservation */
    uint64_t offset;                /* of base in the allocation */
    struct vmm_props props;         /* of the allocation; for one-step memory location and device */
    uint64_t id;                    /* unique per mapping or one-step allocation in this process */
    vmm_handle handle;              /* of the allocation; no reference is added; 0 for one-step */
    uint64_t read_mask, write_mask; /* devices by index */
    uint32_t host_prot;
};

/* What lies at va: kind says. -EINVAL: out is NULL. */
KFDIRECT_API int vmm_query(struct vmm *vmm, uint64_t va, struct vmm_range *out);
/* Whether any byte of the range is address space of this vmm, in use or free (every VMM_KIND but
 * NONE and REGISTERED). */
KFDIRECT_API bool vmm_holds(struct vmm *vmm, uint64_t va, uint64_t size);

/*
 * One-step memory: address, memory, page tables and access of every device that can reach it, in
 * two ioctls. Host memory is also mapped for the CPU at the same address. The size is rounded up to
 * the granule; the tag is kept in the properties that vmm_query gives. Works without an engine.
 * -EINVAL: a NULL, size 0, a location that is none; -ENODEV: bad device; -ENOMEM: memory or
 * addresses are exhausted.
 */
KFDIRECT_API int vmm_alloc(struct vmm *vmm, const struct vmm_props *props, uint64_t size,
                           uint64_t *va);
/* Frees one-step memory by its exact base. -EINVAL for any other address, VMM mappings included. */
KFDIRECT_API int vmm_free(struct vmm *vmm, uint64_t va);
/* Frees all one-step memory of one device, host memory made for it included; reservations, handles
 * and registered memory stay. What the kernel refuses stays too, and its error is returned.
 * -ENODEV: no such device. */
KFDIRECT_API int vmm_free_all(struct vmm *vmm, uint32_t device);

/*
 * Gives the program's own memory [va, va + size) to every device at its own address, read-write, in
 * two ioctls; of pages that it fills in part, the rest too. The memory must stay mapped, writable,
 * until vmm_unregister. tag is kept in the properties that vmm_query gives; NULL: zeros.
 * -EINVAL: 0, past the end of addresses, memory of this library, or nothing the program may write;
 * -EEXIST: a page of it is registered already; -EOPNOTSUPP: an address that a device cannot reach
 * (40 bits on GPUs before gfx9); -ENOMEM: the driver's limit of pinned memory.
 */
KFDIRECT_API int vmm_register(struct vmm *vmm, uint64_t va, uint64_t size, const uint32_t tag[4]);
/* Takes it away again. -ENOENT: va is not the very address that was registered. */
KFDIRECT_API int vmm_unregister(struct vmm *vmm, uint64_t va);

/*
 * Calls each(arg, cpu, size) for consecutive pieces of [va, va + size), seen by the CPU whatever
 * its rights on the mapping. need: the rights that some device or the CPU must hold on every piece.
 * Validates the whole range before the first call; ranges may cross mappings and reservations. The
 * view ends with the call of each; it may call the VMM, but not keep cpu. What each returns, if not
 * 0, ends the walk and is returned.
 * -EINVAL: each is NULL, not all mapped, or not with those rights; -EOPNOTSUPP: memory the CPU
 * cannot see.
 */
KFDIRECT_API int vmm_cpu_walk(struct vmm *vmm, uint64_t va, uint64_t size, uint32_t need,
                              int (*each)(void *arg, void *cpu, uint64_t size), void *arg);

/* Totals, for tests, tools and leak reports. */
struct vmm_stats {
    uint64_t reservations, reserved_bytes, allocations, allocated_bytes, mappings, mapped_bytes;
    uint64_t one_step, one_step_bytes, registered, registered_bytes, arenas;
};
/* Each number is exact, but calls of other threads may come between two of them. */
KFDIRECT_API void vmm_get_stats(struct vmm *vmm, struct vmm_stats *out);

/* Checks every invariant of its structures: 0, or -EUCLEAN with the text saying which. For tests
 * with no other call under way. */
KFDIRECT_API int vmm_validate(struct vmm *vmm);
/* Prints reservations, mappings, rights and allocations to a stream of the caller. Rights are a
 * letter for each device in order, and one for the CPU: - none, r read, w read and write. So are
 * imports: + where the device has the memory. */
KFDIRECT_API void vmm_print(struct vmm *vmm, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
