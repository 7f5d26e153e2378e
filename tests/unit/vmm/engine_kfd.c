/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture kfd8 = {.machine = "mi300x:8", .kernel = "6.12", .engine = VMM_ENGINE_KFD};
static struct fixture gem2 = {.machine = "mi210:2", .kernel = "6.1"};
/* UNMAP flushes nothing on this chip. */
static struct fixture gfx8 = {
    .machine = "vegam-hollow", .kernel = "6.12", .engine = VMM_ENGINE_KFD};
static struct fixture gfx8_gem = {
    .machine = "vegam-hollow", .kernel = "6.1", .engine = VMM_ENGINE_GEM};

static void a_cycle_is_8_ioctls_for_any_number_of_gpus(struct fixture *f)
{
    struct vmm_access list[8];
    struct kfd_sys_counts counts;
    uint64_t va = fixture_reserve(f, 2 * MIB);
    vmm_handle handle;

    for (uint32_t n = 1; n <= 8; n++) {
        list[n - 1] = (struct vmm_access){n - 1, VMM_PROT_READ_WRITE};
        kfd_sys_count_reset(f->counter);
        handle = fixture_create(f, 0, 2 * MIB);
        fixture_map(f, va, 2 * MIB, 0, handle);
        assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, n), 0);
        gpu_write(f, 0, va, n);
        assert_int_equal(gpu_read(f, n - 1, va), n);
        assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
        assert_int_equal(vmm_release(f->vmm, handle), 0);
        kfd_sys_count_get(f->counter, &counts);
        assert_true(counts.requests <= 8);
    }
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void one_handle_maps_at_many_addresses(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB);

    for (uint64_t i = 0; i < 4; i++)
        fixture_map(f, va + i * 2 * MIB, 2 * MIB, 0, handle);
    fixture_access(f, va, 8 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va + 2 * MIB, 9);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(gpu_read(f, 0, va + i * 2 * MIB), 9);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(gpu_fault(f, 0, va + 2 * MIB, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(gpu_read(f, 0, va), 9);
    assert_int_equal(vmm_unmap(f->vmm, va, 8 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 8 * MIB), 0);
}

static void the_gem_engine_refuses_a_peer_and_serves_host_memory(struct fixture *f)
{
    struct vmm_access peer = {1, VMM_PROT_READ_WRITE};
    struct vmm_props host = {.location = VMM_LOCATION_HOST};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), shared;
    uint64_t va = fixture_reserve(f, 4 * MIB);
    int err;

    fixture_map(f, va, 2 * MIB, 0, handle);
    err = vmm_set_access(f->vmm, va, 2 * MIB, &peer, 1);
    assert_true(err == -EOPNOTSUPP || err == -EINVAL);
    assert_int_equal(vmm_create(f->vmm, &host, 2 * MIB, &shared), 0);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, shared);
    fixture_access(f, va + 2 * MIB, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va + 2 * MIB, 2 * MIB, 1, VMM_PROT_READ_WRITE);
    fixture_access(f, va + 2 * MIB, 2 * MIB, VMM_HOST, VMM_PROT_READ_WRITE);
    gpu_write(f, 1, va + 2 * MIB, 4);
    assert_int_equal(*(volatile uint64_t *)(uintptr_t)(va + 2 * MIB), 4);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, shared), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void a_gem_descriptor_imports_like_any_other(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), import;
    uint64_t va = fixture_reserve(f, 4 * MIB);
    int fd;

    assert_int_equal(vmm_export(f->vmm, handle, &fd), 0);
    assert_int_equal(vmm_import(f->vmm, fd, NULL, &import), 0);
    f->counter->ops->close_fd(f->counter, fd);
    fixture_map(f, va, 2 * MIB, 0, handle);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, import);
    fixture_access(f, va, 4 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 3);
    assert_int_equal(gpu_read(f, 0, va + 2 * MIB), 3);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, import), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void what_is_unmapped_is_out_of_every_tlb(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 7);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_NONE);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    assert_int_equal(gpu_read(f, 0, va), 7);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
}

FIXTURE_TEST(what_is_unmapped_is_out_of_every_tlb)
FIXTURE_TEST(a_cycle_is_8_ioctls_for_any_number_of_gpus)
FIXTURE_TEST(one_handle_maps_at_many_addresses)
FIXTURE_TEST(the_gem_engine_refuses_a_peer_and_serves_host_memory)
FIXTURE_TEST(a_gem_descriptor_imports_like_any_other)

int main(void)
{
#define T(name, fix)                                       \
    {                                                      \
#name " (" #fix ")", test_##name, NULL, NULL, &fix \
    }
    const struct CMUnitTest tests[] = {
        T(a_cycle_is_8_ioctls_for_any_number_of_gpus, kfd8),
        T(what_is_unmapped_is_out_of_every_tlb, kfd8),
        T(what_is_unmapped_is_out_of_every_tlb, gfx8),
        T(what_is_unmapped_is_out_of_every_tlb, gfx8_gem),
        T(one_handle_maps_at_many_addresses, kfd8),
        T(one_handle_maps_at_many_addresses, gem2),
        T(the_gem_engine_refuses_a_peer_and_serves_host_memory, gem2),
        T(a_gem_descriptor_imports_like_any_other, gem2),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
