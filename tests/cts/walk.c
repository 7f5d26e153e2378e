/* SPDX-License-Identifier: MIT */
/*
 * The page tables of the calling process, read as the hardware would read them.
 *
 * On the fake its GPU side answers. On a driver the directories are read out of the card's memory
 * through debugfs. Where they begin is told by a register that the driver writes when a process
 * gets its first queue, so one is made; it is never rung. Only scheduling without firmware
 * (sched_policy=2) writes those registers, as in the guest.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rig.h"

/* Where a generation keeps things. Registers are numbered in dwords. */
struct layout {
    uint32_t base, step; /* page-table base register of VMID 8, distance to the next */
    uint32_t base_shift; /* of its value */
    uint32_t fb;         /* frame-buffer location, 16 MiB units; 0: directories hold offsets */
    uint32_t levels;     /* directories above the leaf */
    uint8_t bits[4];     /* index bits from the root to the leaf */
};

/* gfx8, gfx9, gfx10 */
static const struct layout layouts[] = {
    {.base = 0x50e, .step = 1, .base_shift = 12, .fb = 0x809, .levels = 1, .bits = {18, 10}},
    {.base = 0x1a72b + 16, .step = 2, .levels = 3, .bits = {9, 9, 9, 9}},
    {.base = 0x28eb + 16, .step = 2, .levels = 3, .bits = {9, 9, 9, 9}},
};

static const struct layout *layout_of(uint32_t gfx_version)
{
    uint32_t i = gfx_version / 10000 - 8;

    return i < sizeof layouts / sizeof *layouts ? &layouts[i] : NULL;
}

#define RIG_AT ((uint64_t)32 << 30)
#define VMIDS 8
#define ADDRESS 0x0000fffffffff000ull
#define VALID 0x1ull
#define SYSTEM 0x2ull
#define EXEC 0x10ull
#define READ 0x20ull
#define WRITE 0x40ull
#define ENTRY_IS_PAGE (1ull << 54) /* in a directory: a huge page */

struct walker {
    pid_t owner; /* the process whose VM this is */
    const struct layout *layout;
    int regs, vram;
    off_t vram_at; /* where the card's memory begins in that file */
    uint32_t base; /* register */
};

static struct walker walkers[CTS_MAX_GPUS];

static int open_debug(struct cts *c, uint32_t gpu, const char *file, int flags)
{
    uint32_t at = (uint32_t)rig_property(c, gpu, "location_id ");
    uint32_t domain = (uint32_t)rig_property(c, gpu, "domain ");
    char want[64], name[128];

    snprintf(want, sizeof want, "dev=%04x:%02x:%02x.%x", domain, at >> 8 & 255, at >> 3 & 31,
             at & 7);
    for (int i = 0; i < 64; i++) {
        FILE *f = fopen(cts_text("/sys/kernel/debug/dri/%d/name", i), "r");
        bool found = f && fgets(name, sizeof name, f) && strstr(name, want);

        if (f)
            fclose(f);
        if (found)
            return open(cts_text("/sys/kernel/debug/dri/%d/%s", i, file), flags | O_CLOEXEC);
    }
    return -1;
}

static uint32_t read_reg(const struct walker *w, uint32_t reg)
{
    uint32_t v = 0;

    return pread(w->regs, &v, sizeof v, (off_t)reg * 4) == sizeof v ? v : 0;
}

static bool write_reg(const struct walker *w, uint32_t reg, uint32_t v)
{
    return pwrite(w->regs, &v, sizeof v, (off_t)reg * 4) == sizeof v;
}

static uint64_t read_entry(const struct walker *w, uint64_t at)
{
    uint64_t v = 0;

    return pread(w->vram, &v, sizeof v, w->vram_at + (off_t)at) == sizeof v ? v : 0;
}

uint64_t cts_hollow(const char *parameter)
{
    FILE *f = fopen(cts_text("/sys/module/hollow/parameters/%s", parameter), "r");
    unsigned long v = 0;

    if (f && fscanf(f, "%lu", &v) != 1)
        v = 0;
    if (f)
        fclose(f);
    return v;
}

/* The driver shows a card's memory; what its BAR hides takes registers that the guest's cards lack,
 * but theirs is the machine's own. */
