/* SPDX-License-Identifier: MIT */
/* MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU on one GPU. */
#include "cts.h"

#define GTT (KFD_MEM_GTT | CTS_RW)

static void raw_map(struct cts *c, const char *step, long want, bool unmap, uint64_t handle,
                    uint64_t pointer, uint32_t n, uint32_t done)
{
    struct kfd_ioctl_map_memory_to_gpu_args a = {
        .handle = handle, .device_ids_array_ptr = pointer, .n_devices = n, .n_success = done};
    long ret = cts_request(c, c->kfd,
                           unmap ? KFD_CODE_UNMAP_MEMORY_FROM_GPU : KFD_CODE_MAP_MEMORY_TO_GPU, &a);

    cts_row(c, step, want, ret, "n_success=%u", a.n_success);
}

static void errors(struct cts *c)
{
    uint32_t id, ids[1];
    uint64_t h;

    cts_start(c);
    id = ids[0] = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), GTT);
    for (int u = 0; u < 2; u++) {
        const char *what = u ? "unmap" : "map";

        raw_map(c, cts_text("%s: no device", what), -EINVAL, u, h, (uintptr_t)ids, 0, 0);
        raw_map(c, cts_text("%s: no device, no array", what), -EINVAL, u, h, 8, 0, 0);
        raw_map(c, cts_text("%s: more done than devices", what), -EINVAL, u, h, (uintptr_t)ids, 1,
                2);
        raw_map(c, cts_text("%s: array at 8", what), -EFAULT, u, h, 8, 1, 0);
        raw_map(c, cts_text("%s: array at 0", what), -EFAULT, u, h, 0, 1, 0);
        raw_map(c, cts_text("%s: array at 8 of an unknown GPU's handle", what), -EFAULT, u,
                0xdead00000001, 8, 1, 0);
        raw_map(c, cts_text("%s: unknown GPU's handle", what), -EINVAL, u, 0xdead00000001,
                (uintptr_t)ids, 1, 0);
        raw_map(c, cts_text("%s: handle 0", what), -EINVAL, u, 0, (uintptr_t)ids, 1, 0);
        raw_map(c, cts_text("%s: unknown handle of a known GPU", what), -ENOMEM, u, h + 7,
                (uintptr_t)ids, 1, 0);
    }
    raw_map(c, "flush-only map of an unknown handle", -ENOMEM, false, h + 7, (uintptr_t)ids, 1, 1);
    cts_map(c, "map: unknown GPU", -EINVAL, h, 0, CTS_IDS(CTS_BAD_GPU));
    cts_unmap(c, "unmap: unknown GPU", -EINVAL, h, 0, CTS_IDS(CTS_BAD_GPU));
    cts_unmap(c, "unmap: not mapped", -EINVAL, h, 0, CTS_IDS(id));
    cts_free(c, "free", 0, h);
}

static void life(struct cts *c)
{
    uint32_t id;
    uint64_t h;

    cts_start(c);
    id = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_VRAM | CTS_RW);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    cts_map(c, "map again", 0, h, 0, CTS_IDS(id));
    cts_map(c, "flush only", 0, h, 1, CTS_IDS(id));
    cts_free(c, "free while mapped", -EBUSY, h);
    cts_map(c, "the handle stays good", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "one unmap for many maps", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap again", -EINVAL, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap with all done before", 0, h, 1, CTS_IDS(id));
    cts_map(c, "map once more", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "free", 0, h);
    cts_map(c, "map what is free", -ENOMEM, h, 0, CTS_IDS(id));
}

static void partial(struct cts *c)
{
    uint32_t id;
    uint64_t h;

    /* resuming past an unknown GPU makes the kernel warn */
    cts_expect_report(c, "WARNING: .*kfd_ioctl_unmap_memory_from_gpu");
    cts_start(c);
    id = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), GTT);
    cts_map(c, "map: known, unknown", -EINVAL, h, 0, CTS_IDS(id, CTS_BAD_GPU));
    cts_free(c, "the known one is mapped", -EBUSY, h);
    cts_map(c, "map: resumed at the unknown", -EINVAL, h, 1, CTS_IDS(id, CTS_BAD_GPU));
    cts_map(c, "map: all done before", 0, h, 2, CTS_IDS(id, id));
    cts_map(c, "map: the same one twice", 0, h, 0, CTS_IDS(id, id));
    cts_unmap(c, "unmap: unknown, known", -EINVAL, h, 0, CTS_IDS(CTS_BAD_GPU, id));
    cts_free(c, "still mapped", -EBUSY, h);
    cts_unmap(c, "unmap: known, unknown", -EINVAL, h, 0, CTS_IDS(id, CTS_BAD_GPU));
    cts_unmap(c, "unmap: resumed past the unknown", 0, h, 2, CTS_IDS(id, CTS_BAD_GPU));
    cts_free(c, "free", 0, h);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), GTT);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap: the same one twice", -EINVAL, h, 0, CTS_IDS(id, id));
    cts_free(c, "free", 0, h);
}

