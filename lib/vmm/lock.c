/* SPDX-License-Identifier: MIT */
#include "vmm/lock.h"

#ifdef KFDIRECT_DEBUG

#include <stdatomic.h>
#include <stdio.h>

static _Thread_local struct vmm_lock *top; /* the lock this thread took last */

static _Atomic uint64_t violations;
static char first_text[128];
static _Atomic bool first_ready;

static const char *rank_name(enum vmm_rank rank)
{
    switch (rank) {
    case VMM_RANK_INIT:
        return "init";
    case VMM_RANK_RESERVATION:
        return "reservation";
    case VMM_RANK_ALLOCATION:
        return "allocation";
    case VMM_RANK_BARRIER:
        return "barrier";
    case VMM_RANK_SPACE:
        return "space";
    case VMM_RANK_HANDLES:
        return "handles";
    case VMM_RANK_LOG:
        return "log";
    }
    return "unknown";
}

static void violation(const char *what, enum vmm_rank rank, enum vmm_rank held)
{
    if (atomic_fetch_add(&violations, 1) != 0)
        return;
    if (held != 0)
        snprintf(first_text, sizeof(first_text), "%s of %s lock (rank %d) with %s lock (rank %d)",
                 what, rank_name(rank), (int)rank, rank_name(held), (int)held);
    else
        snprintf(first_text, sizeof(first_text), "%s of %s lock (rank %d) with no lock", what,
                 rank_name(rank), (int)rank);
    atomic_store_explicit(&first_ready, true, memory_order_release);
}

static void push(struct vmm_lock *l)
{
    l->below = top;
    top = l;
}

/* Whether l may be taken now. The highest rank is not always on top: locks are released in any
 * order and a breach leaves the list unsorted. */
static bool check_acquire(const struct vmm_lock *l)
{
    const struct vmm_lock *worst = NULL;
    bool again = false;

    for (const struct vmm_lock *held = top; held; held = held->below) {
        again |= held == l;
        if (held->rank >= l->rank && (!worst || held->rank > worst->rank))
            worst = held;
    }
    if (worst)
        violation(again ? "second acquire" : "acquire", l->rank, worst->rank);
    return !again;
}

static bool pop(const struct vmm_lock *l)
{
    struct vmm_lock **link = &top;

    while (*link && *link != l)
        link = &(*link)->below;
    if (!*link) {
        violation("release", l->rank, top ? top->rank : 0);
        return false;
    }
    *link = l->below;
    return true;
}

bool vmm_lock_held(const struct vmm_lock *l)
{
    const struct vmm_lock *held = top;

    while (held && held != l)
        held = held->below;
    return held != NULL;
}

uint64_t vmm_lock_violations(const char **text)
{
    if (text)
        *text = atomic_load_explicit(&first_ready, memory_order_acquire) ? first_text : "";
    return atomic_load(&violations);
}

#else

static void push(struct vmm_lock *l)
{
}

static bool check_acquire(const struct vmm_lock *l)
{
    return true;
}

static bool pop(const struct vmm_lock *l)
{
    return true;
}

bool vmm_lock_held(const struct vmm_lock *l)
{
    return true;
}

uint64_t vmm_lock_violations(const char **text)
{
    if (text)
        *text = "";
    return 0;
}

#endif

int vmm_lock_init(struct vmm_lock *l, enum vmm_rank rank)
{
    *l = (struct vmm_lock){.rank = rank};
    return -pthread_mutex_init(&l->mutex, NULL);
}

void vmm_lock_destroy(struct vmm_lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

void vmm_lock_acquire(struct vmm_lock *l)
{
    if (!check_acquire(l))
        return;
    pthread_mutex_lock(&l->mutex);
    push(l);
}

void vmm_lock_release(struct vmm_lock *l)
{
    if (!pop(l))
        return;
    pthread_mutex_unlock(&l->mutex);
}
