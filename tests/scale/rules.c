/* SPDX-License-Identifier: MIT */
/*
 * The kernel's rules for GEM_VA mappings, taken away one at a time: a hook between library and fake
 * swallows or alters the request that keeps the rule, and the fake's GPU side or its strict mode
 * must see the difference. A rule whose breach nobody sees would be a rule nobody tests.
 */
#include "common.h"
#include "hook.h"

#include <kfdirect/vmm.h>

#include "kfd/uapi.h"

#define SIZE MIB(2)

struct bench {
    struct fake *fake;
    struct hook hook;
    struct kfd *kfd;
    struct vmm *vmm;
    uint64_t va;
    vmm_handle first, second;
    int render[2];     /* descriptors of the render nodes, in order of opening */
    uint64_t breaches; /* how often the hook did its work */
};

static void bench_up(struct bench *b, uint32_t flags)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = "mi300x:2", .kernel = "6.12", .flags = flags};
    struct vmm_options vmm_options = {.size = sizeof(vmm_options), .engine = VMM_ENGINE_DRM};
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};

    memset(b, 0, sizeof(*b));
    assert_int_equal(fake_create(&options, &b->fake), 0);
    hook_init(&b->hook, fake_sys(b->fake));
    b->hook.arg = b;
    assert_int_equal(kfd_open(&b->hook.sys, &b->kfd), 0);
    assert_int_equal(kfd_device_count(b->kfd), 2);
    b->render[0] = kfd_device_drm_fd(kfd_device_at(b->kfd, 0));
    b->render[1] = kfd_device_drm_fd(kfd_device_at(b->kfd, 1));
    assert_int_equal(vmm_open(b->kfd, &vmm_options, &b->vmm), 0);
    assert_int_equal(vmm_reserve(b->vmm, 4 * SIZE, 0, 0, &b->va), 0);
    assert_int_equal(vmm_create(b->vmm, &props, SIZE, &b->first), 0);
    assert_int_equal(vmm_create(b->vmm, &props, SIZE, &b->second), 0);
}

/* A broken machine may not be taken down in order; what is left goes with the fake. */
static void bench_down(struct bench *b)
{
    b->hook.request = NULL;
    vmm_close(b->vmm);
    kfd_close(b->kfd);
    fake_destroy(b->fake);
}

static int grant(struct bench *b, uint32_t device, uint32_t prot)
{
    struct vmm_access access = {device, prot};

    return vmm_set_access(b->vmm, b->va, SIZE, &access, 1);
}

static bool gpu_does(struct bench *b, uint32_t gpu, enum fake_access access,
                     struct fake_translation *t)
{
    char byte = 0;

    return access == FAKE_WRITE ? fake_gpu_write(b->fake, gpu, b->va, &byte, 1, t) == 0
                                : fake_gpu_read(b->fake, gpu, b->va, &byte, 1, t) == 0;
}

/* Maps, uses, unmaps, maps another memory at the same address and uses that: true when the GPU
 * reached the wrong memory, or strict mode spoke up, on the way. */
static bool remap_goes_wrong(struct bench *b)
{
    struct fake_translation first, between, second;
    bool wrong = false;

    memset(&first, 0, sizeof(first));
    memset(&between, 0, sizeof(between));
    memset(&second, 0, sizeof(second));
    wrong |= vmm_map(b->vmm, b->va, SIZE, 0, b->first) != 0;
    wrong |= grant(b, 0, VMM_PROT_READ_WRITE) != 0;
    wrong |= !gpu_does(b, 0, FAKE_WRITE, &first);
    (void)fake_gpu_translate(b->fake, 0, b->va, FAKE_READ, &first);
    wrong |= vmm_unmap(b->vmm, b->va, SIZE) != 0;
    wrong |= gpu_does(b, 0, FAKE_READ, &between);
    wrong |= vmm_map(b->vmm, b->va, SIZE, 0, b->second) != 0;
    wrong |= grant(b, 0, VMM_PROT_READ_WRITE) != 0;
    wrong |= !gpu_does(b, 0, FAKE_READ, &second);
    (void)fake_gpu_translate(b->fake, 0, b->va, FAKE_READ, &second);
    wrong |= second.stale || first.object == second.object;
    (void)vmm_unmap(b->vmm, b->va, SIZE);
    return wrong || fake_strict_count(b->fake) > 0;
}

