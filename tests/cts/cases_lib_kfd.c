/* SPDX-License-Identifier: MIT */
/* The library's KFD layer: what it makes of the driver's answers, and which requests it sends. */
#include "library.h"

#define DEV(l, i) kfd_device_at((l)->kfd, i)
#define RW (KFD_VA_READ | KFD_VA_WRITE)

/* Chips before gfx906 leave their TLBs alone when KFD unmaps. */
static void flush(struct lib *l, uint64_t handle, uint32_t n)
{
    struct kfd_device *devs[2] = {DEV(l, 0), n > 1 ? DEV(l, 1) : NULL};

    LIB_ROW(l, "flush", 0, kfd_mem_flush(l->kfd, handle, devs, n), "-");
}

static void open_close(struct cts *c)
{
    struct kfd *second = NULL;
    uint32_t major, minor;
    struct lib l;

    lib_watch(&l, c);
    LIB_ROW(&l, "open", 0, kfd_open(l.sys, &l.kfd), "%u devices, %u CPU nodes, left out: %s",
            kfd_device_count(l.kfd), kfd_cpu_node_count(l.kfd),
            kfd_skipped(l.kfd, 0) ? kfd_skipped(l.kfd, 0) : "none");
    kfd_version(l.kfd, &major, &minor);
    cts_row(c, "version", 0, 0, "%u.%u", major, minor);
    for (enum kfd_cap cap = 0; cap < KFD_CAP_COUNT; cap++) {
        struct kfd_cap_info info;

        kfd_cap_info(l.kfd, cap, &info);
        cts_row(c, cts_text("capability %s", info.name), 0, 0, "%s", info.present ? "yes" : "no");
    }
    LIB_ROW(&l, "open a second time", 0, kfd_open(l.sys, &second), "%u devices",
            kfd_device_count(second));
    kfd_close(l.kfd);
    LIB_ROW(&l, "close the first", 0, 0, "-");
    kfd_close(second);
    LIB_ROW(&l, "close the second", 0, 0, "-");
    LIB_ROW(&l, "open again", 0, kfd_open(l.sys, &l.kfd), "%u devices", kfd_device_count(l.kfd));
    kfd_close(l.kfd);
    LIB_ROW(&l, "close", 0, 0, "-");
}

static void in_child(struct cts *c, void *arg)
{
    struct lib *l = arg;
    uint64_t bytes = 0, h = 0;
    struct kfd *own = NULL;

    lib_requests(l);
    cts_row(c, "child: is it the owner", 0, 0, "%s", kfd_is_owner(l->kfd) ? "yes" : "no");
    LIB_ROW(l, "child: available memory", -EBADF, kfd_mem_available(DEV(l, 0), &bytes), "-");
    LIB_ROW(l, "child: alloc", -EBADF,
            kfd_mem_alloc(DEV(l, 0), 0, MiB(2), KFD_MEM_VRAM | CTS_RW, &h, NULL), "-");
    LIB_ROW(l, "child: open its own", 0, kfd_open(l->sys, &own), "%u devices",
            kfd_device_count(own));
    LIB_ROW(l, "child: alloc from it", 0,
            kfd_mem_alloc(kfd_device_at(own, 0), 0, MiB(2), KFD_MEM_VRAM | CTS_RW, &h, NULL),
            "handle=%s", cts_handle_text(c, h));
    LIB_ROW(l, "child: free", 0, kfd_mem_free(own, h), "-");
    kfd_close(own);
    LIB_ROW(l, "child: close", 0, 0, "-");
    kfd_close(l->kfd);
    LIB_ROW(l, "child: close the parent's", 0, 0, "-");
}

static void forked(struct cts *c)
{
    uint64_t bytes = 0;
    struct lib l;

    lib_open(&l, c);
    cts_fork(c, in_child, &l);
    LIB_ROW(&l, "parent: available memory", 0, kfd_mem_available(DEV(&l, 0), &bytes), "%s",
            bytes ? "some" : "none");
    kfd_close(l.kfd);
}

