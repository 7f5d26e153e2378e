/* SPDX-License-Identifier: MIT */
#include "fake/proctree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 48u
#define MAX_DEPTH 3u

/* The parts of a path behind the root: "123", "queues", "0", "size". */
struct place {
    char part[MAX_DEPTH + 1][NAME_BYTES];
    uint32_t depth;
};

/* A process of the machine, looked up by its pid. */
struct who {
    uint32_t slot;
    int32_t pid;
};

static const char *behind_root(const char *clean)
{
    static const char *const roots[] = {"/sys/devices/virtual/kfd/kfd/proc",
                                        "/sys/class/kfd/kfd/proc"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        size_t n = strlen(roots[i]);

        if (strncmp(clean, roots[i], n) == 0 && (clean[n] == '/' || clean[n] == '\0'))
            return clean + n;
    }
    return NULL;
}

bool fake_proctree_owns(const char *path)
{
    char clean[FAKE_SYSFS_PATH];

    return fake_sysfs_normalise(path, clean) == 0 && behind_root(clean) != NULL;
}

static bool parse(const char *path, struct place *out)
{
    char clean[FAKE_SYSFS_PATH];
    const char *at;

    memset(out, 0, sizeof(*out));
    if (fake_sysfs_normalise(path, clean) != 0)
        return false;
    at = behind_root(clean);
    while (at != NULL && *at == '/') {
        size_t n = strcspn(++at, "/");

        if (out->depth > MAX_DEPTH || n >= NAME_BYTES)
            return false;
        memcpy(out->part[out->depth++], at, n);
        at += n;
    }
    return at != NULL;
}

/* The whole of text as a number. */
static bool number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && (text[0] != '0' || text[1] == '\0');
}

static bool find_who(struct fake *fake, const char *name, struct who *who)
{
    uint32_t pid;

    if (!number(name, &pid))
        return false;
    for (uint32_t i = 0; fake_machine_kfd_at(&fake->machine, i, &who->slot, &who->pid) == 0; i++)
        if ((uint32_t)who->pid == pid)
            return true;
    return false;
}

/* "vram_1234": the GPU when the name is prefix and a visible one's id; else -1. */
static int gpu_in(const struct fake *fake, const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    uint32_t id;

    return strncmp(name, prefix, n) == 0 && number(name + n, &id) ? fake_gpu_of_id(fake, id) : -1;
}

static const char *const stats[] = {"evicted_ms", "cu_occupancy"};
static const char *const counters[] = {"faults", "page_in", "page_out"};
static const char *const queue_files[] = {"gpuid", "size", "type"};

/* Only of gfx9 the driver counts occupied units. */
static uint32_t stats_of(const struct fake *fake, int gpu)
{
    return fake_gpu_gfx_major(&fake->profile->gpus[gpu]) == 9 ? 2 : 1;
}

