/* SPDX-License-Identifier: MIT */
/*
 * Requests drawn at random, the same on every ground: what no other case thought of. A round is
 * given by its number. Left out is what crashes kernels: GPUs that are not acquired, KFD imports of
 * doorbells.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cts.h"

#define STEPS 120
#define HANDLES 8u
#define FILES 4u
#define GEMS 6u
#define SLOTS 12u /* addresses, 2 MiB apart */

struct play {
    struct cts *c;
    uint32_t seed;
    uint64_t handle[HANDLES]; /* as given, also after their end; 0: none yet */
    int fd[FILES];
    int kept[HANDLES], kept_file[FILES]; /* the GPU whose VRAM it is; -1: system memory */
    uint32_t gem[GEMS];
    int step;
};

static uint32_t draw(struct play *p, uint32_t n)
{
    p->seed = p->seed * 1664525u + 1013904223u;
    return (p->seed >> 16) % n;
}

/* Mostly right ones. */
static uint64_t draw_address(struct play *p)
{
    uint64_t va = p->c->va + draw(p, SLOTS) * MiB(2);

    switch (draw(p, 16)) {
    case 0:
        return va + 8;
    case 1:
        return 0;
    case 2:
        return va + KiB(4);
    default:
        return va;
    }
}

static uint64_t draw_size(struct play *p)
{
    static const uint64_t sizes[] = {KiB(4), KiB(8), KiB(64), MiB(1), MiB(2), MiB(4), 0x1001, 0};

    return sizes[draw(p, sizeof sizes / sizeof sizes[0])];
}

/* The step and what it asks for; addresses count from the case's base. */
static const char *name(const struct play *p, const char *what)
{
    return cts_text("%d: %s", p->step, what);
}

static const char *at(const struct play *p, uint64_t va)
{
    return va < p->c->va ? "none"
                         : cts_text("%llu%s", (unsigned long long)(va - p->c->va) / KiB(1),
                                    va % KiB(1) ? "+8" : "");
}

/* A number that is given again means other memory wherever it is kept. */
static void keep(struct play *p, uint32_t i, uint64_t h, int kept)
{
    p->handle[i] = h;
    for (uint32_t k = 0; k < HANDLES; k++)
        if (p->handle[k] == h)
            p->kept[k] = kept;
}

static void play_alloc(struct play *p)
{
    static const uint32_t flags[] = {KFD_MEM_VRAM | CTS_RW, KFD_MEM_GTT | CTS_RW, KFD_MEM_VRAM,
                                     KFD_MEM_GTT | KFD_MEM_WRITABLE, CTS_RW};
    uint32_t i = draw(p, HANDLES), gpu = draw(p, p->c->gpus);
    uint64_t va = draw_address(p), size = draw_size(p);
    uint32_t f = flags[draw(p, sizeof flags / sizeof flags[0])];
    uint64_t h = cts_alloc(p->c,
                           name(p, cts_text("alloc %llu KiB with 0x%x on gpu%u at %s KiB",
                                            (unsigned long long)size >> 10, f, gpu, at(p, va))),
                           CTS_ANY, gpu, va, size, f);

    if (h != 0)
        keep(p, i, h, f & KFD_MEM_VRAM ? (int)gpu : -1);
}

static void play_map(struct play *p)
{
    uint32_t ids[3], n = 1 + draw(p, 3), done = draw(p, 8) == 0 ? draw(p, n + 1) : 0;
    uint64_t h = p->handle[draw(p, HANDLES)];
    bool map = draw(p, 5) < 3;
    char what[96];

    for (uint32_t i = 0; i < n; i++)
        ids[i] = draw(p, 12) == 0 ? CTS_BAD_GPU : p->c->gpu[draw(p, p->c->gpus)].id;
    snprintf(what, sizeof what, "%s %s on", map ? "map" : "unmap", cts_handle_text(p->c, h));
    for (uint32_t i = 0; i < n; i++)
        snprintf(what + strlen(what), sizeof what - strlen(what), " %s",
                 cts_gpu_text(p->c, ids[i]));
    if (map)
        cts_map(p->c, name(p, what), CTS_ANY, h, done, ids, n);
    else
        cts_unmap(p->c, name(p, what), CTS_ANY, h, done, ids, n);
}

static void play_export(struct play *p)
{
    uint32_t i = draw(p, FILES), from = draw(p, HANDLES);
    uint64_t h = p->handle[from];
    int fd = cts_export(
        p->c, name(p, cts_text("export %s to file %u", cts_handle_text(p->c, h), i)), CTS_ANY, h);

    if (fd < 0)
        return;
    cts_close(p->c, p->fd[i]);
    p->fd[i] = fd;
    p->kept_file[i] = p->kept[from];
}

