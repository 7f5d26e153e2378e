/* SPDX-License-Identifier: MIT */
/* GEM_VA's timeline points, and page tables that the copy engine writes later. */
#include "rig.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RW (KFD_VA_READ | KFD_VA_WRITE)

static uint32_t create(struct rig *r)
{
    struct drm_syncobj_create a = {0};

    assert_int_equal(rig_request(r, r->drm[0], DRM_CODE_SYNCOBJ_CREATE, &a), 0);
    return a.handle;
}

static int64_t in_ms(int64_t ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ms * 1000000;
}

static int wait_in(struct rig *r, int file, uint32_t handle, uint64_t point, uint32_t flags,
                   int64_t ms)
{
    struct drm_syncobj_timeline_wait a = {.handles = (uintptr_t)&handle,
                                          .points = (uintptr_t)&point,
                                          .timeout_nsec = in_ms(ms),
                                          .count_handles = 1,
                                          .flags = flags};

    return rig_request(r, r->drm[file], DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &a);
}

static int wait_point(struct rig *r, uint32_t handle, uint64_t point, uint32_t flags, int64_t ms)
{
    return wait_in(r, 0, handle, point, flags, ms);
}

static int va(struct rig *r, uint32_t op, uint32_t gem, uint32_t sync, uint64_t point)
{
    struct kfd_uapi_gem_va a = {.handle = gem,
                                .operation = op,
                                .flags = RW,
                                .va_address = VA,
                                .map_size = MIB,
                                .vm_timeline_point = point,
                                .vm_timeline_syncobj_out = sync};

    return rig_request(r, r->drm[0], DRM_CODE_GEM_VA, &a);
}

static void test_gem_va_signals_its_point(void **state)
{
    uint32_t sync, gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "current", 0);
    gem = rig_gem(&r, rig_must_alloc(&r, 0, 0, MIB, VRAM_RW), 0);
    sync = create(&r);
    assert_int_equal(sync, 1);
    assert_int_equal(wait_point(&r, sync, 1, 0, 0), -EINVAL);
    assert_int_equal(va(&r, AMDGPU_VA_OP_MAP, gem, sync, 5), 0);
    assert_int_equal(wait_point(&r, sync, 5, 0, 0), 0);
    assert_int_equal(wait_point(&r, sync, 3, 0, 0), 0);
    assert_int_equal(wait_point(&r, sync, 6, 0, 0), -EINVAL);
    assert_int_equal(wait_point(&r, sync, 6, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, 3), -ETIME);
    /* An unknown object is found before anything changes. */
    assert_int_equal(va(&r, AMDGPU_VA_OP_UNMAP, gem, sync + 1, 7), -ENOENT);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    rig_end(&r);
}

static void test_an_older_kernel_ignores_the_tail(void **state)
{
    uint32_t sync, gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    gem = rig_gem(&r, rig_must_alloc(&r, 0, 0, MIB, VRAM_RW), 0);
    sync = create(&r);
    assert_int_equal(va(&r, AMDGPU_VA_OP_MAP, gem, 99, 5), 0);
    assert_int_equal(va(&r, AMDGPU_VA_OP_REPLACE, gem, sync, 5), 0);
    /* So a wait for the point has nothing to wait for. */
    assert_int_equal(wait_point(&r, sync, 5, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, 3), -ETIME);
    assert_int_equal(wait_point(&r, sync, 5, 0, 3), -EINVAL);
    rig_end(&r);
}

