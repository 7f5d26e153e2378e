/* SPDX-License-Identifier: MIT */
/* kfdirect info: what is here, and what it can do. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include <kfdirect/vmm.h>

#include "json.h"
#include "tool.h"

/* What differs between kernels, and what a GPU must be able to. */
static const struct {
    uint32_t bit; /* VMM_CAN_*; 0: not the engine alone decides */
    const char *name;
} abilities[] = {
    {VMM_CAN_OFFSET, "offsets and parts of handles"},
    {VMM_CAN_READ_ONLY, "read-only mappings"},
    {VMM_CAN_PER_DEVICE, "rights per device"},
    {0, "mapping another GPU's memory"},
};

static bool reaches_another(struct kfd *kfd)
{
    for (uint32_t i = 0; i < kfd_device_count(kfd); i++) {
        for (uint32_t j = 0; j < kfd_device_count(kfd); j++) {
            if (i != j && kfd_can_access(kfd_device_at(kfd, i), kfd_device_at(kfd, j)))
                return true;
        }
    }
    return false;
}

static bool is_able(struct kfd *kfd, struct vmm *vmm, uint32_t bit)
{
    if (bit != 0)
        return vmm_engine_can(vmm) & bit;
    return (vmm_engine(vmm) == VMM_ENGINE_DRM || vmm_engine(vmm) == VMM_ENGINE_KFD) &&
           reaches_another(kfd);
}

/* Why one that is_able() denies is not there. */
static const char *why_not(struct kfd *kfd, uint32_t bit)
{
    if (kfd_device_count(kfd) == 0)
        return "there is no usable GPU";
    if (bit != 0)
        return "needs KFD 1.15";
    if (kfd_device_count(kfd) == 1)
        return "there is one GPU";
    return reaches_another(kfd) ? "needs KFD 1.12" : "no GPU reaches another";
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* What somebody can do about it; "" if nothing is known. */
static const char *advice(const char *error)
{
    if (strstr(error, "EACCES") != NULL || strstr(error, "EPERM") != NULL)
        return "this user is not in the group of the device, usually \"render\"";
    return "";
}

static const char *pci_address(const struct kfd_device_info *info, char buf[16])
{
    snprintf(buf, 16, "%04x:%02x:%02x.%x", info->domain & 0xffff, (info->location_id >> 8) & 0xff,
             (info->location_id >> 3) & 0x1f, info->location_id & 7);
    return buf;
}

static const char *link_name(uint32_t type)
{
    switch (type) {
    case KFD_LINK_PCIE:
        return "PCIe";
    case KFD_LINK_XGMI:
        return "XGMI";
    case 1:
        return "HyperTransport";
    case 5:
        return "QPI";
    default:
        return "other";
    }
}

static void text_device(struct kfd_device *dev)
{
    const struct kfd_device_info *info = kfd_device_info(dev);
    char size[24], available[24], pci[16];
    uint64_t bytes;

    printf("\nGPU %u: %s (%s)\n", info->index, info->product, info->name);
    printf("  gpu_id %u, node %u, /dev/dri/renderD%u, PCI %s, DRM %u.%u\n", info->gpu_id,
           info->node, info->render_minor, pci_address(info, pci), info->drm_major,
           info->drm_minor);
    if (info->apu && !info->vram_size)
        printf("  memory: shared with the CPU\n");
    else
        printf("  memory: %s, %s\n", tool_size(info->vram_size, size),
               info->large_bar ? "all of it visible to the CPU"
                               : "not all of it visible to the CPU");
    if (kfd_mem_available(dev, &bytes) == 0)
        printf("  free: %s\n", tool_size(bytes, available));
    else
        printf("  free: unknown (%s)\n", kfd_error_text());
    printf("  %u SIMDs on %u compute die%s, wave %u, up to %u MHz, LDS %u KiB\n", info->simd_count,
           info->num_xcc, plural(info->num_xcc), info->wave_front_size, info->max_clock_mhz,
           info->lds_size_kb);
    printf("  addresses: 0x%" PRIx64 " to 0x%" PRIx64 "\n", info->va_base, info->va_limit);
}

static void text_peers(struct kfd *kfd)
{
    uint32_t count = kfd_device_count(kfd);

    printf("\nwho can map whose memory (row maps column)\n     ");
    for (uint32_t i = 0; i < count; i++)
        printf("%3u", i);
    for (uint32_t i = 0; i < count; i++) {
        printf("\n  %3u", i);
        for (uint32_t j = 0; j < count; j++)
            printf("%3s", kfd_can_access(kfd_device_at(kfd, i), kfd_device_at(kfd, j)) ? "x" : "-");
    }
    printf("\n");
}

/* Links of one node that differ in nothing but where they lead. */
static bool alike(const struct kfd_link_info *a, const struct kfd_link_info *b)
{
    return a->node_from == b->node_from && a->type == b->type && a->weight == b->weight &&
           a->min_bandwidth == b->min_bandwidth && a->max_bandwidth == b->max_bandwidth &&
           a->peer == b->peer;
}

/* One line for the links that are like link i, unless an earlier line has it. */
static void text_link(struct kfd *kfd, uint32_t i)
{
    struct kfd_link_info link, other;

    kfd_link_info(kfd, i, &link);
    for (uint32_t j = 0; j < i; j++) {
        kfd_link_info(kfd, j, &other);
        if (alike(&link, &other))
            return;
    }
    printf("  %2u ->", link.node_from);
    for (uint32_t j = i; j < kfd_link_count(kfd); j++) {
        kfd_link_info(kfd, j, &other);
        if (alike(&link, &other))
            printf(" %u", other.node_to);
    }
    printf(": %s, weight %u", link_name(link.type), link.weight);
    if (link.max_bandwidth)
        printf(", %u to %u MB/s", link.min_bandwidth, link.max_bandwidth);
    printf("%s\n", link.peer ? ", peer" : "");
}

static void text_links(struct kfd *kfd)
{
    if (kfd_device_count(kfd) > 1)
        text_peers(kfd);
    if (kfd_link_count(kfd))
        printf("\nlinks (topology nodes)\n");
    for (uint32_t i = 0; i < kfd_link_count(kfd); i++)
        text_link(kfd, i);
}

static void text_info(struct kfd *kfd, struct vmm *vmm)
{
    char minimum[24], recommended[24];
    uint32_t major, minor;

    kfd_version(kfd, &major, &minor);
    printf("KFD interface %u.%u, %u usable GPU%s, %u CPU node%s\n", major, minor,
           kfd_device_count(kfd), plural(kfd_device_count(kfd)), kfd_cpu_node_count(kfd),
           plural(kfd_cpu_node_count(kfd)));
    for (uint32_t i = 0; kfd_skipped(kfd, i); i++)
        printf("  left out: %s\n", kfd_skipped(kfd, i));
    for (uint32_t i = 0; i < kfd_device_count(kfd); i++)
        text_device(kfd_device_at(kfd, i));
    text_links(kfd);

    printf("\nkernel capabilities\n");
    for (int i = 0; i < KFD_CAP_COUNT; i++) {
        struct kfd_cap_info cap;

        kfd_cap_info(kfd, (enum kfd_cap)i, &cap);
        printf("  %-3s  %s: %s\n", cap.present ? "yes" : "no", cap.name, cap.text);
    }

    printf("\nvirtual memory management: engine %s\n", vmm_engine_name(vmm_engine(vmm)));
    if (vmm_engine_reason(vmm)[0])
        printf("  %s\n", vmm_engine_reason(vmm));
    for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++) {
        if (is_able(kfd, vmm, abilities[i].bit))
            printf("  yes  %s\n", abilities[i].name);
        else
            printf("  no   %s (%s)\n", abilities[i].name, why_not(kfd, abilities[i].bit));
    }
    if (vmm_engine(vmm) != VMM_ENGINE_NONE)
        printf("  granularity: %s at least, %s recommended\n",
               tool_size(vmm_min_granularity(vmm), minimum),
               tool_size(vmm_recommended_granularity(vmm), recommended));
}

