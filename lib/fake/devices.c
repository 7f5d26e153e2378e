/* SPDX-License-Identifier: MIT */
/* The device side of sysfs: PCI functions, DRM minors, the kfd class. */
#include "fake/sysfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake/pci.h"

/* The GPU node that stands for the i-th PCI function, or -1. Further partitions of a card are
 * platform devices. */
static int pci_gpu(const struct fake_profile *p, uint32_t i)
{
    for (uint32_t g = 0; g < p->gpu_count; g++) {
        if (p->gpus[g].partition == 0 && i-- == 0)
            return (int)g;
    }
    return -1;
}

static bool same_bus(const struct fake_gpu *a, const struct fake_gpu *b)
{
    return a->domain == b->domain && a->location_id >> 8 == b->location_id >> 8;
}

/* The k-th card on the i-th bus that has any, or -1. */
static int card_on_bus(const struct fake_profile *p, uint32_t i, uint32_t k)
{
    for (uint32_t first = 0; pci_gpu(p, first) >= 0; first++) {
        const struct fake_gpu *gpu = &p->gpus[pci_gpu(p, first)];
        uint32_t before = 0;

        while (!same_bus(gpu, &p->gpus[pci_gpu(p, before)]))
            before++;
        if (before != first || i-- != 0)
            continue;
        for (uint32_t c = first; pci_gpu(p, c) >= 0; c++) {
            if (same_bus(gpu, &p->gpus[pci_gpu(p, c)]) && k-- == 0)
                return pci_gpu(p, c);
        }
        return -1;
    }
    return -1;
}

static int platform_gpu(const struct fake_profile *p, uint32_t i)
{
    for (uint32_t g = 0; g < p->gpu_count; g++) {
        if (p->gpus[g].partition != 0 && i-- == 0)
            return (int)g;
    }
    return -1;
}

static void slot(const struct fake_gpu *gpu, char *buf, size_t size)
{
    snprintf(buf, size, "%04x:%02x:%02x.%x", gpu->domain, gpu->location_id >> 8 & 0xff,
             gpu->location_id >> 3 & 0x1f, gpu->location_id & 7);
}

static int pci_root_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                         size_t size)
{
    int g = card_on_bus(p, i, 0);

    if (g < 0)
        return -ENOENT;
    snprintf(buf, size, "pci%04x:%02x", p->gpus[g].domain, p->gpus[g].location_id >> 8 & 0xff);
    return 0;
}

static int slot_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                     size_t size)
{
    int g = card_on_bus(p, args[0], i);

    if (g < 0)
        return -ENOENT;
    slot(&p->gpus[g], buf, size);
    return 0;
}

static int bus_slot_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                         size_t size)
{
    int g = pci_gpu(p, i);

    if (g < 0)
        return -ENOENT;
    slot(&p->gpus[g], buf, size);
    return 0;
}

static int platform_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                         size_t size)
{
    if (platform_gpu(p, i) < 0)
        return -ENOENT;
    snprintf(buf, size, "amdgpu_xcp_%u", i);
    return 0;
}

/* i even: the primary node, odd: the render node. */
static void minor_name(const struct fake_gpu *gpu, uint32_t i, char *buf, size_t size)
{
    if (i % 2 == 0)
        snprintf(buf, size, "card%u", gpu->render_minor - 128);
    else
        snprintf(buf, size, "renderD%u", gpu->render_minor);
}

static uint32_t minor_number(const struct fake_gpu *gpu, uint32_t i)
{
    return i % 2 == 0 ? gpu->render_minor - 128 : gpu->render_minor;
}

static int pci_minor_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                          size_t size)
{
    int g = card_on_bus(p, args[0], args[1]);

    if (i > 1 || g < 0)
        return -ENOENT;
    minor_name(&p->gpus[g], i, buf, size);
    return 0;
}

static int platform_minor_name(const struct fake_profile *p, const uint32_t *args, uint32_t i,
                               char *buf, size_t size)
{
    int g = platform_gpu(p, args[0]);

    if (i > 1 || g < 0)
        return -ENOENT;
    minor_name(&p->gpus[g], i, buf, size);
    return 0;
}

