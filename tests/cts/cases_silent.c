/* SPDX-License-Identifier: MIT */
/*
 * GEM_VA says yes and the page tables stay as they were: no memory is left for them. A process
 * comes there by itself: what it has in VRAM is never evicted for it, and behind its own limit the
 * kernel keeps 8 MiB for all page tables.
 */
#include <time.h>

#include "cts.h"

enum {
    MAP = 1,
    UNMAP = 2,
    CLEAR = 3,
    REPLACE = 4
};

#define R 2u
#define RW 6u
#define TABLE MiB(2) /* what one page table of leaves covers */
#define SPEND_AT MiB(4096)
#define SPEND_MAX 8192u

static bool mapped(struct cts *c, uint64_t va)
{
    struct cts_pte p;

    return cts_translate(c, 0, va, &p) == 0 && p.page_size;
}

static void pause_us(const struct cts *c, unsigned us)
{
    struct timespec t = {.tv_nsec = us * 1000L};

    if (!c->fake)
        nanosleep(&t, NULL);
}

/* Tables written by SDMA are written a moment later. */
static bool stays_unmapped(struct cts *c, uint64_t va)
{
    for (unsigned us = 200; us < 200000; us *= 2) {
        if (mapped(c, va))
            return false;
        pause_us(c, us);
    }
    return true;
}

static void look(struct cts *c, const char *step, uint64_t va, bool want)
{
    bool is;

    pause_us(c, 10000);
    is = mapped(c, va);
    cts_row(c, step, 0, is == want ? 0 : -EXDEV, "%s", is ? "mapped" : "not mapped");
}

/* A buffer with a handle for GEM_VA. */
struct buffer {
    uint64_t h;
    uint32_t gem;
};

static struct buffer buffer_make(struct cts *c, const char *what, uint64_t size, uint32_t type)
{
    struct buffer b;
    int fd;

    b.h = cts_alloc(c, what, 0, 0, 0, size, type | CTS_RW);
    fd = cts_export(c, "export", 0, b.h);
    b.gem = cts_prime(c, "PRIME", 0, c->gpu[0].drm, fd);
    cts_close(c, fd);
    return b;
}

#define FILLERS 512u

static struct {
    uint64_t handle[FILLERS], available;
    unsigned n;
} filler;

static long take(struct cts *c, uint64_t size)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .size = size, .gpu_id = c->gpu[0].id, .flags = KFD_MEM_VRAM | CTS_RW};
    long ret =
        filler.n == FILLERS ? -ENOSPC : cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);

    if (ret >= 0)
        filler.handle[filler.n++] = a.handle;
    return ret;
}

/* All that the process may have of the card's memory, the largest pieces first. */
static void fill(struct cts *c)
{
    long ret = 0;

    filler.available = cts_available(c, 0);
    for (uint64_t size = MiB(2); size >= 4096; size /= 4)
        while ((ret = take(c, size)) >= 0)
            ;
    cts_row(c, "the card is full", -ENOMEM, ret, "-");
}

/* Memory is wiped when it comes back, which takes a while; no case behind this one shall meet that.
 */
static void give_back(struct cts *c)
{
    while (filler.n > 1)
        cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &filler.handle[--filler.n]);
    for (int i = 0; i < 200 && cts_available(c, 0) < filler.available; i++)
        pause_us(c, 10000);
    cts_row(c, "all is back", 0, cts_available(c, 0) == filler.available ? 0 : -ENOMEM, "-");
}

static long map_page(struct cts *c, uint32_t gem, uint64_t va)
{
    struct drm_amdgpu_gem_va a = {
        .handle = gem,
        .operation = MAP,
        .flags = RW,
        .va_address = va,
        .map_size = 4096,
    };

    return cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_VA_OLD, &a);
}

/* Maps one page in every 2 MiB until no memory is left for another table; the address of the first
 * that did not come into being. */
static uint64_t spend(struct cts *c, uint32_t gem)
{
    uint64_t va = c->va + SPEND_AT;

    for (unsigned i = 0; i < SPEND_MAX; i++, va += TABLE) {
        long ret = map_page(c, gem, va);

        if (ret < 0) {
            cts_row(c, "spending", 0, ret, "-");
            return 0;
        }
        if (stays_unmapped(c, va)) {
            cts_row(c, "a MAP without memory for its table succeeds", 0, ret, "not mapped");
            return va;
        }
    }
    cts_row(c, "a MAP without memory for its table succeeds", 0, -ENOSPC, "always mapped");
    return 0;
}