static int swallow_flush(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct kfd_ioctl_map_memory_to_gpu_args *map = arg;

    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_MAP_MEMORY_TO_GPU) &&
        map->n_success == map->n_devices) {
        ((struct bench *)hook->arg)->breaches++;
        return 0;
    }
    return hook_pass_request(hook, fd, request, arg);
}

static void test_unmap_without_a_flush_lets_the_gpu_reach_old_memory(void **state)
{
    struct bench b;

    bench_up(&b, 0);
    assert_false(remap_goes_wrong(&b));
    b.hook.request = swallow_flush;
    assert_true(remap_goes_wrong(&b));
    assert_true(b.breaches > 0);
    bench_down(&b);
}

/* True when the rights on the GPU are not those that were set. */
static bool rights_go_wrong(struct bench *b)
{
    bool wrong = vmm_map(b->vmm, b->va, SIZE, 0, b->first) != 0;

    wrong |= grant(b, 0, VMM_PROT_READ) != 0;
    wrong |= !gpu_does(b, 0, FAKE_READ, NULL) || gpu_does(b, 0, FAKE_WRITE, NULL);
    wrong |= grant(b, 0, VMM_PROT_READ_WRITE) != 0;
    wrong |= !gpu_does(b, 0, FAKE_READ, NULL) || !gpu_does(b, 0, FAKE_WRITE, NULL);
    wrong |= grant(b, 0, VMM_PROT_NONE) != 0;
    wrong |= gpu_does(b, 0, FAKE_READ, NULL) || gpu_does(b, 0, FAKE_WRITE, NULL);
    (void)vmm_unmap(b->vmm, b->va, SIZE);
    return wrong || fake_strict_count(b->fake) > 0;
}

/* As libdrm's own wrapper does: whatever was asked for, everything is allowed. */
static int drop_rights(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct kfd_uapi_gem_va *va = arg;

    if (REQUEST_OF(request) == REQUEST_OF(DRM_CODE_GEM_VA) &&
        (va->operation == KFD_VA_MAP || va->operation == KFD_VA_REPLACE)) {
        ((struct bench *)hook->arg)->breaches++;
        va->flags |= KFD_VA_READ | KFD_VA_WRITE | KFD_VA_EXEC;
    }
    return hook_pass_request(hook, fd, request, arg);
}

static int clear_rights(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct kfd_uapi_gem_va *va = arg;

    if (REQUEST_OF(request) == REQUEST_OF(DRM_CODE_GEM_VA) &&
        (va->operation == KFD_VA_MAP || va->operation == KFD_VA_REPLACE)) {
        ((struct bench *)hook->arg)->breaches++;
        va->flags &= ~(KFD_VA_READ | KFD_VA_WRITE);
    }
    return hook_pass_request(hook, fd, request, arg);
}

static void expect_rights_breach(int (*breach)(struct hook *hook, int fd, unsigned long request,
                                               void *arg))
{
    struct bench b;

    bench_up(&b, 0);
    assert_false(rights_go_wrong(&b));
    b.hook.request = breach;
    assert_true(rights_go_wrong(&b));
    assert_true(b.breaches > 0);
    bench_down(&b);
}

static void test_rights_that_are_always_all_let_a_reader_write(void **state)
{
    expect_rights_breach(drop_rights);
}

static void test_rights_that_are_lost_fault_the_writer(void **state)
{
    expect_rights_breach(clear_rights);
}

/* The handle goes as soon as the mapping is made, as if it were not needed any more. */
static int close_early(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct kfd_uapi_gem_va *va = arg;
    int result = hook_pass_request(hook, fd, request, arg);

    if (REQUEST_OF(request) == REQUEST_OF(DRM_CODE_GEM_VA) && result == 0 &&
        va->operation == KFD_VA_MAP) {
        struct drm_gem_close gone = {.handle = va->handle};

        ((struct bench *)hook->arg)->breaches++;
        (void)hook_pass_request(hook, fd, DRM_IOCTL_GEM_CLOSE, &gone);
    }
    return result;
}

