/* SPDX-License-Identifier: MIT */
/*
 * Requests on the render node as libdrm_amdgpu makes them, where the other cases ask in another
 * way: its questions, its flags, its strings.
 */
#include "cts.h"

#define THUNK (KFD_MEM_NO_SUBSTITUTE | CTS_RW)
#define NOBODY ((uint64_t)1 << 45) /* no memory there, with or without a sanitizer */

/* Three strings asked for twice: their lengths first, then with room. */
static void version(struct cts *c)
{
    char name[16] = "", date[16] = "", desc[16] = "";
    struct drm_version v = {0};
    long ret;

    cts_open(c);
    ret = cts_request(c, c->gpu[0].drm, DRM_CODE_VERSION, &v);
    cts_row(c, "lengths", 0, ret, "%zu %zu %zu", v.name_len, v.date_len, v.desc_len);
    v.name = name;
    v.date = date;
    v.desc = desc;
    ret = cts_request(c, c->gpu[0].drm, DRM_CODE_VERSION, &v);
    cts_row(c, "strings", 0, ret, "%d.%d.%d '%s' '%s' '%s'", v.version_major, v.version_minor,
            v.version_patchlevel, name, date, desc);
    memset(name, 0, sizeof name);
    v.name_len = 3;
    ret = cts_request(c, c->gpu[0].drm, DRM_CODE_VERSION, &v);
    cts_row(c, "room for three letters", 0, ret, "'%s' %zu", name, v.name_len);
}

static void capabilities(struct cts *c)
{
    cts_open(c);
    for (uint32_t i = 0; i < 0x18; i++) {
        struct drm_get_cap a = {.capability = i};
        long ret = cts_request(c, c->gpu[0].drm, DRM_CODE_GET_CAP, &a);

        cts_row(c, cts_text("capability 0x%x", i), CTS_ANY, ret, "%llu", a.value);
    }
}

static long info(struct cts *c, struct drm_amdgpu_info *a, void *out, uint32_t size)
{
    a->return_pointer = (uintptr_t)out;
    a->return_size = size;
    return cts_request(c, c->gpu[0].drm, DRM_CODE_INFO, a);
}

static void rings(struct cts *c)
{
    struct drm_amdgpu_info_gds gds = {0};
    uint32_t works = 7;
    long ret;

    cts_open(c);
    ret = info(c, &(struct drm_amdgpu_info){.query = AMDGPU_INFO_ACCEL_WORKING}, &works, 4);
    cts_row(c, "acceleration", 0, ret, "%u", works);
    for (uint32_t i = 0; i < 9; i++) {
        struct drm_amdgpu_info a = {.query = AMDGPU_INFO_HW_IP_INFO, .query_hw_ip.type = i};
        struct drm_amdgpu_info_hw_ip ip = {0};
        uint32_t count = 0;

        ret = info(c, &a, &ip, sizeof ip);
        cts_row(c, cts_text("block %u", i), CTS_ANY, ret, "%u.%u rings=0x%x align=%u/%u",
                ip.hw_ip_version_major, ip.hw_ip_version_minor, ip.available_rings,
                ip.ib_start_alignment, ip.ib_size_alignment);
        a.query = AMDGPU_INFO_HW_IP_COUNT;
        ret = info(c, &a, &count, sizeof count);
        cts_row(c, cts_text("how many of block %u", i), CTS_ANY, ret, "%u", count);
    }
    ret = info(c, &(struct drm_amdgpu_info){.query = AMDGPU_INFO_GDS_CONFIG}, &gds, sizeof gds);
    cts_row(c, "GDS", 0, ret, "%u/%u/%u/%u/%u/%u/%u", gds.gds_gfx_partition_size,
            gds.compute_partition_size, gds.gds_total_size, gds.gws_per_gfx_partition,
            gds.gws_per_compute_partition, gds.oa_per_gfx_partition, gds.oa_per_compute_partition);
}

static void firmware(struct cts *c)
{
    cts_open(c);
    for (uint32_t i = 0; i < 0x1f; i++) {
        struct drm_amdgpu_info a = {.query = AMDGPU_INFO_FW_VERSION, .query_fw.fw_type = i};
        struct drm_amdgpu_info_firmware fw = {0};
        long ret = info(c, &a, &fw, sizeof fw);

        cts_row(c, cts_text("firmware %u", i), CTS_ANY, ret, "%u %u", fw.ver, fw.feature);
    }
}

