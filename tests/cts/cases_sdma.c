/* SPDX-License-Identifier: MIT */
/*
 * Copies by a queue of the process itself, through the page tables that the driver wrote for it.
 * The guest's cards play SDMA queues of users; packets are those of SDMA 3 (gfx8) and 4 (gfx9).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rig.h"

enum {
    MAP = 1,
    UNMAP = 2,
    REPLACE = 4
};
enum {
    R = 2,
    RW = 6
};

#define RING 4096u
#define SIZE MiB(4)

/* One SDMA queue of the process. */
struct lane {
    uint32_t *ring;
    volatile uint32_t *words; /* the page of the pointers, and of the fence */
    volatile uint32_t *bell;
    uint64_t words_va;
    uint32_t at, fence;
    bool old; /* gfx8 */
};

/* Both sides see it at one address: a driver that stops the queue and starts it again reads the
 * write pointer there. */
static void *page(struct cts *c, uint64_t va, uint64_t size)
{
    uint64_t offset = 0, h;
    void *p = NULL;
    long ret;

    h = cts_alloc_mmap(c, "alloc for the queue", 0, 0, va, size, KFD_MEM_GTT | CTS_RW, &offset);
    cts_map(c, "map it", 0, h, 0, CTS_IDS(c->gpu[0].id));
    ret = c->sys->ops->map_pages(c->sys, (void *)(uintptr_t)va, size, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_FIXED_NOREPLACE, c->gpu[0].drm, offset, &p);
    cts_row(c, "CPU view", 0, ret, "-");
    return ret < 0 ? NULL : p;
}

static void lane_make(struct cts *c, struct lane *l, uint64_t va)
{
    struct kfd_uapi_create_queue q = {
        .ring_base_address = va,
        .ring_size = RING,
        .write_pointer_address = va + MiB(1),
        .read_pointer_address = va + MiB(1) + 128,
        .gpu_id = c->gpu[0].id,
        .queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
        .queue_percentage = 100,
        .queue_priority = 7,
    };
    uint64_t slice;
    uint8_t *bells;

    l->old = c->gpu[0].va_limit >> 40 == 0;
    slice = l->old ? 4096 : 8192;
    l->words_va = va + MiB(1);
    l->ring = page(c, va, RING);
    l->words = page(c, l->words_va, 4096);
    cts_row(c, "create the queue", 0, rig_create(c, &q), "-");
    bells = cts_mmap(c, "doorbells", 0, c->kfd, q.doorbell_offset & ~(slice - 1), slice,
                     PROT_READ | PROT_WRITE, MAP_SHARED);
    if (!l->ring || !l->words || !bells)
        cts_skip(c, "no queue");
    l->bell = (volatile uint32_t *)(bells + (l->old ? q.queue_id * 4 : q.doorbell_offset % slice));
}

static void put(struct lane *l, uint32_t word)
{
    l->ring[l->at++ % (RING / 4)] = word;
}

/* Rings the doorbell behind a fence and waits until the fence is there. */
static bool ring(struct lane *l)
{
    struct timespec ms = {.tv_nsec = 1000000};
    uint64_t fence = l->words_va + 256;

    put(l, 5);
    put(l, (uint32_t)fence);
    put(l, (uint32_t)(fence >> 32));
    put(l, ++l->fence);
    l->words[0] = l->at * 4;
    __sync_synchronize();
    *l->bell = l->at * 4;
    for (int i = 0; i < 2000 && l->words[64] != l->fence; i++)
        nanosleep(&ms, NULL);
    return l->words[64] == l->fence;
}

static bool copy(struct lane *l, uint64_t to, uint64_t from, uint32_t bytes)
{
    put(l, 1);
    put(l, bytes - !l->old);
    put(l, 0);
    put(l, (uint32_t)from);
    put(l, (uint32_t)(from >> 32));
    put(l, (uint32_t)to);
    put(l, (uint32_t)(to >> 32));
    return ring(l);
}

/* What the card has met so far that was not mapped or not allowed. */
static uint64_t faults(void)
{
    return cts_hollow("faults");
}

struct buffer {
    uint64_t h;
    uint32_t gem;
    uint32_t *view, *was;
};

