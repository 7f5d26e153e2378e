/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The address space the driver's own rings use: frame buffer and GART; of a user's queue, its own.
 * No check goes beyond what keeps the guest alive; a bad address is counted and reads 0. */
#include <linux/interrupt.h>

#include "hollow.h"

static void *translate(struct hollow_card *c, u64 addr, bool write, u32 *left)
{
    const struct hollow_family *f = hollow_shape.family;
    u64 fb = (u64)(hollow_reg(c, f->fb) & 0xffff) << 24;
    u64 first = (u64)hollow_reg(c, f->gart_start) << 12;
    u64 last = ((u64)hollow_reg(c, f->gart_end) << 12) | 0xfff;
    u64 table;

    if (c->vmid)
        return hollow_walk(c, addr, write, left);
    *left = 4096 - (addr & 4095);
    if (addr >= fb && addr < fb + hollow_shape.vram_size)
        return (void __force *)c->vram + (addr - fb);
    if (hollow_shape.gen == 8) {
        table = ((u64)hollow_reg(c, f->gart_base) << 12) - fb;
    } else {
        first |= (u64)hollow_reg(c, f->gart_start + 1) << 44;
        last |= (u64)hollow_reg(c, f->gart_end + 1) << 44;
        table = (hollow_reg(c, f->gart_base) & ~0xfffu) | (u64)hollow_reg(c, f->gart_base + 1)
                                                              << 32;
    }
    if (addr >= first && addr <= last) {
        u64 at = table + ((addr - first) >> 12) * 8;
        u64 pte = at + 8 <= hollow_shape.vram_size ? readq(c->vram + at) : 0;

        if ((pte & 3) == 3) /* valid, system memory */
            return phys_to_virt((pte & 0xfffffffff000ull) + (addr & 4095));
    }
    if (c->faults++ < 8)
        pr_warn("hollow: no memory at GPU address 0x%llx\n", addr);
    return NULL;
}

u32 hollow_read(struct hollow_card *c, u64 addr)
{
    u32 left;
    u32 *p = translate(c, addr, false, &left);

    return p ? READ_ONCE(*p) : 0;
}

void hollow_write(struct hollow_card *c, u64 addr, u32 val)
{
    u32 left;
    u32 *p = translate(c, addr, true, &left);

    if (p)
        WRITE_ONCE(*p, val);
}

void hollow_copy(struct hollow_card *c, u64 dst, u64 src, u32 size)
{
    while (size) {
        u32 a, b, n;
        void *d = translate(c, dst, true, &a), *s = translate(c, src, false, &b);

        n = min3(a, b, size);
        if (d && s)
            memcpy(d, s, n);
        dst += n;
        src += n;
        size -= n;
    }
}

void hollow_fill(struct hollow_card *c, u64 dst, u32 val, u32 size)
{
    while (size >= 4) {
        u32 left, n;
        u32 *d = translate(c, dst, true, &left);

        n = min(left, size) & ~3u;
        if (!n)
            break;
        if (d)
            memset32(d, val, n / 4);
        dst += n;
        size -= n;
    }
}

/* Puts an entry into the driver's interrupt ring and raises the card's MSI. */
void hollow_interrupt(struct hollow_card *c, u32 client, u32 src, u32 ring, const u32 data[2])
{
    const struct hollow_family *f = hollow_shape.family;
    u32 size = 4u << ((hollow_reg(c, f->ih_cntl) >> 1) & 31), wptr = hollow_reg(c, f->ih_wptr);
    u64 ih = (u64)hollow_reg(c, f->ih_base) << 8;
    u64 back = (u64)(hollow_reg(c, f->ih_wptr_hi) & 0xffff) << 32 | hollow_reg(c, f->ih_wptr_lo);
    u32 pasid = c->vmid ? hollow_reg(c, f->pasid + c->vmid) & 0xffff : 0, *entry;

    if (hollow_shape.gen != 8)
        ih |= (u64)(hollow_reg(c, f->ih_base + 1) & 0xff) << 40;
    if (!ih || !back || !c->pci || !c->pci->irq || size < 64)
        return;
    entry = phys_to_virt(ih + (wptr & (size - 1)));
    if (hollow_shape.gen == 8) {
        entry[0] = src;
        entry[1] = data[0];
        entry[2] = ring | c->vmid << 8 | pasid << 16;
        entry[3] = 0;
        wptr += 16;
    } else {
        memset(entry, 0, 32);
        entry[0] = client | src << 8 | ring << 16 | c->vmid << 24;
        entry[3] = pasid;
        entry[4] = data[0];
        entry[5] = data[1];
        wptr += 32;
    }
    wptr &= size - 1;
    hollow_set_reg(c, f->ih_wptr, wptr);
    wmb(); /* the entry before the pointer that announces it */
    WRITE_ONCE(*(u32 *)phys_to_virt(back), wptr);
    irq_inject_interrupt(c->pci->irq);
}

void hollow_report_fault(struct hollow_card *c, u64 addr, bool write)
{
    u32 page[2] = {(u32)(addr >> 12), addr >> 44 & 15};

    if (hollow_shape.gen != 8) /* by the hub that SDMA is behind: of graphics on gfx10 */
        hollow_interrupt(c, hollow_shape.gen == 10 ? 0x1b : 0x12, 0, write ? 0x28 : 0x18, page);
}
