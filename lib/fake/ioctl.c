/* SPDX-License-Identifier: MIT */
#include "fake/ioctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "fake/file.h"
#include "fake/inject.h"
#include "fake/log.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

/* Arguments larger than this are copied to the heap. */
#define STACK_SIZE 512u

/* GEM_VA is four requests in one. */
static uint16_t operation(const struct fake_call *call, const void *karg)
{
    return call->type == KFD_UAPI_TYPE_DRM && call->nr == DRM_NR_GEM_VA
               ? (uint16_t)((const struct kfd_uapi_gem_va *)karg)->operation
               : 0;
}

static int run_locked(struct fake_call *call, void *karg)
{
    struct fake_stamp *now = &call->process->now;
    int ret;

    if (call->handler->unlocked)
        return call->handler->call(call, karg);
    fake_process_lock(call->process);
    now->request = call->sequence;
    now->pid = call->caller;
    now->code = (uint16_t)(call->type << 8 | call->nr);
    now->op = operation(call, karg);
    ret = call->handler->call(call, karg);
    fake_process_unlock(call->process);
    return ret;
}

/* These stop by themselves on the way; all others undo what they began. */
static bool stops_on_the_way(const struct fake_call *call)
{
    return call->type == KFD_UAPI_TYPE_KFD &&
           (call->nr == KFD_NR_MAP_MEMORY_TO_GPU || call->nr == KFD_NR_UNMAP_MEMORY_FROM_GPU ||
            call->nr == KFD_NR_FREE_MEMORY_OF_GPU);
}

static int run(struct fake_call *call, void *karg)
{
    int ret = call->type == KFD_UAPI_TYPE_KFD ? fake_kfd_validate(call, karg) : 0;

    if (ret != 0)
        return ret;
    fake_inject_check(call, karg);
    if (call->strike.armed) {
        if (call->strike.point == FAKE_INJECT_BEFORE ||
            (call->strike.point == FAKE_INJECT_MIDDLE && !stops_on_the_way(call)))
            return call->strike.error;
        if (call->strike.point == FAKE_INJECT_TRUNCATE && call->out > call->strike.done)
            call->out = call->strike.done;
    }
    if (call->handler->call == NULL)
        return -EINVAL;
    ret = run_locked(call, karg);
    if (ret >= 0 && call->strike.armed && call->strike.point == FAKE_INJECT_AFTER)
        ret = call->strike.error;
    return ret;
}

int fake_call_run(struct fake_call *call, uint32_t size, void *arg)
{
    uint64_t stack[STACK_SIZE / 8];
    void *karg = size <= sizeof(stack) ? stack : malloc(size);
    struct fake_log_record *record;
    int ret;

    if (karg == NULL)
        return -ENOMEM;
    memset(karg, 0, size);
    ret = fake_copy_in(karg, (uintptr_t)arg, call->in);
    record = fake_log_begin(call, ret == 0 ? karg : NULL);
    if (ret == 0) {
        ret = run(call, karg);
        /* Copied back on failure too: n_success and the like are valid then. */
        if (fake_copy_out((uintptr_t)arg, karg, call->out) != 0)
            ret = -EFAULT;
        fake_log_end(call, record, karg, ret);
    } else {
        fake_log_end(call, record, NULL, ret);
    }
    if (karg != stack)
        free(karg);
    return ret;
}

static int on_file(struct fake_call *call, unsigned long request, void *arg)
{
    struct fake_process *p = call->process;
    int ret;

    if (call->type == KFD_UAPI_TYPE_KFD)
        ret = fake_kfd_dispatch(call, request, arg);
    else
        ret = fake_drm_dispatch(call, request, arg);
    /* One that the node does not know, or not on this kind of node. */
    if (call->handler == NULL)
        fake_log_end(call, fake_log_begin(call, NULL), NULL, ret);
    fake_process_lock(p);
    fake_file_put(call->fake, p, call->file);
    fake_process_unlock(p);
    return ret;
}

/* A node of a process that this one was not forked from, or that has ended. A render node's VM
 * cannot be reached here, where the kernel would work on it. */
static int on_foreign(struct fake_call *call, unsigned long request, void *arg)
{
    if (call->type == KFD_UAPI_TYPE_KFD)
        return fake_kfd_dispatch(call, request, arg);
    return fake_strict(call->fake, call->process, -EBADF, NULL,
                       "request 0x%lx on a render node of a process that has ended or is no "
                       "parent of process %d",
                       request, call->process->pid);
}

/* Answered for every file before its driver is asked. */
static bool is_any_files(unsigned long request)
{
    return request == FIOCLEX || request == FIONCLEX || request == FIONBIO || request == FIOASYNC ||
           request == FIGETBSZ;
}

static int real_ioctl(int fd, unsigned long request, void *arg)
{
    int ret = ioctl(fd, request, arg);

    return ret >= 0 ? ret : -errno;
}

int fake_ioctl(struct fake *fake, int fd, unsigned long request, void *arg)
{
    struct fake_call call = {.fake = fake,
                             .fd = fd,
                             .request = request,
                             .nr = _IOC_NR(request),
                             .user_size = _IOC_SIZE(request)};
    enum fake_file_kind kind = 0;
    struct fake_process *p, *owner;
    enum fake_fd_kind what;
    int err;

    if (is_any_files(request))
        return real_ioctl(fd, request, arg);
    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    call.caller = p->pid;
    what = fake_fd_lock(fake, p, fd, &owner, &call.file, &kind);
    call.process = owner;
    call.sequence = ++owner->requests;
    if (what == FAKE_FD_FILE) {
        call.file->busy++;
        kind = call.file->kind;
    }
    fake_process_unlock(owner);
    call.type = kind == FAKE_FILE_KFD ? KFD_UAPI_TYPE_KFD : KFD_UAPI_TYPE_DRM;
    switch (what) {
    case FAKE_FD_FILE:
        return on_file(&call, request, arg);
    case FAKE_FD_FOREIGN:
        return on_foreign(&call, request, arg);
    case FAKE_FD_DMABUF:
        /* Only the CPU-access bracket. */
        return _IOC_TYPE(request) == 'b' && _IOC_NR(request) == 0 ? 0 : -ENOTTY;
    default:
        return real_ioctl(fd, request, arg);
    }
}
