/* SPDX-License-Identifier: MIT */
#include "model.h"

bool reachable(const struct stress *s, uint32_t owner, enum vmm_location location, uint32_t device)
{
    return location == VMM_LOCATION_HOST ||
           kfd_can_access(kfd_device_at(s->kfd, device), kfd_device_at(s->kfd, owner));
}

bool any_map_in(const struct stress *s, uint64_t va, uint64_t size)
{
    for (uint32_t i = 0; i < MAPS; i++) {
        if (s->maps[i].used && overlap(va, size, s->maps[i].va, s->maps[i].size))
            return true;
    }
    return false;
}

/* Whether the CPU can read and write a byte, asked of the kernel so that nothing traps. */
static uint32_t cpu_rights(struct stress *s, uint64_t va)
{
    void *at = (void *)(uintptr_t)va;
    char byte;

    if (write(s->pipe[1], at, 1) != 1)
        return VMM_PROT_NONE;
    if (read(s->pipe[0], at, 1) == 1)
        return VMM_PROT_READ_WRITE;
    CHECK(s, read(s->pipe[0], &byte, 1) == 1);
    return VMM_PROT_READ;
}

static void check_byte(struct stress *s, const struct model_map *m, uint64_t delta)
{
    struct model_alloc *alloc = &s->allocs[m->alloc];

    for (uint32_t gpu = 0; gpu < s->devices; gpu++) {
        struct fake_translation read, write;

        (void)fake_gpu_translate(s->fake, gpu, m->va + delta, FAKE_READ, &read);
        (void)fake_gpu_translate(s->fake, gpu, m->va + delta, FAKE_WRITE, &write);
        CHECK(s, (read.reason == FAKE_FAULT_NONE) == (m->read >> gpu & 1));
        CHECK(s, (write.reason == FAKE_FAULT_NONE) == (m->write >> gpu & 1));
        if (read.reason != FAKE_FAULT_NONE)
            continue;
        CHECK(s, !read.stale && read.offset == m->offset + delta);
        for (uint32_t i = 0; i < HANDLES && !alloc->object; i++) {
            if (s->allocs[i].handle && s->allocs[i].memory == alloc->memory)
                alloc->object = s->allocs[i].object;
        }
        if (!alloc->object)
            alloc->object = read.object;
        CHECK(s, alloc->object == read.object);
    }
    CHECK(s, cpu_rights(s, m->va + delta) == m->host);
}

static void check_map(struct stress *s, const struct model_map *m)
{
    struct vmm_range range;
    uint64_t delta = below(s, m->size);
    uint32_t prot;

    check_byte(s, m, 0);
    check_byte(s, m, m->size - 1);
    check_byte(s, m, delta);
    CHECK(s, vmm_query(s->vmm, m->va + delta, &range) == 0);
    CHECK(s, range.kind == VMM_KIND_MAPPED && range.base == m->va && range.size == m->size);
    CHECK(s, range.offset == m->offset && range.handle == s->allocs[m->alloc].handle);
    CHECK(s, range.read_mask == m->read && range.write_mask == m->write);
    CHECK(s, vmm_get_access(s->vmm, m->va + delta, VMM_HOST, &prot) == 0 && prot == m->host);
}

/* What one view writes, every other view of the same bytes reads. */
static void check_bytes(struct stress *s, const struct model_map *m)
{
    uint64_t token = random_next(&s->random), seen, where;
    const struct model_alloc *alloc = &s->allocs[m->alloc];
    uint64_t at = below(s, m->size / 8) * 8;

    if (!m->write)
        return;
    CHECK(s, fake_gpu_write(s->fake, (uint32_t)__builtin_ctzll(m->write), m->va + at, &token,
                            sizeof(token), NULL) == 0);
    where = m->offset + at;
    for (uint32_t i = 0; i < MAPS; i++) {
        const struct model_map *o = &s->maps[i];

        if (!o->used || s->allocs[o->alloc].memory != alloc->memory || where < o->offset ||
            where - o->offset >= o->size)
            continue;
        for (uint32_t gpu = 0; gpu < s->devices; gpu++) {
            if (!(o->read >> gpu & 1))
                continue;
            CHECK(s, fake_gpu_read(s->fake, gpu, o->va + where - o->offset, &seen, sizeof(seen),
                                   NULL) == 0);
            CHECK(s, seen == token);
        }
        if (o->host)
            CHECK(s, *(volatile uint64_t *)(uintptr_t)(o->va + where - o->offset) == token);
    }
}

