/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Configuration space and the video BIOS image of a hollow card. */
#include "hollow.h"

static void put(struct hollow_card *c, unsigned int at, u32 val, unsigned int size, u32 wmask)
{
    for (unsigned int i = 0; i < size; i++) {
        c->cfg[at + i] = val >> (8 * i);
        c->mask[at + i] = wmask >> (8 * i);
    }
}

void hollow_fill_config(struct hollow_card *c)
{
    u32 ids = PCI_VENDOR_ID_ATI | hollow_shape.device << 16;

    put(c, PCI_VENDOR_ID, ids, 4, 0);
    put(c, PCI_COMMAND, PCI_COMMAND_MEMORY, 2, 0x0547);
    put(c, PCI_STATUS, PCI_STATUS_CAP_LIST, 2, 0);
    put(c, PCI_CLASS_REVISION, 0x03800000 | hollow_shape.revision, 4, 0);
    put(c, PCI_CACHE_LINE_SIZE, 0, 1, 0xff);
    put(c, PCI_BASE_ADDRESS_0, c->bar0 | 0xc, 4, ~(u32)(hollow_shape.bar0_size - 1));
    put(c, PCI_BASE_ADDRESS_1, 0, 4, ~0u);
    put(c, PCI_BASE_ADDRESS_2, c->bar2 | 0xc, 4, ~(HOLLOW_BAR2_SIZE - 1));
    put(c, PCI_BASE_ADDRESS_3, 0, 4, ~0u);
    put(c, PCI_BASE_ADDRESS_5, c->bar5, 4, ~(HOLLOW_BAR5_SIZE - 1));
    put(c, PCI_SUBSYSTEM_VENDOR_ID, ids, 4, 0);
    put(c, PCI_ROM_ADDRESS, c->romad, 4, ~(HOLLOW_ROM_SIZE - 1) | 1);
    put(c, PCI_CAPABILITY_LIST, 0x40, 1, 0);
    put(c, PCI_INTERRUPT_LINE, 0, 1, 0xff);
    /* PCI Express, version 2, root complex integrated endpoint */
    put(c, 0x40, 0x0092 << 16 | 0x80 << 8 | PCI_CAP_ID_EXP, 4, 0);
    put(c, 0x40 + PCI_EXP_DEVCTL, 0, 2, 0x7fff);
    /* AtomicOp requests already enabled, as a hypervisor leaves it; without them KFD skips gfx8 */
    put(c, 0x40 + PCI_EXP_DEVCTL2, PCI_EXP_DEVCTL2_ATOMIC_REQ, 2, 0xffff);
    /* MSI with 64-bit addresses */
    put(c, 0x80, 0x0080 << 16 | PCI_CAP_ID_MSI, 4, 0x00710000);
    put(c, 0x84, 0, 4, ~3u);
    put(c, 0x88, 0, 4, ~0u);
    put(c, 0x8c, 0, 2, 0xffff);
}

int hollow_config_read(struct hollow_card *c, int where, int size, u32 *val)
{
    *val = 0;
    for (int i = 0; i < size; i++)
        *val |= (u32)c->cfg[where + i] << (8 * i);
    return PCIBIOS_SUCCESSFUL;
}

int hollow_config_write(struct hollow_card *c, int where, int size, u32 val)
{
    for (int i = 0; i < size; i++) {
        u8 m = c->mask[where + i], v = val >> (8 * i);

        c->cfg[where + i] = (c->cfg[where + i] & ~m) | (v & m);
    }
    return PCIBIOS_SUCCESSFUL;
}

static u8 rom[0x1000];

static void rom16(unsigned int at, u16 val)
{
    rom[at] = val & 255;
    rom[at + 1] = val >> 8;
}

/* A table of the image begins with its size and two revision bytes. */
static void rom_table(unsigned int at, u16 size, u8 format, u8 content)
{
    rom16(at, size);
    rom[at + 2] = format;
    rom[at + 3] = content;
}

/* The smallest image that an AtomBIOS reader takes: signatures, two master tables, a FirmwareInfo
 * and a GFX_Info table, for generation 10 what memory there is. The numbers in it are of our own
 * choice. */
void hollow_fill_rom(struct hollow_card *c)
{
    enum {
        PCIR = 0x700,
        HEADER = 0x100,
        COMMANDS = 0x180,
        DATA = 0x280
    };
    enum {
        FIRMWARE = 0x400,
        GFX = 0x500,
        VRAM = 0x580,
        INDIRECT = 0x600
    };

    memset(rom, 0, sizeof(rom));
    rom16(0, 0xAA55);
    rom[2] = sizeof(rom) / 512;
    rom16(0x18, PCIR);
    memcpy(rom + 0x30, " 761295520", 10);
    rom16(0x48, HEADER);
    memcpy(rom + 0x50, "01/01/26 00:00", 14);
    /* A part number: without one a driver may look for a string and follow NULL. */
    memcpy(rom + 0x80, "HOLLOW", 6);
    memcpy(rom + PCIR, "PCIR", 4);
    rom16(PCIR + 4, PCI_VENDOR_ID_ATI);
    rom16(PCIR + 6, hollow_shape.device);
    rom16(PCIR + 10, 0x18);
    rom16(PCIR + 13, 0x0380);
    rom16(PCIR + 16, sizeof(rom) / 512);
    rom[PCIR + 21] = 0x80;
    rom16(HEADER, 0x24);
    memcpy(rom + HEADER + 4, "ATOM", 4);
    rom16(HEADER + 0x1e, COMMANDS);
    rom16(HEADER + 0x20, DATA);
    rom_table(COMMANDS, 0x100, 1, 1);
    rom_table(DATA, 4 + 2 * 40, 1, 1);
    rom16(DATA + 4 + 2 * 4, FIRMWARE);
    rom16(DATA + 4 + 2 * 14, GFX);
    rom16(DATA + 4 + 2 * 23, INDIRECT);
    if (hollow_shape.gen == 10)
        rom_table(FIRMWARE, 0x80, 3, 3);
    else
        rom_table(FIRMWARE, 0x80, 2, 2);
    if (hollow_shape.gen != 8)
        rom[FIRMWARE + 24] = 0x4c; /* where the BIOS scratch registers begin */
    rom_table(GFX, 12, 2, 1);
    if (hollow_shape.gen == 10) {
        rom_table(GFX, 44, 2, 2); /* with a clock, 0 here; of 2.1 the driver of 6.1 dies */
        rom16(DATA + 4 + 2 * 28, VRAM);
        rom_table(VRAM, 80, 2, 4);
        rom[VRAM + 20] = 1;    /* memory modules */
        rom[VRAM + 47] = 0x70; /* the first one's: GDDR6 */
        rom[VRAM + 48] = 16;   /* channels */
        rom[VRAM + 49] = 4;    /* of 1 << 4 bits */
    }
    rom[GFX + 6] = 4;  /* shader engines */
    rom[GFX + 7] = 8;  /* tile pipes */
    rom[GFX + 8] = 6;  /* CUs per array */
    rom[GFX + 9] = 1;  /* arrays per engine */
    rom[GFX + 10] = 2; /* backends per engine */
    rom[GFX + 11] = 8; /* texture caches */
    rom16(INDIRECT, 4);
    memcpy_toio(c->rom, rom, sizeof(rom));
}
