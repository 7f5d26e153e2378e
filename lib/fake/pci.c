/* SPDX-License-Identifier: MIT */
#include "fake/pci.h"

#include <string.h>

/* Memory (and doorbells) above all RAM, registers below 4 GiB, each card at a distance. */
#define HIGH_BASE (UINT64_C(1) << 44)
#define HIGH_STEP (UINT64_C(1) << 40)
#define LOW_BASE UINT64_C(0x80000000)
#define LOW_STEP UINT64_C(0x100000)
#define DOORBELL_SIZE (UINT64_C(2) << 20)
#define REGISTER_SIZE (UINT64_C(512) << 10)

/* What the kernel says of a region. */
#define PREFETCH_64 UINT64_C(0x14220c)
#define MEMORY_32 UINT64_C(0x40200)

/* Bits of a base address register. */
#define BAR_PREFETCH_64 0xcu

#define REGIONS 7u /* six and the ROM */

struct region {
    uint64_t base, size, flags;
};

uint32_t fake_pci_class(const struct fake_gpu *gpu)
{
    return gpu->wave_front_size == 64 && gpu->num_sdma_xgmi_engines > 0 ? 0x120000 : 0x030000;
}

/* A window's size is a power of two. */
static uint64_t window(uint64_t bytes)
{
    uint64_t size = UINT64_C(256) << 20;

    while (size < bytes)
        size *= 2;
    return size;
}

static void find_regions(const struct fake_profile *p, uint32_t g, struct region out[REGIONS])
{
    const struct fake_gpu *gpu = &p->gpus[g];
    uint64_t high = HIGH_BASE + g * HIGH_STEP;
    uint64_t size = window(gpu->visible_vram * gpu->partitions);

    memset(out, 0, REGIONS * sizeof(*out));
    out[0] = (struct region){high, size, PREFETCH_64};
    out[2] = (struct region){high + HIGH_STEP / 2, DOORBELL_SIZE, PREFETCH_64};
    out[5] = (struct region){LOW_BASE + g * LOW_STEP, REGISTER_SIZE, MEMORY_32};
}

static void put(unsigned char *config, uint32_t at, uint32_t size, uint64_t value)
{
    for (uint32_t i = 0; i < size; i++)
        config[at + i] = (unsigned char)(value >> 8 * i);
}

void fake_pci_config(const struct fake_profile *p, uint32_t g, struct fake_text *out)
{
    const struct fake_gpu *gpu = &p->gpus[g];
    unsigned char config[FAKE_PCI_CONFIG_SIZE] = {0};
    struct region regions[REGIONS];

    find_regions(p, g, regions);
    put(config, 0x00, 2, gpu->vendor_id);
    put(config, 0x02, 2, gpu->device_id);
    put(config, 0x04, 2, 0x0406); /* memory, bus master, no INTx */
    put(config, 0x08, 1, gpu->pci_rev);
    put(config, 0x09, 3, fake_pci_class(gpu));
    put(config, 0x0c, 1, 16); /* cache line, in words */
    for (uint32_t i = 0; i < 6; i++) {
        bool wide = regions[i].flags == PREFETCH_64;

        if (regions[i].size != 0)
            put(config, 0x10 + 4 * i, wide ? 8 : 4, regions[i].base | (wide ? BAR_PREFETCH_64 : 0));
    }
    put(config, 0x2c, 2, gpu->subsystem_vendor);
    put(config, 0x2e, 2, gpu->subsystem_device);
    put(config, 0x3c, 1, 0xff); /* no line */
    put(config, 0x3d, 1, 1);    /* pin A */
    if (out->size - out->len > sizeof(config)) {
        memcpy(out->buf + out->len, config, sizeof(config));
        out->len += sizeof(config);
        out->buf[out->len] = '\0';
    }
}

void fake_pci_resource(const struct fake_profile *p, uint32_t g, struct fake_text *out)
{
    struct region regions[REGIONS];

    find_regions(p, g, regions);
    for (uint32_t i = 0; i < REGIONS; i++) {
        const struct region *r = &regions[i];
        uint64_t end = r->size != 0 ? r->base + r->size - 1 : 0;

        fake_text_add(out, "0x%016llx 0x%016llx 0x%016llx\n", (unsigned long long)r->base,
                      (unsigned long long)end, (unsigned long long)r->flags);
    }
}

void fake_pci_alias(const struct fake_gpu *gpu, struct fake_text *out)
{
    uint32_t class = fake_pci_class(gpu);

    fake_text_add(out, "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X\n", gpu->vendor_id,
                  gpu->device_id, gpu->subsystem_vendor, gpu->subsystem_device, class >> 16,
                  class >> 8 & 0xff, class & 0xff);
}
