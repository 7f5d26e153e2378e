/* SPDX-License-Identifier: MIT */
/*
 * Page tables as the hardware would read them, after each step: which page of the buffer, how large
 * the entry, which rights. On the fake and on the driver the same rows.
 */
#include <time.h>

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
    RWX = 14
};

#define SIZE MiB(8)
#define PAGES (SIZE / 4096)

/* The buffer under test: a KFD buffer without an address, mapped whole at `home` so that its pages
 * are known; everything else is told by the offset of the page in it. */
struct subject {
    uint64_t h, home, page[PAGES];
    uint32_t gem[2];
    bool shared; /* with the second GPU, which moves it to system memory */
    bool system; /* how pages of system memory lie together is chance */
};

static void look(struct cts *c, const struct subject *s, const char *step, uint32_t gpu,
                 uint64_t va)
{
    struct cts_pte p;
    char where[32] = "another page";

    cts_settle(c);
    if (cts_translate(c, gpu, va, &p) < 0)
        cts_skip(c, "the tables cannot be read");
    if (!p.page_size) {
        cts_row(c, step, 0, 0, "not mapped");
        return;
    }
    for (unsigned i = 0; i < PAGES; i++)
        if (s->page[i] == p.page)
            strcpy(where, cts_text("+0x%x", i * 4096));
    cts_row(c, step, 0, 0, "%s %s%s%s%s", where, p.flags & KFD_VA_READ ? "r" : "-",
            p.flags & KFD_VA_WRITE ? "w" : "-", p.flags & KFD_VA_EXEC ? "x" : "-",
            s->system || c->gpu[gpu].va_limit >> 40 == 0
                ? ""
                : cts_text(" in %u KiB", (unsigned)(p.page_size >> 10)));
}

static void start(struct cts *c)
{
    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
}

static void subject_make(struct cts *c, struct subject *s, uint32_t type)
{
    struct cts_pte p;
    int fd;

    start(c);
    s->home = c->va + MiB(512);
    s->system = type == KFD_MEM_GTT;
    s->h = cts_alloc(c, "alloc", 0, 0, 0, SIZE, type | CTS_RW);
    fd = cts_export(c, "export", 0, s->h);
    s->gem[0] = cts_prime(c, "PRIME", 0, c->gpu[0].drm, fd);
    if (s->shared)
        s->gem[1] = cts_prime(c, "PRIME on the second", 0, c->gpu[1].drm, fd);
    cts_close(c, fd);
    cts_gem_va(c, "map at home", 0, c->gpu[0].drm, s->gem[0], MAP, s->home, 0, SIZE, RW);
    cts_settle(c);
    for (unsigned i = 0; i < PAGES; i++) {
        cts_translate(c, 0, s->home + i * 4096ull, &p);
        s->page[i] = p.page_size ? p.page : 0;
    }
    look(c, s, "home: first page", 0, s->home);
    look(c, s, "home: last page", 0, s->home + SIZE - 4096);
}

static void op(struct cts *c, struct subject *s, const char *step, uint32_t gpu, uint32_t what,
               uint64_t va, uint64_t offset, uint64_t size, uint32_t flags)
{
    cts_gem_va(c, step, 0, c->gpu[gpu].drm, what == CLEAR ? 0 : s->gem[gpu], what, va, offset, size,
               flags);
}

/* KFD's own MAP and UNMAP. */
static void kfd_map(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } kinds[] = {
        {"VRAM", KFD_MEM_VRAM | CTS_RW},
        {"VRAM, read-only", KFD_MEM_VRAM},
        {"GTT", KFD_MEM_GTT | KFD_MEM_WRITABLE},
        {"GTT, executable", KFD_MEM_GTT | CTS_RW},
    };
    struct subject s = {0};
    uint32_t id;

    start(c);
    id = c->gpu[0].id;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t h;

        s.system = kinds[i].flags & KFD_MEM_GTT;
        h = cts_alloc(c, kinds[i].name, 0, 0, c->va, MiB(4), kinds[i].flags);

        look(c, &s, "before the map", 0, c->va);
        cts_map(c, "map", 0, h, 0, CTS_IDS(id));
        look(c, &s, "first page", 0, c->va);
        look(c, &s, "last page", 0, c->va + MiB(4) - 4096);
        look(c, &s, "the page before", 0, c->va - 4096);
        look(c, &s, "the page behind", 0, c->va + MiB(4));
        cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
        look(c, &s, "after the unmap", 0, c->va);
        look(c, &s, "last page", 0, c->va + MiB(4) - 4096);
        cts_free(c, "free", 0, h);
    }
}

