/* SPDX-License-Identifier: MIT */
/*
 * Reads a topology whose every folder and file is made of the input's bytes: each listing and each
 * text is the next zero-terminated piece, one that begins with a byte above 0x7f is an errno.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/topology.h"

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

struct input {
    struct kfd_sys sys; /* first */
    const uint8_t *data, *end;
};

/* The next piece; "" when the bytes are used up. Returns its length or a negative errno. */
static int next_piece(struct input *in, const char **piece)
{
    const uint8_t *start = in->data, *zero;

    *piece = "";
    if (start == in->end)
        return -ENOENT;
    zero = memchr(start, 0, (size_t)(in->end - start));
    if (!zero) {
        in->data = in->end;
        return -ENOENT;
    }
    in->data = zero + 1;
    if (*start > 0x7f)
        return -(int)(*start & 0x7f) - 1;
    *piece = (const char *)start;
    return (int)(zero - start);
}

static int read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct input *in = (struct input *)sys;
    const char *piece;
    int len;

    CHECK(strncmp(path, KFD_TOPOLOGY_PATH "/", sizeof(KFD_TOPOLOGY_PATH)) == 0);
    if (strcmp(path, KFD_TOPOLOGY_PATH "/generation_id") == 0) {
        snprintf(buf, size, "1\n");
        return 2;
    }
    len = next_piece(in, &piece);
    if (len >= 0 && (size_t)len >= size)
        return -EFBIG;
    if (len >= 0)
        memcpy(buf, piece, (size_t)len + 1);
    return len;
}

static int list_dir(struct kfd_sys *sys, const char *path, int (*each)(void *arg, const char *name),
                    void *arg)
{
    const char *piece;
    int ret = next_piece((struct input *)sys, &piece);

    while (ret >= 0 && *piece) {
        size_t len = strcspn(piece, "/");
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)(len < 60 ? len : 60), piece);
        ret = each(arg, name);
        if (ret)
            return ret;
        piece += len;
        piece += *piece == '/';
    }
    return ret < 0 ? ret : 0;
}

static const struct kfd_sys_ops ops = {.read_file = read_file, .list_dir = list_dir};

static void check(const struct kfd_topology *topo)
{
    CHECK(topo->generation == 1);
    for (uint32_t i = 0; i < topo->gpu_count; i++) {
        const struct kfd_device_info *gpu = &topo->gpus[i];
        bool known = gpu->cpu_node == KFD_NO_NODE;

        CHECK(gpu->gpu_id != 0);
        CHECK(gpu->num_xcc > 0);
        CHECK(!gpu->large_bar || gpu->vram_size > 0);
        CHECK(strnlen(gpu->product, sizeof(gpu->product)) < sizeof(gpu->product));
        CHECK(i == 0 || topo->gpus[i - 1].node <= gpu->node);
        for (uint32_t c = 0; c < topo->cpu_count; c++)
            known = known || topo->cpus[c] == gpu->cpu_node;
        CHECK(known);
    }
    for (uint32_t i = 0; i < topo->skipped.count; i++)
        CHECK(topo->skipped.text[i][0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.sys.ops = &ops, .data = data, .end = data + size};
    struct kfd_topology topo;
    int ret = kfd_topology_read(&in.sys, &topo);

    if (ret == 0)
        check(&topo);
    else
        CHECK(!topo.gpus && !topo.links && !topo.skipped.text);
    kfd_topology_free(&topo);
    return 0;
}