static int any_minor_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                          size_t size)
{
    if (i >= 2 * p->gpu_count)
        return -ENOENT;
    minor_name(&p->gpus[i / 2], i, buf, size);
    return 0;
}

static int devnum_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                       size_t size)
{
    if (i >= 2 * p->gpu_count)
        return -ENOENT;
    snprintf(buf, size, "%u:%u", FAKE_DRM_MAJOR, minor_number(&p->gpus[i / 2], i));
    return 0;
}

/* A node of /dev/dri is there unless the profile took it away. */
static int dev_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                    size_t size)
{
    for (uint32_t n = 0; n < 2 * p->gpu_count; n++) {
        if (p->gpus[n / 2].render_node != FAKE_MISSING && i-- == 0) {
            minor_name(&p->gpus[n / 2], n, buf, size);
            return 0;
        }
    }
    return -ENOENT;
}

static int kfd_devnum_name(const struct fake_profile *p, const uint32_t *args, uint32_t i,
                           char *buf, size_t size)
{
    if (i > 0)
        return -ENOENT;
    snprintf(buf, size, "%u:0", FAKE_KFD_MAJOR);
    return 0;
}

#define PCI_FILE(name, ...)                                                      \
    static int print_##name(const struct fake_profile *p, const uint32_t *args,  \
                            struct fake_text *out)                               \
    {                                                                            \
        const struct fake_gpu *gpu = &p->gpus[card_on_bus(p, args[0], args[1])]; \
                                                                                 \
        fake_text_add(out, __VA_ARGS__);                                         \
        return 0;                                                                \
    }

PCI_FILE(vendor, "0x%04x\n", gpu->vendor_id)
PCI_FILE(device, "0x%04x\n", gpu->device_id)
PCI_FILE(subsystem_vendor, "0x%04x\n", gpu->subsystem_vendor)
PCI_FILE(subsystem_device, "0x%04x\n", gpu->subsystem_device)
PCI_FILE(revision, "0x%02x\n", gpu->pci_rev)
PCI_FILE(class, "0x%06x\n", fake_pci_class(gpu))
PCI_FILE(irq, "%u\n", 128 + (uint32_t)(gpu - p->gpus))
PCI_FILE(numa_node, "%u\n", gpu->cpu_node)
PCI_FILE(unique_id, "%016llx\n", (unsigned long long)gpu->unique_id)
PCI_FILE(vram_total, "%llu\n", (unsigned long long)gpu->vram * gpu->partitions)
PCI_FILE(vis_vram_total, "%llu\n", (unsigned long long)gpu->visible_vram * gpu->partitions)

static int print_pci_uevent(const struct fake_profile *p, const uint32_t *args,
                            struct fake_text *out)
{
    const struct fake_gpu *gpu = &p->gpus[card_on_bus(p, args[0], args[1])];
    char name[32];

    slot(gpu, name, sizeof(name));
    fake_text_add(out,
                  "DRIVER=amdgpu\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\n"
                  "PCI_SLOT_NAME=%s\nMODALIAS=",
                  fake_pci_class(gpu), gpu->vendor_id, gpu->device_id, gpu->subsystem_vendor,
                  gpu->subsystem_device, name);
    fake_pci_alias(gpu, out);
    return 0;
}

static int print_enabled(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_text_add(out, "1\n");
    return 0;
}

static int print_alias(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_pci_alias(&p->gpus[card_on_bus(p, args[0], args[1])], out);
    return 0;
}

static int print_config(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_pci_config(p, (uint32_t)card_on_bus(p, args[0], args[1]), out);
    return 0;
}

static int print_resource(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_pci_resource(p, (uint32_t)card_on_bus(p, args[0], args[1]), out);
    return 0;
}

static int print_platform_uevent(const struct fake_profile *p, const uint32_t *args,
                                 struct fake_text *out)
{
    fake_text_add(out, "MODALIAS=platform:amdgpu_xcp\n");
    return 0;
}

static void print_minor(const struct fake_gpu *gpu, uint32_t i, bool uevent, struct fake_text *out)
{
    char name[32];

    minor_name(gpu, i, name, sizeof(name));
    if (uevent)
        fake_text_add(out, "MAJOR=%u\nMINOR=%u\nDEVNAME=dri/%s\nDEVTYPE=drm_minor\n",
                      FAKE_DRM_MAJOR, minor_number(gpu, i), name);
    else
        fake_text_add(out, "%u:%u\n", FAKE_DRM_MAJOR, minor_number(gpu, i));
}