static void devices(struct cts *c)
{
    struct kfd_link_info link;
    struct lib l;

    lib_open(&l, c);
    for (uint32_t i = 0; i < kfd_device_count(l.kfd); i++) {
        const struct kfd_device_info *d = kfd_device_info(DEV(&l, i));

        cts_row(c, cts_text("device %u", i), 0, 0,
                "%s node=%u %s gfx=%u chip=%04x:%04x xcc=%u simds=%u/%u wave=%u clock=%u lds=%u",
                cts_gpu_text(c, d->gpu_id), d->node, d->name, d->gfx_version, d->vendor_id,
                d->device_id, d->num_xcc, d->simd_count, d->simd_per_cu, d->wave_front_size,
                d->max_clock_mhz, d->lds_size_kb);
        cts_row(c, "memory", 0, 0, "vram=0x%llx large_bar=%d apu=%d bits=%u clock=%u",
                (unsigned long long)d->vram_size, d->large_bar, d->apu, d->mem_width_bits,
                d->mem_clock_mhz);
        cts_row(c, "place", 0, 0, "va=0x%llx..0x%llx cpu_node=%u drm=%u.%u hive=%llx",
                (unsigned long long)d->va_base, (unsigned long long)d->va_limit, d->cpu_node,
                d->drm_major, d->drm_minor, (unsigned long long)d->hive_id);
        cts_row(c, "found by its gpu_id", 0, 0, "%s",
                kfd_device_by_gpu_id(l.kfd, d->gpu_id) == DEV(&l, i) ? "yes" : "no");
        for (uint32_t k = 0; k < kfd_device_count(l.kfd); k++)
            cts_row(c, cts_text("reaches VRAM of device %u", k), 0, 0, "%s",
                    kfd_can_access(DEV(&l, i), DEV(&l, k)) ? "yes" : "no");
    }
    for (uint32_t i = 0; i < kfd_link_count(l.kfd); i++) {
        kfd_link_info(l.kfd, i, &link);
        cts_row(c, cts_text("link %u", i), 0, 0, "%u->%u type=%u weight=%u flags=0x%x%s",
                link.node_from, link.node_to, link.type, link.weight, link.flags,
                link.peer ? " peer" : "");
    }
    cts_row(c, "past the last device", 0, 0, "%s",
            DEV(&l, kfd_device_count(l.kfd)) ? "one" : "none");
    kfd_close(l.kfd);
}

/* A CPU view through the render node. */
static void *view(struct lib *l, const char *step, long want, uint64_t offset, uint64_t size)
{
    return cts_mmap(l->c, step, want, kfd_device_drm_fd(DEV(l, 0)), offset, size,
                    PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void memory(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } kinds[] = {
        {"VRAM", KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW},
        {"VRAM, read-only", KFD_MEM_VRAM | KFD_MEM_PUBLIC},
        {"host memory", KFD_MEM_GTT | KFD_MEM_WRITABLE},
    };
    struct kfd_device *dev;
    uint64_t h, offset;
    uint32_t done;
    struct lib l;

    lib_open(&l, c);
    lib_walk(&l);
    dev = DEV(&l, 0);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        void *p;

        LIB_ROW(&l, cts_text("alloc %s", kinds[i].name), 0,
                kfd_mem_alloc(dev, c->va, MiB(4), kinds[i].flags, &h, &offset), "handle=%s",
                cts_handle_text(c, h));
        p = view(&l, "CPU view", 0, offset, MiB(4));
        if (p)
            lib_stamp_at(p, 'A', MiB(4), 0);
        lib_look(&l, "before the map", 0, c->va);
        LIB_ROW(&l, "map", 0, kfd_mem_map(l.kfd, h, &dev, 1, &done), "done=%u", done);
        lib_look_around(&l, "mapped", 0, c->va, MiB(4));
        LIB_ROW(&l, "map again", 0, kfd_mem_map(l.kfd, h, &dev, 1, &done), "done=%u", done);
        LIB_ROW(&l, "free while mapped", -EBUSY, kfd_mem_free(l.kfd, h), "-");
        lib_look(&l, "still mapped", 0, c->va);
        LIB_ROW(&l, "unmap", 0, kfd_mem_unmap(l.kfd, h, &dev, 1, &done), "done=%u", done);
        flush(&l, h, 1);
        lib_look_around(&l, "unmapped", 0, c->va, MiB(4));
        LIB_ROW(&l, "unmap again", -EINVAL, kfd_mem_unmap(l.kfd, h, &dev, 1, &done), "done=%u",
                done);
        LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, h), "-");
        LIB_ROW(&l, "free again", -EINVAL, kfd_mem_free(l.kfd, h), "-");
        cts_munmap(c, p, MiB(4));
    }
    LIB_ROW(&l, "map a handle that is gone", -ENOMEM, kfd_mem_map(l.kfd, h, &dev, 1, &done),
            "done=%u", done);
    kfd_close(l.kfd);
}

