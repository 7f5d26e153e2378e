/* SPDX-License-Identifier: MIT */
/* syscall(2): a system call by number does what its function does. */
#include "fake/preload/preload.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"
#include "fake/usercopy.h"

/* Restrictions on the way to a path concern the host's. */
static long open_how(int dirfd, const char *path, const struct open_how *user, size_t size)
{
    struct open_how how = {0};
    struct preload_place at;
    enum preload_where where = preload_find(dirfd, path, &at);

    if (where == PRELOAD_HOST || size < sizeof(how))
        return preload_real()->syscall(SYS_openat2, at.dirfd, at.name, user, size);
    if (fake_copy_in(&how, (uintptr_t)user, sizeof(how)) != 0)
        return preload_result(-EFAULT);
    return preload_openat(dirfd, path, (int)how.flags, (mode_t)how.mode);
}

static long current_folder(char *buf, size_t size)
{
    return getcwd(buf, size) != NULL ? (long)strlen(buf) + 1 : -1;
}

int pidfd_getfd(int pidfd, int target, unsigned int flags);

#define INT(i) ((int)a[i])
#define STR(i) ((const char *)a[i])
#define PTR(i) ((void *)a[i])

/* False: not a call that can concern the fake. */
static bool by_name(long number, const long *a, long *ret)
{
    switch (number) {
#ifdef SYS_open
    case SYS_open:
        *ret = preload_openat(AT_FDCWD, STR(0), INT(1), (mode_t)a[2]);
        return true;
    case SYS_creat:
        *ret = preload_openat(AT_FDCWD, STR(0), O_CREAT | O_WRONLY | O_TRUNC, (mode_t)a[1]);
        return true;
    case SYS_stat:
        *ret = stat64(STR(0), PTR(1));
        return true;
    case SYS_lstat:
        *ret = lstat64(STR(0), PTR(1));
        return true;
    case SYS_access:
        *ret = access(STR(0), INT(1));
        return true;
    case SYS_readlink:
        *ret = readlink(STR(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_mknod:
        *ret = mknod(STR(0), (mode_t)a[1], (dev_t)a[2]);
        return true;
    case SYS_dup2:
        *ret = dup2(INT(0), INT(1));
        return true;
#endif
    case SYS_openat:
        *ret = preload_openat(INT(0), STR(1), INT(2), (mode_t)a[3]);
        return true;
    case SYS_openat2:
        *ret = open_how(INT(0), STR(1), PTR(2), (size_t)a[3]);
        return true;
    case SYS_newfstatat:
        *ret = fstatat64(INT(0), STR(1), PTR(2), INT(3));
        return true;
    case SYS_fstat:
        *ret = fstat64(INT(0), PTR(1));
        return true;
    case SYS_statx:
        *ret = statx(INT(0), STR(1), INT(2), (unsigned int)a[3], PTR(4));
        return true;
    case SYS_faccessat:
        *ret = faccessat(INT(0), STR(1), INT(2), 0);
        return true;
    case SYS_faccessat2:
        *ret = faccessat(INT(0), STR(1), INT(2), INT(3));
        return true;
    case SYS_readlinkat:
        *ret = readlinkat(INT(0), STR(1), PTR(2), (size_t)a[3]);
        return true;
    case SYS_statfs:
        *ret = statfs64(STR(0), PTR(1));
        return true;
    case SYS_getxattr:
        *ret = getxattr(STR(0), STR(1), PTR(2), (size_t)a[3]);
        return true;
    case SYS_lgetxattr:
        *ret = lgetxattr(STR(0), STR(1), PTR(2), (size_t)a[3]);
        return true;
    case SYS_listxattr:
        *ret = listxattr(STR(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_llistxattr:
        *ret = llistxattr(STR(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_name_to_handle_at:
        *ret = name_to_handle_at(INT(0), STR(1), PTR(2), PTR(3), INT(4));
        return true;
    case SYS_mknodat:
        *ret = mknodat(INT(0), STR(1), (mode_t)a[2], (dev_t)a[3]);
        return true;
    case SYS_chdir:
        *ret = chdir(STR(0));
        return true;
    case SYS_fchdir:
        *ret = fchdir(INT(0));
        return true;
    case SYS_getcwd:
        *ret = current_folder(PTR(0), (size_t)a[1]);
        return true;
    case SYS_execve:
        *ret = execve(STR(0), PTR(1), PTR(2));
        return true;
    case SYS_execveat:
        *ret = execveat(INT(0), STR(1), PTR(2), PTR(3), INT(4));
        return true;
    default:
        return false;
    }
}

static bool by_fd(long number, const long *a, long *ret)
{
    switch (number) {
    case SYS_close:
        *ret = close(INT(0));
        return true;
    case SYS_close_range:
        *ret = close_range((unsigned int)a[0], (unsigned int)a[1], INT(2));
        return true;
    case SYS_fstatfs:
        *ret = fstatfs64(INT(0), PTR(1));
        return true;
    case SYS_fgetxattr:
        *ret = fgetxattr(INT(0), STR(1), PTR(2), (size_t)a[3]);
        return true;
    case SYS_flistxattr:
        *ret = flistxattr(INT(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_dup:
        *ret = dup(INT(0));
        return true;
    case SYS_dup3:
        *ret = dup3(INT(0), INT(1), INT(2));
        return true;
    case SYS_fcntl:
        *ret = fcntl64(INT(0), INT(1), PTR(2));
        return true;
    case SYS_ioctl:
        *ret = ioctl(INT(0), (unsigned long)a[1], PTR(2));
        return true;
    case SYS_mmap:
        *ret = (long)mmap64(PTR(0), (size_t)a[1], INT(2), INT(3), INT(4), a[5]);
        return true;
    case SYS_munmap:
        *ret = munmap(PTR(0), (size_t)a[1]);
        return true;
    case SYS_read:
        *ret = read(INT(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_write:
        *ret = write(INT(0), PTR(1), (size_t)a[2]);
        return true;
    case SYS_pread64:
        *ret = pread64(INT(0), PTR(1), (size_t)a[2], a[3]);
        return true;
    case SYS_pwrite64:
        *ret = pwrite64(INT(0), PTR(1), (size_t)a[2], a[3]);
        return true;
    case SYS_lseek:
        *ret = lseek64(INT(0), a[1], INT(2));
        return true;
    case SYS_recvmsg:
        *ret = recvmsg(INT(0), PTR(1), INT(2));
        return true;
    case SYS_pidfd_getfd:
        *ret = pidfd_getfd(INT(0), INT(1), (unsigned int)a[2]);
        return true;
    default:
        return false;
    }
}

PRELOAD_API long syscall(long number, ...)
{
    va_list args;
    long a[6], ret;

    va_start(args, number);
    for (size_t i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!preload_inside() && (by_fd(number, a, &ret) || by_name(number, a, &ret)))
        return ret;
    return preload_real()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
