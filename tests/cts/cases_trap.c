/* SPDX-License-Identifier: MIT */
/* What the kernel does where its interfaces invite mistakes (docs/kernel-notes.md). */
#include "cts.h"

enum {
    MAP = 1,
    UNMAP = 2,
    CLEAR = 3,
    REPLACE = 4
};

#define VRAM (KFD_MEM_VRAM | CTS_RW)

/* One number in the driver's own file stands for a buffer and all its imports, without a count. The
 * second free takes away the number of whoever has it by then. */
static void shared_number(struct cts *c)
{
    uint64_t h, in, victim;
    int fd, own;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), VRAM);
    fd = cts_export(c, "export", 0, h);
    in = cts_import(c, "KFD import", 0, c->gpu[0].id, fd, c->va);
    cts_free(c, "free the original", 0, h);
    victim = cts_alloc(c, "an unrelated buffer takes the number", 0, 0, 0, MiB(4), VRAM);
    cts_free(c, "free the import", 0, in);
    own = cts_export(c, "export the unrelated one", CTS_ANY, victim);
    cts_row(c, "size of what was exported", 0, 0, "0x%llx",
            own < 0 ? 0ull : (unsigned long long)lseek(own, 0, SEEK_END));
    cts_close(c, own);
    cts_free(c, "free it", 0, victim);
    cts_close(c, fd);
}

/* Exported once before anything else, a buffer never looks at its number again. */
static void shared_number_avoided(struct cts *c)
{
    uint64_t h, in, victim;
    int fd, own;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), VRAM);
    fd = cts_export(c, "export", 0, h);
    in = cts_import(c, "KFD import", 0, c->gpu[0].id, fd, c->va);
    cts_free(c, "free the original", 0, h);
    victim = cts_alloc(c, "an unrelated buffer", 0, 0, 0, MiB(4), VRAM);
    cts_close(c, cts_export(c, "exported at once", 0, victim));
    cts_free(c, "free the import", 0, in);
    own = cts_export(c, "export it again", CTS_ANY, victim);
    cts_row(c, "size of what was exported", 0, 0, "0x%llx",
            own < 0 ? 0ull : (unsigned long long)lseek(own, 0, SEEK_END));
    cts_close(c, own);
    cts_free(c, "free it", 0, victim);
    cts_close(c, fd);
}

/* The GEM handle given up while KFD has an import of it mapped in the same VM. 1.11 takes KFD's
 * attachment away with it, and the unmap reads freed memory: the kernel crashes. */
static void close_under_import(struct cts *c)
{
    uint32_t id, gem;
    uint64_t h;
    int drm, fd;

    if (c->minor < 12)
        cts_crashes(c);
    cts_start(c);
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    gem = cts_gem_create(c, "create", 0, drm, MiB(4), AMDGPU_GEM_DOMAIN_VRAM);
    fd = cts_prime_export(c, "PRIME export", 0, drm, gem, O_CLOEXEC | O_RDWR);
    h = cts_import(c, "KFD import", 0, id, fd, c->va);
    cts_close(c, fd);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    cts_gem_close(c, "GEM_CLOSE while mapped", 0, drm, gem);
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "free", 0, h);
}

struct order {
    const char *name;
    char steps[8]; /* U GEM_VA unmap, F flush, C GEM_CLOSE, K KFD free, X close of the dma-buf */
};

