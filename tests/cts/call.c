/* SPDX-License-Identifier: MIT */
/* One function per request, each with its row. */
#include "cts.h"

long cts_request(struct cts *c, int fd, unsigned long code, void *arg)
{
    return c->sys->ops->request(c->sys, fd, code, arg);
}

uint64_t cts_alloc_mmap(struct cts *c, const char *step, long want, uint32_t gpu, uint64_t va,
                        uint64_t size, uint32_t flags, uint64_t *mmap_offset)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .va_addr = va,
        .size = size,
        .handle = 0x1111,
        .mmap_offset = *mmap_offset,
        .gpu_id = gpu < c->gpus ? c->gpu[gpu].id : gpu,
        .flags = flags,
    };
    long ret = cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);
    bool kept = a.handle == 0x1111 && a.mmap_offset == *mmap_offset;

    cts_row(c, step, want, ret, "handle=%s mmap_offset=%s",
            ret < 0 && kept ? "kept" : cts_handle_text(c, a.handle),
            ret < 0 && kept ? "kept"
            : a.mmap_offset ? "set"
                            : "0");
    *mmap_offset = a.mmap_offset;
    return ret < 0 ? 0 : a.handle;
}

uint64_t cts_alloc(struct cts *c, const char *step, long want, uint32_t gpu, uint64_t va,
                   uint64_t size, uint32_t flags)
{
    uint64_t offset = 0;

    return cts_alloc_mmap(c, step, want, gpu, va, size, flags, &offset);
}

void cts_free(struct cts *c, const char *step, long want, uint64_t handle)
{
    struct kfd_ioctl_free_memory_of_gpu_args a = {.handle = handle};

    cts_row(c, step, want, cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &a), "-");
}

uint32_t cts_map(struct cts *c, const char *step, long want, uint64_t handle, uint32_t done,
                 const uint32_t *ids, uint32_t n)
{
    struct kfd_ioctl_map_memory_to_gpu_args a = {
        .handle = handle,
        .device_ids_array_ptr = (uintptr_t)ids,
        .n_devices = n,
        .n_success = done,
    };
    long ret = cts_request(c, c->kfd, KFD_CODE_MAP_MEMORY_TO_GPU, &a);

    cts_row(c, step, want, ret, "n_success=%u of %u", a.n_success, a.n_devices);
    return a.n_success;
}

uint32_t cts_unmap(struct cts *c, const char *step, long want, uint64_t handle, uint32_t done,
                   const uint32_t *ids, uint32_t n)
{
    struct kfd_ioctl_unmap_memory_from_gpu_args a = {
        .handle = handle,
        .device_ids_array_ptr = (uintptr_t)ids,
        .n_devices = n,
        .n_success = done,
    };
    long ret = cts_request(c, c->kfd, KFD_CODE_UNMAP_MEMORY_FROM_GPU, &a);

    cts_row(c, step, want, ret, "n_success=%u of %u", a.n_success, a.n_devices);
    return a.n_success;
}

void cts_flush(struct cts *c, const char *step, long want, uint64_t handle, const uint32_t *ids,
               uint32_t n)
{
    cts_map(c, step, want, handle, n, ids, n);
}

int cts_export(struct cts *c, const char *step, long want, uint64_t handle)
{
    struct kfd_uapi_export_dmabuf a = {
        .handle = handle, .flags = O_CLOEXEC, .dmabuf_fd = (uint32_t)-1};
    long ret = cts_request(c, c->kfd, KFD_CODE_EXPORT_DMABUF, &a);
    int fd = ret < 0 ? -1 : (int)a.dmabuf_fd;

    cts_row(c, step, want, ret, "%s", fd >= 0 ? "fd" : "-");
    return fd;
}

uint64_t cts_import(struct cts *c, const char *step, long want, uint32_t gpu_id, int fd,
                    uint64_t va)
{
    struct kfd_ioctl_import_dmabuf_args a = {
        .va_addr = va,
        .handle = 0x1111,
        .gpu_id = gpu_id,
        .dmabuf_fd = (uint32_t)fd,
    };
    long ret = cts_request(c, c->kfd, KFD_CODE_IMPORT_DMABUF, &a);

    cts_row(c, step, want, ret, "handle=%s",
            a.handle == 0x1111 ? "kept" : cts_handle_text(c, a.handle));
    return ret < 0 ? 0 : a.handle;
}