static void open_vram(struct cts *c, struct walker *w, uint32_t gpu)
{
    uint64_t slot = rig_property(c, gpu, "location_id ") >> 3 & 31;

    w->vram_at = 0;
    if (c->gpu[gpu].large_bar || !cts_hollow("base")) {
        w->vram = open_debug(c, gpu, "amdgpu_vram", O_RDONLY);
        return;
    }
    w->vram = open("/dev/mem", O_RDONLY | O_CLOEXEC);
    w->vram_at = (off_t)(cts_hollow("base") + slot * MiB(cts_hollow("vram_mb")));
}

/* Makes a queue of the caller's. */
static bool make_queue(struct cts *c, uint32_t gpu)
{
    struct kfd_uapi_create_queue q;
    struct rig r;

    if (rig_make(c, &r, gpu, c->va + RIG_AT) < 0)
        return false;
    q = rig_arguments(c, &r);
    return rig_create(c, &q) >= 0;
}

/* Makes a queue and sees which of the registers has been written. The others get back what they
 * held: it is another process's. */
static bool find_root(struct cts *c, struct walker *w, uint32_t gpu)
{
    uint32_t held[VMIDS], reg = w->layout->base, step = w->layout->step;
    bool made;

    w->base = 0;
    for (uint32_t i = 0; i < VMIDS; i++) {
        held[i] = read_reg(w, reg + i * step);
        if (held[i] && !write_reg(w, reg + i * step, 0))
            return false;
    }
    made = make_queue(c, gpu);
    for (uint32_t i = 0; i < VMIDS; i++) {
        if (read_reg(w, reg + i * step))
            w->base = reg + i * step;
        else if (held[i] && !write_reg(w, reg + i * step, held[i]))
            return false;
    }
    return made && w->base;
}

static int walk(const struct walker *w, uint64_t va, struct cts_pte *out)
{
    const struct layout *l = w->layout;
    uint64_t fb = l->fb ? (uint64_t)(read_reg(w, l->fb) & 0xffff) << 24 : 0;
    uint64_t at = (uint64_t)read_reg(w, w->base) << l->base_shift, entry;
    unsigned shift = 12, leaf;

    if (l->step == 2)
        at |= (uint64_t)read_reg(w, w->base + 1) << 32;
    for (uint32_t i = 1; i <= l->levels; i++)
        shift += l->bits[i];
    for (uint32_t i = 0;; i++) {
        uint64_t index = va >> shift & (((uint64_t)1 << l->bits[i]) - 1);

        entry = read_entry(w, (at & ADDRESS) - fb + index * 8);
        if (!(entry & VALID))
            return 0;
        if (i == l->levels || entry & ENTRY_IS_PAGE)
            break;
        at = entry;
        shift -= l->bits[i + 1];
    }
    leaf = shift;
    if (shift == 12) /* a leaf tells how many like it follow one another */
        shift += entry >> 7 & 31;
    out->page_size = (uint64_t)1 << shift;
    out->page = (entry & ADDRESS) + (va & (((uint64_t)1 << leaf) - 1) & ~4095ull);
    out->system = entry & SYSTEM;
    out->flags = (entry & READ ? KFD_VA_READ : 0) | (entry & WRITE ? KFD_VA_WRITE : 0) |
                 (entry & EXEC ? KFD_VA_EXEC : 0);
    return 0;
}

/* A card may keep its tables where they cannot be read, in memory that the CPU does not see: the
 * queue's ring, which is mapped, must be found. */
static bool reads_tables(const struct walker *w, uint64_t ring)
{
    struct cts_pte p = {0};

    return walk(w, ring, &p) == 0 && p.page_size;
}

int cts_walk_start(struct cts *c)
{
    /* The fake gets its queue too, so that both grounds are in one state. */
    for (uint32_t gpu = 0; c->fake && gpu < c->gpus; gpu++)
        if (!make_queue(c, gpu))
            return -ENOSYS;
    for (uint32_t gpu = 0; !c->fake && gpu < c->gpus; gpu++) {
        struct walker *w = &walkers[gpu];

        w->layout = layout_of((uint32_t)rig_property(c, gpu, "gfx_target_version "));
        if (!w->layout)
            return -ENOSYS;
        w->regs = open_debug(c, gpu, "amdgpu_regs", O_RDWR);
        open_vram(c, w, gpu);
        if (w->regs < 0 || w->vram < 0 || !find_root(c, w, gpu))
            return -ENOSYS;
        if (!reads_tables(w, c->va + RIG_AT))
            return -ENOSYS;
        w->owner = getpid();
    }
    return 0;
}

