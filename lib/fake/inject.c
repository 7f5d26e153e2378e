/* SPDX-License-Identifier: MIT */
#include "fake/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fake/file.h"
#include "kfd/error.h"
#include "kfd/uapi.h"

struct armed {
    struct fake_injection what;
    uint64_t file_ino; /* of what.fd at the time of arming; 0: any */
    uint32_t id;
    uint64_t matched, struck;
    struct armed *next;
};

/* The list only grows until it is cleared. */
struct fake_injector {
    pthread_mutex_t lock;
    struct armed *first, **last;
    uint32_t last_id;
    _Atomic bool any; /* there is one: lets requests pass without the lock */
};

struct fake_injector *fake_injector_new(void)
{
    struct fake_injector *injector = calloc(1, sizeof(*injector));

    if (injector == NULL)
        return NULL;
    pthread_mutex_init(&injector->lock, NULL);
    injector->last = &injector->first;
    return injector;
}

static void drop_all(struct fake_injector *injector)
{
    while (injector->first != NULL) {
        struct armed *armed = injector->first;

        injector->first = armed->next;
        free(armed);
    }
    injector->last = &injector->first;
}

void fake_injector_free(struct fake_injector *injector)
{
    if (injector == NULL)
        return;
    drop_all(injector);
    pthread_mutex_destroy(&injector->lock);
    free(injector);
}

void fake_inject_clear(struct fake *fake)
{
    pthread_mutex_lock(&fake->injector->lock);
    drop_all(fake->injector);
    atomic_store(&fake->injector->any, false);
    pthread_mutex_unlock(&fake->injector->lock);
}

static int check(const struct fake *fake, const struct fake_injection *i)
{
    bool needs_error = i->point == FAKE_INJECT_BEFORE || i->point == FAKE_INJECT_AFTER ||
                       i->point == FAKE_INJECT_MIDDLE;

    if (i->size != sizeof(*i))
        return kfd_fail(-EINVAL, "fake_injection: size %zu, expected %zu", i->size, sizeof(*i));
    if (i->point > FAKE_INJECT_DELAY)
        return kfd_fail(-EINVAL, "fake_injection: unknown point %d", (int)i->point);
    if (needs_error && (i->error <= 0 || i->error > 4095))
        return kfd_fail(-EINVAL, "fake_injection: error %d is no errno", i->error);
    if (i->gpu != FAKE_ANY_GPU && i->gpu >= fake->profile->gpu_count)
        return kfd_fail(-EINVAL, "fake_injection: GPU %u of %u", i->gpu, fake->profile->gpu_count);
    if (i->request != 0 && i->request >> 8 != KFD_UAPI_TYPE_KFD &&
        i->request >> 8 != KFD_UAPI_TYPE_DRM)
        return kfd_fail(-EINVAL, "fake_injection: request 0x%x: its type is neither 'K' nor 'd'",
                        i->request);
    if (i->point == FAKE_INJECT_SILENT && i->request != 0 &&
        i->request != (KFD_UAPI_TYPE_DRM << 8 | DRM_NR_GEM_VA))
        return kfd_fail(-EINVAL, "fake_injection: only GEM_VA fails silently");
    return 0;
}

/* A descriptor stands for its file, so that a dup of it counts too. */
static int file_of_fd(struct fake *fake, int fd, uint64_t *ino)
{
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_process *p;
    int err;

    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    fake_process_lock(p);
    if (fake_fd_look(fake, p, fd, &file, &kind) == FAKE_FD_FILE)
        *ino = file->ino;
    fake_process_unlock(p);
    return *ino != 0 ? 0 : kfd_fail(-EINVAL, "fake_injection: descriptor %d is no node", fd);
}

int fake_inject(struct fake *fake, const struct fake_injection *injection, uint32_t *id)
{
    struct fake_injector *injector = fake->injector;
    struct armed *armed;
    int err = check(fake, injection);

    if (err != 0)
        return err;
    armed = calloc(1, sizeof(*armed));
    if (armed == NULL)
        return -ENOMEM;
    armed->what = *injection;
    if (injection->fd != FAKE_ANY_FD) {
        err = file_of_fd(fake, injection->fd, &armed->file_ino);
        if (err != 0) {
            free(armed);
            return err;
        }
    }
    pthread_mutex_lock(&injector->lock);
    armed->id = ++injector->last_id;
    *injector->last = armed;
    injector->last = &armed->next;
    atomic_store(&injector->any, true);
    if (id != NULL)
        *id = armed->id;
    pthread_mutex_unlock(&injector->lock);
    return 0;
}

