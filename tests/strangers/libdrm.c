/* SPDX-License-Identifier: MIT */
/*
 * Debian's libdrm_amdgpu: nothing of ours between the program and the preload, or the driver.
 * Every call whose answer is the kernel's makes a row.
 */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <xf86drm.h>

#define SIZE (8ull << 20)
#define VA 0x400000000ull

#define SHOWN(step, call) witness_errno(step, call)

static int begin(void **state)
{
    witness_begin("libdrm", *state);
    return 0;
}

static int open_render(const struct fake_profile *p, uint32_t gpu)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/dev/dri/renderD%u", p->gpus[gpu].render_minor);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static amdgpu_device_handle start(int fd)
{
    amdgpu_device_handle dev;
    uint32_t major, minor;

    assert_int_equal(amdgpu_device_initialize(fd, &major, &minor, &dev), 0);
    assert_int_equal(major, 3);
    return dev;
}

static amdgpu_bo_handle alloc(amdgpu_device_handle dev, uint32_t heap)
{
    struct amdgpu_bo_alloc_request request = {.alloc_size = SIZE,
                                              .phys_alignment = 4096,
                                              .preferred_heap = heap,
                                              .flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED};
    amdgpu_bo_handle bo;

    assert_int_equal(SHOWN("alloc", amdgpu_bo_alloc(dev, &request, &bo)), 0);
    return bo;
}

