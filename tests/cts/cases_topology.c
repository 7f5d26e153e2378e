/* SPDX-License-Identifier: MIT */
/* The sysfs tree, every key of it. */
#include <stdio.h>
#include <stdlib.h>

#include "cts.h"

#define SYS "/sys/devices/virtual/kfd/kfd/topology"
#define SYS_CLASS "/sys/class/kfd/kfd/topology"

/* Values that belong to the machine around the card. */
static bool of_the_host(const char *key)
{
    static const char *const keys[] = {"max_engine_clk_ccompute",
                                       "platform_oem",
                                       "platform_id",
                                       "platform_rev",
                                       "unique_id",
                                       "cpu_cores_count",
                                       "cpu_core_id_base",
                                       "drm_render_minor"};

    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(key, keys[i]))
            return true;
    return false;
}

static void file_rows(struct cts *c, const char *what, const char *path, bool host)
{
    char buf[4096], label[64];
    int ret = c->sys->ops->read_file(c->sys, path, buf, sizeof buf);

    snprintf(label, sizeof label, "%s", what);
    if (ret < 0) {
        cts_row(c, label, CTS_ANY, ret, "-");
        return;
    }
    for (char *line = buf, *next; line && *line; line = next) {
        char *value;

        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        value = strchr(line, ' ');
        if (value)
            *value++ = 0;
        cts_row(c, cts_text("%s %s", label, line), 0, 0, "%s",
                !value                      ? "(no value)"
                : host || of_the_host(line) ? "(of the host)"
                                            : value);
    }
}

struct names {
    char name[128][24];
    unsigned count;
};

static int collect(void *arg, const char *name)
{
    struct names *n = arg;

    if (n->count < 128)
        snprintf(n->name[n->count++], sizeof n->name[0], "%s", name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    int x = atoi(a), y = atoi(b);

    return x != y ? x - y : strcmp(a, b);
}

static void list(struct cts *c, const char *path, struct names *n)
{
    n->count = 0;
    c->sys->ops->list_dir(c->sys, path, collect, n);
    qsort(n->name, n->count, sizeof n->name[0], by_name);
}

static void tree(struct cts *c)
{
    struct names n;
    char text[256] = "";
    int ret;

    list(c, SYS, &n);
    for (unsigned i = 0; i < n.count; i++)
        cts_row(c, cts_text("entry %s", n.name[i]), 0, 0, "-");
    list(c, SYS "/nodes", &n);
    cts_row(c, "nodes", 0, 0, "%u", n.count);
    list(c, SYS "/nodes/0", &n);
    for (unsigned i = 0; i < n.count; i++)
        cts_row(c, cts_text("node 0 has %s", n.name[i]), 0, 0, "-");
    file_rows(c, "system", SYS "/system_properties", false);
    ret = c->sys->ops->read_file(c->sys, SYS "/generation_id", text, sizeof text);
    cts_row(c, "generation_id", 0, ret, "%s", atoi(text) > 0 ? "positive" : "0");
    ret = c->sys->ops->read_file(c->sys, SYS_CLASS "/generation_id", text, sizeof text);
    cts_row(c, "the class path leads there too", 0, ret, "%s", atoi(text) > 0 ? "positive" : "0");
    cts_row(c, "a missing node", -ENOENT,
            c->sys->ops->read_file(c->sys, SYS "/nodes/63/properties", text, sizeof text), "-");
}

static void group(struct cts *c, uint32_t node, const char *what, bool host)
{
    struct names n;

    list(c, cts_text(SYS "/nodes/%u/%s", node, what), &n);
    for (unsigned i = 0; i < n.count; i++)
        file_rows(c, cts_text("node %u %s %s", node, what, n.name[i]),
                  cts_text(SYS "/nodes/%u/%s/%s/properties", node, what, n.name[i]), host);
}

static void nodes(struct cts *c)
{
    char text[256];

    for (uint32_t i = 0; i < c->nodes; i++) {
        int ret =
            c->sys->ops->read_file(c->sys, cts_text(SYS "/nodes/%u/gpu_id", i), text, sizeof text);

        cts_row(c, cts_text("node %u gpu_id", i), 0, ret, "%s",
                cts_gpu_text(c, (uint32_t)strtoul(text, NULL, 10)));
        ret = c->sys->ops->read_file(c->sys, cts_text(SYS "/nodes/%u/name", i), text, sizeof text);
        text[ret > 0 && text[ret - 1] == '\n' ? ret - 1 : 0] = 0;
        cts_row(c, cts_text("node %u name", i), 0, ret, "'%s'", text);
        file_rows(c, cts_text("node %u", i), cts_text(SYS "/nodes/%u/properties", i), false);
        group(c, i, "mem_banks", i == 0);
        group(c, i, "io_links", false);
        group(c, i, "p2p_links", false);
    }
}

/* One row per cache: its values in the order of the file. */
static void caches(struct cts *c)
{
    struct names n;
    char buf[4096], text[448];

    for (uint32_t i = 0; i < c->nodes; i++) {
        list(c, cts_text(SYS "/nodes/%u/caches", i), &n);
        for (unsigned k = 0; k < n.count; k++) {
            int ret = c->sys->ops->read_file(
                c->sys, cts_text(SYS "/nodes/%u/caches/%s/properties", i, n.name[k]), buf,
                sizeof buf);
            size_t at = 0;

            for (char *p = buf; ret > 0 && p && *p; p = strchr(p, '\n'), p += p != NULL) {
                char *v = strchr(p, ' ');

                if (v)
                    at += (size_t)snprintf(text + at, sizeof text - at, "%.*s ",
                                           (int)strcspn(v + 1, "\n"), v + 1);
            }
            cts_row(c, cts_text("node %u cache %s", i, n.name[k]), 0, ret, "%s", text);
        }
    }
}

static void render_nodes(struct cts *c)
{
    for (uint32_t i = 0; i < c->gpus; i++)
        cts_row(c, cts_text("gpu %u", i), 0, cts_open_render(c, i), "minor=%s",
                c->gpu[i].minor >= 128 && c->gpu[i].minor < 192 ? "a render node's" : "other");
}

const struct cts_case cts_topology_cases[] = {
    {"topology.tree", CTS_NO_GPU, tree},
    {"topology.nodes", CTS_NO_GPU, nodes},
    {"topology.caches", 0, caches},
    {"topology.render_nodes", 0, render_nodes},
    {0},
};
