/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The rings that the driver itself feeds: two SDMA engines, the kernel's compute queue, graphics.
 */
#include "hollow.h"

static const struct hollow_family families[] = {
    {
        .fb = 0x809,
        .gart_base = 0x54f,
        .gart_start = 0x557,
        .gart_end = 0x55f,
        .ih_cntl = 0xe30,
        .ih_base = 0xe31,
        .ih_wptr = 0xe33,
        .ih_wptr_hi = 0xe34,
        .ih_wptr_lo = 0xe35,
        .sdma = 0x3480,
        .sdma_next = 0x200,
        .rptr = 3,
        .wptr = 4,
        .wback = 8,
        .bell = 0x12,
        .active = 0x3247,
        .dequeue = 0x325d,
        .users = 2,
        .user = 0x80,
        .user_next = 0x80,
        .status = 0x11,
        .doorbell = 0x12,
        .pt_base = 0x50e,
        .pasid = 0xce7,
        .gfx_bell = 0x3059,
    },
    {
        .fb = 0x1a82c,
        .gart_base = 0x1a72b,
        .gart_start = 0x1a74b,
        .gart_end = 0x1a76b,
        .ih_cntl = 0x1120,
        .ih_base = 0x1121,
        .ih_wptr = 0x1124,
        .ih_wptr_hi = 0x1125,
        .ih_wptr_lo = 0x1126,
        .sdma = 0x12e0,
        .sdma_next = 0x200,
        .rptr = 3,
        .wptr = 5,
        .wback = 8,
        .bell = 0x2b,
        .bell_shift = 2,
        .minus = 1,
        .kiq = 0x324d,
        .active = 0x3247,
        .dequeue = 0x325d,
        .users = 2,
        .user = 0xc0,
        .user_next = 0x60,
        .status = 0x11,
        .doorbell = 0x12,
        .pt_base = 0x1a72b,
        .pasid = 0xc2c,
        .gfx_bell = 0x3059,
    },
    {
        .fb = 0x2980,
        .gart_base = 0x28eb,
        .gart_start = 0x290b,
        .gart_end = 0x292b,
        .ih_cntl = 0x1120,
        .ih_base = 0x1121,
        .ih_wptr = 0x1124,
        .ih_wptr_hi = 0x1125,
        .ih_wptr_lo = 0x1126,
        .sdma = 0x12e0,
        .sdma_next = 0x600,
        .rptr = 3,
        .wptr = 5,
        .wback = 8,
        .bell = 0x2b,
        .bell_shift = 2,
        .minus = 1,
        .kiq = 0x3211,
        .active = 0x320b,
        .dequeue = 0x3221,
        .users = 8,
        .user = 0xc0,
        .user_next = 0x60,
        .status = 0x11,
        .doorbell = 0x12,
        .pt_base = 0x28eb,
        .pasid = 0xc0c,
        .gfx_bell = 0x30ed,
    },
};

const struct hollow_family *hollow_family_of(uint gen)
{
    return gen >= 8 && gen - 8 < ARRAY_SIZE(families) ? &families[gen - 8] : NULL;
}

enum sdma_op {
    SDMA_NOP = 0,
    SDMA_COPY = 1,
    SDMA_WRITE = 2,
    SDMA_INDIRECT = 4,
    SDMA_FENCE = 5,
    SDMA_TRAP = 6,
    SDMA_POLL = 8,
    SDMA_IF = 9, /* what follows, if a word says so: nothing here takes it back, so it does */
    SDMA_FILL = 11,
    SDMA_PTES = 12,
    SDMA_SET_REG = 14,
    SDMA_CACHES = 17,
};

#define SDMA_MAX_WORDS 10

/* A stretch of packets: a ring of mask + 1 bytes, or an indirect buffer (mask all ones). */
struct stretch {
    u64 at;
    u32 mask;
};

static u32 word(struct hollow_card *c, const struct stretch *s, u32 pos)
{
    return hollow_read(c, s->at + (pos & s->mask));
}

static u64 pair(const u32 *p)
{
    return (u64)p[1] << 32 | p[0];
}