static void buffer_make(struct cts *c, struct buffer *b, const char *what, uint32_t type,
                        uint32_t seed)
{
    uint64_t offset = 0;
    int fd;

    b->h = cts_alloc_mmap(c, what, 0, 0, 0, SIZE, type | CTS_RW, &offset);
    fd = cts_export(c, "export", 0, b->h);
    b->gem = cts_prime(c, "PRIME", 0, c->gpu[0].drm, fd);
    cts_close(c, fd);
    b->view =
        cts_mmap(c, "CPU view", 0, c->gpu[0].drm, offset, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED);
    b->was = malloc(SIZE);
    if (!b->view || !b->was)
        cts_skip(c, "no memory");
    for (uint32_t i = 0; i < SIZE / 4; i++)
        b->view[i] = b->was[i] = i * 2654435761u ^ seed;
}

static void va(struct cts *c, const struct buffer *b, const char *step, uint32_t op, uint64_t at,
               uint64_t offset, uint64_t size, uint32_t flags)
{
    cts_gem_va(c, step, 0, c->gpu[0].drm, b->gem, op, at, offset, size, flags);
}

/* Copies, and says whether the destination is what a machine with these tables makes of it. */
static void try(struct cts *c, struct lane *l, const char *step, uint64_t to, uint64_t from,
                uint32_t bytes, struct buffer *d, bool fault)
{
    uint64_t before = faults();
    bool done = copy(l, to, from, bytes), same, met;

    same = done && !memcmp(d->view, d->was, SIZE);
    met = faults() != before;
    cts_row(c, step, 0,
            !done                  ? -ETIME
            : same && met == fault ? 0
                                   : -EXDEV,
            "%s, %s", same ? "right" : "wrong", met ? "fault" : "no fault");
    memcpy(d->view, d->was, SIZE);
}

/* What a copy is to change. */
static void expect(struct buffer *d, uint64_t to, const struct buffer *s, uint64_t from,
                   uint64_t bytes)
{
    memcpy((char *)d->was + to, (const char *)s->was + from, bytes);
}

static void copies(struct cts *c, uint32_t type)
{
    uint64_t in = c->va + MiB(64), out = c->va + MiB(128) + KiB(64), alias = c->va + MiB(192);
    struct buffer a = {0}, b = {0};
    struct lane l = {0};

    lane_make(c, &l, c->va);
    buffer_make(c, &a, "source", KFD_MEM_VRAM | KFD_MEM_PUBLIC, 1);
    buffer_make(c, &b, "destination", type, 2);
    va(c, &a, "map the source, read-only, at offset 1 MiB", MAP, in, MiB(1), MiB(2), R);
    va(c, &b, "map the destination", MAP, out, 0, SIZE, RW);
    expect(&b, KiB(12), &a, MiB(1) + 4096, MiB(1));
    try(c, &l, "copy 1 MiB", out + KiB(12), in + 4096, (uint32_t)MiB(1), &b, false);
    expect(&b, MiB(3) + 60, &a, MiB(3) - 100, 100);
    try(c, &l, "copy 100 bytes up to the end", out + MiB(3) + 60, in + MiB(2) - 100, 100, &b,
        false);
    expect(&b, MiB(2), &a, MiB(3) - 4096, 4096);
    try(c, &l, "copy 8 KiB over the end", out + MiB(2), in + MiB(2) - 4096, KiB(8), &b, true);
    va(c, &b, "map the destination again, read-only", MAP, alias, MiB(1), MiB(1), R);
    try(c, &l, "copy to the read-only alias", alias, in, KiB(64), &b, true);
    va(c, &b, "replace: the alias is writable", REPLACE, alias, MiB(1), MiB(1), RW);
    expect(&b, MiB(1), &a, MiB(1), KiB(64));
    try(c, &l, "copy to the alias", alias, in, KiB(64), &b, false);
    va(c, &b, "replace: the destination is read-only", REPLACE, out, 0, SIZE, R);
    try(c, &l, "copy to the destination", out, in, KiB(64), &b, true);
    va(c, &b, "unmap the alias", UNMAP, alias, 0, MiB(1), 0);
    try(c, &l, "copy to where the alias was", alias, in, KiB(64), &b, true);
    va(c, &a, "unmap the source", UNMAP, in, 0, MiB(2), 0);
    va(c, &b, "replace: the destination is writable", REPLACE, out, 0, SIZE, RW);
    try(c, &l, "copy from where the source was", out, in, KiB(64), &b, true);
    va(c, &a, "map the source elsewhere", MAP, in + MiB(32), 0, SIZE, R);
    expect(&b, 0, &a, 0, MiB(2));
    try(c, &l, "copy 2 MiB", out, in + MiB(32), (uint32_t)MiB(2), &b, false);
}