static void offsets(struct cts *c)
{
    struct subject s = {0};

    subject_make(c, &s, KFD_MEM_VRAM);
    op(c, &s, "map 2 MiB at offset 4 MiB, read-only", 0, MAP, c->va, MiB(4), MiB(2), R);
    look(c, &s, "first page", 0, c->va);
    look(c, &s, "in the middle", 0, c->va + 0x123000);
    look(c, &s, "last page", 0, c->va + MiB(2) - 4096);
    look(c, &s, "the page before", 0, c->va - 4096);
    look(c, &s, "the page behind", 0, c->va + MiB(2));
    op(c, &s, "map 3 pages at an odd offset right behind", 0, MAP, c->va + MiB(2), 0x5000, 0x3000,
       RWX);
    look(c, &s, "first page", 0, c->va + MiB(2));
    look(c, &s, "last page", 0, c->va + MiB(2) + 0x2000);
    look(c, &s, "the page behind", 0, c->va + MiB(2) + 0x3000);
    look(c, &s, "the neighbour's last page", 0, c->va + MiB(2) - 4096);
    op(c, &s, "map 4 MiB at an address off the 2 MiB", 0, MAP, c->va + MiB(17), MiB(1), MiB(4), RW);
    look(c, &s, "first page", 0, c->va + MiB(17));
    look(c, &s, "the part that is aligned", 0, c->va + MiB(18));
    look(c, &s, "last page", 0, c->va + MiB(21) - 4096);
    op(c, &s, "map without rights", 0, MAP, c->va + MiB(32), 0, 4096, 0);
    look(c, &s, "its page", 0, c->va + MiB(32));
    op(c, &s, "unmap the 3 pages", 0, UNMAP, c->va + MiB(2), 0, 0x3000, 0);
    look(c, &s, "first of them", 0, c->va + MiB(2));
    look(c, &s, "last of them", 0, c->va + MiB(2) + 0x2000);
    look(c, &s, "the neighbour's last page", 0, c->va + MiB(2) - 4096);
    op(c, &s, "unmap the neighbour", 0, UNMAP, c->va, 0, MiB(2), 0);
    look(c, &s, "its first page", 0, c->va);
    look(c, &s, "its last page", 0, c->va + MiB(2) - 4096);
    look(c, &s, "home: untouched", 0, s.home + MiB(4));
    cts_gem_close(c, "close with mappings left", 0, c->gpu[0].drm, s.gem[0]);
    look(c, &s, "home: after the close", 0, s.home);
    look(c, &s, "the unaligned one", 0, c->va + MiB(18));
}

static void rights(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } steps[] = {{"read-only", R}, {"read and write", RW}, {"all", RWX}, {"none", 0}, {"read", R}};
    struct subject s = {0};

    subject_make(c, &s, KFD_MEM_VRAM);
    op(c, &s, "map", 0, MAP, c->va, 0, MiB(4), RW);
    op(c, &s, "a neighbour", 0, MAP, c->va + MiB(4), 0, MiB(2), RW);
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        op(c, &s, cts_text("replace: %s", steps[i].name), 0, REPLACE, c->va, 0, MiB(4),
           steps[i].flags);
        look(c, &s, "first page", 0, c->va);
        look(c, &s, "last page", 0, c->va + MiB(4) - 4096);
        look(c, &s, "the neighbour", 0, c->va + MiB(4));
        look(c, &s, "home", 0, s.home);
    }
    op(c, &s, "replace: another offset", 0, REPLACE, c->va, MiB(4), MiB(4), RW);
    look(c, &s, "first page", 0, c->va);
}

