/* SPDX-License-Identifier: MIT */
/*
 * What a fake machine is made of: CPU nodes, GPUs, links (the machine) and the kernel that drives
 * it (the personality). Both come from text files, built in or given by path; lib/fake/profiles/
 * holds the built-in ones; README.md there describes the format.
 *
 * A profile is immutable once loaded and read without a lock.
 */
#ifndef FAKE_PROFILE_H
#define FAKE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake/conf.h"

#define FAKE_ABOUT_SIZE 80u
#define FAKE_MAX_CPUS 16u
#define FAKE_MAX_GPUS 64u
#define FAKE_MAX_CACHES 8u
#define FAKE_TILE_MODES 48u
#define FAKE_MAX_FIXED_LINKS 256u

enum fake_presence {
    FAKE_PRESENT,
    FAKE_MISSING, /* open: ENOENT */
    FAKE_DENIED,  /* open: EACCES */
};

struct fake_cpu {
    uint32_t cores, apic_base, clock_mhz;
    uint64_t ram; /* bytes */
    uint32_t mem_width, mem_clk_max;
};

/* One kind of GPU cache; a node has one for every `cus` compute units. */
struct fake_cache {
    uint32_t level, size_kib, line_size, type; /* type: HSA cache bits, 5 data, 6 instruction */
    uint32_t cus;
};

/*
 * One GPU node: a card, or one partition of a card. Names follow the sysfs keys. What a file leaves
 * out is 0 or derived at load.
 */
struct fake_gpu {
    char name[32];    /* nodes/N/name */
    char product[64]; /* marketing name */

    uint32_t gpu_id; /* derived */
    uint32_t card;   /* partitions of one card share it */
    uint32_t partition, partitions;
    uint32_t cpu_node;

    uint32_t vendor_id, device_id, subsystem_vendor, subsystem_device;
    uint32_t domain, location_id; /* without the partition number */
    uint32_t pci_rev, chip_rev, external_rev, family, gb_addr_config;
    uint64_t unique_id;

    uint32_t gfx_target_version, num_xcc, simd_count, simd_id_base, simd_per_cu;
    uint32_t array_count, simd_arrays_per_engine, cu_per_simd_array;
    uint32_t max_waves_per_simd, wave_front_size, max_slots_scratch_cu;
    uint32_t lds_size_in_kb, gds_size_in_kb, num_gws;
    uint32_t num_sdma_engines, num_sdma_xgmi_engines, num_sdma_queues_per_engine, num_cp_queues;
    uint32_t cwsr_size, ctl_stack_size, debug_memory_size, eop_buffer_size;
    uint32_t max_engine_clk_fcompute, fw_version, sdma_fw_version, capability, debug_prop;

    uint64_t vram, visible_vram; /* bytes; the node's share of a partitioned card */
    uint64_t vram_pinned;        /* bytes the driver keeps for itself */
    uint32_t mem_width, mem_clk_max, vram_type;
    uint32_t va_bits;       /* of a compute address: gpuvm_limit is 2^va_bits - 1 */
    uint32_t doorbell_size; /* a process's slice in bytes */
    bool apu;
    uint32_t gds_size;                    /* bytes, as DRM tells; 0 where not known */
    uint32_t rb_pipes;                    /* render backends; 0 where not known */
    uint32_t raster_config;               /* before gfx9, as are the tile modes */
    uint32_t tile_modes[FAKE_TILE_MODES]; /* then those of macro tiles */
    uint32_t compute_rings;               /* compute queues of the driver's own */
    uint32_t cp_fw_version;               /* of the graphics half; 0 where not known */
    bool no_atomics;                      /* the card completes no PCIe atomics */
    bool no_clocks;                       /* its BIOS tells the driver no clocks */
    bool xnack;                           /* can be switched per process */

    uint64_t hive_id;   /* 0: in no hive */
    uint32_t hive_size; /* cards in one hive; 0 or 1: none */
    uint32_t pcie_bandwidth, xgmi_min_bandwidth, xgmi_max_bandwidth; /* MB/s */
    uint32_t xgmi_weight;

    uint32_t render_minor;
    uint32_t render_node; /* enum fake_presence */
    bool hidden;          /* kept from us by the device cgroup: EPERM */

    uint32_t cache_count;
    struct fake_cache caches[FAKE_MAX_CACHES];
};

enum fake_link_type {
    FAKE_LINK_NONE,
    FAKE_LINK_HYPERTRANSPORT = 1,
    FAKE_LINK_PCIE = 2,
    FAKE_LINK_QPI = 5,
    FAKE_LINK_XGMI = 11,
};

/* A link entry of node_from; peer: listed under p2p_links, else under io_links. */
struct fake_link {
    uint32_t node_from, node_to, type, weight;
    uint32_t min_latency, max_latency, min_bandwidth, max_bandwidth;
    uint32_t recommended_transfer_size, recommended_sdma_engine_id_mask, flags;
    bool peer;
};

enum fake_residency {
    FAKE_RESIDENT_AT_ALLOC, /* fenced and resident from ALLOC/IMPORT to FREE */
    FAKE_RESIDENT_AT_MAP,   /* from MAP to the last UNMAP */
};

struct fake_kernel {
    char name[32]; /* "6.12" */
    char about[FAKE_ABOUT_SIZE];
    char release[48]; /* "6.12.117" */

    uint32_t kfd_minor, drm_minor;
    char drm_date[16];
    uint32_t kfd_last_request;  /* higher numbers: ENOTTY */
    uint64_t kfd_holes;         /* bit nr: that request is ENOTTY as well */
    uint32_t create_queue_size; /* of the kernel's struct */
    uint32_t gem_va_size;       /* of the kernel's struct */
    uint32_t dev_info_size;     /* what INFO DEV_INFO can fill */

