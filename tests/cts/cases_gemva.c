/* SPDX-License-Identifier: MIT */
/* AMDGPU_GEM_VA on a compute VM: order of checks, sub-ranges, CLEAR, REPLACE, and KFD next to it.
 */
#include "cts.h"

enum {
    MAP = 1,
    UNMAP = 2,
    CLEAR = 3,
    REPLACE = 4
};
enum {
    R = 2,
    RW = 6,
    X = 8,
    PRT = 16
};

struct bo {
    uint64_t h;
    uint32_t gem;
    int drm;
};

/* A KFD buffer of 8 MiB without an address, imported into the acquired render file; a GEM buffer
 * where KFD cannot export. */
static struct bo bo_make(struct cts *c)
{
    struct bo b = {.drm = c->gpu[0].drm};
    int fd;

    if (c->minor < 12) {
        b.gem = cts_gem_create(c, "bo: create", 0, b.drm, MiB(8), AMDGPU_GEM_DOMAIN_VRAM);
        return b;
    }
    b.h = cts_alloc(c, "bo: alloc", 0, 0, 0, MiB(8), KFD_MEM_VRAM | CTS_RW);
    fd = cts_export(c, "bo: export", 0, b.h);
    b.gem = cts_prime(c, "bo: PRIME", 0, b.drm, fd);
    cts_close(c, fd);
    return b;
}

static void bo_end(struct cts *c, struct bo *b)
{
    cts_gem_close(c, "bo: close", 0, b->drm, b->gem);
    if (b->h)
        cts_free(c, "bo: free", 0, b->h);
}

static void order(struct cts *c)
{
    uint64_t low, top, hole = (uint64_t)1 << 47;
    struct bo b;
    int d;

    cts_start(c);
    b = bo_make(c);
    d = b.drm;
    low = c->minor < 12 ? 0x200000 : 0x10000;
    top = ((uint64_t)1 << 48) - (c->minor < 12 ? 0x200000 : 0x410000);
    cts_gem_va(c, "an address below the reserved bottom", -EINVAL, d, 77, 9, low - 4096, 0, 4096,
               0xffff);
    cts_gem_va(c, "an address in the hole", -EINVAL, d, 77, 9, hole, 0, 4096, 0xffff);
    cts_gem_va(c, "past the reserved top", -EINVAL, d, 77, 9,
               0xffff800000000000 | (top & (hole - 1)), 0, 4096, 0);
    cts_gem_va(c, "unknown flags", -EINVAL, d, 77, 9, c->va, 0, 4096, 0x10000);
    cts_gem_va(c, "PRT with permissions", -EINVAL, d, b.gem, MAP, c->va, 0, 4096, PRT | R);
    cts_gem_va(c, "operation 0", -EINVAL, d, 77, 0, c->va, 0, 4096, R);
    cts_gem_va(c, "operation 5", -EINVAL, d, 77, 5, c->va, 0, 4096, R);
    cts_gem_va(c, "unknown handle comes before size 0", -ENOENT, d, 77, MAP, c->va, 0, 0, R);
    cts_gem_va(c, "handle 0", -ENOENT, d, 0, MAP, c->va, 0, 4096, R);
    cts_gem_va(c, "size 0", -EINVAL, d, b.gem, MAP, c->va, 0, 0, R);
    cts_gem_va(c, "address not on a page", -EINVAL, d, b.gem, MAP, c->va + 1, 0, 4096, R);
    cts_gem_va(c, "offset not on a page", -EINVAL, d, b.gem, MAP, c->va, 1, 4096, R);
    cts_gem_va(c, "size not of pages", -EINVAL, d, b.gem, MAP, c->va, 0, 4097, R);
    cts_gem_va(c, "past the end of the buffer", -EINVAL, d, b.gem, MAP, c->va, MiB(8) - 4096, 8192,
               R);
    cts_gem_va(c, "offset at the end", -EINVAL, d, b.gem, MAP, c->va, MiB(8), 4096, R);
    cts_gem_va(c, "an offset that wraps", -EINVAL, d, b.gem, MAP, c->va, ~(uint64_t)4095, 8192, R);
    cts_gem_va(c, "unmap of nothing", -ENOENT, d, b.gem, UNMAP, c->va, 0, 4096, 0);
    cts_gem_va(c, "clear of nothing", 0, d, 0, CLEAR, c->va, 0, MiB(8), 0);
    cts_gem_va(c, "clear of size 0", CTS_ANY, d, 0, CLEAR, c->va, 0, 0, 0);
    cts_gem_va(c, "unmap with a size past the top", -EINVAL, d, b.gem, UNMAP, c->va, 0,
               (uint64_t)1 << 48, 0);
    bo_end(c, &b);
}

