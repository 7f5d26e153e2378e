/* SPDX-License-Identifier: MIT */
/* Requests that only ask, and the small set-up ones. */
#include "cts.h"

static void apertures(struct cts *c)
{
    struct kfd_process_device_apertures list[CTS_MAX_GPUS + 1];
    struct kfd_ioctl_get_process_apertures_new_args a = {0};
    struct kfd_ioctl_get_process_apertures_args old;
    long ret;

    cts_open(c);
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    cts_row(c, "count", 0, ret, "n=%u", a.num_of_nodes);
    a.kfd_process_device_apertures_ptr = (uintptr_t)list;
    a.num_of_nodes = c->nodes;
    memset(list, 0, sizeof list);
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    cts_row(c, "as many as there are nodes", 0, ret, "n=%u", a.num_of_nodes);
    for (uint32_t i = 0; i < a.num_of_nodes && i < c->gpus; i++)
        cts_row(c, cts_text("aperture %u", i), 0, 0,
                "%s gpuvm=0x%llx..0x%llx lds=0x%llx..0x%llx scratch=0x%llx..0x%llx",
                cts_gpu_text(c, list[i].gpu_id), list[i].gpuvm_base, list[i].gpuvm_limit,
                list[i].lds_base, list[i].lds_limit, list[i].scratch_base, list[i].scratch_limit);
    a.num_of_nodes = c->nodes + 1;
    a.kfd_process_device_apertures_ptr = 8;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    cts_row(c, "more than there are nodes", -EINVAL, ret, "n=+%u", a.num_of_nodes - c->nodes);
    a.num_of_nodes = 0xffffffff;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    cts_row(c, "4 Gi", -EINVAL, ret, "n=0x%x", a.num_of_nodes);
    a.num_of_nodes = 1;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    cts_row(c, "bad pointer", c->gpus ? -EFAULT : CTS_ANY, ret, "n=%u", a.num_of_nodes);
    memset(&old, 0xee, sizeof old);
    ret = cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES, &old);
    cts_row(c, "the old request", 0, ret, "n=%u first=%s", old.num_of_nodes,
            cts_gpu_text(c, old.process_apertures[0].gpu_id));
}

static void clocks(struct cts *c)
{
    struct kfd_ioctl_get_clock_counters_args a = {.gpu_id = CTS_BAD_GPU};
    long ret;

    cts_open(c);
    ret = cts_request(c, c->kfd, KFD_CODE_GET_CLOCK_COUNTERS, &a);
    cts_row(c, "unknown GPU", 0, ret, "gpu=%llu cpu=%s system=%s freq=%llu", a.gpu_clock_counter,
            a.cpu_clock_counter ? "set" : "0", a.system_clock_counter ? "set" : "0",
            a.system_clock_freq);
    a.gpu_id = c->gpu[0].id;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_CLOCK_COUNTERS, &a);
    cts_row(c, "a GPU", 0, ret, "cpu=%s system=%s freq=%llu", a.cpu_clock_counter ? "set" : "0",
            a.system_clock_counter ? "set" : "0", a.system_clock_freq);
}

static void memory_policy_row(struct cts *c, const char *step, long want, uint32_t gpu, uint32_t d,
                              uint32_t alt)
{
    struct kfd_ioctl_set_memory_policy_args a = {
        .gpu_id = gpu, .default_policy = d, .alternate_policy = alt};

    cts_row(c, step, want, cts_request(c, c->kfd, KFD_CODE_SET_MEMORY_POLICY, &a), "-");
}

static void memory_policy(struct cts *c)
{
    uint32_t id = c->gpu[0].id;

    cts_open(c);
    memory_policy_row(c, "bad policy before the GPU is looked at", -EINVAL, CTS_BAD_GPU, 2, 0);
    memory_policy_row(c, "unknown GPU", -EINVAL, CTS_BAD_GPU, 0, 0);
    memory_policy_row(c, "before the VM is acquired", -ESRCH, id, 0, 0);
    cts_acquire(c, "acquire", 0, c->gpu[0].drm, id);
    memory_policy_row(c, "coherent", CTS_ANY, id, 0, 0);
    memory_policy_row(c, "non-coherent", CTS_ANY, id, 1, 1);
}

