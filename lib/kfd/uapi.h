/* SPDX-License-Identifier: MIT */
/*
 * The kernel's numbers and layouts, once. Debian's headers supply what they have (KFD 1.11, libdrm
 * 2.4.114); what they lack is declared here under names of our own, so a newer header never
 * collides. Sizes and offsets are asserted in uapi.c.
 *
 * The two X-macro tables feed the decoder, the fake's dispatcher, the command and the tests:
 * X(NAME, number, direction, argument type); direction is R, W or WR as the kernel defines it.
 */
#ifndef KFD_UAPI_H
#define KFD_UAPI_H

#include <stdint.h>
#include <linux/kfd_ioctl.h>
#include <drm.h>
#include <amdgpu_drm.h>

#define KFD_UAPI_TYPE_KFD 'K'
#define KFD_UAPI_TYPE_DRM 'd'

/* KFD requests younger than interface 1.11. */
struct kfd_uapi_export_dmabuf {
    uint64_t handle;
    uint32_t flags;
    uint32_t dmabuf_fd;
};

struct kfd_uapi_runtime_enable {
    uint64_t r_debug;
    uint32_t mode_mask;
    uint32_t capabilities_mask;
};

struct kfd_uapi_dbg_trap {
    uint32_t pid;
    uint32_t op;
    uint8_t payload[24];
};

/* CREATE_QUEUE as of 1.17; 1.11 to 1.16 end before sdma_engine_id. */
struct kfd_uapi_create_queue {
    uint64_t ring_base_address;
    uint64_t write_pointer_address;
    uint64_t read_pointer_address;
    uint64_t doorbell_offset;
    uint32_t ring_size;
    uint32_t gpu_id;
    uint32_t queue_type;
    uint32_t queue_percentage;
    uint32_t queue_priority;
    uint32_t queue_id;
    uint64_t eop_buffer_address;
    uint64_t eop_buffer_size;
    uint64_t ctx_save_restore_address;
    uint32_t ctx_save_restore_size;
    uint32_t ctl_stack_size;
    uint32_t sdma_engine_id;
    uint32_t pad;
};

/* AMDGPU_GEM_VA; the part from vm_timeline_point on is read by DRM 3.64 and later only. */
struct kfd_uapi_gem_va {
    uint32_t handle;
    uint32_t pad;
    uint32_t operation;
    uint32_t flags;
    uint64_t va_address;
    uint64_t offset_in_bo;
    uint64_t map_size;
    uint64_t vm_timeline_point;
    uint32_t vm_timeline_syncobj_out;
    uint32_t num_syncobj_handles;
    uint64_t input_fence_syncobj_handles;
};

#define KFD_UAPI_GEM_VA_SIZE_OLD 40u

#define KFD_UAPI_MEM_CONTIGUOUS (1u << 23)
#define KFD_UAPI_MEM_EXT_COHERENT (1u << 24)

