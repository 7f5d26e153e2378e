/* SPDX-License-Identifier: MIT */
/*
 * The layouts the kernel was read to have, asserted: a header that disagrees stops the build here
 * and not in a ruined request.
 */
#include "kfd/uapi.h"

#include <stddef.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "size of " #type)
#define AT(type, member, offset) \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member)
#define CODE(name, value) _Static_assert((uint32_t)(name) == (value), #name)

CODE(KFD_CODE_GET_VERSION, 0x80084b01u);
CODE(KFD_CODE_CREATE_QUEUE, 0xc0604b02u);
CODE(KFD_CODE_DESTROY_QUEUE, 0xc0084b03u);
CODE(KFD_CODE_SET_MEMORY_POLICY, 0x40204b04u);
CODE(KFD_CODE_GET_CLOCK_COUNTERS, 0xc0284b05u);
CODE(KFD_CODE_GET_PROCESS_APERTURES, 0x81904b06u);
CODE(KFD_CODE_UPDATE_QUEUE, 0x40184b07u);
CODE(KFD_CODE_CREATE_EVENT, 0xc0204b08u);
CODE(KFD_CODE_DESTROY_EVENT, 0x40084b09u);
CODE(KFD_CODE_SET_EVENT, 0x40084b0au);
CODE(KFD_CODE_RESET_EVENT, 0x40084b0bu);
CODE(KFD_CODE_WAIT_EVENTS, 0xc0184b0cu);
CODE(KFD_CODE_DBG_REGISTER, 0x40084b0du);
CODE(KFD_CODE_DBG_UNREGISTER, 0x40084b0eu);
CODE(KFD_CODE_DBG_ADDRESS_WATCH, 0x40104b0fu);
CODE(KFD_CODE_DBG_WAVE_CONTROL, 0x40104b10u);
CODE(KFD_CODE_SET_SCRATCH_BACKING_VA, 0xc0104b11u);
CODE(KFD_CODE_GET_TILE_CONFIG, 0xc0284b12u);
CODE(KFD_CODE_SET_TRAP_HANDLER, 0x40184b13u);
CODE(KFD_CODE_GET_PROCESS_APERTURES_NEW, 0xc0104b14u);
CODE(KFD_CODE_ACQUIRE_VM, 0x40084b15u);
CODE(KFD_CODE_ALLOC_MEMORY_OF_GPU, 0xc0284b16u);
CODE(KFD_CODE_FREE_MEMORY_OF_GPU, 0x40084b17u);
CODE(KFD_CODE_MAP_MEMORY_TO_GPU, 0xc0184b18u);
CODE(KFD_CODE_UNMAP_MEMORY_FROM_GPU, 0xc0184b19u);
CODE(KFD_CODE_SET_CU_MASK, 0x40104b1au);
CODE(KFD_CODE_GET_QUEUE_WAVE_STATE, 0xc0184b1bu);
CODE(KFD_CODE_GET_DMABUF_INFO, 0xc0204b1cu);
CODE(KFD_CODE_IMPORT_DMABUF, 0xc0184b1du);
CODE(KFD_CODE_ALLOC_QUEUE_GWS, 0xc0104b1eu);
CODE(KFD_CODE_SMI_EVENTS, 0xc0084b1fu);
CODE(KFD_CODE_SVM, 0xc0184b20u);
CODE(KFD_CODE_SET_XNACK_MODE, 0xc0044b21u);
CODE(KFD_CODE_CRIU_OP, 0xc0384b22u);
CODE(KFD_CODE_AVAILABLE_MEMORY, 0xc0104b23u);
CODE(KFD_CODE_EXPORT_DMABUF, 0xc0104b24u);
CODE(KFD_CODE_RUNTIME_ENABLE, 0xc0104b25u);
CODE(KFD_CODE_DBG_TRAP, 0xc0204b26u);

