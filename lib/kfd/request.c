/* SPDX-License-Identifier: MIT */
#include "kfd/request.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/uapi.h"
#include "kfd/poison.h"

static bool is_kfd(unsigned long request, unsigned nr)
{
    return _IOC_TYPE(request) == KFD_UAPI_TYPE_KFD && _IOC_NR(request) == nr;
}

static int send_repeated(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    int ret;

    for (uint32_t i = 0; i < KFD_REQUEST_TRIES; i++) {
        ret = sys->ops->request(sys, fd, request, arg);
        if (ret != -EINTR && ret != -EAGAIN)
            return ret;
    }
    return -EAGAIN;
}

static int send_once_unsignalled(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    /* pthread_sigmask leaves libc's own signals alone, and so every thread is interrupted when one
     * calls setuid. This is the kernel's set, of 64 signals. */
    uint64_t all = UINT64_MAX, old;
    int ret;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    ret = sys->ops->request(sys, fd, request, arg);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    return ret == -EINTR || ret == -EAGAIN ? -EIO : ret;
}

int kfd_request(struct kfd *kfd, int fd, unsigned long request, void *arg)
{
    char line[384];
    int ret;

    if (!kfd_is_owner(kfd)) {
        kfd_request_decode(request, NULL, line, sizeof(line));
        return kfd_fail(-EBADF, "%s: opened by process %d, which forked this one: open again", line,
                        (int)kfd->pid);
    }
    if (is_kfd(request, KFD_NR_FREE_MEMORY_OF_GPU))
        ret = send_once_unsignalled(kfd->sys, fd, request, arg);
    else
        ret = send_repeated(kfd->sys, fd, request, arg);
    if (ret < 0) {
        kfd_request_decode(request, arg, line, sizeof(line));
        return kfd_fail(ret, "%s: %s", line, kfd_errno_name(ret));
    }
    return ret;
}

int kfd_fd_lift(struct kfd_sys *sys, int fd)
{
    int high;

    if (fd < 0 || fd > 2)
        return fd;
    high = sys->ops->dup_fd(sys, fd, 3);
    sys->ops->close_fd(sys, fd);
    return high;
}

static bool leads_elsewhere(struct kfd_sys *sys, int fd, const char *path)
{
    struct kfd_sys_stat open, node;
    char link[32];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (!sys->ops->stat_path || sys->ops->stat_path(sys, link, &open) < 0)
        return false; /* nor can a closed one be taken from anybody */
    if (sys->ops->stat_path(sys, path, &node) < 0)
        return !S_ISCHR(open.mode); /* the node went away, or is outside of a new root */
    return open.device_major != node.device_major || open.device_minor != node.device_minor;
}

void kfd_fd_close_node(struct kfd_sys *sys, int fd, const char *path)
{
    if (!leads_elsewhere(sys, fd, path))
        sys->ops->close_fd(sys, fd);
}
