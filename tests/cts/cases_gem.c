/* SPDX-License-Identifier: MIT */
/* GEM handles: PRIME, GEM_CLOSE, GEM_CREATE. */
#include <sys/stat.h>

#include "cts.h"

static void handles(struct cts *c)
{
    uint32_t a, b, e;
    int drm;

    cts_open(c);
    drm = c->gpu[0].drm;
    a = cts_gem_create(c, "first", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    b = cts_gem_create(c, "second", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_VRAM);
    cts_gem_close(c, "close the first", 0, drm, a);
    cts_gem_close(c, "close it again", -EINVAL, drm, a);
    cts_gem_close(c, "close 0", -EINVAL, drm, 0);
    e = cts_gem_create(c, "the number comes back", 0, drm, KiB(4), AMDGPU_GEM_DOMAIN_GTT);
    cts_gem_close(c, "close", 0, drm, e);
    cts_gem_close(c, "close the second", 0, drm, b);
    cts_gem_create(c, "no domain", CTS_ANY, drm, KiB(4), 0);
    cts_gem_create(c, "unknown domain", -EINVAL, drm, KiB(4), 0x1000);
    cts_gem_create(c, "size 0", CTS_ANY, drm, 0, AMDGPU_GEM_DOMAIN_GTT);
}

/* Which creation flags a program may use. */
static void flags(struct cts *c)
{
    static const uint8_t domains[] = {AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_DOMAIN_VRAM};

    cts_start(c);
    for (unsigned d = 0; d < 2; d++)
        for (unsigned bit = 0; bit < 20; bit++) {
            union drm_amdgpu_gem_create a = {
                .in = {.bo_size = KiB(4), .domains = domains[d], .domain_flags = 1ull << bit}};
            long ret = cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CREATE, &a);

            cts_row(c, cts_text("%s, flag 1 << %u", d ? "VRAM" : "GTT", bit), CTS_ANY, ret, "-");
            if (ret >= 0)
                cts_gem_close(c, "close", 0, c->gpu[0].drm, a.out.handle);
        }
}

static void prime_errors(struct cts *c)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), drm;
    uint32_t gem;

    cts_open(c);
    drm = c->gpu[0].drm;
    cts_prime(c, "descriptor -1", -EBADF, drm, -1);
    cts_prime(c, "/dev/null", -EINVAL, drm, null);
    cts_prime_export(c, "unknown handle", -ENOENT, drm, 77, O_CLOEXEC);
    gem = cts_gem_create(c, "create", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_GTT);
    cts_prime_export(c, "unknown flag", -EINVAL, drm, gem, 0x1000);
    cts_close(c, cts_prime_export(c, "no flags", 0, drm, gem, 0));
    cts_gem_close(c, "close", 0, drm, gem);
    close(null);
}

/* Handles are not counted: one close ends what two imports gave. */
static void prime_twice(struct cts *c)
{
    uint32_t gem, first, second;
    int drm, other, fd;

    cts_open(c);
    drm = c->gpu[0].drm;
    other = cts_open_render(c, 0);
    gem = cts_gem_create(c, "create", 0, drm, MiB(2), AMDGPU_GEM_DOMAIN_VRAM);
    fd = cts_prime_export(c, "export", 0, drm, gem, O_CLOEXEC | O_RDWR);
    first = cts_prime(c, "import where it was made: the same handle", 0, drm, fd);
    cts_row(c, "same", 0, first == gem ? 0 : -EXDEV, "-");
    cts_gem_create(c, "another in the other file", 0, other, KiB(4), AMDGPU_GEM_DOMAIN_GTT);
    first = cts_prime(c, "import in the other file", 0, other, fd);
    second = cts_prime(c, "import there again", 0, other, fd);
    cts_row(c, "same", 0, first == second ? 0 : -EXDEV, "-");
    cts_gem_close(c, "one close", 0, other, first);
    cts_gem_close(c, "ends it", -EINVAL, other, second);
    first = cts_prime(c, "it can be imported anew", 0, other, fd);
    cts_gem_close(c, "close", 0, other, first);
    cts_gem_close(c, "close the original", 0, drm, gem);
    first = cts_prime(c, "the dma-buf keeps the memory", 0, drm, fd);
    cts_gem_close(c, "close", 0, drm, first);
    cts_close(c, fd);
}

static void of_kfd(struct cts *c)
{
    struct stat x, y;
    uint64_t h, start;
    uint32_t first, second;
    int drm, fd, again;

    cts_start(c);
    drm = c->gpu[0].drm;
    start = cts_available(c, 0);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), KFD_MEM_VRAM | CTS_RW);
    fd = cts_export(c, "export", 0, h);
    first = cts_prime(c, "PRIME import", 0, drm, fd);
    second = cts_prime(c, "and again", 0, drm, fd);
    cts_row(c, "same", 0, first == second ? 0 : -EXDEV, "-");
    again = cts_prime_export(c, "PRIME export of it", 0, drm, first, O_CLOEXEC | O_RDWR);
    fstat(fd, &x);
    fstat(again, &y);
    cts_row(c, "it is KFD's dma-buf", CTS_ANY, x.st_ino == y.st_ino ? 0 : -EXDEV, "-");
    cts_gem_mmap(c, "mmap offset of it", 0, drm, first);
    cts_close(c, again);
    cts_close(c, fd);
    cts_free(c, "KFD free first", 0, h);
    cts_row(c, "the handle keeps the charge", 0, 0, "available%+lld KiB",
            (long long)(cts_available(c, 0) - start) / 1024);
    cts_gem_close(c, "close", 0, drm, first);
    cts_row(c, "the charge is gone", 0, 0, "available%+lld KiB",
            (long long)(cts_available(c, 0) - start) / 1024);
}

const struct cts_case cts_gem_cases[] = {
    {"gem.handles", 0, handles},           {"gem.flags", 0, flags},
    {"gem.prime_errors", 0, prime_errors}, {"gem.prime_twice", 0, prime_twice},
    {"gem.of_kfd", CTS_EXPORT, of_kfd},    {0},
};
