/* SPDX-License-Identifier: MIT */
/* Two GPUs that share memory. */
#include "cts.h"

static void map_both(struct cts *c, uint32_t flags, bool reachable)
{
    uint32_t a = c->gpu[0].id, b = c->gpu[1].id;
    long want = reachable ? 0 : -EINVAL;
    uint64_t h;

    h = cts_alloc(c, "alloc on the first", 0, 0, c->va, MiB(2), flags | CTS_RW);
    cts_map(c, "map to both", want, h, 0, CTS_IDS(a, b));
    cts_map(c, "map to both, resumed", want, h, 1, CTS_IDS(a, b));
    cts_map(c, "map: first, unknown, second", -EINVAL, h, 0, CTS_IDS(a, CTS_BAD_GPU, b));
    cts_map(c, "map: first, first, second", want, h, 0, CTS_IDS(a, a, b));
    cts_map(c, "flush both", 0, h, 2, CTS_IDS(a, b));
    cts_unmap(c, "unmap from the first", 0, h, 0, CTS_IDS(a));
    cts_free(c, "free while the second has it", reachable ? -EBUSY : 0, h);
    if (!reachable)
        return;
    cts_unmap(c, "unmap from both stops at the first", -EINVAL, h, 0, CTS_IDS(a, b));
    cts_unmap(c, "unmap from the second", 0, h, 0, CTS_IDS(b));
    cts_map(c, "map to the second alone", 0, h, 0, CTS_IDS(b));
    cts_unmap(c, "unmap from the second again", 0, h, 0, CTS_IDS(b));
    cts_free(c, "free", 0, h);
}

static void gtt(struct cts *c)
{
    cts_start(c);
    map_both(c, KFD_MEM_GTT, true);
}

/* Whether the topology says that gpu 1 reaches gpu 0's VRAM. */
static bool linked(struct cts *c)
{
    char buf[1024];

    return c->sys->ops->read_file(
               c->sys,
               cts_text("/sys/devices/virtual/kfd/kfd/topology/nodes/%u/p2p_links/0/properties",
                        c->gpu[1].node),
               buf, sizeof buf) > 0;
}

static void vram(struct cts *c)
{
    cts_start(c);
    map_both(c, KFD_MEM_VRAM, linked(c));
}

