/* SPDX-License-Identifier: MIT */
#include "fake/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Address space, not memory: as much as the host gives. Nobody may touch it before it is needed, so
 * that who reads all of a process's memory, as valgrind does in search of leaks, brings none in. */
#define LARGEST (UINT64_C(1) << 34)
#define SMALLEST (UINT64_C(1) << 26)
#define STEP (UINT64_C(1) << 20) /* what is opened at a time */
#define UNIT 16u
#define FREED 0xa5 /* so that whoever still looks there falls over it */
#define SMALL 1024u
/* Sizes in units up to SMALL, then powers of two. */
#define CLASSES (SMALL / UNIT + 32)

struct block {
    uint64_t class;
    struct block *next; /* in the free list */
};

/* At the start of the shared memory. */
struct shared {
    size_t top, used;
    struct block *free[CLASSES];
};

static_assert(sizeof(struct shared) < STEP, "the first step holds the description");

/* This process's view; a forked child has a copy, as it has of the mapping's rights. */
struct fake_arena {
    struct shared *shared;
    size_t size, open; /* [0, open) may be touched */
};

static _Thread_local struct fake_arena *current;

static uint64_t class_of(size_t size)
{
    size_t units = (size + UNIT - 1) / UNIT;

    if (size <= SMALL)
        return units != 0 ? units - 1 : 0;
    /* 1025 to 2048 is the first power of two. */
    return SMALL / UNIT + (uint64_t)(63 - __builtin_clzll(size - 1)) - 10;
}

static size_t class_size(uint64_t class)
{
    return class < SMALL / UNIT ? (class + 1) * UNIT : (size_t)2 * SMALL << (class - SMALL / UNIT);
}

/* Lets this process touch the first `end` bytes. */
static bool open_up(struct fake_arena *a, size_t end)
{
    size_t wanted = (end + STEP - 1) / STEP * STEP;

    if (wanted <= a->open)
        return true;
    if (wanted > a->size ||
        mprotect((char *)a->shared + a->open, wanted - a->open, PROT_READ | PROT_WRITE) != 0)
        return false;
    a->open = wanted;
    return true;
}

static bool map_largest(struct fake_arena *a)
{
    for (a->size = LARGEST; a->size >= SMALLEST; a->size /= 2) {
        a->shared =
            mmap(NULL, a->size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (a->shared != MAP_FAILED)
            return true;
    }
    return false;
}

struct fake_arena *fake_arena_new(void)
{
    /* No heap: what only shared memory points to looks lost to a leak checker. */
    struct fake_arena *a =
        mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (a == MAP_FAILED)
        return NULL;
    if (!map_largest(a)) {
        munmap(a, sizeof(*a));
        return NULL;
    }
    if (!open_up(a, sizeof(*a->shared))) {
        fake_arena_unmap(a);
        return NULL;
    }
    madvise(a->shared, a->size, MADV_DONTDUMP);
    a->shared->top = (sizeof(*a->shared) + UNIT - 1) / UNIT * UNIT;
    return a;
}

void fake_arena_unmap(struct fake_arena *a)
{
    munmap(a->shared, a->size);
    munmap(a, sizeof(*a));
}

struct fake_arena *fake_arena_enter(struct fake_arena *a)
{
    struct fake_arena *before = current;

    /* Another process may have taken more of it meanwhile. This can only fail with the process at
     * its limit of mappings, and a touch of what stayed closed would tell. */
    if (a != NULL)
        open_up(a, a->shared->top);
    current = a;
    return before;
}

size_t fake_arena_used(const struct fake_arena *a)
{
    return a->shared->used;
}

/* fresh: its bytes are zero already. */
static void *take(struct fake_arena *a, size_t size, bool *fresh)
{
    struct shared *s = a->shared;
    uint64_t class;
    struct block *b;

    if (size > a->size)
        return NULL;
    class = class_of(size);
    b = s->free[class];
    *fresh = b == NULL;
    if (b != NULL) {
        s->free[class] = b->next;
    } else {
        size_t end = s->top + sizeof(*b) + class_size(class);

        if (!open_up(a, end))
            return NULL;
        b = (void *)((char *)s + s->top);
        s->top = end;
    }
    b->class = class;
    s->used += class_size(class);
    return b + 1;
}

void *fake_calloc(size_t size)
{
    bool fresh;
    void *p;

    if (current == NULL)
        return calloc(1, size);
    p = take(current, size, &fresh);
    if (p == NULL)
        errno = ENOMEM;
    else if (!fresh)
        memset(p, 0, size);
    return p;
}

static bool inside(const struct fake_arena *a, const void *p)
{
    return a != NULL && (const char *)p > (const char *)a->shared &&
           (const char *)p < (const char *)a->shared + a->size;
}

static struct block *block_of(void *p)
{
    return (struct block *)p - 1;
}

void *fake_realloc(void *p, size_t size)
{
    size_t old;
    void *grown;

    if (!inside(current, p))
        return p == NULL ? fake_calloc(size) : realloc(p, size);
    old = class_size(block_of(p)->class);
    if (size <= old)
        return p;
    grown = fake_calloc(size);
    if (grown != NULL) {
        memcpy(grown, p, old);
        fake_free(p);
    }
    return grown;
}

void fake_free(void *p)
{
    struct block *b;
    struct shared *s;
    size_t size;

    if (!inside(current, p)) {
        free(p);
        return;
    }
    s = current->shared;
    b = block_of(p);
    size = class_size(b->class);
    s->used -= size;
    memset(p, FREED, size < SMALL ? size : SMALL);
    b->next = s->free[b->class];
    s->free[b->class] = b;
}
