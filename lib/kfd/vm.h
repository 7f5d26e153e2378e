/* SPDX-License-Identifier: MIT */
/*
 * Render nodes whose address space this process has acquired. The kernel binds a process to the
 * first open file it acquires for a GPU, for good: another file is EBUSY until the process ends. So
 * the file outlives the struct kfd that opened it, and every struct kfd on one system shares it,
 * and with it the file's GEM handles and their counts.
 */
#ifndef KFD_VM_H
#define KFD_VM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kfdirect/kfd.h>

struct kfd_vm {
    /* Under the opening lock. */
    struct kfd_vm *next; /* in the system's registry, if kept */
    bool kept;
    uint32_t users; /* devices that use it */

    /* Immutable. */
    int fd; /* owned */
    uint32_t gpu_id, minor;
    uint32_t generation; /* kfd_process_generation() of the opener */

    /* Held over PRIME_FD_TO_HANDLE, GEM_CREATE and GEM_CLOSE, because the count and the kernel's
     * handle must change together, and over GEM_VA where that takes a timeline point, because
     * points must reach the kernel in order (it serialises GEM_VA of one VM anyway). */
    pthread_mutex_t lock;
    uint32_t *gem_refs; /* by GEM handle */
    uint32_t gem_room;
    uint32_t syncobj; /* 0: none yet */
    uint64_t point;   /* last one queued */
    uint64_t waited;  /* last one waited for */
};

/* All of these are called with the opening lock held. */

/* The kept render node of a GPU, or the newly opened one; counted as used. Errors as open(2), the
 * text names the file. */
int kfd_vm_get(struct kfd_sys *sys, uint32_t gpu_id, uint32_t minor, struct kfd_vm **out);
/* After a successful ACQUIRE_VM: keeps it beyond its users, if the system can. */
void kfd_vm_keep(struct kfd_sys *sys, struct kfd_vm *vm);
/* Ends one use. The last one closes what GEM handles are left, and the file unless it is kept. */
void kfd_vm_put(struct kfd *kfd, struct kfd_vm *vm);
/* Ends what kfd_gem_va_wait shared between the devices' files. In gem_va.c. */
void kfd_gem_va_close(struct kfd *kfd);
/* In a forked child: forgets the parent's render nodes. Else does nothing. */
void kfd_vm_forget_parent(struct kfd_sys *sys);

#endif
