/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static struct fixture eight = {.machine = "mi300x:8", .kernel = "6.12"};
static struct fixture old = {.machine = "mi210:2", .kernel = "6.1"};
/* UNMAP flushes nothing on this chip. */
static struct fixture gfx8 = {.machine = "vegam-hollow", .kernel = "6.12"};

static void alloc_and_free_are_four_ioctls_and_every_gpu_sees_it(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    struct kfd_sys_counts counts;
    struct fake_usage usage;
    uint64_t va = 0;

    kfd_sys_count_reset(f->counter);
    assert_int_equal(vmm_alloc(f->vmm, &props, 3 * MIB + 5, &va), 0);
    gpu_write(f, 0, va, 99);
    for (uint32_t gpu = 0; gpu < kfd_device_count(f->kfd); gpu++) {
        if (kfd_can_access(kfd_device_at(f->kfd, gpu), kfd_device_at(f->kfd, 0)))
            assert_int_equal(gpu_read(f, gpu, va), 99);
        else
            assert_int_equal(gpu_fault(f, gpu, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    }
    assert_int_equal(vmm_free(f->vmm, va), 0);
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests, 4);
    fake_get_usage(f->fake, &usage);
    assert_int_equal(usage.objects, 0);
}

static void host_memory_is_one_address_for_the_cpu_and_every_gpu(struct fixture *f)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    uint64_t va = 0;

    assert_int_equal(vmm_alloc(f->vmm, &props, 8192, &va), 0);
    *(volatile uint64_t *)(uintptr_t)(va + 4096) = 5;
    for (uint32_t gpu = 0; gpu < kfd_device_count(f->kfd); gpu++)
        assert_int_equal(gpu_read(f, gpu, va + 4096), 5);
    assert_int_equal(vmm_free(f->vmm, va), 0);
}

static void vmm_calls_and_free_refuse_each_others_addresses(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    struct vmm_access rw = {0, VMM_PROT_READ_WRITE};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), out;
    uint64_t va = 0, range = fixture_reserve(f, 2 * MIB);
    uint32_t prot;

    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &va), 0);
    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 0, handle), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), -EINVAL);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &rw, 1), -EINVAL);
    assert_int_equal(vmm_get_access(f->vmm, va, 0, &prot), -EINVAL);
    assert_int_equal(vmm_retain(f->vmm, va, &out), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "one-step"));
    fixture_map(f, range, 2 * MIB, 0, handle);
    assert_int_equal(vmm_free(f->vmm, range), -EINVAL);
    assert_int_equal(vmm_free(f->vmm, va + 4096), -EINVAL);
    assert_int_equal(vmm_free(f->vmm, 0x1000), -EINVAL);
    assert_int_equal(vmm_free(f->vmm, va), 0);
    assert_int_equal(vmm_free(f->vmm, va), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, range, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, range, 2 * MIB), 0);
}

static void a_failure_at_any_step_leaves_nothing(struct fixture *f)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    char *before = fixture_state(f), *after;
    bool fired = true;

    for (uint64_t k = 0; fired; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EIO};
        uint64_t va = 1;
        int err;

        kfd_sys_inject_set(f->injector, &fault);
        err = vmm_alloc(f->vmm, &props, 2 * MIB, &va);
        kfd_sys_inject_seen(f->injector, &fired);
        kfd_sys_inject_set(f->injector, NULL);
        if (err) {
            assert_int_equal(va, 1);
            after = fixture_state(f);
            assert_string_equal(before, after);
            free(after);
        } else {
            assert_int_equal(vmm_free(f->vmm, va), 0);
        }
    }
    free(before);
}

static void free_all_frees_one_device_and_keeps_what_the_kernel_refuses(struct fixture *f)
{
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST, .request = 'K' << 8 | 0x19, .skip = 1, .error = EBUSY};
    struct vmm_props props = {.device = 0};
    uint64_t va[6], other = 0, range = fixture_reserve(f, 2 * MIB);
    struct vmm_stats stats;

    for (int i = 0; i < 6; i++) {
        props.device = i == 3;
        props.location = i == 5 ? VMM_LOCATION_HOST : VMM_LOCATION_DEVICE;
        assert_int_equal(vmm_alloc(f->vmm, &props, 4096, i == 3 ? &other : &va[i]), 0);
    }
    assert_int_equal(vmm_free_all(f->vmm, kfd_device_count(f->kfd)), -ENODEV);
    kfd_sys_inject_set(f->injector, &fault);
    assert_int_equal(vmm_free_all(f->vmm, 0), -EBUSY);
    kfd_sys_inject_set(f->injector, NULL);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.one_step, 2); /* the other device's, and the refused one */
    assert_int_equal(stats.reservations, 1);
    assert_int_equal(vmm_free_all(f->vmm, 0), 0);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.one_step, 1);
    assert_int_equal(vmm_free(f->vmm, other), 0);
    assert_int_equal(vmm_address_free(f->vmm, range, 2 * MIB), 0);
}

static void what_is_freed_is_out_of_every_tlb(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    uint64_t va = 0;

    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &va), 0);
    gpu_write(f, 0, va, 7);
    assert_int_equal(vmm_free(f->vmm, va), 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
}

FIXTURE_TEST(what_is_freed_is_out_of_every_tlb)
FIXTURE_TEST(free_all_frees_one_device_and_keeps_what_the_kernel_refuses)
static void an_address_a_gpu_may_still_have_mapped_is_not_reserved_anew(struct fixture *f)
{
    /* ALLOC and MAP get through; the CPU's view, the UNMAP and all else fail. */
    struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = 2, .error = EIO, .forever = true};
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    uint64_t va = fixture_reserve(f, 2 * MIB), other = 0, one = 0;

    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    kfd_sys_inject_set(f->injector, &fault);
    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &one), -EIO);
    kfd_sys_inject_set(f->injector, NULL);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NONE);
    other = fixture_reserve(f, 2 * MIB);
    assert_int_not_equal(other, va);
    /* The next call that allocates takes the remains away first. */
    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &one), 0);
    assert_int_equal(one, va);
    assert_int_equal(vmm_free(f->vmm, one), 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_address_free(f->vmm, other, 2 * MIB), 0);
}

FIXTURE_TEST(an_address_a_gpu_may_still_have_mapped_is_not_reserved_anew)
FIXTURE_TEST(alloc_and_free_are_four_ioctls_and_every_gpu_sees_it)
FIXTURE_TEST(host_memory_is_one_address_for_the_cpu_and_every_gpu)
FIXTURE_TEST(vmm_calls_and_free_refuse_each_others_addresses)
FIXTURE_TEST(a_failure_at_any_step_leaves_nothing)

int main(void)
{
#define T(name, fix)                                       \
    {                                                      \
#name " (" #fix ")", test_##name, NULL, NULL, &fix \
    }
    const struct CMUnitTest tests[] = {
        T(alloc_and_free_are_four_ioctls_and_every_gpu_sees_it, eight),
        T(free_all_frees_one_device_and_keeps_what_the_kernel_refuses, eight),
        T(alloc_and_free_are_four_ioctls_and_every_gpu_sees_it, old),
        T(what_is_freed_is_out_of_every_tlb, eight),
        T(what_is_freed_is_out_of_every_tlb, gfx8),
        T(host_memory_is_one_address_for_the_cpu_and_every_gpu, eight),
        T(host_memory_is_one_address_for_the_cpu_and_every_gpu, old),
        T(vmm_calls_and_free_refuse_each_others_addresses, eight),
        T(a_failure_at_any_step_leaves_nothing, eight),
        T(an_address_a_gpu_may_still_have_mapped_is_not_reserved_anew, eight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
