/* SPDX-License-Identifier: MIT */
/*
 * Mutexes with a rank. A thread takes them in strictly rising rank, so no two threads can wait for
 * each other. Debug builds (KFDIRECT_DEBUG) keep the locks of each thread in a list and count every
 * breach of that rule; nothing ever stops because of one. Locks of one rank are never nested.
 */
#ifndef VMM_LOCK_H
#define VMM_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum vmm_rank {
    VMM_RANK_INIT = 10,
    VMM_RANK_RESERVATION = 20,
    VMM_RANK_ALLOCATION = 30,
    VMM_RANK_BARRIER = 35,
    VMM_RANK_SPACE = 40,
    VMM_RANK_HANDLES = 50,
    VMM_RANK_LOG = 60,
};

struct vmm_lock {
    pthread_mutex_t mutex;
    enum vmm_rank rank;
#ifdef KFDIRECT_DEBUG
    struct vmm_lock *below; /* the lock its holder took before it; the holder's own */
#endif
};

/* -ENOMEM or -EAGAIN as pthread_mutex_init. */
int vmm_lock_init(struct vmm_lock *l, enum vmm_rank rank);
void vmm_lock_destroy(struct vmm_lock *l);
/* Debug builds: taking a lock again that the thread holds is a breach, counted and not done. */
void vmm_lock_acquire(struct vmm_lock *l);
/* In any order. Debug builds: releasing a lock that the thread lacks is a breach and not done. */
void vmm_lock_release(struct vmm_lock *l);
/* Debug builds: whether this thread holds it. Otherwise always true. */
bool vmm_lock_held(const struct vmm_lock *l);

/* Breaches so far in the process, and in *text (may be NULL) the first one in words, both ranks
 * named; "" when there was none or in other than debug builds. */
uint64_t vmm_lock_violations(const char **text);

#endif
