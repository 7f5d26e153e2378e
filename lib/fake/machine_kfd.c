/* SPDX-License-Identifier: MIT */
/* What the processes of a machine know of each other's KFD processes. */
#include <errno.h>

#include "fake/machine_state.h"
#include "kfd/error.h"

#define MAX_QUEUES_OF_DEVICE 4096u
#define MAX_PLACES 512u

struct fake_shared_kfd *fake_machine_kfd(struct fake_machine *m, uint32_t slot)
{
    return &m->shared->kfd[slot];
}

int fake_machine_kfd_at(struct fake_machine *m, uint32_t i, uint32_t *slot, int32_t *pid)
{
    struct fake_shared *s = m->shared;
    int err = -ENOENT;

    fake_machine_lock(m);
    if (i == 0)
        fake_machine_reap(m);
    for (uint32_t k = 0; k < s->head.top_proc && err != 0; k++) {
        if (s->head.procs[k].pid == 0 || s->kfd[k].pasid == 0 || i-- != 0)
            continue;
        *slot = k;
        *pid = s->head.procs[k].pid;
        err = 0;
    }
    fake_machine_unlock(m);
    return err;
}

/* SDMA queues of one device share their places with those of the same kind of engine. */
static bool same_kind(const struct fake_shared_queue *a, const struct fake_shared_queue *b)
{
    return a->gpu == b->gpu && a->kind == b->kind;
}

static int find_place(const struct fake_shared *s, struct fake_shared_queue *q, uint32_t places,
                      uint32_t first, uint32_t step)
{
    uint64_t taken[MAX_PLACES / 64] = {0};
    uint32_t on_device = 0;

    for (uint32_t k = 0; k < s->head.top_proc; k++) {
        for (uint32_t id = 0; s->kfd[k].pasid != 0 && id < FAKE_MAX_QUEUES; id++) {
            const struct fake_shared_queue *o = &s->kfd[k].queues[id];

            if (!o->used || o->gpu != q->gpu)
                continue;
            on_device++;
            if (same_kind(o, q))
                taken[o->place / 64] |= UINT64_C(1) << o->place % 64;
        }
    }
    if (on_device >= MAX_QUEUES_OF_DEVICE)
        return kfd_fail(-EPERM, "fake: %u queues on GPU %u", on_device, q->gpu);
    if (q->kind == FAKE_QUEUE_COMPUTE)
        return 0;
    for (q->place = first; q->place < places && q->place < MAX_PLACES; q->place += step)
        if (!(taken[q->place / 64] >> q->place % 64 & 1))
            return 0;
    return kfd_fail(-ENOMEM, "fake: all %u SDMA queues of GPU %u are taken", places, q->gpu);
}

int fake_machine_queue_add(struct fake_machine *m, uint32_t slot, uint32_t id,
                           const struct fake_shared_queue *queue, uint32_t places, uint32_t first,
                           uint32_t step)
{
    struct fake_shared_queue q = *queue;
    int err;

    fake_machine_lock(m);
    err = find_place(m->shared, &q, places, first, step);
    if (err != 0) {
        fake_machine_reap(m);
        err = find_place(m->shared, &q, places, first, step);
    }
    if (err == 0) {
        q.used = 1;
        m->shared->kfd[slot].queues[id] = q;
    }
    fake_machine_unlock(m);
    return err;
}

void fake_machine_queue_remove(struct fake_machine *m, uint32_t slot, uint32_t id)
{
    fake_machine_lock(m);
    m->shared->kfd[slot].queues[id] = (struct fake_shared_queue){0};
    fake_machine_unlock(m);
}
