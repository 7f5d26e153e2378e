/* SPDX-License-Identifier: MIT */
/*
 * The argument fields of every request in uapi.h, in the order they read best. A list that decode.c
 * includes with several meanings of FIELD and PART; T and R are the argument type and the code of
 * the request at hand.
 */
// clang-format off
#define T struct kfd_ioctl_get_version_args
#define R KFD_CODE_GET_VERSION
FIELD(major_version, DEC, OUT)
FIELD(minor_version, DEC, OUT)
#undef R
#undef T

#define T struct kfd_uapi_create_queue
#define R KFD_CODE_CREATE_QUEUE
FIELD(gpu_id, DEC, IN)
FIELD(queue_type, DEC, IN)
FIELD(queue_percentage, DEC, IN)
FIELD(queue_priority, DEC, IN)
FIELD(ring_base_address, HEX, IN)
FIELD(ring_size, DEC, IN)
FIELD(write_pointer_address, HEX, IN)
FIELD(read_pointer_address, HEX, IN)
FIELD(eop_buffer_address, HEX, IN)
FIELD(eop_buffer_size, DEC, IN)
FIELD(ctx_save_restore_address, HEX, IN)
FIELD(ctx_save_restore_size, DEC, IN)
FIELD(ctl_stack_size, DEC, IN)
FIELD(sdma_engine_id, DEC, IN)
FIELD(queue_id, DEC, OUT)
FIELD(doorbell_offset, HEX, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_destroy_queue_args
#define R KFD_CODE_DESTROY_QUEUE
FIELD(queue_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_set_memory_policy_args
#define R KFD_CODE_SET_MEMORY_POLICY
FIELD(gpu_id, DEC, IN)
FIELD(default_policy, DEC, IN)
FIELD(alternate_policy, DEC, IN)
FIELD(alternate_aperture_base, HEX, IN)
FIELD(alternate_aperture_size, HEX, IN)
#undef R
#undef T

#define T struct kfd_ioctl_get_clock_counters_args
#define R KFD_CODE_GET_CLOCK_COUNTERS
FIELD(gpu_id, DEC, IN)
FIELD(gpu_clock_counter, DEC, OUT)
FIELD(cpu_clock_counter, DEC, OUT)
FIELD(system_clock_counter, DEC, OUT)
FIELD(system_clock_freq, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_get_process_apertures_args
#define R KFD_CODE_GET_PROCESS_APERTURES
FIELD(num_of_nodes, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_update_queue_args
#define R KFD_CODE_UPDATE_QUEUE
FIELD(queue_id, DEC, IN)
FIELD(ring_base_address, HEX, IN)
FIELD(ring_size, DEC, IN)
FIELD(queue_percentage, DEC, IN)
FIELD(queue_priority, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_create_event_args
#define R KFD_CODE_CREATE_EVENT
FIELD(event_type, DEC, IN)
FIELD(auto_reset, DEC, IN)
FIELD(node_id, DEC, IN)
FIELD(event_page_offset, HEX, BOTH)
FIELD(event_trigger_data, DEC, OUT)
FIELD(event_id, DEC, OUT)
FIELD(event_slot_index, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_destroy_event_args
#define R KFD_CODE_DESTROY_EVENT
FIELD(event_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_set_event_args
#define R KFD_CODE_SET_EVENT
FIELD(event_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_reset_event_args
#define R KFD_CODE_RESET_EVENT
FIELD(event_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_wait_events_args
#define R KFD_CODE_WAIT_EVENTS
FIELD(events_ptr, HEX, IN)
FIELD(num_events, DEC, IN)
FIELD(wait_for_all, DEC, IN)
FIELD(timeout, DEC, BOTH)
FIELD(wait_result, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_dbg_register_args
#define R KFD_CODE_DBG_REGISTER
FIELD(gpu_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_dbg_unregister_args
#define R KFD_CODE_DBG_UNREGISTER
FIELD(gpu_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_dbg_address_watch_args
#define R KFD_CODE_DBG_ADDRESS_WATCH
FIELD(gpu_id, DEC, IN)
FIELD(content_ptr, HEX, IN)
FIELD(buf_size_in_bytes, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_dbg_wave_control_args
#define R KFD_CODE_DBG_WAVE_CONTROL
FIELD(gpu_id, DEC, IN)
FIELD(content_ptr, HEX, IN)
FIELD(buf_size_in_bytes, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_set_scratch_backing_va_args
#define R KFD_CODE_SET_SCRATCH_BACKING_VA
FIELD(gpu_id, DEC, IN)
FIELD(va_addr, HEX, IN)
#undef R
#undef T

#define T struct kfd_ioctl_get_tile_config_args
#define R KFD_CODE_GET_TILE_CONFIG
FIELD(gpu_id, DEC, IN)
FIELD(tile_config_ptr, HEX, IN)
FIELD(macro_tile_config_ptr, HEX, IN)
FIELD(num_tile_configs, DEC, BOTH)
FIELD(num_macro_tile_configs, DEC, BOTH)
FIELD(gb_addr_config, HEX, OUT)
FIELD(num_banks, DEC, OUT)
FIELD(num_ranks, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_set_trap_handler_args
#define R KFD_CODE_SET_TRAP_HANDLER
FIELD(gpu_id, DEC, IN)
FIELD(tba_addr, HEX, IN)
FIELD(tma_addr, HEX, IN)
#undef R
#undef T

#define T struct kfd_ioctl_get_process_apertures_new_args
#define R KFD_CODE_GET_PROCESS_APERTURES_NEW
FIELD(kfd_process_device_apertures_ptr, HEX, IN)
FIELD(num_of_nodes, DEC, BOTH)
#undef R
#undef T

#define T struct kfd_ioctl_acquire_vm_args
#define R KFD_CODE_ACQUIRE_VM
FIELD(drm_fd, SIGNED, IN)
FIELD(gpu_id, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_alloc_memory_of_gpu_args
#define R KFD_CODE_ALLOC_MEMORY_OF_GPU
FIELD(gpu_id, DEC, IN)
FIELD(va_addr, HEX, IN)
FIELD(size, HEX, IN)
FIELD(flags, MEM_FLAGS, IN)
FIELD(mmap_offset, HEX, BOTH)
FIELD(handle, HEX, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_free_memory_of_gpu_args
#define R KFD_CODE_FREE_MEMORY_OF_GPU
FIELD(handle, HEX, IN)
#undef R
#undef T

#define T struct kfd_ioctl_map_memory_to_gpu_args
#define R KFD_CODE_MAP_MEMORY_TO_GPU
FIELD(handle, HEX, IN)
FIELD(device_ids_array_ptr, HEX, IN)
FIELD(n_devices, DEC, IN)
FIELD(n_success, DEC, BOTH)
#undef R
#undef T

#define T struct kfd_ioctl_unmap_memory_from_gpu_args
#define R KFD_CODE_UNMAP_MEMORY_FROM_GPU
FIELD(handle, HEX, IN)
FIELD(device_ids_array_ptr, HEX, IN)
FIELD(n_devices, DEC, IN)
FIELD(n_success, DEC, BOTH)
#undef R
#undef T

#define T struct kfd_ioctl_set_cu_mask_args
#define R KFD_CODE_SET_CU_MASK
FIELD(queue_id, DEC, IN)
FIELD(num_cu_mask, DEC, IN)
FIELD(cu_mask_ptr, HEX, IN)
#undef R
#undef T

#define T struct kfd_ioctl_get_queue_wave_state_args
#define R KFD_CODE_GET_QUEUE_WAVE_STATE
FIELD(queue_id, DEC, IN)
FIELD(ctl_stack_address, HEX, IN)
FIELD(ctl_stack_used_size, DEC, OUT)
FIELD(save_area_used_size, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_get_dmabuf_info_args
#define R KFD_CODE_GET_DMABUF_INFO
FIELD(dmabuf_fd, SIGNED, IN)
FIELD(metadata_ptr, HEX, IN)
FIELD(metadata_size, DEC, BOTH)
FIELD(size, HEX, OUT)
FIELD(gpu_id, DEC, OUT)
FIELD(flags, MEM_FLAGS, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_import_dmabuf_args
#define R KFD_CODE_IMPORT_DMABUF
FIELD(gpu_id, DEC, IN)
FIELD(dmabuf_fd, SIGNED, IN)
FIELD(va_addr, HEX, IN)
FIELD(handle, HEX, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_alloc_queue_gws_args
#define R KFD_CODE_ALLOC_QUEUE_GWS
FIELD(queue_id, DEC, IN)
FIELD(num_gws, DEC, IN)
FIELD(first_gws, DEC, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_smi_events_args
#define R KFD_CODE_SMI_EVENTS
FIELD(gpuid, DEC, IN)
FIELD(anon_fd, SIGNED, OUT)
#undef R
#undef T

#define T struct kfd_ioctl_svm_args
#define R KFD_CODE_SVM
FIELD(start_addr, HEX, IN)
FIELD(size, HEX, IN)
FIELD(op, DEC, IN)
FIELD(nattr, DEC, IN)
#undef R
#undef T

#define T struct kfd_ioctl_set_xnack_mode_args
#define R KFD_CODE_SET_XNACK_MODE
FIELD(xnack_enabled, SIGNED, BOTH)
#undef R
#undef T

#define T struct kfd_ioctl_criu_args
#define R KFD_CODE_CRIU_OP
FIELD(op, DEC, IN)
FIELD(pid, DEC, BOTH)
FIELD(devices, HEX, IN)
FIELD(bos, HEX, IN)
FIELD(priv_data, HEX, IN)
FIELD(priv_data_size, DEC, BOTH)
FIELD(num_devices, DEC, BOTH)
FIELD(num_bos, DEC, BOTH)
FIELD(num_objects, DEC, BOTH)
#undef R
#undef T

#define T struct kfd_ioctl_get_available_memory_args
#define R KFD_CODE_AVAILABLE_MEMORY
FIELD(gpu_id, DEC, IN)
FIELD(available, HEX, OUT)
#undef R
#undef T

#define T struct kfd_uapi_export_dmabuf
#define R KFD_CODE_EXPORT_DMABUF
FIELD(handle, HEX, IN)
FIELD(flags, HEX, IN)
FIELD(dmabuf_fd, SIGNED, OUT)
#undef R
#undef T

#define T struct kfd_uapi_runtime_enable
#define R KFD_CODE_RUNTIME_ENABLE
FIELD(r_debug, HEX, IN)
FIELD(mode_mask, HEX, IN)
FIELD(capabilities_mask, HEX, BOTH)
#undef R
#undef T

#define T struct kfd_uapi_dbg_trap
#define R KFD_CODE_DBG_TRAP
FIELD(pid, DEC, IN)
FIELD(op, DEC, IN)
#undef R
#undef T

#define T struct drm_version
#define R DRM_CODE_VERSION
FIELD(name_len, DEC, BOTH)
FIELD(date_len, DEC, BOTH)
FIELD(desc_len, DEC, BOTH)
FIELD(version_major, DEC, OUT)
FIELD(version_minor, DEC, OUT)
FIELD(version_patchlevel, DEC, OUT)
#undef R
#undef T

#define T struct drm_client
#define R DRM_CODE_GET_CLIENT
FIELD(idx, SIGNED, IN)
FIELD(auth, SIGNED, OUT)
FIELD(pid, DEC, OUT)
FIELD(uid, DEC, OUT)
#undef R
#undef T

#define T struct drm_gem_close
#define R DRM_CODE_GEM_CLOSE
FIELD(handle, DEC, IN)
#undef R
#undef T

#define T struct drm_get_cap
#define R DRM_CODE_GET_CAP
FIELD(capability, DEC, IN)
FIELD(value, DEC, OUT)
#undef R
#undef T

#define T struct drm_prime_handle
#define R DRM_CODE_PRIME_HANDLE_TO_FD
FIELD(handle, DEC, IN)
FIELD(flags, HEX, IN)
FIELD(fd, SIGNED, OUT)
#undef R
#undef T

#define T struct drm_prime_handle
#define R DRM_CODE_PRIME_FD_TO_HANDLE
FIELD(fd, SIGNED, IN)
FIELD(handle, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_gem_create
#define R DRM_CODE_GEM_CREATE
PART(in, bo_size, HEX, IN)
PART(in, alignment, HEX, IN)
PART(in, domains, HEX, IN)
PART(in, domain_flags, HEX, IN)
PART(out, handle, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_gem_mmap
#define R DRM_CODE_GEM_MMAP
PART(in, handle, DEC, IN)
PART(out, addr_ptr, HEX, OUT)
#undef R
#undef T

#define T union drm_amdgpu_ctx
#define R DRM_CODE_CTX
PART(in, op, DEC, IN)
PART(in, flags, HEX, IN)
PART(in, ctx_id, DEC, IN)
PART(in, priority, SIGNED, IN)
PART(out, alloc.ctx_id, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_bo_list
#define R DRM_CODE_BO_LIST
PART(in, operation, DEC, IN)
PART(in, list_handle, DEC, IN)
PART(in, bo_number, DEC, IN)
PART(in, bo_info_size, DEC, IN)
PART(in, bo_info_ptr, HEX, IN)
PART(out, list_handle, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_cs
#define R DRM_CODE_CS
PART(in, ctx_id, DEC, IN)
PART(in, bo_list_handle, DEC, IN)
PART(in, num_chunks, DEC, IN)
PART(in, flags, HEX, IN)
PART(in, chunks, HEX, IN)
PART(out, handle, HEX, OUT)
#undef R
#undef T

#define T struct drm_amdgpu_info
#define R DRM_CODE_INFO
FIELD(query, HEX, IN)
FIELD(return_pointer, HEX, IN)
FIELD(return_size, DEC, IN)
#undef R
#undef T

#define T struct drm_amdgpu_gem_metadata
#define R DRM_CODE_GEM_METADATA
FIELD(handle, DEC, IN)
FIELD(op, DEC, IN)
FIELD(data.flags, HEX, BOTH)
FIELD(data.tiling_info, HEX, BOTH)
FIELD(data.data_size_bytes, DEC, BOTH)
#undef R
#undef T

#define T union drm_amdgpu_gem_wait_idle
#define R DRM_CODE_GEM_WAIT_IDLE
PART(in, handle, DEC, IN)
PART(in, flags, HEX, IN)
PART(in, timeout, DEC, IN)
PART(out, status, DEC, OUT)
PART(out, domain, DEC, OUT)
#undef R
#undef T

#define T struct kfd_uapi_gem_va
#define R DRM_CODE_GEM_VA
FIELD(operation, VA_OP, IN)
FIELD(handle, DEC, IN)
FIELD(va_address, HEX, IN)
FIELD(offset_in_bo, HEX, IN)
FIELD(map_size, HEX, IN)
FIELD(flags, VA_FLAGS, IN)
FIELD(vm_timeline_point, DEC, IN)
FIELD(vm_timeline_syncobj_out, DEC, IN)
FIELD(num_syncobj_handles, DEC, IN)
#undef R
#undef T

#define T union drm_amdgpu_wait_cs
#define R DRM_CODE_WAIT_CS
PART(in, handle, HEX, IN)
PART(in, timeout, DEC, IN)
PART(in, ip_type, DEC, IN)
PART(in, ip_instance, DEC, IN)
PART(in, ring, DEC, IN)
PART(in, ctx_id, DEC, IN)
PART(out, status, DEC, OUT)
#undef R
#undef T

#define T struct drm_amdgpu_gem_op
#define R DRM_CODE_GEM_OP
FIELD(handle, DEC, IN)
FIELD(op, DEC, IN)
FIELD(value, HEX, BOTH)
#undef R
#undef T

#define T struct drm_amdgpu_gem_userptr
#define R DRM_CODE_GEM_USERPTR
FIELD(addr, HEX, IN)
FIELD(size, HEX, IN)
FIELD(flags, HEX, IN)
FIELD(handle, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_wait_fences
#define R DRM_CODE_WAIT_FENCES
PART(in, fences, HEX, IN)
PART(in, fence_count, DEC, IN)
PART(in, wait_all, DEC, IN)
PART(in, timeout_ns, DEC, IN)
PART(out, status, DEC, OUT)
PART(out, first_signaled, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_vm
#define R DRM_CODE_VM
PART(in, op, DEC, IN)
PART(in, flags, HEX, IN)
PART(out, flags, HEX, OUT)
#undef R
#undef T

#define T union drm_amdgpu_fence_to_handle
#define R DRM_CODE_FENCE_TO_HANDLE
PART(in, fence.ctx_id, DEC, IN)
PART(in, fence.ip_type, DEC, IN)
PART(in, fence.ring, DEC, IN)
PART(in, fence.seq_no, DEC, IN)
PART(in, what, DEC, IN)
PART(out, handle, DEC, OUT)
#undef R
#undef T

#define T union drm_amdgpu_sched
#define R DRM_CODE_SCHED
PART(in, op, DEC, IN)
PART(in, fd, SIGNED, IN)
PART(in, priority, SIGNED, IN)
PART(in, ctx_id, DEC, IN)
#undef R
#undef T

#define T struct drm_syncobj_create
#define R DRM_CODE_SYNCOBJ_CREATE
FIELD(flags, HEX, IN)
FIELD(handle, DEC, OUT)
#undef R
#undef T

#define T struct drm_syncobj_destroy
#define R DRM_CODE_SYNCOBJ_DESTROY
FIELD(handle, DEC, IN)
#undef R
#undef T

#define T struct drm_syncobj_handle
#define R DRM_CODE_SYNCOBJ_HANDLE_TO_FD
FIELD(handle, DEC, IN)
FIELD(flags, HEX, IN)
FIELD(fd, SIGNED, OUT)
#undef R
#define R DRM_CODE_SYNCOBJ_FD_TO_HANDLE
FIELD(fd, SIGNED, IN)
FIELD(flags, HEX, IN)
FIELD(handle, DEC, OUT)
#undef R
#undef T

#define T struct drm_syncobj_timeline_wait
#define R DRM_CODE_SYNCOBJ_TIMELINE_WAIT
FIELD(handles, HEX, IN)
FIELD(points, HEX, IN)
FIELD(count_handles, DEC, IN)
FIELD(timeout_nsec, SIGNED, IN)
FIELD(flags, HEX, IN)
FIELD(first_signaled, DEC, OUT)
#undef R
#undef T
