/* SPDX-License-Identifier: MIT */
/* Debian's libdrm_amdgpu on the fake: nothing of ours between the program and the preload. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <xf86drm.h>

#define SIZE (8ull << 20)
#define VA 0x400000000ull

static int open_render(const struct fake_profile *p, uint32_t gpu)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/dev/dri/renderD%u", p->gpus[gpu].render_minor);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static amdgpu_device_handle start(int fd)
{
    amdgpu_device_handle dev;
    uint32_t major, minor;

    assert_int_equal(amdgpu_device_initialize(fd, &major, &minor, &dev), 0);
    assert_int_equal(major, 3);
    return dev;
}

static amdgpu_bo_handle alloc(amdgpu_device_handle dev, uint32_t heap)
{
    struct amdgpu_bo_alloc_request request = {.alloc_size = SIZE,
                                              .phys_alignment = 4096,
                                              .preferred_heap = heap,
                                              .flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED};
    amdgpu_bo_handle bo;

    assert_int_equal(amdgpu_bo_alloc(dev, &request, &bo), 0);
    return bo;
}

static void test_device_is_the_profiles(void **state)
{
    struct fake_profile *p = world();

    for (uint32_t g = 0; g < p->gpu_count; g++) {
        int fd = open_render(p, g);
        amdgpu_device_handle dev = start(fd);
        struct amdgpu_gpu_info info;
        struct drm_amdgpu_memory_info memory;
        struct amdgpu_heap_info heap;
        drmVersionPtr version = drmGetVersion(fd);

        assert_int_equal(version->version_minor, p->kernel.drm_minor);
        assert_string_equal(version->name, "amdgpu");
        drmFreeVersion(version);
        assert_int_equal(amdgpu_query_gpu_info(dev, &info), 0);
        assert_int_equal(info.asic_id, p->gpus[g].device_id);
        assert_int_equal(info.family_id, p->gpus[g].family);
        assert_int_equal(info.pci_rev_id, p->gpus[g].pci_rev);
        assert_int_equal(info.gb_addr_cfg, p->gpus[g].gb_addr_config);
        assert_int_equal(info.vram_bit_width, p->gpus[g].mem_width);
        assert_true(info.max_engine_clk == p->gpus[g].max_engine_clk_fcompute * 1000ull);
        assert_int_equal(amdgpu_query_info(dev, AMDGPU_INFO_MEMORY, sizeof(memory), &memory), 0);
        assert_true(memory.vram.total_heap_size == p->gpus[g].vram);
        assert_true(memory.cpu_accessible_vram.total_heap_size == p->gpus[g].visible_vram);
        assert_int_equal(amdgpu_query_heap_info(dev, AMDGPU_GEM_DOMAIN_GTT, 0, &heap), 0);
        assert_true(heap.heap_size == fake_profile_ttm_limit(p));
        assert_int_equal(amdgpu_device_deinitialize(dev), 0);
        close(fd);
    }
    fake_profile_free(p);
}

static void test_devices_are_listed_with_their_pci_place(void **state)
{
    struct fake_profile *p = world();
    drmDevicePtr devices[FAKE_MAX_GPUS];
    int n = drmGetDevices2(0, devices, FAKE_MAX_GPUS);

    assert_int_equal(n, p->gpu_count);
    for (int i = 0; i < n; i++) {
        const struct fake_gpu *gpu = NULL;

        assert_int_equal(devices[i]->bustype, DRM_BUS_PCI);
        for (uint32_t g = 0; g < p->gpu_count; g++) {
            if ((p->gpus[g].location_id >> 8) == devices[i]->businfo.pci->bus &&
                (p->gpus[g].location_id >> 3 & 31) == devices[i]->businfo.pci->dev)
                gpu = &p->gpus[g];
        }
        assert_non_null(gpu);
        assert_int_equal(devices[i]->deviceinfo.pci->vendor_id, gpu->vendor_id);
        assert_int_equal(devices[i]->deviceinfo.pci->device_id, gpu->device_id);
    }
    drmFreeDevices(devices, n);
    fake_profile_free(p);
}

static void test_second_initialise_of_a_device_finds_the_first(void **state)
{
    struct fake_profile *p = world();
    int a = open_render(p, 0), b = open_render(p, 0);
    amdgpu_device_handle first = start(a), second = start(b);

    assert_ptr_equal(first, second);
    assert_int_equal(amdgpu_device_deinitialize(second), 0);
    assert_int_equal(amdgpu_device_deinitialize(first), 0);
    close(a);
    close(b);
    fake_profile_free(p);
}

static void test_bytes_written_through_one_view_are_read_through_another(void **state)
{
    struct fake_profile *p = world();
    static const uint32_t heaps[] = {AMDGPU_GEM_DOMAIN_GTT, AMDGPU_GEM_DOMAIN_VRAM};
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);

    for (size_t h = 0; h < 2; h++) {
        amdgpu_bo_handle bo = alloc(dev, heaps[h]);
        struct amdgpu_bo_import_result imported;
        unsigned char *cpu, *view;
        uint32_t prime;

        assert_int_equal(amdgpu_bo_cpu_map(bo, (void **)&cpu), 0);
        assert_int_equal(cpu[SIZE - 1], 0);
        memset(cpu, 0x5a, SIZE);
        assert_int_equal(amdgpu_bo_export(bo, amdgpu_bo_handle_type_dma_buf_fd, &prime), 0);
        view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)prime, SIZE - 4096);
        assert_true(view != MAP_FAILED);
        assert_int_equal(view[4095], 0x5a);
        munmap(view, 4096);
        /* On the same device it is the same object. */
        assert_int_equal(amdgpu_bo_import(dev, amdgpu_bo_handle_type_dma_buf_fd, prime, &imported),
                         0);
        assert_true(imported.alloc_size == SIZE);
        assert_ptr_equal(imported.buf_handle, bo);
        assert_int_equal(amdgpu_bo_free(imported.buf_handle), 0);
        close((int)prime);
        assert_int_equal(amdgpu_bo_cpu_unmap(bo), 0);
        assert_int_equal(amdgpu_bo_free(bo), 0);
    }
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void test_another_device_imports_the_size(void **state)
{
    struct fake_profile *p = world();
    int fds[2];
    amdgpu_device_handle devs[2];
    struct amdgpu_bo_import_result imported;
    amdgpu_bo_handle bo;
    uint32_t prime;

    if (p->gpu_count < 2) {
        fake_profile_free(p);
        skip();
    }
    for (uint32_t i = 0; i < 2; i++) {
        fds[i] = open_render(p, i);
        devs[i] = start(fds[i]);
    }
    bo = alloc(devs[0], AMDGPU_GEM_DOMAIN_GTT);
    assert_int_equal(amdgpu_bo_export(bo, amdgpu_bo_handle_type_dma_buf_fd, &prime), 0);
    assert_int_equal(amdgpu_bo_import(devs[1], amdgpu_bo_handle_type_dma_buf_fd, prime, &imported),
                     0);
    assert_true(imported.alloc_size == SIZE);
    close((int)prime);
    assert_int_equal(amdgpu_bo_free(imported.buf_handle), 0);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    for (uint32_t i = 0; i < 2; i++) {
        amdgpu_device_deinitialize(devs[i]);
        close(fds[i]);
    }
    fake_profile_free(p);
}

