/* SPDX-License-Identifier: MIT */
#include "fake/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/file.h"
#include "fake/usercopy.h"
#include "kfd/decode.h"
#include "kfd/error.h"
#include "kfd/uapi.h"

struct fake_log {
    pthread_mutex_t lock;
    struct fake_log_record **ring;
    size_t capacity, count, next;
    uint64_t sequence;
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
    pthread_mutex_destroy(&log->lock);
    free(log);
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
    atomic_store(&log->on, capacity != 0);
    pthread_mutex_unlock(&log->lock);
    return 0;
}

static void add(struct fake_log *log, struct fake_log_record *record)
{
    pthread_mutex_lock(&log->lock);
    if (log->capacity == 0) {
        free(record);
    } else {
        record->sequence = ++log->sequence;
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

    pthread_mutex_lock(&p->lock);
    if (fake_fd_look(fake, p, fd, &file, &kind) == FAKE_FD_FILE)
        object = 1ull << 63 | file->serial;
    else if (fake_machine_peek(&fake->machine, fd, &index, &bo) == 0)
        object = (uint64_t)bo.generation << 32 | index;
    pthread_mutex_unlock(&p->lock);
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

static void describe(const struct fake_log_record *r, char *text, size_t size)
{
    int len;

    switch (r->kind) {
    case FAKE_LOG_OPEN:
        if (r->file_kind == FAKE_FILE_KFD)
            snprintf(text, size, "OPEN kfd = %d", r->result < 0 ? r->result : r->fd);
        else
            snprintf(text, size, "OPEN %s gpu=%u = %d",
                     r->file_kind == FAKE_FILE_RENDER ? "render" : "primary", r->gpu,
                     r->result < 0 ? r->result : r->fd);
        return;
    case FAKE_LOG_CLOSE:
        snprintf(text, size, "CLOSE %s fd=%d", r->object >> 63 ? "node" : "dmabuf", r->fd);
        return;
    default:
        len = kfd_decode_call(r->request, r->in != 0 ? r->bytes : NULL,
                              r->out != 0 ? r->bytes + r->in : NULL, text, size);
        if (len >= 0 && (size_t)len < size)
            snprintf(text + len, size - (size_t)len, " = %d", r->result);
    }
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
        describe(r, out->text, sizeof(out->text));
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
        describe(record_at(log, i), text, sizeof(text));
        found += strstr(text, part) != NULL;
    }
    pthread_mutex_unlock(&log->lock);
    return found;
}

static void print_hex(FILE *out, const uint8_t *bytes, uint32_t n)
{
    fputc(' ', out);
    if (n == 0)
        fputc('-', out);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%02x", bytes[i]);
}

int fake_log_save(struct fake *fake, FILE *out)
{
    struct fake_log *log = fake->log;
    char text[512];

    pthread_mutex_lock(&log->lock);
    fprintf(out, "kfdirect-fake-log 1 %s %s\n", fake->profile->machine_name,
            fake->profile->kernel.name);
    for (size_t i = 0; i < log->count; i++) {
        const struct fake_log_record *r = record_at(log, i);

        describe(r, text, sizeof(text));
        fprintf(out, "%llu %d %d %u %d %lx %d %llx", (unsigned long long)r->sequence, (int)r->kind,
                (int)r->file_kind, r->node, (int)r->gpu, r->request, r->result,
                (unsigned long long)r->object);
        print_hex(out, r->bytes, r->in);
        print_hex(out, r->bytes + r->in, r->out);
        print_hex(out, r->bytes + r->in + r->out, r->ids);
        fprintf(out, " # %s\n", text);
    }
    pthread_mutex_unlock(&log->lock);
    return ferror(out) ? kfd_fail(-EIO, "fake_log_save: writing failed") : 0;
}
