/* SPDX-License-Identifier: MIT */
/* CPU views: the render node, the dma-buf, the KFD file. */
#include "cts.h"

#define RD PROT_READ
#define RDWR (PROT_READ | PROT_WRITE)

static void render(struct cts *c)
{
    uint32_t vram = KFD_MEM_VRAM | CTS_RW | (c->gpu[0].large_bar ? KFD_MEM_PUBLIC : 0);
    uint64_t offset = 0, h;
    uint32_t gem;
    int drm, other;
    uint8_t *p;

    cts_start(c);
    drm = c->gpu[0].drm;
    other = cts_open_render(c, 0);
    h = cts_alloc_mmap(c, "alloc", 0, 0, 0, MiB(2), vram, &offset);
    p = cts_mmap(c, "through the acquired file", 0, drm, offset, MiB(2), RDWR, MAP_SHARED);
    if (p) {
        cts_row(c, "fresh memory is zero", 0, 0, "%u %u", p[0], p[MiB(2) - 1]);
        p[0] = 0x5a;
        p[MiB(2) - 1] = 0xa5;
        cts_row(c, "what was written is read", 0, 0, "%02x %02x", p[0], p[MiB(2) - 1]);
    }
    cts_munmap(c, p, MiB(2));
    p = cts_mmap(c, "a second time, a prefix", 0, drm, offset, 4096, RD, MAP_SHARED);
    if (p)
        cts_row(c, "it is the same memory", 0, 0, "%02x", p[0]);
    cts_munmap(c, p, 4096);
    cts_mmap(c, "from inside the buffer", -EINVAL, drm, offset + 4096, 4096, RD, MAP_SHARED);
    cts_mmap(c, "beyond its size", -EINVAL, drm, offset, MiB(4), RD, MAP_SHARED);
    cts_mmap(c, "at offset 0", -EINVAL, drm, 0, 4096, RD, MAP_SHARED);
    cts_mmap(c, "through another file of the node", -EACCES, other, offset, MiB(2), RD, MAP_SHARED);
    cts_mmap(c, "private and writable", -EINVAL, drm, offset, MiB(2), RDWR, MAP_PRIVATE);
    p = cts_mmap(c, "private without access", CTS_ANY, drm, offset, MiB(2), PROT_NONE, MAP_PRIVATE);
    cts_munmap(c, p, MiB(2));
    p = cts_mmap(c, "mapped over the free", 0, drm, offset, MiB(2), RDWR, MAP_SHARED);
    cts_free(c, "free", 0, h);
    if (p)
        cts_row(c, "the view lives on", 0, 0, "%02x", p[MiB(2) - 1]);
    cts_mmap(c, "a new view after the free", CTS_ANY, drm, offset, MiB(2), RD, MAP_SHARED);
    cts_munmap(c, p, MiB(2));
    gem = cts_gem_create(c, "a GEM buffer", 0, other, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    offset = cts_gem_mmap(c, "its offset", 0, other, gem);
    p = cts_mmap(c, "view of it", 0, other, offset, MiB(2), RDWR, MAP_SHARED);
    cts_munmap(c, p, MiB(2));
    cts_mmap(c, "through the file that has no handle", -EACCES, drm, offset, MiB(2), RD,
             MAP_SHARED);
    cts_gem_mmap(c, "offset of an unknown handle", -ENOENT, other, 77);
}

static void read_only(struct cts *c)
{
    uint64_t offset = 0, h;
    void *p;

    cts_start(c);
    h = cts_alloc_mmap(c, "alloc without WRITABLE", 0, 0, 0, MiB(2), KFD_MEM_GTT, &offset);
    p = cts_mmap(c, "the render node gives a writable view", CTS_ANY, c->gpu[0].drm, offset, MiB(2),
                 RDWR, MAP_SHARED);
    cts_munmap(c, p, MiB(2));
    cts_free(c, "free", 0, h);
}

static void dmabuf(struct cts *c)
{
    uint32_t vram = KFD_MEM_VRAM | CTS_RW | (c->gpu[0].large_bar ? KFD_MEM_PUBLIC : 0);
    uint64_t offset = 0, h, ro;
    uint8_t *p, *q;
    int fd;

    cts_start(c);
    h = cts_alloc_mmap(c, "alloc", 0, 0, 0, MiB(2), vram, &offset);
    fd = cts_export(c, "export", 0, h);
    p = cts_mmap(c, "the buffer through the render node", 0, c->gpu[0].drm, offset, MiB(2), RDWR,
                 MAP_SHARED);
    if (p)
        p[MiB(1)] = 0x77;
    q = cts_mmap(c, "an inner page through the dma-buf", 0, fd, MiB(1), 4096, RDWR, MAP_SHARED);
    if (q)
        cts_row(c, "it is the same memory", 0, 0, "%02x", q[0]);
    cts_munmap(c, q, 4096);
    cts_mmap(c, "beyond its end", -EINVAL, fd, MiB(1), MiB(2), RD, MAP_SHARED);
    cts_munmap(c, p, MiB(2));
    cts_close(c, fd);
    cts_free(c, "free", 0, h);
    ro = cts_alloc(c, "alloc without WRITABLE", 0, 0, 0, MiB(2), KFD_MEM_GTT);
    fd = cts_export(c, "export it", 0, ro);
    q = cts_mmap(c, "read it", 0, fd, 0, 4096, RD, MAP_SHARED);
    cts_munmap(c, q, 4096);
    cts_mmap(c, "write it", -EACCES, fd, 0, 4096, RDWR, MAP_SHARED);
    cts_close(c, fd);
    cts_free(c, "free it", 0, ro);
}

static void imported(struct cts *c)
{
    uint64_t offset = 0, h;
    uint32_t gem;
    int other, fd;
    void *p;

    cts_start(c);
    other = cts_open_render(c, 0);
    h = cts_alloc_mmap(c, "alloc", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW, &offset);
    fd = cts_export(c, "export", 0, h);
    gem = cts_prime(c, "PRIME import into another file", 0, other, fd);
    offset = cts_gem_mmap(c, "its offset there", 0, other, gem);
    p = cts_mmap(c, "a handle allows the view", 0, other, offset, MiB(2), RDWR, MAP_SHARED);
    cts_munmap(c, p, MiB(2));
    cts_gem_close(c, "close", 0, other, gem);
    cts_mmap(c, "after the close", CTS_ANY, other, offset, MiB(2), RD, MAP_SHARED);
    cts_close(c, fd);
    cts_free(c, "free", 0, h);
}

static void userptr(struct cts *c)
{
    uint8_t *m = mmap(NULL, KiB(64), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uintptr_t)m, h;

    cts_start(c);
    memset(m, 1, KiB(64));
    h = cts_alloc_mmap(c, "alloc", 0, 0, c->va, KiB(64), KFD_MEM_USERPTR | CTS_RW, &at);
    cts_mmap(c, "a view of a userptr", -EPERM, c->gpu[0].drm, at, KiB(64), RD, MAP_SHARED);
    cts_free(c, "free", 0, h);
    munmap(m, KiB(64));
}

static void kfd_file(struct cts *c)
{
    uint64_t type = (uint64_t)1 << 62, id;
    size_t slice;
    void *p;

    cts_start(c);
    id = (uint64_t)c->gpu[0].id << 46;
    slice = c->gpu[0].va_limit >> 40 ? KiB(8) : KiB(4);
    cts_mmap(c, "type 0 of no GPU", -ENODEV, c->kfd, 0, 4096, RD, MAP_SHARED);
    cts_mmap(c, "events before there is a page", -EINVAL, c->kfd, 2 * type, KiB(32), RDWR,
             MAP_SHARED);
    cts_mmap(c, "doorbells of no GPU", -ENODEV, c->kfd, 3 * type, slice, RDWR, MAP_SHARED);
    cts_mmap(c, "doorbells of the wrong length", -EINVAL, c->kfd, 3 * type | id, slice * 2, RDWR,
             MAP_SHARED);
    p = cts_mmap(c, "doorbells", CTS_ANY, c->kfd, 3 * type | id, slice, RDWR, MAP_SHARED);
    cts_munmap(c, p, slice);
    cts_mmap(c, "trap memory of no GPU", -ENODEV, c->kfd, type, KiB(8), RDWR, MAP_SHARED);
    cts_mmap(c, "the MMIO page of the wrong length", CTS_ANY, c->kfd, id, KiB(8), RDWR, MAP_SHARED);
}

const struct cts_case cts_mmap_cases[] = {
    {"mmap.render", CTS_LARGE_BAR, render},
    {"mmap.read_only", 0, read_only},
    {"mmap.dmabuf", CTS_EXPORT | CTS_LARGE_BAR, dmabuf},
    {"mmap.imported", CTS_EXPORT, imported},
    {"mmap.userptr", 0, userptr},
    {"mmap.kfd_file", 0, kfd_file},
    {0},
};