static void tiles(struct cts *c)
{
    uint32_t tile[64] = {0}, macro[64] = {0};
    struct kfd_ioctl_get_tile_config_args a = {
        .tile_config_ptr = (uintptr_t)tile,
        .macro_tile_config_ptr = (uintptr_t)macro,
        .num_tile_configs = 64,
        .num_macro_tile_configs = 64,
        .gpu_id = CTS_BAD_GPU,
    };
    long ret;

    cts_open(c);
    cts_row(c, "unknown GPU", -EINVAL, cts_request(c, c->kfd, KFD_CODE_GET_TILE_CONFIG, &a), "-");
    a.gpu_id = c->gpu[0].id;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_TILE_CONFIG, &a);
    cts_row(c, "counts are clamped", 0, ret, "tile=%u macro=%u", a.num_tile_configs,
            a.num_macro_tile_configs);
    a.tile_config_ptr = 8;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_TILE_CONFIG, &a);
    cts_row(c, "bad pointer", -EFAULT, ret, "tile=%u", a.num_tile_configs);
}

static void misc(struct cts *c)
{
    struct kfd_ioctl_set_trap_handler_args trap = {.gpu_id = CTS_BAD_GPU};
    struct kfd_ioctl_set_scratch_backing_va_args scratch = {.gpu_id = CTS_BAD_GPU};
    struct kfd_ioctl_smi_events_args smi = {.gpuid = CTS_BAD_GPU};
    struct kfd_ioctl_get_available_memory_args available = {.gpu_id = CTS_BAD_GPU, .available = 7};
    long ret;

    cts_open(c);
    cts_row(c, "trap handler of an unknown GPU", -EINVAL,
            cts_request(c, c->kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), "-");
    trap.gpu_id = c->gpu[0].id;
    cts_row(c, "trap handler without a VM", -ESRCH,
            cts_request(c, c->kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), "-");
    cts_row(c, "scratch of an unknown GPU", -EINVAL,
            cts_request(c, c->kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch), "-");
    scratch.gpu_id = c->gpu[0].id;
    cts_row(c, "scratch without a VM", -ENODEV,
            cts_request(c, c->kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch), "-");
    cts_row(c, "SMI events of an unknown GPU", -EINVAL,
            cts_request(c, c->kfd, KFD_CODE_SMI_EVENTS, &smi), "-");
    ret = cts_request(c, c->kfd, KFD_CODE_AVAILABLE_MEMORY, &available);
    cts_row(c, "memory of an unknown GPU", -EINVAL, ret, "available=%llu", available.available);
    available.gpu_id = c->gpu[0].id;
    ret = cts_request(c, c->kfd, KFD_CODE_AVAILABLE_MEMORY, &available);
    cts_row(c, "memory needs no VM", 0, ret, "multiple of 2 MiB: %d",
            available.available % MiB(2) == 0);
    cts_acquire(c, "acquire", 0, c->gpu[0].drm, c->gpu[0].id);
    cts_row(c, "trap handler", 0, cts_request(c, c->kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), "-");
    cts_row(c, "scratch", 0, cts_request(c, c->kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch),
            "-");
}

static void smi(struct cts *c)
{
    struct kfd_ioctl_smi_events_args a = {.gpuid = c->gpu[0].id};
    uint64_t mask = 0;
    char text[64];
    long ret;

    cts_open(c);
    ret = cts_request(c, c->kfd, KFD_CODE_SMI_EVENTS, &a);
    cts_row(c, "a file of events", 0, ret, "%s", ret < 0 ? "-" : "fd");
    if (ret < 0)
        return;
    ret = write((int)a.anon_fd, &mask, sizeof mask);
    cts_row(c, "a mask", 0, ret < 0 ? -errno : ret, "bytes=%ld", ret);
    ret = read((int)a.anon_fd, text, sizeof text);
    cts_row(c, "nothing to read", -EAGAIN, ret < 0 ? -errno : ret, "-");
    cts_close(c, (int)a.anon_fd);
}