static void start(struct cts *c)
{
    if (access("/sys/module/hollow/parameters/faults", R_OK))
        cts_skip(c, "no card of memory");
    cts_start(c);
}

static void to_vram(struct cts *c)
{
    start(c);
    copies(c, KFD_MEM_VRAM | KFD_MEM_PUBLIC);
}

static void to_system(struct cts *c)
{
    start(c);
    copies(c, KFD_MEM_GTT);
}

static uint64_t mapped(struct cts *c, struct buffer *b, const char *what, uint64_t at,
                       uint32_t flags)
{
    uint64_t offset = (uintptr_t)b->view;

    b->h = cts_alloc_mmap(c, what, 0, 0, at, SIZE, flags, &offset);
    cts_map(c, "map", 0, b->h, 0, CTS_IDS(c->gpu[0].id));
    if (!b->view)
        b->view = cts_mmap(c, "CPU view", 0, c->gpu[0].drm, offset, SIZE, PROT_READ | PROT_WRITE,
                           MAP_SHARED);
    b->was = malloc(SIZE);
    if (!b->view || !b->was)
        cts_skip(c, "no memory");
    for (uint32_t i = 0; i < SIZE / 4; i++)
        b->view[i] = b->was[i] = i * 2654435761u ^ (uint32_t)at;
    return at;
}

/* What KFD itself maps, the process's own pages among it. */
static void by_kfd(struct cts *c)
{
    struct buffer own = {0}, vram = {0}, fixed = {0};
    uint64_t from, to, no;
    struct lane l = {0};

    start(c);
    lane_make(c, &l, c->va);
    own.view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    from = mapped(c, &own, "the process's own pages", c->va + MiB(64), KFD_MEM_USERPTR | CTS_RW);
    to = mapped(c, &vram, "VRAM", c->va + MiB(128), KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW);
    no = mapped(c, &fixed, "VRAM, read-only", c->va + MiB(192), KFD_MEM_VRAM | KFD_MEM_PUBLIC);
    expect(&vram, 4, &own, KiB(4) - 8, MiB(2));
    try(c, &l, "copy 2 MiB, unaligned", to + 4, from + KiB(4) - 8, (uint32_t)MiB(2), &vram, false);
    try(c, &l, "copy to the read-only buffer", no, from, KiB(64), &fixed, true);
    expect(&vram, 0, &fixed, KiB(8), KiB(64));
    try(c, &l, "copy from it", to, no + KiB(8), KiB(64), &vram, false);
    expect(&own, MiB(3), &vram, 0, KiB(64));
    try(c, &l, "copy to the process's own pages", from + MiB(3), to, KiB(64), &own, false);
    cts_unmap(c, "unmap", 0, vram.h, 0, CTS_IDS(c->gpu[0].id));
    try(c, &l, "copy to what was unmapped", to, from, KiB(64), &vram, true);
}

/* The kernel moves the process's own pages: the queue stops, and goes on where it was. */
static void moved(struct cts *c)
{
    struct buffer own = {0}, vram = {0};
    struct lane l = {0};
    uint64_t from, to, before;
    char step[32];

    start(c);
    lane_make(c, &l, c->va);
    own.view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    from = mapped(c, &own, "the process's own pages", c->va + MiB(64), KFD_MEM_USERPTR | CTS_RW);
    to = mapped(c, &vram, "VRAM", c->va + MiB(128), KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW);
    try(c, &l, "copy to where nothing is", c->va + MiB(192), from, KiB(4), &vram, true);
    before = faults();
    for (uint64_t n = 0; n < 4; n++) {
        snprintf(step, sizeof step, "copy %d", (int)n);
        mprotect(own.view, MiB(1), PROT_READ);
        mprotect(own.view, MiB(1), PROT_READ | PROT_WRITE);
        if (n & 1) /* it goes on before there is something for it */
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        expect(&vram, KiB(64) * n, &own, KiB(128) * n, KiB(64));
        try(c, &l, step, to + KiB(64) * n, from + KiB(128) * n, KiB(64), &vram, false);
    }
    cts_row(c, "packets ran once", 0, 0, "%s", faults() == before ? "yes" : "no");
}

static long wait_event(struct cts *c, struct kfd_event_data *e, uint32_t *result)
{
    struct kfd_ioctl_wait_events_args a = {
        .events_ptr = (uintptr_t)e, .num_events = 1, .timeout = 3000};
    long ret = cts_request(c, c->kfd, KFD_CODE_WAIT_EVENTS, &a);

    *result = a.wait_result;
    return ret;
}

