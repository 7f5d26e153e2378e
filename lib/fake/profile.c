/* SPDX-License-Identifier: MIT */
#include "fake/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/links.h"
#include "fake/profile_file.h"
#include "kfd/error.h"

#define SIMD_ID_BASE 0x80001000u

uint32_t fake_profile_node_count(const struct fake_profile *p)
{
    return p->cpu_count + p->gpu_count;
}

uint32_t fake_profile_gpu_node(const struct fake_profile *p, uint32_t gpu)
{
    return p->cpu_count + gpu;
}

int fake_profile_gpu_by_id(const struct fake_profile *p, uint32_t gpu_id)
{
    for (uint32_t i = 0; i < p->gpu_count; i++) {
        if (p->gpus[i].gpu_id == gpu_id)
            return (int)i;
    }
    return -1;
}

int fake_profile_gpu_by_minor(const struct fake_profile *p, uint32_t render_minor)
{
    for (uint32_t i = 0; i < p->gpu_count; i++) {
        if (p->gpus[i].render_minor == render_minor)
            return (int)i;
    }
    return -1;
}

const struct fake_link *fake_profile_link(const struct fake_profile *p, uint32_t node_from,
                                          uint32_t node_to, bool peer)
{
    uint32_t low = 0, high = p->link_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct fake_link *l = &p->links[mid];

        if (l->node_from == node_from && l->peer == peer && l->node_to == node_to)
            return l;
        if (l->node_from < node_from ||
            (l->node_from == node_from &&
             (l->peer < peer || (l->peer == peer && l->node_to < node_to))))
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool fake_profile_peer(const struct fake_profile *p, uint32_t target, uint32_t owner, bool vram)
{
    uint32_t from = fake_profile_gpu_node(p, target), to = fake_profile_gpu_node(p, owner);
    const struct fake_link *l;

    if (target == owner || p->gpus[target].apu)
        return true;
    l = fake_profile_link(p, from, to, false);
    if (vram && l != NULL && l->type == FAKE_LINK_XGMI)
        return true;
    return fake_profile_link(p, from, to, true) != NULL;
}

uint64_t fake_profile_ram(const struct fake_profile *p)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->cpu_count; i++)
        sum += p->cpus[i].ram;
    return sum;
}

static uint64_t part(uint64_t whole, struct fake_fraction f)
{
    return f.den == 0 ? whole : whole / f.den * f.num;
}

uint64_t fake_profile_page_table_reserve(const struct fake_profile *p)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->gpu_count; i++)
        sum += p->gpus[i].vram;
    sum = part(sum, p->kernel.page_table_vram);
    return sum > p->kernel.page_table_vram_min ? sum : p->kernel.page_table_vram_min;
}

uint64_t fake_profile_system_limit(const struct fake_profile *p)
{
    uint64_t base = part(fake_profile_ram(p), p->kernel.system_limit);

    /* A small machine gives half, lest nothing is left. */
    if (base < 2 * p->kernel.system_limit_less)
        return base / 2;
    return base - p->kernel.system_limit_less;
}

uint64_t fake_profile_ttm_limit(const struct fake_profile *p)
{
    return part(fake_profile_ram(p), p->kernel.ttm_limit);
}

uint64_t fake_profile_gtt_size(const struct fake_profile *p, uint32_t gpu)
{
    uint64_t size = part(fake_profile_ram(p), p->kernel.gtt_limit);

    if (p->kernel.gtt_min == 0)
        return fake_profile_ttm_limit(p);
    if (size < p->gpus[gpu].vram)
        size = p->gpus[gpu].vram;
    return size < p->kernel.gtt_min ? p->kernel.gtt_min : size;
}

/* CRC-16, reflected polynomial 0x8005, as the kernel's crc16(). */
static uint16_t crc16(const uint8_t *data, size_t size)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1);
    }
    return crc;
}

static void derive_gpu_id(struct fake_profile *p, uint32_t g)
{
    struct fake_gpu *gpu = &p->gpus[g];
    uint32_t words[8] = {
        gpu->location_id & 0xff,
        gpu->subsystem_vendor | gpu->subsystem_device << 16,
        gpu->domain,
        gpu->device_id,
        gpu->location_id >> 8,
        (uint32_t)gpu->vram,
        (uint32_t)(gpu->vram >> 32),
        (gpu->partition * gpu->num_xcc + 1) | gpu->num_xcc << 16,
    };
    uint32_t id = crc16((const uint8_t *)words, sizeof(words));
    bool taken;

    if (id == 0)
        id = 1;
    do {
        taken = false;
        for (uint32_t i = 0; i < g; i++)
            taken |= p->gpus[i].gpu_id == id;
        if (taken)
            id = (id + 1) & 0xffff ? (id + 1) & 0xffff : 1;
    } while (taken);
    gpu->gpu_id = id;
}

