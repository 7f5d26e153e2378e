/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "fake/file.h"
#include "fake/handlers.h"
#include "fake/info.h"
#include "fake/ioctl.h"
#include "fake/usercopy.h"
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
    [DRM_NR_GEM_VA] = {fake_drm_gem_va, false},
};

static const struct {
    uint16_t size;
    uint8_t dir;
} drm_requests[256] = {
#define ROW(name, nr, dir, type) [nr] = {sizeof(type), KFD_UAPI_DIR_##dir},
    KFD_UAPI_DRM_REQUESTS(ROW)
#undef ROW
};

/* Known to the DRM core and refused on a render node: identity, authentication and global names. */
static const uint8_t not_on_render[] = {0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x0a,
                                        0x0b, 0x0d, 0x10, 0x11, 0x1e, 0x1f};

uint32_t fake_drm_size(const struct fake *fake, uint32_t nr)
{
    if (nr == DRM_NR_GEM_VA)
        return fake->profile->kernel.gem_va_size;
    return drm_requests[nr & 0xff].size;
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

static int run(struct fake_call *call, void *karg)
{
    const struct fake_handler *handler = &fake_drm_handlers[call->nr];
    int ret;

    if (handler->call == NULL)
        return -EINVAL;
    if (handler->unlocked)
        return handler->call(call, karg);
    pthread_mutex_lock(&call->process->lock);
    ret = handler->call(call, karg);
    pthread_mutex_unlock(&call->process->lock);
    return ret;
}

int fake_drm_dispatch(struct fake *fake, struct fake_process *p, struct fake_file *file,
                      unsigned long request, void *arg)
{
    uint32_t nr = _IOC_NR(request), user = _IOC_SIZE(request), kernel = fake_drm_size(fake, nr);
    uint32_t both = _IOC_DIR(request) & drm_requests[nr].dir;
    uint32_t in = both & _IOC_WRITE ? user : 0, out = both & _IOC_READ ? user : 0;
    struct fake_call call = {.fake = fake, .process = p, .file = file, .nr = nr, .user_size = user};
    uint64_t stack[(1u << _IOC_SIZEBITS) / 8];
    uint32_t size = user > kernel ? user : kernel;
    int ret;

    if (_IOC_TYPE(request) != KFD_UAPI_TYPE_DRM)
        return -ENOTTY;
    if (denied(file, nr))
        return -EACCES;
    if (kernel == 0)
        return -EINVAL;
    memset(stack, 0, size);
    if (fake_copy_in(stack, (uintptr_t)arg, in) != 0)
        return -EFAULT;
    ret = run(&call, stack);
    if (fake_copy_out((uintptr_t)arg, stack, out) != 0)
        ret = -EFAULT;
    return ret;
}

int fake_ioctl(struct fake *fake, int fd, unsigned long request, void *arg)
{
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    enum fake_fd_kind what;
    struct fake_process *p;
    int err, ret;

    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    pthread_mutex_lock(&p->lock);
    what = fake_fd_look(fake, p, fd, &file, &kind);
    pthread_mutex_unlock(&p->lock);
    switch (what) {
    case FAKE_FD_FILE:
        if (file->kind == FAKE_FILE_KFD)
            return fake_kfd_dispatch(fake, p, file, request, arg);
        return fake_drm_dispatch(fake, p, file, request, arg);
    case FAKE_FD_FOREIGN:
        if (kind == FAKE_FILE_KFD)
            return fake_kfd_dispatch(fake, p, NULL, request, arg);
        /* The kernel would work on the other process's VM, which lives in that process here. */
        return fake_strict(fake, -EBADF, "request 0x%lx on a render node that process %d inherited",
                           request, p->pid);
    case FAKE_FD_DMABUF:
        return _IOC_TYPE(request) == 'b' && _IOC_NR(request) == 0 ? 0 : -ENOTTY;
    default:
        ret = ioctl(fd, request, arg);
        return ret >= 0 ? ret : -errno;
    }
}
