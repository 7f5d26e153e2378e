/* SPDX-License-Identifier: MIT */
/* libc's functions behind ours. One form of each family is enough. */
#ifndef FAKE_PRELOAD_REAL_H
#define FAKE_PRELOAD_REAL_H

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "fake/preload/preload.h"

#define PRELOAD_REAL(X)                                                                        \
    X(int, openat64, (int, const char *, int, ...))                                            \
    X(FILE *, fopen64, (const char *, const char *))                                           \
    X(FILE *, freopen64, (const char *, const char *, FILE *))                                 \
    X(DIR *, opendir, (const char *))                                                          \
    X(DIR *, fdopendir, (int))                                                                 \
    X(struct dirent64 *, readdir64, (DIR *))                                                   \
    X(int, readdir64_r, (DIR *, struct dirent64 *, struct dirent64 **))                        \
    X(int, closedir, (DIR *))                                                                  \
    X(void, rewinddir, (DIR *))                                                                \
    X(long, telldir, (DIR *))                                                                  \
    X(void, seekdir, (DIR *, long))                                                            \
    X(int, scandirat64,                                                                        \
      (int, const char *, struct dirent64 ***, int (*)(const struct dirent64 *),               \
       int (*)(const struct dirent64 **, const struct dirent64 **)))                           \
    X(int, glob64, (const char *, int, int (*)(const char *, int), glob64_t *))                \
    X(int, nftw64, (const char *, void *, int, int))                                           \
    X(int, ftw64, (const char *, void *, int))                                                 \
    X(int, chdir, (const char *))                                                              \
    X(int, fchdir, (int))                                                                      \
    X(char *, getcwd, (char *, size_t))                                                        \
    X(int, inotify_add_watch, (int, const char *, uint32_t))                                   \
    X(int, close, (int))                                                                       \
    X(int, close_range, (unsigned int, unsigned int, int))                                     \
    X(int, dup, (int))                                                                         \
    X(int, dup2, (int, int))                                                                   \
    X(int, dup3, (int, int, int))                                                              \
    X(int, fcntl64, (int, int, ...))                                                           \
    X(int, ioctl, (int, unsigned long, ...))                                                   \
    X(void *, mmap64, (void *, size_t, int, int, int, off64_t))                                \
    X(int, munmap, (void *, size_t))                                                           \
    X(ssize_t, read, (int, void *, size_t))                                                    \
    X(ssize_t, write, (int, const void *, size_t))                                             \
    X(ssize_t, pread64, (int, void *, size_t, off64_t))                                        \
    X(ssize_t, pwrite64, (int, const void *, size_t, off64_t))                                 \
    X(ssize_t, readv, (int, const struct iovec *, int))                                        \
    X(ssize_t, writev, (int, const struct iovec *, int))                                       \
    X(ssize_t, preadv64, (int, const struct iovec *, int, off64_t))                            \
    X(ssize_t, pwritev64, (int, const struct iovec *, int, off64_t))                           \
    X(off64_t, lseek64, (int, off64_t, int))                                                   \
    X(int, ftruncate64, (int, off64_t))                                                        \
    X(int, fallocate64, (int, int, off64_t, off64_t))                                          \
    X(int, posix_fadvise64, (int, off64_t, off64_t, int))                                      \
    X(int, fsync, (int))                                                                       \
    X(int, fdatasync, (int))                                                                   \
    X(int, fstatat64, (int, const char *, struct stat64 *, int))                               \
    X(int, statx, (int, const char *, int, unsigned int, struct statx *))                      \
    X(int, faccessat, (int, const char *, int, int))                                           \
    X(ssize_t, getxattr, (const char *, const char *, void *, size_t))                         \
    X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))                        \
    X(ssize_t, listxattr, (const char *, char *, size_t))                                      \
    X(ssize_t, llistxattr, (const char *, char *, size_t))                                     \
    X(ssize_t, fgetxattr, (int, const char *, void *, size_t))                                 \
    X(ssize_t, flistxattr, (int, char *, size_t))                                              \
    X(int, setxattr, (const char *, const char *, const void *, size_t, int))                  \
    X(int, lsetxattr, (const char *, const char *, const void *, size_t, int))                 \
    X(int, removexattr, (const char *, const char *))                                          \
    X(int, lremovexattr, (const char *, const char *))                                         \
    X(int, statfs64, (const char *, struct statfs64 *))                                        \
    X(int, fstatfs64, (int, struct statfs64 *))                                                \
    X(int, statvfs64, (const char *, struct statvfs64 *))                                      \
    X(int, fstatvfs64, (int, struct statvfs64 *))                                              \
    X(long, pathconf, (const char *, int))                                                     \
    X(long, fpathconf, (int, int))                                                             \
    X(int, name_to_handle_at, (int, const char *, struct file_handle *, int *, int))           \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                \
    X(char *, realpath, (const char *, char *))                                                \
    X(int, fchmodat, (int, const char *, mode_t, int))                                         \
    X(int, fchownat, (int, const char *, uid_t, gid_t, int))                                   \
    X(int, utimensat, (int, const char *, const struct timespec *, int))                       \
    X(int, unlinkat, (int, const char *, int))                                                 \
    X(int, mkdirat, (int, const char *, mode_t))                                               \
    X(int, renameat2, (int, const char *, int, const char *, unsigned int))                    \
    X(int, symlinkat, (const char *, int, const char *))                                       \
    X(int, linkat, (int, const char *, int, const char *, int))                                \
    X(int, mknodat, (int, const char *, mode_t, dev_t))                                        \
    X(int, remove, (const char *))                                                             \
    X(int, truncate64, (const char *, off64_t))                                                \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                           \
    X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *))            \
    X(int, pidfd_getfd, (int, int, unsigned int))                                              \
    X(int, execve, (const char *, char *const *, char *const *))                               \
    X(int, execvpe, (const char *, char *const *, char *const *))                              \
    X(int, fexecve, (int, char *const *, char *const *))                                       \
    X(int, execveat, (int, const char *, char *const *, char *const *, int))                   \
    X(int, posix_spawn,                                                                        \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,   \
       char *const *, char *const *))                                                          \
    X(int, posix_spawnp,                                                                       \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,   \
       char *const *, char *const *))                                                          \
    X(int, posix_spawn_file_actions_addopen,                                                   \
      (posix_spawn_file_actions_t *, int, const char *, int, mode_t))                          \
    X(int, posix_spawn_file_actions_addchdir_np, (posix_spawn_file_actions_t *, const char *)) \
    X(long, syscall, (long, ...))

struct preload_real {
#define PRELOAD_FIELD(ret, name, args) ret(*name) args;
    PRELOAD_REAL(PRELOAD_FIELD)
#undef PRELOAD_FIELD
};

extern struct preload_real preload_real_calls;
extern _Atomic bool preload_real_ready;
void preload_real_find(void);

static inline const struct preload_real *preload_real(void)
{
    if (!atomic_load_explicit(&preload_real_ready, memory_order_acquire))
        preload_real_find();
    return &preload_real_calls;
}

#endif