static u32 sdma_length(struct hollow_card *c, const struct stretch *s, u32 pos, u32 minus)
{
    u32 head = word(c, s, pos);

    switch (head & 0xff) {
    case SDMA_NOP:
        return 1 + (head >> 16 & 0x3fff);
    case SDMA_COPY:
        return 7;
    case SDMA_WRITE:
        return 4 + minus + (word(c, s, pos + 12) & 0xfffff);
    case SDMA_INDIRECT:
    case SDMA_POLL:
        return 6;
    case SDMA_FENCE:
        return 4;
    case SDMA_TRAP:
        return 2;
    case SDMA_FILL:
    case SDMA_IF:
    case SDMA_CACHES:
        return 5;
    case SDMA_PTES:
        return 10;
    case SDMA_SET_REG:
        return 3;
    }
    return 0;
}

static void sdma_ptes(struct hollow_card *c, const u32 *p, u32 minus)
{
    u64 dst = pair(p + 1), flags = pair(p + 3), value = pair(p + 5);

    for (u32 i = 0; i < (p[9] & 0x7ffff) + minus; i++, value += p[7]) {
        hollow_write(c, dst + 8ull * i, (u32)(value | flags));
        hollow_write(c, dst + 8ull * i + 4, (value | flags) >> 32);
    }
}

static void sdma_run(struct hollow_card *c, int n, const struct stretch *s, u32 pos, u32 end,
                     bool indirect)
{
    const u32 minus = hollow_shape.family->minus;
    ulong budget = 200000;
    u32 p[SDMA_MAX_WORDS];

    while (pos != end && budget--) {
        u32 len = sdma_length(c, s, pos, minus);

        c->eng[n].packets++;
        if (!len) {
            c->eng[n].unknown++;
            len = 1;
        }
        memset(p, 0, sizeof(p));
        for (u32 i = 0; i < SDMA_MAX_WORDS && i < len; i++)
            p[i] = word(c, s, pos + 4 * i);
        if (hollow_shape.trace)
            pr_info("hollow: sdma%d%s op %u len %u: %08x %08x %08x\n", n, indirect ? " ib" : "",
                    p[0] & 0xff, len, p[1], p[2], p[3]);
        switch (p[0] & 0xff) {
        case SDMA_COPY:
            hollow_copy(c, pair(p + 5), pair(p + 3), (p[1] & 0x3fffff) + minus);
            break;
        case SDMA_WRITE:
            for (u32 i = 4; i < len; i++)
                hollow_write(c, pair(p + 1) + 4 * (i - 4), word(c, s, pos + 4 * i));
            break;
        case SDMA_INDIRECT:
            if (!indirect) {
                struct stretch ib = {.at = pair(p + 1), .mask = ~0u};

                sdma_run(c, n, &ib, 0, p[3] * 4, true);
            }
            break;
        case SDMA_FENCE:
            hollow_write(c, pair(p + 1), p[3]);
            break;
        case SDMA_TRAP:
            hollow_interrupt(c, 8 + n, 224, hollow_shape.gen == 8 ? n : 0,
                             (const u32[2]){p[1] & 0xfffffff});
            break;
        case SDMA_FILL:
            hollow_fill(c, pair(p + 1), p[3], (p[4] & 0x3fffff) + minus);
            break;
        case SDMA_PTES:
            sdma_ptes(c, p, minus);
            break;
        case SDMA_SET_REG:
            if ((p[1] & 0x3ffff) < HOLLOW_BAR5_SIZE / 4)
                hollow_set_reg(c, p[1] & 0x3ffff, p[2]);
            break;
        }
        pos += 4 * len;
        if (!indirect)
            pos &= s->mask;
        else if (pos >= end)
            break;
    }
}

void hollow_sdma_run(struct hollow_card *c, int n, u64 at, u32 mask, u32 pos, u32 end)
{
    struct stretch ring = {.at = at, .mask = mask};

    sdma_run(c, n, &ring, pos, end, false);
}

