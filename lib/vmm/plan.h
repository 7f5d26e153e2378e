/* SPDX-License-Identifier: MIT */
/* Plan, run, undo: every change of rights, of one mapping or of ten thousand. */
#ifndef VMM_PLAN_H
#define VMM_PLAN_H

#include "vmm/engine.h"
#include "vmm/resv.h"

/* One mapping's change. */
struct vmm_step {
    struct vmm_mapping *map;
    struct vmm_rights from, to;
    uint64_t fresh; /* devices whose import this plan made */
    uint8_t host_from, host_to;
};

/*
 * Built without side effects under the reservation's lock, with all memory it needs; run in order;
 * undone in reverse. Steps that change nothing are not in it.
 */
struct vmm_plan {
    struct vmm_resv *resv;
    struct vmm_step *steps;
    uint64_t count, room;
    bool stored; /* the mappings' own records follow the change */
};

int vmm_plan_init(struct vmm_plan *plan, struct vmm_resv *resv, uint64_t room);
void vmm_plan_fini(struct vmm_plan *plan);
void vmm_plan_add(struct vmm_plan *plan, struct vmm_mapping *map, const struct vmm_rights *to,
                  uint8_t host_to);
/* Applies every step and makes it visible, or puts everything back and returns the error, whose
 * text names the step. The mappings' records then hold the new state. */
int vmm_plan_run(struct vmm_plan *plan);

#endif
