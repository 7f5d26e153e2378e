/* SPDX-License-Identifier: MIT */
/* The KFD topology: keys in the kernel's order, values from the profile. */
#include "fake/sysfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CAP_SVM 0x08000000u
#define CACHE_MAP_BITS 32u /* of one shader array */

enum heap {
    HEAP_SYSTEM,
    HEAP_PUBLIC,
    HEAP_PRIVATE,
};

static bool is_cpu(const struct fake_profile *p, uint32_t node)
{
    return node < p->cpu_count;
}

static const struct fake_gpu *gpu_of(const struct fake_profile *p, uint32_t node)
{
    return &p->gpus[node - p->cpu_count];
}

/* The device cgroup keeps a GPU's files from being read, not from being listed. */
static int permission(const struct fake_profile *p, uint32_t node)
{
    return !is_cpu(p, node) && gpu_of(p, node)->hidden ? -EPERM : 0;
}

static bool left_out(const struct fake_profile *p, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = p->kernel.sysfs_without; (at = strstr(at, key)) != NULL; at += len) {
        if ((at == p->kernel.sysfs_without || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0))
            return true;
    }
    return false;
}

static void line(const struct fake_profile *p, struct fake_text *out, const char *key,
                 uint64_t value)
{
    if (!left_out(p, key))
        fake_text_add(out, "%s %" PRIu64 "\n", key, value);
}

static uint32_t cu_count(const struct fake_gpu *gpu)
{
    return gpu->simd_count / gpu->simd_per_cu;
}

/* Caches of a shader array's units or fewer are shared inside it; a larger one is the chip's. */
static uint32_t cache_span(const struct fake_gpu *gpu, const struct fake_cache *cache)
{
    uint32_t arrays = gpu->array_count ? gpu->array_count : 1;
    uint32_t array = (cu_count(gpu) + arrays - 1) / arrays;

    return cache->cus <= array ? array : cu_count(gpu);
}

static uint32_t caches_per_span(const struct fake_gpu *gpu, const struct fake_cache *cache)
{
    return (cache_span(gpu, cache) + cache->cus - 1) / cache->cus;
}

static uint32_t cache_instances(const struct fake_gpu *gpu, const struct fake_cache *cache)
{
    uint32_t span = cache_span(gpu, cache);

    return (cu_count(gpu) + span - 1) / span * caches_per_span(gpu, cache);
}

static uint32_t cache_count(const struct fake_profile *p, uint32_t node)
{
    uint32_t sum = 0;

    if (is_cpu(p, node))
        return 0;
    for (uint32_t i = 0; i < gpu_of(p, node)->cache_count; i++)
        sum += cache_instances(gpu_of(p, node), &gpu_of(p, node)->caches[i]);
    return sum;
}

static uint32_t link_count(const struct fake_profile *p, uint32_t node, bool peer)
{
    return peer ? p->link_start[node + 1] - p->peer_start[node]
                : p->peer_start[node] - p->link_start[node];
}

/* The i-th link entry of a node, or NULL. */
static const struct fake_link *link_at(const struct fake_profile *p, uint32_t node, bool peer,
                                       uint32_t i)
{
    if (i >= link_count(p, node, peer))
        return NULL;
    return &p->links[(peer ? p->peer_start[node] : p->link_start[node]) + i];
}

static int number_below(uint32_t count, uint32_t i, char *buf, size_t size)
{
    if (i >= count)
        return -ENOENT;
    snprintf(buf, size, "%u", i);
    return 0;
}

static int node_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                     size_t size)
{
    return number_below(fake_profile_node_count(p), i, buf, size);
}

static int bank_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                     size_t size)
{
    return number_below(1, i, buf, size);
}

static int cache_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                      size_t size)
{
    return number_below(cache_count(p, args[0]), i, buf, size);
}

static int io_link_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                        size_t size)
{
    return number_below(link_count(p, args[0], false), i, buf, size);
}

static int p2p_link_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                         size_t size)
{
    return number_below(link_count(p, args[0], true), i, buf, size);
}

static int print_generation(const struct fake_profile *p, const uint32_t *args,
                            struct fake_text *out)
{
    fake_text_add(out, "%u\n", 1 + p->gpu_count);
    return 0;
}

static int print_system(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    line(p, out, "platform_oem", 0x20454b4146);
    line(p, out, "platform_id", 0x314b4146);
    line(p, out, "platform_rev", 1);
    return 0;
}

static int print_gpu_id(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    int err = permission(p, args[0]);

    if (err == 0)
        fake_text_add(out, "%u\n", is_cpu(p, args[0]) ? 0 : gpu_of(p, args[0])->gpu_id);
    return err;
}

static int print_name(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    int err = permission(p, args[0]);

    if (err == 0)
        fake_text_add(out, "%s\n", is_cpu(p, args[0]) ? "" : gpu_of(p, args[0])->name);
    return err;
}

