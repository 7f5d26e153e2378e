/* SPDX-License-Identifier: MIT */
/*
 * Every failure of every operation (bug D08 of ../bugs/README.md). For each public operation and
 * each engine the k-th call to the system fails, k counting up until the operation runs through
 * untouched: after a failure the whole state must be what it was before, and the operation must
 * succeed when tried again.
 */
#include "world.h"

#include <errno.h>
#include <unistd.h>

/* What an operation hands out, so that its undo finds it. */
struct result {
    uint64_t va;
    vmm_handle handle;
    int fd;
};

struct operation {
    const char *name;
    int (*run)(struct world *world, struct result *result);
    void (*undo)(struct world *world, struct result *result); /* NULL: the world is thrown away */
    bool drm_only;
    bool two_devices; /* not for the gem engine */
};

static int run_reserve(struct world *w, struct result *r)
{
    return vmm_reserve(w->vmm, TIB(2), 0, 0, &r->va);
}

static void undo_reserve(struct world *w, struct result *r)
{
    assert_int_equal(vmm_address_free(w->vmm, r->va, TIB(2)), 0);
}

static int run_reserve_hint(struct world *w, struct result *r)
{
    return vmm_reserve(w->vmm, GIB(1), 0, 0x600000000000u, &r->va);
}

static void undo_reserve_hint(struct world *w, struct result *r)
{
    assert_int_equal(vmm_address_free(w->vmm, r->va, GIB(1)), 0);
}

static int run_create(struct world *w, struct result *r)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};

    return vmm_create(w->vmm, &props, MIB(2), &r->handle);
}

static void undo_create(struct world *w, struct result *r)
{
    assert_int_equal(vmm_release(w->vmm, r->handle), 0);
}

static int run_create_host(struct world *w, struct result *r)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};

    return vmm_create(w->vmm, &props, MIB(2), &r->handle);
}

static int run_map(struct world *w, struct result *r)
{
    return vmm_map(w->vmm, w->base + MIB(32), MIB(2), 0, w->spare);
}

static void undo_map(struct world *w, struct result *r)
{
    assert_int_equal(vmm_unmap(w->vmm, w->base + MIB(32), MIB(2)), 0);
}

static int run_map_part(struct world *w, struct result *r)
{
    return vmm_map(w->vmm, w->base + MIB(32), MIB(2), MIB(2), w->whole);
}

/* Another device gets in, over three mappings of two handles, and one loses. */
static int run_grant_run(struct world *w, struct result *r)
{
    bool two = vmm_engine(w->vmm) != VMM_ENGINE_GEM;
    struct vmm_access access[2] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ_WRITE}};

    return vmm_set_access(w->vmm, w->base, MIB(6), access, two ? 2 : 1);
}

static int run_grant_fresh(struct world *w, struct result *r)
{
    bool two = vmm_engine(w->vmm) != VMM_ENGINE_GEM;
    struct vmm_access access[2] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ_WRITE}};

    return vmm_set_access(w->vmm, w->base + MIB(8), MIB(4), access, two ? 2 : 1);
}

static int run_withdraw(struct world *w, struct result *r)
{
    bool two = vmm_engine(w->vmm) != VMM_ENGINE_GEM;
    struct vmm_access access[2] = {{0, VMM_PROT_NONE}, {1, VMM_PROT_NONE}};

    return vmm_set_access(w->vmm, w->base, MIB(6), access, two ? 2 : 1);
}

static int run_swap_rights(struct world *w, struct result *r)
{
    struct vmm_access access[2] = {{0, VMM_PROT_READ}, {1, VMM_PROT_NONE}};

    return vmm_set_access(w->vmm, w->base, MIB(6), access, 2);
}

static int run_grant_host(struct world *w, struct result *r)
{
    struct vmm_access access = {VMM_HOST, VMM_PROT_READ_WRITE};

    return vmm_set_access(w->vmm, w->base, MIB(6), &access, 1);
}

static int run_unmap_all(struct world *w, struct result *r)
{
    return vmm_unmap(w->vmm, w->base, WORLD_RANGE);
}

static int run_unmap_one(struct world *w, struct result *r)
{
    return vmm_unmap(w->vmm, w->base + MIB(4), MIB(2));
}