static int print_pci_minor_dev(const struct fake_profile *p, const uint32_t *args,
                               struct fake_text *out)
{
    print_minor(&p->gpus[card_on_bus(p, args[0], args[1])], args[2], false, out);
    return 0;
}

static int print_pci_minor_uevent(const struct fake_profile *p, const uint32_t *args,
                                  struct fake_text *out)
{
    print_minor(&p->gpus[card_on_bus(p, args[0], args[1])], args[2], true, out);
    return 0;
}

static int print_platform_minor_dev(const struct fake_profile *p, const uint32_t *args,
                                    struct fake_text *out)
{
    print_minor(&p->gpus[platform_gpu(p, args[0])], args[1], false, out);
    return 0;
}

static int print_platform_minor_uevent(const struct fake_profile *p, const uint32_t *args,
                                       struct fake_text *out)
{
    print_minor(&p->gpus[platform_gpu(p, args[0])], args[1], true, out);
    return 0;
}

static int print_drm_version(const struct fake_profile *p, const uint32_t *args,
                             struct fake_text *out)
{
    fake_text_add(out, "drm 1.1.0 20060810\n");
    return 0;
}

static int numa_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                     size_t size)
{
    if (i >= p->cpu_count)
        return -ENOENT;
    snprintf(buf, size, "node%u", i);
    return 0;
}

/* CPU N stands for the CPUs of node N, with one cache: a client that counts a node's caches wants
 * at least one, of the CPU whose APIC id begins the node. */
static int numa_cpu_name(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                         size_t size)
{
    if (i > 0)
        return -ENOENT;
    snprintf(buf, size, "cpu%u", args[0]);
    return 0;
}

static int print_numa_cpus(const struct fake_profile *p, const uint32_t *args,
                           struct fake_text *out)
{
    fake_text_add(out, "%u\n", args[0]);
    return 0;
}

#define NUMA_FILE(name, text)                                                        \
    static int print_numa_##name(const struct fake_profile *p, const uint32_t *args, \
                                 struct fake_text *out)                              \
    {                                                                                \
        fake_text_add(out, text);                                                    \
        return 0;                                                                    \
    }

NUMA_FILE(level, "1\n")
NUMA_FILE(type, "Data\n")
NUMA_FILE(size, "32K\n")
NUMA_FILE(line, "64\n")
NUMA_FILE(ways, "8\n")
NUMA_FILE(partition, "1\n")

static int print_numa_map(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_text_add(out, "%x\n", 1u << args[0]);
    return 0;
}

static int print_numa_memory(const struct fake_profile *p, const uint32_t *args,
                             struct fake_text *out)
{
    unsigned long long kib = p->cpus[args[0]].ram >> 10;

    fake_text_add(out, "Node %u MemTotal:       %llu kB\nNode %u MemFree:        %llu kB\n",
                  args[0], kib, args[0], kib);
    return 0;
}

/* The driver's module, which clients look for before they look for devices. */
static int print_module_size(const struct fake_profile *p, const uint32_t *args,
                             struct fake_text *out)
{
    fake_text_add(out, "12582912\n");
    return 0;
}

static int print_module_state(const struct fake_profile *p, const uint32_t *args,
                              struct fake_text *out)
{
    fake_text_add(out, "live\n");
    return 0;
}

static int print_module_users(const struct fake_profile *p, const uint32_t *args,
                              struct fake_text *out)
{
    fake_text_add(out, "0\n");
    return 0;
}

static int print_kfd_dev(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    fake_text_add(out, "%u:0\n", FAKE_KFD_MAJOR);
    return 0;
}

static int print_kfd_uevent(const struct fake_profile *p, const uint32_t *args,
                            struct fake_text *out)
{
    fake_text_add(out, "MAJOR=%u\nMINOR=0\nDEVNAME=kfd\n", FAKE_KFD_MAJOR);
    return 0;
}