void hollow_sdma_poll(struct hollow_card *c, int n)
{
    const struct hollow_family *f = hollow_shape.family;
    struct hollow_engine *e = &c->eng[n];
    u32 r = f->sdma + f->sdma_next * n, cntl = hollow_reg(c, r), wptr, bell;
    struct stretch ring;

    if (!(cntl & 1)) {
        e->rptr = 0;
        return;
    }
    ring.at = (u64)hollow_reg(c, r + 2) << 40 | (u64)hollow_reg(c, r + 1) << 8;
    ring.mask = (4u << (cntl >> 1 & 31)) - 1;
    bell = (hollow_reg(c, r + f->bell) >> f->bell_shift & 0x1fffff) * 4;
    if (bell >= HOLLOW_BAR2_SIZE)
        return;
    wptr = readl(c->doorbells + bell) & ring.mask;
    if (wptr == e->rptr)
        return;
    sdma_run(c, n, &ring, e->rptr, wptr, false);
    e->rptr = wptr;
    hollow_set_reg(c, r + f->rptr, wptr);
    hollow_write(c, (u64)hollow_reg(c, r + f->wback) << 32 | hollow_reg(c, r + f->wback + 1), wptr);
}

enum cp_op {
    CP_WRITE_DATA = 0x37,
    CP_INDIRECT = 0x3f,
    CP_COPY_DATA = 0x40,
    CP_EVENT_EOP = 0x47,
    CP_RELEASE_MEM = 0x49,
    CP_SET_REG = 0x79,
    CP_INVALIDATE_TLBS = 0x98, /* of one process, by its PASID */
};

#define CP_MAX_WORDS 8
/* The graphics ring's registers, the same in all generations. */
#define CP_RB0_BASE 0x3040
#define CP_RB0_CNTL 0x3041
#define CP_RB0_RPTR_ADDR 0x3043
#define CP_RB0_BASE_HI 0x30b1
/* The KIQ writes here for an interrupt; gfx9's driver hears none. */
#define CPC_INT_STATUS 0x30b5
/* Of the graphics hub's engine 17; bits 8 to 15 are the VMIDs of processes. KFD of 6.1 flushes by
 * it. */
#define INVALIDATE_REQUEST 0x28b4
#define IH_CLIENT_CP 20
#define IH_SOURCE_KIQ 178
#define IH_SOURCE_EOP 181

static void cp_run(struct hollow_card *c, struct hollow_cp *q, const struct stretch *s, u32 pos,
                   u32 end);

/* The end of what came before: a number for memory, an interrupt where it is wanted. */
static void cp_fence(struct hollow_card *c, u64 addr, u32 how, const u32 *value)
{
    u32 data = how >> 29;

    if (data == 1 || data == 2)
        hollow_write(c, addr, value[0]);
    if (data == 2)
        hollow_write(c, addr + 4, value[1]);
    if (how >> 24 & 3)
        hollow_interrupt(c, IH_CLIENT_CP, IH_SOURCE_EOP, 0, (const u32[2]){0});
}

static void cp_write_reg(struct hollow_card *c, struct hollow_cp *q, u32 reg, u32 value)
{
    hollow_set_reg(c, reg, value);
    if (reg == CPC_INT_STATUS && hollow_shape.gen == 10)
        hollow_interrupt(c, IH_CLIENT_CP, IH_SOURCE_KIQ, 0, (const u32[2]){0});
    if (reg == INVALIDATE_REQUEST && value & 0xff00)
        q->flushes++;
}

static void cp_packet(struct hollow_card *c, struct hollow_cp *q, u32 op, const u32 *p)
{
    const u32 regs = HOLLOW_BAR5_SIZE / 4;
    struct stretch ib;

    switch (op) {
    case CP_WRITE_DATA:
        if ((p[1] >> 8 & 15) == 5) /* to memory */
            hollow_write(c, pair(p + 2), p[4]);
        else if (p[2] < regs)
            cp_write_reg(c, q, p[2], p[4]);
        break;
    case CP_INDIRECT:
        ib = (struct stretch){.at = pair(p + 1), .mask = ~0u};
        if (!(p[3] >> 24 & 15)) /* a user's VM is not for us */
            cp_run(c, q, &ib, 0, (p[3] & 0xfffff) * 4);
        break;
    case CP_EVENT_EOP:
        cp_fence(c, (u64)(p[3] & 0xffff) << 32 | p[2], p[3], p + 4);
        break;
    case CP_RELEASE_MEM:
        cp_fence(c, pair(p + 3), p[2], p + 5);
        break;
    case CP_INVALIDATE_TLBS:
        q->flushes++;
        break;
    case CP_SET_REG:
        if (0xc000 + (p[1] & 0xffff) < regs)
            hollow_set_reg(c, 0xc000 + (p[1] & 0xffff), p[2]);
        break;
    case CP_COPY_DATA:
        if ((p[1] & 15) == 0 && (p[1] >> 8 & 15) == 5 && p[2] < regs) /* register to memory */
            hollow_write(c, pair(p + 4), hollow_reg(c, p[2]));
        break;
    }
}

