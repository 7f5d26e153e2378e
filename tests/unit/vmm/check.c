/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "vmm/alloc.h"
#include "vmm/check.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};

static void validate_finds_each_broken_invariant(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct vmm_mapping *map;
    struct vmm_resv *resv;

    fixture_map(f, va, 2 * MIB, 0, handle);
    resv = vmm_resv_lock(f->vmm, va);
    map = vmm_maptab_at(&resv->maps, va);
    vmm_resv_unlock(resv);
    assert_int_equal(vmm_validate(f->vmm), 0);

    map->write_mask = 1;
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN);
    assert_non_null(strstr(kfd_error_text(), "writable but not readable"));
    map->write_mask = 0;
    map->read_mask = 4;
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN);
    map->read_mask = 1;
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN); /* no import counts it */
    map->read_mask = 0;
    map->offset = 4096;
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN);
    map->offset = 0;
    atomic_fetch_add(&map->alloc->users, 1);
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN);
    atomic_fetch_sub(&map->alloc->users, 1);
    resv->maps.count++;
    assert_int_equal(vmm_validate(f->vmm), -EUCLEAN);
    resv->maps.count--;
    assert_int_equal(vmm_validate(f->vmm), 0);

    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void print_shows_ranges_rights_and_allocations(struct fixture *f)
{
    struct vmm_access list[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB);
    char *text, line[128];

    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va + 2 * MIB, 2 * MIB, list, 2), 0);
    text = fixture_state(f);
    snprintf(line, sizeof(line), "reservation 0x%llx+0x400000, 1 mapping\n",
             (unsigned long long)va);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof(line), "0x%llx+0x200000 -> 0x%llx+0x0 device 0 wr cpu -",
             (unsigned long long)(va + 2 * MIB), (unsigned long long)handle);
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "users 1, mappings 1, imports ++"));
    free(text);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void stats_count_what_is_alive(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB), one;
    struct vmm_stats stats;

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_alloc(f->vmm, &props, 5000, &one), 0);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.reservations, 1);
    assert_int_equal(stats.reserved_bytes, 4 * MIB);
    assert_int_equal(stats.allocations, 1);
    assert_int_equal(stats.allocated_bytes, 2 * MIB);
    assert_int_equal(stats.mappings, 1);
    assert_int_equal(stats.mapped_bytes, 2 * MIB);
    assert_int_equal(stats.one_step, 1);
    assert_int_equal(stats.one_step_bytes, 8192);
    assert_int_equal(vmm_free(f->vmm, one), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.reservations + stats.allocations + stats.mappings + stats.one_step, 0);
}

FIXTURE_TEST(validate_finds_each_broken_invariant)
FIXTURE_TEST(print_shows_ranges_rights_and_allocations)
FIXTURE_TEST(stats_count_what_is_alive)

int main(void)
{
#define T(name) cmocka_unit_test_prestate(test_##name, &drm)
    const struct CMUnitTest tests[] = {
        T(validate_finds_each_broken_invariant),
        T(print_shows_ranges_rights_and_allocations),
        T(stats_count_what_is_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
