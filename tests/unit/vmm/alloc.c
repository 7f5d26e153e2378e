/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "../../clients/hook.h"
#include "kfd/uapi.h"
#include "vmm/alloc.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};

static void create_takes_memory_on_its_own_device_and_release_gives_it_back(struct fixture *f)
{
    struct fake_usage before, after;
    vmm_handle handle;

    fake_get_usage(f->fake, &before);
    handle = fixture_create(f, 1, 4 * MIB);
    fake_get_usage(f->fake, &after);
    assert_int_equal(after.vram_used[1] - before.vram_used[1], 4 * MIB);
    assert_int_equal(after.vram_used[0], before.vram_used[0]);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    fake_get_usage(f->fake, &after);
    assert_int_equal(after.vram_used[1], before.vram_used[1]);
    assert_int_equal(after.objects, before.objects);
}

static void a_released_handle_is_einval_everywhere(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct vmm_props props;
    int fd = -7;

    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, handle), -EINVAL);
    assert_int_equal(vmm_map(f->vmm, va, 2 * MIB, 0, handle), -EINVAL);
    assert_int_equal(vmm_get_props(f->vmm, handle, &props, NULL), -EINVAL);
    assert_int_equal(vmm_export(f->vmm, handle, &fd), -EINVAL);
    assert_int_equal(fd, -7);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

/* As of a program that never releases what it retains, after a week or two. */
/* The memory goes later, and whoever released it has made no mistake. */
static void a_release_that_succeeds_leaves_the_text_of_the_last_failure(struct fixture *f)
{
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST, .request = 'K' << 8 | 0x17, .error = EBUSY};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    char text[512];

    assert_int_equal(vmm_release(f->vmm, 1), -EINVAL);
    snprintf(text, sizeof(text), "%s", kfd_error_text());
    kfd_sys_inject_set(f->injector, &fault);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    kfd_sys_inject_set(f->injector, NULL);
    assert_string_equal(kfd_error_text(), text);
}

FIXTURE_TEST(a_release_that_succeeds_leaves_the_text_of_the_last_failure)

static void more_than_32_bits_of_references_are_counted(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), again;
    uint64_t va = fixture_reserve(f, 2 * MIB);
    struct vmm_alloc *alloc;

    fixture_map(f, va, 2 * MIB, 0, handle);
    alloc = vmm_handles_get(&f->vmm->handles, handle, NULL);
    assert_non_null(alloc);
    atomic_fetch_add(&alloc->users, UINT32_MAX - 1);
    atomic_fetch_add(&alloc->refs, UINT32_MAX - 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vmm_retain(f->vmm, va, &again), 0);
    assert_int_equal(vmm_validate(f->vmm), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_get_props(f->vmm, handle, NULL, NULL), 0);
    atomic_store(&alloc->users, 1);
    atomic_store(&alloc->refs, 1);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void release_while_mapped_keeps_the_memory_until_unmap(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), again;
    uint64_t va = fixture_reserve(f, 4 * MIB);
    struct fake_usage usage;

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, handle), -EINVAL);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 0x1122334455667788);
    /* A mapping keeps the value alive: it can be mapped again and retained. */
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_retain(f->vmm, va + 4096, &again), 0);
    assert_int_equal(again, handle);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    fake_get_usage(f->fake, &usage);
    assert_int_equal(usage.objects, 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void out_of_vram_is_enomem_and_leaves_nothing(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    char *before = fixture_state(f), *after;
    vmm_handle handle = 5;

    assert_int_equal(vmm_create(f->vmm, &props, 1ull << 45, &handle), -ENOMEM);
    assert_int_equal(handle, 5);
    after = fixture_state(f);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void bad_arguments_name_the_culprit(struct fixture *f)
{
    struct vmm_props props = {.device = 2};
    vmm_handle handle;

    assert_int_equal(vmm_create(f->vmm, &props, 2 * MIB, &handle), -ENODEV);
    assert_non_null(strstr(kfd_error_text(), "device 2: there are 2"));
    props.device = 0;
    assert_int_equal(vmm_create(f->vmm, &props, 6912, &handle), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "0x1b00"));
    assert_int_equal(vmm_create(f->vmm, &props, 0, &handle), -EINVAL);
}

static void an_exported_descriptor_imports_as_a_second_handle_of_the_same_bytes(struct fixture *f)
{
    static const uint32_t tag[4] = {1, 2, 3, 4};
    vmm_handle handle = fixture_create(f, 1, 2 * MIB), import = 0;
    uint64_t va = fixture_reserve(f, 4 * MIB), size;
    struct vmm_props props;
    int fd = -1, fd2 = -1;

    assert_int_equal(vmm_export(f->vmm, handle, &fd), 0);
    assert_true(fd >= 3);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(vmm_import(f->vmm, fd, tag, &import), 0);
    close(fd);
    assert_int_not_equal(import, handle);
    assert_int_equal(vmm_get_props(f->vmm, import, &props, &size), 0);
    assert_int_equal(props.device, 1);
    assert_true(props.imported);
    assert_int_equal(props.tag[3], 4);
    assert_int_equal(size, 2 * MIB);
    assert_int_equal(vmm_export(f->vmm, import, &fd2), -EINVAL);
    fixture_map(f, va, 2 * MIB, 0, handle);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, import);
    fixture_access(f, va, 4 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va + 64, 42);
    assert_int_equal(gpu_read(f, 0, va + 2 * MIB + 64), 42);
    /* The import outlives the original. */
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(gpu_read(f, 0, va + 2 * MIB + 64), 42);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, import), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void descriptors_that_are_no_dmabuf_are_einval(struct fixture *f)
{
    vmm_handle handle = 5;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(vmm_import(f->vmm, -1, NULL, &handle), -EINVAL);
    assert_int_equal(vmm_import(f->vmm, 1000000, NULL, &handle), -EINVAL);
    assert_int_equal(vmm_import(f->vmm, null, NULL, &handle), -EINVAL);
    assert_int_equal(handle, 5);
    close(null);
}

