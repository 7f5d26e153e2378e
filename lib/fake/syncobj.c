/* SPDX-License-Identifier: MIT */
#include "fake/syncobj.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define MAX_WAIT 64u
#define POLL_NS 1000000
#define WAIT_FLAGS                                                              \
    (DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL | DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT | \
     DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE)

struct fake_syncobj *fake_syncobj_get(const struct fake_file *file, uint32_t handle)
{
    return handle == 0 ? NULL : fake_ids_get(&file->syncobj, handle);
}

/* Lets the update that was kept back happen, and its point be reached. */
static void settle(struct fake_syncobj *obj)
{
    if (obj->vm != NULL)
        fake_vm_settle(obj->vm);
    obj->signaled = obj->submitted;
    obj->vm = NULL;
}

static void put(struct fake_syncobj *obj)
{
    if (--obj->refs == 0)
        fake_free(obj);
}

/* A handle of the file ends. The file's VM may go next, so what it owes the object comes now. */
static void drop(const struct fake_file *file, struct fake_syncobj *obj)
{
    if (obj->vm == file->vm)
        settle(obj);
    put(obj);
}

int fake_drm_syncobj_create(struct fake_call *call, void *arg)
{
    struct drm_syncobj_create *a = arg;
    struct fake_syncobj *obj;
    int err;

    if ((a->flags & ~(uint32_t)DRM_SYNCOBJ_CREATE_SIGNALED) != 0)
        return -EINVAL;
    obj = fake_calloc(sizeof(*obj));
    if (obj == NULL)
        return -ENOMEM;
    obj->refs = 1;
    obj->has_fence = (a->flags & DRM_SYNCOBJ_CREATE_SIGNALED) != 0;
    err = fake_ids_add(&call->file->syncobj, obj, &a->handle);
    if (err != 0)
        fake_free(obj);
    return err;
}

int fake_drm_syncobj_destroy(struct fake_call *call, void *arg)
{
    const struct drm_syncobj_destroy *a = arg;
    struct fake_syncobj *obj = fake_syncobj_get(call->file, a->handle);

    if (a->pad != 0 || obj == NULL)
        return -EINVAL;
    fake_ids_take(&call->file->syncobj, a->handle);
    drop(call->file, obj);
    return 0;
}

/* A descriptor is one end of a socket pair: its inode tells it from others, and the end kept here
 * tells when it is closed. */
struct fake_syncobj_fd {
    int fd;
    ino_t ino; /* of the program's end */
    struct fake_syncobj *obj;
    struct fake_syncobj_fd *next;
};

static void close_fd(struct fake_syncobj_fd *f)
{
    close(f->fd);
    put(f->obj);
    fake_free(f);
}

/* Lets those go whose descriptors are closed. */
static void sweep(struct fake_process *p)
{
    struct fake_syncobj_fd **link = &p->syncobj_fds;

    while (*link != NULL) {
        struct fake_syncobj_fd *f = *link;
        char byte;

        if (recv(f->fd, &byte, 1, MSG_DONTWAIT) != 0) {
            link = &f->next;
            continue;
        }
        *link = f->next;
        close_fd(f);
    }
}

void fake_syncobj_close_fds(struct fake_process *p)
{
    while (p->syncobj_fds != NULL) {
        struct fake_syncobj_fd *f = p->syncobj_fds;

        p->syncobj_fds = f->next;
        close_fd(f);
    }
}

/* Single fences as descriptors (flag 1) are not modelled, nor descriptors of a child that works on
 * its parent's file: the list's numbers are the parent's. */
static bool refused(const struct fake_call *call, const struct drm_syncobj_handle *a)
{
    return a->pad != 0 || a->flags != 0 || call->process->pid != getpid();
}

