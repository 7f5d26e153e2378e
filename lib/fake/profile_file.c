/* SPDX-License-Identifier: MIT */
#include "fake/profile_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/error.h"

#define FILE_MAX_BYTES (256u << 10)
#define LIKE_DEPTH 4

/* How deep `like` files are nested at present. */
static _Thread_local unsigned int depth;

static const char *const presence_names[] = {"present", "missing", "denied", NULL};
static const char *const residency_names[] = {"alloc", "map", NULL};
static const char *const link_names[] = {"none", "pcie", "xgmi", NULL};

#define U32(s, f)                                               \
    {                                                           \
#f, FAKE_CONF_U32, offsetof(struct s, f), 0, NULL, NULL \
    }
#define U64(s, f)                                               \
    {                                                           \
#f, FAKE_CONF_U64, offsetof(struct s, f), 0, NULL, NULL \
    }
#define SIZE(s, f)                                               \
    {                                                            \
#f, FAKE_CONF_SIZE, offsetof(struct s, f), 0, NULL, NULL \
    }
#define BOOL(s, f)                                               \
    {                                                            \
#f, FAKE_CONF_BOOL, offsetof(struct s, f), 0, NULL, NULL \
    }
#define FRACTION(s, f)                                               \
    {                                                                \
#f, FAKE_CONF_FRACTION, offsetof(struct s, f), 0, NULL, NULL \
    }
#define STRING(s, f)                                                                        \
    {                                                                                       \
#f, FAKE_CONF_STRING, offsetof(struct s, f), sizeof(((struct s *)0)->f), NULL, NULL \
    }
#define ENUM(s, f, n)                                         \
    {                                                         \
#f, FAKE_CONF_ENUM, offsetof(struct s, f), 0, n, NULL \
    }
#define CALL(n, c)                       \
    {                                    \
        n, FAKE_CONF_CALL, 0, 0, NULL, c \
    }
#define END                                    \
    {                                          \
        NULL, FAKE_CONF_CALL, 0, 0, NULL, NULL \
    }

static int gpu_cache(struct fake_conf *conf, void *target, const char *value)
{
    struct fake_gpu *gpu = &((struct fake_gpu_entry *)target)->gpu;
    struct fake_cache c;
    int end = 0;

    if (sscanf(value, "%u %u %u %u %u%n", &c.level, &c.size_kib, &c.line_size, &c.type, &c.cus,
               &end) != 5 ||
        value[end] != '\0' || c.cus == 0)
        return fake_conf_fail(conf, "'cache': expected five numbers: level, KiB, line bytes, type, "
                                    "compute units that share one");
    if (gpu->cache_count == FAKE_MAX_CACHES)
        return fake_conf_fail(conf, "'cache': expected at most %u kinds", FAKE_MAX_CACHES);
    gpu->caches[gpu->cache_count++] = c;
    return 0;
}

static int gpu_tile_modes(struct fake_conf *conf, void *target, const char *value)
{
    struct fake_gpu *gpu = &((struct fake_gpu_entry *)target)->gpu;
    unsigned first, mode;
    int end = 0, used;

    if (sscanf(value, "%u%n", &first, &end) == 1) {
        for (value += end; sscanf(value, "%x%n", &mode, &used) == 1; value += used) {
            if (first >= FAKE_TILE_MODES)
                break;
            gpu->tile_modes[first++] = mode;
        }
    }
    if (end == 0 || *value != '\0')
        return fake_conf_fail(conf,
                              "'tile_modes': expected the number of the first and hexadecimal "
                              "values, at most %u in all",
                              FAKE_TILE_MODES);
    return 0;
}

static int gpu_like(struct fake_conf *conf, void *target, const char *value)
{
    struct fake_machine_file *other = malloc(sizeof(*other));
    int err;

    if (other == NULL)
        return -ENOMEM;
    err = fake_machine_file_read(value, other);
    if (err == 0 && other->gpu_count == 0)
        err = fake_conf_fail(conf, "'like': machine '%s' has no GPU", value);
    else if (err != 0)
        err = kfd_fail_in(err, "%s:%u: 'like'", conf->file, conf->line);
    else {
        other->gpus[0].line = ((struct fake_gpu_entry *)target)->line;
        *(struct fake_gpu_entry *)target = other->gpus[0];
    }
    free(other);
    return err;
}

static int kernel_like(struct fake_conf *conf, void *target, const char *value)
{
    int err = fake_kernel_file_read(value, target);

    return err != 0 ? kfd_fail_in(err, "%s:%u: 'like'", conf->file, conf->line) : 0;
}

