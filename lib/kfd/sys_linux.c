/* SPDX-License-Identifier: MIT */
/* The system calls of Linux: the only source with raw ones. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <amdgpu.h>
#include <xf86drm.h>

#include <kfdirect/kfd.h>
#include "kfd/kept.h"
#include "kfd/uapi.h"

/* A negative result is replaced by -errno. */
static int let_go(struct kfd_kept kept, int result)
{
    return kfd_let_go(kept, result < 0 ? -errno : result);
}

static int linux_open_path(struct kfd_sys *sys, const char *path, int flags)
{
    struct kfd_kept kept = kfd_keep();
    int fd;

    do {
        fd = open(path, flags);
    } while (fd < 0 && errno == EINTR);
    return let_go(kept, fd);
}

static int linux_close_fd(struct kfd_sys *sys, int fd)
{
    struct kfd_kept kept = kfd_keep();

    /* The descriptor is gone even when close is interrupted. */
    return let_go(kept, close(fd) < 0 && errno != EINTR ? -1 : 0);
}

static int linux_dup_fd(struct kfd_sys *sys, int fd, int min)
{
    struct kfd_kept kept = kfd_keep();

    return let_go(kept, fcntl(fd, F_DUPFD_CLOEXEC, min));
}

/* DRM requests by libdrm's rule, which repeats them on EINTR and EAGAIN. KFD ones are not repeated
 * here: the kernel cannot restart FREE, and request.c knows which it can. */
static int linux_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct kfd_kept kept = kfd_keep();

    return let_go(kept, _IOC_TYPE(request) == KFD_UAPI_TYPE_DRM ? drmIoctl(fd, request, arg)
                                                                : ioctl(fd, request, arg));
}

static int linux_map_pages(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags,
                           int fd, uint64_t offset, void **out)
{
    struct kfd_kept kept = kfd_keep();
    void *at = mmap(addr, size, prot, flags, fd, (off_t)offset);

    if (at != MAP_FAILED)
        *out = at;
    return let_go(kept, at == MAP_FAILED ? -1 : 0);
}

static int linux_unmap_pages(struct kfd_sys *sys, void *addr, size_t size)
{
    struct kfd_kept kept = kfd_keep();

    return let_go(kept, munmap(addr, size));
}

static int linux_protect_pages(struct kfd_sys *sys, void *addr, size_t size, int prot)
{
    struct kfd_kept kept = kfd_keep();

    return let_go(kept, mprotect(addr, size, prot));
}

static int linux_advise_pages(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct kfd_kept kept = kfd_keep();

    return let_go(kept, madvise(addr, size, advice));
}

static int read_whole(int fd, char *buf, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);

        if (n == 0) {
            buf[len] = '\0';
            return (int)len;
        }
        if (n > 0)
            len += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return -EFBIG;
}

static int linux_read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct kfd_kept kept = kfd_keep();
    int fd = linux_open_path(sys, path, O_RDONLY | O_CLOEXEC);
    int ret = fd;

    if (fd >= 0) {
        ret = read_whole(fd, buf, size);
        close(fd);
    }
    let_go(kept, 0);
    return ret;
}

static int linux_list_dir(struct kfd_sys *sys, const char *path,
                          int (*each)(void *arg, const char *name), void *arg)
{
    struct kfd_kept kept = kfd_keep();
    DIR *dir = opendir(path);
    int ret = 0;

    if (!dir)
        return let_go(kept, -1);
    while (ret == 0) {
        struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry) {
            ret = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ret = each(arg, entry->d_name);
    }
    closedir(dir);
    let_go(kept, 0);
    return ret;
}

static int linux_stat_path(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct kfd_kept kept = kfd_keep();
    struct stat st;
    int ret = let_go(kept, stat(path, &st));

    if (ret < 0)
        return ret;
    *out = (struct kfd_sys_stat){
        .mode = st.st_mode,
        .uid = st.st_uid,
        .gid = st.st_gid,
        .device_major = major(st.st_rdev),
        .device_minor = minor(st.st_rdev),
    };
    return 0;
}

/* libdrm tells stderr what it misses. The name is not worth that. */
static bool name_can_be_had(int drm_fd)
{
    uint32_t working = 0;
    struct drm_amdgpu_info info = {
        .return_pointer = (uintptr_t)&working,
        .return_size = sizeof(working),
        .query = AMDGPU_INFO_ACCEL_WORKING,
    };

    return access(LIBDRM_NAMES, R_OK) == 0 && ioctl(drm_fd, DRM_CODE_INFO, &info) == 0 && working;
}

static int linux_product_name(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    struct kfd_kept kept = kfd_keep();
    uint32_t major_version, minor_version;
    amdgpu_device_handle dev;
    int ret = -ENOENT;

    if (name_can_be_had(drm_fd) &&
        amdgpu_device_initialize(drm_fd, &major_version, &minor_version, &dev) == 0) {
        const char *name = amdgpu_get_marketing_name(dev);

        if (name) {
            snprintf(buf, size, "%s", name);
            ret = 0;
        }
        amdgpu_device_deinitialize(dev);
    }
    let_go(kept, 0);
    return ret;
}

static struct kfd_sys_state **linux_state(struct kfd_sys *sys)
{
    static struct kfd_sys_state *state;

    return &state;
}

static const struct kfd_sys_ops linux_ops = {
    .open_path = linux_open_path,
    .close_fd = linux_close_fd,
    .dup_fd = linux_dup_fd,
    .request = linux_request,
    .map_pages = linux_map_pages,
    .unmap_pages = linux_unmap_pages,
    .protect_pages = linux_protect_pages,
    .advise_pages = linux_advise_pages,
    .read_file = linux_read_file,
    .list_dir = linux_list_dir,
    .stat_path = linux_stat_path,
    .product_name = linux_product_name,
    .state = linux_state,
};

struct kfd_sys *kfd_sys_linux(void)
{
    static struct kfd_sys linux_sys = {.ops = &linux_ops};

    return &linux_sys;
}
