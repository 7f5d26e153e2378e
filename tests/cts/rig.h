/* SPDX-License-Identifier: MIT */
/* The buffers of one compute queue, each a mapping of its own of its exact size, as KFD 1.17 asks.
 */
#ifndef CTS_RIG_H
#define CTS_RIG_H

#include "cts.h"

enum {
    RIG_RING,
    RIG_POINTERS,
    RIG_EOP,
    RIG_SAVE,
    RIG_BUFFERS
};

struct rig {
    uint32_t gpu;
    uint64_t h[RIG_BUFFERS], va[RIG_BUFFERS], size[RIG_BUFFERS];
    uint32_t save, ctl;
};

/* Allocates and maps from va on (256 MiB of it), without rows. 0 or -errno. */
int rig_make(struct cts *c, struct rig *r, uint32_t gpu, uint64_t va);
struct kfd_uapi_create_queue rig_arguments(const struct cts *c, const struct rig *r);
long rig_create(struct cts *c, struct kfd_uapi_create_queue *q);
/* A number from the GPU's topology properties; 0 when it is not there. key ends with a blank. */
uint64_t rig_property(struct cts *c, uint32_t gpu, const char *key);

#endif