CODE(DRM_CODE_VERSION, 0xc0406400u);
CODE(DRM_CODE_GET_CLIENT, 0xc0286405u);
CODE(DRM_CODE_GEM_CLOSE, 0x40086409u);
CODE(DRM_CODE_GET_CAP, 0xc010640cu);
CODE(DRM_CODE_PRIME_HANDLE_TO_FD, 0xc00c642du);
CODE(DRM_CODE_PRIME_FD_TO_HANDLE, 0xc00c642eu);
CODE(DRM_CODE_GEM_CREATE, 0xc0206440u);
CODE(DRM_CODE_GEM_MMAP, 0xc0086441u);
CODE(DRM_CODE_CTX, 0xc0106442u);
CODE(DRM_CODE_BO_LIST, 0xc0186443u);
CODE(DRM_CODE_CS, 0xc0186444u);
CODE(DRM_CODE_INFO, 0x40206445u);
CODE(DRM_CODE_GEM_METADATA, 0xc1206446u);
CODE(DRM_CODE_GEM_WAIT_IDLE, 0xc0106447u);
CODE(DRM_CODE_GEM_VA, 0x40406448u);
CODE(DRM_CODE_GEM_VA_OLD, 0x40286448u);
CODE(DRM_CODE_WAIT_CS, 0xc0206449u);
CODE(DRM_CODE_GEM_OP, 0xc0106450u);
CODE(DRM_CODE_GEM_USERPTR, 0xc0186451u);
CODE(DRM_CODE_WAIT_FENCES, 0xc0186452u);
CODE(DRM_CODE_VM, 0xc0086453u);
CODE(DRM_CODE_FENCE_TO_HANDLE, 0xc0206454u);
CODE(DRM_CODE_SCHED, 0x40106455u);
CODE(DRM_CODE_SYNCOBJ_CREATE, 0xc00864bfu);
CODE(DRM_CODE_SYNCOBJ_DESTROY, 0xc00864c0u);
CODE(DRM_CODE_SYNCOBJ_HANDLE_TO_FD, 0xc01064c1u);
CODE(DRM_CODE_SYNCOBJ_FD_TO_HANDLE, 0xc01064c2u);
CODE(DRM_CODE_SYNCOBJ_TIMELINE_WAIT, 0xc02864cau);

AT(struct kfd_ioctl_get_version_args, minor_version, 4);

SIZE(struct kfd_uapi_create_queue, 96);
AT(struct kfd_uapi_create_queue, write_pointer_address, 8);
AT(struct kfd_uapi_create_queue, read_pointer_address, 16);
AT(struct kfd_uapi_create_queue, doorbell_offset, 24);
AT(struct kfd_uapi_create_queue, ring_size, 32);
AT(struct kfd_uapi_create_queue, gpu_id, 36);
AT(struct kfd_uapi_create_queue, queue_type, 40);
AT(struct kfd_uapi_create_queue, queue_percentage, 44);
AT(struct kfd_uapi_create_queue, queue_priority, 48);
AT(struct kfd_uapi_create_queue, queue_id, 52);
AT(struct kfd_uapi_create_queue, eop_buffer_address, 56);
AT(struct kfd_uapi_create_queue, eop_buffer_size, 64);
AT(struct kfd_uapi_create_queue, ctx_save_restore_address, 72);
AT(struct kfd_uapi_create_queue, ctx_save_restore_size, 80);
AT(struct kfd_uapi_create_queue, ctl_stack_size, 84);
AT(struct kfd_uapi_create_queue, sdma_engine_id, 88);
AT(struct kfd_uapi_create_queue, pad, 92);

SIZE(struct kfd_process_device_apertures, 56);
AT(struct kfd_process_device_apertures, lds_limit, 8);
AT(struct kfd_process_device_apertures, scratch_base, 16);
AT(struct kfd_process_device_apertures, scratch_limit, 24);
AT(struct kfd_process_device_apertures, gpuvm_base, 32);
AT(struct kfd_process_device_apertures, gpuvm_limit, 40);
AT(struct kfd_process_device_apertures, gpu_id, 48);
AT(struct kfd_ioctl_get_process_apertures_args, num_of_nodes, 392);
AT(struct kfd_ioctl_get_process_apertures_new_args, num_of_nodes, 8);

AT(struct kfd_ioctl_acquire_vm_args, drm_fd, 0);
AT(struct kfd_ioctl_acquire_vm_args, gpu_id, 4);

