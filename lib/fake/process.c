/* SPDX-License-Identifier: MIT */
#include "fake/process.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/events.h"
#include "fake/file.h"
#include "fake/handle.h"
#include "fake/node_mmap.h"
#include "fake/queues.h"
#include "fake/smi.h"
#include "fake/svm.h"
#include "fake/syncobj.h"

struct fake_process *fake_process_create(struct fake *fake, uint32_t slot)
{
    struct fake_arena *arena = fake_arena_new();
    pthread_mutexattr_t attr;
    struct fake_process *p;

    if (arena == NULL)
        return NULL;
    fake_arena_enter(arena);
    p = fake_calloc(sizeof(*p));
    fake_arena_enter(NULL);
    p->arena = arena;
    p->pid = getpid();
    p->slot = slot;
    p->now.pid = p->pid;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&p->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return p;
}

void fake_process_lock(struct fake_process *p)
{
    /* A child that was killed at work may have left a change half done, as a kernel never would. */
    if (pthread_mutex_lock(&p->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&p->lock);
    fake_arena_enter(p->arena);
}

void fake_process_unlock(struct fake_process *p)
{
    fake_arena_enter(NULL);
    pthread_mutex_unlock(&p->lock);
}

void fake_process_forget(struct fake_process *p)
{
    while (p != NULL) {
        struct fake_process *parent = p->inherited;

        fake_arena_unmap(p->arena);
        p = parent;
    }
}

void fake_process_destroy(struct fake *fake, struct fake_process *p)
{
    fake_process_lock(p);
    fake_process_deed(p, FAKE_DEED_EXIT);
    fake_queues_destroy(fake, p);
    fake_events_destroy(fake, p->events);
    fake_svm_destroy(p);
    fake_smi_destroy(p);
    fake_syncobj_close_fds(p);
    for (uint32_t gpu = 0; gpu < fake->profile->gpu_count; gpu++)
        fake_handle_free_all(fake, p, gpu);
    while (p->files != NULL)
        fake_file_destroy(fake, p, p->files);
    for (uint32_t gpu = 0; gpu < fake->profile->gpu_count; gpu++)
        fake_node_pages_free(fake, p, gpu);
    fake_map_clear(&p->files_by_ino);
    fake_map_clear(&p->mems);
    fake_map_clear(&p->bo_maps);
    p->ended = true;
    fake_process_unlock(p);
    fake_process_forget(p);
}

void fake_process_deed(struct fake_process *p, enum fake_deed deed)
{
    p->now.code = 0;
    p->now.op = (uint16_t)deed;
}

struct fake_process *fake_process_get(struct fake *fake, int *err)
{
    struct fake_process *p = atomic_load(&fake->process), *mine;
    pid_t pid = getpid();
    uint32_t slot;

    if (atomic_load(&fake->ended)) {
        *err = -ENODEV;
        return NULL;
    }
    if (p->pid == pid)
        return p;
    /* A forked child: what it inherited belongs to its parent, and another thread of the parent
     * may have been in the middle of changing it. */
    *err = fake_machine_enter(&fake->machine, &slot);
    if (*err != 0)
        return NULL;
    mine = fake_process_create(fake, slot);
    if (mine == NULL) {
        fake_machine_leave(&fake->machine, slot);
        *err = -ENOMEM;
        return NULL;
    }
    mine->inherited = p;
    if (atomic_compare_exchange_strong(&fake->process, &p, mine))
        return mine;
    fake_machine_leave(&fake->machine, slot);
    mine->inherited = NULL;
    fake_process_destroy(fake, mine);
    return p;
}

void fake_process_exit(struct fake *fake)
{
    struct fake_process *p = atomic_load(&fake->process);

    if (p->pid != getpid() || atomic_exchange(&fake->ended, true))
        return;
    /* Whoever holds the lock finishes first. */
    fake_process_lock(p);
    p->ended = true;
    fake_machine_abandon(&fake->machine, p->slot);
    fake_process_unlock(p);
}
