/* SPDX-License-Identifier: MIT */
/*
 * Drives the address space and the mapping tables of its reservations with a stream of bytes, next
 * to a naive model: one byte per cell of a small aperture. The kernel's side is simulated, so that
 * runs are fast and the bytes decide what fails.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vmm/maptab.h"
#include "vmm/memory.h"
#include "vmm/space.h"

#define CELL ((uint64_t)512 << 10)
#define CELLS 128u
#define BASE (((uint64_t)1 << 32) + CELL)
#define RESERVATIONS 24u
#define MAPPINGS 8u /* per reservation */

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: %s is false; %s\n", __FILE__, __LINE__, #condition, \
                    kfd_error_text());                                                  \
            abort();                                                                    \
        }                                                                               \
    } while (0)

struct reservation {
    struct vmm_space_node node;
    bool live;
    struct vmm_maptab table;
    struct vmm_mapping mappings[MAPPINGS]; /* size 0: unused */
};

struct machine {
    struct kfd_sys sys; /* first: the simulated kernel */
    bool map_fails, unmap_fails;
    bool heap_fails; /* together with map_fails: any refusal of this step is right */
    bool has_foreign;
    bool mapped[CELLS];

    struct vmm_space space;
    bool foreign[CELLS];
    uint8_t reserved[CELLS]; /* number of the reservation + 1 */
    struct reservation reservations[RESERVATIONS];
    const uint8_t *data, *end;
};

static size_t cell_of(uint64_t address)
{
    return (address - BASE) / CELL;
}

static bool inside(uint64_t address, uint64_t size)
{
    return address >= BASE && address - BASE <= CELLS * CELL &&
           size <= CELLS * CELL - (address - BASE);
}

static int sim_map(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                   uint64_t offset, void **out)
{
    struct machine *m = (struct machine *)sys;
    uint64_t at = (uint64_t)(uintptr_t)addr;

    CHECK(prot == PROT_NONE && size % CELL == 0);
    if (m->map_fails || !(flags & MAP_FIXED_NOREPLACE))
        return -ENOMEM;
    CHECK(inside(at, size) && at % CELL == 0);
    for (size_t i = cell_of(at); i < cell_of(at + size); i++)
        if (m->mapped[i] || m->foreign[i])
            return -EEXIST;
    memset(&m->mapped[cell_of(at)], true, size / CELL);
    *out = addr;
    return 0;
}

static int sim_unmap(struct kfd_sys *sys, void *addr, size_t size)
{
    struct machine *m = (struct machine *)sys;
    uint64_t at = (uint64_t)(uintptr_t)addr;

    if (m->unmap_fails)
        return -ENOMEM;
    CHECK(inside(at, size));
    for (size_t i = cell_of(at); i < cell_of(at + size); i++)
        CHECK(m->mapped[i]);
    memset(&m->mapped[cell_of(at)], false, size / CELL);
    return 0;
}

static int sim_advise(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    return 0;
}

static const struct kfd_sys_ops sim_ops = {
    .map_pages = sim_map,
    .unmap_pages = sim_unmap,
    .advise_pages = sim_advise,
};

static uint8_t next_byte(struct machine *m)
{
    return m->data < m->end ? *m->data++ : 0;
}

static bool cells_free(const struct machine *m, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (i >= CELLS || m->reserved[i] || m->foreign[i])
            return false;
    return true;
}

static void do_reserve(struct machine *m, struct reservation *r, bool with_hint)
{
    size_t cells = 1 + next_byte(m) % 24;
    uint64_t size = cells * CELL;
    uint8_t shift = next_byte(m) % 8;
    uint64_t align = shift ? CELL << (shift - 1) : 0;
    uint64_t hint = with_hint ? BASE + next_byte(m) % CELLS * CELL : 0;
    uint64_t must =
        align > KFD_HUGE_PAGE_SIZE || size < KFD_HUGE_PAGE_SIZE ? align : KFD_HUGE_PAGE_SIZE;
    size_t number = (size_t)(r - m->reservations) + 1;
    int err;

    if (must < CELL)
        must = CELL;
    err = vmm_space_reserve(&m->space, size, align, hint, &r->node);
    CHECK(err == 0 || err == -ENOMEM);
    if (err) {
        for (size_t i = 0; i < CELLS && !m->map_fails && !m->heap_fails && !m->has_foreign; i++)
            CHECK((BASE + i * CELL) % must || !cells_free(m, i, cells));
        return;
    }
    CHECK(inside(r->node.base, size) && r->node.size == size && r->node.base % must == 0);
    CHECK(cells_free(m, cell_of(r->node.base), cells));
    if (hint && hint % must == 0 && !m->map_fails && !m->heap_fails &&
        cells_free(m, cell_of(hint), cells))
        CHECK(r->node.base == hint);
    for (size_t i = cell_of(r->node.base); i < cell_of(r->node.base + size); i++) {
        CHECK(m->mapped[i]);
        m->reserved[i] = (uint8_t)number;
    }
    r->live = true;
    vmm_maptab_init(&r->table);
    memset(r->mappings, 0, sizeof(r->mappings));
}

