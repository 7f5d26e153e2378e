/* SPDX-License-Identifier: MIT */
/*
 * A GPU's address space as the kernel keeps it: buffer objects attached to it and an ordered tree
 * of mappings, shared by KFD and GEM_VA, and below that the page tables. Mapping and page tables
 * are two steps, because the kernel can leave the second for later or lose it.
 *
 * Every render-node open has one; ACQUIRE_VM makes it the process's compute VM on that GPU. Guarded
 * by the process lock.
 */
#ifndef FAKE_VM_H
#define FAKE_VM_H

#include "fake/mem.h"
#include "fake/pagetable.h"

/* In a mapping's flags: KFD made it. Never in the page tables. */
#define FAKE_MAPPING_KFD 0x80000000u

/* A buffer object in a VM. References: one while a GEM handle names it here, one per KFD
 * attachment. With the last one all its mappings here go. */
struct fake_va {
    struct fake_vm *vm;
    struct fake_bo *bo; /* NULL: the sparse one */
    uint32_t refs;
    uint32_t gems;           /* GEM handles among them: the file may mmap the object */
    uint32_t queues;         /* live queues among them: KFD's UNMAP is EBUSY */
    struct fake_stamp moved; /* the memory left its place under the mappings */
    struct fake_mapping *mappings;
    struct fake_mapping *unwritten; /* those whose page tables are still to be written */
    bool pending;                   /* the copy engine will write them: on the VM's list */
    struct fake_va *next_pending;
};

struct fake_mapping {
    struct fake_node node; /* key: address */
    uint64_t size, offset;
    uint32_t flags; /* FAKE_PTE_* and MTYPE */
    bool written;
    struct fake_stamp made;
    struct fake_va *va;               /* NULL: the kernel's own */
    struct fake_mapping *prev, *next; /* of va's list of its kind, or the VM's freed list */
};

struct fake_vm {
    uint32_t gpu;
    const struct fake_stamp *now; /* the process's */
    bool compute;                 /* acquired by KFD */
    bool used;                    /* something was mapped: it has page tables */
    uint64_t end;                 /* first address behind it */
    struct fake_tree mappings;
    struct fake_map vas; /* by struct fake_bo's address */
    struct fake_va prt;
    struct fake_mapping *freed; /* gone, but still in the page tables */
    bool by_engine;             /* page tables are written by the copy engine */
    bool pending;               /* it has something to do */
    struct fake_va *pending_vas;
    uint64_t user_mappings;
    struct fake_pagetable pt;
    struct fake_tlb tlb;
    uint64_t change, flushed; /* page-table changes that need a flush; the last one flushed */
    struct fake_history history;
};

/* NULL without memory. */
struct fake_vm *fake_vm_create(struct fake *fake, struct fake_process *p, uint32_t gpu);
void fake_vm_destroy(struct fake *fake, struct fake_process *p, struct fake_vm *vm);
/* ACQUIRE_VM's part: the kernel's trap pages. */
int fake_vm_acquire(struct fake *fake, struct fake_vm *vm);

int fake_vm_attach(struct fake_vm *vm, struct fake_bo *bo, struct fake_va **out);
struct fake_va *fake_vm_find(const struct fake_vm *vm, const struct fake_bo *bo);
void fake_vm_detach(struct fake *fake, struct fake_process *p, struct fake_va *va);

/* Mappings only; -EINVAL alignment, range or overlap, -ENOENT, -ENOMEM, with nothing changed. */
int fake_vm_map(struct fake_va *va, uint64_t addr, uint64_t offset, uint64_t size, uint32_t flags);
int fake_vm_unmap(struct fake_va *va, uint64_t addr);
int fake_vm_clear(struct fake_vm *vm, uint64_t addr, uint64_t size);
/* The mapping that holds addr; the first of KFD's in [addr, addr + size); one that the range cuts,
 * whoever made it. NULL: none. */
struct fake_mapping *fake_vm_mapping(const struct fake_vm *vm, uint64_t addr);
struct fake_mapping *fake_vm_kfd_mapping(const struct fake_vm *vm, uint64_t addr, uint64_t size);
struct fake_mapping *fake_vm_cut_mapping(const struct fake_vm *vm, uint64_t addr, uint64_t size);
int fake_vm_replace(struct fake_va *va, uint64_t addr, uint64_t offset, uint64_t size,
                    uint32_t flags);

/* Page tables: clears what was freed; writes what va has unwritten. -ENOMEM. */
int fake_vm_clear_freed(struct fake_vm *vm);
int fake_vm_update(struct fake_va *va);
/* Leaves clearing and, with va, writing to the copy engine: happens with fake_vm_settle, which
 * comes by itself before any other change of the page tables. */
void fake_vm_defer(struct fake_vm *vm, struct fake_va *va);
void fake_vm_settle(struct fake_vm *vm);
/* Everything of va once more, as after a move; or only what KFD mapped. */
int fake_vm_rewrite(struct fake_va *va, bool kfd_only);
/* Flushes if a change asks for it. */
void fake_vm_flush(struct fake_vm *vm);
/* Entries were written. gfx8 keeps invalid ones in its TLB too: there the driver flushes at once.
 */
void fake_vm_written(const struct fake *fake, struct fake_vm *vm);

#endif
