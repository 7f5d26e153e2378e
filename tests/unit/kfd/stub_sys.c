/* SPDX-License-Identifier: MIT */
#include "stub_sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/topology.h"

static struct stub *stub_of(struct kfd_sys *sys)
{
    return (struct stub *)sys;
}

static int new_fd(struct stub *stub, int file, int gpu, int min)
{
    for (int fd = min; fd < STUB_MAX_FDS; fd++) {
        if (stub->fds[fd].file)
            continue;
        stub->fds[fd].file = file;
        stub->fds[fd].gpu = gpu;
        stub->open_fds++;
        stub->opened++;
        return fd;
    }
    return -EMFILE;
}

static int open_file(struct stub *stub, int gpu)
{
    int min = STUB_FIRST_FD;

    if (stub->low_fds > 0) {
        stub->low_fds--;
        min = 0;
    }
    return new_fd(stub, ++stub->next_file, gpu, min);
}

static int stub_open_path(struct kfd_sys *sys, const char *path, int flags)
{
    struct stub *stub = stub_of(sys);
    char node[64];

    if (strcmp(path, "/dev/kfd") == 0)
        return stub->kfd_error ? stub->kfd_error : open_file(stub, -1);
    for (uint32_t i = 0; i < stub->gpu_count; i++) {
        snprintf(node, sizeof(node), "/dev/dri/renderD%u", stub->gpus[i].minor);
        if (strcmp(path, node) == 0)
            return stub->gpus[i].open_error ? stub->gpus[i].open_error : open_file(stub, (int)i);
    }
    return -ENOENT;
}

static int stub_close_fd(struct kfd_sys *sys, int fd)
{
    struct stub *stub = stub_of(sys);

    assert_in_range(fd, 0, STUB_MAX_FDS - 1);
    assert_int_not_equal(stub->fds[fd].file, 0);
    stub->fds[fd].file = 0;
    stub->open_fds--;
    return 0;
}

static int stub_dup_fd(struct kfd_sys *sys, int fd, int min)
{
    struct stub *stub = stub_of(sys);

    assert_true(min <= STUB_FIRST_FD);
    return new_fd(stub, stub->fds[fd].file, stub->fds[fd].gpu, STUB_FIRST_FD);
}

static int answer_apertures(struct stub *stub,
                            struct kfd_ioctl_get_process_apertures_new_args *args)
{
    struct kfd_process_device_apertures *at =
        (void *)(uintptr_t)args->kfd_process_device_apertures_ptr;
    uint32_t n = 0;

    if (args->num_of_nodes > stub->gpu_count + 1)
        return -EINVAL;
    for (uint32_t i = 0; i < stub->gpu_count; i++) {
        if (stub->gpus[i].no_aperture)
            continue;
        if (n < args->num_of_nodes)
            at[n] = (struct kfd_process_device_apertures){
                .gpu_id = stub->gpus[i].gpu_id,
                .gpuvm_base = stub->gpus[i].va_base,
                .gpuvm_limit = stub->gpus[i].va_limit,
            };
        n++;
    }
    args->num_of_nodes = n;
    return 0;
}

static int answer_acquire(struct stub *stub, const struct kfd_ioctl_acquire_vm_args *args)
{
    for (uint32_t i = 0; i < stub->gpu_count; i++) {
        struct stub_gpu *gpu = &stub->gpus[i];
        int file = stub->fds[args->drm_fd].file;

        if (gpu->gpu_id != args->gpu_id)
            continue;
        if (gpu->acquire_error)
            return gpu->acquire_error;
        if (gpu->acquired_file && gpu->acquired_file != file)
            return -EBUSY;
        gpu->acquired_file = file;
        return 0;
    }
    return -EINVAL;
}

static int answer_kfd(struct stub *stub, unsigned long request, void *arg)
{
    switch (_IOC_NR(request)) {
    case KFD_NR_GET_VERSION:
        *(struct kfd_ioctl_get_version_args *)arg = (struct kfd_ioctl_get_version_args){
            .major_version = stub->major,
            .minor_version = stub->minor,
        };
        return 0;
    case KFD_NR_GET_PROCESS_APERTURES_NEW:
        return answer_apertures(stub, arg);
    case KFD_NR_ACQUIRE_VM:
        return answer_acquire(stub, arg);
    default:
        return -ENOTTY;
    }
}

static int answer_drm(struct stub *stub, const struct stub_gpu *gpu, unsigned long request,
                      void *arg)
{
    struct drm_version *version = arg;
    struct drm_amdgpu_info *info = arg;

    switch (_IOC_NR(request)) {
    case DRM_NR_VERSION:
        version->version_major = 3;
        version->version_minor = (int)gpu->drm_minor;
        if (version->name)
            strncpy(version->name, gpu->driver, version->name_len);
        version->name_len = strlen(gpu->driver);
        return 0;
    case DRM_NR_INFO:
        if (info->query == AMDGPU_INFO_DEV_INFO) {
            struct drm_amdgpu_info_device chip = {
                .device_id = gpu->drm_device_id,
                .ids_flags = gpu->ids_flags,
            };

            memcpy((void *)(uintptr_t)info->return_pointer, &chip,
                   info->return_size < sizeof(chip) ? info->return_size : sizeof(chip));
            return 0;
        }
        return -EINVAL;
    default:
        return -EINVAL;
    }
}

