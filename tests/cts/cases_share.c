/* SPDX-License-Identifier: MIT */
/* Dma-bufs through KFD: EXPORT, IMPORT, GET_DMABUF_INFO. */
#include <sys/stat.h>

#include "cts.h"

#define GTT (KFD_MEM_GTT | CTS_RW)
#define VRAM (KFD_MEM_VRAM | CTS_RW)

static bool same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static void seek_row(struct cts *c, const char *step, int fd, off_t at, int whence)
{
    off_t r = lseek(fd, at, whence);

    cts_row(c, step, CTS_ANY, r < 0 ? -errno : 0, "%lld", (long long)(r < 0 ? 0 : r));
}

static void export(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
        uint64_t size;
    } kinds[] = {
        {"GTT", GTT, MiB(2)},
        {"VRAM", VRAM, MiB(2)},
        {"VRAM of an odd size", VRAM, 0x1001},
        {"VRAM for the CPU", VRAM | KFD_MEM_PUBLIC, MiB(2)},
        {"read-only GTT", KFD_MEM_GTT, MiB(2)},
    };

    cts_start(c);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t h = cts_alloc(c, kinds[i].name, 0, 0, 0, kinds[i].size, kinds[i].flags);
        int fd = cts_export(c, "export", 0, h), twin = cts_export(c, "export again", 0, h);

        cts_row(c, "both are one dma-buf", 0, same_file(fd, twin) ? 0 : -EXDEV, "-");
        cts_row(c, "close-on-exec, and the file's mode", 0, 0, "cloexec=%d mode=%d",
                fcntl(fd, F_GETFD) & FD_CLOEXEC, fcntl(fd, F_GETFL) & O_ACCMODE);
        seek_row(c, "seek to the end", fd, 0, SEEK_END);
        seek_row(c, "seek to the start", fd, 0, SEEK_SET);
        cts_info(c, "info", 0, fd);
        cts_close(c, twin);
        cts_free(c, "free", 0, h);
        cts_info(c, "info after the free", 0, fd);
        cts_close(c, fd);
    }
    cts_export(c, "export of an unknown GPU's handle", -EINVAL, 0xdead00000001);
    cts_export(c, "export of an unknown handle", -EINVAL, (uint64_t)c->gpu[0].id << 32 | 7);
}

static void export_flags(struct cts *c)
{
    struct kfd_uapi_export_dmabuf a = {.flags = 0};
    long ret;

    cts_start(c);
    a.handle = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), GTT);
    ret = cts_request(c, c->kfd, KFD_CODE_EXPORT_DMABUF, &a);
    cts_row(c, "no flags", 0, ret, "cloexec=%d", fcntl((int)a.dmabuf_fd, F_GETFD) & FD_CLOEXEC);
    a.flags = O_CLOEXEC | O_RDWR;
    ret = cts_request(c, c->kfd, KFD_CODE_EXPORT_DMABUF, &a);
    cts_row(c, "O_CLOEXEC and O_RDWR", CTS_ANY, ret, "%s", ret < 0 ? "-" : "fd");
    a.flags = 0x40000000;
    ret = cts_request(c, c->kfd, KFD_CODE_EXPORT_DMABUF, &a);
    cts_row(c, "an unknown flag", CTS_ANY, ret, "%s", ret < 0 ? "-" : "fd");
}

static void import(struct cts *c)
{
    uint32_t id;
    uint64_t h, at, alias, none;
    int fd, twin;

    cts_start(c);
    id = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(4), VRAM);
    fd = cts_export(c, "export", 0, h);
    at = cts_import(c, "import at an address", 0, id, fd, c->va);
    alias = cts_import(c, "import at another", 0, id, fd, c->va + MiB(64));
    none = cts_import(c, "import without one", 0, id, fd, 0);
    cts_map(c, "map the first", 0, at, 0, CTS_IDS(id));
    cts_map(c, "map the alias", 0, alias, 0, CTS_IDS(id));
    cts_map(c, "map without an address", -EINVAL, none, 0, CTS_IDS(id));
    twin = cts_export(c, "export of an import", 0, alias);
    cts_row(c, "it is the same dma-buf", 0, same_file(fd, twin) ? 0 : -EXDEV, "-");
    cts_free(c, "free the alias while mapped", -EBUSY, alias);
    cts_unmap(c, "unmap the alias", 0, alias, 0, CTS_IDS(id));
    cts_free(c, "free the alias", 0, alias);
    cts_unmap(c, "unmap the first", 0, at, 0, CTS_IDS(id));
    cts_free(c, "free the first", 0, at);
    cts_free(c, "free the third", 0, none);
    cts_free(c, "free the original", 0, h);
    cts_close(c, twin);
    cts_close(c, fd);
}