/* In words, so that a difference names the field. */
static void info_rows(amdgpu_device_handle dev, const struct amdgpu_gpu_info *info)
{
    char text[400] = "";
    size_t at = 0;

#define FIELD(field) witness_row("gpu_info " #field, "0", "0x%llx", (unsigned long long)info->field)
    FIELD(asic_id);
    FIELD(chip_rev);
    FIELD(chip_external_rev);
    FIELD(family_id);
    FIELD(ids_flags);
    FIELD(max_engine_clk);
    FIELD(max_memory_clk);
    FIELD(num_shader_engines);
    FIELD(num_shader_arrays_per_engine);
    FIELD(num_hw_gfx_contexts);
    FIELD(rb_pipes);
    FIELD(enabled_rb_pipes_mask);
    FIELD(gpu_counter_freq);
    FIELD(backend_disable[0]);
    FIELD(mc_arb_ramcfg);
    FIELD(gb_addr_cfg);
    FIELD(pa_sc_raster_cfg[0]);
    FIELD(cu_active_number);
    FIELD(cu_ao_mask);
    FIELD(vram_type);
    FIELD(vram_bit_width);
    FIELD(ce_ram_size);
    FIELD(vce_harvest_config);
    FIELD(pci_rev_id);
#undef FIELD
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%x ", info->cu_bitmap[i / 4][i % 4]);
    witness_row("gpu_info cu_bitmap", "0", "%s", text);
    at = 0;
    for (int i = 0; i < 32; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%x ", info->gb_tile_mode[i]);
    witness_row("gpu_info gb_tile_mode", "0", "%s", text);
    at = 0;
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%x ", info->gb_macro_tile_mode[i]);
    witness_row("gpu_info gb_macro_tile_mode", "0", "%s", text);
    witness_row("marketing name", "0", "%s",
                amdgpu_get_marketing_name(dev) ? amdgpu_get_marketing_name(dev) : "(none)");
}

static void test_device_is_the_profiles(void **state)
{
    struct fake_profile *p = witness_world();

    for (uint32_t g = 0; g < p->gpu_count; g++) {
        int fd = open_render(p, g);
        amdgpu_device_handle dev = start(fd);
        struct amdgpu_gpu_info info;
        struct drm_amdgpu_memory_info memory;
        struct amdgpu_heap_info heap;
        drmVersionPtr version = drmGetVersion(fd);

        assert_int_equal(version->version_minor, p->kernel.drm_minor);
        assert_string_equal(version->name, "amdgpu");
        witness_row("version", "0", "%d.%d.%d %s '%s'", version->version_major,
                    version->version_minor, version->version_patchlevel, version->date,
                    version->desc);
        drmFreeVersion(version);
        assert_int_equal(SHOWN("gpu_info", amdgpu_query_gpu_info(dev, &info)), 0);
        info_rows(dev, &info);
        assert_int_equal(info.asic_id, p->gpus[g].device_id);
        assert_int_equal(info.family_id, p->gpus[g].family);
        assert_int_equal(info.pci_rev_id, p->gpus[g].pci_rev);
        assert_int_equal(info.gb_addr_cfg, p->gpus[g].gb_addr_config);
        assert_int_equal(info.vram_bit_width, p->gpus[g].mem_width);
        assert_true(info.max_engine_clk ==
                    (p->gpus[g].no_clocks ? 0 : p->gpus[g].max_engine_clk_fcompute * 1000ull));
        assert_int_equal(amdgpu_query_info(dev, AMDGPU_INFO_MEMORY, sizeof(memory), &memory), 0);
        witness_row("memory", "0", "vram=0x%llx visible=0x%llx",
                    (unsigned long long)memory.vram.total_heap_size,
                    (unsigned long long)memory.cpu_accessible_vram.total_heap_size);
        assert_true(memory.vram.total_heap_size == p->gpus[g].vram);
        assert_true(memory.cpu_accessible_vram.total_heap_size == p->gpus[g].visible_vram);
        assert_int_equal(amdgpu_query_heap_info(dev, AMDGPU_GEM_DOMAIN_GTT, 0, &heap), 0);
        /* A driver took its part of what memory there was when it was loaded, and has used some. */
        assert_in_range(heap.heap_size,
                        fake_profile_gtt_size(p, g) / 100 * (witness_on_driver() ? 90 : 100),
                        fake_profile_gtt_size(p, g));
        assert_int_equal(amdgpu_device_deinitialize(dev), 0);
        close(fd);
    }
    fake_profile_free(p);
}

/* What a client asks before it builds anything. */
static void test_small_questions_are_answered(void **state)
{
    struct fake_profile *p = witness_world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    static const char *const ips[] = {"gfx", "compute", "dma", "uvd", "vce", "uvd enc", "vcn"};
    static const char *const firmwares[] = {"none", "vce", "uvd", "gmc",  "me",  "pfp", "ce",
                                            "rlc",  "mec", "smc", "sdma", "sos", "asd"};
    struct amdgpu_buffer_size_alignments align;
    struct drm_amdgpu_info_hw_ip ip;
    struct amdgpu_gds_resource_info gds;
    uint64_t start_va, end_va, cap;
    uint32_t count, version, feature, reg = 0;

    for (unsigned i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
        char step[32];
        int ret;

        snprintf(step, sizeof(step), "ip %s", ips[i]);
        memset(&ip, 0, sizeof(ip));
        SHOWN(step, amdgpu_query_hw_ip_info(dev, i, 0, &ip));
        count = 0;
        ret = amdgpu_query_hw_ip_count(dev, i, &count);
        witness_row(step, ret < 0 ? strerrorname_np(-ret) : "0",
                    "count=%u version=%u.%u rings=0x%x ib=%u/%u", count, ip.hw_ip_version_major,
                    ip.hw_ip_version_minor, ip.available_rings, ip.ib_start_alignment,
                    ip.ib_size_alignment);
    }
    for (unsigned i = 1; i < sizeof(firmwares) / sizeof(firmwares[0]); i++) {
        int ret = amdgpu_query_firmware_version(dev, i, 0, 0, &version, &feature);

        witness_row(firmwares[i], ret < 0 ? strerrorname_np(-ret) : "0", "version=%u feature=%u",
                    ret < 0 ? 0 : version, ret < 0 ? 0 : feature);
    }
    assert_int_equal(SHOWN("alignments", amdgpu_query_buffer_size_alignment(dev, &align)), 0);
    witness_row("alignments", "0", "local=%llu remote=%llu", (unsigned long long)align.size_local,
                (unsigned long long)align.size_remote);
    assert_int_equal(amdgpu_va_range_query(dev, amdgpu_gpu_va_range_general, &start_va, &end_va),
                     0);
    witness_row("addresses", "0", "0x%llx..0x%llx", (unsigned long long)start_va,
                (unsigned long long)end_va);
    memset(&gds, 0, sizeof(gds));
    SHOWN("gds", amdgpu_query_gds_info(dev, &gds));
    witness_row("gds", "0", "%u/%u/%u/%u/%u/%u/%u", gds.gds_gfx_partition_size,
                gds.compute_partition_size, gds.gds_total_size, gds.gws_per_gfx_partition,
                gds.gws_per_compute_partition, gds.oa_per_gfx_partition,
                gds.oa_per_compute_partition);
    SHOWN("address config register", amdgpu_read_mm_registers(dev, 0x263e, 1, UINT32_MAX, 0, &reg));
    witness_row("address config register", "0", "0x%x", reg);
    SHOWN("a register nobody may read",
          amdgpu_read_mm_registers(dev, 0x10, 1, UINT32_MAX, 0, &reg));
    SHOWN("crtc", amdgpu_query_crtc_from_id(dev, 0, (int32_t *)&count));
    SHOWN("sensor", amdgpu_query_sensor_info(dev, AMDGPU_INFO_SENSOR_GFX_SCLK, 4, &count));
    for (uint64_t c = 0; c < 0x18; c++) {
        char step[32];
        int ret = drmGetCap(fd, c, &cap);

        snprintf(step, sizeof(step), "capability 0x%llx", (unsigned long long)c);
        witness_row(step, ret ? strerrorname_np(errno) : "0", "%llu",
                    ret ? 0 : (unsigned long long)cap);
    }
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void test_devices_are_listed_with_their_pci_place(void **state)
{
    struct fake_profile *p = witness_world();
    drmDevicePtr devices[FAKE_MAX_GPUS];
    int n = drmGetDevices2(0, devices, FAKE_MAX_GPUS);
    uint32_t cards = 0;

    for (int i = 0; i < n; i++) {
        const struct fake_gpu *gpu = NULL;

        /* The guest has a device of another driver, which is on no bus. */
        if (witness_on_driver() && devices[i]->bustype != DRM_BUS_PCI)
            continue;
        cards++;
        assert_int_equal(devices[i]->bustype, DRM_BUS_PCI);
        for (uint32_t g = 0; g < p->gpu_count; g++) {
            if ((p->gpus[g].location_id >> 8) == devices[i]->businfo.pci->bus &&
                (p->gpus[g].location_id >> 3 & 31) == devices[i]->businfo.pci->dev)
                gpu = &p->gpus[g];
        }
        assert_non_null(gpu);
        assert_int_equal(devices[i]->deviceinfo.pci->vendor_id, gpu->vendor_id);
        assert_int_equal(devices[i]->deviceinfo.pci->device_id, gpu->device_id);
        witness_row("device", "0", "%04x:%02x:%02x.%u %04x:%04x %04x:%04x rev %02x nodes 0x%x",
                    devices[i]->businfo.pci->domain, devices[i]->businfo.pci->bus,
                    devices[i]->businfo.pci->dev, devices[i]->businfo.pci->func,
                    devices[i]->deviceinfo.pci->vendor_id, devices[i]->deviceinfo.pci->device_id,
                    devices[i]->deviceinfo.pci->subvendor_id,
                    devices[i]->deviceinfo.pci->subdevice_id,
                    devices[i]->deviceinfo.pci->revision_id, devices[i]->available_nodes);
    }
    assert_int_equal(cards, p->gpu_count);
    drmFreeDevices(devices, n);
    fake_profile_free(p);
}

static void test_second_initialise_of_a_device_finds_the_first(void **state)
{
    struct fake_profile *p = witness_world();
    int a = open_render(p, 0), b = open_render(p, 0);
    amdgpu_device_handle first = start(a), second = start(b);

    assert_ptr_equal(first, second);
    witness_row("same object", "0", "-");
    assert_int_equal(amdgpu_device_deinitialize(second), 0);
    assert_int_equal(amdgpu_device_deinitialize(first), 0);
    close(a);
    close(b);
    fake_profile_free(p);
}

static void test_bytes_written_through_one_view_are_read_through_another(void **state)
{
    struct fake_profile *p = witness_world();
    static const uint32_t heaps[] = {AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_DOMAIN_VRAM};
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);

    for (size_t h = 0; h < 2; h++) {
        amdgpu_bo_handle bo = alloc(dev, heaps[h]);
        struct amdgpu_bo_import_result imported;
        unsigned char *cpu, *view;
        uint32_t prime;

        assert_int_equal(SHOWN("cpu map", amdgpu_bo_cpu_map(bo, (void **)&cpu)), 0);
        /* Older kernels give VRAM as the last user left it. */
        if (heaps[h] == AMDGPU_GEM_DOMAIN_GTT || p->kernel.drm_minor >= 61)
            assert_int_equal(cpu[SIZE - 1], 0);
        memset(cpu, 0x5a, SIZE);
        assert_int_equal(
            SHOWN("export", amdgpu_bo_export(bo, amdgpu_bo_handle_type_dma_buf_fd, &prime)), 0);
        view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)prime, SIZE - 4096);
        assert_true(view != MAP_FAILED);
        assert_int_equal(view[4095], 0x5a);
        munmap(view, 4096);
        /* On the same device it is the same object. */
        assert_int_equal(SHOWN("import", amdgpu_bo_import(dev, amdgpu_bo_handle_type_dma_buf_fd,
                                                          prime, &imported)),
                         0);
        assert_true(imported.alloc_size == SIZE);
        assert_ptr_equal(imported.buf_handle, bo);
        assert_int_equal(amdgpu_bo_free(imported.buf_handle), 0);
        close((int)prime);
        assert_int_equal(amdgpu_bo_cpu_unmap(bo), 0);
        assert_int_equal(amdgpu_bo_free(bo), 0);
    }
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void test_another_device_imports_the_size(void **state)
{
    struct fake_profile *p = witness_world();
    int fds[2];
    amdgpu_device_handle devs[2];
    struct amdgpu_bo_import_result imported;
    amdgpu_bo_handle bo;
    uint32_t prime;

    if (p->gpu_count < 2) {
        fake_profile_free(p);
        skip();
    }
    for (uint32_t i = 0; i < 2; i++) {
        fds[i] = open_render(p, i);
        devs[i] = start(fds[i]);
    }
    bo = alloc(devs[0], AMDGPU_GEM_DOMAIN_GTT);
    assert_int_equal(amdgpu_bo_export(bo, amdgpu_bo_handle_type_dma_buf_fd, &prime), 0);
    assert_int_equal(
        SHOWN("import elsewhere",
              amdgpu_bo_import(devs[1], amdgpu_bo_handle_type_dma_buf_fd, prime, &imported)),
        0);
    assert_true(imported.alloc_size == SIZE);
    close((int)prime);
    assert_int_equal(amdgpu_bo_free(imported.buf_handle), 0);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    for (uint32_t i = 0; i < 2; i++) {
        amdgpu_device_deinitialize(devs[i]);
        close(fds[i]);
    }
    fake_profile_free(p);
}