static uint32_t event(struct cts *c, const char *step, uint32_t type)
{
    struct kfd_ioctl_create_event_args a = {.event_type = type};
    long ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &a);

    cts_row(c, step, 0, ret, "-");
    return a.event_id;
}

/* A trap packet wakes who waits for its event. */
static void signal_event(struct cts *c)
{
    struct kfd_event_data e = {0};
    struct lane l = {0};
    uint32_t result = 9;
    uint64_t *slots;
    long ret;

    start(c);
    lane_make(c, &l, c->va);
    e.event_id = event(c, "create an event", KFD_IOC_EVENT_SIGNAL);
    slots = cts_mmap(c, "its page", 0, c->kfd, (uint64_t)1 << 63, KiB(32), PROT_READ | PROT_WRITE,
                     MAP_SHARED);
    if (!slots)
        cts_skip(c, "no page");
    slots[e.event_id] = 1; /* a fence of the queue would do it; the page is not mapped here */
    put(&l, 6);
    put(&l, e.event_id);
    cts_row(c, "trap", 0, ring(&l) ? 0 : -ETIME, "-");
    ret = wait_event(c, &e, &result);
    cts_row(c, "wait for it", 0, ret, "wait_result=%u", result);
}

static bool report(const char *on)
{
    int fd = open("/sys/module/hollow/parameters/report", O_WRONLY | O_CLOEXEC);
    bool done = write(fd, on, 1) == 1;

    close(fd);
    return done;
}

static void smi_text(struct cts *c, int fd)
{
    char text[256] = "";
    ssize_t n = read(fd, text, sizeof text - 1);
    unsigned event = 0;

    cts_row(c, "SMI event", 0, n < 0 ? -errno : 0, "%s",
            sscanf(text, "%x", &event) == 1 && event == KFD_SMI_EVENT_VMFAULT ? "VM fault" : text);
}

/* A card that reports its faults: the memory event, the SMI event, and the queues stopped. */
static void fault_event(struct cts *c)
{
    struct kfd_ioctl_smi_events_args smi = {.gpuid = c->gpu[0].id};
    uint64_t mask = KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_VMFAULT), at;
    struct kfd_event_data e = {0};
    struct lane l = {0};
    uint32_t result = 9;
    long ret;

    start(c);
    if (c->gpu[0].va_limit >> 40 == 0)
        cts_skip(c, "gfx8 reports otherwise");
    lane_make(c, &l, c->va);
    at = c->va + MiB(64) + 4096;
    e.event_id = event(c, "create a memory event", KFD_IOC_EVENT_MEMORY);
    ret = cts_request(c, c->kfd, KFD_CODE_SMI_EVENTS, &smi);
    cts_row(c, "open SMI events", 0, ret, "-");
    cts_row(c, "ask for faults", 0, write((int)smi.anon_fd, &mask, 8) == 8 ? 0 : -errno, "-");
    if (!report("1"))
        cts_skip(c, "no reports");
    cts_row(c, "copy to what is not mapped", 0, copy(&l, at, l.words_va, 64) ? 0 : -ETIME, "-");
    ret = wait_event(c, &e, &result);
    report("0");
    cts_row(c, "wait for it", 0, ret, "wait_result=%u", result);
    cts_row(c, "what it says", 0, 0, "gpu %s va %s not present %u read-only %u",
            e.memory_exception_data.gpu_id == c->gpu[0].id ? "right" : "wrong",
            e.memory_exception_data.va == (at & ~4095ull) ? "right" : "wrong",
            e.memory_exception_data.failure.NotPresent, e.memory_exception_data.failure.ReadOnly);
    smi_text(c, (int)smi.anon_fd);
    cts_row(c, "copy again: the queue is stopped", 0,
            copy(&l, l.words_va + 512, l.words_va, 64) ? -EXDEV : 0, "-");
}

const struct cts_case cts_sdma_cases[] = {
    {"sdma.to_vram", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, to_vram},
    {"sdma.to_system", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, to_system},
    {"sdma.by_kfd", CTS_DRIVER | CTS_LARGE_BAR, by_kfd},
    {"sdma.moved", CTS_DRIVER | CTS_LARGE_BAR, moved},
    {"sdma.signal", CTS_DRIVER, signal_event},
    {"sdma.fault", CTS_DRIVER, fault_event},
    {0},
};