/* What the layer refuses because the kernel would take it, or would take it and fail later. */
static void refused(struct cts *c)
{
    static const struct {
        const char *name;
        uint64_t va, size;
        uint32_t flags;
        long want;
    } calls[] = {
        {"size 0", 0, 0, KFD_MEM_VRAM, -EINVAL},
        {"size off the page", 0, 0x1001, KFD_MEM_VRAM, -EINVAL},
        {"address off the page", 0x7000000100, 4096, KFD_MEM_VRAM, -EINVAL},
        {"address past the aperture", 1ull << 48, 4096, KFD_MEM_VRAM, -EINVAL},
        {"no kind of memory", 0, 4096, KFD_MEM_WRITABLE, -EINVAL},
        {"two kinds of memory", 0, 4096, KFD_MEM_VRAM | KFD_MEM_GTT, -EINVAL},
        {"public host memory", 0, 4096, KFD_MEM_GTT | KFD_MEM_PUBLIC, -EINVAL},
        {"an unknown flag", 0, 4096, KFD_MEM_VRAM | 0x800, -EINVAL},
        {"more than there is", 0, 1ull << 44, KFD_MEM_VRAM, -ENOMEM},
    };
    uint64_t h = 0x1111, bytes = 0;
    struct kfd_device *dev;
    struct lib l;
    int fd = -1;

    lib_open(&l, c);
    dev = DEV(&l, 0);
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++)
        LIB_ROW(&l, calls[i].name, calls[i].want,
                kfd_mem_alloc(dev, calls[i].va, calls[i].size, calls[i].flags, &h, NULL), "%s",
                h == 0x1111 ? "handle kept" : "handle written");
    LIB_ROW(&l, "contiguous", c->minor < 16 ? -EOPNOTSUPP : 0,
            kfd_mem_alloc(dev, 0, MiB(2), KFD_MEM_VRAM | KFD_MEM_CONTIGUOUS, &h, NULL), "-");
    if (c->minor >= 16)
        LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, h), "-");
    LIB_ROW(&l, "map on no device", -EINVAL, kfd_mem_map(l.kfd, h, &dev, 0, NULL), "-");
    LIB_ROW(&l, "export of no handle", c->minor < 12 ? -EOPNOTSUPP : -EINVAL,
            kfd_dmabuf_export(l.kfd, 0x1234, &fd), "-");
    LIB_ROW(&l, "import of no descriptor", -EBADF, kfd_dmabuf_import(dev, -1, 0, &h), "-");
    LIB_ROW(&l, "import of no dma-buf", -EINVAL, kfd_dmabuf_import(dev, c->kfd, 0, &h), "-");
    LIB_ROW(&l, "available memory", 0, kfd_mem_available(dev, &bytes), "%s",
            bytes ? "some" : "none");
    kfd_close(l.kfd);
}

/* EINTR in the middle of a request is repeated by the layer; only FREE is not. */
static void interrupted(struct cts *c)
{
    struct kfd_sys_fault fault = {KFD_SYS_REQUEST, .error = EINTR};
    struct kfd_sys *injector;
    struct kfd_device *dev;
    struct lib l;
    uint64_t h;

    lib_watch(&l, c);
    if (kfd_sys_inject_new(l.sys, &injector) < 0 || kfd_open(injector, &l.kfd) < 0)
        cts_skip(c, "%s", kfd_error_text());
    lib_walk(&l);
    dev = DEV(&l, 0);
    kfd_sys_inject_set(injector, &fault);
    LIB_ROW(&l, "alloc, interrupted", 0,
            kfd_mem_alloc(dev, c->va, MiB(2), KFD_MEM_GTT | CTS_RW, &h, NULL), "-");
    kfd_sys_inject_set(injector, &fault);
    LIB_ROW(&l, "map, interrupted", 0, kfd_mem_map(l.kfd, h, &dev, 1, NULL), "-");
    lib_look(&l, "it is mapped", 0, c->va);
    kfd_sys_inject_set(injector, &fault);
    LIB_ROW(&l, "unmap, interrupted", 0, kfd_mem_unmap(l.kfd, h, &dev, 1, NULL), "-");
    kfd_sys_inject_set(injector, &fault);
    flush(&l, h, 1);
    lib_look(&l, "it is not", 0, c->va);
    kfd_sys_inject_set(injector, &fault);
    LIB_ROW(&l, "free, interrupted", -EIO, kfd_mem_free(l.kfd, h), "-");
    kfd_sys_inject_set(injector, NULL);
    LIB_ROW(&l, "it was not sent", 0, kfd_mem_free(l.kfd, h), "-");
    kfd_close(l.kfd);
    kfd_sys_destroy(injector);
}