    uint64_t gpuvm_base;
    uint64_t gem_va_bottom;         /* below: EINVAL */
    uint64_t gem_va_reserved_top;   /* bytes kept at the top of the VM */
    uint64_t trap_va_below_top;     /* where ACQUIRE_VM maps the trap pages: this far below 2^48; 0:
                                       at 0x2000 */
    uint64_t sysfs_capability_mask; /* capability bits this kernel reports */

    bool import_checks_fd_first; /* IMPORT_DMABUF: fd before gpu_id and VM */
    bool import_foreign;         /* IMPORT_DMABUF takes other devices' dma-bufs */
    bool acquire_used_vm;        /* ACQUIRE_VM of a VM that has mappings */
    bool gem_va_restored;        /* GEM_VA mappings survive eviction */
    bool kfd_gem_handles;        /* trap T1 exists */
    bool queue_buffer_checks;    /* and UNMAP is EBUSY under a live queue */
    bool cache_lines;            /* sysfs tells the line size of caches */
    bool cache_by_bank;          /* and of gfx8's shared caches one of four banks */
    bool mem_flags_new;          /* CONTIGUOUS and EXT_COHERENT honoured */
    uint32_t residency;          /* enum fake_residency */

    bool svm, p2p, move_notify; /* HSA_AMD_SVM, HSA_AMD_P2P, DMABUF_MOVE_NOTIFY */

    struct fake_fraction system_limit; /* of RAM */
    uint64_t system_limit_less;        /* taken off after that */
    struct fake_fraction ttm_limit;    /* of RAM */
    uint64_t gtt_min;               /* 0: a GPU's GTT is as large as the TTM limit; else it has */
    struct fake_fraction gtt_limit; /* this much of RAM, but as much as VRAM and gtt_min */
    struct fake_fraction page_table_vram; /* of the sum of all VRAM, kept back on every GPU */
    uint64_t page_table_vram_min;         /* but at least this */

    char sysfs_without[160]; /* keys not printed, separated by blanks */
    char gfx_without[160];   /* chips it has no driver for, "gfx942" ... */
};

struct fake_profile {
    char machine_name[32]; /* without the count */
    uint32_t kfd_node;     /* enum fake_presence of /dev/kfd */
    uint32_t cpu_count, gpu_count;
    struct fake_cpu cpus[FAKE_MAX_CPUS];
    struct fake_gpu gpus[FAKE_MAX_GPUS];
    uint32_t link_count;
    struct fake_link *links; /* sorted by node_from, then peer */
    /* Where in links a node's begin; those to peers behind the others. */
    uint32_t link_start[FAKE_MAX_CPUS + FAKE_MAX_GPUS + 1],
        peer_start[FAKE_MAX_CPUS + FAKE_MAX_GPUS];
    struct fake_kernel kernel;
};

/*
 * machine: "name", "name:count" or a file's path, with or without ":count"; kernel: a name, a path
 * or NULL for "6.12". A word with a '/' is a path. -EINVAL malformed or unknown, -ENOENT and others
 * from reading a file, -ENOMEM; with a text.
 */
int fake_profile_load(const char *machine, const char *kernel, struct fake_profile **out);
void fake_profile_free(struct fake_profile *profile);

/* Topology nodes: CPUs first. */
uint32_t fake_profile_node_count(const struct fake_profile *profile);
uint32_t fake_profile_gpu_node(const struct fake_profile *profile, uint32_t gpu);
/* Index of a GPU by gpu_id or render minor; -1 when there is none. */
int fake_profile_gpu_by_id(const struct fake_profile *profile, uint32_t gpu_id);
int fake_profile_gpu_by_minor(const struct fake_profile *profile, uint32_t render_minor);
/* The entry of one node towards another, or NULL. */
const struct fake_link *fake_profile_link(const struct fake_profile *profile, uint32_t node_from,
                                          uint32_t node_to, bool peer);
/* KFD's rule: may target's page tables point at the VRAM (else doorbells or registers) of owner? */
bool fake_profile_peer(const struct fake_profile *profile, uint32_t target, uint32_t owner,
                       bool vram);

static inline bool fake_gpu_large_bar(const struct fake_gpu *gpu)
{
    return gpu->apu || gpu->visible_vram >= gpu->vram;
}

static inline uint32_t fake_gpu_gfx_major(const struct fake_gpu *gpu)
{
    return gpu->gfx_target_version / 10000u;
}

/* Sum of RAM over the CPU nodes. */
uint64_t fake_profile_ram(const struct fake_profile *profile);
/* Bytes KFD keeps back on every GPU for page tables. */
uint64_t fake_profile_page_table_reserve(const struct fake_profile *profile);
/* KFD's limits on system memory and TTM pages, in bytes. */
uint64_t fake_profile_system_limit(const struct fake_profile *profile);
uint64_t fake_profile_ttm_limit(const struct fake_profile *profile);
/* What DRM tells of the system memory a GPU may map, in bytes. */
uint64_t fake_profile_gtt_size(const struct fake_profile *profile, uint32_t gpu);

/* The i-th built-in machine or kernel by its suffix, ".machine" or ".kernel": its name and what it
 * is in a few words. -ENOENT past the end. */
int fake_profile_list(const char *suffix, size_t i, char *name, size_t name_size, char *about,
                      size_t about_size);

/* Built-in files. */
struct fake_builtin {
    const char *name; /* "mi300x.machine" */
    const char *text;
    size_t size;
};
extern const struct fake_builtin fake_builtins[];
extern const size_t fake_builtin_count;

#endif
