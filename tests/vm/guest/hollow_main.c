/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Parameters, the bus, and the timer that keeps the cards alive. */
#include <linux/hrtimer.h>
#include <linux/module.h>

#include "hollow.h"

struct hollow_shape hollow_shape = {.gen = 9, .device = 0x6860};

static ulong base = 0x40000000;
module_param(base, ulong, 0444);
MODULE_PARM_DESC(base, "physical address of the memory kept back for the cards");
static uint count = 1;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of cards, 1 to 4");
static uint vram_mb = 128;
module_param(vram_mb, uint, 0444);
MODULE_PARM_DESC(vram_mb, "frame buffer of each card, a power of two");
static uint bar_mb;
module_param(bar_mb, uint, 0444);
MODULE_PARM_DESC(bar_mb, "the part of it that BAR0 shows, a power of two; 0: all");
module_param_named(gen, hollow_shape.gen, uint, 0444);
MODULE_PARM_DESC(gen, "8, 9 or 10: whose registers and packets");
module_param_named(device, hollow_shape.device, uint, 0444);
module_param_named(revision, hollow_shape.revision, uint, 0444);
module_param_named(trace, hollow_shape.trace, bool, 0644);
MODULE_PARM_DESC(trace, "log every packet");
module_param_named(hold, hollow_shape.hold, bool, 0644);
MODULE_PARM_DESC(hold, "the SDMA engines stand still until it is taken back");

module_param_named(report, hollow_shape.report, bool, 0644);
MODULE_PARM_DESC(report, "faults of user queues raise an interrupt");

/* Registers (byte offsets) set once before the scan, and those put back on every tick: acknowledge
 * bits, free semaphores. */
static uint reg_off[64], reg_val[64], force_off[16], force_val[16];
static int n_reg_off, n_reg_val, n_force_off, n_force_val;
module_param_array(reg_off, uint, &n_reg_off, 0444);
module_param_array(reg_val, uint, &n_reg_val, 0444);
module_param_array(force_off, uint, &n_force_off, 0444);
module_param_array(force_val, uint, &n_force_val, 0444);

/* The ring tests write one value to a scratch register and wait for the other. */
static uint watch_off = 0x30100, watch_val = 0xCAFEDEAD, answer_val = 0xDEADBEEF;
module_param(watch_off, uint, 0444);
module_param(watch_val, uint, 0444);
module_param(answer_val, uint, 0444);

/* How often each card was asked to flush a process's TLB, for tests. */
static ulong flushes[HOLLOW_MAX_CARDS];
module_param_array(flushes, ulong, NULL, 0444);

/* How often packets of user queues met what is not mapped or not allowed. */
static ulong faults[HOLLOW_MAX_CARDS];
module_param_array(faults, ulong, NULL, 0444);

#define TICK_NS 100000

static struct hollow_card cards[HOLLOW_MAX_CARDS];
static struct pci_bus *bus;
static struct hrtimer timer;
static struct resource mem_win = {.name = "hollow memory", .flags = IORESOURCE_MEM};
static struct resource bus_win = {.name = "hollow bus", .flags = IORESOURCE_BUS};
static struct pci_sysdata sysdata = {.node = NUMA_NO_NODE};

/* Cards sit in slots 0, 1, 2, ... */
static struct hollow_card *at_slot(struct pci_bus *b, unsigned int devfn, int where, int size)
{
    if (b->number || devfn & 7 || devfn >> 3 >= count || where < 0 ||
        where + size > HOLLOW_CFG_SIZE)
        return NULL;
    return &cards[devfn >> 3];
}

static int config_read(struct pci_bus *b, unsigned int devfn, int where, int size, u32 *val)
{
    struct hollow_card *c = at_slot(b, devfn, where, size);

    *val = ~0u;
    return c ? hollow_config_read(c, where, size, val) : PCIBIOS_DEVICE_NOT_FOUND;
}

static int config_write(struct pci_bus *b, unsigned int devfn, int where, int size, u32 val)
{
    struct hollow_card *c = at_slot(b, devfn, where, size);

    return c ? hollow_config_write(c, where, size, val) : PCIBIOS_DEVICE_NOT_FOUND;
}

static struct pci_ops ops = {.read = config_read, .write = config_write};

/* A timer and not a thread: the driver polls with udelay, and on one CPU no thread would run. */
static enum hrtimer_restart tick(struct hrtimer *t)
{
    for (struct hollow_card *c = cards; c < cards + count; c++) {
        if (readl(c->regs + watch_off) == watch_val) {
            writel(answer_val, c->regs + watch_off);
            c->answers++;
        }
        for (int i = 0; i < n_force_off; i++)
            writel(force_val[i], c->regs + force_off[i]);
        for (int i = 0; i < HOLLOW_ENGINES && !hollow_shape.hold; i++) {
            hollow_sdma_poll(c, i);
            for (u32 q = 0; q < hollow_shape.family->users; q++)
                hollow_user_poll(c, i, q);
        }
        faults[c - cards] = c->user_faults;
        hollow_kiq_poll(c);
        hollow_gfx_poll(c);
        flushes[c - cards] = c->kiq.flushes;
        hollow_queue_poll(c);
    }
    hrtimer_forward_now(t, ns_to_ktime(TICK_NS));
    return HRTIMER_RESTART;
}

