/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture drm = {.machine = "mi300x:1", .kernel = "6.12"};

static void reserve_refuses_bad_arguments_and_writes_nothing(struct fixture *f)
{
    uint64_t va = 5;

    assert_int_equal(vmm_reserve(f->vmm, 0, 0, 0, &va), -EINVAL);
    assert_int_equal(vmm_reserve(f->vmm, 4095, 0, 0, &va), -EINVAL);
    assert_int_equal(vmm_reserve(f->vmm, 4096, 3, 0, &va), -EINVAL);
    assert_int_equal(vmm_reserve(f->vmm, 4096, 0, 4097, &va), -EINVAL);
    assert_int_equal(vmm_reserve(f->vmm, 1ull << 48, 0, 0, &va), -ENOMEM);
    assert_int_equal(va, 5);
}

static void alignment_and_free_hints_are_honoured(struct fixture *f)
{
    uint64_t va, hint, again;

    assert_int_equal(vmm_reserve(f->vmm, 4 * MIB, 1 * GIB, 0, &va), 0);
    assert_int_equal(va % GIB, 0);
    hint = va + 4 * MIB;
    assert_int_equal(vmm_reserve(f->vmm, 2 * MIB, 0, hint, &again), 0);
    assert_int_equal(again, hint);
    /* Busy now: somewhere else. */
    assert_int_equal(vmm_reserve(f->vmm, 2 * MIB, 0, hint, &hint), 0);
    assert_int_not_equal(hint, again);
    assert_int_equal(vmm_address_free(f->vmm, hint, 2 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, again, 2 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void address_free_wants_exactly_an_empty_reservation(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB);

    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "still has mappings: 1"));
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 0), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va, 6 * MIB), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va + 2 * MIB, 2 * MIB), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va + 1, 4 * MIB), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), -EINVAL);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
}

static void reserving_asks_the_kernel_driver_nothing(struct fixture *f)
{
    struct kfd_sys_counts counts;
    uint64_t va[64];

    kfd_sys_count_reset(f->counter);
    for (int i = 0; i < 64; i++)
        va[i] = fixture_reserve(f, 1 * GIB);
    for (int i = 0; i < 64; i++)
        assert_int_equal(vmm_address_free(f->vmm, va[i], 1 * GIB), 0);
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests, 0);
    assert_true(counts.maps <= 1);
}

FIXTURE_TEST(reserve_refuses_bad_arguments_and_writes_nothing)
FIXTURE_TEST(alignment_and_free_hints_are_honoured)
FIXTURE_TEST(address_free_wants_exactly_an_empty_reservation)
FIXTURE_TEST(reserving_asks_the_kernel_driver_nothing)

int main(void)
{
#define T(name) cmocka_unit_test_prestate(test_##name, &drm)
    const struct CMUnitTest tests[] = {
        T(reserve_refuses_bad_arguments_and_writes_nothing),
        T(alignment_and_free_hints_are_honoured),
        T(address_free_wants_exactly_an_empty_reservation),
        T(reserving_asks_the_kernel_driver_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