static int stub_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct stub *stub = stub_of(sys);
    int ret;

    stub->requests++;
    if (stub->request && stub->request(stub, fd, request, arg, &ret))
        return ret;
    if (fd < 0 || fd >= STUB_MAX_FDS || !stub->fds[fd].file)
        return -EBADF;
    if (stub->fds[fd].gpu < 0)
        return answer_kfd(stub, request, arg);
    return answer_drm(stub, &stub->gpus[stub->fds[fd].gpu], request, arg);
}

static int stub_map_pages(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                          uint64_t offset, void **out)
{
    *out = addr;
    return 0;
}

static int stub_pages(struct kfd_sys *sys, void *addr, size_t size)
{
    return 0;
}

static int stub_pages_how(struct kfd_sys *sys, void *addr, size_t size, int how)
{
    return 0;
}

static struct stub_file *find_file(struct stub *stub, const char *path)
{
    for (uint32_t i = 0; i < stub->file_count; i++) {
        if (strcmp(stub->files[i].path, path) == 0)
            return &stub->files[i];
    }
    return NULL;
}

static int stub_read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct stub *stub = stub_of(sys);
    const struct stub_file *file;

    if (stub->reading)
        stub->reading(stub, path);
    file = find_file(stub, path);
    if (!file)
        return -ENOENT;
    if (file->error)
        return file->error;
    if (strlen(file->text) >= size)
        return -EFBIG;
    strcpy(buf, file->text);
    return (int)strlen(buf);
}

/* The component of a file's path that comes after a folder's, or NULL. */
static const char *entry_below(const char *file, const char *path, int *len)
{
    size_t n = strlen(path);

    if (strncmp(file, path, n) != 0 || file[n] != '/')
        return NULL;
    *len = (int)strcspn(file + n + 1, "/");
    return file + n + 1;
}

/* The distinct entries of a folder, last made first, so that no caller relies on an order. */
static int stub_list_dir(struct kfd_sys *sys, const char *path,
                         int (*each)(void *arg, const char *name), void *arg)
{
    struct stub *stub = stub_of(sys);
    int ret = -ENOENT;

    for (uint32_t i = stub->file_count; i-- > 0;) {
        int len, other_len;
        const char *entry = entry_below(stub->files[i].path, path, &len);
        char name[64];
        bool seen = false;

        if (!entry)
            continue;
        if (ret == -ENOENT)
            ret = 0;
        for (uint32_t k = i + 1; k < stub->file_count && !seen; k++) {
            const char *other = entry_below(stub->files[k].path, path, &other_len);

            seen = other && other_len == len && memcmp(other, entry, (size_t)len) == 0;
        }
        if (seen)
            continue;
        snprintf(name, sizeof(name), "%.*s", len, entry);
        ret = each(arg, name);
        if (ret)
            return ret;
    }
    return ret;
}

static int stub_stat_path(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct stub *stub = stub_of(sys);
    unsigned minor;
    int fd;

    *out = stub->node_stat;
    if (sscanf(path, "/proc/self/fd/%d", &fd) == 1) {
        if (fd < 0 || fd >= STUB_MAX_FDS || !stub->fds[fd].file)
            return -ENOENT;
        if (stub->fds[fd].other)
            out->device_major = 1;
        if (stub->fds[fd].other || stub->fds[fd].gpu < 0)
            return 0;
        minor = stub->gpus[stub->fds[fd].gpu].minor;
    } else if (sscanf(path, "/dev/dri/renderD%u", &minor) != 1) {
        return 0;
    }
    for (uint32_t i = 0; i < stub->gpu_count; i++) {
        if (stub->gpus[i].minor == minor)
            out->device_minor = stub->gpus[i].device_minor;
    }
    out->device_major = 226;
    return 0;
}

static int stub_product_name(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    snprintf(buf, size, "Stub Accelerator");
    return 0;
}

static struct kfd_sys_state **stub_state(struct kfd_sys *sys)
{
    struct stub *stub = stub_of(sys);

    return stub->keeps ? &stub->state : NULL;
}

static const struct kfd_sys_ops stub_ops = {
    .open_path = stub_open_path,
    .close_fd = stub_close_fd,
    .dup_fd = stub_dup_fd,
    .request = stub_request,
    .map_pages = stub_map_pages,
    .unmap_pages = stub_pages,
    .protect_pages = stub_pages_how,
    .advise_pages = stub_pages_how,
    .read_file = stub_read_file,
    .list_dir = stub_list_dir,
    .stat_path = stub_stat_path,
    .product_name = stub_product_name,
    .state = stub_state,
};

static struct stub_file *file_at(struct stub *stub, const char *path)
{
    struct stub_file *file;
    char full[256];

