/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};
static struct fixture whole = {.machine = "mi300x:2", .kernel = "6.12", .engine = VMM_ENGINE_KFD};
static struct fixture pcie = {.machine = "navi31:2", .kernel = "6.12"};

static uint32_t access_of(struct fixture *f, uint64_t va, uint32_t device)
{
    uint32_t prot = 99;

    assert_int_equal(vmm_get_access(f->vmm, va, device, &prot), 0);
    return prot;
}

static void each_device_gets_its_own_rights_and_the_gpu_obeys(struct fixture *f)
{
    struct vmm_access both[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, both, 2), 0);
    gpu_write(f, 0, va, 7);
    assert_int_equal(gpu_read(f, 1, va), 7);
    assert_int_equal(gpu_fault(f, 1, va, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_EXEC), FAKE_FAULT_NO_EXEC);
    assert_int_equal(access_of(f, va + 4097, 0), VMM_PROT_READ_WRITE);
    assert_int_equal(access_of(f, va, 1), VMM_PROT_READ);
    /* Down, up and away, in place. */
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    fixture_access(f, va, 2 * MIB, 1, VMM_PROT_READ_WRITE);
    gpu_write(f, 1, va, 8);
    assert_int_equal(gpu_read(f, 0, va), 8);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_NONE);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_read(f, 1, va), 8);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void the_last_entry_of_a_device_wins_and_repeats_cost_nothing(struct fixture *f)
{
    struct vmm_access twice[] = {{0, VMM_PROT_READ}, {0, VMM_PROT_READ_WRITE}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct kfd_sys_counts counts;

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, twice, 2), 0);
    gpu_write(f, 0, va, 7);
    kfd_sys_count_reset(f->counter);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, twice, 2), 0);
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests, 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void a_run_of_whole_mappings_is_one_range_and_a_hole_is_einval(struct fixture *f)
{
    static const uint64_t sizes[] = {2379776, 7864320, 6533120};
    uint64_t va = fixture_reserve(f, 32 * MIB), at = va;
    vmm_handle handles[3];
    struct vmm_access rw = {0, VMM_PROT_READ_WRITE};

    for (int i = 0; i < 3; i++) {
        handles[i] = fixture_create(f, 0, sizes[i]);
        fixture_map(f, at, sizes[i], 0, handles[i]);
        fixture_access(f, at, sizes[i], 0, VMM_PROT_READ_WRITE);
        at += sizes[i];
    }
    assert_int_equal(vmm_set_access(f->vmm, va, at - va, &rw, 1), 0);
    rw.prot = VMM_PROT_READ;
    assert_int_equal(vmm_set_access(f->vmm, va, at - va + 4096, &rw, 1), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va, at - va - 4096, &rw, 1), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va + 4096, at - va - 4096, &rw, 1), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va + sizes[0], sizes[1]), 0);
    assert_int_equal(vmm_set_access(f->vmm, va, at - va, &rw, 1), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "hole"));
    gpu_write(f, 0, va, 1);
    gpu_write(f, 0, at - 8, 2);
    assert_int_equal(vmm_unmap(f->vmm, va, 32 * MIB), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vmm_release(f->vmm, handles[i]), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 32 * MIB), 0);
}

static void a_bad_entry_refuses_the_whole_list(struct fixture *f)
{
    struct vmm_access list[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ_WRITE}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB);
    char *before, *after;

    fixture_map(f, va, 2 * MIB, 0, handle);
    before = fixture_state(f);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 0), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, NULL, 1), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va, 0, list, 2), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va + 2 * MIB, 2 * MIB, list, 2), -EINVAL);
    list[1].prot = VMM_PROT_WRITE;
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), -EINVAL);
    list[1].prot = 4;
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), -EINVAL);
    list[1] = (struct vmm_access){2, VMM_PROT_READ};
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), -ENODEV);
    assert_non_null(strstr(kfd_error_text(), "device 2: there are 2"));
    after = fixture_state(f);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void an_unreachable_peer_is_einval_before_the_kernel_is_asked(struct fixture *f)
{
    struct vmm_access list[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ_WRITE}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct kfd_sys_counts counts;

    fixture_map(f, va, 2 * MIB, 0, handle);
    kfd_sys_count_reset(f->counter);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "cannot reach the memory of device 0"));
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests, 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void read_only_is_not_supported_by_whole_handle_engines(struct fixture *f)
{
    struct vmm_access access = {0, VMM_PROT_READ};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &access, 1), -EOPNOTSUPP);
    assert_non_null(strstr(kfd_error_text(), "engine"));
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va, 2 * MIB, 1, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 5);
    assert_int_equal(gpu_read(f, 1, va), 5);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_NONE);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_read(f, 1, va), 5);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

FIXTURE_TEST(each_device_gets_its_own_rights_and_the_gpu_obeys)
FIXTURE_TEST(the_last_entry_of_a_device_wins_and_repeats_cost_nothing)
FIXTURE_TEST(a_run_of_whole_mappings_is_one_range_and_a_hole_is_einval)
FIXTURE_TEST(a_bad_entry_refuses_the_whole_list)
FIXTURE_TEST(an_unreachable_peer_is_einval_before_the_kernel_is_asked)
FIXTURE_TEST(read_only_is_not_supported_by_whole_handle_engines)

int main(void)
{
#define T(name, fix) cmocka_unit_test_prestate(test_##name, &fix)
    const struct CMUnitTest tests[] = {
        T(each_device_gets_its_own_rights_and_the_gpu_obeys, drm),
        T(the_last_entry_of_a_device_wins_and_repeats_cost_nothing, drm),
        T(a_run_of_whole_mappings_is_one_range_and_a_hole_is_einval, drm),
        T(a_bad_entry_refuses_the_whole_list, drm),
        T(an_unreachable_peer_is_einval_before_the_kernel_is_asked, pcie),
        T(read_only_is_not_supported_by_whole_handle_engines, whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