static void registers(struct cts *c)
{
    static const uint32_t offsets[] = {0x263e, 0x263d, 0x2644, 0x9d8, 0xa0d4, 0x10, 0x2000};

    cts_open(c);
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        struct drm_amdgpu_info a = {.query = AMDGPU_INFO_READ_MMR_REG,
                                    .read_mmr_reg = {offsets[i], 1, UINT32_MAX, 0}};
        uint32_t value = 0;
        long ret = info(c, &a, &value, sizeof value);

        cts_row(c, cts_text("register 0x%x", offsets[i]), CTS_ANY, ret, "0x%x", value);
    }
}

static void device(struct cts *c)
{
    struct drm_amdgpu_info_device d = {0};
    uint32_t sensor = 0;
    long ret;

    cts_open(c);
    ret = info(c, &(struct drm_amdgpu_info){.query = AMDGPU_INFO_DEV_INFO}, &d, sizeof d);
    cts_row(c, "device", 0, ret, "revision=%u flags=0x%llx", d.chip_rev, d.ids_flags);
    cts_row(c, "clocks", 0, 0, "engine=%llu memory=%llu counter=%u", d.max_engine_clock,
            d.max_memory_clock, d.gpu_counter_freq);
    cts_row(c, "backends", 0, 0, "%u 0x%x contexts=%u", d.num_rb_pipes, d.enabled_rb_pipes_mask,
            d.num_hw_gfx_contexts);
    cts_row(c, "units", 0, 0, "%x %x %x %x always on %x", d.cu_bitmap[0][0], d.cu_bitmap[1][0],
            d.cu_bitmap[2][0], d.cu_bitmap[3][0], d.cu_ao_mask);
    cts_row(c, "constants", 0, 0, "ce_ram=0x%x vgprs=%u per array=%u", d.ce_ram_size,
            d.num_shader_visible_vgprs, d.num_cu_per_sh);
    ret = info(c,
               &(struct drm_amdgpu_info){.query = AMDGPU_INFO_SENSOR,
                                         .sensor_info.type = AMDGPU_INFO_SENSOR_GFX_SCLK},
               &sensor, 4);
    cts_row(c, "a sensor without power management", -ENOENT, ret, "-");
}

static void created_row(struct cts *c, const char *step, uint32_t gpu, uint32_t gem)
{
    struct drm_amdgpu_gem_create_in got = {0};
    struct drm_amdgpu_gem_op op = {
        .handle = gem, .op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO, .value = (uintptr_t)&got};
    long ret = cts_request(c, c->gpu[gpu].drm, DRM_CODE_GEM_OP, &op);

    cts_row(c, step, 0, ret, "size=0x%llx align=0x%llx domains=0x%llx flags=0x%llx", got.bo_size,
            got.alignment, got.domains, got.domain_flags);
}

/* Flags the driver takes away and adds. */
static void created_as(struct cts *c)
{
    static const struct {
        const char *name;
        uint64_t domains, flags, alignment;
    } asked[] = {
        {"VRAM", AMDGPU_GEM_DOMAIN_VRAM, 0, 0},
        {"VRAM for the CPU", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, 0},
        {"VRAM not for the CPU", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS, 0},
        {"VRAM cleared", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_VRAM_CLEARED, 0},
        {"VRAM aligned", AMDGPU_GEM_DOMAIN_VRAM, 0, MiB(2)},
        {"GTT", AMDGPU_GEM_DOMAIN_GTT, 0, 0},
        {"GTT for the CPU", AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, 0},
        {"GTT write-combined", AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_CPU_GTT_USWC, 0},
        {"explicit synchronisation", AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_EXPLICIT_SYNC, 0},
        {"either", AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT, 0, 0},
    };

    cts_open(c);
    for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        union drm_amdgpu_gem_create a = {.in = {.bo_size = KiB(4),
                                                .alignment = asked[i].alignment,
                                                .domains = asked[i].domains,
                                                .domain_flags = asked[i].flags}};
        long ret = cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CREATE, &a);

        cts_row(c, asked[i].name, 0, ret, "-");
        if (ret >= 0)
            created_row(c, "is", 0, a.out.handle);
    }
}