int fake_drm_syncobj_handle_to_fd(struct fake_call *call, void *arg)
{
    struct drm_syncobj_handle *a = arg;
    struct fake_syncobj *obj = fake_syncobj_get(call->file, a->handle);
    struct fake_syncobj_fd *f;
    struct stat st;
    int ends[2];

    if (refused(call, a) || obj == NULL)
        return -EINVAL;
    sweep(call->process);
    f = fake_calloc(sizeof(*f));
    if (f == NULL)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || fstat(ends[1], &st) != 0) {
        fake_free(f);
        return -errno;
    }
    *f = (struct fake_syncobj_fd){ends[0], st.st_ino, obj, call->process->syncobj_fds};
    call->process->syncobj_fds = f;
    obj->refs++;
    a->fd = ends[1];
    return 0;
}

int fake_drm_syncobj_fd_to_handle(struct fake_call *call, void *arg)
{
    struct drm_syncobj_handle *a = arg;
    struct fake_syncobj_fd *f = call->process->syncobj_fds;
    struct stat st;
    int err;

    if (refused(call, a) || fstat(a->fd, &st) != 0 || !S_ISSOCK(st.st_mode))
        return -EINVAL;
    while (f != NULL && f->ino != st.st_ino)
        f = f->next;
    if (f == NULL)
        return -EINVAL;
    err = fake_ids_add(&call->file->syncobj, f->obj, &a->handle);
    if (err == 0)
        f->obj->refs++;
    return err;
}

void fake_syncobj_submit(struct fake_syncobj *obj, struct fake_vm *vm, uint64_t point)
{
    obj->has_fence = true;
    if (point > obj->submitted)
        obj->submitted = point;
    obj->vm = vm;
    if (!vm->by_engine)
        settle(obj);
}

void fake_syncobj_destroy_all(struct fake_file *file)
{
    for (uint32_t i = 1; i < file->syncobj.top; i++) {
        struct fake_syncobj *obj = fake_syncobj_get(file, i);

        if (obj != NULL)
            drop(file, obj);
    }
    fake_ids_clear(&file->syncobj);
}

struct wait {
    uint32_t handles[MAX_WAIT];
    uint64_t points[MAX_WAIT];
    uint32_t n, flags, first;
};

/* 0: done; -EAGAIN: not yet. Process lock held. */
static int look(const struct fake_file *file, struct wait *w)
{
    uint32_t done = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        struct fake_syncobj *obj = fake_syncobj_get(file, w->handles[i]);
        bool submitted, reached;

        if (obj == NULL)
            return -ENOENT;
        settle(obj);
        submitted = obj->has_fence && w->points[i] <= obj->submitted;
        reached = w->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE
                      ? submitted
                      : obj->has_fence && w->points[i] <= obj->signaled;
        if (!submitted && (w->flags & (DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT |
                                       DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE)) == 0)
            return -EINVAL;
        if (!reached)
            continue;
        if (done++ == 0)
            w->first = i;
    }
    return done == w->n || (done != 0 && !(w->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL)) ? 0
                                                                                        : -EAGAIN;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int wait_for(struct fake_call *call, struct wait *w, int64_t deadline)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};

    for (;;) {
        int err;

        fake_process_lock(call->process);
        err = look(call->file, w);
        fake_process_unlock(call->process);
        if (err != -EAGAIN)
            return err;
        if (now_ns() >= deadline)
            return -ETIME;
        if (nanosleep(&pause, NULL) != 0)
            return -EINTR;
    }
}

int fake_drm_syncobj_timeline_wait(struct fake_call *call, void *arg)
{
    struct drm_syncobj_timeline_wait *a = arg;
    struct wait w = {.n = a->count_handles, .flags = a->flags};
    int err;

    if ((a->flags & ~(uint32_t)WAIT_FLAGS) != 0)
        return -EINVAL;
    if (w.n == 0) /* until 6.8 or so, which was not looked up */
        return call->fake->profile->kernel.drm_minor >= 61 ? 0 : -EINVAL;
    if (w.n > MAX_WAIT)
        return -ENOMEM;
    if (fake_copy_in(w.handles, a->handles, w.n * sizeof(w.handles[0])) != 0)
        return -EFAULT;
    if (a->points != 0 && fake_copy_in(w.points, a->points, w.n * sizeof(w.points[0])) != 0)
        return -EFAULT;
    err = wait_for(call, &w, a->timeout_nsec);
    if (err == 0)
        a->first_signaled = w.first;
    return err;
}