static void play_import(struct play *p)
{
    uint32_t i = draw(p, HANDLES), gpu = draw(p, p->c->gpus);
    uint64_t va = draw_address(p);
    uint32_t file = draw(p, FILES);
    uint64_t h;

    /* VRAM that another card imports moves, and the process is stopped for a while that no one can
     * foresee. */
    if (p->kept_file[file] >= 0)
        gpu = (uint32_t)p->kept_file[file];
    h = cts_import(p->c,
                   name(p, cts_text("import file %u on gpu%u at %s KiB", file, gpu, at(p, va))),
                   CTS_ANY, p->c->gpu[gpu].id, p->fd[file], va);

    if (h != 0)
        keep(p, i, h, p->kept_file[file]);
}

static void play_prime(struct play *p)
{
    uint32_t i = draw(p, GEMS);
    uint32_t file = draw(p, FILES), gem;

    if (p->kept_file[file] > 0)
        return;
    gem = cts_prime(p->c, name(p, cts_text("PRIME import of file %u", file)), CTS_ANY,
                    p->c->gpu[0].drm, p->fd[file]);

    if (gem != 0)
        p->gem[i] = gem;
}

static void play_gem(struct play *p)
{
    uint32_t i = draw(p, GEMS), make = draw(p, 2), vram = draw(p, 2);
    uint64_t size = draw_size(p);

    if (make)
        p->gem[i] = cts_gem_create(
            p->c,
            name(p, cts_text("create %llu KiB of %s", (unsigned long long)size >> 10,
                             vram ? "VRAM" : "GTT")),
            CTS_ANY, p->c->gpu[0].drm, size, vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT);
    else
        cts_gem_close(p->c, name(p, cts_text("close %u", p->gem[i])), CTS_ANY, p->c->gpu[0].drm,
                      p->gem[i]);
}

static void play_free(struct play *p)
{
    uint64_t h = p->handle[draw(p, HANDLES)];

    cts_free(p->c, name(p, cts_text("free %s", cts_handle_text(p->c, h))), CTS_ANY, h);
}

static void play_info(struct play *p)
{
    uint32_t file = draw(p, FILES);

    cts_info(p->c, name(p, cts_text("info of file %u", file)), CTS_ANY, p->fd[file]);
}

static void play_va(struct play *p)
{
    static const uint32_t flags[] = {6, 2, 6, 0, 0x10, 0x12, 0xe, 7};
    uint32_t op = 1 + draw(p, 4);
    uint64_t offset = draw(p, 4) == 0 ? draw_size(p) : 0;
    uint32_t gem = p->gem[draw(p, GEMS)];
    uint64_t va = draw_address(p), size = draw_size(p);
    uint32_t f = flags[draw(p, sizeof flags / sizeof flags[0])];

    cts_gem_va(p->c,
               name(p, cts_text("GEM_VA %u of %u with 0x%x at %s KiB, %llu from %llu KiB", op, gem,
                                f, at(p, va), (unsigned long long)size >> 10,
                                (unsigned long long)offset >> 10)),
               CTS_ANY, p->c->gpu[0].drm, gem, op, va, offset, size, f);
}

static void play(struct cts *c)
{
    struct play p = {.c = c, .seed = (uint32_t)atoi(strchr(c->name, '.') + 1) * 7919u + 17u};

    cts_expect_report(c, "WARNING: .*kfd_ioctl_unmap_memory_from_gpu");
    cts_expect_report(c, "WARNING: .*kfd_ioctl_map_memory_to_gpu");
    cts_start(c);
    for (uint32_t i = 0; i < FILES; i++)
        p.fd[i] = -1;
    for (p.step = 0; p.step < STEPS; p.step++) {
        switch (draw(&p, 16)) {
        case 0:
        case 1:
        case 2:
            play_alloc(&p);
            break;
        case 3:
        case 4:
        case 5:
        case 6:
            play_map(&p);
            break;
        case 7:
            play_free(&p);
            break;
        case 8:
            play_export(&p);
            break;
        case 9:
            play_import(&p);
            break;
        case 10:
            play_prime(&p);
            break;
        case 11:
            play_gem(&p);
            break;
        case 12:
            play_info(&p);
            break;
        default:
            play_va(&p);
            break;
        }
    }
    for (uint32_t i = 0; i < FILES; i++)
        cts_close(c, p.fd[i]);
}

const struct cts_case cts_random_cases[] = {
    {"random.0", CTS_GEM_VA, play}, {"random.1", CTS_GEM_VA, play}, {"random.2", CTS_GEM_VA, play},
    {"random.3", CTS_GEM_VA, play}, {"random.4", CTS_GEM_VA, play}, {"random.5", CTS_GEM_VA, play},
    {"random.6", CTS_GEM_VA, play}, {"random.7", CTS_GEM_VA, play}, {0},
};
