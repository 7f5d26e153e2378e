/* SPDX-License-Identifier: MIT */
#include "kfd/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/error.h"
#include "kfd/poison.h"

#define TEXT_SIZE 65536u /* a sysfs file is one page, and pages go up to 64 KiB */
#define PATH_SIZE 160
#define SCAN_TRIES 8

#define KEY(type, key, member, needed)                                   \
    {                                                                    \
        key, offsetof(type, member), sizeof(((type *)0)->member), needed \
    }
#define NODE_KEY(key, member) KEY(struct kfd_device_info, key, member, false)
#define NODE_KEY_NEEDED(key, member) KEY(struct kfd_device_info, key, member, true)

static const struct kfd_topology_key node_keys[] = {
    NODE_KEY("simd_count", simd_count),
    NODE_KEY("max_waves_per_simd", max_waves_per_simd),
    NODE_KEY("lds_size_in_kb", lds_size_kb),
    NODE_KEY("wave_front_size", wave_front_size),
    NODE_KEY("array_count", array_count),
    NODE_KEY("simd_per_cu", simd_per_cu),
    NODE_KEY("gfx_target_version", gfx_version),
    NODE_KEY("vendor_id", vendor_id),
    NODE_KEY_NEEDED("device_id", device_id),
    NODE_KEY("location_id", location_id),
    NODE_KEY("domain", domain),
    NODE_KEY_NEEDED("drm_render_minor", render_minor),
    NODE_KEY("hive_id", hive_id),
    NODE_KEY("max_engine_clk_fcompute", max_clock_mhz),
    NODE_KEY("capability", capability),
    NODE_KEY("unique_id", unique_id),
    NODE_KEY("num_xcc", num_xcc),
};

struct bank {
    uint64_t size;
    uint32_t heap, width, clock;
};

enum heap_type {
    HEAP_PUBLIC = 1,
    HEAP_PRIVATE = 2,
};

static const struct kfd_topology_key bank_keys[] = {
    KEY(struct bank, "heap_type", heap, true),
    KEY(struct bank, "size_in_bytes", size, true),
    KEY(struct bank, "width", width, false),
    KEY(struct bank, "mem_clk_max", clock, false),
};

static const struct kfd_topology_key link_keys[] = {
    KEY(struct kfd_link_info, "type", type, true),
    KEY(struct kfd_link_info, "node_from", node_from, true),
    KEY(struct kfd_link_info, "node_to", node_to, true),
    KEY(struct kfd_link_info, "weight", weight, false),
    KEY(struct kfd_link_info, "min_bandwidth", min_bandwidth, false),
    KEY(struct kfd_link_info, "max_bandwidth", max_bandwidth, false),
    KEY(struct kfd_link_info, "flags", flags, false),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The scan under way. */
struct scan {
    struct kfd_sys *sys;
    struct kfd_topology *topo;
    char *text; /* TEXT_SIZE bytes */
};

/* Reads a decimal that ends at a newline or the text's end. Returns where, or NULL. */
static const char *parse_decimal(const char *p, uint64_t *out)
{
    uint64_t value = 0;

    if (*p < '0' || *p > '9')
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    if (*p != '\n' && *p != '\0')
        return NULL;
    *out = value;
    return p;
}

static bool store(const struct kfd_topology_key *key, uint64_t value, void *out)
{
    char *at = (char *)out + key->offset;

    if (key->size == sizeof(uint64_t)) {
        memcpy(at, &value, sizeof(value));
    } else {
        uint32_t narrow = (uint32_t)value;

        if (value > UINT32_MAX)
            return false;
        memcpy(at, &narrow, sizeof(narrow));
    }
    return true;
}

static const struct kfd_topology_key *find_key(const struct kfd_topology_key *keys, uint32_t n,
                                               const char *name, size_t len)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strlen(keys[i].name) == len && memcmp(keys[i].name, name, len) == 0)
            return &keys[i];
    }
    return NULL;
}

