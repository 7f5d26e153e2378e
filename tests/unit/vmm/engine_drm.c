/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture one = {.machine = "mi300x:1", .kernel = "6.12"};
static struct fixture eight = {.machine = "mi300x:8", .kernel = "6.12"};
static struct fixture two = {.machine = "mi300x:2", .kernel = "6.12"};

static uint64_t requests(struct fixture *f)
{
    struct kfd_sys_counts counts;

    kfd_sys_count_get(f->counter, &counts);
    return counts.requests;
}

static uint64_t cycle(struct fixture *f)
{
    struct vmm_access list[8];
    uint32_t n = kfd_device_count(f->kfd);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    vmm_handle handle;

    for (uint32_t d = 0; d < n; d++)
        list[d] = (struct vmm_access){d, VMM_PROT_READ_WRITE};
    kfd_sys_count_reset(f->counter);
    handle = fixture_create(f, 0, 2 * MIB);
    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, n), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    return requests(f);
}

static void a_cycle_on_one_gpu_is_8_ioctls(struct fixture *f)
{
    assert_int_equal(cycle(f), 8);
}

static void a_cycle_on_eight_gpus_is_at_most_40_ioctls(struct fixture *f)
{
    assert_true(cycle(f) <= 40);
}

static void a_remap_of_a_cached_handle_is_2_ioctls_a_gpu_and_one(struct fixture *f)
{
    struct vmm_access list[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    for (int round = 0; round < 3; round++) {
        kfd_sys_count_reset(f->counter);
        fixture_map(f, va, 2 * MIB, 0, handle);
        assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), 0);
        assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
        if (round > 0)
            assert_int_equal(requests(f), 2 * 2 + 1);
    }
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void no_descriptor_is_held_for_a_handle(struct fixture *f)
{
    struct fake_usage before, after;
    vmm_handle handles[64];

    fake_get_usage(f->fake, &before);
    for (int i = 0; i < 64; i++)
        handles[i] = fixture_create(f, i % 2, 2 * MIB);
    fake_get_usage(f->fake, &after);
    assert_int_equal(after.open_files, before.open_files);
    for (int i = 0; i < 64; i++)
        assert_int_equal(vmm_release(f->vmm, handles[i]), 0);
}

FIXTURE_TEST(a_cycle_on_one_gpu_is_8_ioctls)
FIXTURE_TEST(a_cycle_on_eight_gpus_is_at_most_40_ioctls)
FIXTURE_TEST(a_remap_of_a_cached_handle_is_2_ioctls_a_gpu_and_one)
FIXTURE_TEST(no_descriptor_is_held_for_a_handle)

int main(void)
{
#define T(name, fix) cmocka_unit_test_prestate(test_##name, &fix)
    const struct CMUnitTest tests[] = {
        T(a_cycle_on_one_gpu_is_8_ioctls, one),
        T(a_cycle_on_eight_gpus_is_at_most_40_ioctls, eight),
        T(a_remap_of_a_cached_handle_is_2_ioctls_a_gpu_and_one, two),
        T(no_descriptor_is_held_for_a_handle, two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