static void check_holes(struct stress *s)
{
    const struct model_resv *r = &s->resvs[below(s, RESVS)];
    struct vmm_range range;
    uint64_t va;

    if (!r->size)
        return;
    va = r->base + below(s, r->size);
    CHECK(s, vmm_query(s->vmm, va, &range) == 0);
    CHECK(s, range.resv_base == r->base && range.resv_size == r->size);
    if (any_map_in(s, va, 1))
        return;
    CHECK(s, range.kind == VMM_KIND_RESERVED);
    for (uint32_t gpu = 0; gpu < s->devices; gpu++) {
        struct fake_translation t;

        (void)fake_gpu_translate(s->fake, gpu, va, FAKE_READ, &t);
        CHECK(s, t.reason != FAKE_FAULT_NONE);
    }
    CHECK(s, cpu_rights(s, va) == VMM_PROT_NONE);
}

static void check_ones(struct stress *s)
{
    for (uint32_t i = 0; i < ONES; i++) {
        const struct model_one *one = &s->ones[i];

        for (uint32_t gpu = 0; gpu < s->devices && one->size; gpu++) {
            struct fake_translation t;
            char byte;

            (void)fake_gpu_translate(s->fake, gpu, one->va + below(s, one->size), FAKE_WRITE, &t);
            CHECK(s,
                  (t.reason == FAKE_FAULT_NONE) == reachable(s, one->device, one->location, gpu));
            /* Fills the TLB, for whoever has the address next. */
            (void)fake_gpu_read(s->fake, gpu, one->va, &byte, 1, NULL);
        }
        if (one->size)
            CHECK(s,
                  cpu_rights(s, one->va) ==
                      (one->location == VMM_LOCATION_HOST ? VMM_PROT_READ_WRITE : VMM_PROT_NONE));
    }
}

static void check_totals(struct stress *s)
{
    struct vmm_stats want = {0}, got;

    for (uint32_t i = 0; i < RESVS; i++) {
        want.reservations += s->resvs[i].size != 0;
        want.reserved_bytes += s->resvs[i].size;
    }
    for (uint32_t i = 0; i < HANDLES; i++) {
        want.allocations += s->allocs[i].handle != 0;
        want.allocated_bytes += s->allocs[i].size;
    }
    for (uint32_t i = 0; i < MAPS; i++) {
        want.mappings += s->maps[i].used;
        want.mapped_bytes += s->maps[i].used ? s->maps[i].size : 0;
    }
    for (uint32_t i = 0; i < ONES; i++) {
        want.one_step += s->ones[i].size != 0;
        want.one_step_bytes += s->ones[i].size;
    }
    vmm_get_stats(s->vmm, &got);
    want.arenas = got.arenas;
    CHECK(s, memcmp(&want, &got, sizeof(want)) == 0);
    CHECK(s, vmm_validate(s->vmm) == 0);
    if (fake_strict_count(s->fake))
        fail_msg("operation %llu: undefined use: %s", (unsigned long long)s->op,
                 fake_strict_report(s->fake));
}

void check_all(struct stress *s)
{
    for (uint32_t i = 0; i < MAPS; i++) {
        if (s->maps[i].used)
            check_map(s, &s->maps[i]);
    }
    check_ones(s);
    check_totals(s);
}

void check_some(struct stress *s)
{
    const struct model_map *m = &s->maps[below(s, MAPS)];

    if (m->used) {
        check_map(s, m);
        check_bytes(s, m);
    }
    check_holes(s);
}