/* The last reference of an allocation goes: its memory with it. */
static int run_release(struct world *w, struct result *r)
{
    return vmm_release(w->vmm, w->spare);
}

static int run_export(struct world *w, struct result *r)
{
    return vmm_export(w->vmm, w->spare, &r->fd);
}

static void undo_export(struct world *w, struct result *r)
{
    close(r->fd);
}

static int run_import(struct world *w, struct result *r)
{
    static const uint32_t tag[4] = {1, 2, 3, 4};

    return vmm_import(w->vmm, w->fd, tag, &r->handle);
}

static int run_alloc(struct world *w, struct result *r)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};

    return vmm_alloc(w->vmm, &props, MIB(4), &r->va);
}

static int run_alloc_host(struct world *w, struct result *r)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};

    return vmm_alloc(w->vmm, &props, MIB(4), &r->va);
}

static void undo_alloc(struct world *w, struct result *r)
{
    assert_int_equal(vmm_free(w->vmm, r->va), 0);
}

static int run_free(struct world *w, struct result *r)
{
    return vmm_free(w->vmm, w->one_step);
}

static int touch_nothing(void *arg, void *cpu, uint64_t size)
{
    return 0;
}

static int run_walk(struct world *w, struct result *r)
{
    return vmm_cpu_walk(w->vmm, w->base, MIB(6), VMM_PROT_READ, touch_nothing, NULL);
}

static const struct operation operations[] = {
    {"reserve", run_reserve, undo_reserve, false, false},
    {"reserve at a hint", run_reserve_hint, undo_reserve_hint, false, false},
    {"create", run_create, undo_create, false, false},
    {"create host memory", run_create_host, undo_create, false, false},
    {"map", run_map, undo_map, false, false},
    {"map a part", run_map_part, undo_map, true, false},
    {"set access again", run_grant_run, NULL, false, false},
    {"set first access", run_grant_fresh, NULL, false, false},
    {"withdraw access", run_withdraw, NULL, false, false},
    {"change rights of two devices", run_swap_rights, NULL, true, true},
    {"set host access", run_grant_host, NULL, false, false},
    {"unmap one", run_unmap_one, NULL, false, false},
    {"unmap all", run_unmap_all, NULL, false, false},
    {"release", run_release, NULL, false, false},
    {"export", run_export, undo_export, false, false},
    {"import", run_import, undo_create, false, false},
    {"one-step memory", run_alloc, undo_alloc, false, false},
    {"one-step host memory", run_alloc_host, undo_alloc, false, false},
    {"free one-step memory", run_free, NULL, false, false},
    {"walk by the CPU", run_walk, NULL, false, false},
};

static const struct ground {
    const char *kernel;
    enum vmm_engine engine;
} grounds[] = {
    {"6.12", VMM_ENGINE_DRM},
    {"6.12", VMM_ENGINE_KFD},
    {"6.1", VMM_ENGINE_GEM},
};

static const int errors[] = {EIO, ENOMEM};

static bool fits(const struct operation *op, const struct ground *ground)
{
    if (op->drm_only && ground->engine != VMM_ENGINE_DRM)
        return false;
    return !(op->two_devices && ground->engine == VMM_ENGINE_GEM);
}

static void world_up(struct world *w, const struct ground *ground)
{
    world_open(w, "mi210:2", ground->kernel, ground->engine);
    world_fill(w);
}

/* Fails the skip-th call of op; false when there is no such call. */
static bool fail_once(const struct operation *op, const struct ground *ground, uint64_t skip,
                      int error, bool *good)
{
    struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = skip, .error = error};
    struct result result = {.fd = -1};
    char where[160], *was, *is;
    struct world w;
    bool fired = false;
    int err;

    snprintf(where, sizeof(where), "%s, %s engine, call %llu, %s", op->name,
             vmm_engine_name(ground->engine), (unsigned long long)skip, strerror(error));
    world_up(&w, ground);
    was = world_text(&w);
    kfd_sys_inject_set(w.injector, &fault);
    err = op->run(&w, &result);
    kfd_sys_inject_seen(w.injector, &fired);
    kfd_sys_inject_set(w.injector, NULL);
    if (err != 0) {
        if (!fired) {
            print_error("# %s: failed by itself: %s\n", where, kfd_error_text());
            *good = false;
        }
        is = world_text(&w);
        *good &= world_same(where, was, is);
        free(is);
        if (fired && op->run(&w, &result) != 0) {
            print_error("# %s: not to be had afterwards: %s\n", where, kfd_error_text());
            *good = false;
        }
    }
    /* Some calls may fail without harm (advice on core dumps, a wait that has an alternative). */
    *good &= world_consistent(&w);
    if (result.fd >= 0)
        close(result.fd);
    free(was);
    if (!world_close(&w)) {
        print_error("# %s: that was\n", where);
        *good = false;
    }
    return fired;
}

