/* SPDX-License-Identifier: MIT */
/* The numbers of KFD's own DRM files, one per GPU and shared by all processes. */
#include <errno.h>

#include "fake/machine_state.h"
#include "kfd/error.h"

/* The number that a dma-buf is known by, or 0. */
static uint32_t known(const struct fake_shared *s, uint32_t gpu, uint32_t bo)
{
    for (uint32_t n = 1; n < s->top_number[gpu]; n++)
        if (s->numbers[gpu][n].bo == bo && s->numbers[gpu][n].shared)
            return n;
    return 0;
}

static uint32_t lowest_free(const struct fake_shared *s, uint32_t gpu)
{
    uint32_t n = 1;

    while (n < s->top_number[gpu] && s->numbers[gpu][n].bo != 0)
        n++;
    return n;
}

int fake_machine_number_take(struct fake_machine *m, uint32_t gpu, uint32_t ref, bool import,
                             uint32_t *number)
{
    struct fake_shared *s = m->shared;
    uint32_t bo = s->refs[ref].bo, n;
    int err = 0;

    fake_machine_lock(m);
    fake_machine_reap(m);
    n = import ? known(s, gpu, bo) : 0;
    if (n == 0) {
        n = lowest_free(s, gpu);
        if (n == FAKE_MAX_NUMBERS)
            err = kfd_fail(-ENOMEM, "fake: more than %u handles on GPU %u", n - 1, gpu);
        else
            s->numbers[gpu][n] = (struct fake_shared_number){.bo = bo, .shared = import};
    }
    if (err == 0) {
        if (n >= s->top_number[gpu])
            s->top_number[gpu] = n + 1;
        if (gpu == s->bos[bo].owner)
            s->refs[ref].number = n;
        *number = n;
    }
    fake_machine_unlock(m);
    return err;
}

uint32_t fake_machine_number_share(struct fake_machine *m, uint32_t gpu, uint32_t number)
{
    struct fake_shared_number *n = &m->shared->numbers[gpu][number];
    uint32_t bo;

    fake_machine_lock(m);
    bo = n->bo;
    n->shared = bo != 0;
    fake_machine_unlock(m);
    return bo;
}

void fake_machine_number_forget(struct fake_shared *s, uint32_t gpu, uint32_t number)
{
    s->numbers[gpu][number] = (struct fake_shared_number){0};
}

void fake_machine_number_drop(struct fake_machine *m, uint32_t gpu, uint32_t ref, uint32_t number)
{
    fake_machine_lock(m);
    fake_machine_number_forget(m->shared, gpu, number);
    if (m->shared->refs[ref].number == number)
        m->shared->refs[ref].number = 0;
    fake_machine_unlock(m);
}