/* What is left of a mapping that is cut. */
static void cut(struct cts *c)
{
    struct subject s = {0};

    subject_make(c, &s, KFD_MEM_VRAM);
    op(c, &s, "map", 0, MAP, c->va, 0, SIZE, RW);
    op(c, &s, "clear 2 MiB in the middle", 0, CLEAR, c->va + MiB(2), 0, MiB(2), 0);
    look(c, &s, "the head", 0, c->va + MiB(2) - 4096);
    look(c, &s, "the hole", 0, c->va + MiB(2));
    look(c, &s, "the hole's end", 0, c->va + MiB(4) - 4096);
    look(c, &s, "the tail", 0, c->va + MiB(4));
    op(c, &s, "clear one page inside a huge entry", 0, CLEAR, c->va + MiB(5), 0, 4096, 0);
    look(c, &s, "the page", 0, c->va + MiB(5));
    look(c, &s, "the page before it", 0, c->va + MiB(5) - 4096);
    look(c, &s, "the page behind it", 0, c->va + MiB(5) + 4096);
    look(c, &s, "first of the huge entry", 0, c->va + MiB(4));
    look(c, &s, "last of the huge entry", 0, c->va + MiB(6) - 4096);
    look(c, &s, "the next huge entry", 0, c->va + MiB(6));
    op(c, &s, "map another page of the same buffer", 0, MAP, c->va + MiB(64), 0, 4096, RW);
    look(c, &s, "the page before the cut", 0, c->va + MiB(5) - 4096);
    look(c, &s, "the page behind the cut", 0, c->va + MiB(5) + 4096);
    look(c, &s, "the page", 0, c->va + MiB(5));
    op(c, &s, "replace one page inside a huge entry", 0, REPLACE, c->va + MiB(7), MiB(7), 4096, R);
    look(c, &s, "the page", 0, c->va + MiB(7));
    look(c, &s, "the page before it", 0, c->va + MiB(7) - 4096);
    look(c, &s, "the page behind it", 0, c->va + MiB(7) + 4096);
}

/* What a cut leaves of a mapping counts as not yet written, though its entries are there: until the
 * buffer's next MAP or REPLACE, the end of such a rest leaves its entries in the tables. No huge
 * entries here. */
static void rests(struct cts *c)
{
    struct subject s = {0};
    uint64_t va;

    subject_make(c, &s, KFD_MEM_VRAM);
    va = c->va + 4096;
    op(c, &s, "map 16 pages", 0, MAP, va, 0, KiB(64), RW);
    op(c, &s, "clear four of them", 0, CLEAR, va + KiB(12), 0, KiB(16), 0);
    look(c, &s, "the first of the four", 0, va + KiB(12));
    look(c, &s, "the first", 0, va);
    look(c, &s, "behind the four", 0, va + KiB(28));
    op(c, &s, "unmap the head", 0, UNMAP, va, 0, KiB(12), 0);
    look(c, &s, "the first stays", 0, va);
    look(c, &s, "behind the four", 0, va + KiB(28));
    op(c, &s, "the addresses are free: map the first", 0, MAP, va, KiB(32), 4096, R);
    look(c, &s, "the first", 0, va);
    look(c, &s, "the second stays", 0, va + 4096);
    op(c, &s, "unmap the tail, written by that MAP", 0, UNMAP, va + KiB(28), 0, KiB(36), 0);
    look(c, &s, "behind the four", 0, va + KiB(28));
    op(c, &s, "clear all of it", 0, CLEAR, va, 0, KiB(64), 0);
    look(c, &s, "the second stays", 0, va + 4096);

    va += MiB(16);
    op(c, &s, "map 16 pages elsewhere", 0, MAP, va, 0, KiB(64), RW);
    op(c, &s, "replace four of them", 0, REPLACE, va + KiB(12), KiB(12), KiB(16), R);
    op(c, &s, "unmap the head", 0, UNMAP, va, 0, KiB(12), 0);
    look(c, &s, "the first", 0, va);

    va += MiB(16);
    op(c, &s, "map 16 pages elsewhere", 0, MAP, va, 0, KiB(64), RW);
    op(c, &s, "clear four of them", 0, CLEAR, va + KiB(12), 0, KiB(16), 0);
    op(c, &s, "clear the head", 0, CLEAR, va, 0, KiB(12), 0);
    look(c, &s, "the first", 0, va);
    cts_gem_close(c, "close with the tail mapped", 0, c->gpu[0].drm, s.gem[0]);
    look(c, &s, "behind the four stays", 0, va + KiB(28));
    look(c, &s, "home", 0, s.home);
}