static void dmabuf(struct cts *c)
{
    struct kfd_dmabuf_info info = {0};
    uint64_t h, offset, alias, start;
    struct kfd_device *dev;
    struct lib l;
    void *p;
    int fd = -1;

    lib_open(&l, c);
    lib_walk(&l);
    dev = DEV(&l, 0);
    start = cts_available(c, 0);
    kfd_mem_alloc(dev, c->va, MiB(4), KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW, &h, &offset);
    p = view(&l, "CPU view", 0, offset, MiB(4));
    if (p)
        lib_stamp_at(p, 'A', MiB(4), 0);
    cts_munmap(c, p, MiB(4));
    LIB_ROW(&l, "export", 0, kfd_dmabuf_export(l.kfd, h, &fd), "%s",
            fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC ? "above 2, close-on-exec" : "wrong");
    LIB_ROW(&l, "info", 0, kfd_dmabuf_info(l.kfd, fd, &info), "size=0x%llx flags=0x%x owner=%s",
            (unsigned long long)info.size, info.flags, cts_gpu_text(c, info.gpu_id));
    LIB_ROW(&l, "import elsewhere", 0, kfd_dmabuf_import(dev, fd, c->va + MiB(64), &alias),
            "handle=%s", cts_handle_text(c, alias));
    c->sys->ops->close_fd(c->sys, fd);
    LIB_ROW(&l, "map both", 0, kfd_mem_map(l.kfd, h, &dev, 1, NULL), "-");
    LIB_ROW(&l, "map both", 0, kfd_mem_map(l.kfd, alias, &dev, 1, NULL), "-");
    lib_look_around(&l, "original", 0, c->va, MiB(4));
    lib_look_around(&l, "alias", 0, c->va + MiB(64), MiB(4));
    LIB_ROW(&l, "unmap the original", 0, kfd_mem_unmap(l.kfd, h, &dev, 1, NULL), "-");
    flush(&l, h, 1);
    LIB_ROW(&l, "free the original", 0, kfd_mem_free(l.kfd, h), "used=%lld", lib_used(&l, start));
    lib_look(&l, "original", 0, c->va);
    lib_look(&l, "alias", 0, c->va + MiB(64));
    LIB_ROW(&l, "unmap the alias", 0, kfd_mem_unmap(l.kfd, alias, &dev, 1, NULL), "-");
    flush(&l, alias, 1);
    LIB_ROW(&l, "free the alias", 0, kfd_mem_free(l.kfd, alias), "used=%lld", lib_used(&l, start));
    lib_look(&l, "alias", 0, c->va + MiB(64));
    kfd_close(l.kfd);
}

/* The layer counts what the kernel does not. */
static void gem_count(struct cts *c)
{
    uint32_t made = 0, first = 0, second = 0;
    struct kfd_device *dev;
    uint64_t offset = 0;
    struct lib l;
    int fd = -1;

    lib_open(&l, c);
    dev = DEV(&l, 0);
    LIB_ROW(&l, "create", 0, kfd_gem_create(dev, MiB(2), true, &made), "gem=%u", made);
    LIB_ROW(&l, "create of a bad size", -EINVAL, kfd_gem_create(dev, 100, true, &first), "-");
    LIB_ROW(&l, "mmap offset", 0, kfd_gem_mmap_offset(dev, made, &offset), "%s",
            offset ? "set" : "0");
    cts_munmap(c, view(&l, "CPU view", 0, offset, MiB(2)), MiB(2));
    LIB_ROW(&l, "export", 0, kfd_gem_export(dev, made, &fd), "-");
    LIB_ROW(&l, "import", 0, kfd_gem_import(dev, fd, &first), "%s",
            first == made ? "the same handle" : "another");
    LIB_ROW(&l, "import", 0, kfd_gem_import(dev, fd, &second), "%s",
            second == made ? "the same handle" : "another");
    c->sys->ops->close_fd(c->sys, fd);
    for (int i = 1; i <= 3; i++)
        LIB_ROW(&l, cts_text("close %d of 3", i), 0, kfd_gem_close(dev, made), "-");
    LIB_ROW(&l, "one close too many", -EINVAL, kfd_gem_close(dev, made), "-");
    LIB_ROW(&l, "export after the last", -ENOENT, kfd_gem_export(dev, made, &fd), "-");
    kfd_close(l.kfd);
}

