/* SPDX-License-Identifier: MIT */
/* A growing device buffer: one address range that never moves, memory added at its end. */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>
#include <hip/hip_runtime_api.h>

struct arena {
    void *base;
    size_t capacity; /* reserved */
    size_t size;     /* backed by memory */
    size_t step;     /* memory is added in pieces of this size */
    int device;
};

hipError_t arena_init(struct arena *arena, int device, size_t capacity);
/* Makes at least `size` bytes usable. On failure the arena is as it was. */
hipError_t arena_grow(struct arena *arena, size_t size);
hipError_t arena_fini(struct arena *arena);

#endif