/* From the skip-th call on everything fails; then the machine recovers. */
static bool fail_for_ever(const struct operation *op, const struct ground *ground, uint64_t skip,
                          int error, bool *good)
{
    struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = skip, .error = error, .forever = true};
    struct result result = {.fd = -1};
    struct world w;
    bool fired = false;
    int err;

    world_up(&w, ground);
    assert_true(world_consistent(&w));
    kfd_sys_inject_set(w.injector, &fault);
    err = op->run(&w, &result);
    kfd_sys_inject_seen(w.injector, &fired);
    kfd_sys_inject_set(w.injector, NULL);
    if (!world_consistent(&w)) {
        print_error("# %s, %s engine, everything from call %llu on failed (%d)\n", op->name,
                    vmm_engine_name(ground->engine), (unsigned long long)skip, err);
        *good = false;
    }
    if (result.fd >= 0)
        close(result.fd);
    if (!world_close(&w)) {
        print_error("# %s, %s engine, everything from call %llu on failed (%d): that was\n",
                    op->name, vmm_engine_name(ground->engine), (unsigned long long)skip, err);
        *good = false;
    }
    return fired;
}

static void each_operation(bool (*one)(const struct operation *op, const struct ground *ground,
                                       uint64_t skip, int error, bool *good))
{
    bool good = true;
    uint64_t runs = 0;

    for (unsigned g = 0; g < COUNT_OF(grounds); g++) {
        for (unsigned i = 0; i < COUNT_OF(operations); i++) {
            for (unsigned e = 0; fits(&operations[i], &grounds[g]) && e < COUNT_OF(errors); e++) {
                uint64_t skip = 0;

                while (one(&operations[i], &grounds[g], skip, errors[e], &good))
                    skip++;
                runs += skip + 1;
            }
        }
    }
    print_message("# %llu runs\n", (unsigned long long)runs);
    assert_true(good);
}

static void test_failed_operation_leaves_the_state_before_it(void **state)
{
    each_operation(fail_once);
}

static void test_lasting_failure_leaves_library_and_kernel_agreed(void **state)
{
    each_operation(fail_for_ever);
}

static void test_failed_opening_leaves_nothing_and_can_be_repeated(void **state)
{
    struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .error = EIO};
    bool fired = true;

    for (uint64_t skip = 0; fired; skip++) {
        struct fake_options options = {
            .size = sizeof(options), .machine = "mi300x:2", .kernel = "6.12"};
        struct fake *fake = NULL;
        struct kfd_sys *injector = NULL;
        struct kfd *kfd = NULL;
        unsigned descriptors;
        int err;

        descriptors = open_descriptors();
        assert_int_equal(fake_create(&options, &fake), 0);
        assert_int_equal(kfd_sys_inject_new(fake_sys(fake), &injector), 0);
        fault.skip = skip;
        kfd_sys_inject_set(injector, &fault);
        err = kfd_open(injector, &kfd);
        kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        /* A device that cannot be opened is left out, which is no failure. */
        if (err == 0)
            kfd_close(kfd);
        if (kfd_open(injector, &kfd) != 0)
            fail_msg("after a failure at call %llu: %s", (unsigned long long)skip,
                     kfd_error_text());
        assert_int_equal(kfd_device_count(kfd), 2);
        kfd_close(kfd);
        kfd_sys_destroy(injector);
        fake_destroy(fake);
        assert_int_equal(open_descriptors(), descriptors);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_failed_operation_leaves_the_state_before_it),
        RAW_CASE(test_lasting_failure_leaves_library_and_kernel_agreed),
        RAW_CASE(test_failed_opening_leaves_nothing_and_can_be_repeated),
    };

    return run_cases(cases, COUNT_OF(cases));
}