/* Plays from one position up to another; an indirect buffer in an indirect buffer ends it. */
static void cp_run(struct hollow_card *c, struct hollow_cp *q, const struct stretch *s, u32 pos,
                   u32 end)
{
    const bool indirect = s->mask == ~0u;
    ulong budget = 10000;

    while (pos != end && budget--) {
        u32 p[CP_MAX_WORDS] = {word(c, s, pos)}, count = p[0] >> 16 & 0x3fff, len = 1;
        u32 op = p[0] >> 8 & 0xff;

        if (p[0] >> 30 == 3 && count != 0x3fff)
            len = count + 2;
        for (u32 i = 1; i < CP_MAX_WORDS && i < len; i++)
            p[i] = word(c, s, pos + 4 * i);
        if (hollow_shape.trace)
            pr_info("hollow: cp%s op %02x len %u: %08x %08x %08x\n", indirect ? " ib" : "", op, len,
                    p[1], p[2], p[3]);
        q->packets++;
        if (p[0] >> 30 == 3 && !(indirect && op == CP_INDIRECT))
            cp_packet(c, q, op, p);
        pos += 4 * len;
        if (!indirect)
            pos &= s->mask;
        else if (pos >= end)
            break;
    }
}

static void cp_poll(struct hollow_card *c, struct hollow_cp *q)
{
    struct stretch ring = {.at = q->at, .mask = q->mask};
    u32 wptr = readl(c->doorbells + q->bell) * 4 & q->mask;

    if (q->rptr == wptr)
        return;
    cp_run(c, q, &ring, q->rptr, wptr);
    q->rptr = wptr;
    hollow_write(c, q->back, wptr / 4);
}

/* Takes over the ring that the driver has just described in the queue registers. */
static bool kiq_start(struct hollow_card *c)
{
    const struct hollow_family *f = hollow_shape.family;
    struct hollow_cp *q = &c->kiq;

    if (!(hollow_reg(c, f->active) & 1) || !hollow_reg(c, f->kiq))
        return false;
    q->at = (u64)hollow_reg(c, f->kiq + 1) << 40 | (u64)hollow_reg(c, f->kiq) << 8;
    q->back = (u64)hollow_reg(c, f->kiq + 4) << 32 | hollow_reg(c, f->kiq + 3);
    q->mask = (8u << (hollow_reg(c, f->kiq + 9) & 63)) - 1; /* bytes */
    q->bell = (hollow_reg(c, f->kiq + 7) >> 2 & 0x3ffffff) * 4 & (HOLLOW_BAR2_SIZE - 1);
    hollow_set_reg(c, f->active, 0);
    return true;
}

void hollow_kiq_poll(struct hollow_card *c)
{
    if (hollow_shape.family->kiq && (c->kiq.at || kiq_start(c)))
        cp_poll(c, &c->kiq);
}

void hollow_gfx_poll(struct hollow_card *c)
{
    u32 bell = hollow_reg(c, hollow_shape.family->gfx_bell);
    u64 at = (u64)hollow_reg(c, CP_RB0_BASE_HI) << 40 | (u64)hollow_reg(c, CP_RB0_BASE) << 8;
    struct hollow_cp *q = &c->gfx;

    if (!at || !(bell >> 30 & 1))
        return;
    if (at != q->at)
        q->rptr = 0;
    q->at = at;
    q->mask = (8u << (hollow_reg(c, CP_RB0_CNTL) & 63)) - 1;
    q->back =
        (u64)hollow_reg(c, CP_RB0_RPTR_ADDR + 1) << 32 | (hollow_reg(c, CP_RB0_RPTR_ADDR) & ~3u);
    q->bell = (bell >> 2 & 0x3ffffff) * 4 & (HOLLOW_BAR2_SIZE - 1);
    cp_poll(c, q);
}

/* A user's queue that is asked to stop has stopped. */
void hollow_queue_poll(struct hollow_card *c)
{
    const struct hollow_family *f = hollow_shape.family;

    if (!hollow_reg(c, f->dequeue))
        return;
    hollow_set_reg(c, f->active, 0);
    hollow_set_reg(c, f->dequeue, 0);
}