/* What the rest of the fake relies on. */
static const struct {
    const char *name;
    size_t offset;
    uint32_t least, most;
} ranges[] = {
#define RANGE(field, least, most)                             \
    {                                                         \
#field, offsetof(struct fake_gpu, field), least, most \
    }
    RANGE(device_id, 1, 0xffff),
    RANGE(gfx_target_version, 70000, 129999),
    RANGE(simd_count, 1, 1u << 20),
    RANGE(simd_per_cu, 1, 64),
    RANGE(array_count, 1, 4096),
    RANGE(simd_arrays_per_engine, 1, 4096),
    RANGE(cu_per_simd_array, 1, 4096),
    RANGE(wave_front_size, 1, 64),
    RANGE(family, 1, UINT32_MAX),
    RANGE(num_xcc, 1, 64),
    RANGE(partitions, 1, FAKE_MAX_GPUS),
    RANGE(va_bits, 32, 48),
    RANGE(num_sdma_engines, 0, 16),
    RANGE(num_sdma_xgmi_engines, 0, 15),
    RANGE(num_sdma_queues_per_engine, 0, 16),
    RANGE(doorbell_size, 4096, 8192),
    RANGE(render_minor, 128, 255),
    RANGE(hive_size, 0, FAKE_MAX_GPUS),
#undef RANGE
};

static int check_gpu(const struct fake_gpu_entry *entry, const char *file)
{
    const struct fake_gpu *gpu = &entry->gpu;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        uint32_t value = *(const uint32_t *)((const char *)gpu + ranges[i].offset);

        if (value < ranges[i].least || value > ranges[i].most)
            return kfd_fail(-EINVAL, "%s:%u: [gpu] with %s %u, expected %u to %u", file,
                            entry->line, ranges[i].name, value, ranges[i].least, ranges[i].most);
    }
    if (gpu->simd_count < gpu->simd_per_cu || gpu->simd_count / gpu->simd_per_cu < gpu->array_count)
        return kfd_fail(-EINVAL,
                        "%s:%u: [gpu] with %u SIMDs, %u in each unit, and %u arrays, expected a "
                        "unit or more for each array",
                        file, entry->line, gpu->simd_count, gpu->simd_per_cu, gpu->array_count);
    if (gpu->vram == 0 || gpu->vram % 4096 != 0 || gpu->vram >> 48 != 0)
        return kfd_fail(-EINVAL,
                        "%s:%u: [gpu] with vram of %llu bytes, expected a multiple of 4096 below "
                        "256 TiB",
                        file, entry->line, (unsigned long long)gpu->vram);
    if (gpu->visible_vram > gpu->vram && gpu->visible_vram != UINT64_MAX)
        return kfd_fail(-EINVAL,
                        "%s:%u: [gpu] with visible_vram of %llu bytes, expected at most the %llu "
                        "of vram",
                        file, entry->line, (unsigned long long)gpu->visible_vram,
                        (unsigned long long)gpu->vram);
    return 0;
}