#define KFD_UAPI_KFD_REQUESTS(X)                                                            \
    X(GET_VERSION, 0x01, R, struct kfd_ioctl_get_version_args)                              \
    X(CREATE_QUEUE, 0x02, WR, struct kfd_uapi_create_queue)                                 \
    X(DESTROY_QUEUE, 0x03, WR, struct kfd_ioctl_destroy_queue_args)                         \
    X(SET_MEMORY_POLICY, 0x04, W, struct kfd_ioctl_set_memory_policy_args)                  \
    X(GET_CLOCK_COUNTERS, 0x05, WR, struct kfd_ioctl_get_clock_counters_args)               \
    X(GET_PROCESS_APERTURES, 0x06, R, struct kfd_ioctl_get_process_apertures_args)          \
    X(UPDATE_QUEUE, 0x07, W, struct kfd_ioctl_update_queue_args)                            \
    X(CREATE_EVENT, 0x08, WR, struct kfd_ioctl_create_event_args)                           \
    X(DESTROY_EVENT, 0x09, W, struct kfd_ioctl_destroy_event_args)                          \
    X(SET_EVENT, 0x0a, W, struct kfd_ioctl_set_event_args)                                  \
    X(RESET_EVENT, 0x0b, W, struct kfd_ioctl_reset_event_args)                              \
    X(WAIT_EVENTS, 0x0c, WR, struct kfd_ioctl_wait_events_args)                             \
    X(DBG_REGISTER, 0x0d, W, struct kfd_ioctl_dbg_register_args)                            \
    X(DBG_UNREGISTER, 0x0e, W, struct kfd_ioctl_dbg_unregister_args)                        \
    X(DBG_ADDRESS_WATCH, 0x0f, W, struct kfd_ioctl_dbg_address_watch_args)                  \
    X(DBG_WAVE_CONTROL, 0x10, W, struct kfd_ioctl_dbg_wave_control_args)                    \
    X(SET_SCRATCH_BACKING_VA, 0x11, WR, struct kfd_ioctl_set_scratch_backing_va_args)       \
    X(GET_TILE_CONFIG, 0x12, WR, struct kfd_ioctl_get_tile_config_args)                     \
    X(SET_TRAP_HANDLER, 0x13, W, struct kfd_ioctl_set_trap_handler_args)                    \
    X(GET_PROCESS_APERTURES_NEW, 0x14, WR, struct kfd_ioctl_get_process_apertures_new_args) \
    X(ACQUIRE_VM, 0x15, W, struct kfd_ioctl_acquire_vm_args)                                \
    X(ALLOC_MEMORY_OF_GPU, 0x16, WR, struct kfd_ioctl_alloc_memory_of_gpu_args)             \
    X(FREE_MEMORY_OF_GPU, 0x17, W, struct kfd_ioctl_free_memory_of_gpu_args)                \
    X(MAP_MEMORY_TO_GPU, 0x18, WR, struct kfd_ioctl_map_memory_to_gpu_args)                 \
    X(UNMAP_MEMORY_FROM_GPU, 0x19, WR, struct kfd_ioctl_unmap_memory_from_gpu_args)         \
    X(SET_CU_MASK, 0x1a, W, struct kfd_ioctl_set_cu_mask_args)                              \
    X(GET_QUEUE_WAVE_STATE, 0x1b, WR, struct kfd_ioctl_get_queue_wave_state_args)           \
    X(GET_DMABUF_INFO, 0x1c, WR, struct kfd_ioctl_get_dmabuf_info_args)                     \
    X(IMPORT_DMABUF, 0x1d, WR, struct kfd_ioctl_import_dmabuf_args)                         \
    X(ALLOC_QUEUE_GWS, 0x1e, WR, struct kfd_ioctl_alloc_queue_gws_args)                     \
    X(SMI_EVENTS, 0x1f, WR, struct kfd_ioctl_smi_events_args)                               \
    X(SVM, 0x20, WR, struct kfd_ioctl_svm_args)                                             \
    X(SET_XNACK_MODE, 0x21, WR, struct kfd_ioctl_set_xnack_mode_args)                       \
    X(CRIU_OP, 0x22, WR, struct kfd_ioctl_criu_args)                                        \
    X(AVAILABLE_MEMORY, 0x23, WR, struct kfd_ioctl_get_available_memory_args)               \
    X(EXPORT_DMABUF, 0x24, WR, struct kfd_uapi_export_dmabuf)                               \
    X(RUNTIME_ENABLE, 0x25, WR, struct kfd_uapi_runtime_enable)                             \
    X(DBG_TRAP, 0x26, WR, struct kfd_uapi_dbg_trap)