static int kernel_hole(struct fake_conf *conf, void *target, const char *value)
{
    uint64_t nr;

    if (fake_conf_number(value, 63, &nr) != 0)
        return fake_conf_fail(conf, "'kfd_hole': '%s' is not a request number below 64", value);
    ((struct fake_kernel *)target)->kfd_holes |= UINT64_C(1) << nr;
    return 0;
}

static int link_end(struct fake_conf *conf, const char *key, const char *value, uint32_t *out)
{
    uint64_t n;

    if (strncmp(value, "gpu", 3) == 0 && fake_conf_number(value + 3, FAKE_MAX_GPUS - 1, &n) == 0)
        *out = (uint32_t)n | FAKE_FIXED_GPU;
    else if (strncmp(value, "cpu", 3) == 0 &&
             fake_conf_number(value + 3, FAKE_MAX_CPUS - 1, &n) == 0)
        *out = (uint32_t)n;
    else
        return fake_conf_fail(conf, "'%s': '%s' is neither cpuN nor gpuN", key, value);
    return 0;
}

static int link_from(struct fake_conf *conf, void *target, const char *value)
{
    return link_end(conf, "from", value, &((struct fake_fixed_link *)target)->from);
}

static int link_to(struct fake_conf *conf, void *target, const char *value)
{
    return link_end(conf, "to", value, &((struct fake_fixed_link *)target)->to);
}

static const struct fake_conf_key machine_keys[] = {
    STRING(fake_machine_file, name),
    STRING(fake_machine_file, about),
    U32(fake_machine_file, count),
    ENUM(fake_machine_file, kfd_node, presence_names),
    END,
};

#define CPU(k, f)                                                                \
    {                                                                            \
#f, FAKE_CONF_##k, offsetof(struct fake_cpu_entry, cpu.f), 0, NULL, NULL \
    }

static const struct fake_conf_key cpu_keys[] = {
    U32(fake_cpu_entry, count),
    CPU(U32, cores),
    CPU(SIZE, ram),
    CPU(U32, clock_mhz),
    CPU(U32, mem_width),
    CPU(U32, mem_clk_max),
    END,
};

#define GPU(k, f)                                                  \
    {                                                              \
#f, FAKE_CONF_##k, offsetof(struct fake_gpu_entry, gpu.f), \
            sizeof(((struct fake_gpu *)0)->f), NULL, NULL          \
    }

static const struct fake_conf_key gpu_keys[] = {
    CALL("like", gpu_like),
    U32(fake_gpu_entry, count),
    U32(fake_gpu_entry, first_bus),
    U32(fake_gpu_entry, bus_step),
    U32(fake_gpu_entry, slot_step),
    CALL("cache", gpu_cache),
    CALL("tile_modes", gpu_tile_modes),
    {"render_node", FAKE_CONF_ENUM, offsetof(struct fake_gpu_entry, gpu.render_node), 0,
     presence_names, NULL},
    GPU(STRING, name),
    GPU(STRING, product),
    GPU(U32, partitions),
    GPU(U32, vendor_id),
    GPU(U32, device_id),
    GPU(U32, subsystem_vendor),
    GPU(U32, subsystem_device),
    GPU(U32, domain),
    GPU(U32, pci_rev),
    GPU(U32, chip_rev),
    GPU(U32, external_rev),
    GPU(U32, family),
    GPU(U32, gb_addr_config),
    GPU(U64, unique_id),
    GPU(U32, gfx_target_version),
    GPU(U32, num_xcc),
    GPU(U32, simd_count),
    GPU(U32, simd_per_cu),
    GPU(U32, array_count),
    GPU(U32, simd_arrays_per_engine),
    GPU(U32, cu_per_simd_array),
    GPU(U32, max_waves_per_simd),
    GPU(U32, wave_front_size),
    GPU(U32, max_slots_scratch_cu),
    GPU(U32, lds_size_in_kb),
    GPU(U32, gds_size_in_kb),
    GPU(U32, num_gws),
    GPU(U32, num_sdma_engines),
    GPU(U32, num_sdma_xgmi_engines),
    GPU(U32, num_sdma_queues_per_engine),
    GPU(U32, num_cp_queues),
    GPU(U32, cwsr_size),
    GPU(U32, ctl_stack_size),
    GPU(U32, debug_memory_size),
    GPU(U32, eop_buffer_size),
    GPU(U32, max_engine_clk_fcompute),
    GPU(U32, fw_version),
    GPU(U32, sdma_fw_version),
    GPU(U32, capability),
    GPU(U32, debug_prop),
    GPU(SIZE, vram),
    GPU(SIZE, visible_vram),
    GPU(SIZE, vram_pinned),
    GPU(U32, mem_width),
    GPU(U32, mem_clk_max),
    GPU(U32, vram_type),
    GPU(U32, va_bits),
    GPU(U32, doorbell_size),
    GPU(BOOL, apu),
    GPU(U32, gds_size),
    GPU(U32, rb_pipes),
    GPU(U32, raster_config),
    GPU(U32, compute_rings),
    GPU(U32, cp_fw_version),
    GPU(BOOL, no_atomics),
    GPU(BOOL, no_clocks),
    GPU(BOOL, xnack),
    GPU(U64, hive_id),
    GPU(U32, hive_size),
    GPU(U32, pcie_bandwidth),
    GPU(U32, xgmi_min_bandwidth),
    GPU(U32, xgmi_max_bandwidth),
    GPU(U32, xgmi_weight),
    GPU(U32, render_minor),
    GPU(BOOL, hidden),
    END,
};