static void test_the_copy_engine_is_later_than_the_request(void **state)
{
    uint32_t sync, gem;
    uint64_t other;
    struct rig r;

    rig_start(&r, "navi31-smallbar", "current", 0);
    gem = rig_gem(&r, rig_must_alloc(&r, 0, 0, MIB, VRAM_RW), 0);
    sync = create(&r);
    assert_int_equal(va(&r, AMDGPU_VA_OP_MAP, gem, sync, 1), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(wait_point(&r, sync, 1, 0, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(va(&r, AMDGPU_VA_OP_UNMAP, gem, sync, 2), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    /* Another GEM_VA only queues behind it, and the flush does not wait; a MAP of KFD's does. */
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA + MIB, 0, MIB, RW), 0);
    other = rig_must_alloc(&r, 0, VA + 64 * MIB, 4096, KFD_MEM_GTT | KFD_MEM_WRITABLE);
    assert_int_equal(rig_flush(&r, other, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_map(&r, other, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_fault(&r, 0, VA + MIB, FAKE_READ), FAKE_FAULT_NONE);
    /* Closing with work under way. */
    assert_int_equal(va(&r, AMDGPU_VA_OP_MAP, gem, sync, 3), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(wait_point(&r, sync, 3, 0, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    rig_end(&r);
}

static void test_errors_of_sync_objects(void **state)
{
    struct drm_syncobj_create c = {.flags = 2};
    struct drm_syncobj_destroy d = {.handle = 7};
    struct drm_syncobj_timeline_wait w = {.count_handles = 0};
    uint32_t sync;
    struct rig r;

    rig_start(&r, "mi300x:1", "current", 0);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_CREATE, &c), -EINVAL);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_DESTROY, &d), -EINVAL);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &w), 0);
    w.count_handles = 1;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &w), -EFAULT);
    assert_int_equal(wait_point(&r, 7, 0, 0, 0), -ENOENT);
    c.flags = DRM_SYNCOBJ_CREATE_SIGNALED;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_CREATE, &c), 0);
    assert_int_equal(wait_point(&r, c.handle, 0, 0, 0), 0);
    sync = create(&r);
    d.handle = sync;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_DESTROY, &d), 0);
    assert_int_equal(create(&r), sync);
    rig_end(&r);
}

static int share(struct rig *r, int file, uint32_t handle)
{
    struct drm_syncobj_handle a = {.handle = handle, .fd = -1};

    assert_int_equal(rig_request(r, r->drm[file], DRM_CODE_SYNCOBJ_HANDLE_TO_FD, &a), 0);
    assert_true(fcntl(a.fd, F_GETFD) & FD_CLOEXEC);
    return a.fd;
}

static int take(struct rig *r, int file, int fd, uint32_t *handle)
{
    struct drm_syncobj_handle a = {.fd = fd};
    int err = rig_request(r, r->drm[file], DRM_CODE_SYNCOBJ_FD_TO_HANDLE, &a);

    *handle = a.handle;
    return err;
}

/* The other file's name waits for the first file's VM, and for no other. */
static void test_an_object_of_two_files_is_one_object(void **state)
{
    struct drm_syncobj_destroy d = {.handle = 0};
    uint32_t sync, other, again, gem;
    struct rig r;
    int fd, copy;

    rig_start(&r, "navi31-smallbar:2", "current", 0);
    gem = rig_gem(&r, rig_must_alloc(&r, 0, 0, MIB, VRAM_RW), 0);
    sync = create(&r);
    fd = share(&r, 0, sync);
    assert_int_equal(take(&r, 1, fd, &other), 0);
    copy = dup(fd);
    close(fd);
    assert_int_equal(take(&r, 1, copy, &again), 0);
    assert_int_not_equal(again, other);
    assert_int_equal(va(&r, AMDGPU_VA_OP_MAP, gem, sync, 5), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(wait_in(&r, 1, other, 5, 0, 0), 0);
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(wait_in(&r, 1, other, 6, 0, 0), -EINVAL);
    /* It lives as long as any of its names. */
    d.handle = sync;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_DESTROY, &d), 0);
    assert_int_equal(wait_in(&r, 1, again, 5, 0, 0), 0);
    assert_int_equal(take(&r, 0, copy, &sync), 0);
    close(copy);
    assert_int_equal(wait_point(&r, sync, 5, 0, 0), 0);
    rig_end(&r);
}

static void test_what_is_no_sync_object_is_einval(void **state)
{
    struct drm_syncobj_handle a = {.handle = 9};
    uint32_t handle;
    struct rig r;
    int ends[2];

    rig_start(&r, "mi300x:1", "current", 0);
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_HANDLE_TO_FD, &a), -EINVAL);
    a.handle = create(&r);
    a.flags = 2;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_HANDLE_TO_FD, &a), -EINVAL);
    a.flags = 0;
    a.pad = 1;
    assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_SYNCOBJ_HANDLE_TO_FD, &a), -EINVAL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(take(&r, 0, ends[0], &handle), -EINVAL);
    assert_int_equal(take(&r, 0, r.drm[0], &handle), -EINVAL);
    assert_int_equal(take(&r, 0, -1, &handle), -EINVAL);
    close(ends[0]);
    close(ends[1]);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gem_va_signals_its_point),
        cmocka_unit_test(test_an_older_kernel_ignores_the_tail),
        cmocka_unit_test(test_the_copy_engine_is_later_than_the_request),
        cmocka_unit_test(test_errors_of_sync_objects),
        cmocka_unit_test(test_an_object_of_two_files_is_one_object),
        cmocka_unit_test(test_what_is_no_sync_object_is_einval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
