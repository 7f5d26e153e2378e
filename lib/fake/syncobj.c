/* SPDX-License-Identifier: MIT */
#include "fake/syncobj.h"

#include <errno.h>
#include <time.h>

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
    fake_free(obj);
    return 0;
}

void fake_syncobj_submit(struct fake_syncobj *obj, uint64_t point, bool at_once)
{
    obj->has_fence = true;
    if (point > obj->submitted)
        obj->submitted = point;
    if (at_once)
        obj->signaled = obj->submitted;
}

void fake_syncobj_settle(struct fake_file *file)
{
    fake_vm_settle(file->vm);
    for (uint32_t i = 1; i < file->syncobj.top; i++) {
        struct fake_syncobj *obj = fake_syncobj_get(file, i);

        if (obj != NULL)
            obj->signaled = obj->submitted;
    }
}

void fake_syncobj_destroy_all(struct fake_file *file)
{
    for (uint32_t i = 1; i < file->syncobj.top; i++)
        fake_free(fake_syncobj_get(file, i));
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
        const struct fake_syncobj *obj = fake_syncobj_get(file, w->handles[i]);
        bool submitted, reached;

        if (obj == NULL)
            return -ENOENT;
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
        fake_syncobj_settle(call->file);
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

    if ((a->flags & ~(uint32_t)WAIT_FLAGS) != 0 || w.n == 0)
        return -EINVAL;
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
