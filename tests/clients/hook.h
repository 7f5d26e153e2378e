/* SPDX-License-Identifier: MIT */
/* A system that lets a test see, change or answer single operations on their way to the next. */
#ifndef CLIENTS_HOOK_H
#define CLIENTS_HOOK_H

#include <kfdirect/kfd.h>

struct hook {
    struct kfd_sys sys;
    struct kfd_sys *next;
    void *arg;
    /* Where NULL the operation is passed on; a hook that wants to go on does so itself, with
     * hook->next. */
    int (*open_path)(struct hook *hook, const char *path, int flags);
    int (*request)(struct hook *hook, int fd, unsigned long request, void *arg);
    int (*read_file)(struct hook *hook, const char *path, char *buf, size_t size);
    int (*stat_path)(struct hook *hook, const char *path, struct kfd_sys_stat *out);
    int (*list_dir)(struct hook *hook, const char *path, int (*each)(void *arg, const char *name),
                    void *arg);
};

/* next NULL: the Linux system. The hooks are set by the caller afterwards. */
void hook_init(struct hook *hook, struct kfd_sys *next);

/* Type and number, the part of a request that does not depend on a structure's size. */
#define REQUEST_OF(request) ((unsigned)(request)&0xffffu)

int hook_pass_open(struct hook *hook, const char *path, int flags);
int hook_pass_request(struct hook *hook, int fd, unsigned long request, void *arg);
int hook_pass_read(struct hook *hook, const char *path, char *buf, size_t size);

#endif
