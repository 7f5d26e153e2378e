/* SPDX-License-Identifier: MIT */
#include "fake/info.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define HOLE_START 0x800000000000ull
#define HOLE_END 0xffff800000000000ull
#define FAMILY_AI 141u
#define COUNTER_KHZ 100000u
#define CE_RAM_SIZE 0x8000u
#define CE_RAM_SIZE_GFX10 0x10000u
#define DEV_INFO_MAX 448u
#define MMR_MAX 128u
#define REG_GB_ADDR_CONFIG 0x263eu
/* Firmware that Debian's header does not list: the trusted applications, and the last known one. */
#define FW_TA 0x13u
#define FW_LAST 0x1cu
#define FW_LAST_OLD 0x1bu
#define CAP_ATOMIC_ASYNC_PAGE_FLIP 0x15
#define REG_TILE_MODE0 0x2644u
#define REG_RASTER_CONFIG 0xa0d4u
#define GDS_GWS 64u
#define GDS_OA 16u

/* Fields of the device info that Debian's header does not have yet. */
#define DEV_INFO_MIN_ENGINE_CLOCK 368
#define DEV_INFO_MIN_MEMORY_CLOCK 376
#define DEV_INFO_TCP_CACHE_SIZE 384
#define DEV_INFO_GL2C_CACHE_SIZE 404
#define DEV_INFO_MALL_SIZE 408

static const struct fake_gpu *gpu_of(const struct fake_call *call)
{
    return &call->fake->profile->gpus[call->file->gpu];
}

/* Copies a string as DRM does: cut to the room given, the true length stored. */
static int put_string(uint64_t user, __kernel_size_t *len, const char *text)
{
    size_t room = *len, full = strlen(text);

    *len = full;
    if (user == 0 || room == 0)
        return 0;
    return fake_copy_out(user, text, room < full ? room : full);
}

int fake_drm_version(struct fake_call *call, void *arg)
{
    struct drm_version *v = arg;
    const struct fake_kernel *kernel = &call->fake->profile->kernel;
    int err;

    v->version_major = 3;
    v->version_minor = (int)kernel->drm_minor;
    v->version_patchlevel = 0;
    err = put_string((uintptr_t)v->name, &v->name_len, "amdgpu");
    if (err == 0)
        err = put_string((uintptr_t)v->date, &v->date_len, kernel->drm_date);
    if (err == 0)
        err = put_string((uintptr_t)v->desc, &v->desc_len, "AMD GPU");
    return err;
}

int fake_drm_get_client(struct fake_call *call, void *arg)
{
    struct drm_client *c = arg;

    if (call->file->kind == FAKE_FILE_RENDER)
        return -EACCES;
    if (c->idx != 0)
        return -EINVAL;
    c->auth = 0;
    c->pid = (unsigned long)call->process->pid;
    c->uid = 0;
    c->magic = 0;
    c->iocs = 0;
    return 0;
}

int fake_drm_get_cap(struct fake_call *call, void *arg)
{
    const struct fake_kernel *kernel = &call->fake->profile->kernel;
    struct drm_get_cap *cap = arg;

    switch (cap->capability) {
    case DRM_CAP_TIMESTAMP_MONOTONIC:
    case DRM_CAP_SYNCOBJ:
    case DRM_CAP_SYNCOBJ_TIMELINE:
        cap->value = 1;
        return 0;
    case DRM_CAP_PRIME:
        cap->value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
        return 0;
    /* The driver serves displays, and says so of a card that has none. */
    case DRM_CAP_DUMB_BUFFER:
    case DRM_CAP_VBLANK_HIGH_CRTC:
    case DRM_CAP_ADDFB2_MODIFIERS:
    case DRM_CAP_PAGE_FLIP_TARGET:
    case DRM_CAP_CRTC_IN_VBLANK_EVENT:
        cap->value = 1;
        return 0;
    case DRM_CAP_DUMB_PREFERRED_DEPTH:
    case DRM_CAP_DUMB_PREFER_SHADOW:
    case DRM_CAP_ASYNC_PAGE_FLIP:
        cap->value = 0;
        return 0;
    case DRM_CAP_CURSOR_WIDTH:
    case DRM_CAP_CURSOR_HEIGHT:
        cap->value = 64;
        return 0;
    case CAP_ATOMIC_ASYNC_PAGE_FLIP:
        cap->value = 0;
        return kernel->drm_minor >= 57 ? 0 : -EINVAL;
    default:
        return -EINVAL;
    }
}

