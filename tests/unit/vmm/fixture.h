/* SPDX-License-Identifier: MIT */
/* A VMM on a fake machine, and what a GPU of it sees. One machine per test. */
#ifndef TESTS_UNIT_VMM_FIXTURE_H
#define TESTS_UNIT_VMM_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/fake.h>
#include <kfdirect/vmm.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

struct fixture {
    struct fake *fake;
    struct kfd_sys *counter, *injector; /* counter over injector over the fake */
    struct kfd *kfd;
    struct vmm *vmm;
    const char *machine, *kernel;
    enum vmm_engine engine;
};

static inline void fixture_open(struct fixture *f)
{
    struct fake_options fake_options = {
        .size = sizeof(fake_options), .machine = f->machine, .kernel = f->kernel};
    struct vmm_options options = {.size = sizeof(options), .engine = f->engine};
    int err;

    err = fake_create(&fake_options, &f->fake);
    if (err)
        fail_msg("fake_create(%s, %s): %d, %s", f->machine, f->kernel, err, fake_error_text());
    assert_int_equal(kfd_sys_inject_new(fake_sys(f->fake), &f->injector), 0);
    assert_int_equal(kfd_sys_count_new(f->injector, &f->counter), 0);
    err = kfd_open(f->counter, &f->kfd);
    if (!err)
        err = vmm_open(f->kfd, &options, &f->vmm);
    if (err)
        fail_msg("open: %d, %s", err, kfd_error_text());
}

/* Checks that nothing is left behind. */
static inline void fixture_close(struct fixture *f)
{
    struct vmm_stats stats;
    struct fake_usage usage;

    if (vmm_validate(f->vmm) != 0)
        fail_msg("%s", kfd_error_text());
    vmm_get_stats(f->vmm, &stats);
    vmm_close(f->vmm);
    assert_int_equal(fake_get_usage(f->fake, &usage), 0);
    assert_int_equal(usage.kfd_handles, 0);
    assert_int_equal(usage.gem_handles, 0);
    assert_int_equal(usage.mappings, 0);
    kfd_close(f->kfd);
    kfd_sys_destroy(f->counter);
    kfd_sys_destroy(f->injector);
    fake_destroy(f->fake);
}

static inline uint64_t fixture_reserve(struct fixture *f, uint64_t size)
{
    uint64_t va = 0;

    if (vmm_reserve(f->vmm, size, 0, 0, &va) != 0)
        fail_msg("%s", kfd_error_text());
    return va;
}

static inline vmm_handle fixture_create(struct fixture *f, uint32_t device, uint64_t size)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE, .device = device};
    vmm_handle handle = 0;

    if (vmm_create(f->vmm, &props, size, &handle) != 0)
        fail_msg("%s", kfd_error_text());
    return handle;
}

static inline void fixture_map(struct fixture *f, uint64_t va, uint64_t size, uint64_t offset,
                               vmm_handle handle)
{
    if (vmm_map(f->vmm, va, size, offset, handle) != 0)
        fail_msg("%s", kfd_error_text());
}

static inline void fixture_access(struct fixture *f, uint64_t va, uint64_t size, uint32_t device,
                                  uint32_t prot)
{
    struct vmm_access access = {device, prot};

    if (vmm_set_access(f->vmm, va, size, &access, 1) != 0)
        fail_msg("%s", kfd_error_text());
}

static inline void gpu_write(struct fixture *f, uint32_t gpu, uint64_t va, uint64_t value)
{
    struct fake_translation fault;

    if (fake_gpu_write(f->fake, gpu, va, &value, sizeof(value), &fault) != 0)
        fail_msg("%s", fault.text);
}

static inline uint64_t gpu_read(struct fixture *f, uint32_t gpu, uint64_t va)
{
    struct fake_translation fault;
    uint64_t value = 0;

    if (fake_gpu_read(f->fake, gpu, va, &value, sizeof(value), &fault) != 0)
        fail_msg("%s", fault.text);
    return value;
}

static inline enum fake_fault_reason gpu_fault(struct fixture *f, uint32_t gpu, uint64_t va,
                                               enum fake_access access)
{
    struct fake_translation t;

    fake_gpu_translate(f->fake, gpu, va, access, &t);
    assert_false(t.stale);
    return t.reason;
}

/* The whole state as text: ours, then the kernel's. Freed by the caller. */
static inline char *fixture_state(struct fixture *f)
{
    struct fake_usage usage;
    struct vmm_stats stats;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    vmm_print(f->vmm, out);
    vmm_get_stats(f->vmm, &stats);
    fwrite(&stats, sizeof(stats) - sizeof(stats.arenas), 1, out);
    assert_int_equal(fake_get_usage(f->fake, &usage), 0);
    fprintf(out, "objects %llu kfd %llu gem %llu mappings %llu gtt %llu\n",
            (unsigned long long)usage.objects, (unsigned long long)usage.kfd_handles,
            (unsigned long long)usage.gem_handles, (unsigned long long)usage.mappings,
            (unsigned long long)usage.gtt_used);
    for (uint32_t i = 0; i < fake_gpu_count(f->fake); i++)
        fprintf(out, "vram %llu\n", (unsigned long long)usage.vram_used[i]);
    fclose(out);
    return text;
}

#define FIXTURE_TEST(name)                \
    static void test_##name(void **state) \
    {                                     \
        struct fixture *f = *state;       \
        fixture_open(f);                  \
        name(f);                          \
        fixture_close(f);                 \
    }

#endif
