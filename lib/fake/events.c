/* SPDX-License-Identifier: MIT */
#include "fake/events.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake/handle.h"
#include "fake/node_mmap.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define FIRST_SIGNAL_ID 1u
#define SLOT_BYTES 8u
/* Slots of the kernel's own page before a user has mapped it. */
#define EARLY_SLOTS 256u
#define FIRST_OTHER_ID 0x40000000u
#define OTHER_LIMIT 0x10000u
#define PAGE_OFFSET 0x8000000000000000ull
#define FOREVER 0xffffffffu
#define EVENT_AGE_MINOR 14u
/* As many as one allocation of the kernel's holds: 4 MiB, 56 bytes each. */
#define MAX_WAITERS ((4u << 20) / 56u)

struct waiter;

struct event {
    uint32_t id, type;
    bool auto_reset, signaled;
    uint64_t age;
    struct kfd_hsa_memory_exception_data memory;
    struct waiter *waiters;
};

/* One event of one WAIT_EVENTS; guarded by the events' lock. */
struct waiter {
    struct event *event; /* NULL: destroyed */
    bool activated;
    struct waiter *next; /* of the event */
};

struct fake_events {
    pthread_mutex_t lock;
    struct event **signals, **others;
    uint32_t signal_top, other_top; /* sizes of the arrays */
    uint32_t slots;                 /* signal ids below it may be given out */
    struct fake_pages page; /* the kernel's own signal page, unless the process brought one */
    _Atomic uint32_t wake;  /* futex: changes with every activation */
};

static struct fake_events *events_of(struct fake_process *p)
{
    if (p->events == NULL) {
        p->events = fake_calloc(sizeof(*p->events));
        if (p->events != NULL)
            pthread_mutex_init(&p->events->lock, NULL);
    }
    return p->events;
}

