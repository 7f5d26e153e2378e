/* SPDX-License-Identifier: MIT */
/* The families that take a descriptor: close, dup, fcntl, ioctl, mmap, and those that receive one.
 */
#include "fake/preload/preload.h"

#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"
#include "fake/svm.h"
#include "kfd/uapi.h"

static int close_ours(int fd)
{
    struct kfd_sys *sys = preload_sys();
    int ret;

    /* A child between vfork and exec uses our memory but is not us. */
    if (sys == NULL || !preload_is_own_process(preload_fake()))
        return preload_real()->close(fd);
    preload_mark(fd, 0);
    preload_enter();
    ret = sys->ops->close_fd(sys, fd);
    preload_leave();
    return preload_result(ret);
}

PRELOAD_API int close(int fd)
{
    if (preload_marked(fd))
        return close_ours(fd);
    if (!preload_inside())
        preload_mark(fd, 0);
    return preload_real()->close(fd);
}

PRELOAD_API int close_range(unsigned int first, unsigned int last, int flags)
{
    unsigned int end = last < PRELOAD_MARKS ? last : PRELOAD_MARKS - 1;

    for (unsigned int fd = first; flags == 0 && fd <= end; fd++) {
        if (fd % 32 == 0 && atomic_load(&preload_marks[fd / 32]) == 0)
            fd += 31;
        else if (preload_marked((int)fd))
            close_ours((int)fd);
        else
            preload_mark((int)fd, 0);
    }
    return preload_real()->close_range(first, last, flags);
}

PRELOAD_API void closefrom(int first)
{
    close_range(first < 0 ? 0 : (unsigned int)first, ~0u, 0);
}

/* The new descriptor is what the old one is. */
static int copied(int from, int to)
{
    if (to >= 0 && !preload_inside())
        preload_mark(to, preload_marks_of(from) |
                             (preload_marked(from) ? (unsigned int)PRELOAD_OURS : 0));
    return to;
}

PRELOAD_API int dup(int fd)
{
    return copied(fd, preload_real()->dup(fd));
}

PRELOAD_API int dup2(int fd, int to)
{
    if (fd != to && preload_marked(to) && preload_real()->fcntl64(fd, F_GETFD) >= 0)
        close_ours(to);
    return copied(fd, preload_real()->dup2(fd, to));
}

PRELOAD_API int dup3(int fd, int to, int flags)
{
    if (fd != to && preload_marked(to) && preload_real()->fcntl64(fd, F_GETFD) >= 0)
        close_ours(to);
    return copied(fd, preload_real()->dup3(fd, to, flags));
}

static int fcntl_any(int fd, int cmd, void *arg)
{
    int ret = preload_real()->fcntl64(fd, cmd, arg);
    struct preload_device device;

    /* The descriptor behind a node is not always of the mode that was asked for. */
    if (cmd == F_GETFL && ret >= 0 && preload_marked(fd) &&
        preload_kind_of(fd, &device) != PRELOAD_NONE && device.number != 0)
        return (ret & ~O_ACCMODE) | device.access;

    return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? copied(fd, ret) : ret;
}

PRELOAD_API int fcntl(int fd, int cmd, ...)
{
    va_list args;
    void *arg;

    va_start(args, cmd);
    arg = va_arg(args, void *);
    va_end(args);
    return fcntl_any(fd, cmd, arg);
}

PRELOAD_API int fcntl64(int fd, int cmd, ...)
{
    va_list args;
    void *arg;

    va_start(args, cmd);
    arg = va_arg(args, void *);
    va_end(args);
    return fcntl_any(fd, cmd, arg);
}

/* Requests that answer with a new descriptor. */
static void mark_answer(unsigned long request, const void *arg)
{
    unsigned int type = _IOC_TYPE(request), nr = _IOC_NR(request);

    if (type == KFD_UAPI_TYPE_KFD && nr == KFD_NR_EXPORT_DMABUF)
        preload_mark((int)((const struct kfd_uapi_export_dmabuf *)arg)->dmabuf_fd, PRELOAD_OURS);
    else if (type == KFD_UAPI_TYPE_DRM && nr == DRM_NR_PRIME_HANDLE_TO_FD)
        preload_mark(((const struct drm_prime_handle *)arg)->fd, PRELOAD_OURS);
}