int kfd_topology_parse(const char *text, const struct kfd_topology_key *keys, uint32_t n, void *out)
{
    uint64_t seen = 0;
    unsigned line = 1;

    for (const char *p = text; *p; line++) {
        size_t len = strcspn(p, " \n");
        const struct kfd_topology_key *key = find_key(keys, n, p, len);
        uint64_t value;

        if (key) {
            if (p[len] != ' ' || !parse_decimal(p + len + 1, &value))
                return kfd_fail(-EINVAL, "line %u: %s without a decimal value", line, key->name);
            if (!store(key, value, out))
                return kfd_fail(-EINVAL, "line %u: %s %llu does not fit 32 bits", line, key->name,
                                (unsigned long long)value);
            seen |= UINT64_C(1) << (key - keys);
        }
        p += strcspn(p, "\n");
        if (*p)
            p++;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (keys[i].required && !(seen >> i & 1))
            return kfd_fail(-EINVAL, "no %s", keys[i].name);
    }
    return 0;
}

static int read_text(struct scan *scan, const char *path)
{
    int ret = scan->sys->ops->read_file(scan->sys, path, scan->text, TEXT_SIZE);

    if (ret < 0)
        return kfd_fail(ret, "%s: %s%s", path, kfd_errno_name(ret),
                        ret == -EPERM ? " (hidden by the device cgroup)" : "");
    return 0;
}

static int read_number(struct scan *scan, const char *path, uint64_t *out)
{
    int ret = read_text(scan, path);

    if (ret == 0 && !parse_decimal(scan->text, out))
        ret = kfd_fail(-EINVAL, "%s: not a decimal", path);
    return ret;
}

static int read_keys(struct scan *scan, const char *path, const struct kfd_topology_key *keys,
                     uint32_t n, void *out)
{
    int ret = read_text(scan, path);

    if (ret == 0 && kfd_topology_parse(scan->text, keys, n, out) < 0)
        ret = kfd_fail_in(-EINVAL, "%s", path);
    return ret;
}

/* The numbers that name a folder's entries, ascending. */
struct numbers {
    uint32_t *value;
    uint32_t count, room;
};

static int add_number(void *arg, const char *name)
{
    struct numbers *list = arg;
    uint64_t value;

    if (!parse_decimal(name, &value) || value > UINT32_MAX)
        return 0;
    if (list->count == list->room) {
        uint32_t room = list->room ? list->room * 2 : 16;
        uint32_t *grown = realloc(list->value, room * sizeof(*grown));

        if (!grown)
            return kfd_fail(-ENOMEM, "no memory for a list of %u nodes", room);
        list->value = grown;
        list->room = room;
    }
    list->value[list->count++] = (uint32_t)value;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The caller frees list->value, also on failure. */
static int list_numbers(struct scan *scan, const char *path, struct numbers *list)
{
    int ret;

    *list = (struct numbers){0};
    ret = scan->sys->ops->list_dir(scan->sys, path, add_number, list);
    if (ret < 0)
        kfd_fail(ret, "%s: %s", path, kfd_errno_name(ret));
    if (list->count)
        qsort(list->value, list->count, sizeof(*list->value), compare_numbers);
    return ret;
}

/* Grows an array by one zeroed element. */
static int grow(void **array, uint32_t *count, size_t size)
{
    void *grown = realloc(*array, (size_t)(*count + 1) * size);

    if (!grown)
        return kfd_fail(-ENOMEM, "no memory for the topology");
    memset((char *)grown + *count * size, 0, size);
    *array = grown;
    (*count)++;
    return 0;
}

/* Leaves out what failed with err, unless that is a shortage, which ends the scan. */
static int skip(struct scan *scan, const char *what, int err)
{
    if (kfd_error_is_shortage(err))
        return err;
    return kfd_notes_add(&scan->topo->skipped, "%s: %s", what, kfd_error_text());
}

/* VRAM of all banks; it counts as visible if none is private. */
static int read_banks(struct scan *scan, uint32_t node, struct kfd_device_info *info)
{
    char path[PATH_SIZE];
    struct numbers banks;
    int ret;

    snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/mem_banks", node);
    ret = list_numbers(scan, path, &banks);
    if (ret == -ENOENT)
        ret = 0;
    info->large_bar = banks.count > 0;
    for (uint32_t i = 0; ret == 0 && i < banks.count; i++) {
        struct bank bank = {0};

        snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/mem_banks/%u/properties", node,
                 banks.value[i]);
        ret = read_keys(scan, path, bank_keys, COUNT(bank_keys), &bank);
        if (kfd_error_is_shortage(ret))
            break;
        if (ret < 0 || (bank.heap != HEAP_PUBLIC && bank.heap != HEAP_PRIVATE))
            continue;
        if (bank.size > UINT64_MAX - info->vram_size)
            ret = kfd_fail(-EINVAL, "%s: size_in_bytes overflows", path);
        info->vram_size += bank.size;
        info->mem_width_bits = bank.width;
        info->mem_clock_mhz = bank.clock;
        if (bank.heap == HEAP_PRIVATE)
            info->large_bar = false;
    }
    if (info->vram_size == 0)
        info->large_bar = false;
    free(banks.value);
    return ret;
}