/* The text of an opened device node is never read; the file stands for it in a listing. */
static int print_nothing(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    return 0;
}

static void device_path(const struct fake_profile *p, int g, struct fake_text *out)
{
    const struct fake_gpu *gpu = &p->gpus[g];
    char name[32];
    uint32_t i = 0;

    if (gpu->partition == 0) {
        slot(gpu, name, sizeof(name));
        fake_text_add(out, "/sys/devices/pci%04x:%02x/%s", gpu->domain,
                      gpu->location_id >> 8 & 0xff, name);
        return;
    }
    while (platform_gpu(p, i) != g)
        i++;
    fake_text_add(out, "/sys/devices/platform/amdgpu_xcp_%u", i);
}

static int to_device(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    device_path(p, card_on_bus(p, args[0], args[1]), out);
    return 0;
}

static int bus_to_device(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    device_path(p, pci_gpu(p, args[0]), out);
    return 0;
}

static int to_platform_device(const struct fake_profile *p, const uint32_t *args,
                              struct fake_text *out)
{
    device_path(p, platform_gpu(p, args[0]), out);
    return 0;
}

static int to_minor(const struct fake_profile *p, const uint32_t *args, struct fake_text *out)
{
    char name[32];

    device_path(p, (int)(args[0] / 2), out);
    minor_name(&p->gpus[args[0] / 2], args[0], name, sizeof(name));
    fake_text_add(out, "/drm/%s", name);
    return 0;
}

#define TARGET(name, path)                                                   \
    static int to_##name(const struct fake_profile *p, const uint32_t *args, \
                         struct fake_text *out)                              \
    {                                                                        \
        fake_text_add(out, path);                                            \
        return 0;                                                            \
    }

TARGET(pci_bus, "/sys/bus/pci")
TARGET(platform_bus, "/sys/bus/platform")
TARGET(drm_class, "/sys/class/drm")
TARGET(kfd_class, "/sys/class/kfd")
TARGET(kfd_device, "/sys/devices/virtual/kfd/kfd")
TARGET(driver, "/sys/bus/pci/drivers/amdgpu")
TARGET(module, "/sys/module/amdgpu")

#define NUMA_CACHE "/sys/devices/system/node/#/#/cache/index0"
#define PCI "/sys/devices/#/#"
#define XCP "/sys/devices/platform/#"
#define KFD "/sys/devices/virtual/kfd/kfd"