static void test_gem_handle_closed_early_takes_the_mapping_with_it(void **state)
{
    struct bench b;

    bench_up(&b, 0);
    assert_false(remap_goes_wrong(&b));
    b.hook.request = close_early;
    assert_true(remap_goes_wrong(&b));
    assert_true(b.breaches > 0);
    bench_down(&b);
}

/* Every DRM request about memory goes to the other device's node. */
static int other_node(struct hook *hook, int fd, unsigned long request, void *arg)
{
    struct bench *b = hook->arg;

    if (_IOC_TYPE(request) == KFD_UAPI_TYPE_DRM && (fd == b->render[0] || fd == b->render[1])) {
        b->breaches++;
        fd = fd == b->render[0] ? b->render[1] : b->render[0];
    }
    return hook_pass_request(hook, fd, request, arg);
}

static void test_wrong_render_node_maps_for_the_wrong_gpu(void **state)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    vmm_handle handle = 0;
    struct bench b;
    bool wrong;

    bench_up(&b, 0);
    assert_false(remap_goes_wrong(&b));
    b.hook.request = other_node;
    wrong = vmm_create(b.vmm, &props, SIZE, &handle) != 0;
    wrong |= vmm_map(b.vmm, b.va, SIZE, 0, handle) != 0;
    wrong |= grant(&b, 0, VMM_PROT_READ_WRITE) != 0;
    wrong |= !gpu_does(&b, 0, FAKE_WRITE, NULL);
    wrong |= gpu_does(&b, 1, FAKE_READ, NULL);
    assert_true(wrong);
    assert_true(b.breaches > 0);
    b.hook.request = NULL;
    bench_down(&b);
}

/* The kernel itself refuses a render node that is not the GPU's; the library names the GPU. */
static int swap_acquire(struct hook *hook, int fd, unsigned long request, void *arg)
{
    static uint32_t first;

    if (REQUEST_OF(request) == REQUEST_OF(KFD_CODE_ACQUIRE_VM)) {
        struct kfd_ioctl_acquire_vm_args *acquire = arg;

        if (!first)
            first = acquire->drm_fd;
        else
            acquire->drm_fd = first;
        ((struct bench *)hook->arg)->breaches++;
    }
    return hook_pass_request(hook, fd, request, arg);
}

static void test_acquiring_with_another_gpus_node_is_refused_and_explained(void **state)
{
    struct fake_options options = {.size = sizeof(options), .machine = "mi300x:2"};
    struct bench b = {0};

    assert_int_equal(fake_create(&options, &b.fake), 0);
    hook_init(&b.hook, fake_sys(b.fake));
    b.hook.arg = &b;
    b.hook.request = swap_acquire;
    assert_int_equal(kfd_open(&b.hook.sys, &b.kfd), 0);
    assert_int_equal(b.breaches, 2);
    assert_int_equal(kfd_device_count(b.kfd), 1);
    assert_non_null(kfd_skipped(b.kfd, 0));
    kfd_close(b.kfd);
    fake_destroy(b.fake);
}

/* With strict mode on, the kept rules raise no objection. */
static void test_strict_mode_has_nothing_to_say_about_kept_rules(void **state)
{
    struct bench b;

    bench_up(&b, FAKE_STRICT);
    assert_false(remap_goes_wrong(&b));
    assert_false(rights_go_wrong(&b));
    if (fake_strict_count(b.fake))
        fail_msg("%s", fake_strict_report(b.fake));
    bench_down(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_strict_mode_has_nothing_to_say_about_kept_rules),
        RAW_CASE(test_unmap_without_a_flush_lets_the_gpu_reach_old_memory),
        RAW_CASE(test_rights_that_are_always_all_let_a_reader_write),
        RAW_CASE(test_rights_that_are_lost_fault_the_writer),
        RAW_CASE(test_gem_handle_closed_early_takes_the_mapping_with_it),
        RAW_CASE(test_wrong_render_node_maps_for_the_wrong_gpu),
        RAW_CASE(test_acquiring_with_another_gpus_node_is_refused_and_explained),
    };

    return run_cases(cases, COUNT_OF(cases));
}