/* Only a shortage is an error: older kernels have no name. */
static int read_name(struct scan *scan, uint32_t node, struct kfd_device_info *info)
{
    char path[PATH_SIZE];
    int ret;

    snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/name", node);
    ret = read_text(scan, path);
    if (ret == 0) {
        scan->text[strcspn(scan->text, "\n")] = '\0';
        snprintf(info->product, sizeof(info->product), "%.*s", (int)sizeof(info->product) - 1,
                 scan->text);
    }
    return kfd_error_is_shortage(ret) ? ret : 0;
}

static int read_gpu(struct scan *scan, uint32_t node, uint32_t gpu_id)
{
    struct kfd_topology *topo = scan->topo;
    struct kfd_device_info info = {.node = node, .gpu_id = gpu_id};
    char path[PATH_SIZE];
    int ret;

    snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/properties", node);
    ret = read_keys(scan, path, node_keys, COUNT(node_keys), &info);
    if (ret == 0)
        ret = read_banks(scan, node, &info);
    if (ret < 0) {
        snprintf(path, sizeof(path), "GPU node %u (gpu_id %u)", node, gpu_id);
        return skip(scan, path, ret);
    }
    if (info.num_xcc == 0)
        info.num_xcc = 1; /* kernels before partitions do not say */
    ret = read_name(scan, node, &info);
    if (ret == 0)
        ret = grow((void **)&topo->gpus, &topo->gpu_count, sizeof(*topo->gpus));
    if (ret == 0)
        topo->gpus[topo->gpu_count - 1] = info;
    return ret;
}

/* Links of one kind. A far end that is hidden makes its entry unreadable: nothing to tell. */
static int read_links(struct scan *scan, uint32_t node, const char *kind, bool peer)
{
    struct kfd_topology *topo = scan->topo;
    char path[PATH_SIZE];
    struct numbers list;
    int ret;

    snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/%s", node, kind);
    ret = list_numbers(scan, path, &list);
    if (ret == -ENOENT)
        ret = 0;
    else if (ret < 0)
        ret = skip(scan, "links", ret);
    for (uint32_t i = 0; ret == 0 && i < list.count; i++) {
        struct kfd_link_info link = {.peer = peer};

        snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/%s/%u/properties", node, kind,
                 list.value[i]);
        ret = read_keys(scan, path, link_keys, COUNT(link_keys), &link);
        if (ret == -EPERM) {
            ret = 0;
        } else if (ret < 0) {
            ret = skip(scan, "link", ret);
        } else {
            ret = grow((void **)&topo->links, &topo->link_count, sizeof(*topo->links));
            if (ret == 0)
                topo->links[topo->link_count - 1] = link;
        }
    }
    free(list.value);
    return ret;
}

