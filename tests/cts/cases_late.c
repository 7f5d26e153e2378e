/* SPDX-License-Identifier: MIT */
/*
 * Tables written by an SDMA engine are written when the engine comes to it. The engines of the
 * guest's cards are made to stand still, to see who waits for them.
 */
#include <kfdirect/vmm.h>

#include "hold.h"
#include "rig.h"

enum {
    MAP = 1,
    UNMAP = 2,
    REPLACE = 4
};

#define RW 6u
#define SIZE MiB(2)
#define HOLD_MS 1500

struct subject {
    uint64_t h, other, other_va;
    uint32_t gem;
};

static void subject_make(struct cts *c, struct subject *s)
{
    int fd;

    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    s->h = cts_alloc(c, "alloc", 0, 0, 0, SIZE, KFD_MEM_VRAM | CTS_RW);
    fd = cts_export(c, "export", 0, s->h);
    s->gem = cts_prime(c, "PRIME", 0, c->gpu[0].drm, fd);
    cts_close(c, fd);
    s->other_va = c->va + MiB(64);
    s->other = cts_alloc(c, "alloc at an address", 0, 0, s->other_va, 4096, KFD_MEM_GTT | CTS_RW);
    /* Makes the tables around it, and leaves an attachment. */
    cts_gem_va(c, "map", 0, c->gpu[0].drm, s->gem, MAP, c->va, 0, SIZE, RW);
    cts_map(c, "KFD map of the other", 0, s->other, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "KFD unmap of the other", 0, s->other, 0, CTS_IDS(c->gpu[0].id));
    cts_gem_va(c, "unmap", 0, c->gpu[0].drm, s->gem, UNMAP, c->va, 0, SIZE, 0);
}

static void look(struct cts *c, const char *step, uint64_t va, bool mapped, bool held)
{
    bool on = hold_on();
    struct cts_pte p;

    if (cts_translate(c, 0, va, &p) < 0)
        cts_skip(c, "the tables cannot be read");
    cts_row(c, step, 0, !p.page_size == mapped || on != held ? -EXDEV : 0, "%s, engines %s",
            p.page_size ? "mapped" : "not mapped", on ? "held" : "running");
}

static void hold(struct cts *c, unsigned ms)
{
    hold_end();
    if (hold_start(ms) < 0)
        cts_skip(c, "the engines cannot be held");
}

static void need_engine(struct cts *c, const struct subject *s)
{
    struct cts_pte p;
    bool by_cpu;

    hold(c, 200);
    cts_gem_va(c, "map", 0, c->gpu[0].drm, s->gem, MAP, c->va, 0, SIZE, RW);
    by_cpu = cts_translate(c, 0, c->va, &p) == 0 && p.page_size;
    hold_end();
    if (by_cpu)
        cts_skip(c, "the CPU writes the tables");
    cts_gem_va(c, "unmap", 0, c->gpu[0].drm, s->gem, UNMAP, c->va, 0, SIZE, 0);
}

static void late(struct cts *c)
{
    struct subject s = {0};
    bool waits; /* KFD's UNMAP does, on chips where it flushes */
    int drm;

    subject_make(c, &s);
    drm = c->gpu[0].drm;
    waits = rig_property(c, 0, "gfx_target_version ") >= 90010;
    need_engine(c, &s);
    hold(c, HOLD_MS);
    cts_gem_va(c, "MAP while the engines stand", 0, drm, s.gem, MAP, c->va, 0, SIZE, RW);
    look(c, "after MAP", c->va, false, true);
    cts_flush(c, "flush-only MAP", 0, s.h, CTS_IDS(c->gpu[0].id));
    look(c, "after the flush", c->va, false, true);
    cts_map(c, "KFD's MAP of another buffer", 0, s.other, 0, CTS_IDS(c->gpu[0].id));
    look(c, "after KFD's MAP", c->va, true, false);

    hold(c, HOLD_MS);
    cts_gem_va(c, "UNMAP while the engines stand", 0, drm, s.gem, UNMAP, c->va, 0, SIZE, 0);
    look(c, "after UNMAP", c->va, true, true);
    cts_flush(c, "flush-only MAP", 0, s.h, CTS_IDS(c->gpu[0].id));
    look(c, "after the flush", c->va, true, true);
    cts_unmap(c, "KFD's UNMAP of another buffer", 0, s.other, 0, CTS_IDS(c->gpu[0].id));
    look(c, "after KFD's UNMAP", c->va, !waits, !waits);
    cts_map(c, "KFD's MAP of another buffer", 0, s.other, 0, CTS_IDS(c->gpu[0].id));
    look(c, "after KFD's MAP", c->va, false, false);

    hold(c, HOLD_MS);
    cts_gem_va(c, "MAP while the engines stand", 0, drm, s.gem, MAP, c->va, 0, SIZE, RW);
    cts_gem_close(c, "GEM_CLOSE", 0, drm, s.gem);
    look(c, "after GEM_CLOSE", c->va, false, true);
    cts_free(c, "FREE", 0, s.h);
    look(c, "after FREE", c->va, false, true);
    hold_end();
    look(c, "at last", c->va, false, false);
}

/* What the library has returned from has been written. */
static void library(struct cts *c)
{
    struct vmm_access access = {.device = 0, .prot = VMM_PROT_READ_WRITE};
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    struct vmm *vmm = NULL;
    struct kfd *kfd = NULL;
    vmm_handle handle = 0;
    uint64_t va = 0;

    if (c->gpu[0].large_bar)
        cts_skip(c, "the CPU writes the tables, or the library takes it so");
    cts_open(c);
    cts_row(c, "kfd_open", 0, kfd_open(c->sys, &kfd), "-");
    if (!kfd || cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    cts_row(c, "vmm_open", 0, vmm_open(kfd, NULL, &vmm), "-");
    cts_row(c, "vmm_create", 0, vmm_create(vmm, &props, SIZE, &handle), "-");
    cts_row(c, "vmm_reserve", 0, vmm_reserve(vmm, SIZE, 0, 0, &va), "-");
    cts_row(c, "vmm_map", 0, vmm_map(vmm, va, SIZE, 0, handle), "-");
    hold(c, HOLD_MS);
    cts_row(c, "vmm_set_access", 0, vmm_set_access(vmm, va, SIZE, &access, 1), "-");
    look(c, "after it", va, true, false);
    hold(c, HOLD_MS);
    cts_row(c, "vmm_unmap", 0, vmm_unmap(vmm, va, SIZE), "-");
    look(c, "after it", va, false, false);
    vmm_close(vmm);
    kfd_close(kfd);
}

const struct cts_case cts_late_cases[] = {
    {"late.engine", CTS_GEM_VA | CTS_DRIVER, late},
    {"late.library", CTS_GEM_VA | CTS_DRIVER, library},
    {0},
};
