/* SPDX-License-Identifier: MIT */
/* The naive model that random calls are compared with, and the checks of it. */
#ifndef STRESS_MODEL_H
#define STRESS_MODEL_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <kfdirect/fake.h>
#include <kfdirect/vmm.h>

#include "../unit/vmm/random.h"
#include "vmm/memory.h"

#define PAGE 4096ull
#define HUGE_PAGE (2ull << 20)

#define RESVS 6
#define HANDLES 12
#define MAPS 48
#define ONES 4

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What may be wrong with a call; it may answer with any that apply. */
#define BAD_ARG 1u    /* -EINVAL */
#define BAD_DEVICE 2u /* -ENODEV */
#define BAD_ENGINE 4u /* -EOPNOTSUPP */

struct model_resv {
    uint64_t base, size; /* size 0: free slot */
};

struct model_alloc {
    vmm_handle handle; /* 0: free slot */
    uint64_t size;
    uint64_t object; /* the fake's name of the memory, 0: not seen yet */
    uint32_t memory; /* equal for an allocation and its imports */
    uint32_t device, users, maps;
    enum vmm_location location;
    bool imported;
};

struct model_map {
    uint64_t va, size, offset, read, write;
    uint32_t host;
    uint32_t alloc;
    bool used;
};

struct model_one {
    uint64_t va, size;
    uint32_t device;
    enum vmm_location location;
};

struct stress {
    struct fake *fake;
    struct kfd_sys *injector;
    struct kfd *kfd;
    struct vmm *vmm;
    struct random random;
    uint32_t devices, can, memories, align_bits;
    enum vmm_engine engine;
    int pipe[2];
    vmm_handle stale;
    struct model_resv resvs[RESVS];
    struct model_alloc allocs[HANDLES];
    struct model_map maps[MAPS];
    struct model_one ones[ONES];
    struct fake_usage before;
    bool strike; /* something is to fail under the next call */
    uint64_t op, refused, struck;
};

static inline uint64_t below(struct stress *s, uint64_t n)
{
    return random_below(&s->random, n);
}

static inline bool one_in(struct stress *s, uint64_t n)
{
    return below(s, n) == 0;
}

static inline bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

#define CHECK(s, condition)                                                      \
    do {                                                                         \
        if (!(condition))                                                        \
            fail_msg("operation %llu: %s does not hold (last error: %s)",        \
                     (unsigned long long)(s)->op, #condition, kfd_error_text()); \
    } while (0)

/* Whether a device may map memory of another. */
bool reachable(const struct stress *s, uint32_t owner, enum vmm_location location, uint32_t device);
bool any_map_in(const struct stress *s, uint64_t va, uint64_t size);
/* Everything the model says, against the GPUs, the CPU and the totals. */
void check_all(struct stress *s);
/* One mapping and some holes, their bytes too. */
void check_some(struct stress *s);

#endif