PRELOAD_API int ioctl(int fd, unsigned long request, ...)
{
    unsigned int type = _IOC_TYPE(request);
    struct kfd_sys *sys;
    va_list args;
    void *arg;
    int ret;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    /* A descriptor of ours may have come by a way that is not watched. */
    if (preload_inside() || (!preload_marked(fd) && !((type == KFD_UAPI_TYPE_KFD ||
                                                       type == KFD_UAPI_TYPE_DRM || type == 'b') &&
                                                      preload_adopt(fd))))
        return preload_real()->ioctl(fd, request, arg);
    sys = preload_sys();
    if (sys == NULL || !preload_is_self())
        return preload_result(-EBADF);
    preload_enter();
    ret = sys->ops->request(sys, fd, request, arg);
    preload_leave();
    if (ret >= 0)
        mark_answer(request, arg);
    return preload_result(ret);
}

/* Memory that goes away takes its SVM ranges with it. */
static void forget(void *addr, size_t size)
{
    struct fake *fake = preload_fake_if_made();
    struct fake_process *p;

    /* At its end the program leaves the machine with the process lock held. */
    if (fake == NULL || !fake->profile->kernel.svm || preload_inside() ||
        atomic_load(&fake->ended) || !preload_is_own_process(fake))
        return;
    p = atomic_load(&fake->process);
    preload_enter();
    fake_process_lock(p);
    fake_svm_forget(p, (uintptr_t)addr, size);
    fake_process_unlock(p);
    preload_leave();
}

static void *map(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
    char name[PRELOAD_PATH];
    struct kfd_sys *sys;
    void *out;
    int err;

    if (flags & MAP_FIXED)
        forget(addr, size);
    if (!(flags & MAP_ANONYMOUS) && preload_marks_of(fd) == PRELOAD_FOLDER &&
        preload_is_fakes_fd(fd, name)) {
        errno = ENODEV; /* no file of sysfs can be mapped */
        return MAP_FAILED;
    }
    if (flags & MAP_ANONYMOUS || !preload_marked(fd))
        return preload_real()->mmap64(addr, size, prot, flags, fd, offset);
    sys = preload_sys();
    preload_enter();
    err = sys->ops->map_pages(sys, addr, size, prot, flags, fd, (uint64_t)offset, &out);
    preload_leave();
    if (err != 0) {
        errno = -err;
        return MAP_FAILED;
    }
    return out;
}

PRELOAD_API void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    return map(addr, size, prot, flags, fd, offset);
}

PRELOAD_API void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
    return map(addr, size, prot, flags, fd, offset);
}

PRELOAD_API int munmap(void *addr, size_t size)
{
    forget(addr, size);
    return preload_real()->munmap(addr, size);
}

static void adopt_all(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        const int *fds = (const int *)(const void *)CMSG_DATA(c);
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++)
            preload_adopt(fds[i]);
    }
}

PRELOAD_API ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    ssize_t n = preload_real()->recvmsg(fd, m, flags);

    if (n >= 0 && m->msg_controllen != 0)
        adopt_all(m);
    return n;
}

PRELOAD_API int recvmmsg(int fd, struct mmsghdr *m, unsigned int count, int flags,
                         struct timespec *timeout)
{
    int n = preload_real()->recvmmsg(fd, m, count, flags, timeout);

    for (int i = 0; i < n; i++) {
        if (m[i].msg_hdr.msg_controllen != 0)
            adopt_all(&m[i].msg_hdr);
    }
    return n;
}

/* Its header came with glibc 2.36. */
int pidfd_getfd(int pidfd, int target, unsigned int flags);

PRELOAD_API int pidfd_getfd(int pidfd, int target, unsigned int flags)
{
    int fd = preload_real()->pidfd_getfd(pidfd, target, flags);

    if (fd >= 0)
        preload_adopt(fd);
    return fd;
}