static void system_memory(struct cts *c)
{
    struct subject s = {0};

    subject_make(c, &s, KFD_MEM_GTT);
    op(c, &s, "map 2 MiB at offset 2 MiB", 0, MAP, c->va, MiB(2), MiB(2), R);
    look(c, &s, "first page", 0, c->va);
    look(c, &s, "in the middle", 0, c->va + 0x123000);
    op(c, &s, "unmap", 0, UNMAP, c->va, 0, MiB(2), 0);
    look(c, &s, "after the unmap", 0, c->va);
    look(c, &s, "home", 0, s.home);
}

/* Each GPU has its own rights at one address. */
static void peers(struct cts *c)
{
    struct subject s = {.shared = true};

    subject_make(c, &s, KFD_MEM_GTT);
    op(c, &s, "map on the first", 0, MAP, c->va, 0, MiB(2), RW);
    look(c, &s, "first GPU", 0, c->va);
    look(c, &s, "second GPU", 1, c->va);
    op(c, &s, "map on the second, read-only", 1, MAP, c->va, 0, MiB(2), R);
    look(c, &s, "first GPU", 0, c->va);
    look(c, &s, "second GPU", 1, c->va);
    op(c, &s, "replace on the first: read-only", 0, REPLACE, c->va, 0, MiB(2), R);
    op(c, &s, "replace on the second: writable", 1, REPLACE, c->va, 0, MiB(2), RW);
    look(c, &s, "first GPU", 0, c->va);
    look(c, &s, "second GPU", 1, c->va);
    op(c, &s, "unmap on the first", 0, UNMAP, c->va, 0, MiB(2), 0);
    look(c, &s, "first GPU", 0, c->va);
    look(c, &s, "second GPU", 1, c->va);
    op(c, &s, "unmap on the second", 1, UNMAP, c->va, 0, MiB(2), 0);
    look(c, &s, "second GPU", 1, c->va);
}

/* The KFD handle freed with a mapping left, and a handle closed. */
static void left_over(struct cts *c)
{
    struct subject s = {0};

    subject_make(c, &s, KFD_MEM_VRAM);
    op(c, &s, "map", 0, MAP, c->va, 0, MiB(2), RW);
    cts_free(c, "free the KFD handle", 0, s.h);
    look(c, &s, "the mapping stays", 0, c->va);
    op(c, &s, "unmap", 0, UNMAP, c->va, 0, MiB(2), 0);
    look(c, &s, "it is gone", 0, c->va);
    look(c, &s, "home stays", 0, s.home);
    cts_gem_close(c, "close", 0, c->gpu[0].drm, s.gem[0]);
    look(c, &s, "home is gone", 0, s.home);
}

/* How often the TLB was flushed by now. The driver leaves some flushes to a worker, so those that
 * come late are waited for. */
static uint64_t flushes_till_now(struct cts *c, uint64_t before)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    uint64_t now = before;

    cts_settle(c);
    for (int i = 0; i < 10 && now == before; i++) {
        if (!c->fake)
            nanosleep(&moment, NULL);
        if (cts_flushes(c, 0, &now) < 0)
            cts_skip(c, "nothing counts TLB flushes here");
    }
    return now;
}