static void memory_the_kernel_refuses_to_free_is_freed_by_a_later_call(struct fixture *f)
{
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST, .request = 'K' << 8 | 0x17, .error = EBUSY};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    struct fake_usage usage;

    kfd_sys_inject_set(f->injector, &fault);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, handle), -EINVAL);
    fake_get_usage(f->fake, &usage);
    assert_int_equal(usage.objects, 0);
}

/* However much the kernel keeps, a later call asks it for one of them. */
static void what_the_kernel_keeps_costs_a_call_one_request(struct fixture *f)
{
    struct kfd_sys_fault fault = {
        .op = KFD_SYS_REQUEST, .request = 'K' << 8 | 0x17, .error = EBUSY, .forever = true};
    struct kfd_sys_counts before, after;
    struct fake_usage usage;
    vmm_handle handle[20];

    for (int i = 0; i < 20; i++)
        handle[i] = fixture_create(f, 0, 2 * MIB);
    kfd_sys_inject_set(f->injector, &fault);
    for (int i = 0; i < 19; i++)
        assert_int_equal(vmm_release(f->vmm, handle[i]), 0);
    kfd_sys_count_get(f->counter, &before);
    assert_int_equal(vmm_release(f->vmm, handle[19]), 0);
    kfd_sys_count_get(f->counter, &after);
    assert_int_equal(after.requests - before.requests, 2); /* its own, and one of the others */
    kfd_sys_inject_set(f->injector, NULL);
    handle[0] = fixture_create(f, 0, 2 * MIB);
    assert_int_equal(vmm_release(f->vmm, handle[0]), 0);
    fake_get_usage(f->fake, &usage);
    assert_int_equal(usage.objects, 0);
}

struct peek {
    struct vmm *vmm;
    vmm_handle handle;
    int err;
};

static int peek_at_alloc(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct peek *peek = hook->arg;

    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ALLOC_MEMORY_OF_GPU))
        peek->err = vmm_get_props(peek->vmm, peek->handle, NULL, NULL);
    return hook_pass_request(hook, fd, request, arg);
}

static void test_a_guessed_handle_is_einval_until_create_returns(void **state)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = "mi300x:1", .kernel = "6.12"};
    struct vmm_props props = {.device = 0};
    struct peek peek = {.err = 0};
    vmm_handle first, second;
    struct hook hook;
    struct fake *fake;
    struct kfd *kfd;

    (void)state;
    assert_int_equal(fake_create(&options, &fake), 0);
    hook_init(&hook, fake_sys(fake));
    assert_int_equal(kfd_open(&hook.sys, &kfd), 0);
    assert_int_equal(vmm_open(kfd, NULL, &peek.vmm), 0);
    assert_int_equal(vmm_create(peek.vmm, &props, 2 * MIB, &first), 0);
    peek.handle = first + 1;
    hook.arg = &peek;
    hook.request = peek_at_alloc;
    assert_int_equal(vmm_create(peek.vmm, &props, 2 * MIB, &second), 0);
    assert_int_equal(second, first + 1); /* or the guess proves nothing */
    assert_int_equal(peek.err, -EINVAL);
    assert_int_equal(vmm_get_props(peek.vmm, second, NULL, NULL), 0);
    vmm_close(peek.vmm);
    kfd_close(kfd);
    fake_destroy(fake);
}

FIXTURE_TEST(create_takes_memory_on_its_own_device_and_release_gives_it_back)
FIXTURE_TEST(a_released_handle_is_einval_everywhere)
FIXTURE_TEST(more_than_32_bits_of_references_are_counted)
FIXTURE_TEST(release_while_mapped_keeps_the_memory_until_unmap)
FIXTURE_TEST(out_of_vram_is_enomem_and_leaves_nothing)
FIXTURE_TEST(bad_arguments_name_the_culprit)
FIXTURE_TEST(an_exported_descriptor_imports_as_a_second_handle_of_the_same_bytes)
FIXTURE_TEST(descriptors_that_are_no_dmabuf_are_einval)
FIXTURE_TEST(memory_the_kernel_refuses_to_free_is_freed_by_a_later_call)
FIXTURE_TEST(what_the_kernel_keeps_costs_a_call_one_request)

int main(void)
{
#define T(name) cmocka_unit_test_prestate(test_##name, &drm)
    const struct CMUnitTest tests[] = {
        T(create_takes_memory_on_its_own_device_and_release_gives_it_back),
        T(a_released_handle_is_einval_everywhere),
        T(a_release_that_succeeds_leaves_the_text_of_the_last_failure),
        T(more_than_32_bits_of_references_are_counted),
        T(release_while_mapped_keeps_the_memory_until_unmap),
        T(out_of_vram_is_enomem_and_leaves_nothing),
        T(bad_arguments_name_the_culprit),
        T(an_exported_descriptor_imports_as_a_second_handle_of_the_same_bytes),
        T(descriptors_that_are_no_dmabuf_are_einval),
        T(memory_the_kernel_refuses_to_free_is_freed_by_a_later_call),
        T(what_the_kernel_keeps_costs_a_call_one_request),
        cmocka_unit_test(test_a_guessed_handle_is_einval_until_create_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