static int va_op(amdgpu_device_handle dev, amdgpu_bo_handle bo, uint64_t offset, uint64_t size,
                 uint64_t va, uint32_t op)
{
    return amdgpu_bo_va_op_raw(dev, bo, offset, size, va,
                               AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE, op);
}

static void test_ranges_are_mapped_with_offsets_and_refuse_overlap(void **state)
{
    struct fake_profile *p = world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    amdgpu_bo_handle bo = alloc(dev, AMDGPU_GEM_DOMAIN_VRAM);

    assert_int_equal(va_op(dev, bo, 4096, 8192, VA, AMDGPU_VA_OP_MAP), 0);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA + SIZE, AMDGPU_VA_OP_MAP), 0);
    assert_int_equal(va_op(dev, bo, 0, 4096, VA + 4096, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, SIZE, 4096, VA + 65536, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, 0, 4096, VA + 100, AMDGPU_VA_OP_MAP), -EINVAL);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA + 4096, AMDGPU_VA_OP_UNMAP), -ENOENT);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA, AMDGPU_VA_OP_UNMAP), 0);
    assert_int_equal(va_op(dev, bo, 0, 8192, VA, AMDGPU_VA_OP_REPLACE), 0);
    assert_int_equal(va_op(dev, NULL, 0, 2 * SIZE, VA, AMDGPU_VA_OP_CLEAR), 0);
    assert_int_equal(va_op(dev, bo, 0, SIZE, VA, AMDGPU_VA_OP_UNMAP), -ENOENT);
    assert_int_equal(amdgpu_bo_free(bo), 0);
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

static void *work(void *arg)
{
    amdgpu_device_handle dev = arg;

    for (int i = 0; i < 50; i++) {
        amdgpu_bo_handle bo;
        amdgpu_va_handle range;
        struct amdgpu_bo_alloc_request request = {.alloc_size = 65536,
                                                  .preferred_heap = AMDGPU_GEM_DOMAIN_GTT};
        uint64_t va;

        if (amdgpu_bo_alloc(dev, &request, &bo) != 0 ||
            amdgpu_va_range_alloc(dev, amdgpu_gpu_va_range_general, 65536, 4096, 0, &va, &range,
                                  0) != 0 ||
            amdgpu_bo_va_op(bo, 0, 65536, va, 0, AMDGPU_VA_OP_MAP) != 0 ||
            amdgpu_bo_va_op(bo, 0, 65536, va, 0, AMDGPU_VA_OP_UNMAP) != 0 ||
            amdgpu_va_range_free(range) != 0 || amdgpu_bo_free(bo) != 0)
            return arg;
    }
    return NULL;
}

static void test_threads_share_a_device(void **state)
{
    struct fake_profile *p = world();
    int fd = open_render(p, 0);
    amdgpu_device_handle dev = start(fd);
    pthread_t threads[4];
    void *failed;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, dev), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(amdgpu_device_deinitialize(dev), 0);
    close(fd);
    fake_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_is_the_profiles),
        cmocka_unit_test(test_devices_are_listed_with_their_pci_place),
        cmocka_unit_test(test_second_initialise_of_a_device_finds_the_first),
        cmocka_unit_test(test_bytes_written_through_one_view_are_read_through_another),
        cmocka_unit_test(test_another_device_imports_the_size),
        cmocka_unit_test(test_ranges_are_mapped_with_offsets_and_refuse_overlap),
        cmocka_unit_test(test_threads_share_a_device),
        /* Once more, after everything was closed. */
        cmocka_unit_test(test_device_is_the_profiles),
        cmocka_unit_test(test_bytes_written_through_one_view_are_read_through_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