/* The calls of the drm engine one by one. */
static void gem_va(struct cts *c)
{
    uint64_t h, offset, start;
    struct kfd_device *dev;
    uint32_t gem = 0;
    struct lib l;
    void *p;
    int fd = -1;

    lib_open(&l, c);
    lib_walk(&l);
    dev = DEV(&l, 0);
    start = cts_available(c, 0);
    kfd_mem_alloc(dev, 0, MiB(8), KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW, &h, &offset);
    p = view(&l, "CPU view", 0, offset, MiB(8));
    if (p)
        lib_stamp_at(p, 'A', MiB(8), 0);
    cts_munmap(c, p, MiB(8));
    kfd_dmabuf_export(l.kfd, h, &fd);
    LIB_ROW(&l, "export and import", 0, kfd_gem_import(dev, fd, &gem), "gem=%u", gem);
    c->sys->ops->close_fd(c->sys, fd);
    LIB_ROW(&l, "map a part read-only", 0,
            kfd_gem_va(dev, KFD_VA_MAP, gem, c->va, MiB(4), MiB(2), KFD_VA_READ), "-");
    LIB_ROW(&l, "wait", 0, kfd_gem_va_wait(&dev, 1), "-");
    lib_look_around(&l, "part", 0, c->va, MiB(2));
    LIB_ROW(&l, "map over it", -EINVAL,
            kfd_gem_va(dev, KFD_VA_MAP, gem, c->va, 0, MiB(2), KFD_VA_READ), "-");
    LIB_ROW(&l, "map past the end", -EINVAL,
            kfd_gem_va(dev, KFD_VA_MAP, gem, c->va + MiB(32), MiB(7), MiB(2), RW), "-");
    LIB_ROW(&l, "replace: writable", 0,
            kfd_gem_va(dev, KFD_VA_REPLACE, gem, c->va, MiB(4), MiB(2), RW), "-");
    flush(&l, h, 1);
    lib_look_around(&l, "part", 0, c->va, MiB(2));
    LIB_ROW(&l, "unmap from its middle", -ENOENT,
            kfd_gem_va(dev, KFD_VA_UNMAP, gem, c->va + MiB(1), 0, MiB(1), 0), "-");
    LIB_ROW(&l, "unmap", 0, kfd_gem_va(dev, KFD_VA_UNMAP, gem, c->va, 0, MiB(2), 0), "-");
    flush(&l, h, 1);
    lib_look_around(&l, "part", 0, c->va, MiB(2));
    LIB_ROW(&l, "map two neighbours", 0, kfd_gem_va(dev, KFD_VA_MAP, gem, c->va, 0, MiB(2), RW),
            "-");
    LIB_ROW(&l, "map two neighbours", 0,
            kfd_gem_va(dev, KFD_VA_MAP, gem, c->va + MiB(2), MiB(6), MiB(2), KFD_VA_READ), "-");
    lib_look_around(&l, "first", 0, c->va, MiB(2));
    LIB_ROW(&l, "clear both", 0, kfd_gem_va(dev, KFD_VA_CLEAR, 0, c->va, 0, MiB(4), 0), "-");
    flush(&l, h, 1);
    lib_look_around(&l, "both", 0, c->va, MiB(4));
    LIB_ROW(&l, "close", 0, kfd_gem_close(dev, gem), "-");
    LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, h), "used=%lld", lib_used(&l, start));
    kfd_close(l.kfd);
}

