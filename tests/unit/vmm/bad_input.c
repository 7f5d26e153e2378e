/* SPDX-License-Identifier: MIT */
/*
 * Every pointer of every call NULL, and values out of range: -EINVAL, a text that names the
 * culprit, and nothing changed. Values of a meaning (addresses, handles, devices) are in the
 * modules' tests.
 */
#include "fixture.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};
static struct fixture gem = {.machine = "mi210:2", .kernel = "6.1"};

#define REFUSED(f, call, word)                                                        \
    do {                                                                              \
        char *before = fixture_state(f), *after;                                      \
                                                                                      \
        assert_int_equal((call), -EINVAL);                                            \
        if (!strstr(kfd_error_text(), word))                                          \
            fail_msg("%s: the text lacks \"%s\": %s", #call, word, kfd_error_text()); \
        after = fixture_state(f);                                                     \
        assert_string_equal(before, after);                                           \
        free(before);                                                                 \
        free(after);                                                                  \
    } while (0)

static int never(void *arg, void *cpu, uint64_t size)
{
    fail();
    return 0;
}

static void null_pointers_are_einval(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct vmm *out;
    int fd = 9;

    fixture_map(f, va, 2 * MIB, 0, handle);
    REFUSED(f, vmm_open(NULL, NULL, &out), "kfd is NULL");
    REFUSED(f, vmm_open(f->kfd, NULL, NULL), "out is NULL");
    REFUSED(f, vmm_reserve(f->vmm, 2 * MIB, 0, 0, NULL), "va is NULL");
    REFUSED(f, vmm_create(f->vmm, NULL, 2 * MIB, &handle), "props is NULL");
    REFUSED(f, vmm_create(f->vmm, &props, 2 * MIB, NULL), "handle is NULL");
    REFUSED(f, vmm_import(f->vmm, fd, NULL, NULL), "handle is NULL");
    REFUSED(f, vmm_export(f->vmm, handle, NULL), "fd is NULL");
    REFUSED(f, vmm_export_range(f->vmm, va, MIB, NULL, NULL), "fd is NULL");
    REFUSED(f, vmm_retain(f->vmm, va, NULL), "handle is NULL");
    REFUSED(f, vmm_set_access(f->vmm, va, 2 * MIB, NULL, 1), "no entry");
    REFUSED(f, vmm_get_access(f->vmm, va, 0, NULL), "prot is NULL");
    REFUSED(f, vmm_query(f->vmm, va, NULL), "out is NULL");
    REFUSED(f, vmm_alloc(f->vmm, NULL, 4096, &va), "props is NULL");
    REFUSED(f, vmm_alloc(f->vmm, &props, 4096, NULL), "va is NULL");
    REFUSED(f, vmm_cpu_walk(f->vmm, va, 4096, VMM_PROT_READ, NULL, NULL), "each is NULL");
    assert_int_equal(vmm_get_props(f->vmm, handle, NULL, NULL), 0); /* these may be */
    vmm_close(NULL);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void sizes_that_overflow_are_refused(struct fixture *f)
{
    const uint64_t most = UINT64_MAX & ~(uint64_t)4095;
    struct vmm_access access = {0, VMM_PROT_READ_WRITE};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB), out = 0;
    int fd = 9;

    fixture_map(f, va, 2 * MIB, 0, handle);
    REFUSED(f, vmm_reserve(f->vmm, 0, 0, 0, &out), "size is 0");
    REFUSED(f, vmm_create(f->vmm, &(struct vmm_props){.device = 0}, 0, &out), "size is 0");
    REFUSED(f, vmm_map(f->vmm, va, 0, 0, handle), "size is 0");
    REFUSED(f, vmm_map(f->vmm, va, most, 0, handle), "0x");
    REFUSED(f, vmm_map(f->vmm, most, 2 * MIB, 0, handle), "address space");
    REFUSED(f, vmm_map(f->vmm, va, 2 * MIB, most, handle), "offset");
    REFUSED(f, vmm_unmap(f->vmm, va, UINT64_MAX), "leaves its reservation");
    REFUSED(f, vmm_unmap(f->vmm, va, UINT64_MAX - va + 1), "leaves its reservation");
    REFUSED(f, vmm_set_access(f->vmm, va, UINT64_MAX, &access, 1), "leaves its reservation");
    REFUSED(f, vmm_address_free(f->vmm, va, UINT64_MAX), "leaves its reservation");
    REFUSED(f, vmm_export_range(f->vmm, UINT64_MAX, 2, &fd, NULL), "0x");
    REFUSED(f, vmm_cpu_walk(f->vmm, va, UINT64_MAX, VMM_PROT_READ, never, NULL), "address space");
    REFUSED(f, vmm_cpu_walk(f->vmm, UINT64_MAX, 1, VMM_PROT_READ, never, NULL), "0x");
    assert_int_equal(vmm_alloc(f->vmm, &(struct vmm_props){.device = 0}, UINT64_MAX, &out),
                     -ENOMEM);
    assert_int_equal(vmm_reserve(f->vmm, most, 0, 0, &out), -ENOMEM);
    assert_int_equal(out, 0);
    assert_int_equal(fd, 9);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void values_of_no_meaning_are_einval(struct fixture *f)
{
    struct vmm_options options = {.size = sizeof(options) - 1};
    struct vmm_props props = {.location = (enum vmm_location)2};
    vmm_handle handle = 7;
    struct vmm *vmm;
    uint64_t va = 7;

    REFUSED(f, vmm_create(f->vmm, &props, 2 * MIB, &handle), "location 2");
    REFUSED(f, vmm_alloc(f->vmm, &props, 4096, &va), "location 2");
    REFUSED(f, vmm_open(f->kfd, &options, &vmm), "size");
    options.size = sizeof(options);
    options.engine = (enum vmm_engine)99;
    REFUSED(f, vmm_open(f->kfd, &options, &vmm), "engine 99");
    assert_int_equal(handle, 7);
    assert_int_equal(va, 7);
}

FIXTURE_TEST(null_pointers_are_einval)
FIXTURE_TEST(sizes_that_overflow_are_refused)
FIXTURE_TEST(values_of_no_meaning_are_einval)

#define T(name, fixture) cmocka_unit_test_prestate(test_##name, &(fixture))

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(null_pointers_are_einval, drm),        T(null_pointers_are_einval, gem),
        T(sizes_that_overflow_are_refused, drm), T(sizes_that_overflow_are_refused, gem),
        T(values_of_no_meaning_are_einval, drm),
    };

    return cmocka_run_group_tests_name("bad input", tests, NULL, NULL);
}
