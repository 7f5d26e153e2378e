/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "fake/handlers.h"
#include "fake/info.h"
#include "fake/ioctl.h"
#include "fake/syncobj.h"
#include "kfd/uapi.h"

const struct fake_handler fake_drm_handlers[256] = {
    [DRM_NR_VERSION] = {fake_drm_version, false},
    [DRM_NR_GET_CLIENT] = {fake_drm_get_client, false},
    [DRM_NR_GET_CAP] = {fake_drm_get_cap, false},
    [DRM_NR_INFO] = {fake_drm_info, false},
    [DRM_NR_GEM_CLOSE] = {fake_drm_gem_close, false},
    [DRM_NR_PRIME_HANDLE_TO_FD] = {fake_drm_prime_handle_to_fd, false},
    [DRM_NR_PRIME_FD_TO_HANDLE] = {fake_drm_prime_fd_to_handle, false},
    [DRM_NR_GEM_CREATE] = {fake_drm_gem_create, false},
    [DRM_NR_GEM_MMAP] = {fake_drm_gem_mmap, false},
    [DRM_NR_GEM_METADATA] = {fake_drm_gem_metadata, false},
    [DRM_NR_GEM_WAIT_IDLE] = {fake_drm_gem_wait_idle, false},
    [DRM_NR_GEM_OP] = {fake_drm_gem_op, false},
    [DRM_NR_GEM_USERPTR] = {fake_drm_gem_userptr, false},
    [DRM_NR_GEM_VA] = {fake_drm_gem_va, false},
    [DRM_NR_SYNCOBJ_CREATE] = {fake_drm_syncobj_create, false},
    [DRM_NR_SYNCOBJ_DESTROY] = {fake_drm_syncobj_destroy, false},
    [DRM_NR_SYNCOBJ_HANDLE_TO_FD] = {fake_drm_syncobj_handle_to_fd, false},
    [DRM_NR_SYNCOBJ_FD_TO_HANDLE] = {fake_drm_syncobj_fd_to_handle, false},
    [DRM_NR_SYNCOBJ_TIMELINE_WAIT] = {fake_drm_syncobj_timeline_wait, true},
};

/* Known to the DRM core and refused on a render node: identity, authentication and global names. */
static const uint8_t not_on_render[] = {0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x0a,
                                        0x0b, 0x0d, 0x10, 0x11, 0x1e, 0x1f};

uint32_t fake_drm_size(const struct fake *fake, uint32_t nr)
{
    if (nr == DRM_NR_GEM_VA)
        return fake->profile->kernel.gem_va_size;
    return kfd_uapi_find(KFD_UAPI_TYPE_DRM, nr)->size;
}

static bool denied(const struct fake_file *file, uint32_t nr)
{
    if (file->kind != FAKE_FILE_RENDER)
        return false;
    for (size_t i = 0; i < sizeof(not_on_render); i++)
        if (not_on_render[i] == nr)
            return true;
    return nr >= 0xa0 && nr < 0xbf; /* mode setting */
}

int fake_drm_dispatch(struct fake_call *call, unsigned long request, void *arg)
{
    uint32_t user = _IOC_SIZE(request), kernel = fake_drm_size(call->fake, call->nr);
    uint32_t both = _IOC_DIR(request) & kfd_uapi_find(KFD_UAPI_TYPE_DRM, call->nr)->dir;

    if (_IOC_TYPE(request) != KFD_UAPI_TYPE_DRM)
        return -ENOTTY;
    if (denied(call->file, call->nr))
        return -EACCES;
    if (kernel == 0)
        return -EINVAL;
    call->handler = &fake_drm_handlers[call->nr];
    call->in = both & _IOC_WRITE ? user : 0;
    call->out = both & _IOC_READ ? user : 0;
    return fake_call_run(call, user > kernel ? user : kernel, arg);
}
