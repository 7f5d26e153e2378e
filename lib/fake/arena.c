/* SPDX-License-Identifier: MIT */
#include "fake/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Address space, not memory: as much as the host gives. */
#define LARGEST (UINT64_C(1) << 32)
#define SMALLEST (UINT64_C(1) << 26)
#define UNIT 16u
#define FREED 0xa5 /* so that whoever still looks there falls over it */
#define SMALL 1024u
/* Sizes in units up to SMALL, then powers of two. */
#define CLASSES (SMALL / UNIT + 32)

struct block {
    uint64_t class;
    struct block *next; /* in the free list */
};

struct fake_arena {
    size_t size, top, used;
    struct block *free[CLASSES];
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

struct fake_arena *fake_arena_new(void)
{
    for (size_t size = LARGEST; size >= SMALLEST; size /= 2) {
        struct fake_arena *a = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (a == MAP_FAILED)
            continue;
        madvise(a, size, MADV_DONTDUMP);
        a->size = size;
        a->top = (sizeof(*a) + UNIT - 1) / UNIT * UNIT;
        return a;
    }
    return NULL;
}

void fake_arena_unmap(struct fake_arena *a)
{
    munmap(a, a->size);
}

struct fake_arena *fake_arena_enter(struct fake_arena *a)
{
    struct fake_arena *before = current;

    current = a;
    return before;
}

size_t fake_arena_used(const struct fake_arena *a)
{
    return a->used;
}

/* fresh: its bytes are zero already. */
static void *take(struct fake_arena *a, size_t size, bool *fresh)
{
    uint64_t class;
    struct block *b;

    if (size > a->size)
        return NULL;
    class = class_of(size);
    b = a->free[class];
    *fresh = b == NULL;
    if (b != NULL) {
        a->free[class] = b->next;
    } else {
        if (a->size - a->top < sizeof(*b) + class_size(class))
            return NULL;
        b = (void *)((char *)a + a->top);
        a->top += sizeof(*b) + class_size(class);
    }
    b->class = class;
    a->used += class_size(class);
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
    return a != NULL && (const char *)p > (const char *)a &&
           (const char *)p < (const char *)a + a->size;
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
    size_t size;

    if (!inside(current, p)) {
        free(p);
        return;
    }
    b = block_of(p);
    size = class_size(b->class);
    current->used -= size;
    memset(p, FREED, size < SMALL ? size : SMALL);
    b->next = current->free[b->class];
    current->free[b->class] = b;
}
