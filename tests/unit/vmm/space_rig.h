/* SPDX-License-Identifier: MIT */
/* An address space on real mappings, for the tests of it. */
#ifndef TESTS_UNIT_VMM_SPACE_RIG_H
#define TESTS_UNIT_VMM_SPACE_RIG_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/memory.h"
#include "vmm/space.h"

#include "pages.h"

#define PAGE 4096u
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)
#define TOP ((uint64_t)1 << 47)

static struct pages pages;
static struct vmm_space space; /* the nodes in it outlive each test: they are static */

static inline int setup(void **state)
{
    pages = pages_start();
    return vmm_space_init(&space, &pages.sys, 16 * MIB, TOP, PAGE);
}

static inline int teardown(void **state)
{
    vmm_memory_fail_after(UINT64_MAX);
    pages.fail_map_after = UINT64_MAX;
    pages.fail_unmap = false;
    vmm_space_fini(&space);
    assert_int_equal(vmm_space_arenas(&space), 0);
    return 0;
}

static inline uint64_t reserve(struct vmm_space_node *n, uint64_t size, uint64_t align,
                               uint64_t hint)
{
    assert_int_equal(vmm_space_reserve(&space, size, align, hint, n), 0);
    assert_int_equal(vmm_space_validate(&space), 0);
    assert_int_equal(n->size, size);
    assert_int_equal(n->base % PAGE, 0);
    assert_true(n->base >= space.arenas.low && n->base + n->size <= space.arenas.high);
    if (align)
        assert_int_equal(n->base & (align - 1), 0);
    if (size >= 2 * MIB)
        assert_int_equal(n->base % (2 * MIB), 0);
    return n->base;
}

static inline void release(struct vmm_space_node *n)
{
    vmm_space_free(&space, n);
    assert_int_equal(vmm_space_validate(&space), 0);
}

/* Unused address space far from where the kernel puts the next mappings. Sanitizers leave little of
 * it, hence the size is the caller's. */
static inline uint64_t quiet_range(uint64_t size)
{
    void *p = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t base;

    assert_true(p != MAP_FAILED);
    munmap(p, 3 * size);
    base = (uint64_t)(uintptr_t)p + size;
    return (base + 2 * MIB - 1) & ~(2 * MIB - 1);
}

/* Restricts the space to `size` bytes of address space of its own, with small steps. */
static inline uint64_t restrict_space(uint64_t size, uint64_t step)
{
    uint64_t base = quiet_range(size);

    vmm_space_fini(&space);
    assert_int_equal(vmm_space_init(&space, &pages.sys, base, base + size, PAGE), 0);
    space.arenas.step = step;
    return base;
}

/* Whether nobody has mapped anything there. */
static inline bool is_unmapped(uint64_t base, uint64_t size)
{
    void *p = mmap((void *)(uintptr_t)base, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (p == MAP_FAILED)
        return false;
    munmap(p, size);
    return (uint64_t)(uintptr_t)p == base;
}

static inline size_t count_lines(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n = 0;
    int c;

    assert_non_null(f);
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