static bool word_in(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

static int check_kernel_drives(const struct fake_profile *p, const struct fake_gpu *gpu)
{
    uint32_t v = gpu->gfx_target_version;
    char gfx[32];

    snprintf(gfx, sizeof(gfx), "gfx%u%x%x", v / 10000, v / 100 % 100, v % 100);
    if (word_in(p->kernel.gfx_without, gfx))
        return kfd_fail(-EINVAL, "kernel %s has no driver for %s, the GPU of machine '%s'",
                        p->kernel.name, gfx, p->machine_name);
    return 0;
}

static int add_node(struct fake_profile *p, const struct fake_gpu_entry *entry, const char *file,
                    uint32_t card, uint32_t partition)
{
    uint32_t bus = entry->first_bus + card * entry->bus_step;
    struct fake_gpu *gpu;

    if (p->gpu_count == FAKE_MAX_GPUS)
        return kfd_fail(-EINVAL,
                        "%s:%u: [gpu] makes more than %u GPU nodes, expected at most these", file,
                        entry->line, FAKE_MAX_GPUS);
    gpu = &p->gpus[p->gpu_count];
    *gpu = entry->gpu;
    gpu->card = card;
    gpu->partition = partition;
    gpu->domain += bus >> 8;
    gpu->location_id = (bus & 0xff) << 8 | (card * entry->slot_step & 31) << 3;
    for (uint32_t i = 0; i < p->gpu_count; i++) {
        const struct fake_gpu *other = &p->gpus[i];

        if (other->card != card && other->domain == gpu->domain &&
            other->location_id == gpu->location_id)
            return kfd_fail(-EINVAL,
                            "%s:%u: [gpu] puts card %u at the PCI place of card %u, expected a "
                            "bus_step or slot_step that keeps them apart",
                            file, entry->line, card, other->card);
    }
    if (gpu->unique_id != 0)
        gpu->unique_id += card;
    if (gpu->visible_vram == UINT64_MAX)
        gpu->visible_vram = gpu->vram;
    if (gpu->hive_size > 1)
        gpu->hive_id += card / gpu->hive_size;
    else if (gpu->partitions == 1)
        gpu->hive_id = 0;
    /* Partitions in no hive still share their socket, which has its PCI place as its id. */
    if (gpu->partitions > 1 && gpu->hive_id == 0)
        gpu->hive_id = (uint64_t)gpu->domain << 32 | gpu->location_id;
    gpu->simd_id_base = SIMD_ID_BASE;
    if (p->gpu_count > 0) {
        const struct fake_gpu *last = gpu - 1;

        gpu->simd_id_base = last->simd_id_base + last->simd_count / last->simd_per_cu;
        if (gpu->render_minor <= last->render_minor)
            gpu->render_minor = last->render_minor + 1;
    }
    derive_gpu_id(p, p->gpu_count);
    p->gpu_count++;
    return 0;
}

static int expand(struct fake_profile *p, const struct fake_machine_file *file, uint32_t copies)
{
    uint32_t card = 0;
    int err;

    for (uint32_t i = 0; i < file->cpu_count; i++) {
        for (uint32_t n = 0; n < file->cpus[i].count; n++) {
            struct fake_cpu *cpu = &p->cpus[p->cpu_count];

            if (p->cpu_count == FAKE_MAX_CPUS)
                return kfd_fail(-EINVAL,
                                "%s:%u: [cpu] makes more than %u CPU nodes, expected at most these",
                                file->file, file->cpus[i].line, FAKE_MAX_CPUS);
            *cpu = file->cpus[i].cpu;
            if (p->cpu_count > 0)
                cpu->apic_base = cpu[-1].apic_base + cpu[-1].cores;
            p->cpu_count++;
        }
    }
    if (p->cpu_count == 0)
        return kfd_fail(-EINVAL, "%s: no [cpu], expected one or more", file->file);
    for (uint32_t copy = 0; copy < copies; copy++) {
        for (uint32_t i = 0; i < file->gpu_count; i++) {
            err = check_gpu(&file->gpus[i], file->file);
            if (err == 0)
                err = check_kernel_drives(p, &file->gpus[i].gpu);
            for (uint32_t n = 0; err == 0 && n < file->gpus[i].count; n++, card++) {
                for (uint32_t k = 0; err == 0 && k < file->gpus[i].gpu.partitions; k++)
                    err = add_node(p, &file->gpus[i], file->file, card, k);
            }
            if (err != 0)
                return err;
        }
    }
    /* Cards are spread over the sockets in order. */
    for (uint32_t g = 0; g < p->gpu_count; g++)
        p->gpus[g].cpu_node = p->gpus[g].card * p->cpu_count / card;
    return 0;
}

static int switch_set(struct fake_kernel *k, const char *word)
{
    bool on = strncmp(word, "no-", 3) != 0;
    const char *name = on ? word : word + 3;

    if (strcmp(name, "svm") == 0)
        k->svm = on;
    else if (strcmp(name, "p2p") == 0)
        k->p2p = on;
    else if (strcmp(name, "move_notify") == 0)
        k->move_notify = on;
    else
        return kfd_fail(-EINVAL,
                        "kernel switch '%s': expected svm, p2p or move_notify, or one of them "
                        "after 'no-'",
                        word);
    /* The one needs the other in the kernel's configuration. */
    if (k->p2p && !k->move_notify && strcmp(name, "p2p") == 0)
        k->move_notify = true;
    if (!k->move_notify)
        k->p2p = false;
    return 0;
}

/* "6.12+p2p+svm" */
static int load_kernel(const char *spec, struct fake_kernel *out)
{
    const char *start = strrchr(spec, '/');
    char word[256], *rest, *next;
    int err;

    if (strlen(spec) >= sizeof(word))
        return kfd_fail(-EINVAL, "kernel '%s': expected less than %zu characters", spec,
                        sizeof(word));
    strcpy(word, spec);
    rest = strchr(start != NULL ? word + (start - spec) : word, '+');
    if (rest != NULL)
        *rest++ = '\0';
    err = fake_kernel_file_read(word, out);
    for (; err == 0 && rest != NULL; rest = next) {
        next = strchr(rest, '+');
        if (next != NULL)
            *next++ = '\0';
        err = switch_set(out, rest);
    }
    if (err == 0 && out->kfd_last_request == 0)
        err = kfd_fail(-EINVAL, "%s: no kfd_last_request, expected one in [kernel]", spec);
    return err;
}

/* Splits "name:count"; a colon followed by anything but digits belongs to the name. */
static int split_count(const char *machine, char *name, size_t size, uint32_t *count)
{
    const char *colon = strrchr(machine, ':');
    size_t len = strlen(machine);
    uint64_t n = 0;

    if (colon != NULL && strchr(colon, '/') == NULL) {
        len = (size_t)(colon - machine);
        if (fake_conf_number(colon + 1, FAKE_MAX_GPUS, &n) != 0 || n == 0)
            return kfd_fail(-EINVAL, "machine '%s': expected a count of 1 to %u after the ':'",
                            machine, FAKE_MAX_GPUS);
    }
    if (len == 0 || len >= size)
        return kfd_fail(-EINVAL, "machine '%s': expected a name or path of 1 to %zu characters",
                        machine, size - 1);
    memcpy(name, machine, len);
    name[len] = '\0';
    *count = (uint32_t)n;
    return 0;
}

int fake_profile_load(const char *machine, const char *kernel, struct fake_profile **out)
{
    struct fake_machine_file *file = malloc(sizeof(*file));
    struct fake_profile *p = calloc(1, sizeof(*p));
    char name[256];
    uint32_t count = 0;
    int err = file != NULL && p != NULL ? 0 : -ENOMEM;

    if (err == 0 && machine == NULL)
        err = kfd_fail(-EINVAL, "no machine given: expected a name or a path");
    if (err == 0)
        err = split_count(machine, name, sizeof(name), &count);
    if (err == 0)
        err = fake_machine_file_read(name, file);
    if (err == 0)
        err = load_kernel(kernel != NULL ? kernel : "6.12", &p->kernel);
    if (err != 0)
        goto out;
    memcpy(p->machine_name, file->name, sizeof(p->machine_name));
    p->kfd_node = file->kfd_node;
    err = expand(p, file, count != 0 ? count : file->count);
    if (err == 0)
        err = fake_links_build(p, file);
out:
    free(file);
    if (err != 0) {
        fake_profile_free(p);
        return err;
    }
    *out = p;
    return 0;
}

int fake_profile_list(const char *suffix, size_t i, char *name, size_t name_size, char *about,
                      size_t about_size)
{
    bool machines = strcmp(suffix, ".machine") == 0;
    struct fake_machine_file *file;
    struct fake_kernel kernel;
    size_t n = 0;
    int err;

    while (n < fake_builtin_count &&
           (strcmp(strrchr(fake_builtins[n].name, '.'), suffix) != 0 || i-- != 0))
        n++;
    if (n == fake_builtin_count)
        return -ENOENT;
    snprintf(name, name_size, "%.*s", (int)(strlen(fake_builtins[n].name) - strlen(suffix)),
             fake_builtins[n].name);
    if (!machines) {
        err = fake_kernel_file_read(name, &kernel);
        snprintf(about, about_size, "%s", err == 0 ? kernel.about : "");
        return err;
    }
    file = malloc(sizeof(*file));
    err = file != NULL ? fake_machine_file_read(name, file) : -ENOMEM;
    snprintf(about, about_size, "%s", err == 0 ? file->about : "");
    free(file);
    return err;
}

void fake_profile_free(struct fake_profile *p)
{
    if (p == NULL)
        return;
    free(p->links);
    free(p);
}