AT(struct kfd_ioctl_set_memory_policy_args, alternate_aperture_size, 8);
AT(struct kfd_ioctl_set_memory_policy_args, gpu_id, 16);
AT(struct kfd_ioctl_set_memory_policy_args, default_policy, 20);
AT(struct kfd_ioctl_set_memory_policy_args, alternate_policy, 24);
AT(struct kfd_ioctl_get_clock_counters_args, cpu_clock_counter, 8);
AT(struct kfd_ioctl_get_clock_counters_args, system_clock_counter, 16);
AT(struct kfd_ioctl_get_clock_counters_args, system_clock_freq, 24);
AT(struct kfd_ioctl_get_clock_counters_args, gpu_id, 32);
AT(struct kfd_ioctl_get_tile_config_args, macro_tile_config_ptr, 8);
AT(struct kfd_ioctl_get_tile_config_args, num_tile_configs, 16);
AT(struct kfd_ioctl_get_tile_config_args, num_macro_tile_configs, 20);
AT(struct kfd_ioctl_get_tile_config_args, gpu_id, 24);
AT(struct kfd_ioctl_get_tile_config_args, gb_addr_config, 28);
AT(struct kfd_ioctl_get_tile_config_args, num_banks, 32);
AT(struct kfd_ioctl_get_tile_config_args, num_ranks, 36);

AT(struct kfd_ioctl_alloc_memory_of_gpu_args, va_addr, 0);
AT(struct kfd_ioctl_alloc_memory_of_gpu_args, size, 8);
AT(struct kfd_ioctl_alloc_memory_of_gpu_args, handle, 16);
AT(struct kfd_ioctl_alloc_memory_of_gpu_args, mmap_offset, 24);
AT(struct kfd_ioctl_alloc_memory_of_gpu_args, gpu_id, 32);
AT(struct kfd_ioctl_alloc_memory_of_gpu_args, flags, 36);
AT(struct kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr, 8);
AT(struct kfd_ioctl_map_memory_to_gpu_args, n_devices, 16);
AT(struct kfd_ioctl_map_memory_to_gpu_args, n_success, 20);
AT(struct kfd_ioctl_unmap_memory_from_gpu_args, device_ids_array_ptr, 8);
AT(struct kfd_ioctl_unmap_memory_from_gpu_args, n_devices, 16);
AT(struct kfd_ioctl_unmap_memory_from_gpu_args, n_success, 20);
AT(struct kfd_ioctl_get_available_memory_args, available, 0);
AT(struct kfd_ioctl_get_available_memory_args, gpu_id, 8);

AT(struct kfd_uapi_export_dmabuf, flags, 8);
AT(struct kfd_uapi_export_dmabuf, dmabuf_fd, 12);
AT(struct kfd_ioctl_import_dmabuf_args, handle, 8);
AT(struct kfd_ioctl_import_dmabuf_args, gpu_id, 16);
AT(struct kfd_ioctl_import_dmabuf_args, dmabuf_fd, 20);
AT(struct kfd_ioctl_get_dmabuf_info_args, metadata_ptr, 8);
AT(struct kfd_ioctl_get_dmabuf_info_args, metadata_size, 16);
AT(struct kfd_ioctl_get_dmabuf_info_args, gpu_id, 20);
AT(struct kfd_ioctl_get_dmabuf_info_args, flags, 24);
AT(struct kfd_ioctl_get_dmabuf_info_args, dmabuf_fd, 28);

AT(struct kfd_ioctl_update_queue_args, queue_id, 8);
AT(struct kfd_ioctl_update_queue_args, queue_priority, 20);
AT(struct kfd_ioctl_set_cu_mask_args, cu_mask_ptr, 8);
AT(struct kfd_ioctl_get_queue_wave_state_args, queue_id, 16);
AT(struct kfd_ioctl_alloc_queue_gws_args, first_gws, 8);
AT(struct kfd_ioctl_create_event_args, event_trigger_data, 8);
AT(struct kfd_ioctl_create_event_args, event_type, 12);
AT(struct kfd_ioctl_create_event_args, auto_reset, 16);
AT(struct kfd_ioctl_create_event_args, node_id, 20);
AT(struct kfd_ioctl_create_event_args, event_id, 24);
AT(struct kfd_ioctl_create_event_args, event_slot_index, 28);
AT(struct kfd_ioctl_wait_events_args, num_events, 8);
AT(struct kfd_ioctl_wait_events_args, wait_for_all, 12);
AT(struct kfd_ioctl_wait_events_args, timeout, 16);
AT(struct kfd_ioctl_wait_events_args, wait_result, 20);
SIZE(struct kfd_event_data, 48);
AT(struct kfd_event_data, event_id, 40);
AT(struct kfd_ioctl_set_scratch_backing_va_args, gpu_id, 8);
AT(struct kfd_ioctl_set_trap_handler_args, tma_addr, 8);
AT(struct kfd_ioctl_set_trap_handler_args, gpu_id, 16);
AT(struct kfd_ioctl_smi_events_args, anon_fd, 4);
AT(struct kfd_ioctl_svm_args, size, 8);
AT(struct kfd_ioctl_svm_args, op, 16);
AT(struct kfd_ioctl_svm_args, nattr, 20);
SIZE(struct kfd_ioctl_svm_attribute, 8);
AT(struct kfd_ioctl_criu_args, num_devices, 32);
AT(struct kfd_ioctl_criu_args, op, 48);
AT(struct kfd_uapi_runtime_enable, mode_mask, 8);
AT(struct kfd_uapi_runtime_enable, capabilities_mask, 12);
AT(struct kfd_uapi_dbg_trap, op, 4);
AT(struct kfd_uapi_dbg_trap, payload, 8);