/* The keys only a GPU has. */
static void print_gpu_only(const struct fake_profile *p, const struct fake_gpu *gpu,
                           struct fake_text *out)
{
    uint64_t capability = gpu->capability & p->kernel.sysfs_capability_mask;

    if (!p->kernel.svm)
        capability &= ~(uint64_t)CAP_SVM;
    line(p, out, "max_engine_clk_fcompute", gpu->max_engine_clk_fcompute);
    line(p, out, "local_mem_size", 0);
    line(p, out, "fw_version", gpu->fw_version);
    line(p, out, "capability", capability);
    line(p, out, "debug_prop", gpu->debug_prop);
    line(p, out, "sdma_fw_version", gpu->sdma_fw_version);
    line(p, out, "unique_id", gpu->unique_id);
    line(p, out, "num_xcc", gpu->num_xcc);
}

static int print_node(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    static const struct fake_gpu no_gpu;
    static const struct fake_cpu no_cpu;
    uint32_t node = args[0];
    bool cpu_node = is_cpu(p, node);
    const struct fake_gpu *gpu = cpu_node ? &no_gpu : gpu_of(p, node);
    const struct fake_cpu *cpu = cpu_node ? &p->cpus[node] : &no_cpu;
    int err = permission(p, node);

    if (err != 0)
        return err;
    line(p, out, "cpu_cores_count", cpu->cores);
    line(p, out, "simd_count", gpu->simd_count);
    line(p, out, "mem_banks_count", 1);
    line(p, out, "caches_count", cache_count(p, node));
    line(p, out, "io_links_count", link_count(p, node, false));
    line(p, out, "p2p_links_count", link_count(p, node, true));
    line(p, out, "cpu_core_id_base", cpu->apic_base);
    line(p, out, "simd_id_base", gpu->simd_id_base);
    line(p, out, "max_waves_per_simd", gpu->max_waves_per_simd);
    line(p, out, "lds_size_in_kb", gpu->lds_size_in_kb);
    line(p, out, "gds_size_in_kb", gpu->gds_size_in_kb);
    line(p, out, "num_gws", gpu->num_gws);
    line(p, out, "wave_front_size", gpu->wave_front_size);
    line(p, out, "array_count", gpu->array_count);
    line(p, out, "simd_arrays_per_engine", gpu->simd_arrays_per_engine);
    line(p, out, "cu_per_simd_array", gpu->cu_per_simd_array);
    line(p, out, "simd_per_cu", gpu->simd_per_cu);
    line(p, out, "max_slots_scratch_cu", gpu->max_slots_scratch_cu);
    line(p, out, "gfx_target_version", gpu->gfx_target_version);
    line(p, out, "vendor_id", gpu->vendor_id);
    line(p, out, "device_id", gpu->device_id);
    line(p, out, "location_id", gpu->location_id | (gpu->partitions > 1 ? gpu->partition : 0));
    line(p, out, "domain", gpu->domain);
    line(p, out, "drm_render_minor", gpu->render_minor);
    line(p, out, "hive_id", gpu->hive_id);
    line(p, out, "num_sdma_engines", gpu->num_sdma_engines);
    line(p, out, "num_sdma_xgmi_engines", gpu->num_sdma_xgmi_engines);
    line(p, out, "num_sdma_queues_per_engine", gpu->num_sdma_queues_per_engine);
    line(p, out, "num_cp_queues", gpu->num_cp_queues);
    line(p, out, "cwsr_size", gpu->cwsr_size);
    line(p, out, "ctl_stack_size", gpu->ctl_stack_size);
    if (!cpu_node)
        print_gpu_only(p, gpu, out);
    /* The same CPU clock on every node. */
    line(p, out, "max_engine_clk_ccompute", p->cpus[0].clock_mhz);
    return 0;
}

static int print_bank(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    uint32_t node = args[0];
    int err = permission(p, node);

    if (err != 0)
        return err;
    if (is_cpu(p, node)) {
        line(p, out, "heap_type", HEAP_SYSTEM);
        line(p, out, "size_in_bytes", p->cpus[node].ram);
        line(p, out, "flags", 0);
        line(p, out, "width", p->cpus[node].mem_width);
        line(p, out, "mem_clk_max", p->cpus[node].mem_clk_max);
    } else {
        const struct fake_gpu *gpu = gpu_of(p, node);

        line(p, out, "heap_type", fake_gpu_large_bar(gpu) ? HEAP_PUBLIC : HEAP_PRIVATE);
        line(p, out, "size_in_bytes", gpu->vram);
        line(p, out, "flags", 0);
        line(p, out, "width", gpu->mem_width);
        line(p, out, "mem_clk_max", gpu->mem_clk_max);
    }
    return 0;
}

static bool by_bank(const struct fake_profile *p, const struct fake_gpu *gpu,
                    const struct fake_cache *cache)
{
    return p->kernel.cache_by_bank && fake_gpu_gfx_major(gpu) == 8 && cache->level == 1 &&
           cache->cus > 1;
}

