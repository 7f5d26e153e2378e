/* SPDX-License-Identifier: MIT */
/*
 * A small machine with a VMM on it, and everything about it that can be seen from outside, as text:
 * what the library says, what the kernel has, where each GPU address leads, what the CPU's address
 * space shows, which descriptors are open. Two equal texts are two equal states.
 */
#ifndef SCALE_WORLD_H
#define SCALE_WORLD_H

#include "common.h"
#include "hook.h"

#include <kfdirect/vmm.h>

#define WORLD_RANGE MIB(64)
#define WORLD_STEP MIB(2)

struct world {
    struct fake *fake;
    struct kfd_sys *injector;
    struct kfd_sys *counter; /* above the injector */
    struct kfd *kfd;
    struct vmm *vmm;
    uint64_t base; /* a reservation of WORLD_RANGE */
    vmm_handle whole, other, spare;
    uint64_t one_step;
    int fd; /* an exported descriptor, -1: none */
};

/* A fake machine, opened with the engine wanted; fails the case when that cannot be. */
void world_open(struct world *world, const char *machine_name, const char *kernel,
                enum vmm_engine engine);
/* Ends it; false, and a line that says what, when something is left on the fake or strict mode had
 * something to say. */
bool world_close(struct world *world);

/* Memory of two GPUs, mappings with rights, one-step memory and an export: something to lose. */
void world_fill(struct world *world);
void world_empty(struct world *world);

/* The state as text, to be freed. */
char *world_text(struct world *world);
/* True when equal; prints the first line that differs otherwise. */
bool world_same(const char *what, const char *was, const char *is);
/* Each page's rights by vmm_get_access are what the GPUs' page tables let through. */
bool world_consistent(struct world *world);

#endif
