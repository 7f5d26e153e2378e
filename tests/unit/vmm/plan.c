/* SPDX-License-Identifier: MIT */
/* Whatever system operation fails, the state afterwards is the state before. */
#include "fixture.h"

static struct fixture drm = {.machine = "mi300x:3", .kernel = "6.12"};
static struct fixture timeline = {.machine = "mi300x:3", .kernel = "current"};
static struct fixture whole = {.machine = "mi300x:3", .kernel = "6.12", .engine = VMM_ENGINE_KFD};
static struct fixture gem = {.machine = "mi210:2", .kernel = "6.1"};

#define PIECES 3

struct scene {
    struct fixture *f;
    uint64_t va;
    vmm_handle handles[PIECES];
    bool read_only; /* what the engine can express */
    bool peers;
};

/* Three pieces; the first two are writable by device 0, all are visible to the CPU's eye. */
static void scene_open(struct scene *s)
{
    s->read_only = vmm_engine_can(s->f->vmm) & VMM_CAN_READ_ONLY;
    s->peers = vmm_engine(s->f->vmm) != VMM_ENGINE_GEM;
    s->va = fixture_reserve(s->f, 2 * PIECES * MIB);
    for (uint64_t i = 0; i < PIECES; i++) {
        s->handles[i] = fixture_create(s->f, 0, 2 * MIB);
        fixture_map(s->f, s->va + i * 2 * MIB, 2 * MIB, 0, s->handles[i]);
        if (i < 2)
            fixture_access(s->f, s->va + i * 2 * MIB, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    }
    gpu_write(s->f, 0, s->va, 0xabc);
}

static void scene_close(struct scene *s)
{
    struct vmm_range range;

    vmm_query(s->f->vmm, s->va, &range);
    if (range.kind == VMM_KIND_MAPPED)
        assert_int_equal(vmm_unmap(s->f->vmm, s->va, 2 * PIECES * MIB), 0);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(vmm_release(s->f->vmm, s->handles[i]), 0);
    assert_int_equal(vmm_address_free(s->f->vmm, s->va, 2 * PIECES * MIB), 0);
}

static int widen(struct scene *s)
{
    struct vmm_access list[4];
    size_t n = 0;

    list[n++] = (struct vmm_access){0, s->read_only ? VMM_PROT_READ : VMM_PROT_READ_WRITE};
    list[n++] = (struct vmm_access){VMM_HOST, VMM_PROT_READ_WRITE};
    if (s->peers) {
        list[n++] = (struct vmm_access){1, VMM_PROT_READ_WRITE};
        list[n++] = (struct vmm_access){2, s->read_only ? VMM_PROT_READ : VMM_PROT_READ_WRITE};
    }
    return vmm_set_access(s->f->vmm, s->va, 2 * PIECES * MIB, list, n);
}

static int unmap(struct scene *s)
{
    return vmm_unmap(s->f->vmm, s->va, 2 * PIECES * MIB);
}

/* What each GPU sees at each piece, as text: the state that no book-keeping can fake. */
static char *gpu_state(struct scene *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (uint32_t gpu = 0; gpu < fake_gpu_count(s->f->fake); gpu++) {
        for (uint64_t i = 0; i < PIECES; i++) {
            struct fake_translation t;

            fake_gpu_translate(s->f->fake, gpu, s->va + i * 2 * MIB + 8, FAKE_READ, &t);
            fprintf(out, "%u.%llu: reason %d object %llx flags %x stale %d\n", gpu,
                    (unsigned long long)i, t.reason, (unsigned long long)t.object, t.flags,
                    t.stale);
        }
    }
    fclose(out);
    return text;
}

/* Fails the k-th operation of the call, k = 0.. until the call gets through untouched. */
static void fail_each_step(struct fixture *f, int (*call)(struct scene *s), bool widened)
{
    uint64_t failures = 0;
    bool fired = true;

    for (uint64_t k = 0; fired; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EIO};
        struct scene s = {.f = f};
        char *before, *before_gpu, *after, *after_gpu;
        int err;

        assert_true(k < 200);
        scene_open(&s);
        if (widened)
            assert_int_equal(widen(&s), 0);
        before = fixture_state(f);
        before_gpu = gpu_state(&s);
        kfd_sys_inject_set(f->injector, &fault);
        err = call(&s);
        kfd_sys_inject_seen(f->injector, &fired);
        kfd_sys_inject_set(f->injector, NULL);
        after = fixture_state(f);
        after_gpu = gpu_state(&s);
        assert_int_equal(vmm_validate(f->vmm), 0);
        if (err) {
            assert_true(fired);
            assert_int_equal(err, -EIO);
            assert_string_equal(before, after);
            assert_string_equal(before_gpu, after_gpu);
            assert_int_equal(gpu_read(f, 0, s.va), 0xabc);
            failures++;
        } else {
            assert_string_not_equal(before, after);
        }
        free(before);
        free(before_gpu);
        free(after);
        free(after_gpu);
        scene_close(&s);
    }
    assert_true(failures > 0);
}

static void set_access_is_all_or_nothing(struct fixture *f)
{
    fail_each_step(f, widen, false);
}

static void unmap_is_all_or_nothing(struct fixture *f)
{
    fail_each_step(f, unmap, true);
}

FIXTURE_TEST(set_access_is_all_or_nothing)
FIXTURE_TEST(unmap_is_all_or_nothing)

/* The kernel refuses the second piece, and then to take the first one back. */
static void the_text_is_that_of_the_first_failure(struct fixture *f)
{
    struct kfd_sys_fault fault = {.op = KFD_SYS_REQUEST,
                                  .request = 'd' << 8 | 0x48,
                                  .skip = 1,
                                  .error = EIO,
                                  .forever = true};
    struct vmm_access access = {0, VMM_PROT_READ};
    struct scene s = {.f = f};

    scene_open(&s);
    kfd_sys_inject_set(f->injector, &fault);
    assert_int_equal(vmm_set_access(f->vmm, s.va, 2 * PIECES * MIB, &access, 1), -EIO);
    kfd_sys_inject_set(f->injector, NULL);
    if (strncmp(kfd_error_text(), "mapping 2 of 3", 14) != 0)
        fail_msg("%s", kfd_error_text());
    scene_close(&s);
}

FIXTURE_TEST(the_text_is_that_of_the_first_failure)

int main(void)
{
#define T(name, fix)                                       \
    {                                                      \
#name " (" #fix ")", test_##name, NULL, NULL, &fix \
    }
    const struct CMUnitTest tests[] = {
        T(set_access_is_all_or_nothing, drm),
        T(unmap_is_all_or_nothing, drm),
        T(the_text_is_that_of_the_first_failure, drm),
        T(set_access_is_all_or_nothing, timeline),
        T(unmap_is_all_or_nothing, timeline),
        T(set_access_is_all_or_nothing, whole),
        T(unmap_is_all_or_nothing, whole),
        T(set_access_is_all_or_nothing, gem),
        T(unmap_is_all_or_nothing, gem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
