/* SPDX-License-Identifier: MIT */
/*
 * Memory of a process's objects, which a forked child shares at the same address: a render node
 * that the child inherits works on its parent's VM, so the VM must be there for both.
 *
 * A thread enters an arena with its owner's lock and allocates from it until it leaves; outside
 * the calls are the heap's. What an arena gives is freed inside it, or goes with it.
 */
#ifndef FAKE_ARENA_H
#define FAKE_ARENA_H

#include <stddef.h>

struct fake_arena;

/* NULL without memory. */
struct fake_arena *fake_arena_new(void);
/* This process no longer sees it; others still do. */
void fake_arena_unmap(struct fake_arena *arena);

/* The arena of this thread from now on; NULL: the heap. Returns the one before. */
struct fake_arena *fake_arena_enter(struct fake_arena *arena);

/* As calloc with one element, realloc and free. */
void *fake_calloc(size_t size);
void *fake_realloc(void *p, size_t size);
void fake_free(void *p);

/* Bytes in use, for tests. */
size_t fake_arena_used(const struct fake_arena *arena);

#endif