static void do_free(struct machine *m, struct reservation *r)
{
    memset(&m->reserved[cell_of(r->node.base)], 0, r->node.size / CELL);
    vmm_space_free(&m->space, &r->node);
    vmm_maptab_fini(&r->table);
    r->live = false;
}

/* The pages of a reservation's first cell or two, one byte each, are the model of its mappings. */
#define SLOTS 32u

static void slots_of(const struct reservation *r, uint8_t slots[SLOTS])
{
    memset(slots, 0, SLOTS);
    for (size_t i = 0; i < MAPPINGS; i++)
        if (r->mappings[i].size)
            memset(&slots[(r->mappings[i].va - r->node.base) / KFD_PAGE_SIZE], (int)i + 1,
                   r->mappings[i].size / KFD_PAGE_SIZE);
}

static void do_map(struct machine *m, struct reservation *r)
{
    struct vmm_mapping *mapping = &r->mappings[next_byte(m) % MAPPINGS];
    size_t first = next_byte(m) % SLOTS, count = 1 + next_byte(m) % 8;
    uint8_t slots[SLOTS];
    bool overlap = false;
    int err;

    if (mapping->size) {
        vmm_maptab_remove(&r->table, mapping);
        mapping->size = 0;
        return;
    }
    count = first + count > SLOTS ? SLOTS - first : count;
    slots_of(r, slots);
    for (size_t i = first; i < first + count; i++)
        overlap |= slots[i] != 0;
    mapping->va = r->node.base + first * KFD_PAGE_SIZE;
    mapping->size = count * KFD_PAGE_SIZE;
    err = vmm_maptab_insert(&r->table, mapping);
    CHECK(err == (overlap ? -EEXIST : 0) || (err == -ENOMEM && m->heap_fails));
    if (err)
        mapping->size = 0;
}

static void do_cover(struct machine *m, const struct reservation *r)
{
    size_t first = next_byte(m) % SLOTS, count = 1 + next_byte(m) % SLOTS;
    bool seen[MAPPINGS + 1] = {false}, hole = false, cut = false;
    uint64_t found = 0, want_found = 0;
    enum vmm_cover want;
    uint8_t slots[SLOTS];

    count = first + count > SLOTS ? SLOTS - first : count;
    slots_of(r, slots);
    for (size_t i = first; i < first + count; i++) {
        hole |= slots[i] == 0;
        want_found += slots[i] && !seen[slots[i]];
        seen[slots[i]] = true;
    }
    for (size_t i = 0; i < SLOTS; i++)
        cut |= (i < first || i >= first + count) && slots[i] && seen[slots[i]];
    want = cut               ? VMM_COVER_CUT
           : want_found == 0 ? VMM_COVER_NONE
           : hole            ? VMM_COVER_HOLES
                             : VMM_COVER_WHOLE;
    CHECK(vmm_maptab_cover(&r->table, r->node.base + first * KFD_PAGE_SIZE, count * KFD_PAGE_SIZE,
                           &found, NULL) == want);
    CHECK(found == want_found);
}

static void check(const struct machine *m)
{
    CHECK(vmm_space_validate(&m->space) == 0);
    for (size_t i = 0; i < CELLS; i++) {
        const struct vmm_space_node *n = vmm_space_find(&m->space, BASE + i * CELL + 1);

        CHECK(m->reserved[i] ? n == &m->reservations[m->reserved[i] - 1].node : n == NULL);
    }
}

static void step(struct machine *m)
{
    uint8_t op = next_byte(m);
    struct reservation *r = &m->reservations[next_byte(m) % RESERVATIONS];

    m->map_fails = op >= 0xf8;
    m->unmap_fails = (op & 0xf0) == 0xe0;
    m->heap_fails = op & 0x08;
    if (m->heap_fails)
        vmm_memory_fail_after(op >> 4 & 3);
    if (!r->live) {
        do_reserve(m, r, op & 1);
    } else if ((op & 7) == 0) {
        do_free(m, r);
    } else if (op & 1) {
        do_map(m, r);
        CHECK(vmm_maptab_validate(&r->table, r->node.base, r->node.size) == 0);
    } else {
        do_cover(m, r);
    }
    vmm_memory_fail_after(UINT64_MAX);
    check(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machine m;

    memset(&m, 0, sizeof(m));
    m.sys.ops = &sim_ops;
    m.data = data;
    m.end = data + size;
    CHECK(vmm_space_init(&m.space, &m.sys, BASE, BASE + CELLS * CELL, CELL) == 0);
    m.space.step = 8 * CELL;
    m.has_foreign = next_byte(&m) & 1;
    for (size_t i = 0; i < 4 && m.has_foreign; i++)
        m.foreign[next_byte(&m) % CELLS] = true;
    while (m.data < m.end)
        step(&m);
    m.unmap_fails = false;
    vmm_space_fini(&m.space);
    for (size_t i = 0; i < RESERVATIONS; i++)
        vmm_maptab_fini(&m.reservations[i].table);
    for (size_t i = 0; i < CELLS; i++)
        CHECK(!m.mapped[i]);
    return 0;
}