const struct fake_sysfs_row fake_device_rows[] = {
    {"/dev/kfd", NULL, print_nothing, NULL},
    {"/dev/dri", NULL, NULL, NULL},
    {"/dev/dri/#", dev_name, print_nothing, NULL},
    {"/sys/devices/virtual/kfd", NULL, NULL, NULL},
    {KFD, NULL, NULL, NULL},
    {KFD "/dev", NULL, print_kfd_dev, NULL},
    {KFD "/uevent", NULL, print_kfd_uevent, NULL},
    {KFD "/proc", NULL, NULL, NULL},
    {KFD "/subsystem", NULL, NULL, to_kfd_class},
    {"/sys/class/kfd", NULL, NULL, NULL},
    {"/sys/class/kfd/kfd", NULL, NULL, to_kfd_device},
    {"/sys/devices/system/node/#", numa_name, NULL, NULL},
    {NUMA_CACHE "/level", NULL, print_numa_level, NULL},
    {NUMA_CACHE "/type", NULL, print_numa_type, NULL},
    {NUMA_CACHE "/size", NULL, print_numa_size, NULL},
    {NUMA_CACHE "/coherency_line_size", NULL, print_numa_line, NULL},
    {NUMA_CACHE "/ways_of_associativity", NULL, print_numa_ways, NULL},
    {NUMA_CACHE "/physical_line_partition", NULL, print_numa_partition, NULL},
    {NUMA_CACHE "/shared_cpu_list", NULL, print_numa_cpus, NULL},
    {NUMA_CACHE "/shared_cpu_map", NULL, print_numa_map, NULL},
    {"/sys/devices/system/node/#/#", numa_cpu_name, NULL, NULL},
    {"/sys/devices/system/node/#/#/cache", NULL, NULL, NULL},
    {NUMA_CACHE, NULL, NULL, NULL},
    {"/sys/devices/system/node/#/cpulist", NULL, print_numa_cpus, NULL},
    {"/sys/devices/system/node/#/meminfo", NULL, print_numa_memory, NULL},
    {"/sys/module/amdgpu", NULL, NULL, NULL},
    {"/sys/module/amdgpu/coresize", NULL, print_module_size, NULL},
    {"/sys/module/amdgpu/initstate", NULL, print_module_state, NULL},
    {"/sys/module/amdgpu/refcnt", NULL, print_module_users, NULL},
    {"/sys/module/amdgpu/holders", NULL, NULL, NULL},
    {"/sys/class/drm", NULL, NULL, NULL},
    {"/sys/class/drm/version", NULL, print_drm_version, NULL},
    {"/sys/class/drm/#", any_minor_name, NULL, to_minor},
    {"/sys/dev/char/#", devnum_name, NULL, to_minor},
    {"/sys/dev/char/#", kfd_devnum_name, NULL, to_kfd_device},
    {"/sys/bus/pci/devices/#", bus_slot_name, NULL, bus_to_device},
    {"/sys/bus/pci/drivers/amdgpu", NULL, NULL, NULL},
    {"/sys/bus/pci/drivers/amdgpu/#", bus_slot_name, NULL, bus_to_device},
    {"/sys/bus/pci/drivers/amdgpu/module", NULL, NULL, to_module},
    {"/sys/module/amdgpu/drivers", NULL, NULL, NULL},
    {"/sys/module/amdgpu/drivers/pci:amdgpu", NULL, NULL, to_driver},
    {"/sys/devices/#", pci_root_name, NULL, NULL},
    {PCI, slot_name, NULL, NULL},
    {PCI "/vendor", NULL, print_vendor, NULL},
    {PCI "/device", NULL, print_device, NULL},
    {PCI "/subsystem_vendor", NULL, print_subsystem_vendor, NULL},
    {PCI "/subsystem_device", NULL, print_subsystem_device, NULL},
    {PCI "/revision", NULL, print_revision, NULL},
    {PCI "/class", NULL, print_class, NULL},
    {PCI "/numa_node", NULL, print_numa_node, NULL},
    {PCI "/unique_id", NULL, print_unique_id, NULL},
    {PCI "/mem_info_vram_total", NULL, print_vram_total, NULL},
    {PCI "/mem_info_vis_vram_total", NULL, print_vis_vram_total, NULL},
    {PCI "/uevent", NULL, print_pci_uevent, NULL},
    {PCI "/modalias", NULL, print_alias, NULL},
    {PCI "/config", NULL, print_config, NULL},
    {PCI "/resource", NULL, print_resource, NULL},
    {PCI "/irq", NULL, print_irq, NULL},
    {PCI "/enable", NULL, print_enabled, NULL},
    {PCI "/subsystem", NULL, NULL, to_pci_bus},
    {PCI "/driver", NULL, NULL, to_driver},
    {PCI "/drm", NULL, NULL, NULL},
    {PCI "/drm/#", pci_minor_name, NULL, NULL},
    {PCI "/drm/#/dev", NULL, print_pci_minor_dev, NULL},
    {PCI "/drm/#/uevent", NULL, print_pci_minor_uevent, NULL},
    {PCI "/drm/#/device", NULL, NULL, to_device},
    {PCI "/drm/#/subsystem", NULL, NULL, to_drm_class},
    {XCP, platform_name, NULL, NULL},
    {XCP "/uevent", NULL, print_platform_uevent, NULL},
    {XCP "/subsystem", NULL, NULL, to_platform_bus},
    {XCP "/drm", NULL, NULL, NULL},
    {XCP "/drm/#", platform_minor_name, NULL, NULL},
    {XCP "/drm/#/dev", NULL, print_platform_minor_dev, NULL},
    {XCP "/drm/#/uevent", NULL, print_platform_minor_uevent, NULL},
    {XCP "/drm/#/device", NULL, NULL, to_platform_device},
    {XCP "/drm/#/subsystem", NULL, NULL, to_drm_class},
};
const size_t fake_device_row_count = sizeof(fake_device_rows) / sizeof(fake_device_rows[0]);