/* Every order of taking a mapping down that a program may come to. */
static void release_orders(struct cts *c)
{
    static const struct order orders[] = {
        {"unmap flush close free", "XUFCK"},
        {"unmap close free", "XUCK"},
        {"close free", "XCK"},
        {"free close", "XKC"},
        {"free unmap close", "XKUC"},
        {"unmap free close", "XUKC"},
        {"dma-buf kept to the end", "UFCKX"},
        {"close, dma-buf, free", "CXK"},
    };
    uint64_t start;

    cts_start(c);
    start = cts_available(c, 0);
    for (unsigned i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        int drm = c->gpu[0].drm, fd;
        uint32_t gem;
        uint64_t h;

        h = cts_alloc(c, cts_text("%s: alloc", orders[i].name), 0, 0, 0, MiB(2), VRAM);
        fd = cts_export(c, "export", 0, h);
        gem = cts_prime(c, "PRIME", 0, drm, fd);
        cts_gem_va(c, "map", 0, drm, gem, MAP, c->va, 0, MiB(2), 6);
        for (const char *s = orders[i].steps; *s; s++) {
            if (*s == 'U')
                cts_gem_va(c, "unmap", 0, drm, gem, UNMAP, c->va, 0, MiB(2), 0);
            else if (*s == 'F')
                cts_flush(c, "flush", 0, h, CTS_IDS(c->gpu[0].id));
            else if (*s == 'C')
                cts_gem_close(c, "close", 0, drm, gem);
            else if (*s == 'K')
                cts_free(c, "free", 0, h);
            else
                cts_close(c, fd);
        }
        gem = cts_gem_create(c, "the address is free again: create", 0, drm, MiB(2),
                             AMDGPU_GEM_DOMAIN_GTT);
        cts_gem_va(c, "the address is free again: map", 0, drm, gem, MAP, c->va, 0, MiB(2), 6);
        cts_gem_close(c, "close", 0, drm, gem);
        cts_row(c, "lost", 0, 0, "%lld KiB", (long long)(start - cts_available(c, 0)) / 1024);
    }
}

/* KFD's attachment and the GEM handle's are one in 1.17: what GEM_CLOSE takes away while KFD has
 * the buffer mapped. */
static void close_under_kfd_map(struct cts *c)
{
    uint32_t id, gem;
    uint64_t h;
    int drm, fd;

    cts_start(c);
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    h = cts_alloc(c, "alloc at an address", 0, 0, c->va, MiB(2), VRAM);
    cts_map(c, "KFD map", 0, h, 0, CTS_IDS(id));
    fd = cts_export(c, "export", 0, h);
    gem = cts_prime(c, "PRIME", 0, drm, fd);
    cts_gem_va(c, "GEM_VA map elsewhere", 0, drm, gem, MAP, c->va + MiB(64), 0, MiB(2), 6);
    cts_gem_close(c, "close", 0, drm, gem);
    gem = cts_prime(c, "PRIME again", 0, drm, fd);
    cts_gem_va(c, "is the GEM_VA mapping still there", CTS_ANY, drm, gem, UNMAP, c->va + MiB(64), 0,
               MiB(2), 0);
    cts_gem_close(c, "close", 0, drm, gem);
    cts_unmap(c, "KFD unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "free", 0, h);
    cts_close(c, fd);
}

static void sharer(struct cts *c, void *arg)
{
    int fd = *(int *)arg, drm = cts_open_render(c, 0);
    uint64_t h;

    cts_close(c, c->kfd);
    c->kfd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    cts_acquire(c, "child: acquire", 0, drm, c->gpu[0].id);
    h = cts_import(c, "child: import of a read-only buffer", 0, c->gpu[0].id, fd, c->va);
    cts_map(c, "child: map, writable as every import is", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "child: unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "child: free", 0, h);
}

static void read_only_sharing(struct cts *c)
{
    uint64_t h;
    int fd;

    cts_start(c);
    h = cts_alloc(c, "alloc without WRITABLE", 0, 0, 0, MiB(2), KFD_MEM_VRAM);
    fd = cts_export(c, "export", 0, h);
    cts_fork(c, sharer, &fd);
    cts_close(c, fd);
    cts_free(c, "free", 0, h);
}

/* The wrong render node for a gpu_id is not noticed. */
static void wrong_node(struct cts *c)
{
    cts_open(c);
    cts_acquire(c, "the second card's node for the first card", CTS_ANY, c->gpu[1].drm,
                c->gpu[0].id);
}

const struct cts_case cts_trap_cases[] = {
    {"trap.shared_number", CTS_EXPORT, shared_number},
    {"trap.shared_number_avoided", CTS_EXPORT, shared_number_avoided},
    {"trap.close_under_import", 0, close_under_import},
    {"trap.release_orders", CTS_GEM_VA, release_orders},
    {"trap.close_under_kfd_map", CTS_GEM_VA, close_under_kfd_map},
    {"trap.read_only_sharing", CTS_EXPORT, read_only_sharing},
    {"trap.wrong_node", CTS_PEER, wrong_node},
    {0},
};