static bool is_signal(uint32_t type)
{
    return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

static struct event *find(const struct fake_events *e, uint32_t id)
{
    if (e == NULL)
        return NULL;
    if (id < e->signal_top)
        return e->signals[id];
    if (id >= FIRST_OTHER_ID && id - FIRST_OTHER_ID < e->other_top)
        return e->others[id - FIRST_OTHER_ID];
    return NULL;
}

/* Puts ev at the lowest free place in [first, limit). */
static int place(struct event ***array, uint32_t *top, uint32_t first, uint32_t limit,
                 struct event *ev, uint32_t *out)
{
    uint32_t i = first;

    while (i < *top && (*array)[i] != NULL)
        i++;
    if (i >= limit)
        return -ENOSPC;
    if (i >= *top) {
        uint32_t size = i < 32 ? 64 : i * 2;
        struct event **grown = fake_realloc(*array, size * sizeof(*grown));

        if (grown == NULL)
            return -ENOMEM;
        memset(grown + *top, 0, (size - *top) * sizeof(*grown));
        *array = grown;
        *top = size;
    }
    (*array)[i] = ev;
    *out = i;
    return 0;
}

/* The kernel makes the page with the first signal event if the process brought none. */
static int make_page(struct fake *fake, struct fake_events *e)
{
    int err;

    if (e->slots != 0)
        return 0;
    err = fake_pages_make(fake, &e->page, FAKE_EVENT_PAGE_SIZE);
    if (err != 0)
        return err;
    memset(e->page.at, 0xff, FAKE_EVENT_PAGE_SIZE);
    e->slots = EARLY_SLOTS;
    return 0;
}

static int add(struct fake *fake, struct fake_events *e, struct event *ev)
{
    int err;

    if (!is_signal(ev->type)) {
        err = place(&e->others, &e->other_top, 0, OTHER_LIMIT, ev, &ev->id);
        ev->id += FIRST_OTHER_ID;
        return err;
    }
    err = make_page(fake, e);
    return err != 0 ? err
                    : place(&e->signals, &e->signal_top, FIRST_SIGNAL_ID, e->slots, ev, &ev->id);
}

/* Takes the process's own buffer as signal page; FREE of it is refused from then on. */
static int bring_page(struct fake_call *call, struct fake_events *e, uint64_t value)
{
    static const unsigned char unsignaled[FAKE_EVENT_PAGE_SIZE] = {
        [0 ... FAKE_EVENT_PAGE_SIZE - 1] = 0xff};
    struct fake_process *p = call->process;
    struct fake_handle *h;
    int gpu, err;

    if (e->page.at != NULL || p->event_page != 0)
        return -EINVAL;
    h = fake_handle_get(call->fake, p, value, &gpu);
    if (gpu < 0)
        return -EINVAL;
    if (p->gpus[gpu].file == NULL)
        return -ENODEV;
    if (h == NULL || h->bo->mem->domain == FAKE_DOMAIN_USERPTR ||
        h->bo->mem->size < FAKE_EVENT_PAGE_SIZE)
        return -EINVAL;
    err = fake_mem_write(call->fake, h->bo->mem, 0, unsignaled, sizeof(unsignaled));
    if (err != 0)
        return err;
    p->event_page = value;
    e->slots = FAKE_EVENT_PAGE_SIZE / SLOT_BYTES;
    return 0;
}

int fake_kfd_create_event(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_create_event_args *a = arg;
    struct fake_events *e = events_of(call->process);
    struct event *ev;
    int err = 0;

    if (e == NULL)
        return -ENOMEM;
    if (a->event_page_offset != 0) {
        err = bring_page(call, e, a->event_page_offset);
        if (err != 0)
            return err;
    }
    ev = fake_calloc(sizeof(*ev));
    if (ev == NULL)
        return -ENOMEM;
    ev->type = a->event_type;
    ev->auto_reset = a->auto_reset != 0;
    ev->age = 1;
    pthread_mutex_lock(&e->lock);
    err = add(call->fake, e, ev);
    pthread_mutex_unlock(&e->lock);
    if (err != 0) {
        fake_free(ev);
        return err;
    }
    a->event_id = ev->id;
    a->event_trigger_data = ev->id;
    if (is_signal(ev->type)) {
        a->event_page_offset = PAGE_OFFSET;
        a->event_slot_index = ev->id;
    }
    return 0;
}

static void wake_all(struct fake_events *e)
{
    atomic_fetch_add(&e->wake, 1);
    syscall(SYS_futex, &e->wake, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* An event that resets itself stays unset if somebody waits for it now. */
static void set(struct fake_events *e, struct event *ev)
{
    ev->signaled = !ev->auto_reset || ev->waiters == NULL;
    /* 0 means "no age" to those who wait, 1 the first of all. */
    if (++ev->age == 0)
        ev->age = 2;
    for (struct waiter *w = ev->waiters; w != NULL; w = w->next)
        w->activated = true;
    wake_all(e);
}

int fake_kfd_destroy_event(struct fake_call *call, void *arg)
{
    uint32_t id = ((const struct kfd_ioctl_destroy_event_args *)arg)->event_id;
    struct fake_events *e = call->process->events;
    struct event *ev = find(e, id);

    if (ev == NULL)
        return -EINVAL;
    pthread_mutex_lock(&e->lock);
    if (id >= FIRST_OTHER_ID)
        e->others[id - FIRST_OTHER_ID] = NULL;
    else
        e->signals[id] = NULL;
    for (struct waiter *w = ev->waiters; w != NULL; w = w->next)
        w->event = NULL;
    wake_all(e);
    pthread_mutex_unlock(&e->lock);
    fake_free(ev);
    return 0;
}

static int set_or_reset(struct fake_call *call, uint32_t id, bool signaled)
{
    struct fake_events *e = call->process->events;
    struct event *ev = find(e, id);

    if (ev == NULL || ev->type != KFD_IOC_EVENT_SIGNAL)
        return -EINVAL;
    pthread_mutex_lock(&e->lock);
    if (signaled)
        set(e, ev);
    else
        ev->signaled = false;
    pthread_mutex_unlock(&e->lock);
    return 0;
}

int fake_kfd_set_event(struct fake_call *call, void *arg)
{
    return set_or_reset(call, ((const struct kfd_ioctl_set_event_args *)arg)->event_id, true);
}

int fake_kfd_reset_event(struct fake_call *call, void *arg)
{
    return set_or_reset(call, ((const struct kfd_ioctl_reset_event_args *)arg)->event_id, false);
}

/* The first 8 bytes of a signal's data, before 1.14 unused. */
static uint64_t *age_of(struct kfd_event_data *data)
{
    return (uint64_t *)(void *)data;
}

/* One element after the other: what is wrong with the first decides. */
static int start_waiting(struct fake_events *e, bool ages, uint64_t user, struct waiter *waiters,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct kfd_event_data data;
        struct event *ev;
        uint64_t age;

        if (fake_copy_in(&data, user + i * sizeof(data), sizeof(data)) != 0)
            return -EFAULT;
        ev = find(e, data.event_id);
        if (ev == NULL)
            return -EINVAL;
        age = ages ? *age_of(&data) : 0;
        waiters[i].event = ev;
        waiters[i].activated = ev->signaled;
        ev->signaled = ev->signaled && !ev->auto_reset;
        if (ev->type == KFD_IOC_EVENT_SIGNAL && age != 0 && age != ev->age)
            waiters[i].activated = true;
        waiters[i].next = ev->waiters;
        ev->waiters = &waiters[i];
    }
    return 0;
}

static void stop_waiting(struct waiter *waiters, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct waiter **link;

        if (waiters[i].event == NULL)
            continue;
        link = &waiters[i].event->waiters;
        while (*link != NULL && *link != &waiters[i])
            link = &(*link)->next;
        if (*link != NULL)
            *link = waiters[i].next;
    }
}

static uint32_t condition(const struct waiter *waiters, uint32_t n, bool all)
{
    uint32_t active = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (waiters[i].event == NULL)
            return KFD_IOC_WAIT_RESULT_FAIL;
        active += waiters[i].activated;
    }
    return active == n || (active > 0 && !all) ? KFD_IOC_WAIT_RESULT_COMPLETE
                                               : KFD_IOC_WAIT_RESULT_TIMEOUT;
}