static bool is_one_of(const char *name, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const struct fake_shared_queue *find_queue(struct fake *fake, const struct who *who,
                                                  const char *name)
{
    const struct fake_shared_kfd *kfd = fake_machine_kfd(&fake->machine, who->slot);
    uint32_t id;

    return number(name, &id) && id < FAKE_MAX_QUEUES && kfd->queues[id].used ? &kfd->queues[id]
                                                                             : NULL;
}

static int print_queue(struct fake *fake, const struct who *who, const struct place *at,
                       struct fake_text *out)
{
    const struct fake_shared_queue *q = find_queue(fake, who, at->part[2]);

    if (q == NULL || at->depth != 4)
        return -ENOENT;
    if (strcmp(at->part[3], "size") == 0)
        fake_text_add(out, "%u", q->size);
    else if (strcmp(at->part[3], "type") == 0)
        fake_text_add(out, "%u", q->type);
    else if (strcmp(at->part[3], "gpuid") == 0)
        fake_text_add(out, "%u", fake->profile->gpus[q->gpu].gpu_id);
    else
        return -ENOENT;
    return 0;
}

/* Nothing runs, so nothing is counted. */
static int print_zero(struct fake *fake, const struct place *at, struct fake_text *out)
{
    int gpu = gpu_in(fake, at->part[1], "stats_");
    bool known;

    if (gpu >= 0)
        known = is_one_of(at->part[2], stats, stats_of(fake, gpu));
    else
        known = fake->profile->kernel.svm && gpu_in(fake, at->part[1], "counters_") >= 0 &&
                is_one_of(at->part[2], counters, 3);
    if (known)
        fake_text_add(out, "0\n");
    return known ? 0 : -ENOENT;
}

static int print(struct fake *fake, const struct place *at, struct fake_text *out)
{
    const struct fake_shared_kfd *kfd;
    struct who who;
    int gpu;

    if (!find_who(fake, at->part[0], &who))
        return -ENOENT;
    kfd = fake_machine_kfd(&fake->machine, who.slot);
    if (strcmp(at->part[1], "queues") == 0)
        return print_queue(fake, &who, at, out);
    if (at->depth == 3)
        return print_zero(fake, at, out);
    if (at->depth != 2)
        return -ENOENT;
    gpu = gpu_in(fake, at->part[1], "vram_");
    if (gpu >= 0)
        fake_text_add(out, "%llu\n", (unsigned long long)kfd->vram[gpu]);
    else if (gpu_in(fake, at->part[1], "sdma_") >= 0)
        fake_text_add(out, "0\n");
    else if (strcmp(at->part[1], "pasid") == 0)
        fake_text_add(out, "%u\n", kfd->pasid);
    else
        return -ENOENT;
    return 0;
}

static int list_names(const char *const *names, uint32_t n,
                      int (*each)(void *arg, const char *name), void *arg)
{
    int err = 0;

    for (uint32_t i = 0; i < n && err == 0; i++)
        err = each(arg, names[i]);
    return err;
}

static int list_processes(struct fake *fake, int (*each)(void *arg, const char *name), void *arg)
{
    char name[NAME_BYTES];
    struct who who;
    int err = 0;

    for (uint32_t i = 0;
         err == 0 && fake_machine_kfd_at(&fake->machine, i, &who.slot, &who.pid) == 0; i++) {
        snprintf(name, sizeof(name), "%d", who.pid);
        err = each(arg, name);
    }
    return err;
}

static int list_process(struct fake *fake, int (*each)(void *arg, const char *name), void *arg)
{
    static const char *const first[] = {"pasid", "queues"};
    static const char *const per_gpu[] = {"stats", "sdma", "vram", "counters"};
    uint32_t n = fake->profile->kernel.svm ? 4 : 3;
    char name[NAME_BYTES];
    int err = list_names(first, 2, each, arg);

    for (uint32_t g = 0; g < fake->profile->gpu_count; g++) {
        for (uint32_t i = 0; i < n && err == 0 && !fake->profile->gpus[g].hidden; i++) {
            snprintf(name, sizeof(name), "%s_%u", per_gpu[i], fake->profile->gpus[g].gpu_id);
            err = each(arg, name);
        }
    }
    return err;
}

static int list_queues(struct fake *fake, const struct who *who,
                       int (*each)(void *arg, const char *name), void *arg)
{
    const struct fake_shared_kfd *kfd = fake_machine_kfd(&fake->machine, who->slot);
    char name[NAME_BYTES];
    int err = 0;

    for (uint32_t id = 0; id < FAKE_MAX_QUEUES && err == 0; id++) {
        if (!kfd->queues[id].used)
            continue;
        snprintf(name, sizeof(name), "%u", id);
        err = each(arg, name);
    }
    return err;
}

static int no_name(void *arg, const char *name)
{
    return 0;
}

int fake_proctree_list(struct fake *fake, const char *path,
                       int (*each)(void *arg, const char *name), void *arg)
{
    char text[64];
    struct fake_text file = {text, sizeof(text), 0};
    struct place at;
    struct who who;
    int gpu;

    if (!parse(path, &at))
        return -ENOENT;
    if (at.depth == 0)
        return list_processes(fake, each, arg);
    if (!find_who(fake, at.part[0], &who))
        return -ENOENT;
    if (at.depth == 1)
        return list_process(fake, each, arg);
    if (strcmp(at.part[1], "queues") == 0 && at.depth == 2)
        return list_queues(fake, &who, each, arg);
    if (strcmp(at.part[1], "queues") == 0 && at.depth == 3 && find_queue(fake, &who, at.part[2]))
        return list_names(queue_files, 3, each, arg);
    gpu = at.depth == 2 ? gpu_in(fake, at.part[1], "stats_") : -1;
    if (gpu >= 0)
        return list_names(stats, stats_of(fake, gpu), each, arg);
    if (at.depth == 2 && fake->profile->kernel.svm && gpu_in(fake, at.part[1], "counters_") >= 0)
        return list_names(counters, 3, each, arg);
    return print(fake, &at, &file) == 0 ? -ENOTDIR : -ENOENT;
}

int fake_proctree_read(struct fake *fake, const char *path, char *buf, size_t size)
{
    char text[64] = "";
    struct fake_text out = {text, sizeof(text), 0};
    struct place at;
    int err = parse(path, &at) ? print(fake, &at, &out) : -ENOENT;

    if (err == -ENOENT && fake_proctree_list(fake, path, no_name, NULL) == 0)
        return -EISDIR;
    if (err != 0)
        return err;
    if (out.len >= size)
        return -EFBIG;
    memcpy(buf, text, out.len + 1);
    return (int)out.len;
}

enum fake_sysfs_kind fake_proctree_lookup(struct fake *fake, const char *path)
{
    char text[64];
    int n = fake_proctree_read(fake, path, text, sizeof(text));

    return n >= 0 ? FAKE_SYSFS_FILE : n == -EISDIR ? FAKE_SYSFS_DIR : FAKE_SYSFS_NONE;
}
