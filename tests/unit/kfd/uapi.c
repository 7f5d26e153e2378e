/* SPDX-License-Identifier: MIT */
/* Our numbers against the system's headers, for every request that they know. The layouts that they
 * lack are asserted in uapi.c when it is compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>
#include "kfd/uapi.h"

#define KFD(name)                                           \
    {                                                       \
#name, (uint32_t)KFD_CODE_##name, AMDKFD_IOC_##name \
    }
#define KFD_AS(name, theirs)                                  \
    {                                                         \
#name, (uint32_t)KFD_CODE_##name, AMDKFD_IOC_##theirs \
    }
#define DRM(name)                                          \
    {                                                      \
#name, (uint32_t)DRM_CODE_##name, DRM_IOCTL_##name \
    }
#define AMDGPU(name)                                              \
    {                                                             \
#name, (uint32_t)DRM_CODE_##name, DRM_IOCTL_AMDGPU_##name \
    }

static const struct {
    const char *name;
    uint32_t ours, theirs;
} codes[] = {
    KFD(GET_VERSION),
    KFD(DESTROY_QUEUE),
    KFD(SET_MEMORY_POLICY),
    KFD(GET_CLOCK_COUNTERS),
    KFD(GET_PROCESS_APERTURES),
    KFD(UPDATE_QUEUE),
    KFD(CREATE_EVENT),
    KFD(DESTROY_EVENT),
    KFD(SET_EVENT),
    KFD(RESET_EVENT),
    KFD(WAIT_EVENTS),
    KFD_AS(DBG_REGISTER, DBG_REGISTER_DEPRECATED),
    KFD_AS(DBG_UNREGISTER, DBG_UNREGISTER_DEPRECATED),
    KFD_AS(DBG_ADDRESS_WATCH, DBG_ADDRESS_WATCH_DEPRECATED),
    KFD_AS(DBG_WAVE_CONTROL, DBG_WAVE_CONTROL_DEPRECATED),
    KFD(SET_SCRATCH_BACKING_VA),
    KFD(GET_TILE_CONFIG),
    KFD(SET_TRAP_HANDLER),
    KFD(GET_PROCESS_APERTURES_NEW),
    KFD(ACQUIRE_VM),
    KFD(ALLOC_MEMORY_OF_GPU),
    KFD(FREE_MEMORY_OF_GPU),
    KFD(MAP_MEMORY_TO_GPU),
    KFD(UNMAP_MEMORY_FROM_GPU),
    KFD(SET_CU_MASK),
    KFD(GET_QUEUE_WAVE_STATE),
    KFD(GET_DMABUF_INFO),
    KFD(IMPORT_DMABUF),
    KFD(ALLOC_QUEUE_GWS),
    KFD(SMI_EVENTS),
    KFD(SVM),
    KFD(SET_XNACK_MODE),
    KFD(CRIU_OP),
    KFD(AVAILABLE_MEMORY),
#ifdef AMDKFD_IOC_EXPORT_DMABUF
    KFD(EXPORT_DMABUF),
#endif
#ifdef AMDKFD_IOC_RUNTIME_ENABLE
    KFD(RUNTIME_ENABLE),
#endif
#ifdef AMDKFD_IOC_DBG_TRAP
    KFD(DBG_TRAP),
#endif
    DRM(VERSION),
    DRM(GET_CLIENT),
    DRM(GEM_CLOSE),
    DRM(GET_CAP),
    DRM(PRIME_HANDLE_TO_FD),
    DRM(PRIME_FD_TO_HANDLE),
    AMDGPU(GEM_CREATE),
    AMDGPU(GEM_MMAP),
    AMDGPU(CTX),
    AMDGPU(BO_LIST),
    AMDGPU(CS),
    AMDGPU(INFO),
    AMDGPU(GEM_METADATA),
    AMDGPU(GEM_WAIT_IDLE),
    AMDGPU(WAIT_CS),
    AMDGPU(GEM_OP),
    AMDGPU(GEM_USERPTR),
    AMDGPU(WAIT_FENCES),
    AMDGPU(VM),
    AMDGPU(FENCE_TO_HANDLE),
    AMDGPU(SCHED),
    DRM(SYNCOBJ_CREATE),
    DRM(SYNCOBJ_DESTROY),
    DRM(SYNCOBJ_HANDLE_TO_FD),
    DRM(SYNCOBJ_FD_TO_HANDLE),
    DRM(SYNCOBJ_TIMELINE_WAIT),
};

static void test_codes_are_the_headers(void **state)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].ours != codes[i].theirs)
            fail_msg("%s: 0x%08x, the header has 0x%08x", codes[i].name, codes[i].ours,
                     codes[i].theirs);
    }
}

/* Every request is compared above, but for the two whose struct has grown since. */
static void test_no_request_is_left_out(void **state)
{
    size_t requests = 0;

#define X(name, nr, dir, type) requests++;
    KFD_UAPI_KFD_REQUESTS(X)
    KFD_UAPI_DRM_REQUESTS(X)
#undef X
    requests -= 2; /* CREATE_QUEUE, GEM_VA */
#ifndef AMDKFD_IOC_EXPORT_DMABUF
    requests--;
#endif
#ifndef AMDKFD_IOC_RUNTIME_ENABLE
    requests--;
#endif
#ifndef AMDKFD_IOC_DBG_TRAP
    requests--;
#endif
    assert_int_equal(requests, sizeof(codes) / sizeof(codes[0]));
}