static int va_op(amdgpu_device_handle dev, amdgpu_bo_handle bo, uint64_t offset, uint64_t size,
                 uint64_t va, uint32_t op)
{
    static const char *const names[] = {"?", "map", "unmap", "clear", "replace"};
    char step[96];

    snprintf(step, sizeof(step), "%s 0x%llx+0x%llx at +0x%llx", names[op < 5 ? op : 0],
             (unsigned long long)offset, (unsigned long long)size, (unsigned long long)(va - VA));
    return SHOWN(step, amdgpu_bo_va_op_raw(dev, bo, offset, size, va,
                                           AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE, op));
}

static void test_ranges_are_mapped_with_offsets_and_refuse_overlap(void **state)
{
    struct fake_profile *p = witness_world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    amdgpu_bo_handle bo = alloc(dev, AMDGPU_GEM_DOMAIN_VRAM);

    assert_int_equal(va_op(dev, bo, 4096, 8192, VA, AMDGPU_VA_OP_MAP), 0);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA + SIZE, AMDGPU_VA_OP_MAP), 0);
    assert_int_equal(va_op(dev, bo, 0, 4096, VA + 4096, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, SIZE, 4096, VA + 65536, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, 0, 4096, VA + 100, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA + 4096, AMDGPU_VA_OP_UNMAP), -ENOENT);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA, AMDGPU_VA_OP_UNMAP), 0);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA, AMDGPU_VA_OP_REPLACE), 0);
    assert_int_equal(va_op(dev, NULL, 0, 2 * SIZE, VA, AMDGPU_VA_OP_CLEAR), 0);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA, AMDGPU_VA_OP_UNMAP), -ENOENT);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