static void sub_ranges(struct cts *c)
{
    struct bo b;
    int d;

    cts_start(c);
    b = bo_make(c);
    d = b.drm;
    cts_gem_va(c, "all of it", 0, d, b.gem, MAP, c->va, 0, MiB(8), RW);
    cts_gem_va(c, "a part elsewhere, read-only", 0, d, b.gem, MAP, c->va + MiB(16), MiB(2), MiB(2),
               R);
    cts_gem_va(c, "two pages at an odd offset", 0, d, b.gem, MAP, c->va + MiB(32), 4096, 8192, RW);
    cts_gem_va(c, "one page right behind", 0, d, b.gem, MAP, c->va + MiB(32) + 8192, 0, 4096, R);
    cts_gem_va(c, "no permission at all", 0, d, b.gem, MAP, c->va + MiB(40), 0, 4096, 0);
    cts_gem_va(c, "executable", 0, d, b.gem, MAP, c->va + MiB(41), 0, 4096, RW | X);
    cts_gem_va(c, "over all", -EINVAL, d, b.gem, MAP, c->va, 0, MiB(8), RW);
    cts_gem_va(c, "over the last page", -EINVAL, d, b.gem, MAP, c->va + MiB(8) - 4096, 0, 8192, RW);
    cts_gem_va(c, "unmap from inside", -ENOENT, d, b.gem, UNMAP, c->va + 4096, 0, 4096, 0);
    cts_gem_va(c, "unmap by the start, any size", 0, d, b.gem, UNMAP, c->va, 0, 4096, 0);
    cts_gem_va(c, "it went whole", 0, d, b.gem, MAP, c->va + MiB(4), 0, MiB(4), RW);
    cts_gem_va(c, "unmap it", 0, d, b.gem, UNMAP, c->va + MiB(4), 0, MiB(4), 0);
    cts_gem_va(c, "unmap the two pages", 0, d, b.gem, UNMAP, c->va + MiB(32), 0, 8192, 0);
    cts_gem_va(c, "their neighbour stays", -EINVAL, d, b.gem, MAP, c->va + MiB(32) + 8192, 0, 4096,
               R);
    cts_gem_close(c, "close with mappings left", 0, d, b.gem);
    b.gem = cts_gem_create(c, "create", 0, d, MiB(8), AMDGPU_GEM_DOMAIN_GTT);
    cts_gem_va(c, "the closed one's addresses are free", 0, d, b.gem, MAP, c->va + MiB(32), 0,
               MiB(8), R);
    bo_end(c, &b);
}

static void replace_and_clear(struct cts *c)
{
    struct bo b;
    int d;

    cts_start(c);
    b = bo_make(c);
    d = b.drm;
    cts_gem_va(c, "map", 0, d, b.gem, MAP, c->va, 0, MiB(8), RW);
    cts_gem_va(c, "replace: read-only", 0, d, b.gem, REPLACE, c->va, 0, MiB(8), R);
    cts_gem_va(c, "replace: back", 0, d, b.gem, REPLACE, c->va, 0, MiB(8), RW);
    cts_gem_va(c, "replace where nothing is", 0, d, b.gem, REPLACE, c->va + MiB(64), 0, MiB(2), R);
    cts_gem_va(c, "replace of an unknown handle", -ENOENT, d, 77, REPLACE, c->va, 0, MiB(8), R);
    cts_gem_va(c, "the failed one changed nothing", -EINVAL, d, b.gem, MAP, c->va, 0, MiB(8), R);
    cts_gem_va(c, "clear a piece in the middle", 0, d, 0, CLEAR, c->va + MiB(2), 0, MiB(2), 0);
    cts_gem_va(c, "the piece is free", 0, d, b.gem, MAP, c->va + MiB(2), MiB(6), MiB(2), R);
    cts_gem_va(c, "the head is not", -EINVAL, d, b.gem, MAP, c->va, 0, 4096, R);
    cts_gem_va(c, "the tail is not", -EINVAL, d, b.gem, MAP, c->va + MiB(4), 0, 4096, R);
    cts_gem_va(c, "the tail is a mapping of its own", 0, d, b.gem, UNMAP, c->va + MiB(4), 0, MiB(4),
               0);
    cts_gem_va(c, "the head too", 0, d, b.gem, UNMAP, c->va, 0, MiB(2), 0);
    cts_gem_va(c, "unmap the piece", 0, d, b.gem, UNMAP, c->va + MiB(2), 0, MiB(2), 0);
    cts_gem_va(c, "clear over two", 0, d, 0, CLEAR, c->va, 0, MiB(128), 0);
    cts_gem_va(c, "a sparse range", 0, d, 0, MAP, c->va, 0, MiB(2), PRT);
    cts_gem_va(c, "map over it", -EINVAL, d, b.gem, MAP, c->va, 0, MiB(2), R);
    cts_gem_va(c, "clear it", 0, d, 0, CLEAR, c->va, 0, MiB(2), 0);
    bo_end(c, &b);
}