    snprintf(full, sizeof(full), "%s%s%s", path[0] == '/' ? "" : KFD_TOPOLOGY_PATH,
             path[0] == '/' ? "" : "/", path);
    file = find_file(stub, full);
    if (!file) {
        stub->files = realloc(stub->files, (stub->file_count + 1) * sizeof(*stub->files));
        assert_non_null(stub->files);
        file = &stub->files[stub->file_count++];
        *file = (struct stub_file){.path = strdup(full)};
    }
    free(file->text);
    file->text = NULL;
    file->error = 0;
    return file;
}

void stub_set_file(struct stub *stub, const char *path, const char *text)
{
    file_at(stub, path)->text = strdup(text);
}

void stub_set_error(struct stub *stub, const char *path, int error)
{
    file_at(stub, path)->error = error;
}

void stub_write_gpu(struct stub *stub, uint32_t i)
{
    const struct stub_gpu *gpu = &stub->gpus[i];
    char path[64], text[512];

    snprintf(path, sizeof(path), "nodes/%u/gpu_id", gpu->node);
    snprintf(text, sizeof(text), "%u\n", gpu->gpu_id);
    stub_set_file(stub, path, text);
    snprintf(path, sizeof(path), "nodes/%u/name", gpu->node);
    stub_set_file(stub, path, "ip discovery\n");
    snprintf(path, sizeof(path), "nodes/%u/properties", gpu->node);
    snprintf(text, sizeof(text),
             "cpu_cores_count 0\nsimd_count 1216\nmax_waves_per_simd 8\nlds_size_in_kb 64\n"
             "wave_front_size 64\narray_count 32\nsimd_per_cu 4\ngfx_target_version 90402\n"
             "vendor_id 4098\ndevice_id %u\nlocation_id %u\ndomain 1\ndrm_render_minor %u\n"
             "hive_id 18446744073709551615\nmax_engine_clk_fcompute 2100\n"
             "capability 746037888\nunique_id 77\nnum_xcc 8\nmax_engine_clk_ccompute 3000\n",
             gpu->device_id, (i + 1) << 8, gpu->minor);
    stub_set_file(stub, path, text);
}

void stub_write_bank(struct stub *stub, uint32_t i, uint32_t heap, uint64_t size)
{
    char path[96], text[160];

    snprintf(path, sizeof(path), "nodes/%u/mem_banks/0/properties", stub->gpus[i].node);
    snprintf(text, sizeof(text),
             "heap_type %u\nsize_in_bytes %llu\nflags 0\nwidth 8192\nmem_clk_max 1300\n", heap,
             (unsigned long long)size);
    stub_set_file(stub, path, text);
}

void stub_write_link(struct stub *stub, uint32_t node, const char *kind, uint32_t number,
                     uint32_t type, uint32_t to, uint32_t flags)
{
    char path[96], text[256];

    snprintf(path, sizeof(path), "nodes/%u/%s/%u/properties", node, kind, number);
    snprintf(text, sizeof(text),
             "type %u\nversion_major 0\nversion_minor 0\nnode_from %u\nnode_to %u\nweight 15\n"
             "min_bandwidth 50000\nmax_bandwidth 100000\nflags %u\n",
             type, node, to, flags);
    stub_set_file(stub, path, text);
}

struct stub *stub_new(uint32_t gpus)
{
    struct stub *stub = calloc(1, sizeof(*stub));

    assert_non_null(stub);
    assert_true(gpus <= STUB_MAX_GPUS);
    stub->base.ops = &stub_ops;
    stub->major = 1;
    stub->minor = 17;
    stub->node_stat = (struct kfd_sys_stat){.mode = 0020660, .device_major = 235};
    stub_set_file(stub, "generation_id", "2\n");
    stub_set_file(stub, "nodes/0/gpu_id", "0\n");
    stub_set_file(stub, "nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    stub->gpu_count = gpus;
    for (uint32_t i = 0; i < gpus; i++) {
        stub->gpus[i] = (struct stub_gpu){
            .node = i + 1,
            .gpu_id = 1000 + i,
            .minor = 128 + i,
            .device_minor = 128 + i,
            .device_id = 0x74a1,
            .drm_device_id = 0x74a1,
            .drm_minor = 61,
            .driver = "amdgpu",
            .va_base = 0x10000,
            .va_limit = 0x7fffffffffff,
        };
        stub_write_gpu(stub, i);
        stub_write_bank(stub, i, 1, UINT64_C(206141652992));
        stub_write_link(stub, i + 1, "io_links", 0, 2, 0, 1);
    }
    return stub;
}

void stub_free(struct stub *stub)
{
    if (stub->state) {
        stub->state->release(&stub->base, stub->state);
        stub->state = NULL;
    }
    assert_int_equal(stub->open_fds, 0);
    for (uint32_t i = 0; i < stub->file_count; i++) {
        free(stub->files[i].path);
        free(stub->files[i].text);
    }
    free(stub->files);
    free(stub);
}