static void modes(struct cts *c)
{
    struct kfd_uapi_runtime_enable r = {.mode_mask = 1};
    struct kfd_uapi_dbg_trap trap = {0};
    struct kfd_ioctl_set_xnack_mode_args x = {.xnack_enabled = -1};
    struct {
        struct kfd_ioctl_svm_args head;
        struct kfd_ioctl_svm_attribute attr[4];
    } svm = {.head = {.start_addr = 0x10000000, .size = 4096, .op = 1, .nattr = 4}};
    long enable, again, off;

    cts_open(c);
    enable = cts_request(c, c->kfd, KFD_CODE_RUNTIME_ENABLE, &r);
    cts_row(c, "runtime on", c->minor < 12 ? -ENOTTY : 0, enable, "-");
    again = cts_request(c, c->kfd, KFD_CODE_RUNTIME_ENABLE, &r);
    cts_row(c, "runtime on again", c->minor < 12 ? -ENOTTY : -EBUSY, again, "-");
    r.mode_mask = 0;
    off = cts_request(c, c->kfd, KFD_CODE_RUNTIME_ENABLE, &r);
    cts_row(c, "runtime off", c->minor < 12 ? -ENOTTY : 0, off, "-");
    if (!c->gpus) /* a scheduler without firmware refuses debuggers first */
        cts_row(c, "debugger without a target", c->minor < 12 ? -ENOTTY : -ESRCH,
                cts_request(c, c->kfd, KFD_CODE_DBG_TRAP, &trap), "-");
    cts_row(c, "XNACK query", CTS_ANY, cts_request(c, c->kfd, KFD_CODE_SET_XNACK_MODE, &x), "%d",
            x.xnack_enabled);
    cts_row(c, "SVM with more attributes than the size holds", -EINVAL,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x20, 32), &svm), "-");
    cts_row(c, "SVM", CTS_ANY,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x20, 24 + 32), &svm), "-");
}

static void drm_info_row(struct cts *c, const char *step, long want, uint32_t query, uint32_t size,
                         void *out)
{
    struct drm_amdgpu_info a = {
        .return_pointer = (uintptr_t)out, .return_size = size, .query = query};

    cts_row(c, step, want, cts_request(c, c->gpu[0].drm, DRM_CODE_INFO, &a), "-");
}

static void drm_info(struct cts *c)
{
    struct drm_amdgpu_info_device d = {0};
    struct drm_amdgpu_memory_info m = {0};
    uint32_t works = 0;

    cts_open(c);
    drm_info_row(c, "no size", -EINVAL, AMDGPU_INFO_ACCEL_WORKING, 0, &works);
    drm_info_row(c, "no pointer", -EINVAL, AMDGPU_INFO_ACCEL_WORKING, 4, NULL);
    drm_info_row(c, "bad pointer", -EFAULT, AMDGPU_INFO_ACCEL_WORKING, 4, (void *)8);
    drm_info_row(c, "unknown query", -EINVAL, 0x7777, 4, &works);
    drm_info_row(c, "acceleration", 0, AMDGPU_INFO_ACCEL_WORKING, 4, &works);
    drm_info_row(c, "device", 0, AMDGPU_INFO_DEV_INFO, sizeof d, &d);
    cts_row(c, "device: identity", 0, 0, "id=0x%x rev=0x%x external=0x%x family=%u", d.device_id,
            d.pci_rev, d.external_rev, d.family);
    cts_row(c, "device: shape", 0, 0, "engines=%u arrays=%u cu=%u wave=%u vram_type=%u bits=%u",
            d.num_shader_engines, d.num_shader_arrays_per_engine, d.cu_active_number,
            d.wave_front_size, d.vram_type, d.vram_bit_width);
    cts_row(c, "device: addresses", 0, 0, "0x%llx..0x%llx align=0x%x fragment=0x%x page=0x%x",
            d.virtual_address_offset, d.virtual_address_max, d.virtual_address_alignment,
            d.pte_fragment_size, d.gart_page_size);
    cts_row(c, "device: high addresses", 0, 0, "0x%llx..0x%llx", d.high_va_offset, d.high_va_max);
    drm_info_row(c, "memory", 0, AMDGPU_INFO_MEMORY, sizeof m, &m);
    cts_row(c, "memory: sizes", 0, 0, "vram=0x%llx visible=0x%llx", m.vram.total_heap_size,
            m.cpu_accessible_vram.total_heap_size);
}

const struct cts_case cts_query_cases[] = {
    {"query.apertures", CTS_NO_GPU, apertures},
    {"query.clocks", 0, clocks},
    {"query.memory_policy", 0, memory_policy},
    {"query.tiles", 0, tiles},
    {"query.misc", 0, misc},
    {"query.smi", 0, smi},
    {"query.modes", CTS_NO_GPU, modes},
    {"query.drm_info", 0, drm_info},
    {0},
};
