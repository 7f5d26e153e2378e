/* SPDX-License-Identifier: MIT */
/* How many requests the kernel gets for a whole life of a mapping, by engine and device count. */
#include "world.h"

static uint64_t requests(struct world *w)
{
    struct kfd_sys_counts counts;

    kfd_sys_count_get(w->counter, &counts);
    return counts.requests;
}

static void print_counts(const char *what, struct world *w)
{
    struct kfd_sys_counts counts;
    char text[512];
    int length;

    kfd_sys_count_get(w->counter, &counts);
    length = snprintf(text, sizeof(text), "%llu requests:", (unsigned long long)counts.requests);
    for (unsigned i = 0; i < 256 && length < (int)sizeof(text); i++) {
        if (counts.kfd[i])
            length += snprintf(text + length, sizeof(text) - length, " K%02x*%llu", i,
                               (unsigned long long)counts.kfd[i]);
        if (counts.drm[i] && length < (int)sizeof(text))
            length += snprintf(text + length, sizeof(text) - length, " d%02x*%llu", i,
                               (unsigned long long)counts.drm[i]);
    }
    print_message("# %s: %s\n", what, text);
}

/* Create, map, set access for n devices, unmap, release. */
static uint64_t cycle(struct world *w, uint64_t va, uint32_t devices)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    struct vmm_access access[KFD_MAX_DEVICES];
    vmm_handle handle = 0;
    uint64_t count;

    for (uint32_t i = 0; i < devices; i++)
        access[i] = (struct vmm_access){i, VMM_PROT_READ_WRITE};
    kfd_sys_count_reset(w->counter);
    assert_int_equal(vmm_create(w->vmm, &props, MIB(2), &handle), 0);
    assert_int_equal(vmm_map(w->vmm, va, MIB(2), 0, handle), 0);
    assert_int_equal(vmm_set_access(w->vmm, va, MIB(2), access, devices), 0);
    for (uint32_t i = 0; i < devices; i++)
        assert_int_equal(fake_gpu_write(w->fake, i, va, "x", 1, NULL), 0);
    assert_int_equal(vmm_unmap(w->vmm, va, MIB(2)), 0);
    for (uint32_t i = 0; i < devices; i++)
        assert_true(fake_gpu_write(w->fake, i, va, "x", 1, NULL) != 0);
    assert_int_equal(vmm_release(w->vmm, handle), 0);
    count = requests(w);
    return count;
}

static void expect_cycle(const char *kernel, enum vmm_engine engine, uint32_t devices,
                         uint64_t most)
{
    struct world w;
    uint64_t va = 0, count;
    char what[64];

    world_open(&w, "mi300x:8", kernel, engine);
    assert_int_equal(vmm_reserve(w.vmm, GIB(1), 0, 0, &va), 0);
    (void)cycle(&w, va + MIB(2), devices);
    count = cycle(&w, va, devices);
    snprintf(what, sizeof(what), "%s engine, %u devices", vmm_engine_name(engine), devices);
    print_counts(what, &w);
    if (count > most)
        fail_msg("%s: %llu requests, at most %llu wanted", what, (unsigned long long)count,
                 (unsigned long long)most);
    assert_int_equal(vmm_address_free(w.vmm, va, GIB(1)), 0);
    assert_true(world_close(&w));
}

static void test_drm_engine_needs_8_for_one_device(void **state)
{
    expect_cycle("6.12", VMM_ENGINE_DRM, 1, 8);
}

static void test_drm_engine_needs_40_for_8_devices(void **state)
{
    expect_cycle("6.12", VMM_ENGINE_DRM, 8, 40);
}

/* Where page tables are written some time after the request, one wait each for granting and taking
 * away, however many devices. */
static void test_timeline_points_cost_2_for_any_number_of_devices(void **state)
{
    expect_cycle("current", VMM_ENGINE_DRM, 1, 10);
    expect_cycle("current", VMM_ENGINE_DRM, 8, 40);
}

static void test_kfd_engine_needs_8_for_any_number_of_devices(void **state)
{
    for (uint32_t devices = 1; devices <= 8; devices++)
        expect_cycle("6.12", VMM_ENGINE_KFD, devices, 8);
}