/* What became of the flags a buffer was asked for with. */
static void flag_rows(amdgpu_device_handle dev)
{
    static const struct {
        const char *name;
        uint32_t heap, flags;
    } asked[] = {
        {"VRAM", AMDGPU_GEM_DOMAIN_VRAM, 0},
        {"VRAM for the CPU", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED},
        {"VRAM not for the CPU", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS},
        {"VRAM cleared", AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_CREATE_VRAM_CLEARED},
        {"GTT", AMDGPU_GEM_DOMAIN_GTT, 0},
        {"GTT for the CPU", AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED},
        {"GTT write-combined", AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_CPU_GTT_USWC},
        {"either", AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT, 0},
    };

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct amdgpu_bo_alloc_request request = {.alloc_size = 4096,
                                                  .phys_alignment = 4096,
                                                  .preferred_heap = asked[i].heap,
                                                  .flags = asked[i].flags};
        struct amdgpu_bo_info info = {0};
        amdgpu_bo_handle bo;

        if (SHOWN(asked[i].name, amdgpu_bo_alloc(dev, &request, &bo)) != 0)
            continue;
        assert_int_equal(amdgpu_bo_query_info(bo, &info), 0);
        witness_row(asked[i].name, "0", "heap=%u flags=0x%llx align=0x%llx", info.preferred_heap,
                    (unsigned long long)info.alloc_flags, (unsigned long long)info.phys_alignment);
        assert_int_equal(amdgpu_bo_free(bo), 0);
    }
}