AT(struct drm_version, version_minor, 4);
AT(struct drm_version, version_patchlevel, 8);
AT(struct drm_version, name_len, 16);
AT(struct drm_version, name, 24);
AT(struct drm_version, date_len, 32);
AT(struct drm_version, desc_len, 48);
AT(struct drm_version, desc, 56);
AT(struct drm_prime_handle, flags, 4);
AT(struct drm_prime_handle, fd, 8);
AT(union drm_amdgpu_gem_create, in.alignment, 8);
AT(union drm_amdgpu_gem_create, in.domains, 16);
AT(union drm_amdgpu_gem_create, in.domain_flags, 24);
AT(union drm_amdgpu_gem_create, out.handle, 0);
AT(union drm_amdgpu_gem_mmap, out.addr_ptr, 0);
AT(struct drm_amdgpu_info, return_size, 8);
AT(struct drm_amdgpu_info, query, 12);
AT(struct drm_amdgpu_info, mode_crtc, 16);
AT(struct drm_amdgpu_info_device, family, 16);
AT(struct drm_amdgpu_info_device, ids_flags, 136);
AT(struct drm_amdgpu_info_device, virtual_address_offset, 144);
AT(struct drm_amdgpu_info_device, virtual_address_max, 152);
AT(struct drm_amdgpu_info_device, vram_bit_width, 180);
AT(struct drm_amdgpu_info_device, wave_front_size, 240);
AT(struct drm_amdgpu_info_device, num_cu_per_sh, 248);
AT(struct drm_amdgpu_info_device, high_va_offset, 336);
SIZE(struct drm_amdgpu_memory_info, 96);

SIZE(struct kfd_uapi_gem_va, 64);
AT(struct kfd_uapi_gem_va, operation, 8);
AT(struct kfd_uapi_gem_va, flags, 12);
AT(struct kfd_uapi_gem_va, va_address, 16);
AT(struct kfd_uapi_gem_va, offset_in_bo, 24);
AT(struct kfd_uapi_gem_va, map_size, 32);
AT(struct kfd_uapi_gem_va, vm_timeline_point, KFD_UAPI_GEM_VA_SIZE_OLD);
AT(struct kfd_uapi_gem_va, vm_timeline_syncobj_out, 48);
AT(struct kfd_uapi_gem_va, num_syncobj_handles, 52);
AT(struct kfd_uapi_gem_va, input_fence_syncobj_handles, 56);

SIZE(struct drm_syncobj_timeline_wait, 40);
AT(struct drm_syncobj_timeline_wait, points, 8);
AT(struct drm_syncobj_timeline_wait, timeout_nsec, 16);
AT(struct drm_syncobj_timeline_wait, count_handles, 24);
AT(struct drm_syncobj_timeline_wait, flags, 28);

const struct kfd_uapi_request kfd_uapi_requests[] = {
#define X(name, nr, dir, type) {#name, KFD_UAPI_TYPE_KFD, nr, KFD_UAPI_DIR_##dir, sizeof(type)},
    KFD_UAPI_KFD_REQUESTS(X)
#undef X
#define X(name, nr, dir, type) {#name, KFD_UAPI_TYPE_DRM, nr, KFD_UAPI_DIR_##dir, sizeof(type)},
        KFD_UAPI_DRM_REQUESTS(X)
#undef X
            {.name = ""},
};

const struct kfd_uapi_request *kfd_uapi_find(unsigned type, unsigned nr)
{
    const struct kfd_uapi_request *row = kfd_uapi_requests;

    while (row->size && (row->nr != nr || (unsigned)row->type != type))
        row++;
    return row;
}