static void json_device(struct json *json, struct kfd_device *dev)
{
    const struct kfd_device_info *info = kfd_device_info(dev);
    struct kfd *kfd = kfd_device_kfd(dev);
    uint64_t bytes;
    char pci[16];

    json_object(json, NULL);
    json_number(json, "index", info->index);
    json_string(json, "product", info->product);
    json_string(json, "name", info->name);
    json_number(json, "gfx_version", info->gfx_version);
    json_number(json, "gpu_id", info->gpu_id);
    json_number(json, "node", info->node);
    json_number(json, "render_minor", info->render_minor);
    json_string(json, "pci", pci_address(info, pci));
    json_number(json, "vendor_id", info->vendor_id);
    json_number(json, "device_id", info->device_id);
    json_format(json, "drm", "%u.%u", info->drm_major, info->drm_minor);
    json_number(json, "vram_bytes", info->vram_size);
    if (kfd_mem_available(dev, &bytes) == 0)
        json_number(json, "free_bytes", bytes);
    else
        json_null(json, "free_bytes");
    json_bool(json, "large_bar", info->large_bar);
    json_bool(json, "apu", info->apu);
    json_number(json, "simd_count", info->simd_count);
    json_number(json, "compute_dies", info->num_xcc);
    json_number(json, "wave_front_size", info->wave_front_size);
    json_number(json, "max_clock_mhz", info->max_clock_mhz);
    json_format(json, "va_base", "0x%" PRIx64, info->va_base);
    json_format(json, "va_limit", "0x%" PRIx64, info->va_limit);
    json_array(json, "can_map");
    for (uint32_t j = 0; j < kfd_device_count(kfd); j++) {
        if (kfd_can_access(dev, kfd_device_at(kfd, j)))
            json_number(json, NULL, j);
    }
    json_end(json);
    json_end(json);
}

