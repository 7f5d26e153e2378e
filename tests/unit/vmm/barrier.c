/* SPDX-License-Identifier: MIT */
/* Page tables that a copy engine writes: a call that has returned has been waited for. */
#include "fixture.h"

#define RW VMM_PROT_READ_WRITE

static struct fixture late = {.machine = "navi31-smallbar", .kernel = "6.12"};
static struct fixture large = {.machine = "navi31", .kernel = "6.12"};
static struct fixture timeline = {.machine = "navi31-smallbar", .kernel = "current"};

static void set(struct fixture *f, uint64_t va, uint32_t prot)
{
    fixture_access(f, va, 2 * MIB, 0, prot);
}

static void every_change_is_there_when_the_call_returns(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    for (int round = 0; round < 3; round++) {
        set(f, va, RW);
        assert_int_equal(gpu_fault(f, 0, va, FAKE_WRITE), FAKE_FAULT_NONE);
        set(f, va, VMM_PROT_READ);
        assert_int_equal(gpu_fault(f, 0, va, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
        set(f, va, VMM_PROT_NONE);
        assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    }
    set(f, va, RW);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
}

static void what_could_not_be_waited_for_is_undone(struct fixture *f)
{
    static const uint16_t nrs[] = {0x18, 0x19}; /* MAP and UNMAP */
    struct vmm_access rw = {0, RW}, none = {0, VMM_PROT_NONE};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    bool fired;

    fixture_map(f, va, 2 * MIB, 0, handle);
    for (unsigned i = 0; i < 2; i++) {
        struct kfd_sys_fault fault = {
            .op = KFD_SYS_REQUEST, .request = (uint16_t)('K' << 8 | nrs[i]), .error = ENOMEM};
        bool stays = i == 1;

        kfd_sys_inject_set(f->injector, &fault);
        assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &rw, 1), stays ? 0 : -ENOMEM);
        kfd_sys_inject_seen(f->injector, &fired);
        assert_true(fired);
        kfd_sys_inject_set(f->injector, NULL);
        assert_int_equal(gpu_fault(f, 0, va, FAKE_WRITE),
                         stays ? FAKE_FAULT_NONE : FAKE_FAULT_NOT_MAPPED);
        /* The page that could not be taken back does not make the next wait an empty one. */
        assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &none, 1), 0);
        assert_int_equal(gpu_fault(f, 0, va, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    }
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
}

static uint64_t mappings(const struct fixture *f)
{
    struct fake_usage usage;

    assert_int_equal(fake_get_usage(f->fake, &usage), 0);
    return usage.mappings;
}

static void a_page_that_stayed_goes_with_the_next_creation(struct fixture *f)
{
    struct kfd_sys_fault unmap = {
        .op = KFD_SYS_REQUEST, .request = 'K' << 8 | 0x19, .error = ENOMEM};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), other;
    uint64_t va = fixture_reserve(f, 2 * MIB), before = mappings(f);

    fixture_map(f, va, 2 * MIB, 0, handle);
    kfd_sys_inject_set(f->injector, &unmap);
    set(f, va, RW);
    kfd_sys_inject_set(f->injector, NULL);
    assert_int_equal(mappings(f), before + 2);
    other = fixture_create(f, 0, 2 * MIB);
    assert_int_equal(mappings(f), before + 1);
    assert_int_equal(vmm_release(f->vmm, other), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
}

FIXTURE_TEST(a_page_that_stayed_goes_with_the_next_creation)
FIXTURE_TEST(every_change_is_there_when_the_call_returns)
FIXTURE_TEST(what_could_not_be_waited_for_is_undone)

int main(void)
{
#define T(name, fix) cmocka_unit_test_prestate(test_##name, &fix)
    const struct CMUnitTest tests[] = {
        T(every_change_is_there_when_the_call_returns, late),
        T(every_change_is_there_when_the_call_returns, large),
        T(every_change_is_there_when_the_call_returns, timeline),
        T(what_could_not_be_waited_for_is_undone, late),
        T(a_page_that_stayed_goes_with_the_next_creation, late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