#define SAME(ours, theirs, member)                                                    \
    do {                                                                              \
        assert_int_equal(offsetof(ours, member), offsetof(theirs, member));           \
        assert_int_equal(sizeof(((ours *)0)->member), sizeof(((theirs *)0)->member)); \
    } while (0)

static void test_create_queue_extends_the_headers(void **state)
{
#define Q(member) SAME(struct kfd_uapi_create_queue, struct kfd_ioctl_create_queue_args, member)
    Q(ring_base_address);
    Q(write_pointer_address);
    Q(read_pointer_address);
    Q(doorbell_offset);
    Q(ring_size);
    Q(gpu_id);
    Q(queue_type);
    Q(queue_percentage);
    Q(queue_priority);
    Q(queue_id);
    Q(eop_buffer_address);
    Q(eop_buffer_size);
    Q(ctx_save_restore_address);
    Q(ctx_save_restore_size);
    Q(ctl_stack_size);
#undef Q
    assert_int_equal(_IOC_NR(KFD_CODE_CREATE_QUEUE), _IOC_NR(AMDKFD_IOC_CREATE_QUEUE));
    assert_true(sizeof(struct kfd_uapi_create_queue) >= sizeof(struct kfd_ioctl_create_queue_args));
}

static void test_gem_va_extends_the_headers(void **state)
{
#define V(member) SAME(struct kfd_uapi_gem_va, struct drm_amdgpu_gem_va, member)
    V(handle);
    V(operation);
    V(flags);
    V(va_address);
    V(offset_in_bo);
    V(map_size);
#undef V
    assert_int_equal((uint32_t)DRM_CODE_GEM_VA_OLD,
                     _IOC(_IOC_WRITE, 'd', 0x48, KFD_UAPI_GEM_VA_SIZE_OLD));
    assert_int_equal(_IOC_NR(DRM_CODE_GEM_VA), _IOC_NR(DRM_IOCTL_AMDGPU_GEM_VA));
}

static void test_public_values_are_the_kernels(void **state)
{
    assert_int_equal(KFD_MEM_VRAM, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
    assert_int_equal(KFD_MEM_GTT, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
    assert_int_equal(KFD_MEM_USERPTR, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
    assert_int_equal(KFD_MEM_DOORBELL, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL);
    assert_int_equal(KFD_MEM_MMIO_REMAP, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP);
    assert_int_equal(KFD_MEM_CONTIGUOUS, KFD_UAPI_MEM_CONTIGUOUS);
    assert_int_equal(KFD_MEM_EXT_COHERENT, KFD_UAPI_MEM_EXT_COHERENT);
    assert_int_equal(KFD_MEM_UNCACHED, KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED);
    assert_int_equal(KFD_MEM_COHERENT, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT);
    assert_int_equal(KFD_MEM_NO_SUBSTITUTE, KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE);
    assert_int_equal(KFD_MEM_PUBLIC, KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
    assert_int_equal(KFD_MEM_EXECUTABLE, KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE);
    /* The system header shifts a signed 1 by 31 here. */
    assert_int_equal(KFD_MEM_WRITABLE, 1u << 31);
    assert_int_equal(KFD_VA_MAP, AMDGPU_VA_OP_MAP);
    assert_int_equal(KFD_VA_UNMAP, AMDGPU_VA_OP_UNMAP);
    assert_int_equal(KFD_VA_CLEAR, AMDGPU_VA_OP_CLEAR);
    assert_int_equal(KFD_VA_REPLACE, AMDGPU_VA_OP_REPLACE);
    assert_int_equal(KFD_VA_READ, AMDGPU_VM_PAGE_READABLE);
    assert_int_equal(KFD_VA_WRITE, AMDGPU_VM_PAGE_WRITEABLE);
    assert_int_equal(KFD_VA_EXEC, AMDGPU_VM_PAGE_EXECUTABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_are_the_headers),
        cmocka_unit_test(test_no_request_is_left_out),
        cmocka_unit_test(test_create_queue_extends_the_headers),
        cmocka_unit_test(test_gem_va_extends_the_headers),
        cmocka_unit_test(test_public_values_are_the_kernels),
    };

    return cmocka_run_group_tests_name("kfd/uapi", tests, NULL, NULL);
}
