/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * SDMA queues of a user. Their packets run in the address space of a process: every address is
 * looked up in the page tables that the driver wrote for the queue's VMID, in system memory or in
 * the frame buffer, with the rights that stand there. There is no TLB.
 */
#include "hollow.h"

#define ADDRESS 0x0000fffffffff000ull
#define VALID 0x1ull
#define SYSTEM 0x2ull
#define ENTRY_READ 0x20ull
#define ENTRY_WRITE 0x40ull
#define ENTRY_IS_PAGE (1ull << 54)

static u64 root_of(struct hollow_card *c, u32 vmid)
{
    const struct hollow_family *f = hollow_shape.family;

    if (hollow_shape.gen == 8) /* two banks of registers, this is the second */
        return (u64)hollow_reg(c, f->pt_base + vmid - 8) << 12;
    return (u64)hollow_reg(c, f->pt_base + 2 * vmid + 1) << 32 |
           hollow_reg(c, f->pt_base + 2 * vmid);
}

static u64 entry_at(struct hollow_card *c, u64 at)
{
    return at + 8 <= hollow_shape.vram_size ? readq(c->vram + at) : 0;
}

/* The entry that translates addr, and in *shift how much it covers; 0 when there is none. */
static u64 find_entry(struct hollow_card *c, u64 addr, u64 fb, u32 *shift)
{
    const bool old = hollow_shape.gen == 8;
    u64 at = root_of(c, c->vmid), entry;

    for (*shift = old ? 22 : 39;; *shift -= old ? 10 : 9) {
        u64 mask = !old ? 0x1ff : *shift == 22 ? 0x3ffff : 0x3ff;

        entry = entry_at(c, (at & ADDRESS) - fb + (addr >> *shift & mask) * 8);
        if (!(entry & VALID) || *shift == 12 || entry & ENTRY_IS_PAGE)
            return entry & VALID ? entry : 0;
        at = entry;
    }
}

/* One report for each run of packets: a real card too sends no second one before the first has been
 * dealt with. */
static void fault(struct hollow_card *c, u64 addr, bool write)
{
    if (!c->run_faults++) {
        c->fault_at = addr;
        c->fault_write = write;
    }
    c->user_faults++;
}

void *hollow_walk(struct hollow_card *c, u64 addr, bool write, u32 *left)
{
    const struct hollow_family *f = hollow_shape.family;
    /* gfx8's tables hold addresses of the card's space, gfx9's offsets in its memory. */
    u64 fb = hollow_shape.gen == 8 ? (u64)(hollow_reg(c, f->fb) & 0xffff) << 24 : 0, entry, page;
    u32 shift;

    *left = 4096 - (addr & 4095);
    entry = find_entry(c, addr, fb, &shift);
    if (!(entry & (write ? ENTRY_WRITE : ENTRY_READ))) {
        fault(c, addr, write);
        return NULL;
    }
    page = (entry & ADDRESS) + (addr & (((u64)1 << shift) - 1));
    if (entry & SYSTEM)
        return phys_to_virt(page);
    page -= fb;
    return page + *left <= hollow_shape.vram_size ? (void __force *)c->vram + page : NULL;
}

void hollow_user_poll(struct hollow_card *c, int engine, int queue)
{
    const struct hollow_family *f = hollow_shape.family;
    u32 r = f->sdma + f->sdma_next * engine + f->user + f->user_next * queue, wptr, bell, mask;
    u32 cntl = hollow_reg(c, r);
    struct hollow_engine *q = &c->user[engine][queue];

    hollow_set_reg(c, r + f->status, 4); /* idle: nothing runs outside of this function */
    bell = (hollow_reg(c, r + f->bell) >> f->bell_shift & 0x1fffff) * 4;
    /* A queue that was taken down is enabled, but has no doorbell. */
    if (!(cntl & 1) || !(hollow_reg(c, r + f->doorbell) >> 28 & 1) || bell >= HOLLOW_BAR2_SIZE) {
        if (q->running) /* a doorbell is memory here: its next user shall find it unrung */
            writel(0, c->doorbells + q->bell);
        q->running = false;
        return;
    }
    mask = (4u << (cntl >> 1 & 31)) - 1;
    if (!q->running) {
        q->running = true;
        q->bell = bell;
        q->rptr = hollow_reg(c, r + f->rptr) & mask;
        if (!readl(c->doorbells + bell))
            writel(hollow_reg(c, r + f->wptr), c->doorbells + bell);
    }
    wptr = readl(c->doorbells + bell) & mask;
    if (wptr == q->rptr)
        return;
    c->vmid = cntl >> 24 & 15;
    c->run_faults = 0;
    hollow_sdma_run(c, engine, (u64)hollow_reg(c, r + 2) << 40 | (u64)hollow_reg(c, r + 1) << 8,
                    mask, q->rptr, wptr);
    q->rptr = wptr;
    hollow_set_reg(c, r + f->rptr, wptr);
    hollow_write(c, (u64)hollow_reg(c, r + f->wback) << 32 | hollow_reg(c, r + f->wback + 1), wptr);
    if (c->run_faults && hollow_shape.report)
        hollow_report_fault(c, c->fault_at, c->fault_write);
    c->vmid = 0;
}
