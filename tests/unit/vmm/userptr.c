/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <sys/mman.h>

static struct fixture eight = {.machine = "mi300x:8", .kernel = "6.12"};
static struct fixture old = {.machine = "mi210:2", .kernel = "6.1"};
/* Its GPUs address 40 bits, the CPU 47. */
static struct fixture gfx8 = {.machine = "vegam-hollow", .kernel = "6.12"};

#define PAGE 4096u
#define PAGES 8u

static char *pages(void)
{
    char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

static uint64_t at(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static void every_gpu_sees_the_programs_memory_at_its_address(struct fixture *f)
{
    const uint32_t tag[4] = {1, 2, 3, 4};
    char *mem = pages(), *mine = mem + PAGE + 24;
    struct kfd_sys_counts counts;
    struct vmm_range range;
    uint64_t value = 77;

    memcpy(mine, &value, sizeof(value));
    kfd_sys_count_reset(f->counter);
    assert_int_equal(vmm_register(f->vmm, at(mine), 2 * PAGE, tag), 0);
    for (uint32_t gpu = 0; gpu < kfd_device_count(f->kfd); gpu++) {
        assert_int_equal(gpu_read(f, gpu, at(mine)), value);
        gpu_write(f, gpu, at(mine) + 8, 100 + gpu);
        memcpy(&value, mine + 8, sizeof(value));
        assert_int_equal(value, 100 + gpu);
        value = 77;
    }
    assert_int_equal(vmm_query(f->vmm, at(mine) + 2 * PAGE - 1, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_REGISTERED);
    assert_int_equal(range.base, at(mine));
    assert_int_equal(range.size, 2 * PAGE);
    assert_int_equal(range.props.location, VMM_LOCATION_HOST);
    assert_memory_equal(range.props.tag, tag, sizeof(tag));
    assert_int_equal(vmm_query(f->vmm, at(mine) - 1, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_NONE); /* of the same page, and not registered */
    assert_int_equal(vmm_query(f->vmm, at(mine) + 2 * PAGE, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_NONE);
    assert_int_equal(vmm_unregister(f->vmm, at(mine)), 0);
    kfd_sys_count_get(f->counter, &counts);
    assert_int_equal(counts.requests, 4);
    for (uint32_t gpu = 0; gpu < kfd_device_count(f->kfd); gpu++)
        assert_int_equal(gpu_fault(f, gpu, at(mine), FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    munmap(mem, PAGES * PAGE);
}

static void each_registration_is_ended_by_its_own_address(struct fixture *f)
{
    char *mem = pages();
    struct vmm_stats stats;

    assert_int_equal(vmm_register(f->vmm, at(mem) + PAGE, 2 * PAGE, NULL), 0);
    assert_int_equal(vmm_register(f->vmm, at(mem) + 4 * PAGE, 100, NULL), 0);
    /* The same, a part, around it, over its end, and another part of a page. */
    assert_int_equal(vmm_register(f->vmm, at(mem) + PAGE, 2 * PAGE, NULL), -EEXIST);
    assert_int_equal(vmm_register(f->vmm, at(mem) + 2 * PAGE, 1, NULL), -EEXIST);
    assert_int_equal(vmm_register(f->vmm, at(mem), PAGES * PAGE, NULL), -EEXIST);
    assert_int_equal(vmm_register(f->vmm, at(mem) + 2 * PAGE, 2 * PAGE, NULL), -EEXIST);
    assert_int_equal(vmm_register(f->vmm, at(mem) + 4 * PAGE + 200, 8, NULL), -EEXIST);
    assert_int_equal(vmm_register(f->vmm, at(mem), PAGE, NULL), 0);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.registered, 3);
    assert_int_equal(stats.registered_bytes, 3 * PAGE + 100);

    assert_int_equal(vmm_unregister(f->vmm, at(mem) + 2 * PAGE), -ENOENT);
    assert_int_equal(vmm_unregister(f->vmm, at(mem) + 5 * PAGE), -ENOENT);
    assert_int_equal(vmm_unregister(f->vmm, 0), -ENOENT);
    assert_int_equal(vmm_unregister(f->vmm, UINT64_MAX), -ENOENT);
    assert_int_equal(vmm_unregister(f->vmm, at(mem) + PAGE), 0);
    assert_int_equal(vmm_unregister(f->vmm, at(mem) + PAGE), -ENOENT);
    assert_int_equal(gpu_fault(f, 0, at(mem), FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(gpu_fault(f, 0, at(mem) + PAGE, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(vmm_unregister(f->vmm, at(mem)), 0);
    assert_int_equal(vmm_unregister(f->vmm, at(mem) + 4 * PAGE), 0);
    munmap(mem, PAGES * PAGE);
}

static void what_cannot_be_registered_says_why(struct fixture *f)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    char *mem = pages(), *before = fixture_state(f), *after;
    uint64_t va = 0;

    assert_int_equal(vmm_register(f->vmm, 0, PAGE, NULL), -EINVAL);
    assert_int_equal(vmm_register(f->vmm, at(mem), 0, NULL), -EINVAL);
    assert_int_equal(vmm_register(f->vmm, at(mem), UINT64_MAX, NULL), -EINVAL);
    assert_int_equal(vmm_register(f->vmm, UINT64_MAX - 1, 1, NULL), -EINVAL);
    assert_int_equal(vmm_register(f->vmm, UINT64_MAX - PAGE, 1, NULL), -EINVAL);
    assert_int_equal(vmm_register(f->vmm, (uint64_t)1 << 60, PAGE, NULL), -EOPNOTSUPP);
    munmap(mem + PAGE, PAGE);
    assert_int_equal(vmm_register(f->vmm, at(mem) + PAGE, PAGE, NULL), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "may not write there"));
    after = fixture_state(f);
    assert_string_equal(before, after);
    free(before);
    free(after);
    /* Memory that the devices have already. */
    assert_int_equal(vmm_alloc(f->vmm, &props, PAGE, &va), 0);
    assert_int_equal(vmm_register(f->vmm, va, PAGE, NULL), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "memory of this library"));
    assert_int_equal(vmm_free(f->vmm, va), 0);
    /* Also where it begins and ends outside of theirs. */
    assert_int_equal(vmm_reserve(f->vmm, PAGE, 0, at(mem) + PAGE, &va), 0);
    assert_int_equal(va, at(mem) + PAGE);
    assert_int_equal(vmm_register(f->vmm, at(mem), PAGES * PAGE, NULL), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "memory of this library"));
    assert_int_equal(vmm_register(f->vmm, at(mem), PAGE, NULL), 0);
    assert_int_equal(vmm_unregister(f->vmm, at(mem)), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, PAGE), 0);
    munmap(mem, PAGES * PAGE);
}

static void an_address_beyond_the_gpus_is_not_supported(struct fixture *f)
{
    char *mem = pages();

    assert_int_equal(vmm_register(f->vmm, at(mem), PAGE, NULL), -EOPNOTSUPP);
    assert_non_null(strstr(kfd_error_text(), "device 0"));
    munmap(mem, PAGES * PAGE);
}

static void a_failure_at_any_step_changes_nothing(struct fixture *f)
{
    char *mem = pages(), *before = fixture_state(f), *after;
    bool fired = true;

    for (uint64_t k = 0; fired; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EIO};

        kfd_sys_inject_set(f->injector, &fault);
        if (vmm_register(f->vmm, at(mem), PAGE, NULL) == 0) {
            kfd_sys_inject_seen(f->injector, &fired);
            kfd_sys_inject_set(f->injector, NULL);
            break;
        }
        kfd_sys_inject_set(f->injector, NULL);
        after = fixture_state(f);
        assert_string_equal(before, after);
        free(after);
        assert_int_equal(gpu_fault(f, 0, at(mem), FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    }
    free(before);
    before = fixture_state(f);
    for (uint64_t k = 0;; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EIO};
        int err;

        kfd_sys_inject_set(f->injector, &fault);
        err = vmm_unregister(f->vmm, at(mem));
        kfd_sys_inject_set(f->injector, NULL);
        if (!err)
            break;
        after = fixture_state(f);
        assert_string_equal(before, after);
        free(after);
        assert_int_equal(gpu_read(f, 1, at(mem)), 0);
    }
    free(before);
    /* A refused FREE is made up for by a later call. */
    assert_int_equal(vmm_register(f->vmm, at(mem), PAGE, NULL), 0);
    assert_int_equal(vmm_unregister(f->vmm, at(mem)), 0);
    munmap(mem, PAGES * PAGE);
}

static void close_ends_what_is_left(struct fixture *f)
{
    char *mem = pages();

    assert_int_equal(vmm_register(f->vmm, at(mem), PAGES * PAGE, NULL), 0);
    /* fixture_close looks whether the kernel has anything. */
}

FIXTURE_TEST(every_gpu_sees_the_programs_memory_at_its_address)
FIXTURE_TEST(each_registration_is_ended_by_its_own_address)
FIXTURE_TEST(what_cannot_be_registered_says_why)
FIXTURE_TEST(an_address_beyond_the_gpus_is_not_supported)
FIXTURE_TEST(a_failure_at_any_step_changes_nothing)
FIXTURE_TEST(close_ends_what_is_left)

#define T(name, fixture) cmocka_unit_test_prestate(test_##name, &(fixture))

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_gpu_sees_the_programs_memory_at_its_address, eight),
        T(every_gpu_sees_the_programs_memory_at_its_address, old),
        T(each_registration_is_ended_by_its_own_address, eight),
        T(what_cannot_be_registered_says_why, eight),
        T(an_address_beyond_the_gpus_is_not_supported, gfx8),
        T(a_failure_at_any_step_changes_nothing, eight),
        T(a_failure_at_any_step_changes_nothing, old),
        T(close_ends_what_is_left, eight),
    };

    return cmocka_run_group_tests_name("userptr", tests, NULL, NULL);
}