#define KFD_UAPI_DRM_REQUESTS(X)                                   \
    X(VERSION, 0x00, WR, struct drm_version)                       \
    X(GET_CLIENT, 0x05, WR, struct drm_client)                     \
    X(GEM_CLOSE, 0x09, W, struct drm_gem_close)                    \
    X(GET_CAP, 0x0c, WR, struct drm_get_cap)                       \
    X(PRIME_HANDLE_TO_FD, 0x2d, WR, struct drm_prime_handle)       \
    X(PRIME_FD_TO_HANDLE, 0x2e, WR, struct drm_prime_handle)       \
    X(GEM_CREATE, 0x40, WR, union drm_amdgpu_gem_create)           \
    X(GEM_MMAP, 0x41, WR, union drm_amdgpu_gem_mmap)               \
    X(CTX, 0x42, WR, union drm_amdgpu_ctx)                         \
    X(BO_LIST, 0x43, WR, union drm_amdgpu_bo_list)                 \
    X(CS, 0x44, WR, union drm_amdgpu_cs)                           \
    X(INFO, 0x45, W, struct drm_amdgpu_info)                       \
    X(GEM_METADATA, 0x46, WR, struct drm_amdgpu_gem_metadata)      \
    X(GEM_WAIT_IDLE, 0x47, WR, union drm_amdgpu_gem_wait_idle)     \
    X(GEM_VA, 0x48, W, struct kfd_uapi_gem_va)                     \
    X(WAIT_CS, 0x49, WR, union drm_amdgpu_wait_cs)                 \
    X(GEM_OP, 0x50, WR, struct drm_amdgpu_gem_op)                  \
    X(GEM_USERPTR, 0x51, WR, struct drm_amdgpu_gem_userptr)        \
    X(WAIT_FENCES, 0x52, WR, union drm_amdgpu_wait_fences)         \
    X(VM, 0x53, WR, union drm_amdgpu_vm)                           \
    X(FENCE_TO_HANDLE, 0x54, WR, union drm_amdgpu_fence_to_handle) \
    X(SCHED, 0x55, W, union drm_amdgpu_sched)                      \
    X(SYNCOBJ_CREATE, 0xbf, WR, struct drm_syncobj_create)         \
    X(SYNCOBJ_DESTROY, 0xc0, WR, struct drm_syncobj_destroy)       \
    X(SYNCOBJ_HANDLE_TO_FD, 0xc1, WR, struct drm_syncobj_handle)   \
    X(SYNCOBJ_FD_TO_HANDLE, 0xc2, WR, struct drm_syncobj_handle)   \
    X(SYNCOBJ_TIMELINE_WAIT, 0xca, WR, struct drm_syncobj_timeline_wait)

/* KFD_NR_<NAME> and DRM_NR_<NAME>: request numbers. */
enum kfd_uapi_kfd_nr {
#define KFD_UAPI_X(name, nr, dir, type) KFD_NR_##name = (nr),
    KFD_UAPI_KFD_REQUESTS(KFD_UAPI_X)
#undef KFD_UAPI_X
};

enum kfd_uapi_drm_nr {
#define KFD_UAPI_X(name, nr, dir, type) DRM_NR_##name = (nr),
    KFD_UAPI_DRM_REQUESTS(KFD_UAPI_X)
#undef KFD_UAPI_X
};

#define KFD_UAPI_DIR_R _IOC_READ
#define KFD_UAPI_DIR_W _IOC_WRITE
#define KFD_UAPI_DIR_WR (_IOC_READ | _IOC_WRITE)

/* KFD_IOC_<NAME> and DRM_IOC_<NAME>: whole request codes, at the sizes above. */
enum kfd_uapi_kfd_code {
#define KFD_UAPI_X(name, nr, dir, type) \
    KFD_CODE_##name = _IOC(KFD_UAPI_DIR_##dir, KFD_UAPI_TYPE_KFD, nr, sizeof(type)),
    KFD_UAPI_KFD_REQUESTS(KFD_UAPI_X)
#undef KFD_UAPI_X
};

enum kfd_uapi_drm_code {
#define KFD_UAPI_X(name, nr, dir, type) \
    DRM_CODE_##name = _IOC(KFD_UAPI_DIR_##dir, KFD_UAPI_TYPE_DRM, nr, sizeof(type)),
    KFD_UAPI_DRM_REQUESTS(KFD_UAPI_X)
#undef KFD_UAPI_X
};

/* One row of the tables above. dir as KFD_UAPI_DIR_*, size of the argument type. Text and not a
 * pointer, so that the table needs no work at load time. */
struct kfd_uapi_request {
    char name[26];
    char type;
    uint8_t nr, dir;
    uint16_t size;
};

/* KFD's rows, DRM's, and one of zeros, which kfd_uapi_find returns for what the tables lack. */
extern const struct kfd_uapi_request kfd_uapi_requests[];
const struct kfd_uapi_request *kfd_uapi_find(unsigned type, unsigned nr);

/* GEM_VA as DRM before 3.64 knows it. */
#define DRM_CODE_GEM_VA_OLD \
    _IOC(_IOC_WRITE, KFD_UAPI_TYPE_DRM, DRM_NR_GEM_VA, KFD_UAPI_GEM_VA_SIZE_OLD)

#endif