static int print_cache(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    const struct fake_gpu *gpu = gpu_of(p, args[0]);
    const struct fake_cache *cache = gpu->caches;
    uint32_t i = args[1], in_span, shared;
    bool whole;
    int err = permission(p, args[0]);

    if (err != 0)
        return err;
    for (; i >= cache_instances(gpu, cache); cache++)
        i -= cache_instances(gpu, cache);
    in_span = i % caches_per_span(gpu, cache) * cache->cus;
    shared = cache_span(gpu, cache) - in_span;
    if (shared > cache->cus)
        shared = cache->cus;
    line(p, out, "processor_id_low",
         gpu->simd_id_base + i / caches_per_span(gpu, cache) * cache_span(gpu, cache) + in_span);
    whole = gpu->array_count && cache_span(gpu, cache) == cu_count(gpu);
    line(p, out, "level", cache->level);
    line(p, out, "size", by_bank(p, gpu, cache) ? cache->size_kib / 4 : cache->size_kib);
    line(p, out, "cache_line_size", p->kernel.cache_lines ? cache->line_size : 0);
    line(p, out, "cache_lines_per_tag", 0);
    line(p, out, "association", 0);
    line(p, out, "latency", 0);
    line(p, out, "type", cache->type);
    fake_text_add(out, "sibling_map ");
    for (uint32_t b = 0, array = gpu->array_count; b < CACHE_MAP_BITS * (whole ? array : 1); b++)
        fake_text_add(out, "%s%d", b ? "," : "",
                      b % CACHE_MAP_BITS < (whole ? cu_count(gpu) / array : shared));
    fake_text_add(out, "\n");
    return 0;
}

static int print_link(const struct fake_profile *p, const uint32_t *args, bool peer,
                      struct fake_text *out)
{
    const struct fake_link *l = link_at(p, args[0], peer, args[1]);
    int err = permission(p, args[0]);

    if (err == 0)
        err = permission(p, l->node_to);
    if (err != 0)
        return err;
    line(p, out, "type", l->type);
    line(p, out, "version_major", 0);
    line(p, out, "version_minor", 0);
    line(p, out, "node_from", l->node_from);
    line(p, out, "node_to", l->node_to);
    line(p, out, "weight", l->weight);
    line(p, out, "min_latency", l->min_latency);
    line(p, out, "max_latency", l->max_latency);
    line(p, out, "min_bandwidth", l->min_bandwidth);
    line(p, out, "max_bandwidth", l->max_bandwidth);
    line(p, out, "recommended_transfer_size", l->recommended_transfer_size);
    line(p, out, "recommended_sdma_engine_id_mask", l->recommended_sdma_engine_id_mask);
    line(p, out, "flags", l->flags);
    return 0;
}

static int print_io_link(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    return print_link(p, args, false, out);
}

static int print_p2p_link(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    return print_link(p, args, true, out);
}

#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

const struct fake_sysfs_row fake_topology_rows[] = {
    {TOPOLOGY, NULL, NULL, NULL},
    {TOPOLOGY "/generation_id", NULL, print_generation, NULL},
    {TOPOLOGY "/system_properties", NULL, print_system, NULL},
    {TOPOLOGY "/nodes", NULL, NULL, NULL},
    {TOPOLOGY "/nodes/#", node_name, NULL, NULL},
    {TOPOLOGY "/nodes/#/gpu_id", NULL, print_gpu_id, NULL},
    {TOPOLOGY "/nodes/#/name", NULL, print_name, NULL},
    {TOPOLOGY "/nodes/#/properties", NULL, print_node, NULL},
    {TOPOLOGY "/nodes/#/mem_banks", NULL, NULL, NULL},
    {TOPOLOGY "/nodes/#/mem_banks/#", bank_name, NULL, NULL},
    {TOPOLOGY "/nodes/#/mem_banks/#/properties", NULL, print_bank, NULL},
    {TOPOLOGY "/nodes/#/caches", NULL, NULL, NULL},
    {TOPOLOGY "/nodes/#/caches/#", cache_name, NULL, NULL},
    {TOPOLOGY "/nodes/#/caches/#/properties", NULL, print_cache, NULL},
    {TOPOLOGY "/nodes/#/io_links", NULL, NULL, NULL},
    {TOPOLOGY "/nodes/#/io_links/#", io_link_name, NULL, NULL},
    {TOPOLOGY "/nodes/#/io_links/#/properties", NULL, print_io_link, NULL},
    {TOPOLOGY "/nodes/#/p2p_links", NULL, NULL, NULL},
    {TOPOLOGY "/nodes/#/p2p_links/#", p2p_link_name, NULL, NULL},
    {TOPOLOGY "/nodes/#/p2p_links/#/properties", NULL, print_p2p_link, NULL},
    {TOPOLOGY "/nodes/#/perf", NULL, NULL, NULL},
};
const size_t fake_topology_row_count = sizeof(fake_topology_rows) / sizeof(fake_topology_rows[0]);
