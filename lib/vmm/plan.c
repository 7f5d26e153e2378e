/* SPDX-License-Identifier: MIT */
#include "vmm/plan.h"

#include <errno.h>

#include "vmm/host.h"

#include "kfd/poison.h"

int vmm_plan_init(struct vmm_plan *plan, struct vmm_resv *resv, uint64_t room)
{
    plan->resv = resv;
    plan->count = 0;
    plan->room = room;
    do
        plan->steps = vmm_calloc(room ? room : 1, sizeof(plan->steps[0]));
    while (!plan->steps && vmm_host_spend(resv->vmm));
    return plan->steps ? 0
                       : kfd_fail(-ENOMEM, "no host memory to plan %llu mappings",
                                  (unsigned long long)room);
}

void vmm_plan_fini(struct vmm_plan *plan)
{
    vmm_free_mem(plan->steps);
}

/* A KFD handle at the address that nobody uses: giving it back failed before. */
static bool leftover(const struct vmm_mapping *map, const struct vmm_rights *to)
{
    return map->kfd_handle && !to->read_mask;
}

void vmm_plan_add(struct vmm_plan *plan, struct vmm_mapping *map, const struct vmm_rights *to,
                  uint8_t host_to)
{
    struct vmm_step *step;

    if (map->read_mask == to->read_mask && map->write_mask == to->write_mask &&
        map->host_prot == host_to && !leftover(map, to))
        return;
    step = &plan->steps[plan->count++];
    step->map = map;
    step->from = (struct vmm_rights){map->read_mask, map->write_mask};
    step->to = *to;
    step->host_from = map->host_prot;
    step->host_to = host_to;
}

static uint64_t gained(const struct vmm_step *step)
{
    return step->to.read_mask & ~step->from.read_mask;
}

static uint64_t changed(const struct vmm_step *step)
{
    return (step->from.read_mask ^ step->to.read_mask) |
           (step->from.write_mask ^ step->to.write_mask);
}

static int set_host(struct vmm *vmm, struct vmm_mapping *map, uint8_t to)
{
    int err = 0;

    if (map->host_prot != to)
        err = vmm_host_apply(vmm, map, map->host_prot, to);
    if (!err)
        map->host_prot = to;
    return err;
}

static int step_apply(struct vmm *vmm, const struct vmm_step *step)
{
    int err = vmm->engine->apply(step->map, &step->to);

    return err ? err : set_host(vmm, step->map, step->host_to);
}

/* What cannot be put back stays as the mapping's record says. */
static void step_undo(struct vmm *vmm, const struct vmm_step *step)
{
    set_host(vmm, step->map, step->host_from);
    vmm->engine->apply(step->map, &step->from);
}

/* A new mapping has nothing stale to flush; every other change has. */
static int settle(struct vmm_plan *plan, uint64_t count, bool undone)
{
    struct vmm *vmm = plan->resv->vmm;
    uint64_t all = 0, flush = 0;

    for (uint64_t i = 0; i < count; i++) {
        const struct vmm_step *step = &plan->steps[i];

        all |= changed(step);
        flush |= changed(step) &
                 (undone ? step->to.read_mask | step->from.read_mask : step->from.read_mask);
    }
    return all ? vmm->engine->settle(plan->steps[0].map->alloc, all, flush) : 0;
}

static int prepare(struct vmm_plan *plan, uint64_t *ready)
{
    const struct vmm_engine_ops *engine = plan->resv->vmm->engine;
    int err = 0;

    for (*ready = 0; *ready < plan->count && !err; ++*ready) {
        struct vmm_step *step = &plan->steps[*ready];

        if (gained(step))
            err = engine->prepare(step->map->alloc, gained(step), &step->fresh);
        if (err)
            break;
    }
    return err;
}

/* Of the devices that had the mapping or were prepared for it, those that do not have it now. On
 * failure the imports made for them go again. */
static void unprepare(struct vmm_plan *plan, uint64_t ready, bool failed)
{
    const struct vmm_engine_ops *engine = plan->resv->vmm->engine;

    while (ready--) {
        struct vmm_step *step = &plan->steps[ready];
        uint64_t without = (step->from.read_mask | step->to.read_mask) & ~step->map->read_mask;

        if (without)
            engine->unprepare(step->map->alloc, without, failed ? step->fresh : 0);
    }
}

int vmm_plan_run(struct vmm_plan *plan)
{
    struct vmm *vmm = plan->resv->vmm;
    uint64_t ready, done = 0;
    int err;

    err = prepare(plan, &ready);
    if (err) {
        err = kfd_fail_in(err, "mapping %llu of %llu at 0x%llx", (unsigned long long)ready + 1,
                          (unsigned long long)plan->count,
                          (unsigned long long)plan->steps[ready].map->va);
        goto undo;
    }
    for (; done < plan->count; done++) {
        err = step_apply(vmm, &plan->steps[done]);
        if (err) {
            err = kfd_fail_in(err, "mapping %llu of %llu at 0x%llx", (unsigned long long)done + 1,
                              (unsigned long long)plan->count,
                              (unsigned long long)plan->steps[done].map->va);
            goto undo;
        }
    }
    err = settle(plan, done, false);
    if (err) {
        err = kfd_fail_in(err, "making the change visible");
        goto undo;
    }
    unprepare(plan, ready, false);
    return 0;

undo:
    kfd_error_hold();
    if (done < plan->count && ready == plan->count)
        done++; /* the step that failed may be half done */
    for (uint64_t i = done; i--;)
        step_undo(vmm, &plan->steps[i]);
    if (ready == plan->count)
        settle(plan, done, true);
    unprepare(plan, ready, true);
    kfd_error_resume();
    return err;
}
