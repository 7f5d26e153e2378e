/* SPDX-License-Identifier: MIT */
/* The kernel's description of the machine, read from sysfs. */
#ifndef KFD_TOPOLOGY_H
#define KFD_TOPOLOGY_H

#include <kfdirect/kfd.h>
#include "kfd/notes.h"

#define KFD_TOPOLOGY_PATH "/sys/devices/virtual/kfd/kfd/topology"

/* One consistent scan; owned by the caller. A GPU's info holds what sysfs tells: the rest (index,
 * DRM version, aperture, APU, names) is filled in when it is opened. */
struct kfd_topology {
    uint64_t generation;
    struct kfd_device_info *gpus; /* by node number */
    uint32_t gpu_count;
    uint32_t *cpus; /* CPU node numbers */
    uint32_t cpu_count;
    struct kfd_link_info *links; /* by node_from */
    uint32_t link_count;
    struct kfd_notes skipped; /* nodes and links left out, with the reason */
};

/*
 * Reads the topology, again when its generation changed meanwhile. Nodes that cannot be read
 * (EPERM: hidden by the device cgroup) or make no sense are skipped with a reason. -EAGAIN: it kept
 * changing; others: the tree itself cannot be read. On failure *out is empty.
 */
int kfd_topology_read(struct kfd_sys *sys, struct kfd_topology *out);
void kfd_topology_free(struct kfd_topology *topo);

/* Where a `key value` text goes: a uint32_t or uint64_t member. */
struct kfd_topology_key {
    const char *name;
    uint16_t offset, size;
    bool required;
};

/* Parses lines of "key decimal"; unknown keys are passed over with whatever follows them. -EINVAL
 * with the error text saying which line, or which required key is missing. */
int kfd_topology_parse(const char *text, const struct kfd_topology_key *keys, uint32_t n,
                       void *out);

#endif