/* More devices than memory can hold: the kernel warns once and says ENOMEM. */
static void huge_count(struct cts *c)
{
    uint32_t ids[1];
    uint64_t h;

    cts_expect_report(c, "WARNING: .*mm/");
    cts_start(c);
    ids[0] = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), GTT);
    raw_map(c, "map: 4 Gi devices", -ENOMEM, false, h, (uintptr_t)ids, 0xffffffff, 0);
    raw_map(c, "unmap: 4 Gi devices", -ENOMEM, true, h, (uintptr_t)ids, 0xffffffff, 0);
    cts_free(c, "free", 0, h);
}

static void neighbours(struct cts *c)
{
    uint32_t id;
    uint64_t h[4];

    cts_start(c);
    id = c->gpu[0].id;
    h[0] = cts_alloc(c, "first", 0, 0, c->va, MiB(2), GTT);
    h[1] = cts_alloc(c, "right behind it", 0, 0, c->va + MiB(2), MiB(2), GTT);
    h[2] = cts_alloc(c, "overlapping both", 0, 0, c->va + MiB(1), MiB(2), GTT);
    h[3] = cts_alloc(c, "one page into the second", 0, 0, c->va + MiB(4) - KiB(4), KiB(8), GTT);
    cts_map(c, "map the first", 0, h[0], 0, CTS_IDS(id));
    cts_map(c, "map the second", 0, h[1], 0, CTS_IDS(id));
    cts_map(c, "map over both", -EINVAL, h[2], 0, CTS_IDS(id));
    cts_map(c, "map over the last page", -EINVAL, h[3], 0, CTS_IDS(id));
    cts_unmap(c, "a failed map left nothing", -EINVAL, h[2], 0, CTS_IDS(id));
    cts_unmap(c, "unmap the first", 0, h[0], 0, CTS_IDS(id));
    cts_unmap(c, "unmap the second", 0, h[1], 0, CTS_IDS(id));
    for (int i = 0; i < 4; i++)
        cts_free(c, cts_text("free %d", i), 0, h[i]);
}

static void cycles(struct cts *c)
{
    uint64_t start, bad = 0;

    cts_start(c);
    start = cts_available(c, 0);
    for (unsigned i = 0; i < 100; i++) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .va_addr = c->va + i * MiB(2),
            .size = KiB(64),
            .gpu_id = c->gpu[0].id,
            .flags = (i & 1 ? KFD_MEM_VRAM : KFD_MEM_GTT) | CTS_RW,
        };
        struct kfd_ioctl_map_memory_to_gpu_args m = {.device_ids_array_ptr = (uintptr_t)&a.gpu_id,
                                                     .n_devices = 1};
        struct kfd_ioctl_free_memory_of_gpu_args f;

        bad += cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a) < 0;
        m.handle = f.handle = a.handle;
        bad += cts_request(c, c->kfd, KFD_CODE_MAP_MEMORY_TO_GPU, &m) < 0;
        m.n_success = 0;
        bad += cts_request(c, c->kfd, KFD_CODE_UNMAP_MEMORY_FROM_GPU, &m) < 0;
        bad += cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &f) < 0;
    }
    cts_row(c, "100 rounds of alloc, map, unmap, free", 0, bad ? -EIO : 0, "lost=%lld",
            (long long)(start - cts_available(c, 0)));
}

/* Left to the kernel at exit. */
static void abandoned(struct cts *c)
{
    uint64_t h;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(32), KFD_MEM_VRAM | CTS_RW);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
}

static void after_abandoned(struct cts *c)
{
    cts_start(c);
    cts_row(c, "what a dead process held has come back", 0, 0, "available=0x%llx",
            (unsigned long long)cts_available(c, 0));
}

const struct cts_case cts_map_cases[] = {
    {"map.errors", 0, errors},
    {"map.life", 0, life},
    {"map.partial", 0, partial},
    {"map.huge_count", 0, huge_count},
    {"map.neighbours", 0, neighbours},
    {"map.cycles", 0, cycles},
    {"map.abandoned", 0, abandoned},
    {"map.after_abandoned", 0, after_abandoned},
    {0},
};
