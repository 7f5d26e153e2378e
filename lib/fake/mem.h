/* SPDX-License-Identifier: MIT */
/*
 * A process's view of buffer objects. struct fake_mem is the memory itself, equal for every view of
 * one dma-buf; struct fake_bo is a device's GEM object of it: the owner's, or one that another
 * device made when it imported the memory. All calls run under the process lock.
 */
#ifndef FAKE_MEM_H
#define FAKE_MEM_H

#include "fake/fake_internal.h"

struct fake_mem {
    const uint32_t *moves;      /* in the machine */
    uint32_t index, generation; /* in the machine */
    uint32_t ref;               /* this process's one reference there */
    uint32_t refs;              /* of fake_bos */
    uint32_t owner, domain, flags;
    uint64_t size;
    uint64_t userptr;
    struct fake_bo *home;   /* the owner's GEM object, if this process has it */
    struct fake_bo *client; /* the import that KFD's own DRM file made on another device */
};

/* Life: one reference per GEM handle, KFD handle, and attachment to a VM. */
struct fake_bo {
    struct fake_mem *mem;
    uint32_t gpu;
    uint32_t refs;
    uint64_t mmap_offset;
    uint32_t kfd_handles;        /* the acquired file may mmap it while there are any */
    bool always_valid;           /* bound to one VM, can't be shared */
    bool no_cpu;                 /* made without CPU access */
    bool pinned;                 /* an import that keeps the memory in GTT */
    bool absent;                 /* an import without pages: its mappings stay empty */
    struct fake_bo *next_import; /* of mem, imports only */
};

/* Makes memory and the owner's GEM object; wanted as fake_machine_add. */
int fake_bo_create(struct fake *fake, struct fake_process *p, const struct fake_shared_bo *wanted,
                   struct fake_bo **out);
/* The memory behind a dma-buf descriptor, with a reference; -EBADF or -EINVAL. */
int fake_mem_from_fd(struct fake *fake, struct fake_process *p, int fd, struct fake_mem **out);
/* Who imports memory of another card. */
enum fake_importer {
    FAKE_IMPORT_KFD,   /* one import a device, made resident */
    FAKE_IMPORT_DRM,   /* one each time, made resident */
    FAKE_IMPORT_EARLY, /* through a file whose VM is not acquired: nothing ever makes it resident */
};
/* A GEM object for mem on a device, with a reference: the owner's own, or an import. Consumes the
 * caller's reference on mem. */
int fake_bo_for_mem(struct fake *fake, struct fake_process *p, struct fake_mem *mem, uint32_t gpu,
                    enum fake_importer by, struct fake_bo **out);
static inline uint32_t fake_mem_moves(const struct fake_mem *mem)
{
    return __atomic_load_n(mem->moves, __ATOMIC_RELAXED);
}

void fake_bo_get(struct fake_bo *bo);
void fake_bo_put(struct fake *fake, struct fake_process *p, struct fake_bo *bo);
void fake_mem_put(struct fake *fake, struct fake_process *p, struct fake_mem *mem);

struct fake_bo *fake_bo_by_offset(struct fake_process *p, uint32_t gpu, uint64_t offset);

/* A new dma-buf descriptor. flags: O_CLOEXEC or 0; mode: O_RDWR or O_RDONLY, used if it is the
 * first export. -EMFILE and others as open(2). */
int fake_mem_export(struct fake *fake, uint32_t index, int flags, int mode);

/* -EFAULT where the process has no memory, -EPERM where it may not write. */
int fake_check_userptr(uint64_t addr, uint64_t size);
/* A file is mapped somewhere in the range. */
bool fake_has_file(uint64_t addr, uint64_t size);

/* Moves bytes; the caller checked the range. -errno. */
int fake_mem_read(struct fake *fake, const struct fake_mem *mem, uint64_t offset, void *buf,
                  size_t size);
int fake_mem_write(struct fake *fake, const struct fake_mem *mem, uint64_t offset, const void *buf,
                   size_t size);

#endif