/* Several devices: how far a call came, and that it can go on from there. */
static void several(struct cts *c)
{
    struct kfd_device *devs[2];
    uint64_t host, vram;
    uint32_t done = 9;
    struct lib l;

    lib_open(&l, c);
    lib_walk(&l);
    devs[0] = DEV(&l, 0);
    devs[1] = DEV(&l, 1);
    kfd_mem_alloc(devs[0], c->va, MiB(2), KFD_MEM_GTT | CTS_RW, &host, NULL);
    kfd_mem_alloc(devs[0], c->va + MiB(64), MiB(2), KFD_MEM_VRAM | CTS_RW, &vram, NULL);
    LIB_ROW(&l, "host memory on both", 0, kfd_mem_map(l.kfd, host, devs, 2, &done), "done=%u",
            done);
    lib_look(&l, "first GPU", 0, c->va);
    lib_look(&l, "second GPU", 1, c->va);
    LIB_ROW(&l, "VRAM on both", -EINVAL, kfd_mem_map(l.kfd, vram, devs, 2, &done), "done=%u", done);
    lib_look(&l, "first GPU", 0, c->va + MiB(64));
    lib_look(&l, "second GPU", 1, c->va + MiB(64));
    LIB_ROW(&l, "unmap VRAM from both", -EINVAL, kfd_mem_unmap(l.kfd, vram, devs, 2, &done),
            "done=%u", done);
    flush(&l, vram, 2);
    lib_look(&l, "first GPU", 0, c->va + MiB(64));
    LIB_ROW(&l, "unmap host memory from the second", 0,
            kfd_mem_unmap(l.kfd, host, devs + 1, 1, &done), "done=%u", done);
    flush(&l, host, 2);
    lib_look(&l, "first GPU", 0, c->va);
    lib_look(&l, "second GPU", 1, c->va);
    LIB_ROW(&l, "unmap from both", -EINVAL, kfd_mem_unmap(l.kfd, host, devs, 2, &done), "done=%u",
            done);
    flush(&l, host, 2);
    lib_look(&l, "first GPU", 0, c->va);
    LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, host), "-");
    LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, vram), "-");
    kfd_close(l.kfd);
}

/* What counts against a device, and until when. */
static void available(struct cts *c)
{
    struct kfd_device *dev;
    uint64_t h, host, start = 0, now = 0;
    struct lib l;
    int fd = -1;

    lib_open(&l, c);
    dev = DEV(&l, 0);
    LIB_ROW(&l, "at the start", 0, kfd_mem_available(dev, &start), "-");
    kfd_mem_alloc(dev, 0, MiB(8), KFD_MEM_VRAM | CTS_RW, &h, NULL);
    kfd_mem_available(dev, &now);
    LIB_ROW(&l, "8 MiB of VRAM", 0, 0, "used=%lld KiB", (long long)(start - now) / 1024);
    kfd_mem_alloc(dev, 0, MiB(8), KFD_MEM_GTT | CTS_RW, &host, NULL);
    kfd_mem_available(dev, &now);
    LIB_ROW(&l, "8 MiB of host memory", 0, 0, "used=%lld KiB", (long long)(start - now) / 1024);
    LIB_ROW(&l, "export", c->minor < 12 ? -EOPNOTSUPP : 0, kfd_dmabuf_export(l.kfd, h, &fd), "-");
    LIB_ROW(&l, "free", 0, kfd_mem_free(l.kfd, h), "-");
    kfd_mem_available(dev, &now);
    LIB_ROW(&l, "freed, the export open", 0, 0, "used=%lld KiB", (long long)(start - now) / 1024);
    if (fd >= 0)
        c->sys->ops->close_fd(c->sys, fd);
    kfd_mem_available(dev, &now);
    LIB_ROW(&l, "closed", 0, 0, "used=%lld KiB", (long long)(start - now) / 1024);
    LIB_ROW(&l, "free the host's", 0, kfd_mem_free(l.kfd, host), "-");
    kfd_close(l.kfd);
}

const struct cts_case cts_lib_kfd_cases[] = {
    {"lib_kfd.open", CTS_NO_GPU, open_close},
    {"lib_kfd.fork", 0, forked},
    {"lib_kfd.devices", 0, devices},
    {"lib_kfd.memory", CTS_LARGE_BAR, memory},
    {"lib_kfd.refused", 0, refused},
    {"lib_kfd.interrupted", 0, interrupted},
    {"lib_kfd.dmabuf", CTS_EXPORT | CTS_LARGE_BAR, dmabuf},
    {"lib_kfd.gem_count", CTS_LARGE_BAR, gem_count},
    {"lib_kfd.gem_va", CTS_GEM_VA | CTS_LARGE_BAR, gem_va},
    {"lib_kfd.several", CTS_PEER, several},
    {"lib_kfd.available", 0, available},
    {0},
};
