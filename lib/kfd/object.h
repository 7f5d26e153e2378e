/* SPDX-License-Identifier: MIT */
/* The insides of struct kfd and struct kfd_device, for lib/kfd only. */
#ifndef KFD_OBJECT_H
#define KFD_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kfdirect/kfd.h>
#include "kfd/notes.h"

struct kfd_vm;

/* Owned by kfd, immutable after kfd_open and so read without a lock. */
struct kfd_device {
    struct kfd *kfd;
    struct kfd_vm *vm; /* the acquired render node, shared with other struct kfd of the process */
    struct kfd_device_info info;
    uint64_t reach; /* bit i: may map VRAM of device i */
};

/* Owned by its opener, immutable after kfd_open but for syncobjs. */
struct kfd {
    struct kfd_sys *sys;
    int fd;
    uint32_t generation; /* kfd_process_generation() of the opener */
    pid_t pid;           /* for texts */
    uint32_t major, minor;
    uint64_t caps; /* bit per enum kfd_cap */
    struct kfd_device *devices;
    uint32_t device_count;
    uint32_t cpu_count;
    struct kfd_link_info *links;
    uint32_t link_count;
    struct kfd_notes skipped;
    /* The timeline of each device as device 0's file names it, 0: not yet. Under device 0's vm
     * lock. */
    uint32_t syncobjs[KFD_MAX_DEVICES];
};

#endif
