/* SPDX-License-Identifier: MIT */
/*
 * The families that read and write a descriptor. /dev/kfd has nothing to read and no position, a
 * render node has events that never come, a dma-buf tells its size and nothing else.
 */
#include "fake/preload/preload.h"

#include <fcntl.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

static enum preload_kind kind_of(int fd)
{
    return preload_marked(fd) ? preload_kind_of(fd, NULL) : PRELOAD_NONE;
}

/* What reading a descriptor of the fake's comes to. */
static ssize_t read_ours(int fd)
{
    struct preload_device device;
    enum preload_kind kind = preload_kind_of(fd, &device);

    if (device.access == O_WRONLY || device.access == O_ACCMODE)
        return preload_result(-EBADF);
    if (kind != PRELOAD_DRM)
        return preload_result(-EINVAL);
    if (preload_real()->fcntl64(fd, F_GETFL) & O_NONBLOCK)
        return preload_result(-EAGAIN);
    return poll(NULL, 0, -1);
}

/* Nothing of the fake's can be written, cut or made to reach the disk. */
static int write_ours(int fd, int error)
{
    struct preload_device device;

    preload_kind_of(fd, &device);
    return preload_result(device.access == O_RDONLY || device.access == O_ACCMODE ? -EBADF : error);
}

#define READ(fd, call) return kind_of(fd) == PRELOAD_NONE ? preload_real()->call : read_ours(fd)
#define WRITE(fd, call) \
    return kind_of(fd) == PRELOAD_NONE ? preload_real()->call : write_ours(fd, -EINVAL)
#define NEVER(fd, call) \
    return kind_of(fd) == PRELOAD_NONE ? preload_real()->call : preload_result(-EINVAL)

PRELOAD_API ssize_t read(int fd, void *buf, size_t size)
{
    READ(fd, read(fd, buf, size));
}

PRELOAD_API ssize_t pread(int fd, void *buf, size_t size, off64_t offset)
{
    READ(fd, pread64(fd, buf, size, offset));
}

PRELOAD_API ssize_t pread64(int fd, void *buf, size_t size, off64_t offset)
{
    READ(fd, pread64(fd, buf, size, offset));
}

PRELOAD_API ssize_t readv(int fd, const struct iovec *iov, int n)
{
    READ(fd, readv(fd, iov, n));
}

PRELOAD_API ssize_t preadv(int fd, const struct iovec *iov, int n, off64_t offset)
{
    READ(fd, preadv64(fd, iov, n, offset));
}

PRELOAD_API ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t offset)
{
    READ(fd, preadv64(fd, iov, n, offset));
}

PRELOAD_API ssize_t write(int fd, const void *buf, size_t size)
{
    WRITE(fd, write(fd, buf, size));
}

PRELOAD_API ssize_t pwrite(int fd, const void *buf, size_t size, off64_t offset)
{
    WRITE(fd, pwrite64(fd, buf, size, offset));
}

PRELOAD_API ssize_t pwrite64(int fd, const void *buf, size_t size, off64_t offset)
{
    WRITE(fd, pwrite64(fd, buf, size, offset));
}

PRELOAD_API ssize_t writev(int fd, const struct iovec *iov, int n)
{
    WRITE(fd, writev(fd, iov, n));
}

PRELOAD_API ssize_t pwritev(int fd, const struct iovec *iov, int n, off64_t offset)
{
    WRITE(fd, pwritev64(fd, iov, n, offset));
}

PRELOAD_API ssize_t pwritev64(int fd, const struct iovec *iov, int n, off64_t offset)
{
    WRITE(fd, pwritev64(fd, iov, n, offset));
}

PRELOAD_API int ftruncate(int fd, off64_t size)
{
    NEVER(fd, ftruncate64(fd, size));
}

PRELOAD_API int ftruncate64(int fd, off64_t size)
{
    NEVER(fd, ftruncate64(fd, size));
}

PRELOAD_API int fsync(int fd)
{
    NEVER(fd, fsync(fd));
}

PRELOAD_API int fdatasync(int fd)
{
    NEVER(fd, fdatasync(fd));
}

/* The checked forms, which compilers put where they know the buffer's size. */
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t size, off64_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t size, off64_t offset, size_t room);
void __chk_fail(void) __attribute__((noreturn));

PRELOAD_API ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
    if (size > room)
        __chk_fail();
    return read(fd, buf, size);
}

PRELOAD_API ssize_t __pread64_chk(int fd, void *buf, size_t size, off64_t offset, size_t room)
{
    if (size > room)
        __chk_fail();
    return pread64(fd, buf, size, offset);
}

PRELOAD_API ssize_t __pread_chk(int fd, void *buf, size_t size, off64_t offset, size_t room)
{
    return __pread64_chk(fd, buf, size, offset, room);
}

static int allocate(int fd, int mode, off64_t offset, off64_t size)
{
    return kind_of(fd) == PRELOAD_NONE ? preload_real()->fallocate64(fd, mode, offset, size)
                                       : write_ours(fd, -ENODEV);
}

PRELOAD_API int fallocate(int fd, int mode, off_t offset, off_t size)
{
    return allocate(fd, mode, offset, size);
}

PRELOAD_API int fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
    return allocate(fd, mode, offset, size);
}

static int advise(int fd, off64_t offset, off64_t size, int advice)
{
    return kind_of(fd) == PRELOAD_NONE ? preload_real()->posix_fadvise64(fd, offset, size, advice)
                                       : 0;
}

PRELOAD_API int posix_fadvise(int fd, off_t offset, off_t size, int advice)
{
    return advise(fd, offset, size, advice);
}

PRELOAD_API int posix_fadvise64(int fd, off64_t offset, off64_t size, int advice)
{
    return advise(fd, offset, size, advice);
}

/* Only the ends of a dma-buf can be asked for: that is how its size is found. */
static off64_t seek_dmabuf(int fd, off64_t offset, int whence)
{
    struct stat64 st;

    if ((whence != SEEK_SET && whence != SEEK_END) || offset != 0)
        return preload_result(-EINVAL);
    if (whence == SEEK_SET)
        return 0;
    return preload_real()->fstatat64(fd, "", &st, AT_EMPTY_PATH) == 0 ? st.st_size : -1;
}

/* A file of sysfs ends behind its page, as fstat says. */
static off64_t seek_end(int fd, off64_t offset)
{
    char name[PRELOAD_PATH];
    struct stat64 st;

    if (preload_is_fakes_fd(fd, name) && fstat64(fd, &st) == 0 && S_ISREG(st.st_mode))
        return preload_real()->lseek64(fd, st.st_size + offset, SEEK_SET);
    return preload_real()->lseek64(fd, offset, SEEK_END);
}

static off64_t seek(int fd, off64_t offset, int whence)
{
    enum preload_kind kind = kind_of(fd);

    if (kind == PRELOAD_NONE && whence == SEEK_END && preload_marks_of(fd) != 0)
        return seek_end(fd, offset);
    if (kind == PRELOAD_NONE)
        return preload_real()->lseek64(fd, offset, whence);
    if (whence < SEEK_SET || whence > SEEK_HOLE)
        return preload_result(-EINVAL);
    if (kind == PRELOAD_DMABUF)
        return seek_dmabuf(fd, offset, whence);
    return kind == PRELOAD_DRM ? 0 : preload_result(-ESPIPE);
}

PRELOAD_API off_t lseek(int fd, off_t offset, int whence)
{
    return seek(fd, offset, whence);
}

PRELOAD_API off64_t lseek64(int fd, off64_t offset, int whence)
{
    return seek(fd, offset, whence);
}
