/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};
static struct fixture whole = {.machine = "mi300x:2", .kernel = "6.12", .engine = VMM_ENGINE_KFD};

static void a_mapping_has_no_access_until_it_is_given(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct kfd_sys_counts counts;
    uint32_t prot = 9;

    kfd_sys_count_reset(f->counter);
    fixture_map(f, va, 2 * MIB, 0, handle);
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests + counts.maps, 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_get_access(f->vmm, va, 0, &prot), 0);
    assert_int_equal(prot, VMM_PROT_NONE);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void an_offset_maps_the_right_part_of_a_handle(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 8 * MIB);
    uint64_t va = fixture_reserve(f, 16 * MIB);

    fixture_map(f, va, 8 * MIB, 0, handle);
    fixture_map(f, va + 8 * MIB, 8192, 6 * MIB + 4096, handle);
    fixture_access(f, va, 8 * MIB, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va + 8 * MIB, 8192, 0, VMM_PROT_READ);
    gpu_write(f, 0, va + 6 * MIB + 4096, 77);
    gpu_write(f, 0, va + 6 * MIB + 8192 + 4096 - 8, 78);
    assert_int_equal(gpu_read(f, 0, va + 8 * MIB), 77);
    assert_int_equal(gpu_read(f, 0, va + 8 * MIB + 8192 - 8), 78);
    assert_int_equal(gpu_fault(f, 0, va + 8 * MIB + 8192, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_unmap(f->vmm, va, 16 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 16 * MIB), 0);
}

static void bad_ranges_are_einval_and_change_nothing(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 4 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB);
    char *before, *after;

    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    before = fixture_state(f);
    assert_int_equal(vmm_map(f->vmm, va, 0, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 100, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va + 1, 4096, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 4096, 1, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 4 * MIB, 4096, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 8 * MIB, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 4096, UINT64_MAX - 4095, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, UINT64_MAX - 4095, 4096, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va + 6 * MIB, 4 * MIB, 0, handle), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "leaves its reservation"));
    assert_int_equal(vmm_map(f->vmm, va, 4 * MIB, 0, handle), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "overlaps"));
    assert_int_equal(vmm_map(f->vmm, va + 3 * MIB, 2 * MIB, 0, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 0, 0), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 0, handle + 1), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, 0x1000, 4096, 0, handle), -EINVAL);
    after = fixture_state(f);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 8 * MIB), 0);
}

static void unmap_takes_whole_mappings_and_skips_holes(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 16 * MIB);

    for (uint64_t i = 0; i < 8; i += 2) {
        fixture_map(f, va + i * 2 * MIB, 2 * MIB, 0, handle);
        fixture_access(f, va + i * 2 * MIB, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    }
    gpu_write(f, 0, va, 1);
    gpu_write(f, 0, va + 4 * MIB, 2);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB - 4096), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va + 4096, 2 * MIB), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va + 4096, 2 * MIB - 4096), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 0), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 17 * MIB), -EINVAL);
    assert_int_equal(gpu_read(f, 0, va), 2);
    /* Holes at both ends and between. */
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 8 * MIB), 0);
    assert_int_equal(gpu_fault(f, 0, va + 4 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_fault(f, 0, va + 8 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_read(f, 0, va), 2);
    assert_int_equal(gpu_read(f, 0, va + 12 * MIB), 2);
    assert_int_equal(vmm_unmap(f->vmm, va, 16 * MIB), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 16 * MIB), -EINVAL);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 16 * MIB), 0);
}

static void no_translation_survives_an_unmap(struct fixture *f)
{
    vmm_handle a = fixture_create(f, 0, 2 * MIB), b = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, a);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va, 2 * MIB, 1, VMM_PROT_READ);
    gpu_write(f, 0, va, 0xa);
    assert_int_equal(gpu_read(f, 1, va), 0xa); /* both TLBs hold the page now */
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_fault(f, 1, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    fixture_map(f, va, 2 * MIB, 0, b);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 0xb);
    assert_int_equal(gpu_read(f, 0, va), 0xb);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    fixture_map(f, va, 2 * MIB, 0, a);
    fixture_access(f, va, 2 * MIB, 1, VMM_PROT_READ_WRITE);
    assert_int_equal(gpu_read(f, 1, va), 0xa);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, a), 0);
    assert_int_equal(vmm_release(f->vmm, b), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void a_part_of_a_handle_is_not_supported_without_offsets(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 4 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB);

    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 0, handle), -EOPNOTSUPP);
    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 2 * MIB, handle), -EOPNOTSUPP);
    fixture_map(f, va, 4 * MIB, 0, handle);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

FIXTURE_TEST(a_mapping_has_no_access_until_it_is_given)
FIXTURE_TEST(an_offset_maps_the_right_part_of_a_handle)
FIXTURE_TEST(bad_ranges_are_einval_and_change_nothing)
FIXTURE_TEST(unmap_takes_whole_mappings_and_skips_holes)
FIXTURE_TEST(no_translation_survives_an_unmap)
FIXTURE_TEST(a_part_of_a_handle_is_not_supported_without_offsets)

int main(void)
{
#define T(name) cmocka_unit_test_prestate(test_##name, &drm)
    const struct CMUnitTest tests[] = {
        T(a_mapping_has_no_access_until_it_is_given),
        T(an_offset_maps_the_right_part_of_a_handle),
        T(bad_ranges_are_einval_and_change_nothing),
        T(unmap_takes_whole_mappings_and_skips_holes),
        T(no_translation_survives_an_unmap),
        cmocka_unit_test_prestate(test_a_part_of_a_handle_is_not_supported_without_offsets, &whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
