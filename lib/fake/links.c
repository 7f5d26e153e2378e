/* SPDX-License-Identifier: MIT */
#include "fake/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/error.h"

#define WEIGHT_PCIE 20u
#define WEIGHT_SAME_SOCKET 13u
#define WEIGHT_OTHER_SOCKET 41u
#define WEIGHT_CPU_CPU 32u

#define LINK_ENABLED 1u
#define LINK_NON_COHERENT 2u
#define LINK_NO_ATOMICS 0xcu

static struct fake_link *find(struct fake_profile *p, uint32_t from, uint32_t to, bool peer)
{
    for (uint32_t i = 0; i < p->link_count; i++) {
        struct fake_link *l = &p->links[i];

        if (l->node_from == from && l->node_to == to && l->peer == peer)
            return l;
    }
    return NULL;
}

static bool in_one_hive(const struct fake_gpu *a, const struct fake_gpu *b)
{
    return a->hive_id != 0 && a->hive_id == b->hive_id && (a->hive_size > 1 || a->card == b->card);
}

/* Engines that reach the far side: the plain ones, or XGMI's between cards of a hive. */
static uint32_t engine_mask(const struct fake_gpu *gpu, bool xgmi)
{
    uint32_t plain = gpu->num_sdma_engines, far = xgmi ? gpu->num_sdma_xgmi_engines : 0;

    return far ? ((1u << far) - 1) << plain : (1u << plain) - 1;
}

static void cpu_links(struct fake_profile *p, uint32_t from, struct fake_link **at)
{
    for (uint32_t to = 0; to < p->cpu_count; to++) {
        if (to == from)
            continue;
        *(*at)++ = (struct fake_link){.node_from = from,
                                      .node_to = to,
                                      .type = FAKE_LINK_HYPERTRANSPORT,
                                      .weight = WEIGHT_CPU_CPU,
                                      .flags = LINK_ENABLED};
    }
    for (uint32_t g = 0; g < p->gpu_count; g++) {
        const struct fake_gpu *gpu = &p->gpus[g];

        /* The way back exists only where the CPU sees all of the memory. */
        if (gpu->cpu_node != from || !fake_gpu_large_bar(gpu))
            continue;
        *(*at)++ = (struct fake_link){.node_from = from,
                                      .node_to = fake_profile_gpu_node(p, g),
                                      .type = FAKE_LINK_PCIE,
                                      .weight = WEIGHT_PCIE,
                                      .min_bandwidth = gpu->apu ? 0 : 312,
                                      .max_bandwidth = gpu->pcie_bandwidth,
                                      .recommended_sdma_engine_id_mask = engine_mask(gpu, false),
                                      .flags = LINK_ENABLED | LINK_NON_COHERENT |
                                               (gpu->no_atomics ? LINK_NO_ATOMICS : 0)};
    }
}

static void gpu_links(struct fake_profile *p, uint32_t g, struct fake_link **at)
{
    const struct fake_gpu *gpu = &p->gpus[g];
    uint32_t from = fake_profile_gpu_node(p, g);

    *(*at)++ = (struct fake_link){.node_from = from,
                                  .node_to = gpu->cpu_node,
                                  .type = FAKE_LINK_PCIE,
                                  .weight = WEIGHT_PCIE,
                                  .min_bandwidth = gpu->apu ? 0 : 312,
                                  .max_bandwidth = gpu->pcie_bandwidth,
                                  .recommended_sdma_engine_id_mask = engine_mask(gpu, false),
                                  .flags = LINK_ENABLED};
    for (uint32_t o = 0; o < p->gpu_count; o++) {
        const struct fake_gpu *other = &p->gpus[o];
        uint32_t weight = gpu->xgmi_weight;

        if (o == g || !in_one_hive(gpu, other))
            continue;
        if (gpu->partitions > 1)
            weight = gpu->card == other->card ? WEIGHT_SAME_SOCKET : WEIGHT_OTHER_SOCKET;
        *(*at)++ = (struct fake_link){.node_from = from,
                                      .node_to = fake_profile_gpu_node(p, o),
                                      .type = FAKE_LINK_XGMI,
                                      .weight = weight,
                                      .min_bandwidth = gpu->xgmi_min_bandwidth,
                                      .max_bandwidth = gpu->xgmi_max_bandwidth,
                                      .recommended_sdma_engine_id_mask = engine_mask(gpu, true),
                                      .flags = LINK_ENABLED};
    }
    for (uint32_t c = 0; c < p->cpu_count; c++) {
        if (c == gpu->cpu_node)
            continue;
        *(*at)++ = (struct fake_link){.node_from = from,
                                      .node_to = c,
                                      .type = FAKE_LINK_PCIE,
                                      .weight = WEIGHT_PCIE + WEIGHT_CPU_CPU,
                                      .max_bandwidth = gpu->pcie_bandwidth,
                                      .flags = LINK_ENABLED,
                                      .peer = true};
    }
    for (uint32_t o = 0; o < p->gpu_count; o++) {
        const struct fake_gpu *owner = &p->gpus[o];

        /* An entry says that this GPU may reach the other's memory. */
        if (o == g || in_one_hive(gpu, owner) || !p->kernel.p2p || gpu->apu || owner->apu ||
            !fake_gpu_large_bar(owner))
            continue;
        *(*at)++ = (struct fake_link){
            .node_from = from,
            .node_to = fake_profile_gpu_node(p, o),
            .type = FAKE_LINK_PCIE,
            .weight = 2 * WEIGHT_PCIE + (gpu->cpu_node != owner->cpu_node ? WEIGHT_CPU_CPU : 0),
            .max_bandwidth = gpu->pcie_bandwidth < owner->pcie_bandwidth ? gpu->pcie_bandwidth
                                                                         : owner->pcie_bandwidth,
            .flags = LINK_ENABLED,
            .peer = true};
    }
}

