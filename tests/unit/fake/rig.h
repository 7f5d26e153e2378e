/* SPDX-License-Identifier: MIT */
/* A fake machine with raw requests on it, for tests of its rules. */
#ifndef TESTS_FAKE_RIG_H
#define TESTS_FAKE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kfdirect/fake.h>

#include "kfd/uapi.h"

#define MIB (1ull << 20)
#define VA 0x700000000000ull
#define VRAM_RW (KFD_MEM_VRAM | KFD_MEM_WRITABLE)

/* A process with every VM acquired. */
struct rig {
    struct fake *fake;
    struct kfd_sys *sys;
    uint32_t gpus;
    int kfd;
    int drm[KFD_MAX_DEVICES];
    uint32_t id[KFD_MAX_DEVICES];
};

static inline int rig_open_path(struct rig *r, const char *path)
{
    return r->sys->ops->open_path(r->sys, path, O_RDWR | O_CLOEXEC);
}

static inline int rig_close(struct rig *r, int fd)
{
    return r->sys->ops->close_fd(r->sys, fd);
}

static inline int rig_request(struct rig *r, int fd, unsigned long code, void *arg)
{
    return r->sys->ops->request(r->sys, fd, code, arg);
}

static inline int rig_open_render(struct rig *r, uint32_t gpu)
{
    char path[64];

    /* The built-in machines number render nodes from 128 on. */
    snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + gpu);
    return rig_open_path(r, path);
}

static inline int rig_acquire(struct rig *r, uint32_t gpu, int fd)
{
    struct kfd_ioctl_acquire_vm_args a = {.drm_fd = (uint32_t)fd, .gpu_id = r->id[gpu]};

    return rig_request(r, r->kfd, KFD_CODE_ACQUIRE_VM, &a);
}

/* Devices open, nothing acquired. */
static inline void rig_open(struct rig *r, const char *machine, const char *kernel, uint32_t flags)
{
    struct fake_options o = {
        .size = sizeof(o), .machine = machine, .kernel = kernel, .flags = flags};

    memset(r, 0, sizeof(*r));
    if (fake_create(&o, &r->fake) != 0)
        fail_msg("%s", fake_error_text());
    r->sys = fake_sys(r->fake);
    r->gpus = fake_gpu_count(r->fake);
    r->kfd = rig_open_path(r, "/dev/kfd");
    assert_true(r->kfd >= 0);
    for (uint32_t i = 0; i < r->gpus; i++) {
        r->id[i] = fake_gpu_id(r->fake, i);
        r->drm[i] = rig_open_render(r, i);
        assert_true(r->drm[i] >= 0);
    }
}

static inline void rig_start(struct rig *r, const char *machine, const char *kernel, uint32_t flags)
{
    rig_open(r, machine, kernel, flags);
    for (uint32_t i = 0; i < r->gpus; i++)
        assert_int_equal(rig_acquire(r, i, r->drm[i]), 0);
}

static inline void rig_end(struct rig *r)
{
    for (uint32_t i = 0; i < r->gpus; i++)
        rig_close(r, r->drm[i]);
    rig_close(r, r->kfd);
    fake_destroy(r->fake);
}

static inline int rig_alloc(struct rig *r, uint32_t gpu, uint64_t va, uint64_t size, uint32_t flags,
                            uint64_t *handle)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {
        .va_addr = va, .size = size, .gpu_id = r->id[gpu], .flags = flags};
    int ret = rig_request(r, r->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);

    *handle = a.handle;
    return ret;
}

static inline uint64_t rig_must_alloc(struct rig *r, uint32_t gpu, uint64_t va, uint64_t size,
                                      uint32_t flags)
{
    uint64_t handle;

    assert_int_equal(rig_alloc(r, gpu, va, size, flags, &handle), 0);
    return handle;
}

static inline int rig_free(struct rig *r, uint64_t handle)
{
    struct kfd_ioctl_free_memory_of_gpu_args a = {.handle = handle};

    return rig_request(r, r->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &a);
}

/* done: n_success in and out. */
static inline int rig_map_ids(struct rig *r, uint64_t handle, const uint32_t *ids, uint32_t n,
                              uint32_t *done)
{
    struct kfd_ioctl_map_memory_to_gpu_args a = {.handle = handle,
                                                 .device_ids_array_ptr = (uintptr_t)ids,
                                                 .n_devices = n,
                                                 .n_success = *done};
    int ret = rig_request(r, r->kfd, KFD_CODE_MAP_MEMORY_TO_GPU, &a);

    *done = a.n_success;
    return ret;
}

