/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * hollow: PCI display devices with no silicon behind them, for tests of an unmodified driver.
 *
 * The module registers a PCI root bus of its own with one to four cards on it. Configuration space
 * is a byte array with a write mask; the BARs and the ROM are plain memory that the kernel command
 * line kept back (memmap=SIZE$BASE), so a driver that binds reads back what it wrote. A timer
 * answers the few registers the driver polls and plays the engines that the driver itself feeds:
 * two SDMA rings, of the graphics ring what its self-test needs and, from generation 9 on, the
 * kernel's own compute queue (KIQ). Of a user's queues those of SDMA are played, through the page
 * tables that the driver wrote; no other is ever executed.
 *
 * Memory from `base` on: BAR0 of every card (vram_mb each), then for every card 6 MiB with BAR2
 * (doorbells, 2 MiB), BAR5 (registers, 512 KiB) and the ROM, each at a multiple of 2 MiB.
 */
#ifndef HOLLOW_H
#define HOLLOW_H

#include <linux/io.h>
#include <linux/pci.h>
#include <linux/types.h>

#define HOLLOW_MAX_CARDS 4
#define HOLLOW_CFG_SIZE 4096
#define HOLLOW_SLICE_SIZE 0x200000u
#define HOLLOW_BAR2_SIZE HOLLOW_SLICE_SIZE
#define HOLLOW_BAR5_SIZE 0x80000u
#define HOLLOW_ROM_SIZE 0x20000u
#define HOLLOW_ENGINES 2
#define HOLLOW_USER_QUEUES 8

/* Register numbers (in dwords) and packet details of a generation. */
struct hollow_family {
    u32 fb, gart_base, gart_start, gart_end;
    u32 ih_cntl, ih_base, ih_wptr, ih_wptr_hi, ih_wptr_lo;
    u32 sdma, sdma_next;   /* RB_CNTL of engine 0, distance to engine 1 */
    u32 rptr, wptr, wback; /* from RB_CNTL: RPTR, WPTR, RPTR_ADDR_HI (LO follows) */
    u32 bell, bell_shift;  /* from RB_CNTL: the register that holds the doorbell's index */
    u32 minus;             /* 1: counts in packets are one less than meant */
    u32 kiq;               /* CP_HQD_PQ_BASE; 0: there is no KIQ to play */
    u32 active, dequeue;   /* CP_HQD_ACTIVE, and the request to give the queue up */
    u32 users;             /* user queues of an engine */
    u32 user,
        user_next; /* from RB_CNTL of an engine: that of its first user queue; the next one's */
    u32 status, doorbell; /* from RB_CNTL: CONTEXT_STATUS, DOORBELL (bit 28: it has one) */
    u32 pt_base, pasid;   /* page-table base of VMID 0 (8 on gfx8), PASID of VMID 0 */
    u32 gfx_bell;         /* CP_RB_DOORBELL_CONTROL */
};

struct hollow_engine {
    u32 rptr;
    u32 bell; /* of a user's queue that is running */
    bool running;
    ulong packets, unknown;
};

/* A ring of the command processor. A real card has a bank of queue registers per queue, this one
 * has one bank: what the kernel's own queue put there first is kept here. */
struct hollow_cp {
    u32 rptr, mask, bell; /* in bytes */
    u64 at, back;
    ulong packets, flushes; /* flushes: of the TLB of a process */
};

struct hollow_card {
    u8 cfg[HOLLOW_CFG_SIZE], mask[HOLLOW_CFG_SIZE];
    void __iomem *regs, *rom, *doorbells, *vram;
    struct pci_dev *pci;
    ulong bar0, bar2, bar5, romad;
    struct hollow_engine eng[HOLLOW_ENGINES], user[HOLLOW_ENGINES][HOLLOW_USER_QUEUES];
    u32 vmid;                      /* whose address space packets are in; 0: the driver's */
    ulong user_faults, run_faults; /* in all, in the run of packets that is on */
    u64 fault_at;                  /* the first of the last run that had any */
    bool fault_write;
    struct hollow_cp kiq, gfx;
    ulong faults, answers;
};

/* What all cards have in common; set before the first card is made. */
struct hollow_shape {
    uint gen;    /* 8, 9 or 10 */
    uint device; /* PCI device id */
    uint revision;
    u64 vram_size;
    u64 bar0_size; /* less than vram_size: a card with a small BAR */
    bool trace;
    bool hold;   /* the SDMA engines stand still */
    bool report; /* faults of user queues raise an interrupt */
    const struct hollow_family *family;
};

extern struct hollow_shape hollow_shape;

static inline u32 hollow_reg(const struct hollow_card *c, u32 n)
{
    return readl(c->regs + 4 * n);
}

static inline void hollow_set_reg(struct hollow_card *c, u32 n, u32 val)
{
    writel(val, c->regs + 4 * n);
}

/* hollow_card.c: what a driver sees of a card before it runs anything. */
void hollow_fill_config(struct hollow_card *c);
void hollow_fill_rom(struct hollow_card *c);
int hollow_config_read(struct hollow_card *c, int where, int size, u32 *val);
int hollow_config_write(struct hollow_card *c, int where, int size, u32 val);

/* hollow_mem.c: addresses of the card's own space (VMID 0) and interrupts. */
u32 hollow_read(struct hollow_card *c, u64 addr);
void hollow_write(struct hollow_card *c, u64 addr, u32 val);
void hollow_copy(struct hollow_card *c, u64 dst, u64 src, u32 size);
void hollow_fill(struct hollow_card *c, u64 dst, u32 val, u32 size);
void hollow_interrupt(struct hollow_card *c, u32 client, u32 src, u32 ring, const u32 data[2]);
/* A page of the process with c->vmid was not there or not allowed; not on gfx8. */
void hollow_report_fault(struct hollow_card *c, u64 addr, bool write);

/* hollow_engine.c: the rings the driver feeds. */
const struct hollow_family *hollow_family_of(uint gen);
void hollow_sdma_poll(struct hollow_card *c, int n);
/* Packets of engine n from pos to end, in the ring of mask + 1 bytes that begins at `at`. */
void hollow_sdma_run(struct hollow_card *c, int n, u64 at, u32 mask, u32 pos, u32 end);
void hollow_kiq_poll(struct hollow_card *c);
void hollow_gfx_poll(struct hollow_card *c);
void hollow_queue_poll(struct hollow_card *c);

/* hollow_user.c: SDMA queues of processes. */
void hollow_user_poll(struct hollow_card *c, int engine, int queue);
/* Where addr of the process with c->vmid lies, and how many bytes of it; NULL: a fault. */
void *hollow_walk(struct hollow_card *c, u64 addr, bool write, u32 *left);

#endif