static void import_errors(struct cts *c)
{
    uint32_t id;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool old;

    cts_start(c);
    old = c->minor < 12;
    id = c->gpu[0].id;
    cts_import(c, "descriptor -1", -EBADF, id, -1, c->va);
    cts_import(c, "/dev/null", -EINVAL, id, null, c->va);
    cts_import(c, "/dev/kfd", -EINVAL, id, c->kfd, c->va);
    cts_import(c, "descriptor -1 on an unknown GPU", old ? -EBADF : -EINVAL, CTS_BAD_GPU, -1,
               c->va);
    cts_import(c, "/dev/null on an unknown GPU", -EINVAL, CTS_BAD_GPU, null, c->va);
    cts_info(c, "info of descriptor -1", -EBADF, -1);
    cts_info(c, "info of /dev/null", -EINVAL, null);
    close(null);
}

/* What a forked process does with a dma-buf of its parent. */
static void other_process(struct cts *c, void *arg)
{
    int fd = *(int *)arg, drm = c->gpu[0].drm;
    uint32_t id = c->gpu[0].id, gem;
    uint64_t h;

    cts_close(c, c->kfd);
    c->kfd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    drm = cts_open_render(c, 0);
    cts_info(c, "child: info before anything is acquired", 0, fd);
    cts_import(c, "child: import before the VM is acquired", -ENODEV, id, fd, c->va);
    cts_acquire(c, "child: acquire", 0, drm, id);
    h = cts_import(c, "child: import", 0, id, fd, c->va);
    cts_map(c, "child: map", 0, h, 0, CTS_IDS(id));
    gem = cts_prime(c, "child: PRIME import", 0, drm, fd);
    cts_gem_va(c, "child: GEM_VA map", 0, drm, gem, 1, c->va + MiB(64), 0, MiB(2), 6);
    cts_gem_va(c, "child: GEM_VA unmap", 0, drm, gem, 2, c->va + MiB(64), 0, MiB(2), 0);
    cts_gem_close(c, "child: close", 0, drm, gem);
    cts_unmap(c, "child: unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "child: free", 0, h);
}

static void between(struct cts *c)
{
    uint64_t h;
    int fd;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), VRAM);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    fd = cts_export(c, "export", 0, h);
    cts_fork(c, other_process, &fd);
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", 0, h);
    cts_close(c, fd);
}

/* The gem engine: memory of the DRM side, mapped by KFD. Works without EXPORT. */
static void gem_engine(struct cts *c)
{
    uint32_t id, gem;
    uint64_t h, alias;
    int drm, fd;

    cts_start(c);
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    gem = cts_gem_create(c, "create", 0, drm, MiB(4), AMDGPU_GEM_DOMAIN_VRAM);
    fd = cts_prime_export(c, "PRIME export", 0, drm, gem, O_CLOEXEC | O_RDWR);
    cts_info(c, "info", 0, fd);
    h = cts_import(c, "KFD import", 0, id, fd, c->va);
    alias = cts_import(c, "KFD import as an alias", 0, id, fd, c->va + MiB(64));
    cts_close(c, fd);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    cts_map(c, "map the alias", 0, alias, 0, CTS_IDS(id));
    cts_free(c, "free while mapped", -EBUSY, h);
    cts_unmap(c, "unmap the alias", 0, alias, 0, CTS_IDS(id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "free the alias", 0, alias);
    cts_free(c, "free", 0, h);
    cts_gem_close(c, "GEM_CLOSE last", 0, drm, gem);
}

/* The GEM handle given up before KFD has mapped anything. */
static void gem_engine_early(struct cts *c)
{
    uint32_t id, gem;
    uint64_t h;
    int drm, fd;

    cts_start(c);
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    gem = cts_gem_create(c, "create", 0, drm, MiB(4), AMDGPU_GEM_DOMAIN_VRAM);
    fd = cts_prime_export(c, "PRIME export", 0, drm, gem, O_CLOEXEC | O_RDWR);
    h = cts_import(c, "KFD import", 0, id, fd, c->va);
    cts_close(c, fd);
    cts_gem_close(c, "GEM_CLOSE before the first map", 0, drm, gem);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    cts_free(c, "free", 0, h);
}

const struct cts_case cts_share_cases[] = {
    {"share.export", CTS_EXPORT | CTS_LARGE_BAR, export},
    {"share.export_flags", CTS_EXPORT, export_flags},
    {"share.import", CTS_EXPORT, import},
    {"share.import_errors", 0, import_errors},
    {"share.between", CTS_EXPORT, between},
    {"share.gem_engine", 0, gem_engine},
    {"share.gem_engine_early", 0, gem_engine_early},
    {0},
};