void cts_settle(const struct cts *c)
{
    static int by_sdma = -1;
    struct timespec ms = {.tv_nsec = 3000000};

    if (c->fake)
        return;
    if (by_sdma < 0) {
        FILE *f = fopen("/sys/module/amdgpu/parameters/vm_update_mode", "r");
        int mode = 0;

        by_sdma = !f || fscanf(f, "%d", &mode) != 1 || !(mode & 2);
        if (f)
            fclose(f);
    }
    if (by_sdma)
        nanosleep(&ms, NULL);
}

int cts_translate(struct cts *c, uint32_t gpu, uint64_t va, struct cts_pte *out)
{
    struct fake_translation t;

    memset(out, 0, sizeof *out);
    out->va = va & ~4095ull;
    if (!c->fake)
        return walkers[gpu].owner == getpid() ? walk(&walkers[gpu], va, out) : -ENOSYS;
    fake_gpu_translate(c->fake, gpu, va, FAKE_READ, &t);
    if (t.reason == FAKE_FAULT_NO_VM || t.reason == FAKE_FAULT_NOT_MAPPED)
        return 0;
    out->page_size = t.page_size;
    out->page = t.object << 32 | (t.offset & ~4095ull);
    out->flags = t.flags & (KFD_VA_READ | KFD_VA_WRITE | KFD_VA_EXEC);
    out->system = t.system;
    return 0;
}

/* A word of the machine's memory. What a bus address names is found in the kernel's own image of
 * its memory: no IOMMU is in between. */
static int peek_system(uint64_t page, uint32_t *word)
{
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC), ret = -ENOSYS;
    Elf64_Ehdr head;
    Elf64_Phdr p;

    if (fd < 0)
        return -ENOSYS;
    if (pread(fd, &head, sizeof head, 0) != sizeof head)
        head.e_phnum = 0;
    for (unsigned i = 0; ret < 0 && i < head.e_phnum; i++) {
        if (pread(fd, &p, sizeof p, (off_t)(head.e_phoff + i * sizeof p)) != sizeof p)
            break;
        if (p.p_type != PT_LOAD || page < p.p_paddr || page - p.p_paddr >= p.p_memsz)
            continue;
        if (pread(fd, word, sizeof *word, (off_t)(p.p_offset + page - p.p_paddr)) == sizeof *word)
            ret = 0;
    }
    close(fd);
    return ret;
}

int cts_peek(struct cts *c, uint32_t gpu, const struct cts_pte *pte, uint32_t *word)
{
    if (c->fake)
        return fake_gpu_read(c->fake, gpu, pte->va, word, sizeof *word, NULL);
    if (pte->system)
        return peek_system(pte->page, word);
    return pread(walkers[gpu].vram, word, sizeof *word, walkers[gpu].vram_at + (off_t)pte->page) ==
                   sizeof *word
               ? 0
               : -ENOSYS;
}

/* On gfx8 the driver asks for a flush through a register, which is emptied here after each look. */
static bool flushed_by_register(const struct walker *w)
{
    const uint32_t request = 0x51e;
    bool asked = read_reg(w, request);

    return asked && write_reg(w, request, 0);
}

int cts_flushes(struct cts *c, uint32_t gpu, uint64_t *count)
{
    static uint64_t seen;
    char line[128], *p = line;
    struct fake_cost cost;
    FILE *f;

    if (c->fake) {
        fake_get_cost(c->fake, gpu, &cost);
        *count = cost.tlb_flushes;
        return 0;
    }
    f = fopen("/sys/module/hollow/parameters/flushes", "r");
    if (!f)
        return -ENOSYS;
    if (!fgets(line, sizeof line, f))
        p = NULL;
    fclose(f);
    if (walkers[gpu].layout == &layouts[0]) {
        *count = seen += flushed_by_register(&walkers[gpu]);
        return 0;
    }
    for (uint32_t i = 0; p && i < gpu; i++)
        p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
    *count = p ? strtoull(p, NULL, 10) : 0;
    return p ? 0 : -ENOSYS;
}