/* What succeeds without memory: a mapping of whole tables and the end of any mapping that was made
 * whole need none; a new table and a cut through a huge entry do. */
static void without(struct cts *c, const struct buffer *whole, const struct buffer *small,
                    uint64_t va)
{
    uint64_t in = c->va, out = c->va + MiB(4);
    int drm = c->gpu[0].drm;

    cts_gem_va(c, "MAP again", -EINVAL, drm, small->gem, MAP, va, 0, 4096, RW);
    cts_gem_va(c, "REPLACE", 0, drm, small->gem, REPLACE, va, 0, 4096, RW);
    look(c, "after REPLACE", va, false);
    cts_flush(c, "flush-only MAP", 0, small->h, CTS_IDS(c->gpu[0].id));
    look(c, "after the flush", va, false);
    cts_gem_va(c, "REPLACE of a huge mapping", 0, drm, whole->gem, REPLACE, out, 0, MiB(2), R);
    look(c, "it", out, true);
    cts_gem_va(c, "UNMAP of a huge mapping", 0, drm, whole->gem, UNMAP, out, 0, MiB(2), 0);
    look(c, "it", out, false);
    cts_gem_va(c, "MAP of it", 0, drm, whole->gem, MAP, out, 0, MiB(2), RW);
    look(c, "it", out, true);
    cts_gem_va(c, "CLEAR of a page inside a huge entry", 0, drm, 0, CLEAR, in + 4096, 0, 4096, 0);
    look(c, "the page cleared", in + 4096, c->gpu[0].va_limit >> 40 != 0);
}

static void no_memory(struct cts *c)
{
    struct buffer small, cut, whole;
    uint64_t va, at, other;
    uint32_t id;
    bool huge;
    int drm;

    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    id = c->gpu[0].id;
    drm = c->gpu[0].drm;
    huge = c->gpu[0].va_limit >> 40 != 0;
    small = buffer_make(c, "one page of system memory", 4096, KFD_MEM_GTT);
    cut = buffer_make(c, "2 MiB of the card's", MiB(2), KFD_MEM_VRAM);
    whole = buffer_make(c, "another 2 MiB", MiB(2), KFD_MEM_VRAM);
    cts_gem_va(c, "map the first", 0, drm, cut.gem, MAP, c->va, 0, MiB(2), RW);
    cts_gem_va(c, "map the other", 0, drm, whole.gem, MAP, c->va + MiB(4), 0, MiB(2), RW);
    at = c->va + SPEND_AT - TABLE * 64;
    other = cts_alloc(c, "a page for KFD's MAP", 0, 0, at, 4096, KFD_MEM_GTT | CTS_RW);
    fill(c);
    va = spend(c, small.gem);
    if (!va)
        return;
    without(c, &whole, &small, va);
    cts_map(c, "KFD's MAP tells", -ENOMEM, other, 0, CTS_IDS(id));
    look(c, "KFD's page", at, false);
    cts_unmap(c, "KFD's UNMAP", CTS_ANY, other, 0, CTS_IDS(id));

    cts_free(c, "some of the card is given back", 0, filler.handle[0]);
    cts_flush(c, "flush-only MAP", 0, small.h, CTS_IDS(id));
    look(c, "the one without a table", va, false);
    cts_map(c, "KFD's MAP again", 0, other, 0, CTS_IDS(id));
    look(c, "KFD's page", at, true);
    look(c, "the one without a table", va, false);
    cts_gem_va(c, "MAP of another page of the buffer", 0, drm, small.gem, MAP, va + TABLE, 0, 4096,
               RW);
    look(c, "the one without a table", va, true);
    cts_gem_va(c, "UNMAP of it", 0, drm, small.gem, UNMAP, va, 0, 4096, 0);
    look(c, "after UNMAP", va, false);
    look(c, "the page cleared without memory", c->va + 4096, huge);
    cts_gem_va(c, "CLEAR of it again", 0, drm, 0, CLEAR, c->va + 4096, 0, 4096, 0);
    look(c, "the page cleared without memory", c->va + 4096, huge);
    give_back(c);
}

const struct cts_case cts_silent_cases[] = {
    {"silent.no_memory", CTS_GEM_VA | CTS_DRIVER, no_memory},
    {0},
};