static void test_buffers_carry_what_their_maker_said(void **state)
{
    struct fake_profile *p = witness_world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    amdgpu_bo_handle bo = alloc(dev, AMDGPU_GEM_DOMAIN_VRAM);
    struct amdgpu_bo_metadata set = {
        .tiling_info = 0x25, .size_metadata = 8, .umd_metadata = {0x11111111, 0x22222222}};
    struct amdgpu_bo_info info;
    bool busy = true;

    assert_int_equal(SHOWN("set metadata", amdgpu_bo_set_metadata(bo, &set)), 0);
    memset(&info, 0, sizeof(info));
    assert_int_equal(SHOWN("query", amdgpu_bo_query_info(bo, &info)), 0);
    witness_row("query", "0",
                "size=0x%llx align=0x%llx heap=%u flags=0x%llx tiling=0x%llx metadata=%u %x %x",
                (unsigned long long)info.alloc_size, (unsigned long long)info.phys_alignment,
                info.preferred_heap, (unsigned long long)info.alloc_flags,
                (unsigned long long)info.metadata.tiling_info, info.metadata.size_metadata,
                info.metadata.umd_metadata[0], info.metadata.umd_metadata[1]);
    assert_int_equal(info.alloc_size, SIZE);
    assert_int_equal(info.metadata.umd_metadata[1], 0x22222222);
    flag_rows(dev);
    assert_int_equal(SHOWN("idle", amdgpu_bo_wait_for_idle(bo, 0, &busy)), 0);
    assert_false(busy);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void test_user_memory_becomes_a_buffer(void **state)
{
    struct fake_profile *p = witness_world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    amdgpu_bo_handle bo, found;
    uint64_t offset;
    unsigned char *mem =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(mem != MAP_FAILED);
    memset(mem, 1, SIZE);
    assert_int_equal(SHOWN("user memory", amdgpu_create_bo_from_user_mem(dev, mem, SIZE, &bo)), 0);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA, AMDGPU_VA_OP_MAP), 0);
    assert_int_equal(amdgpu_find_bo_by_cpu_mapping(dev, mem + 4096, 4096, &found, &offset), -ENXIO);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA, AMDGPU_VA_OP_UNMAP), 0);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    SHOWN("not on a page", amdgpu_create_bo_from_user_mem(dev, mem + 16, 4096, &bo));
    munmap(mem, SIZE);
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void *work(void *arg)
{
    amdgpu_device_handle dev = arg;

    for (int i = 0; i < 50; i++) {
        amdgpu_bo_handle bo;
        amdgpu_va_handle range;
        struct amdgpu_bo_alloc_request request = {.alloc_size = 65536,
                                                  .preferred_heap = AMDGPU_GEM_DOMAIN_GTT};
        uint64_t va;

        if (amdgpu_bo_alloc(dev, &request, &bo) != 0 ||
            amdgpu_va_range_alloc(dev, amdgpu_gpu_va_range_general, 65536, 4096, 0, &va, &range,
                                  0) != 0 ||
            amdgpu_bo_va_op(bo, 0, 65536, va, 0, AMDGPU_VA_OP_MAP) != 0 ||
            amdgpu_bo_va_op(bo, 0, 65536, va, 0, AMDGPU_VA_OP_UNMAP) != 0 ||
            amdgpu_va_range_free(range) != 0 || amdgpu_bo_free(bo) != 0)
            return arg;
    }
    return NULL;
}

static void test_threads_share_a_device(void **state)
{
    struct fake_profile *p = witness_world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    pthread_t threads[4];
    void *failed;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, dev), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, NULL, (void *)#name)
#define AGAIN(name)                                                 \
    {                                                               \
#name " again", name, begin, NULL, (void *)(#name "_again") \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_device_is_the_profiles),
        TEST(test_small_questions_are_answered),
        TEST(test_devices_are_listed_with_their_pci_place),
        TEST(test_second_initialise_of_a_device_finds_the_first),
        TEST(test_bytes_written_through_one_view_are_read_through_another),
        TEST(test_another_device_imports_the_size),
        TEST(test_ranges_are_mapped_with_offsets_and_refuse_overlap),
        TEST(test_buffers_carry_what_their_maker_said),
        TEST(test_user_memory_becomes_a_buffer),
        TEST(test_threads_share_a_device),
        /* Once more, after everything was closed. */
        AGAIN(test_device_is_the_profiles),
        AGAIN(test_bytes_written_through_one_view_are_read_through_another),
    };

    return witness_run(tests, sizeof(tests) / sizeof(tests[0]));
}