static void card_unmap(struct hollow_card *c)
{
    void __iomem *maps[] = {c->vram, c->doorbells, c->rom, c->regs};

    for (unsigned int i = 0; i < ARRAY_SIZE(maps); i++)
        if (maps[i])
            iounmap(maps[i]);
}

static int card_make(struct hollow_card *c, int i, ulong slices)
{
    c->bar0 = base + i * hollow_shape.vram_size;
    c->bar2 = slices;
    c->bar5 = c->bar2 + HOLLOW_SLICE_SIZE;
    c->romad = c->bar5 + HOLLOW_SLICE_SIZE;
    c->regs = ioremap(c->bar5, HOLLOW_BAR5_SIZE);
    c->rom = ioremap(c->romad, HOLLOW_ROM_SIZE);
    c->doorbells = ioremap(c->bar2, HOLLOW_BAR2_SIZE);
    /* write-combined, as the driver will map it: two types for one page are refused */
    c->vram = ioremap_wc(c->bar0, hollow_shape.vram_size);
    if (!c->regs || !c->rom || !c->doorbells || !c->vram)
        return -ENOMEM;
    memset_io(c->regs, 0, HOLLOW_BAR5_SIZE);
    hollow_fill_rom(c);
    hollow_fill_config(c);
    for (int k = 0; k < n_reg_off; k++)
        writel(reg_val[k], c->regs + reg_off[k]);
    return 0;
}

static bool parameters_ok(void)
{
    hollow_shape.vram_size = vram_mb * 0x100000ull;
    hollow_shape.bar0_size = (bar_mb ? bar_mb : vram_mb) * 0x100000ull;
    hollow_shape.family = hollow_family_of(hollow_shape.gen);
    return count && count <= HOLLOW_MAX_CARDS && is_power_of_2(hollow_shape.vram_size) &&
           is_power_of_2(hollow_shape.bar0_size) &&
           hollow_shape.bar0_size <= hollow_shape.vram_size &&
           !(base & (hollow_shape.vram_size - 1)) && n_reg_off == n_reg_val &&
           n_force_off == n_force_val && hollow_shape.family;
}

static int bus_make(void)
{
    LIST_HEAD(windows);
    int domain = 1;

    while (pci_find_bus(domain, 0))
        domain++;
    sysdata.domain = domain;
    pci_add_resource(&windows, &mem_win);
    pci_add_resource(&windows, &bus_win);
    pci_lock_rescan_remove();
    bus = pci_create_root_bus(NULL, 0, &ops, &sysdata, &windows);
    if (!bus) {
        pci_unlock_rescan_remove();
        pci_free_resource_list(&windows);
        return -ENODEV;
    }
    pci_scan_child_bus(bus);
    pci_bus_claim_resources(bus);
    pci_bus_assign_resources(bus);
    for (int i = 0; i < count; i++)
        cards[i].pci = pci_get_slot(bus, PCI_DEVFN(i, 0));
    hrtimer_start(&timer, ns_to_ktime(TICK_NS), HRTIMER_MODE_REL);
    pci_bus_add_devices(bus);
    pci_unlock_rescan_remove();
    return 0;
}

static int __init hollow_init(void)
{
    ulong slices;
    int ret;

    if (!parameters_ok())
        return -EINVAL;
    slices = base + count * hollow_shape.vram_size;
    mem_win.start = base;
    mem_win.end = slices + count * 3 * HOLLOW_SLICE_SIZE - 1;
    hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
    timer.function = tick;
    for (int i = 0; i < count; i++) {
        ret = card_make(&cards[i], i, slices + i * 3 * HOLLOW_SLICE_SIZE);
        if (ret)
            goto unmap;
    }
    ret = bus_make();
    if (ret)
        goto unmap;
    return 0;
unmap:
    for (int i = 0; i < count; i++)
        card_unmap(&cards[i]);
    return ret;
}

static void __exit hollow_exit(void)
{
    pci_lock_rescan_remove();
    pci_stop_root_bus(bus);
    hrtimer_cancel(&timer);
    for (int i = 0; i < count; i++)
        pci_dev_put(cards[i].pci);
    pci_remove_root_bus(bus);
    pci_unlock_rescan_remove();
    for (struct hollow_card *c = cards; c < cards + count; c++) {
        pr_info("hollow: answers %lu, sdma packets %lu %lu, unknown %lu %lu, kiq %lu, gfx %lu, "
                "faults %lu\n",
                c->answers, c->eng[0].packets, c->eng[1].packets, c->eng[0].unknown,
                c->eng[1].unknown, c->kiq.packets, c->gfx.packets, c->faults);
        card_unmap(c);
    }
}

module_init(hollow_init);
module_exit(hollow_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("PCI display devices made of RAM, for driver tests");