static void flush_row(struct cts *c, const char *step, uint64_t *before)
{
    uint64_t now = flushes_till_now(c, *before);

    cts_row(c, step, 0, 0, "%s", now != *before ? "flushed" : "not flushed");
    *before = now;
}

/* Which of KFD's own requests flush the TLB. */
static void kfd_flushes(struct cts *c)
{
    uint64_t n = 0, h;
    uint32_t id;

    start(c);
    id = c->gpu[0].id;
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_VRAM | CTS_RW);
    n = flushes_till_now(c, n);
    cts_map(c, "map", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_map(c, "map what is mapped", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map", 0, h, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map again", 0, h, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_free(c, "free", 0, h);
}

/* Which requests flush the TLB, with GEM_VA among them. */
static void flushes(struct cts *c)
{
    struct subject s = {0};
    uint64_t n = 0, h;
    uint32_t id;

    subject_make(c, &s, KFD_MEM_VRAM);
    id = c->gpu[0].id;
    n = flushes_till_now(c, n);
    cts_flush(c, "flush-only map", 0, s.h, CTS_IDS(id));
    n = flushes_till_now(c, n);
    cts_flush(c, "flush-only map with nothing to flush", 0, s.h, CTS_IDS(id));
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA map where nothing was", 0, MAP, c->va, 0, MiB(2), RW);
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map", 0, s.h, CTS_IDS(id));
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA replace", 0, REPLACE, c->va, 0, MiB(2), R);
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map", 0, s.h, CTS_IDS(id));
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA replace back", 0, REPLACE, c->va, 0, MiB(2), RW);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA replace by the same", 0, REPLACE, c->va, 0, MiB(2), RW);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA replace where nothing is", 0, REPLACE, c->va + MiB(16), 0, MiB(2), RW);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA map of one page", 0, MAP, c->va + MiB(32), 0, 4096, RW);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA replace of one page", 0, REPLACE, c->va + MiB(32), 0, 4096, R);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA unmap of one page", 0, UNMAP, c->va + MiB(32), 0, 4096, 0);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA map of it again", 0, MAP, c->va + MiB(32), 0, 4096, RW);
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map", 0, s.h, CTS_IDS(id));
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA unmap", 0, UNMAP, c->va, 0, MiB(2), 0);
    flush_row(c, "it", &n);
    op(c, &s, "GEM_VA map of other pages there", 0, MAP, c->va, MiB(2), MiB(2), RW);
    flush_row(c, "it", &n);
    cts_flush(c, "flush-only map", 0, s.h, CTS_IDS(id));
    flush_row(c, "it", &n);
    op(c, &s, "clear", 0, CLEAR, c->va, 0, MiB(2), 0);
    flush_row(c, "it", &n);
    h = cts_alloc(c, "alloc at an address", 0, 0, c->va + MiB(64), MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_map(c, "KFD map", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_unmap(c, "KFD unmap", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_map(c, "KFD map again", 0, h, 0, CTS_IDS(id));
    flush_row(c, "it", &n);
    cts_unmap(c, "KFD unmap", 0, h, 0, CTS_IDS(id));
    op(c, &s, "GEM_VA map", 0, MAP, c->va, 0, MiB(2), RW);
    n = flushes_till_now(c, n);
    cts_gem_close(c, "close with a mapping left", 0, c->gpu[0].drm, s.gem[0]);
    flush_row(c, "it", &n);
}

const struct cts_case cts_table_cases[] = {
    {"table.kfd_map", 0, kfd_map},
    {"table.offsets", CTS_GEM_VA, offsets},
    {"table.rights", CTS_GEM_VA, rights},
    {"table.cut", CTS_GEM_VA, cut},
    {"table.rests", CTS_GEM_VA, rests},
    {"table.system_memory", CTS_GEM_VA, system_memory},
    {"table.left_over", CTS_GEM_VA, left_over},
    {"table.peers", CTS_GEM_VA | CTS_PEER, peers},
    {"table.flushes", CTS_GEM_VA, flushes},
    {"table.kfd_flushes", 0, kfd_flushes},
    {0},
};