/* A handle whose imports are there is mapped again by two per device and one flush. */
static void test_drm_engine_remaps_a_known_handle_with_2_per_device_and_1(void **state)
{
    for (uint32_t devices = 1; devices <= 8; devices += 7) {
        struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
        struct vmm_access access[KFD_MAX_DEVICES];
        vmm_handle handle = 0;
        struct world w;
        uint64_t va = 0;

        for (uint32_t i = 0; i < devices; i++)
            access[i] = (struct vmm_access){i, VMM_PROT_READ_WRITE};
        world_open(&w, "mi300x:8", "6.12", VMM_ENGINE_DRM);
        assert_int_equal(vmm_reserve(w.vmm, GIB(1), 0, 0, &va), 0);
        assert_int_equal(vmm_create(w.vmm, &props, MIB(2), &handle), 0);
        for (unsigned round = 0; round < 2; round++) {
            kfd_sys_count_reset(w.counter);
            assert_int_equal(vmm_map(w.vmm, va, MIB(2), 0, handle), 0);
            assert_int_equal(vmm_set_access(w.vmm, va, MIB(2), access, devices), 0);
            assert_int_equal(vmm_unmap(w.vmm, va, MIB(2)), 0);
        }
        print_counts("a remap", &w);
        assert_true(requests(&w) <= 2 * devices + 1);
        assert_int_equal(vmm_release(w.vmm, handle), 0);
        assert_int_equal(vmm_address_free(w.vmm, va, GIB(1)), 0);
        assert_true(world_close(&w));
    }
}

static void test_map_and_address_calls_need_none(void **state)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    vmm_handle handle = 0;
    struct world w;
    uint64_t va = 0;

    world_open(&w, "mi300x:8", "6.12", VMM_ENGINE_DRM);
    assert_int_equal(vmm_create(w.vmm, &props, MIB(2), &handle), 0);
    kfd_sys_count_reset(w.counter);
    assert_int_equal(vmm_reserve(w.vmm, GIB(1), 0, 0, &va), 0);
    assert_int_equal(vmm_map(w.vmm, va, MIB(2), 0, handle), 0);
    assert_int_equal(vmm_unmap(w.vmm, va, MIB(2)), 0);
    assert_int_equal(vmm_address_free(w.vmm, va, GIB(1)), 0);
    assert_int_equal(requests(&w), 0);
    assert_int_equal(vmm_release(w.vmm, handle), 0);
    assert_true(world_close(&w));
}

static void test_malloc_and_free_need_4_for_any_number_of_devices(void **state)
{
    static const char *const machines[] = {"mi300x:1", "mi300x:2", "mi300x:8"};

    for (unsigned i = 0; i < COUNT_OF(machines); i++) {
        struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
        struct world w;
        uint64_t va = 0;

        world_open(&w, machines[i], "6.12", VMM_ENGINE_DRM);
        kfd_sys_count_reset(w.counter);
        assert_int_equal(vmm_alloc(w.vmm, &props, MIB(64), &va), 0);
        for (uint32_t gpu = 0; gpu < fake_gpu_count(w.fake); gpu++)
            assert_int_equal(fake_gpu_write(w.fake, gpu, va, "x", 1, NULL), 0);
        assert_int_equal(vmm_free(w.vmm, va), 0);
        print_counts(machines[i], &w);
        assert_int_equal(requests(&w), 4);
        assert_true(world_close(&w));
    }
}

/* The same seen from hipMalloc. */
static void test_hip_malloc_and_free_need_4(void **state)
{
    struct kfd_sys *counter = NULL;
    struct kfd_sys_counts counts;
    void *va = NULL;

    machine_use("mi300x:8", "6.12", 0);
    assert_int_equal(kfd_sys_count_new(fake_sys(machine.fake), &counter), 0);
    kfd_sys_set_default(counter);
    HIP_OK(hipMalloc(&va, MIB(2)));
    HIP_OK(hipFree(va));
    kfd_sys_count_reset(counter);
    HIP_OK(hipMalloc(&va, MIB(64)));
    HIP_OK(hipFree(va));
    kfd_sys_count_get(counter, &counts);
    assert_int_equal(counts.requests, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        RAW_CASE(test_drm_engine_needs_8_for_one_device),
        RAW_CASE(test_drm_engine_needs_40_for_8_devices),
        RAW_CASE(test_timeline_points_cost_2_for_any_number_of_devices),
        RAW_CASE(test_kfd_engine_needs_8_for_any_number_of_devices),
        RAW_CASE(test_drm_engine_remaps_a_known_handle_with_2_per_device_and_1),
        RAW_CASE(test_map_and_address_calls_need_none),
        RAW_CASE(test_malloc_and_free_need_4_for_any_number_of_devices),
        RAW_CASE(test_hip_malloc_and_free_need_4),
    };

    return run_cases(cases, COUNT_OF(cases));
}