/* The same question about memory of KFD's, on its own card and on another. */
static void imported_as(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } kinds[] = {{"VRAM", KFD_MEM_VRAM},
                 {"public VRAM", KFD_MEM_VRAM | KFD_MEM_PUBLIC},
                 {"GTT", KFD_MEM_GTT},
                 {"uncached GTT", KFD_MEM_GTT | KFD_MEM_UNCACHED | KFD_MEM_COHERENT}};

    cts_start(c);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool refused = kinds[i].flags & KFD_MEM_PUBLIC && !c->gpu[0].large_bar;
        uint64_t h = cts_alloc(c, kinds[i].name, refused ? -EINVAL : 0, 0, 0, KiB(64),
                               kinds[i].flags | THUNK);
        int fd;

        if (refused)
            continue;
        fd = cts_export(c, "export", 0, h);
        for (uint32_t g = 0; g < c->gpus && g < 2; g++) {
            uint32_t gem = cts_prime(c, cts_text("import on GPU %u", g), 0, c->gpu[g].drm, fd);

            created_row(c, cts_text("on GPU %u", g), g, gem);
            cts_gem_close(c, "close", 0, c->gpu[g].drm, gem);
        }
        cts_close(c, fd);
        cts_free(c, "free", 0, h);
    }
}

static long metadata_op(struct cts *c, uint32_t gem, uint32_t op, uint32_t size,
                        struct drm_amdgpu_gem_metadata *a)
{
    memset(a, 0, sizeof *a);
    a->handle = gem;
    a->op = op;
    a->data.data_size_bytes = size;
    a->data.flags = 5;
    a->data.tiling_info = 0x25;
    memset(a->data.data, 0x11, sizeof a->data.data);
    return cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_METADATA, a);
}

static void metadata(struct cts *c)
{
    struct drm_amdgpu_gem_metadata a;
    struct kfd_ioctl_get_dmabuf_info_args kfd = {0};
    uint32_t gem, words[64] = {0};
    long ret;
    int fd;

    cts_start(c);
    gem = cts_gem_create(c, "create", 0, c->gpu[0].drm, MiB(1), AMDGPU_GEM_DOMAIN_VRAM);
    ret = metadata_op(c, gem, AMDGPU_GEM_METADATA_OP_GET_METADATA, 0, &a);
    cts_row(c, "none yet", 0, ret, "flags=%llu tiling=0x%llx size=%u", a.data.flags,
            a.data.tiling_info, a.data.data_size_bytes);
    ret = metadata_op(c, gem, AMDGPU_GEM_METADATA_OP_SET_METADATA, 8, &a);
    cts_row(c, "set", 0, ret, "-");
    ret = metadata_op(c, gem, AMDGPU_GEM_METADATA_OP_GET_METADATA, 0, &a);
    cts_row(c, "get", 0, ret, "flags=%llu tiling=0x%llx size=%u %x %x", a.data.flags,
            a.data.tiling_info, a.data.data_size_bytes, a.data.data[0], a.data.data[1]);
    ret = metadata_op(c, gem, AMDGPU_GEM_METADATA_OP_SET_METADATA, 257, &a);
    cts_row(c, "more than there is room for", -EINVAL, ret, "-");
    ret = metadata_op(c, gem, 7, 0, &a);
    cts_row(c, "unknown operation", CTS_ANY, ret, "-");
    ret = metadata_op(c, 777, AMDGPU_GEM_METADATA_OP_GET_METADATA, 0, &a);
    cts_row(c, "unknown handle", -ENOENT, ret, "-");
    /* What KFD tells another process of it. */
    fd = cts_prime_export(c, "export", 0, c->gpu[0].drm, gem, O_CLOEXEC | O_RDWR);
    kfd.dmabuf_fd = (uint32_t)fd;
    kfd.metadata_ptr = (uintptr_t)words;
    kfd.metadata_size = sizeof words;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_DMABUF_INFO, &kfd);
    cts_row(c, "through KFD", 0, ret, "size=%u %x owner=%s", kfd.metadata_size, words[0],
            cts_gpu_text(c, kfd.gpu_id));
    kfd.metadata_size = 4;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_DMABUF_INFO, &kfd);
    cts_row(c, "through KFD with too little room", CTS_ANY, ret, "size=%u", kfd.metadata_size);
    kfd.metadata_ptr = 8;
    kfd.metadata_size = sizeof words;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_DMABUF_INFO, &kfd);
    cts_row(c, "through KFD to a bad pointer", CTS_ANY, ret, "size=%u", kfd.metadata_size);
    cts_close(c, fd);
}