static int reply(const struct drm_amdgpu_info *info, const void *data, size_t size)
{
    return fake_copy_out(info->return_pointer, data,
                         size < info->return_size ? size : info->return_size);
}

static void put32(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void put64(unsigned char *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}

/* Compute units of the partition, in engines and arrays as wide as the chip has them. */
static void fill_cus(const struct fake_gpu *gpu, struct drm_amdgpu_info_device *d)
{
    uint32_t cus = gpu->simd_count / gpu->simd_per_cu / gpu->num_xcc;

    d->cu_active_number = gpu->simd_count / gpu->simd_per_cu;
    /* Engines from the fifth on are put next to the first four's arrays. */
    for (uint32_t se = 0; se < d->num_shader_engines && se < 8; se++) {
        for (uint32_t sh = 0; sh < d->num_shader_arrays_per_engine && sh < 2; sh++) {
            uint32_t n = cus < gpu->cu_per_simd_array ? cus : gpu->cu_per_simd_array;

            d->cu_bitmap[se % 4][sh + se / 4 * 2] = n >= 32 ? UINT32_MAX : (1u << n) - 1;
            /* Those that are never switched off, of the first two engines' arrays. */
            if (se < 2 && fake_gpu_gfx_major(gpu) < 11)
                d->cu_ao_mask |= d->cu_bitmap[se][sh] << (se * 16 + sh * 8);
            cus -= n;
        }
    }
}

static void fill_addresses(const struct fake_kernel *kernel, const struct fake_gpu *gpu,
                           struct drm_amdgpu_info_device *d)
{
    /* The VM has 48 bits from gfx9 on, whatever a compute address may use. */
    uint64_t size = UINT64_C(1) << (fake_gpu_gfx_major(gpu) >= 9 ? 48 : gpu->va_bits);

    size -= kernel->gem_va_reserved_top;
    d->virtual_address_offset = kernel->gem_va_bottom;
    d->virtual_address_max = size < HOLE_START ? size : HOLE_START;
    if (size > HOLE_START) {
        d->high_va_offset = HOLE_END;
        d->high_va_max = HOLE_END | size;
    }
    d->virtual_address_alignment = FAKE_PAGE;
    d->pte_fragment_size = FAKE_HUGE;
    d->gart_page_size = FAKE_PAGE;
}

/* Chips of gfx11 and later have no constant engine. */
static uint32_t ce_ram_size(const struct fake_gpu *gpu)
{
    uint32_t major = fake_gpu_gfx_major(gpu);

    return major < 10 ? CE_RAM_SIZE : major == 10 ? CE_RAM_SIZE_GFX10 : 0;
}

static int dev_info(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    const struct fake_kernel *kernel = &call->fake->profile->kernel;
    const struct fake_gpu *gpu = gpu_of(call);
    unsigned char full[DEV_INFO_MAX] = {0};
    struct drm_amdgpu_info_device d = {
        .device_id = gpu->device_id,
        .chip_rev = gpu->chip_rev,
        .external_rev = gpu->external_rev,
        .pci_rev = gpu->pci_rev,
        .family = gpu->family,
        .num_shader_engines = gpu->array_count / gpu->num_xcc / gpu->simd_arrays_per_engine,
        .num_shader_arrays_per_engine = gpu->simd_arrays_per_engine,
        .num_rb_pipes = gpu->rb_pipes,
        .enabled_rb_pipes_mask = gpu->rb_pipes >= 32 ? UINT32_MAX : (1u << gpu->rb_pipes) - 1,
        .num_hw_gfx_contexts = 8,
        .ids_flags = gpu->apu ? AMDGPU_IDS_FLAGS_FUSION : 0,
        .vram_type = gpu->vram_type,
        .vram_bit_width = gpu->mem_width,
        .wave_front_size = gpu->wave_front_size,
        .num_shader_visible_vgprs = fake_gpu_gfx_major(gpu) >= 10 ? 1024 : 256,
        .num_cu_per_sh = gpu->cu_per_simd_array,
        .ce_ram_size = ce_ram_size(gpu),
    };

    fill_cus(gpu, &d);
    fill_addresses(kernel, gpu, &d);
    if (!gpu->no_clocks) {
        d.gpu_counter_freq = COUNTER_KHZ;
        d.max_engine_clock = (uint64_t)gpu->max_engine_clk_fcompute * 1000;
        d.max_memory_clock = (uint64_t)gpu->mem_clk_max * 1000;
        put64(full + DEV_INFO_MIN_ENGINE_CLOCK, 500000);
        put64(full + DEV_INFO_MIN_MEMORY_CLOCK, 100000);
    }
    memcpy(full, &d, sizeof(d));
    for (uint32_t i = 0; i < gpu->cache_count; i++) {
        const struct fake_cache *c = &gpu->caches[i];

        if (c->level == 1 && i == 0)
            put32(full + DEV_INFO_TCP_CACHE_SIZE, c->size_kib);
        else if (c->level == 2)
            put32(full + DEV_INFO_GL2C_CACHE_SIZE, c->size_kib);
        else if (c->level == 3)
            put64(full + DEV_INFO_MALL_SIZE, (uint64_t)c->size_kib << 10);
    }
    return reply(info, full, kernel->dev_info_size);
}

static int read_registers(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    const struct fake_gpu *gpu = gpu_of(call);
    uint32_t offset = info->read_mmr_reg.dword_offset, count = info->read_mmr_reg.count;
    uint32_t values[MMR_MAX] = {0};
    /* Those that libdrm asks for before gfx9: backends, tiling, memory arbiter. */
    static const struct {
        uint32_t first, last;
    } old[] = {{0x263d, 0x263d}, {0x2644, 0x2673}, {0x9d8, 0x9d8}, {0xa0d4, 0xa0d5}};

    if (count > MMR_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t reg = offset + i;
        bool known = reg == REG_GB_ADDR_CONFIG;

        for (size_t k = 0; k < sizeof(old) / sizeof(old[0]) && gpu->family < FAMILY_AI; k++)
            known |= reg >= old[k].first && reg <= old[k].last;
        if (!known)
            return -EFAULT;
        if (reg == REG_GB_ADDR_CONFIG)
            values[i] = gpu->gb_addr_config;
        else if (reg == REG_RASTER_CONFIG)
            values[i] = gpu->raster_config;
        else if (reg - REG_TILE_MODE0 < FAKE_TILE_MODES)
            values[i] = gpu->tile_modes[reg - REG_TILE_MODE0];
    }
    return reply(info, values, count * sizeof(values[0]));
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static int memory(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    const struct fake_profile *p = call->fake->profile;
    const struct fake_gpu *gpu = gpu_of(call);
    struct drm_amdgpu_memory_info m = {0};
    struct fake_totals totals;
    uint32_t g = call->file->gpu;

    fake_machine_totals(&call->fake->machine, &totals);
    m.vram.total_heap_size = gpu->vram;
    m.vram.usable_heap_size = less(gpu->vram, totals.pinned[g]);
    m.vram.heap_usage = totals.vram[g];
    m.vram.max_allocation = m.vram.usable_heap_size / 4 * 3;
    m.cpu_accessible_vram.total_heap_size = gpu->visible_vram;
    m.cpu_accessible_vram.usable_heap_size = less(gpu->visible_vram, totals.pinned[g]);
    m.cpu_accessible_vram.heap_usage = fake_gpu_large_bar(gpu) ? totals.vram[g] : totals.visible[g];
    m.cpu_accessible_vram.max_allocation = m.cpu_accessible_vram.usable_heap_size / 4 * 3;
    m.gtt.total_heap_size = fake_profile_gtt_size(p, g);
    m.gtt.usable_heap_size = m.gtt.total_heap_size;
    m.gtt.heap_usage = totals.gtt;
    m.gtt.max_allocation = m.gtt.usable_heap_size / 4 * 3;

    if (info->query == AMDGPU_INFO_VRAM_GTT) {
        struct drm_amdgpu_info_vram_gtt old = {
            .vram_size = m.vram.usable_heap_size,
            .vram_cpu_accessible_size = m.cpu_accessible_vram.usable_heap_size,
            .gtt_size = m.gtt.usable_heap_size,
        };

        return reply(info, &old, sizeof(old));
    }
    if (info->query == AMDGPU_INFO_MEMORY)
        return reply(info, &m, sizeof(m));
    return reply(info,
                 info->query == AMDGPU_INFO_VRAM_USAGE  ? &m.vram.heap_usage
                 : info->query == AMDGPU_INFO_GTT_USAGE ? &m.gtt.heap_usage
                                                        : &m.cpu_accessible_vram.heap_usage,
                 sizeof(uint64_t));
}

static int firmware(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    const struct fake_gpu *gpu = gpu_of(call);
    const struct fake_kernel *kernel = &call->fake->profile->kernel;
    struct drm_amdgpu_info_firmware fw = {0};

    if (info->query_fw.ip_instance != 0)
        return -EINVAL;
    switch (info->query_fw.fw_type) {
    case AMDGPU_INFO_FW_GFX_MEC:
        if (info->query_fw.index > 1)
            return -EINVAL;
        fw.ver = gpu->fw_version;
        break;
    case AMDGPU_INFO_FW_SDMA:
        if (info->query_fw.index >= gpu->num_sdma_engines + gpu->num_sdma_xgmi_engines)
            return -EINVAL;
        fw.ver = gpu->sdma_fw_version;
        break;
    case AMDGPU_INFO_FW_GFX_ME:
    case AMDGPU_INFO_FW_GFX_PFP:
    case AMDGPU_INFO_FW_GFX_CE:
    case AMDGPU_INFO_FW_GFX_RLC:
        fw.ver = gpu->cp_fw_version;
        break;
    case AMDGPU_INFO_FW_VCE:
    case AMDGPU_INFO_FW_UVD:
    case AMDGPU_INFO_FW_GMC:
    case AMDGPU_INFO_FW_SMC:
    case AMDGPU_INFO_FW_SOS:
    case AMDGPU_INFO_FW_ASD:
    case AMDGPU_INFO_FW_VCN:
        break;
    case FW_TA: /* by its index, none with 0 */
        return -EINVAL;
    default:
        if (info->query_fw.fw_type > AMDGPU_INFO_FW_VCN &&
            info->query_fw.fw_type <= (kernel->drm_minor < 61 ? FW_LAST_OLD : FW_LAST))
            break;
        return -EINVAL;
    }
    return reply(info, &fw, sizeof(fw));
}

/* The version of the SDMA block, which has a number of its own from chip to chip: 16 * major +
 * minor. */
static uint32_t sdma_version(const struct fake_gpu *gpu)
{
    switch (fake_gpu_gfx_major(gpu)) {
    case 8:
        return 0x31;
    case 9:
        return gpu->gfx_target_version / 100 % 100 == 4 ? 0x44 : 0x40;
    case 10:
        return 0x50;
    case 11:
        return 0x60;
    default:
        return 0x70;
    }
}

/* Nothing runs here, but a client that looks for rings finds those the chip has. */
static int hw_ip(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    const struct fake_gpu *gpu = gpu_of(call);
    struct drm_amdgpu_info_hw_ip ip = {0};
    uint32_t count = 0, major = fake_gpu_gfx_major(gpu);

    if (info->query_hw_ip.type >= AMDGPU_HW_IP_NUM ||
        (info->query == AMDGPU_INFO_HW_IP_INFO && info->query_hw_ip.ip_instance != 0))
        return -EINVAL;
    ip.hw_ip_version_major = major;
    /* Of the driver's block, which from gfx10 on serves all minor versions. */
    ip.hw_ip_version_minor = major < 10 ? gpu->gfx_target_version / 100 % 100 : 0;
    switch (info->query_hw_ip.type) {
    case AMDGPU_HW_IP_GFX:
        count = 1;
        ip.available_rings = gpu->num_sdma_xgmi_engines > 0 ? 0 : 1;
        ip.ib_start_alignment = ip.ib_size_alignment = 32;
        break;
    case AMDGPU_HW_IP_COMPUTE:
        count = 1;
        ip.available_rings = (1u << gpu->compute_rings) - 1;
        ip.ib_start_alignment = ip.ib_size_alignment = 32;
        break;
    case AMDGPU_HW_IP_DMA:
        count = gpu->num_sdma_engines;
        ip.available_rings = (1u << gpu->num_sdma_engines) - 1;
        ip.ib_start_alignment = 256;
        ip.ib_size_alignment = 4;
        ip.hw_ip_version_major = sdma_version(gpu) >> 4;
        ip.hw_ip_version_minor = sdma_version(gpu) & 15;
        break;
    default:
        memset(&ip, 0, sizeof(ip));
        break;
    }
    if (info->query == AMDGPU_INFO_HW_IP_INFO)
        return reply(info, &ip, sizeof(ip));
    /* Newer kernels count the instances of a block, and do not know one that is not there. */
    if (call->fake->profile->kernel.drm_minor < 61)
        count = count != 0;
    else if (count == 0)
        return -EINVAL;
    return reply(info, &count, sizeof(count));
}

/* The memory all units share, without a part for graphics. */
static int gds(struct fake_call *call, const struct drm_amdgpu_info *info)
{
    struct drm_amdgpu_info_gds d = {.compute_partition_size = gpu_of(call)->gds_size,
                                    .gds_total_size = gpu_of(call)->gds_size,
                                    .gws_per_compute_partition = GDS_GWS,
                                    .oa_per_compute_partition = GDS_OA};

    return reply(info, &d, sizeof(d));
}

int fake_drm_info(struct fake_call *call, void *arg)
{
    const struct drm_amdgpu_info *info = arg;
    struct timespec now;
    uint64_t value64 = 0;
    uint32_t value32 = 1;

    if (info->return_size == 0 || info->return_pointer == 0)
        return -EINVAL;
    switch (info->query) {
    case AMDGPU_INFO_ACCEL_WORKING:
        return reply(info, &value32, sizeof(value32));
    case AMDGPU_INFO_HW_IP_INFO:
    case AMDGPU_INFO_HW_IP_COUNT:
        return hw_ip(call, info);
    case AMDGPU_INFO_FW_VERSION:
        return firmware(call, info);
    case AMDGPU_INFO_GDS_CONFIG:
        return gds(call, info);
    case AMDGPU_INFO_SENSOR: /* of a card without power management */
        return -ENOENT;
    case AMDGPU_INFO_READ_MMR_REG:
        return read_registers(call, info);
    case AMDGPU_INFO_DEV_INFO:
        return dev_info(call, info);
    case AMDGPU_INFO_MEMORY:
    case AMDGPU_INFO_VRAM_GTT:
    case AMDGPU_INFO_VRAM_USAGE:
    case AMDGPU_INFO_GTT_USAGE:
    case AMDGPU_INFO_VIS_VRAM_USAGE:
        return memory(call, info);
    case AMDGPU_INFO_TIMESTAMP:
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
        value64 = (uint64_t)now.tv_sec * 1000 * COUNTER_KHZ + (uint64_t)now.tv_nsec / 10;
        return reply(info, &value64, sizeof(value64));
    case AMDGPU_INFO_NUM_BYTES_MOVED:
    case AMDGPU_INFO_NUM_EVICTIONS:
    case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
        return reply(info, &value64, sizeof(value64));
    case AMDGPU_INFO_VRAM_LOST_COUNTER:
        value32 = 0;
        return reply(info, &value32, sizeof(value32));
    case AMDGPU_INFO_RAS_ENABLED_FEATURES:
        return reply(info, &value64, sizeof(value64));
    default:
        return -EINVAL;
    }
}