/* One tree of mappings for both interfaces. */
static void beside_kfd(struct cts *c)
{
    uint32_t id;
    uint64_t h, over;
    struct bo b;
    int d;

    cts_start(c);
    id = c->gpu[0].id;
    b = bo_make(c);
    d = b.drm;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
    over = cts_alloc(c, "alloc over the GEM mapping", 0, 0, c->va + MiB(16), MiB(2),
                     KFD_MEM_GTT | CTS_RW);
    cts_map(c, "KFD map", 0, h, 0, CTS_IDS(id));
    cts_gem_va(c, "GEM_VA over it", -EINVAL, d, b.gem, MAP, c->va, 0, MiB(2), RW);
    cts_gem_va(c, "GEM_VA elsewhere", 0, d, b.gem, MAP, c->va + MiB(16), 0, MiB(2), RW);
    cts_map(c, "KFD map over that", -EINVAL, over, 0, CTS_IDS(id));
    cts_gem_va(c, "unmap it", 0, d, b.gem, UNMAP, c->va + MiB(16), 0, MiB(2), 0);
    cts_map(c, "KFD map now", 0, over, 0, CTS_IDS(id));
    cts_gem_va(c, "clear what KFD mapped", 0, d, 0, CLEAR, c->va, 0, MiB(2), 0);
    cts_map(c, "KFD does not know: map is a no-op", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "and unmap succeeds", CTS_ANY, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap the other", 0, over, 0, CTS_IDS(id));
    cts_free(c, "free", CTS_ANY, h);
    cts_free(c, "free the other", 0, over);
    bo_end(c, &b);
}

static void limits(struct cts *c)
{
    bool gfx9;
    struct bo b;
    int d;

    cts_start(c);
    gfx9 = c->gpu[0].va_limit >> 40;
    b = bo_make(c);
    d = b.drm;
    cts_gem_va(c, "at the lowest address", 0, d, b.gem, MAP, c->minor < 12 ? 0x200000 : 0x10000, 0,
               4096, R);
    cts_gem_va(c, "in the last page below the hole", gfx9 ? 0 : -EINVAL, d, b.gem, MAP,
               ((uint64_t)1 << 47) - 4096, 0, 4096, R);
    cts_gem_va(c, "in the upper half", gfx9 ? 0 : -EINVAL, d, b.gem, MAP, 0xffff800000000000, 0,
               4096, R);
    cts_gem_va(c, "past 2^40", gfx9 ? 0 : -EINVAL, d, b.gem, MAP, (uint64_t)1 << 40, 0, 4096, R);
    bo_end(c, &b);
}

/* The drm engine, 200 times. */
static void cycles(struct cts *c)
{
    uint32_t id;
    uint64_t start, bad = 0;
    int drm;

    cts_start(c);
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    start = cts_available(c, 0);
    for (int i = 0; i < 200; i++) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .size = MiB(2), .gpu_id = id, .flags = KFD_MEM_VRAM | CTS_RW};
        struct kfd_uapi_export_dmabuf e = {.flags = O_CLOEXEC};
        struct drm_prime_handle p = {0};
        struct kfd_uapi_gem_va v = {
            .operation = MAP, .flags = RW, .va_address = c->va, .map_size = MiB(2)};
        struct kfd_ioctl_map_memory_to_gpu_args m = {
            .device_ids_array_ptr = (uintptr_t)&id, .n_devices = 1, .n_success = 1};
        struct drm_gem_close g = {0};
        struct kfd_ioctl_free_memory_of_gpu_args f;

        bad += cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a) < 0;
        e.handle = m.handle = f.handle = a.handle;
        bad += cts_request(c, c->kfd, KFD_CODE_EXPORT_DMABUF, &e) < 0;
        p.fd = (int)e.dmabuf_fd;
        bad += cts_request(c, drm, DRM_CODE_PRIME_FD_TO_HANDLE, &p) < 0;
        cts_close(c, p.fd);
        v.handle = g.handle = p.handle;
        bad += cts_request(c, drm, DRM_CODE_GEM_VA_OLD, &v) < 0;
        v.operation = UNMAP;
        bad += cts_request(c, drm, DRM_CODE_GEM_VA_OLD, &v) < 0;
        bad += cts_request(c, c->kfd, KFD_CODE_MAP_MEMORY_TO_GPU, &m) < 0;
        bad += cts_request(c, drm, DRM_CODE_GEM_CLOSE, &g) < 0;
        bad += cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &f) < 0;
    }
    cts_row(c, "200 rounds of the drm engine", 0, bad ? -EIO : 0, "lost=%lld",
            (long long)(start - cts_available(c, 0)));
}

const struct cts_case cts_gemva_cases[] = {
    {"gemva.order", 0, order},
    {"gemva.sub_ranges", 0, sub_ranges},
    {"gemva.replace_and_clear", 0, replace_and_clear},
    {"gemva.beside_kfd", 0, beside_kfd},
    {"gemva.limits", 0, limits},
    {"gemva.cycles", CTS_GEM_VA, cycles},
    {0},
};
