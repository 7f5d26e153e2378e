/* SPDX-License-Identifier: MIT */
#include "fake/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/file.h"
#include "fake/log_file.h"
#include "fake/usercopy.h"
#include "kfd/error.h"
#include "kfd/uapi.h"

struct fake_log {
    pthread_mutex_t lock;
    struct fake_log_record **ring;
    size_t capacity, count, next;
    uint64_t sequence;
    char *path; /* of the file that every operation goes to at once, or NULL */
    _Atomic bool on;
};

struct fake_log *fake_log_new(void)
{
    struct fake_log *log = calloc(1, sizeof(*log));

    if (log != NULL)
        pthread_mutex_init(&log->lock, NULL);
    return log;
}

static void drop(struct fake_log *log)
{
    for (size_t i = 0; i < log->capacity; i++)
        free(log->ring[i]);
    free(log->ring);
    log->ring = NULL;
    log->capacity = 0;
    log->count = 0;
    log->next = 0;
    log->sequence = 0;
}

void fake_log_free(struct fake_log *log)
{
    if (log == NULL)
        return;
    drop(log);
    free(log->path);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

int fake_log_to_file(struct fake *fake, const char *path)
{
    struct fake_log *log = fake->log;
    char *copy = strdup(path);
    int err = copy != NULL ? fake_log_file_begin(fake, path) : -ENOMEM;

    if (err != 0) {
        free(copy);
        return kfd_fail(err, "the log file %s can't be written", path);
    }
    pthread_mutex_lock(&log->lock);
    free(log->path);
    log->path = copy;
    atomic_store(&log->on, true);
    pthread_mutex_unlock(&log->lock);
    return 0;
}

int fake_log_start(struct fake *fake, size_t capacity)
{
    struct fake_log *log = fake->log;
    struct fake_log_record **ring = NULL;

    if (capacity != 0) {
        ring = calloc(capacity, sizeof(struct fake_log_record *));
        if (ring == NULL)
            return kfd_fail(-ENOMEM, "fake_log_start: no memory for %zu entries", capacity);
    }
    pthread_mutex_lock(&log->lock);
    drop(log);
    log->ring = ring;
    log->capacity = capacity;
    atomic_store(&log->on, capacity != 0 || log->path != NULL);
    pthread_mutex_unlock(&log->lock);
    return 0;
}

static void add(struct fake_log *log, struct fake_log_record *record)
{
    pthread_mutex_lock(&log->lock);
    record->pid = getpid();
    record->sequence = ++log->sequence;
    if (log->path != NULL)
        fake_log_file_add(log->path, record);
    if (log->capacity == 0) {
        free(record);
    } else {
        free(log->ring[log->next]);
        log->ring[log->next] = record;
        log->next = (log->next + 1) % log->capacity;
        if (log->count < log->capacity)
            log->count++;
    }
    pthread_mutex_unlock(&log->lock);
}

int *fake_log_fd_in(uint32_t type, uint32_t nr, void *arg)
{
    if (type == KFD_UAPI_TYPE_DRM)
        return nr == DRM_NR_PRIME_FD_TO_HANDLE ? &((struct drm_prime_handle *)arg)->fd : NULL;
    switch (nr) {
    case KFD_NR_ACQUIRE_VM:
        return (int *)&((struct kfd_ioctl_acquire_vm_args *)arg)->drm_fd;
    case KFD_NR_IMPORT_DMABUF:
        return (int *)&((struct kfd_ioctl_import_dmabuf_args *)arg)->dmabuf_fd;
    case KFD_NR_GET_DMABUF_INFO:
        return (int *)&((struct kfd_ioctl_get_dmabuf_info_args *)arg)->dmabuf_fd;
    default:
        return NULL;
    }
}

int *fake_log_fd_out(uint32_t type, uint32_t nr, void *arg)
{
    if (type == KFD_UAPI_TYPE_DRM)
        return nr == DRM_NR_PRIME_HANDLE_TO_FD ? &((struct drm_prime_handle *)arg)->fd : NULL;
    return nr == KFD_NR_EXPORT_DMABUF ? (int *)&((struct kfd_uapi_export_dmabuf *)arg)->dmabuf_fd
                                      : NULL;
}

uint64_t fake_log_object(struct fake *fake, struct fake_process *p, int fd)
{
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_shared_bo bo;
    uint64_t object = 0;
    uint32_t index;

    fake_process_lock(p);
    if (fake_fd_look(fake, p, fd, &file, &kind) == FAKE_FD_FILE)
        object = 1ull << 63 | file->serial;
    else if (fake_machine_peek(&fake->machine, fd, &index, &bo) == 0)
        object = (uint64_t)bo.generation << 32 | index;
    fake_process_unlock(p);
    return object;
}

/* The device array of MAP and UNMAP, as far as it can be read. */
static uint32_t read_ids(const struct fake_call *call, const void *arg, uint32_t *ids)
{
    const struct kfd_ioctl_map_memory_to_gpu_args *a = arg;
    uint32_t n;

    if (call->type != KFD_UAPI_TYPE_KFD ||
        (call->nr != KFD_NR_MAP_MEMORY_TO_GPU && call->nr != KFD_NR_UNMAP_MEMORY_FROM_GPU))
        return 0;
    n = a->n_devices < FAKE_LOG_MAX_IDS ? a->n_devices : FAKE_LOG_MAX_IDS;
    return fake_copy_in(ids, a->device_ids_array_ptr, n * sizeof(*ids)) == 0 ? n * 4 : 0;
}

static struct fake_log_record *record_new(size_t bytes)
{
    return calloc(1, sizeof(struct fake_log_record) + bytes);
}

struct fake_log_record *fake_log_begin(struct fake_call *call, const void *arg)
{
    uint32_t ids[FAKE_LOG_MAX_IDS], in = arg != NULL ? call->in : 0, n = 0;
    struct fake_log_record *r;
    int *fd = NULL;

    if (!atomic_load_explicit(&call->fake->log->on, memory_order_relaxed))
        return NULL;
    if (arg != NULL) {
        n = read_ids(call, arg, ids);
        fd = fake_log_fd_in(call->type, call->nr, (void *)(uintptr_t)arg);
    }
    r = record_new((size_t)in + call->out + n);
    if (r == NULL)
        return NULL;
    *r = (struct fake_log_record){
        .kind = FAKE_LOG_REQUEST,
        .file_kind = call->file->kind,
        .fd = call->fd,
        .request = call->request,
        .node = call->file->serial,
        .gpu = call->file->vm != NULL ? call->file->gpu : FAKE_ANY_GPU,
        .in = in,
        .ids = n,
        .out_room = call->out,
    };
    if (in != 0)
        memcpy(r->bytes, arg, in);
    /* Where the outputs will go is left free. */
    memcpy(r->bytes + in + call->out, ids, n);
    if (fd != NULL)
        r->object = fake_log_object(call->fake, call->process, *fd);
    return r;
}

void fake_log_end(struct fake_call *call, struct fake_log_record *r, const void *arg, int result)
{
    int *fd;

    if (r == NULL)
        return;
    r->result = result;
    if (arg != NULL) {
        uint32_t room = call->out; /* may have been truncated since */

        memmove(r->bytes + r->in + room, r->bytes + r->in + r->out_room, r->ids);
        memcpy(r->bytes + r->in, arg, room);
        r->out = room;
        fd = fake_log_fd_out(call->type, call->nr, (void *)(uintptr_t)arg);
        if (fd != NULL && result >= 0)
            r->object = fake_log_object(call->fake, call->process, *fd);
    } else {
        memmove(r->bytes + r->in, r->bytes + r->in + r->out_room, r->ids);
    }
    add(call->fake->log, r);
}

void fake_log_open(struct fake *fake, struct fake_process *p, enum fake_file_kind kind,
                   uint32_t gpu, int fd)
{
    struct fake_log_record *r;

    if (!atomic_load(&fake->log->on))
        return;
    r = record_new(0);
    if (r == NULL)
        return;
    r->kind = FAKE_LOG_OPEN;
    r->file_kind = kind;
    r->gpu = kind == FAKE_FILE_KFD ? FAKE_ANY_GPU : gpu;
    r->fd = fd < 0 ? -1 : fd;
    r->result = fd < 0 ? fd : 0;
    r->node = fd < 0 ? 0 : (uint32_t)fake_log_object(fake, p, fd);
    add(fake->log, r);
}

void fake_log_map(struct fake *fake, struct fake_process *p, int fd,
                  const struct fake_log_mapping *mapping, int result)
{
    struct fake_log_record *r;

    if (!atomic_load_explicit(&fake->log->on, memory_order_relaxed))
        return;
    r = record_new(sizeof(*mapping));
    if (r == NULL)
        return;
    r->kind = FAKE_LOG_MAP;
    r->gpu = FAKE_ANY_GPU;
    r->fd = fd;
    r->result = result;
    r->object = fake_log_object(fake, p, fd);
    r->in = sizeof(*mapping);
    memcpy(r->bytes, mapping, sizeof(*mapping));
    add(fake->log, r);
}

void fake_log_close(struct fake *fake, struct fake_process *p, int fd)
{
    struct fake_log_record *r;
    uint64_t object;

    if (!atomic_load(&fake->log->on))
        return;
    object = fake_log_object(fake, p, fd);
    r = object != 0 ? record_new(0) : NULL;
    if (r == NULL)
        return;
    r->kind = FAKE_LOG_CLOSE;
    r->gpu = FAKE_ANY_GPU;
    r->fd = fd;
    r->object = object;
    add(fake->log, r);
}

static const struct fake_log_record *record_at(const struct fake_log *log, size_t i)
{
    return log->ring[(log->next + log->capacity - log->count + i) % log->capacity];
}

size_t fake_log_count(struct fake *fake)
{
    size_t n;

    pthread_mutex_lock(&fake->log->lock);
    n = fake->log->count;
    pthread_mutex_unlock(&fake->log->lock);
    return n;
}

int fake_log_get(struct fake *fake, size_t i, struct fake_log_entry *out)
{
    struct fake_log *log = fake->log;
    const struct fake_log_record *r;
    int err = -ENOENT;

    pthread_mutex_lock(&log->lock);
    if (i < log->count) {
        r = record_at(log, i);
        out->sequence = r->sequence;
        out->kind = r->kind;
        out->fd = r->fd;
        out->request = r->request;
        out->result = r->result;
        out->gpu = r->gpu;
        fake_log_describe(r, out->text, sizeof(out->text));
        err = 0;
    }
    pthread_mutex_unlock(&log->lock);
    return err == 0 ? 0 : kfd_fail(err, "fake_log_get: no entry %zu", i);
}

size_t fake_log_find(struct fake *fake, const char *part)
{
    struct fake_log *log = fake->log;
    char text[512];
    size_t found = 0;

    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->count; i++) {
        fake_log_describe(record_at(log, i), text, sizeof(text));
        found += strstr(text, part) != NULL;
    }
    pthread_mutex_unlock(&log->lock);
    return found;
}

int fake_log_save(struct fake *fake, FILE *out)
{
    struct fake_log *log = fake->log;

    pthread_mutex_lock(&log->lock);
    fake_log_print_header(fake, out);
    for (size_t i = 0; i < log->count; i++)
        fake_log_print(record_at(log, i), out);
    pthread_mutex_unlock(&log->lock);
    return ferror(out) ? kfd_fail(-EIO, "fake_log_save: writing failed") : 0;
}