int fake_inject_seen(struct fake *fake, uint32_t id, uint64_t *matched, uint64_t *struck)
{
    const struct armed *armed;

    pthread_mutex_lock(&fake->injector->lock);
    for (armed = fake->injector->first; armed != NULL && armed->id != id;)
        armed = armed->next;
    if (armed != NULL) {
        *matched = armed->matched;
        *struck = armed->struck;
    }
    pthread_mutex_unlock(&fake->injector->lock);
    return armed != NULL ? 0 : kfd_fail(-ENOENT, "fake_inject_seen: no injection %u", id);
}

/* The GPU a KFD request names; -1: none. */
static int gpu_of_request(const struct fake *fake, uint32_t nr, const void *arg)
{
    union {
        const struct kfd_ioctl_alloc_memory_of_gpu_args *alloc;
        const struct kfd_ioctl_acquire_vm_args *acquire;
        const struct kfd_ioctl_import_dmabuf_args *import;
        const struct kfd_ioctl_get_available_memory_args *available;
        const struct kfd_uapi_create_queue *queue;
        const uint64_t *handle;
    } a = {.handle = arg};

    switch (nr) {
    case KFD_NR_ALLOC_MEMORY_OF_GPU:
        return fake_gpu_of_id(fake, a.alloc->gpu_id);
    case KFD_NR_ACQUIRE_VM:
        return fake_gpu_of_id(fake, a.acquire->gpu_id);
    case KFD_NR_IMPORT_DMABUF:
        return fake_gpu_of_id(fake, a.import->gpu_id);
    case KFD_NR_AVAILABLE_MEMORY:
        return fake_gpu_of_id(fake, a.available->gpu_id);
    case KFD_NR_CREATE_QUEUE:
        return fake_gpu_of_id(fake, a.queue->gpu_id);
    case KFD_NR_FREE_MEMORY_OF_GPU:
    case KFD_NR_MAP_MEMORY_TO_GPU:
    case KFD_NR_UNMAP_MEMORY_FROM_GPU:
    case KFD_NR_EXPORT_DMABUF:
        return fake_gpu_of_id(fake, (uint32_t)(*a.handle >> 32));
    default:
        return -1;
    }
}

static bool matches(const struct armed *armed, const struct fake_call *call, int gpu)
{
    const struct fake_injection *i = &armed->what;

    if (i->request != 0 && i->request != (call->type << 8 | call->nr))
        return false;
    if (i->point == FAKE_INJECT_SILENT &&
        (call->type != KFD_UAPI_TYPE_DRM || call->nr != DRM_NR_GEM_VA))
        return false;
    if (armed->file_ino != 0 && armed->file_ino != call->file->ino)
        return false;
    return i->gpu == FAKE_ANY_GPU || (int)i->gpu == gpu;
}

static void sleep_us(uint32_t us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

    while (us != 0 && nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

void fake_inject_check(struct fake_call *call, const void *arg)
{
    struct fake_injector *injector = call->fake->injector;
    uint32_t delay = 0;
    int gpu;

    if (!atomic_load_explicit(&injector->any, memory_order_relaxed))
        return;
    gpu = call->file->vm != NULL ? (int)call->file->gpu : gpu_of_request(call->fake, call->nr, arg);
    pthread_mutex_lock(&injector->lock);
    for (struct armed *a = injector->first; a != NULL; a = a->next) {
        const struct fake_injection *i = &a->what;

        if (!matches(a, call, gpu))
            continue;
        a->matched++;
        if (a->matched <= i->skip || (i->count != 0 && a->struck >= i->count))
            continue;
        a->struck++;
        delay = i->delay_us;
        call->strike = (struct fake_strike){
            .armed = true, .point = i->point, .error = -i->error, .done = i->done};
        break;
    }
    pthread_mutex_unlock(&injector->lock);
    sleep_us(delay);
}