static void without_vm(struct cts *c)
{
    uint64_t h;

    cts_open(c);
    cts_acquire(c, "acquire the first only", 0, c->gpu[0].drm, c->gpu[0].id);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_map(c, "map to both", -ENODEV, h, 0, CTS_IDS(c->gpu[0].id, c->gpu[1].id));
    cts_unmap(c, "unmap from the first", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", 0, h);
    cts_alloc(c, "alloc on the second", -ENODEV, 1, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
}

static void import_kfd(struct cts *c, uint32_t flags)
{
    uint32_t b = c->gpu[1].id;
    uint64_t h = cts_alloc(c, "alloc on the first", 0, 0, 0, MiB(2), flags | CTS_RW), far;
    int fd = cts_export(c, "export", 0, h);

    far = cts_import(c, "KFD import on the second", 0, b, fd, c->va);
    cts_info(c, "whose it is", 0, fd);
    cts_map(c, "map on the second", CTS_ANY, far, 0, CTS_IDS(b));
    cts_unmap(c, "unmap", CTS_ANY, far, 0, CTS_IDS(b));
    cts_free(c, "free the import", 0, far);
    cts_free(c, "free", 0, h);
    cts_close(c, fd);
}

static void import(struct cts *c)
{
    cts_start(c);
    import_kfd(c, KFD_MEM_GTT);
    import_kfd(c, KFD_MEM_VRAM);
}

/* The drm engine across cards, each with its own permissions. */
static void gem_va(struct cts *c)
{
    uint64_t h, start;
    uint32_t g[2];
    int fd;

    cts_start(c);
    start = cts_available(c, 0);
    h = cts_alloc(c, "alloc on the first", 0, 0, 0, MiB(4), KFD_MEM_VRAM | CTS_RW);
    fd = cts_export(c, "export", 0, h);
    for (int i = 0; i < 2; i++) {
        g[i] = cts_prime(c, cts_text("PRIME on %d", i), 0, c->gpu[i].drm, fd);
        cts_gem_va(c, cts_text("map on %d", i), 0, c->gpu[i].drm, g[i], 1, c->va, 0, MiB(4),
                   i ? 2 : 6);
    }
    cts_close(c, fd);
    cts_gem_va(c, "replace on the second: writable", 0, c->gpu[1].drm, g[1], 4, c->va, 0, MiB(4),
               6);
    for (int i = 1; i >= 0; i--)
        cts_gem_va(c, cts_text("unmap on %d", i), 0, c->gpu[i].drm, g[i], 2, c->va, 0, MiB(4), 0);
    cts_flush(c, "flush both", 0, h, CTS_IDS(c->gpu[0].id, c->gpu[1].id));
    for (int i = 1; i >= 0; i--)
        cts_gem_close(c, cts_text("close on %d", i), 0, c->gpu[i].drm, g[i]);
    cts_free(c, "free", 0, h);
    cts_row(c, "nothing is lost", 0, start == cts_available(c, 0) ? 0 : -ENOMEM, "-");
}

static void look(struct cts *c, const char *step, uint64_t va)
{
    struct cts_pte p;

    if (cts_translate(c, 1, va, &p) < 0)
        cts_skip(c, "the tables cannot be read");
    cts_row(c, step, 0, 0, "%s", p.page_size ? "mapped" : "not mapped");
}

/* A PRIME import from another card is made resident when the VM is a compute VM by then. */
static void early_import(struct cts *c, uint32_t flags)
{
    uint32_t early, late;
    uint64_t h;
    int fd, drm;

    drm = c->gpu[1].drm;
    h = cts_alloc(c, "alloc on the first", 0, 0, 0, MiB(2), flags | CTS_RW);
    fd = cts_export(c, "export", 0, h);
    c->gpu[1].drm = drm;
    early = cts_prime(c, "PRIME on the second before its VM", 0, drm, fd);
    cts_acquire(c, "acquire the second", 0, drm, c->gpu[1].id);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    cts_gem_va(c, "GEM_VA map", 0, drm, early, 1, c->va, 0, MiB(2), 6);
    look(c, "the early import", c->va);
    late = cts_prime(c, "PRIME again", 0, drm, fd);
    cts_row(c, "same handle", 0, early == late ? 0 : -EXDEV, "-");
    cts_gem_va(c, "GEM_VA replace", 0, drm, late, 4, c->va, 0, MiB(2), 6);
    look(c, "still the early import", c->va);
    cts_gem_va(c, "GEM_VA unmap", 0, drm, late, 2, c->va, 0, MiB(2), 0);
    cts_gem_close(c, "close", 0, drm, late);
    late = cts_prime(c, "PRIME after the close", 0, drm, fd);
    cts_gem_va(c, "GEM_VA map", 0, drm, late, 1, c->va, 0, MiB(2), 6);
    look(c, "the late import", c->va);
    cts_gem_va(c, "GEM_VA unmap", 0, drm, late, 2, c->va, 0, MiB(2), 0);
    cts_gem_close(c, "close", 0, drm, late);
    cts_close(c, fd);
    cts_free(c, "free", 0, h);
}

static void early_vram(struct cts *c)
{
    cts_open(c);
    cts_acquire(c, "acquire the first", 0, c->gpu[0].drm, c->gpu[0].id);
    early_import(c, KFD_MEM_VRAM);
}

static void early_gtt(struct cts *c)
{
    cts_open(c);
    cts_acquire(c, "acquire the first", 0, c->gpu[0].drm, c->gpu[0].id);
    early_import(c, KFD_MEM_GTT);
}

const struct cts_case cts_peer_cases[] = {
    {"peer.gtt", CTS_PEER, gtt},
    {"peer.vram", CTS_PEER, vram},
    {"peer.without_vm", CTS_PEER, without_vm},
    {"peer.import", CTS_PEER | CTS_EXPORT, import},
    {"peer.gem_va", CTS_PEER | CTS_GEM_VA, gem_va},
    {"peer.early_vram", CTS_PEER | CTS_GEM_VA, early_vram},
    {"peer.early_gtt", CTS_PEER | CTS_GEM_VA, early_gtt},
    {0},
};