static void json_info(struct json *json, struct kfd *kfd, struct vmm *vmm)
{
    uint32_t major, minor;

    kfd_version(kfd, &major, &minor);
    json_format(json, "kfd", "%u.%u", major, minor);
    json_number(json, "cpu_nodes", kfd_cpu_node_count(kfd));
    json_array(json, "left_out");
    for (uint32_t i = 0; kfd_skipped(kfd, i); i++)
        json_string(json, NULL, kfd_skipped(kfd, i));
    json_end(json);
    json_array(json, "gpus");
    for (uint32_t i = 0; i < kfd_device_count(kfd); i++)
        json_device(json, kfd_device_at(kfd, i));
    json_end(json);
    json_array(json, "links");
    for (uint32_t i = 0; i < kfd_link_count(kfd); i++) {
        struct kfd_link_info link;

        kfd_link_info(kfd, i, &link);
        json_object(json, NULL);
        json_number(json, "from", link.node_from);
        json_number(json, "to", link.node_to);
        json_string(json, "type", link_name(link.type));
        json_number(json, "type_number", link.type);
        json_number(json, "weight", link.weight);
        json_number(json, "min_bandwidth", link.min_bandwidth);
        json_number(json, "max_bandwidth", link.max_bandwidth);
        json_bool(json, "peer", link.peer);
        json_end(json);
    }
    json_end(json);
    json_object(json, "capabilities");
    for (int i = 0; i < KFD_CAP_COUNT; i++) {
        struct kfd_cap_info cap;

        kfd_cap_info(kfd, (enum kfd_cap)i, &cap);
        json_bool(json, cap.name, cap.present);
    }
    json_end(json);
    json_object(json, "vmm");
    json_string(json, "engine", vmm_engine_name(vmm_engine(vmm)));
    json_string(json, "reason", vmm_engine_reason(vmm));
    for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++)
        json_bool(json, abilities[i].name, is_able(kfd, vmm, abilities[i].bit));
    json_number(json, "min_granularity", vmm_min_granularity(vmm));
    json_number(json, "recommended_granularity", vmm_recommended_granularity(vmm));
    json_end(json);
}

static int usage(void)
{
    printf("usage: kfdirect info [--json] [--machine NAME] [--kernel VERSION]\n"
           "\n"
           "Lists GPUs, memory, links, what the kernel can do, and what virtual memory management\n"
           "can do here and what that needs. Exits with 1 when the driver can't be used.\n"
           "\n"
           "  --json            for programs; every name is in the output whatever its value\n"
           "  --machine NAME    of a fake machine such as mi210:4, or the path of a machine file\n"
           "  --kernel VERSION  of the fake machine: 6.1, 6.8, 6.12, current, or a kernel file\n");
    return TOOL_OK;
}

int info_cmd(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"machine", required_argument, NULL, 'm'},
                                            {"kernel", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct vmm_options vmm_options = {.size = sizeof(vmm_options)};
    const char *name = NULL, *kernel = NULL;
    struct tool_machine machine;
    struct kfd *kfd = NULL;
    struct vmm *vmm = NULL;
    bool as_json = false;
    struct json json;
    int opt, status;

    while ((opt = tool_option(argc, argv, "", options)) != -1) {
        if (opt == 'j')
            as_json = true;
        else if (opt == 'm')
            name = optarg;
        else if (opt == 'k')
            kernel = optarg;
        else
            return opt == 'h' ? usage() : TOOL_USAGE;
    }
    if (optind < argc)
        return tool_misused(argv[0], "argument '%s' where none is expected", argv[optind]);
    status = tool_machine_open(name, kernel, &machine);
    if (status)
        return status;

    json_init(&json, stdout);
    if (as_json) {
        json_object(&json, NULL);
        json_string(&json, "version", KFDIRECT_VERSION_STRING);
        if (machine.name)
            json_string(&json, "fake", machine.name);
        else
            json_null(&json, "fake");
    } else if (machine.name) {
        printf("fake machine %s\n", machine.name);
    }
    if (vmm_options_from_env(&vmm_options) || kfd_open(machine.sys, &kfd) ||
        vmm_open(kfd, &vmm_options, &vmm)) {
        status = TOOL_FAILED;
        const char *error = kfd_error_text(), *can_do = advice(error);

        if (as_json)
            json_string(&json, "error", error);
        else
            printf("%s%s%s\n", error, can_do[0] ? ": " : "", can_do);
    } else if (as_json) {
        json_info(&json, kfd, vmm);
    } else {
        text_info(kfd, vmm);
    }
    if (as_json)
        json_end(&json);
    vmm_close(vmm);
    kfd_close(kfd);
    tool_machine_close(&machine);
    return status;
}