static inline int rig_unmap_ids(struct rig *r, uint64_t handle, const uint32_t *ids, uint32_t n,
                                uint32_t *done)
{
    struct kfd_ioctl_unmap_memory_from_gpu_args a = {.handle = handle,
                                                     .device_ids_array_ptr = (uintptr_t)ids,
                                                     .n_devices = n,
                                                     .n_success = *done};
    int ret = rig_request(r, r->kfd, KFD_CODE_UNMAP_MEMORY_FROM_GPU, &a);

    *done = a.n_success;
    return ret;
}

static inline int rig_map(struct rig *r, uint64_t handle, uint32_t gpu)
{
    uint32_t done = 0;

    return rig_map_ids(r, handle, &r->id[gpu], 1, &done);
}

static inline int rig_unmap(struct rig *r, uint64_t handle, uint32_t gpu)
{
    uint32_t done = 0;

    return rig_unmap_ids(r, handle, &r->id[gpu], 1, &done);
}

static inline int rig_flush(struct rig *r, uint64_t handle, uint32_t gpu)
{
    uint32_t done = 1;

    return rig_map_ids(r, handle, &r->id[gpu], 1, &done);
}

static inline int rig_export(struct rig *r, uint64_t handle)
{
    struct kfd_uapi_export_dmabuf a = {.handle = handle, .flags = O_CLOEXEC};
    int ret = rig_request(r, r->kfd, KFD_CODE_EXPORT_DMABUF, &a);

    return ret < 0 ? ret : (int)a.dmabuf_fd;
}

static inline int rig_import(struct rig *r, uint32_t gpu, int fd, uint64_t va, uint64_t *handle)
{
    struct kfd_ioctl_import_dmabuf_args a = {
        .va_addr = va, .gpu_id = r->id[gpu], .dmabuf_fd = (uint32_t)fd};
    int ret = rig_request(r, r->kfd, KFD_CODE_IMPORT_DMABUF, &a);

    *handle = a.handle;
    return ret;
}

static inline int rig_prime(struct rig *r, int drm, int fd, uint32_t *gem)
{
    struct drm_prime_handle a = {.fd = fd};
    int ret = rig_request(r, drm, DRM_CODE_PRIME_FD_TO_HANDLE, &a);

    *gem = a.handle;
    return ret;
}

static inline int rig_gem_close(struct rig *r, int drm, uint32_t gem)
{
    struct drm_gem_close a = {.handle = gem};

    return rig_request(r, drm, DRM_CODE_GEM_CLOSE, &a);
}

static inline int rig_va(struct rig *r, int drm, uint32_t op, uint32_t gem, uint64_t va,
                         uint64_t offset, uint64_t size, uint32_t flags)
{
    struct kfd_uapi_gem_va a = {.handle = gem,
                                .operation = op,
                                .flags = flags,
                                .va_address = va,
                                .offset_in_bo = offset,
                                .map_size = size};

    return rig_request(r, drm, DRM_CODE_GEM_VA_OLD, &a);
}

/* A GEM handle of a KFD handle's memory on a device. */
static inline uint32_t rig_gem(struct rig *r, uint64_t handle, uint32_t gpu)
{
    int fd = rig_export(r, handle);
    uint32_t gem;

    assert_true(fd >= 0);
    assert_int_equal(rig_prime(r, r->drm[gpu], fd, &gem), 0);
    rig_close(r, fd);
    return gem;
}

static inline uint64_t rig_available(struct rig *r, uint32_t gpu)
{
    struct kfd_ioctl_get_available_memory_args a = {.gpu_id = r->id[gpu]};

    assert_int_equal(rig_request(r, r->kfd, KFD_CODE_AVAILABLE_MEMORY, &a), 0);
    return a.available;
}

static inline enum fake_fault_reason rig_fault(struct rig *r, uint32_t gpu, uint64_t va,
                                               enum fake_access access)
{
    struct fake_translation t;

    fake_gpu_translate(r->fake, gpu, va, access, &t);
    return t.reason;
}

#endif