/* Tells the caller what happened, as far as an event has something to tell. */
static int copy_results(const struct waiter *waiters, bool ages, uint64_t user, uint32_t n)
{
    int err = 0;

    for (uint32_t i = 0; i < n && err == 0; i++) {
        const struct event *ev = waiters[i].event;
        uint64_t at = user + i * sizeof(struct kfd_event_data);

        if (!waiters[i].activated)
            continue;
        if (ev->type == KFD_IOC_EVENT_MEMORY)
            err = fake_copy_out(at, &ev->memory, sizeof(ev->memory));
        else if (ev->type == KFD_IOC_EVENT_SIGNAL && ages)
            err = fake_copy_out(at, &ev->age, sizeof(ev->age));
    }
    return err;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps until a wake-up after `seen`; 0, -ETIMEDOUT or -EINTR. end: UINT64_MAX for ever. */
static int sleep_until(struct fake_events *e, uint32_t seen, uint64_t end)
{
    struct timespec left, *timeout = NULL;

    if (end != UINT64_MAX) {
        uint64_t now = now_ns();

        if (now >= end)
            return -ETIMEDOUT;
        left.tv_sec = (time_t)((end - now) / 1000000000u);
        left.tv_nsec = (long)((end - now) % 1000000000u);
        timeout = &left;
    }
    if (syscall(SYS_futex, &e->wake, FUTEX_WAIT_PRIVATE, seen, timeout, NULL, 0) != 0 &&
        errno == EINTR)
        return -EINTR;
    return 0;
}

/* Lock held on entry and exit. */
static int wait_for(struct fake_events *e, const struct waiter *waiters, uint32_t n,
                    struct kfd_ioctl_wait_events_args *a)
{
    uint64_t end = a->timeout == FOREVER ? UINT64_MAX : now_ns() + a->timeout * 1000000ull;

    for (;;) {
        uint32_t result = condition(waiters, n, a->wait_for_all != 0);
        uint32_t seen = atomic_load(&e->wake);
        int err;

        if (result != KFD_IOC_WAIT_RESULT_TIMEOUT || a->timeout == 0) {
            a->wait_result = result;
            return result == KFD_IOC_WAIT_RESULT_FAIL ? -EIO : 0;
        }
        pthread_mutex_unlock(&e->lock);
        err = sleep_until(e, seen, end);
        pthread_mutex_lock(&e->lock);
        if (err == -ETIMEDOUT) {
            a->wait_result = condition(waiters, n, a->wait_for_all != 0);
            return a->wait_result == KFD_IOC_WAIT_RESULT_FAIL ? -EIO : 0;
        }
        if (err == -EINTR) {
            uint64_t now = now_ns();

            /* The call is to be made again with what is left. */
            if (end != UINT64_MAX)
                a->timeout = now < end ? (uint32_t)((end - now) / 1000000u) : 0;
            return -EINTR;
        }
    }
}

int fake_kfd_wait_events(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_wait_events_args *a = arg;
    bool ages = call->fake->profile->kernel.kfd_minor >= EVENT_AGE_MINOR;
    struct waiter *waiters = NULL;
    struct fake_events *e;
    int err = 0;

    a->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
    if (a->num_events != 0) {
        if (a->num_events <= MAX_WAITERS)
            waiters = calloc(a->num_events, sizeof(*waiters));
        if (waiters == NULL)
            err = -ENOMEM;
    }
    fake_process_lock(call->process);
    e = events_of(call->process);
    fake_process_unlock(call->process);
    if (err == 0 && e == NULL)
        err = -ENOMEM;
    if (err == 0) {
        pthread_mutex_lock(&e->lock);
        err = start_waiting(e, ages, a->events_ptr, waiters, a->num_events);
        if (err == 0)
            err = wait_for(e, waiters, a->num_events, a);
        if (err == 0 && a->wait_result == KFD_IOC_WAIT_RESULT_COMPLETE)
            err = copy_results(waiters, ages, a->events_ptr, a->num_events);
        stop_waiting(waiters, a->num_events);
        pthread_mutex_unlock(&e->lock);
    }
    free(waiters);
    return err;
}

void fake_events_memory_fault(struct fake *fake, struct fake_process *p, uint32_t gpu, uint64_t va,
                              enum fake_fault_reason reason, enum fake_access access)
{
    struct fake_events *e = p->events;

    if (e == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; i < e->other_top; i++) {
        struct event *ev = e->others[i];

        if (ev == NULL || ev->type != KFD_IOC_EVENT_MEMORY)
            continue;
        memset(&ev->memory, 0, sizeof(ev->memory));
        ev->memory.va = va & ~(FAKE_PAGE - 1);
        ev->memory.gpu_id = fake->profile->gpus[gpu].gpu_id;
        ev->memory.failure.NotPresent = reason != FAKE_FAULT_READ_ONLY &&
                                        reason != FAKE_FAULT_NOT_READABLE &&
                                        reason != FAKE_FAULT_NO_EXEC;
        ev->memory.failure.ReadOnly = access == FAKE_WRITE;
        ev->memory.failure.NoExecute = access == FAKE_EXEC;
        set(e, ev);
    }
    pthread_mutex_unlock(&e->lock);
}

static unsigned int order(size_t size)
{
    unsigned int n = 0;

    while ((FAKE_PAGE << n) < size)
        n++;
    return n;
}

int fake_events_page(struct fake_process *p, size_t size, const struct fake_pages **page)
{
    struct fake_events *e = p->events;

    if (order(size) > order(FAKE_EVENT_PAGE_SIZE) || e == NULL || e->page.at == NULL)
        return -EINVAL;
    /* As many signals as the process can see. */
    e->slots = (uint32_t)(size < FAKE_EVENT_PAGE_SIZE ? size : FAKE_EVENT_PAGE_SIZE) / SLOT_BYTES;
    *page = &e->page;
    return 0;
}

uint32_t fake_events_count(const struct fake_process *p)
{
    const struct fake_events *e = p->events;
    uint32_t n = 0;

    for (uint32_t i = 0; e != NULL && i < e->signal_top; i++)
        n += e->signals[i] != NULL;
    for (uint32_t i = 0; e != NULL && i < e->other_top; i++)
        n += e->others[i] != NULL;
    return n;
}

void fake_events_destroy(struct fake *fake, struct fake_events *e)
{
    if (e == NULL)
        return;
    for (uint32_t i = 0; i < e->signal_top; i++)
        fake_free(e->signals[i]);
    for (uint32_t i = 0; i < e->other_top; i++)
        fake_free(e->others[i]);
    fake_free(e->signals);
    fake_free(e->others);
    fake_pages_free(fake, &e->page);
    pthread_mutex_destroy(&e->lock);
    fake_free(e);
}
