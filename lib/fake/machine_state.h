/* SPDX-License-Identifier: MIT */
/* Layout of the state file of a fake machine; for machine*.c only. Index 0 of bos and refs is never
 * used, so that 0 ends a list. */
#ifndef FAKE_MACHINE_STATE_H
#define FAKE_MACHINE_STATE_H

#include <pthread.h>

#include "fake/machine.h"

#define FAKE_MAX_BOS (1u << 20)
#define FAKE_MAX_REFS (1u << 21)
#define FAKE_MAX_PROCS 1024u
#define FAKE_MAX_NUMBERS (1u << 16) /* of KFD's own file on a GPU */
#define FAKE_INO_BUCKETS (1u << 16)

struct fake_shared_proc {
    int32_t pid; /* 0: free; written last on entry, first on leaving */
    uint32_t first_ref;
    uint64_t start; /* when the pid started: pids come again */
    uint64_t image; /* changes with exec */
};

/* A process's reference to an object. */
struct fake_shared_ref {
    uint32_t bo; /* 0: free; written last */
    uint32_t slot;
    uint32_t prev, next; /* of the process, or free list (derived) */
    uint32_t kfd;        /* handles of KFD's */
    uint32_t number;     /* on the owner, deleted with the process; 0: none */
};

struct fake_shared_number {
    uint32_t bo; /* 0: free */
    uint32_t shared;
};

/* What every version of the file begins with, so that any of them can sweep it. */
struct fake_shared_head {
    uint64_t magic;
    uint64_t id; /* of this machine among all */
    uint64_t pid_namespace;
    uint32_t top_proc, pad;
    struct fake_shared_proc procs[FAKE_MAX_PROCS];
};

struct fake_shared {
    struct fake_shared_head head;
    pthread_mutex_t lock;
    struct fake_limits limits;
    struct fake_totals totals; /* derived */
    uint32_t free_bo, idle_bo, top_bo;
    uint32_t free_ref, top_ref;
    uint32_t file_serial;
    uint32_t said;                          /* that the machine stands in */
    uint32_t ino_buckets[FAKE_INO_BUCKETS]; /* derived */
    struct fake_shared_bo bos[FAKE_MAX_BOS];
    struct fake_shared_ref refs[FAKE_MAX_REFS];
    uint8_t metadata[FAKE_MAX_BOS][FAKE_METADATA_SIZE];
    struct fake_shared_kfd kfd[FAKE_MAX_PROCS];
    uint32_t top_number[KFD_MAX_DEVICES];
    struct fake_shared_number numbers[KFD_MAX_DEVICES][FAKE_MAX_NUMBERS];
};

/* Adds (1) or takes back (-1) what an object counts for. */
void fake_machine_account(struct fake_totals *totals, const struct fake_shared_bo *bo, int sign);

void fake_machine_number_forget(struct fake_shared *shared, uint32_t gpu, uint32_t number);

/* Drops what dead processes left. */
void fake_machine_reap(struct fake_machine *machine);

/* Derives lists, counts and totals from the records again. */
void fake_machine_rebuild(struct fake_shared *shared);

/* Start time of a process in clock ticks; 0 when it is gone or only waits to be reaped. */
uint64_t fake_proc_start(int32_t pid);
/* A number of this program image, different after exec. */
uint64_t fake_proc_image(void);
bool fake_proc_alive(const struct fake_shared_proc *proc);

#endif
