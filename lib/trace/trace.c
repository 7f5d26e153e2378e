/* SPDX-License-Identifier: MIT */
/*
 * A line for every request that a program makes of KFD or a DRM node, with its arguments in words,
 * on whatever driver it runs: libc's functions pass through here. KFDIRECT_TRACE names the file
 * that lines are appended to, "-" is standard error.
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef _LARGEFILE64_SOURCE
#define _LARGEFILE64_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "kfd/decode.h"
#include "kfd/error.h"

#define API __attribute__((visibility("default")))
#define ARG_SIZE 512u
#define FDS 4096

/* Descriptors of nodes that were opened through here. */
static volatile bool nodes[FDS];

#define REAL(ret, name, args)      \
    static ret(*real_##name) args; \
    if (real_##name == NULL)       \
    __atomic_store_n((void **)&real_##name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED)

static bool is_node(int fd)
{
    return fd >= 0 && fd < FDS && nodes[fd];
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* "PID SECONDS text = result <us>", in one write; the caller's errno stays. */
__attribute__((format(printf, 3, 4))) static void line(uint64_t begin, long result, const char *fmt,
                                                       ...)
{
    const char *to = secure_getenv("KFDIRECT_TRACE");
    double us = (double)(now() - begin) / 1e3;
    int saved = errno, fd = STDERR_FILENO, n, m;
    char text[1024];
    va_list args;

    if (to == NULL || to[0] == '\0')
        return;
    n = snprintf(text, sizeof(text), "%d %.6f ", getpid(), (double)begin / 1e9);
    va_start(args, fmt);
    m = vsnprintf(text + n, sizeof(text) - (size_t)n - 64, fmt, args);
    va_end(args);
    n += m < (int)sizeof(text) - n - 64 ? m : (int)sizeof(text) - n - 65;
    n += snprintf(text + n, sizeof(text) - (size_t)n, " = %ld%s%s <%.1f us>\n", result,
                  result < 0 ? " " : "", result < 0 ? kfd_errno_name(-saved) : "", us);
    if (strcmp(to, "-") != 0)
        fd = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0)
        (void)!write(fd, text, (size_t)n);
    if (fd > STDERR_FILENO)
        close(fd);
    errno = saved;
}

static int opened(const char *path, int flags, int fd, uint64_t begin)
{
    if (path == NULL || (strcmp(path, "/dev/kfd") != 0 && strncmp(path, "/dev/dri/", 9) != 0))
        return fd;
    if (fd >= 0 && fd < FDS && !(flags & O_PATH))
        nodes[fd] = true;
    line(begin, fd, "open %s flags=0x%x", path, (unsigned int)flags);
    return fd;
}

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    uint64_t begin = now();
    REAL(int, openat64, (int, const char *, int, ...));

    return opened(path, flags, real_openat64(dirfd, path, flags, mode), begin);
}

#define MODE(flags)                                                    \
    va_list args;                                                      \
    mode_t mode;                                                       \
                                                                       \
    va_start(args, flags);                                             \
    mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0; \
    va_end(args)

API int open(const char *path, int flags, ...)
{
    MODE(flags);
    return open_at(AT_FDCWD, path, flags, mode);
}

API int open64(const char *path, int flags, ...)
{
    MODE(flags);
    return open_at(AT_FDCWD, path, flags, mode);
}

API int openat(int dirfd, const char *path, int flags, ...)
{
    MODE(flags);
    return open_at(dirfd, path, flags, mode);
}

API int openat64(int dirfd, const char *path, int flags, ...)
{
    MODE(flags);
    return open_at(dirfd, path, flags, mode);
}

/* The checked forms, which compilers put where no mode is given. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

API int __open_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

API int __open64_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

API int __openat_2(int dirfd, const char *path, int flags)
{
    return open_at(dirfd, path, flags, 0);
}

API int __openat64_2(int dirfd, const char *path, int flags)
{
    return open_at(dirfd, path, flags, 0);
}

API int close(int fd)
{
    bool node = is_node(fd);
    uint64_t begin = node ? now() : 0;
    int ret;
    REAL(int, close, (int));

    if (node)
        nodes[fd] = false;
    ret = real_close(fd);
    if (node)
        line(begin, ret, "close fd=%d", fd);
    return ret;
}

/* A copy of an argument, if it can be read. */
static bool copy(void *to, void *arg, size_t size)
{
    struct iovec mine, theirs = {arg, size < ARG_SIZE ? size : ARG_SIZE};
    int saved = errno;
    bool good;

    mine = (struct iovec){to, theirs.iov_len};
    good = theirs.iov_len == 0 ||
           process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == (ssize_t)theirs.iov_len;
    errno = saved;
    return good;
}

/* By its type alone, so that descriptors that came by any way are covered. */
API int ioctl(int fd, unsigned long request, ...)
{
    unsigned char before[ARG_SIZE] = {0}, after[ARG_SIZE] = {0};
    bool readable;
    uint64_t begin;
    char text[768];
    va_list args;
    void *arg;
    int ret;
    REAL(int, ioctl, (int, unsigned long, ...));

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    if (_IOC_TYPE(request) != 'K' && _IOC_TYPE(request) != 'd')
        return real_ioctl(fd, request, arg);
    readable = copy(before, arg, _IOC_SIZE(request));
    begin = now();
    ret = real_ioctl(fd, request, arg);
    readable = readable && copy(after, arg, _IOC_SIZE(request));
    kfd_decode_call(request, readable ? before : NULL, readable ? after : NULL, text, sizeof(text));
    line(begin, ret, "ioctl fd=%d %s", fd, text);
    return ret;
}

static void *map(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
    bool node = !(flags & MAP_ANONYMOUS) && is_node(fd);
    uint64_t begin = node ? now() : 0;
    void *at;
    REAL(void *, mmap64, (void *, size_t, int, int, int, off64_t));

    at = real_mmap64(addr, size, prot, flags, fd, offset);
    if (node)
        line(begin, at == MAP_FAILED ? -1 : 0,
             "mmap addr=%p size=0x%zx prot=%d flags=0x%x fd=%d offset=0x%llx -> %p", addr, size,
             prot, (unsigned int)flags, fd, (unsigned long long)offset, at);
    return at;
}

API void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    return map(addr, size, prot, flags, fd, offset);
}

API void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
    return map(addr, size, prot, flags, fd, offset);
}
