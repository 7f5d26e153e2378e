/* SPDX-License-Identifier: MIT */
/* Reading the two kinds of profile files. Used by profile.c only. */
#ifndef FAKE_PROFILE_FILE_H
#define FAKE_PROFILE_FILE_H

#include "fake/profile.h"

struct fake_cpu_entry {
    struct fake_cpu cpu;
    uint32_t count;
    unsigned int line;
};

struct fake_gpu_entry {
    struct fake_gpu gpu;
    uint32_t count;
    uint32_t first_bus, bus_step, slot_step;
    unsigned int line;
};

/* A link written in the file, which replaces the derived one. */
struct fake_fixed_link {
    uint32_t from, to; /* index, with FAKE_FIXED_GPU when it is a GPU */
    uint32_t type;     /* index into none, pcie, xgmi */
    uint32_t weight, min_bandwidth, max_bandwidth;
    bool both;
    unsigned int line;
};

#define FAKE_FIXED_GPU 0x80000000u

struct fake_machine_file {
    char file[256]; /* for messages */
    char name[32];
    char about[FAKE_ABOUT_SIZE];
    uint32_t kfd_node;
    uint32_t count;
    uint32_t cpu_count, gpu_count, link_count;
    struct fake_cpu_entry cpus[FAKE_MAX_CPUS];
    struct fake_gpu_entry gpus[FAKE_MAX_GPUS];
    struct fake_fixed_link links[FAKE_MAX_FIXED_LINKS];
};

/* name: a built-in's or, with a '/', a path. Errors as fake_profile_load. */
int fake_machine_file_read(const char *name, struct fake_machine_file *out);
int fake_kernel_file_read(const char *name, struct fake_kernel *out);

#endif