static const struct fake_conf_key link_keys[] = {
    CALL("from", link_from),
    CALL("to", link_to),
    ENUM(fake_fixed_link, type, link_names),
    U32(fake_fixed_link, weight),
    U32(fake_fixed_link, min_bandwidth),
    U32(fake_fixed_link, max_bandwidth),
    BOOL(fake_fixed_link, both),
    END,
};

static const struct fake_conf_key kernel_keys[] = {
    CALL("like", kernel_like),
    STRING(fake_kernel, name),
    STRING(fake_kernel, about),
    STRING(fake_kernel, release),
    U32(fake_kernel, kfd_minor),
    U32(fake_kernel, drm_minor),
    STRING(fake_kernel, drm_date),
    U32(fake_kernel, kfd_last_request),
    CALL("kfd_hole", kernel_hole),
    U32(fake_kernel, create_queue_size),
    U32(fake_kernel, gem_va_size),
    U32(fake_kernel, dev_info_size),
    U64(fake_kernel, gpuvm_base),
    U64(fake_kernel, gem_va_bottom),
    U64(fake_kernel, gem_va_reserved_top),
    U64(fake_kernel, trap_va_below_top),
    U64(fake_kernel, sysfs_capability_mask),
    BOOL(fake_kernel, import_checks_fd_first),
    BOOL(fake_kernel, import_foreign),
    BOOL(fake_kernel, acquire_used_vm),
    BOOL(fake_kernel, gem_va_restored),
    BOOL(fake_kernel, kfd_gem_handles),
    BOOL(fake_kernel, queue_buffer_checks),
    BOOL(fake_kernel, cache_lines),
    BOOL(fake_kernel, cache_by_bank),
    BOOL(fake_kernel, mem_flags_new),
    ENUM(fake_kernel, residency, residency_names),
    BOOL(fake_kernel, svm),
    BOOL(fake_kernel, p2p),
    BOOL(fake_kernel, move_notify),
    FRACTION(fake_kernel, system_limit),
    SIZE(fake_kernel, system_limit_less),
    FRACTION(fake_kernel, ttm_limit),
    SIZE(fake_kernel, gtt_min),
    FRACTION(fake_kernel, gtt_limit),
    FRACTION(fake_kernel, page_table_vram),
    SIZE(fake_kernel, page_table_vram_min),
    STRING(fake_kernel, sysfs_without),
    STRING(fake_kernel, gfx_without),
    END,
};

static int machine_section(struct fake_conf *conf, const char *name)
{
    struct fake_machine_file *m = conf->user;

    if (strcmp(name, "machine") == 0) {
        conf->keys = machine_keys;
        conf->target = m;
    } else if (strcmp(name, "cpu") == 0) {
        if (m->cpu_count == FAKE_MAX_CPUS)
            return fake_conf_fail(conf, "expected at most %u [cpu] sections", FAKE_MAX_CPUS);
        conf->keys = cpu_keys;
        conf->target = &m->cpus[m->cpu_count++];
        *(struct fake_cpu_entry *)conf->target =
            (struct fake_cpu_entry){.count = 1, .line = conf->line};
    } else if (strcmp(name, "gpu") == 0) {
        if (m->gpu_count == FAKE_MAX_GPUS)
            return fake_conf_fail(conf, "expected at most %u [gpu] sections", FAKE_MAX_GPUS);
        conf->keys = gpu_keys;
        conf->target = &m->gpus[m->gpu_count++];
        *(struct fake_gpu_entry *)conf->target =
            (struct fake_gpu_entry){.count = 1,
                                    .line = conf->line,
                                    .first_bus = 3,
                                    .bus_step = 4,
                                    .gpu = {.vendor_id = 0x1002,
                                            .subsystem_vendor = 0x1002,
                                            .num_xcc = 1,
                                            .partitions = 1,
                                            .visible_vram = UINT64_MAX,
                                            .va_bits = 47,
                                            .doorbell_size = 8192,
                                            .compute_rings = 8,
                                            .max_slots_scratch_cu = 32,
                                            .eop_buffer_size = 4096,
                                            .xgmi_weight = 15,
                                            .render_minor = 128}};
    } else if (strcmp(name, "link") == 0) {
        if (m->link_count == FAKE_MAX_FIXED_LINKS)
            return fake_conf_fail(conf, "expected at most %u [link] sections",
                                  FAKE_MAX_FIXED_LINKS);
        conf->keys = link_keys;
        conf->target = &m->links[m->link_count++];
        *(struct fake_fixed_link *)conf->target =
            (struct fake_fixed_link){.both = true, .line = conf->line};
    } else {
        return fake_conf_fail(conf, "'[%s]': expected [machine], [cpu], [gpu] or [link]", name);
    }
    return 0;
}