void cts_info(struct cts *c, const char *step, long want, int fd)
{
    struct kfd_ioctl_get_dmabuf_info_args a = {.dmabuf_fd = (uint32_t)fd};
    long ret = cts_request(c, c->kfd, KFD_CODE_GET_DMABUF_INFO, &a);

    cts_row(c, step, want, ret, "size=0x%llx owner=%s flags=0x%x metadata=%u",
            (unsigned long long)a.size, cts_gpu_text(c, a.gpu_id), a.flags, a.metadata_size);
}

void cts_acquire(struct cts *c, const char *step, long want, int fd, uint32_t gpu_id)
{
    struct kfd_ioctl_acquire_vm_args a = {.drm_fd = (uint32_t)fd, .gpu_id = gpu_id};

    cts_row(c, step, want, cts_request(c, c->kfd, KFD_CODE_ACQUIRE_VM, &a), "-");
}

uint64_t cts_available(struct cts *c, uint32_t gpu)
{
    struct kfd_ioctl_get_available_memory_args a = {.gpu_id = c->gpu[gpu].id};

    return cts_request(c, c->kfd, KFD_CODE_AVAILABLE_MEMORY, &a) < 0 ? 0 : a.available;
}

uint32_t cts_prime(struct cts *c, const char *step, long want, int drm, int fd)
{
    struct drm_prime_handle a = {.fd = fd};
    long ret = cts_request(c, drm, DRM_CODE_PRIME_FD_TO_HANDLE, &a);

    cts_row(c, step, want, ret, "gem=%u", ret < 0 ? 0 : a.handle);
    return ret < 0 ? 0 : a.handle;
}

int cts_prime_export(struct cts *c, const char *step, long want, int drm, uint32_t gem,
                     uint32_t flags)
{
    struct drm_prime_handle a = {.handle = gem, .flags = flags, .fd = -1};
    long ret = cts_request(c, drm, DRM_CODE_PRIME_HANDLE_TO_FD, &a);

    cts_row(c, step, want, ret, "%s", ret < 0 ? "-" : "fd");
    return ret < 0 ? -1 : a.fd;
}

void cts_gem_close(struct cts *c, const char *step, long want, int drm, uint32_t gem)
{
    struct drm_gem_close a = {.handle = gem};

    cts_row(c, step, want, cts_request(c, drm, DRM_CODE_GEM_CLOSE, &a), "-");
}

uint32_t cts_gem_create(struct cts *c, const char *step, long want, int drm, uint64_t size,
                        uint64_t domains)
{
    union drm_amdgpu_gem_create a = {.in = {.bo_size = size, .domains = domains}};
    long ret;

    if (domains & AMDGPU_GEM_DOMAIN_VRAM)
        a.in.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
    ret = cts_request(c, drm, DRM_CODE_GEM_CREATE, &a);
    cts_row(c, step, want, ret, "gem=%u", ret < 0 ? 0 : a.out.handle);
    return ret < 0 ? 0 : a.out.handle;
}

uint64_t cts_gem_mmap(struct cts *c, const char *step, long want, int drm, uint32_t gem)
{
    union drm_amdgpu_gem_mmap a = {.in = {.handle = gem}};
    long ret = cts_request(c, drm, DRM_CODE_GEM_MMAP, &a);

    cts_row(c, step, want, ret, "offset=%s", ret < 0 ? "-" : "set");
    return ret < 0 ? 0 : a.out.addr_ptr;
}

void cts_gem_va(struct cts *c, const char *step, long want, int drm, uint32_t gem, uint32_t op,
                uint64_t va, uint64_t offset, uint64_t size, uint32_t flags)
{
    struct kfd_uapi_gem_va a = {
        .handle = gem,
        .operation = op,
        .flags = flags,
        .va_address = va,
        .offset_in_bo = offset,
        .map_size = size,
    };

    cts_row(c, step, want, cts_request(c, drm, DRM_CODE_GEM_VA_OLD, &a), "-");
}

void *cts_mmap(struct cts *c, const char *step, long want, int fd, uint64_t offset, size_t size,
               int prot, int flags)
{
    void *p = NULL;
    long ret = c->sys->ops->map_pages(c->sys, NULL, size, prot, flags, fd, offset, &p);

    cts_row(c, step, want, ret, "-");
    return ret < 0 ? NULL : p;
}

void cts_munmap(struct cts *c, void *p, size_t size)
{
    if (p)
        c->sys->ops->unmap_pages(c->sys, p, size);
}

void cts_close(struct cts *c, int fd)
{
    if (fd >= 0)
        c->sys->ops->close_fd(c->sys, fd);
}