static int read_node(struct scan *scan, uint32_t node)
{
    struct kfd_topology *topo = scan->topo;
    char path[PATH_SIZE];
    uint64_t gpu_id;
    int ret;

    snprintf(path, sizeof(path), KFD_TOPOLOGY_PATH "/nodes/%u/gpu_id", node);
    ret = read_number(scan, path, &gpu_id);
    if (ret == 0 && gpu_id > UINT32_MAX)
        ret = kfd_fail(-EINVAL, "%s: does not fit 32 bits", path);
    if (ret < 0) {
        snprintf(path, sizeof(path), "node %u", node);
        return skip(scan, path, ret);
    }
    if (gpu_id) {
        ret = read_gpu(scan, node, (uint32_t)gpu_id);
    } else {
        ret = grow((void **)&topo->cpus, &topo->cpu_count, sizeof(*topo->cpus));
        if (ret == 0)
            topo->cpus[topo->cpu_count - 1] = node;
    }
    if (ret == 0)
        ret = read_links(scan, node, "io_links", false);
    if (ret == 0)
        ret = read_links(scan, node, "p2p_links", true);
    return ret;
}

/* The CPU node each GPU hangs on: the first CPU among its direct links. */
static void find_cpus(struct kfd_topology *topo)
{
    for (uint32_t g = 0; g < topo->gpu_count; g++) {
        struct kfd_device_info *gpu = &topo->gpus[g];

        gpu->cpu_node = KFD_NO_NODE;
        for (uint32_t l = 0; l < topo->link_count && gpu->cpu_node == KFD_NO_NODE; l++) {
            const struct kfd_link_info *link = &topo->links[l];

            if (link->peer || link->node_from != gpu->node)
                continue;
            for (uint32_t c = 0; c < topo->cpu_count; c++) {
                if (topo->cpus[c] == link->node_to)
                    gpu->cpu_node = link->node_to;
            }
        }
    }
}

static int scan_once(struct scan *scan)
{
    struct numbers nodes;
    int ret = list_numbers(scan, KFD_TOPOLOGY_PATH "/nodes", &nodes);

    for (uint32_t i = 0; ret == 0 && i < nodes.count; i++)
        ret = read_node(scan, nodes.value[i]);
    free(nodes.value);
    find_cpus(scan->topo);
    return ret;
}

int kfd_topology_read(struct kfd_sys *sys, struct kfd_topology *out)
{
    struct scan scan = {.sys = sys, .topo = out, .text = malloc(TEXT_SIZE)};
    uint64_t after = 0;
    int ret = 0;

    *out = (struct kfd_topology){0};
    if (!scan.text)
        return kfd_fail(-ENOMEM, "no memory for the topology");
    for (int i = 0; i < SCAN_TRIES; i++) {
        kfd_topology_free(out);
        ret = read_number(&scan, KFD_TOPOLOGY_PATH "/generation_id", &out->generation);
        if (ret == 0)
            ret = scan_once(&scan);
        if (ret == 0)
            ret = read_number(&scan, KFD_TOPOLOGY_PATH "/generation_id", &after);
        if (ret < 0 || after == out->generation)
            break;
        ret = kfd_fail(-EAGAIN, KFD_TOPOLOGY_PATH " changed during each of %d scans", SCAN_TRIES);
    }
    free(scan.text);
    if (ret < 0)
        kfd_topology_free(out);
    return ret;
}

void kfd_topology_free(struct kfd_topology *topo)
{
    free(topo->gpus);
    free(topo->cpus);
    free(topo->links);
    kfd_notes_free(&topo->skipped);
    *topo = (struct kfd_topology){0};
}
