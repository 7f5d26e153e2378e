/* SPDX-License-Identifier: MIT */
/* The request handlers, one per request; kfd_ioctl.c and drm_ioctl.c hold the tables. */
#ifndef FAKE_HANDLERS_H
#define FAKE_HANDLERS_H

#include "fake/fake_internal.h"

/* kfd_query.c */
int fake_kfd_get_version(struct fake_call *call, void *arg);
int fake_kfd_get_process_apertures(struct fake_call *call, void *arg);
int fake_kfd_get_process_apertures_new(struct fake_call *call, void *arg);
int fake_kfd_acquire_vm(struct fake_call *call, void *arg);
int fake_kfd_available_memory(struct fake_call *call, void *arg);

/* kfd_memory.c */
int fake_kfd_alloc_memory_of_gpu(struct fake_call *call, void *arg);
int fake_kfd_free_memory_of_gpu(struct fake_call *call, void *arg);
int fake_kfd_map_memory_to_gpu(struct fake_call *call, void *arg);
int fake_kfd_unmap_memory_from_gpu(struct fake_call *call, void *arg);

/* kfd_dmabuf.c */
int fake_kfd_export_dmabuf(struct fake_call *call, void *arg);
int fake_kfd_import_dmabuf(struct fake_call *call, void *arg);
int fake_kfd_get_dmabuf_info(struct fake_call *call, void *arg);

/* drm_gem.c */
int fake_drm_gem_close(struct fake_call *call, void *arg);
int fake_drm_prime_handle_to_fd(struct fake_call *call, void *arg);
int fake_drm_prime_fd_to_handle(struct fake_call *call, void *arg);
int fake_drm_gem_create(struct fake_call *call, void *arg);
int fake_drm_gem_mmap(struct fake_call *call, void *arg);

/* drm_bo.c */
int fake_drm_gem_metadata(struct fake_call *call, void *arg);
int fake_drm_gem_wait_idle(struct fake_call *call, void *arg);
int fake_drm_gem_op(struct fake_call *call, void *arg);
int fake_drm_gem_userptr(struct fake_call *call, void *arg);

/* drm_va.c */
int fake_drm_gem_va(struct fake_call *call, void *arg);

#endif