static void idle(struct cts *c)
{
    uint32_t gem;
    union drm_amdgpu_gem_wait_idle a;
    long ret;

    cts_open(c);
    gem = cts_gem_create(c, "create", 0, c->gpu[0].drm, MiB(1), AMDGPU_GEM_DOMAIN_GTT);
    for (int infinite = 0; infinite < 2; infinite++) {
        a = (union drm_amdgpu_gem_wait_idle){
            .in = {.handle = gem, .timeout = infinite ? UINT64_MAX : 0}};
        ret = cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_WAIT_IDLE, &a);
        cts_row(c, infinite ? "wait" : "ask", 0, ret, "status=%u domain=%u", a.out.status,
                a.out.domain);
    }
    a = (union drm_amdgpu_gem_wait_idle){.in = {.handle = 777}};
    cts_row(c, "unknown handle", -ENOENT, cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_WAIT_IDLE, &a),
            "-");
}

static uint32_t userptr(struct cts *c, const char *step, uint64_t addr, uint64_t size,
                        uint32_t flags)
{
    struct drm_amdgpu_gem_userptr a = {.addr = addr, .size = size, .flags = flags};
    long ret = cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_USERPTR, &a);

    cts_row(c, step, CTS_ANY, ret, "gem=%u", ret < 0 ? 0 : a.handle);
    return ret < 0 ? 0 : a.handle;
}

static void user_buffers(struct cts *c)
{
    const uint32_t usual =
        AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
    char *p = mmap(NULL, MiB(1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = memfd_create("file", MFD_CLOEXEC);
    char *of_file;
    uint64_t at = (uintptr_t)p;
    int drm;
    uint32_t gem;

    cts_open(c);
    drm = c->gpu[0].drm;
    if (p == MAP_FAILED || file < 0 || ftruncate(file, KiB(64)) < 0)
        cts_skip(c, "no memory");
    memset(p, 1, MiB(1));
    of_file = mmap(NULL, KiB(64), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    gem = userptr(c, "as libdrm asks", at, MiB(1), usual);
    cts_gem_va(c, "map", 0, drm, gem, AMDGPU_VA_OP_MAP, c->va, 0, MiB(1),
               AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE);
    cts_gem_va(c, "unmap", 0, drm, gem, AMDGPU_VA_OP_UNMAP, c->va, 0, MiB(1),
               AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE);
    cts_prime_export(c, "export", CTS_ANY, drm, gem, O_CLOEXEC | O_RDWR);
    cts_gem_mmap(c, "CPU view", CTS_ANY, drm, gem);
    cts_gem_close(c, "close", 0, drm, gem);
    userptr(c, "not on a page", at + 16, KiB(4), usual);
    userptr(c, "a part of a page", at, 100, usual);
    userptr(c, "no size", at, 0, usual);
    userptr(c, "writable and not watched", at, KiB(4), AMDGPU_GEM_USERPTR_ANONONLY);
    userptr(c, "read-only and not watched", at, KiB(4), AMDGPU_GEM_USERPTR_READONLY);
    userptr(c, "unknown flag", at, KiB(4), usual | 0x100);
    userptr(c, "nothing there", NOBODY, KiB(4), usual);
    userptr(c, "nothing there, not looked at", NOBODY, KiB(4),
            usual & ~(uint32_t)AMDGPU_GEM_USERPTR_VALIDATE);
    if (of_file != MAP_FAILED)
        userptr(c, "a file's memory", (uintptr_t)of_file, KiB(64), usual);
    munmap(p, MiB(1));
}

const struct cts_case cts_render_cases[] = {
    {"render.version", 0, version},
    {"render.capabilities", 0, capabilities},
    {"render.rings", 0, rings},
    {"render.firmware", 0, firmware},
    {"render.registers", 0, registers},
    {"render.device", 0, device},
    {"render.created_as", 0, created_as},
    {"render.imported_as", CTS_EXPORT, imported_as},
    {"render.metadata", 0, metadata},
    {"render.idle", 0, idle},
    {"render.user_buffers", 0, user_buffers},
    {0},
};
