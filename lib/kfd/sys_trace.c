/* SPDX-License-Identifier: MIT */
/* A system that writes a line for what passes through it. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <kfdirect/kfd.h>
#include "kfd/decode.h"
#include "kfd/error.h"
#include "kfd/uapi.h"
#include "kfd/poison.h"

#define LINE_SIZE 640
#define ARG_SIZE 512u

struct trace_sys {
    struct kfd_sys base;
    struct kfd_sys *next;
    FILE *out;
    uint64_t start; /* when the tracer was made, ns */
};

static struct kfd_sys *below(struct kfd_sys *sys)
{
    return ((struct trace_sys *)sys)->next;
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* "   0.001234 text = result <12.3 us>", in one write so that threads do not mix. */
static void KFDIRECT_PRINTF(4, 5)
    line(struct kfd_sys *sys, uint64_t begin, int64_t result, const char *fmt, ...)
{
    struct trace_sys *self = (struct trace_sys *)sys;
    uint64_t end = now();
    char text[LINE_SIZE];
    va_list args;
    int cancel;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    fprintf(self->out, "%12.6f %s = %lld%s%s <%.1f us>\n", (double)(begin - self->start) / 1e9,
            text, (long long)result, result < 0 ? " " : "",
            result < 0 ? kfd_errno_name((int)result) : "", (double)(end - begin) / 1e3);
    pthread_setcancelstate(cancel, NULL);
}

static int trace_open_path(struct kfd_sys *sys, const char *path, int flags)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->open_path(next, path, flags);

    line(sys, begin, ret, "open %s flags=0x%x", path, (unsigned)flags);
    return ret;
}

static int trace_close_fd(struct kfd_sys *sys, int fd)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->close_fd(next, fd);

    line(sys, begin, ret, "close fd=%d", fd);
    return ret;
}

static int trace_dup_fd(struct kfd_sys *sys, int fd, int min)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->dup_fd(next, fd, min);

    line(sys, begin, ret, "dup fd=%d min=%d", fd, min);
    return ret;
}

/* A copy of an argument; false where it can't be read, as the kernel will find too. Where a sandbox
 * forbids the call there is no check. */
static bool copy(void *to, void *arg, size_t size)
{
    struct iovec mine, theirs = {arg, size < ARG_SIZE ? size : ARG_SIZE};
    int saved = errno;
    ssize_t n;

    if (theirs.iov_len == 0)
        return true;
    mine = (struct iovec){to, theirs.iov_len};
    n = process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
        memcpy(to, arg, theirs.iov_len);
        n = (ssize_t)theirs.iov_len;
    }
    errno = saved;
    return n == (ssize_t)theirs.iov_len;
}

static int trace_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct kfd_sys *next = below(sys);
    /* Results overwrite inputs where the argument is a union. */
    unsigned char before[ARG_SIZE] = {0}, after[ARG_SIZE] = {0};
    bool readable = copy(before, arg, _IOC_SIZE(request));
    char text[LINE_SIZE];
    uint64_t begin = now();
    int ret = next->ops->request(next, fd, request, arg);

    readable = readable && copy(after, arg, _IOC_SIZE(request));
    kfd_decode_call(request, readable ? before : NULL, readable ? after : NULL, text, sizeof(text));
    line(sys, begin, ret, "ioctl fd=%d %s", fd, text);
    return ret;
}

static int trace_map_pages(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags,
                           int fd, uint64_t offset, void **out)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->map_pages(next, addr, size, prot, flags, fd, offset, out);

    line(sys, begin, ret, "mmap %p size=0x%zx prot=%d flags=0x%x fd=%d offset=0x%llx -> %p", addr,
         size, prot, (unsigned)flags, fd, (unsigned long long)offset, ret < 0 ? NULL : *out);
    return ret;
}

static int trace_unmap_pages(struct kfd_sys *sys, void *addr, size_t size)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->unmap_pages(next, addr, size);

    line(sys, begin, ret, "munmap %p size=0x%zx", addr, size);
    return ret;
}

static int trace_protect_pages(struct kfd_sys *sys, void *addr, size_t size, int prot)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->protect_pages(next, addr, size, prot);

    line(sys, begin, ret, "mprotect %p size=0x%zx prot=%d", addr, size, prot);
    return ret;
}

static int trace_advise_pages(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->advise_pages(next, addr, size, advice);

    line(sys, begin, ret, "madvise %p size=0x%zx advice=%d", addr, size, advice);
    return ret;
}

static int trace_read_file(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->read_file(next, path, buf, size);

    line(sys, begin, ret, "read %s", path);
    return ret;
}

static int trace_list_dir(struct kfd_sys *sys, const char *path,
                          int (*each)(void *arg, const char *name), void *arg)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->list_dir(next, path, each, arg);

    line(sys, begin, ret, "list %s", path);
    return ret;
}

static int trace_stat_path(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->stat_path ? next->ops->stat_path(next, path, out) : -ENOSYS;

    line(sys, begin, ret, "stat %s", path);
    return ret;
}

static int trace_product_name(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    struct kfd_sys *next = below(sys);
    uint64_t begin = now();
    int ret = next->ops->product_name(next, drm_fd, buf, size);

    line(sys, begin, ret, "product name fd=%d -> %s", drm_fd, ret < 0 ? "" : buf);
    return ret;
}

static struct kfd_sys_state **trace_state(struct kfd_sys *sys)
{
    struct kfd_sys *next = below(sys);

    return next->ops->state ? next->ops->state(next) : NULL;
}

static void trace_destroy(struct kfd_sys *sys)
{
    free(sys);
}

static const struct kfd_sys_ops trace_ops = {
    .open_path = trace_open_path,
    .close_fd = trace_close_fd,
    .dup_fd = trace_dup_fd,
    .request = trace_request,
    .map_pages = trace_map_pages,
    .unmap_pages = trace_unmap_pages,
    .protect_pages = trace_protect_pages,
    .advise_pages = trace_advise_pages,
    .read_file = trace_read_file,
    .list_dir = trace_list_dir,
    .stat_path = trace_stat_path,
    .product_name = trace_product_name,
    .state = trace_state,
    .destroy = trace_destroy,
};

int kfd_sys_trace_new(struct kfd_sys *next, FILE *out, struct kfd_sys **result)
{
    struct trace_sys *self = calloc(1, sizeof(*self));

    if (!self)
        return kfd_fail(-ENOMEM, "no memory for a tracer");
    self->base.ops = &trace_ops;
    self->next = next;
    self->out = out;
    self->start = now();
    *result = &self->base;
    return 0;
}