static int kernel_section(struct fake_conf *conf, const char *name)
{
    if (strcmp(name, "kernel") != 0)
        return fake_conf_fail(conf, "'[%s]': expected [kernel]", name);
    conf->keys = kernel_keys;
    conf->target = conf->user;
    return 0;
}

static const struct fake_builtin *builtin(const char *name, const char *suffix)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < fake_builtin_count; i++) {
        if (strncmp(fake_builtins[i].name, name, len) == 0 &&
            strcmp(fake_builtins[i].name + len, suffix) == 0)
            return &fake_builtins[i];
    }
    return NULL;
}

static int unknown(const char *name, const char *suffix)
{
    char all[256] = "";

    for (size_t i = 0; i < fake_builtin_count; i++) {
        const char *dot = strrchr(fake_builtins[i].name, '.');

        if (strcmp(dot, suffix) == 0)
            snprintf(all + strlen(all), sizeof(all) - strlen(all), " %.*s",
                     (int)(dot - fake_builtins[i].name), fake_builtins[i].name);
    }
    return kfd_fail(-EINVAL, "%s '%s' is not known: expected a path with a '/' or one of%s",
                    suffix + 1, name, all);
}

static int read_path(const char *path, char **text, size_t *size)
{
    FILE *f = fopen(path, "re");
    char *buf;

    if (f == NULL)
        return kfd_fail(-errno, "%s: %s", path, strerror(errno));
    buf = malloc(FILE_MAX_BYTES);
    if (buf == NULL) {
        fclose(f);
        return -ENOMEM;
    }
    *size = fread(buf, 1, FILE_MAX_BYTES, f);
    if (ferror(f) || *size == FILE_MAX_BYTES) {
        int err = ferror(f) ? -EIO : -EFBIG;

        fclose(f);
        free(buf);
        return kfd_fail(err, "%s: %s", path, strerror(-err));
    }
    fclose(f);
    *text = buf;
    return 0;
}

static int parse_named(struct fake_conf *conf, const char *name, const char *suffix)
{
    const struct fake_builtin *b;
    char *text = NULL;
    size_t size = 0;
    int err;

    if (depth >= LIKE_DEPTH)
        return kfd_fail(-EINVAL, "'%s': expected at most %d files behind each other", name,
                        LIKE_DEPTH);
    if (strchr(name, '/') == NULL) {
        char file[64];

        b = builtin(name, suffix);
        if (b == NULL)
            return unknown(name, suffix);
        snprintf(file, sizeof(file), "%s", b->name);
        conf->file = file;
        depth++;
        err = fake_conf_parse(conf, b->text, b->size);
        depth--;
        conf->file = NULL;
        return err;
    }
    err = read_path(name, &text, &size);
    if (err != 0)
        return err;
    conf->file = name;
    depth++;
    err = fake_conf_parse(conf, text, size);
    depth--;
    free(text);
    return err;
}

int fake_machine_file_read(const char *name, struct fake_machine_file *out)
{
    struct fake_conf conf = {.section = machine_section, .user = out};
    const char *base = strrchr(name, '/');

    memset(out, 0, sizeof(*out));
    out->count = 1;
    snprintf(out->name, sizeof(out->name), "%s", base != NULL ? base + 1 : name);
    snprintf(out->file, sizeof(out->file), "%s%s", name, base != NULL ? "" : ".machine");
    return parse_named(&conf, name, ".machine");
}

int fake_kernel_file_read(const char *name, struct fake_kernel *out)
{
    struct fake_conf conf = {.section = kernel_section, .user = out};

    memset(out, 0, sizeof(*out));
    out->sysfs_capability_mask = UINT64_MAX;
    return parse_named(&conf, name, ".kernel");
}