static int order(const void *a, const void *b)
{
    const struct fake_link *x = a, *y = b;

    if (x->node_from != y->node_from)
        return x->node_from < y->node_from ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer ? 1 : -1;
    /* A GPU's first link is the one to its CPU node; nodes are in that order anyway. */
    return x->node_to < y->node_to ? -1 : x->node_to > y->node_to;
}

static void remove_entry(struct fake_profile *p, struct fake_link *l)
{
    if (l != NULL)
        *l = p->links[--p->link_count];
}

static void fix(struct fake_profile *p, uint32_t from, uint32_t to,
                const struct fake_fixed_link *fixed)
{
    bool gpus = from >= p->cpu_count && to >= p->cpu_count;
    struct fake_link link = {.node_from = from,
                             .node_to = to,
                             .type = fixed->type == 2 ? FAKE_LINK_XGMI : FAKE_LINK_PCIE,
                             .weight = fixed->weight,
                             .min_bandwidth = fixed->min_bandwidth,
                             .max_bandwidth = fixed->max_bandwidth,
                             .flags = LINK_ENABLED};

    remove_entry(p, find(p, from, to, false));
    remove_entry(p, find(p, from, to, true));
    if (fixed->type == 0)
        return;
    link.peer = gpus && link.type == FAKE_LINK_PCIE;
    p->links[p->link_count++] = link;
}

static int resolve(const struct fake_profile *p, const char *file, unsigned int line, uint32_t end,
                   uint32_t *node)
{
    uint32_t i = end & ~FAKE_FIXED_GPU;
    bool gpu = (end & FAKE_FIXED_GPU) != 0;
    char gpus[32] = "";

    if (p->gpu_count != 0)
        snprintf(gpus, sizeof(gpus), " or gpu0 to gpu%u", p->gpu_count - 1);
    if (i >= (gpu ? p->gpu_count : p->cpu_count))
        return kfd_fail(-EINVAL,
                        "%s:%u: [link] names %s%u, expected a node of the machine: cpu0 to cpu%u%s",
                        file, line, gpu ? "gpu" : "cpu", i, p->cpu_count - 1, gpus);
    *node = gpu ? fake_profile_gpu_node(p, i) : i;
    return 0;
}

static void index_links(struct fake_profile *p, uint32_t nodes)
{
    uint32_t k = 0;

    for (uint32_t node = 0; node < nodes; node++) {
        p->link_start[node] = k;
        while (k < p->link_count && p->links[k].node_from == node && !p->links[k].peer)
            k++;
        p->peer_start[node] = k;
        while (k < p->link_count && p->links[k].node_from == node)
            k++;
    }
    p->link_start[nodes] = k;
}

int fake_links_build(struct fake_profile *p, const struct fake_machine_file *file)
{
    uint32_t nodes = fake_profile_node_count(p);
    struct fake_link *at;

    p->links = calloc((size_t)nodes * nodes + 2u * FAKE_MAX_FIXED_LINKS, sizeof(*p->links));
    if (p->links == NULL)
        return -ENOMEM;
    at = p->links;
    for (uint32_t c = 0; c < p->cpu_count; c++)
        cpu_links(p, c, &at);
    for (uint32_t g = 0; g < p->gpu_count; g++)
        gpu_links(p, g, &at);
    p->link_count = (uint32_t)(at - p->links);
    for (uint32_t i = 0; i < file->link_count; i++) {
        const struct fake_fixed_link *fixed = &file->links[i];
        uint32_t from, to;
        int err = resolve(p, file->file, fixed->line, fixed->from, &from);

        if (err == 0)
            err = resolve(p, file->file, fixed->line, fixed->to, &to);
        if (err != 0)
            return err;
        if (from == to)
            return kfd_fail(-EINVAL, "%s:%u: [link] from a node to itself, expected two nodes",
                            file->file, fixed->line);
        fix(p, from, to, fixed);
        if (fixed->both)
            fix(p, to, from, fixed);
    }
    qsort(p->links, p->link_count, sizeof(*p->links), order);
    index_links(p, nodes);
    return 0;
}
