/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "stub_sys.h"

#define SIZE 0x200000u
#define VA UINT64_C(0x7f0000000000)

/* The test's arg: the last KFD memory request and what to answer. */
struct record {
    unsigned nr;
    int calls, answer;
    union {
        struct kfd_ioctl_alloc_memory_of_gpu_args alloc;
        struct kfd_ioctl_free_memory_of_gpu_args free;
        struct kfd_ioctl_map_memory_to_gpu_args map;
        struct kfd_ioctl_get_available_memory_args available;
    } args;
    uint32_t ids[KFD_MAX_DEVICES];
    uint32_t reached; /* n_success to leave */
    uint64_t total, used;
};

static bool record(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    struct record *r = stub->arg;

    if (_IOC_TYPE(request) == 'd' && _IOC_NR(request) == DRM_NR_INFO) {
        struct drm_amdgpu_info *info = arg;
        struct drm_amdgpu_memory_info heaps = {0};

        if (info->query != AMDGPU_INFO_MEMORY)
            return false;
        heaps.vram.total_heap_size = r->total;
        heaps.vram.heap_usage = r->used;
        memcpy((void *)(uintptr_t)info->return_pointer, &heaps, info->return_size);
        *ret = r->answer;
        return true;
    }
    if (_IOC_TYPE(request) != 'K' || _IOC_NR(request) < KFD_NR_ALLOC_MEMORY_OF_GPU)
        return false;
    r->calls++;
    r->nr = _IOC_NR(request);
    memcpy(&r->args, arg, _IOC_SIZE(request));
    if (r->nr == KFD_NR_ALLOC_MEMORY_OF_GPU && r->answer == 0) {
        struct kfd_ioctl_alloc_memory_of_gpu_args *alloc = arg;

        alloc->handle = 0x1234;
        alloc->mmap_offset = 0x100000000;
    }
    if (r->nr == KFD_NR_MAP_MEMORY_TO_GPU || r->nr == KFD_NR_UNMAP_MEMORY_FROM_GPU) {
        struct kfd_ioctl_map_memory_to_gpu_args *map = arg;

        memcpy(r->ids, (void *)(uintptr_t)map->device_ids_array_ptr,
               map->n_devices * sizeof(uint32_t));
        map->n_success = r->answer ? r->reached : map->n_devices;
    }
    if (r->nr == KFD_NR_AVAILABLE_MEMORY)
        ((struct kfd_ioctl_get_available_memory_args *)arg)->available = 6 * SIZE;
    *ret = r->answer;
    return true;
}

struct fixture {
    struct stub *stub;
    struct kfd *kfd;
    struct kfd_device *devs[2];
    struct record record;
};

static void open_with(struct fixture *f, uint32_t minor)
{
    f->stub->minor = minor;
    assert_int_equal(kfd_open(&f->stub->base, &f->kfd), 0);
    f->devs[0] = kfd_device_at(f->kfd, 0);
    f->devs[1] = kfd_device_at(f->kfd, 1);
}

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.stub = stub_new(2);
    f.stub->request = record;
    f.stub->arg = &f.record;
    stub_write_bank(f.stub, 1, 2, 1 << 30); /* the second has a small BAR */
    open_with(&f, 17);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    kfd_close(f->kfd);
    stub_free(f->stub);
    return 0;
}

static void reopen(struct fixture *f, uint32_t minor)
{
    kfd_close(f->kfd);
    f->stub->gpus[0].acquired_file = f->stub->gpus[1].acquired_file = 0;
    open_with(f, minor);
}

static void test_alloc_hands_on_its_arguments(void **state)
{
    struct fixture *f = *state;
    uint64_t handle, offset = 99;

    assert_int_equal(
        kfd_mem_alloc(f->devs[1], VA, SIZE, KFD_MEM_GTT | KFD_MEM_WRITABLE, &handle, &offset), 0);
    assert_int_equal(f->record.args.alloc.va_addr, VA);
    assert_int_equal(f->record.args.alloc.size, SIZE);
    assert_int_equal(f->record.args.alloc.gpu_id, 1001);
    assert_int_equal(f->record.args.alloc.flags, KFD_MEM_GTT | KFD_MEM_WRITABLE);
    assert_int_equal(f->record.args.alloc.mmap_offset, 0);
    assert_int_equal(handle, 0x1234);
    assert_int_equal(offset, 0x100000000);
    assert_int_equal(kfd_mem_alloc(f->devs[1], 0, SIZE, KFD_MEM_GTT, &handle, NULL), 0);
}

static void test_alloc_refuses_what_the_kernel_would_settle_for(void **state)
{
    struct fixture *f = *state;
    static const uint32_t flags[] = {
        0,
        KFD_MEM_WRITABLE,
        KFD_MEM_VRAM | KFD_MEM_GTT,
        KFD_MEM_VRAM | KFD_MEM_USERPTR,
        KFD_MEM_DOORBELL | KFD_MEM_MMIO_REMAP,
        KFD_MEM_VRAM | 0x20,
        KFD_MEM_VRAM | 0x08000000,
        KFD_MEM_GTT | KFD_MEM_PUBLIC,
        KFD_MEM_GTT | KFD_MEM_CONTIGUOUS,
    };
    uint64_t handle = 5;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        assert_int_equal(kfd_mem_alloc(f->devs[0], 0, SIZE, flags[i], &handle, NULL), -EINVAL);
    assert_int_equal(f->record.calls, 0);
    assert_int_equal(handle, 5);
}

static void test_alloc_refuses_ranges_that_a_map_would(void **state)
{
    struct fixture *f = *state;
    static const uint64_t ranges[][2] = {
        {0, 0},
        {0, 100},
        {0, SIZE + 1},
        {VA + 1, SIZE},
        {VA + 0x800, SIZE},
        {0x1000, SIZE},                       /* below the aperture */
        {UINT64_C(0x800000000000), SIZE},     /* above it */
        {UINT64_C(0x7fffffe00000), 2 * SIZE}, /* reaches out of it */
        {VA, UINT64_MAX & ~UINT64_C(0xfff)},  /* wraps */
    };
    uint64_t handle;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        assert_int_equal(
            kfd_mem_alloc(f->devs[0], ranges[i][0], ranges[i][1], KFD_MEM_VRAM, &handle, NULL),
            -EINVAL);
        assert_non_null(strstr(kfd_error_text(), "device 0"));
    }
    assert_int_equal(f->record.calls, 0);
    assert_int_equal(
        kfd_mem_alloc(f->devs[0], UINT64_C(0x7fffffe00000), SIZE, KFD_MEM_VRAM, &handle, NULL), 0);
    assert_int_equal(kfd_mem_alloc(f->devs[0], 0x10000, SIZE, KFD_MEM_VRAM, &handle, NULL), 0);
}

static void test_public_needs_all_vram_visible(void **state)
{
    struct fixture *f = *state;
    uint64_t handle;

    assert_int_equal(
        kfd_mem_alloc(f->devs[0], 0, SIZE, KFD_MEM_VRAM | KFD_MEM_PUBLIC, &handle, NULL), 0);
    assert_int_equal(
        kfd_mem_alloc(f->devs[1], 0, SIZE, KFD_MEM_VRAM | KFD_MEM_PUBLIC, &handle, NULL), -EINVAL);
}

static void test_contiguous_needs_its_kernel(void **state)
{
    struct fixture *f = *state;
    const uint32_t flags = KFD_MEM_VRAM | KFD_MEM_CONTIGUOUS;
    uint64_t handle;

    assert_int_equal(kfd_mem_alloc(f->devs[0], 0, SIZE, flags, &handle, NULL), 0);
    reopen(f, 15);
    assert_int_equal(kfd_mem_alloc(f->devs[0], 0, SIZE, flags, &handle, NULL), -EOPNOTSUPP);
}

static void test_userptr_takes_its_address_from_the_offset(void **state)
{
    struct fixture *f = *state;
    uint64_t handle, address = 0x7000;

    assert_int_equal(kfd_mem_alloc(f->devs[0], VA, SIZE, KFD_MEM_USERPTR, &handle, NULL), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "mmap_offset is NULL"));
    assert_int_equal(kfd_mem_alloc(f->devs[0], VA, 0, KFD_MEM_VRAM, &handle, NULL), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "size is 0"));
    address = 0;
    assert_int_equal(kfd_mem_alloc(f->devs[0], VA, SIZE, KFD_MEM_USERPTR, &handle, &address),
                     -EINVAL);
    address = 0x7001;
    assert_int_equal(kfd_mem_alloc(f->devs[0], VA, SIZE, KFD_MEM_USERPTR, &handle, &address),
                     -EINVAL);
    assert_int_equal(f->record.calls, 0);
    address = 0x7000;
    assert_int_equal(kfd_mem_alloc(f->devs[0], VA, SIZE, KFD_MEM_USERPTR, &handle, &address), 0);
    assert_int_equal(f->record.args.alloc.mmap_offset, 0x7000);
}

static void test_a_failed_alloc_leaves_its_results_alone(void **state)
{
    struct fixture *f = *state;
    uint64_t handle = 5, offset = 6;

    f->record.answer = -ENOMEM;
    assert_int_equal(kfd_mem_alloc(f->devs[0], 0, SIZE, KFD_MEM_VRAM, &handle, &offset), -ENOMEM);
    assert_int_equal(handle, 5);
    assert_int_equal(offset, 6);
    assert_non_null(strstr(kfd_error_text(), "device 0 (gfx942): ALLOC_MEMORY_OF_GPU"));
    assert_non_null(strstr(kfd_error_text(), "ENOMEM"));
}

static void test_free_hands_on_its_handle(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(kfd_mem_free(f->kfd, 0xabc), 0);
    assert_int_equal(f->record.nr, KFD_NR_FREE_MEMORY_OF_GPU);
    assert_int_equal(f->record.args.free.handle, 0xabc);
}

static void test_map_names_devices_in_order(void **state)
{
    struct fixture *f = *state;
    struct kfd_device *back[] = {f->devs[1], f->devs[0]};
    uint32_t done = 9;

    assert_int_equal(kfd_mem_map(f->kfd, 0xabc, back, 2, &done), 0);
    assert_int_equal(f->record.nr, KFD_NR_MAP_MEMORY_TO_GPU);
    assert_int_equal(f->record.args.map.handle, 0xabc);
    assert_int_equal(f->record.args.map.n_devices, 2);
    assert_int_equal(f->record.args.map.n_success, 0);
    assert_int_equal(f->record.ids[0], 1001);
    assert_int_equal(f->record.ids[1], 1000);
    assert_int_equal(done, 2);
    assert_int_equal(kfd_mem_unmap(f->kfd, 0xabc, f->devs, 2, &done), 0);
    assert_int_equal(f->record.nr, KFD_NR_UNMAP_MEMORY_FROM_GPU);
    assert_int_equal(f->record.args.map.n_success, 0);
    assert_int_equal(done, 2);
}

static void test_a_failed_map_tells_how_far_it_came(void **state)
{
    struct fixture *f = *state;
    uint32_t done = 9;

    f->record.answer = -EINVAL;
    f->record.reached = 1;
    assert_int_equal(kfd_mem_map(f->kfd, 1, f->devs, 2, &done), -EINVAL);
    assert_int_equal(done, 1);
    assert_int_equal(kfd_mem_unmap(f->kfd, 1, f->devs, 2, NULL), -EINVAL);
    /* The kernel's odd answer to a handle it does not know. */
    f->record.answer = -ENOMEM;
    f->record.reached = 0;
    assert_int_equal(kfd_mem_map(f->kfd, 1, f->devs, 2, &done), -ENOMEM);
    assert_int_equal(done, 0);
}

static void test_flush_claims_success_beforehand(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(kfd_mem_flush(f->kfd, 0xabc, f->devs, 2), 0);
    assert_int_equal(f->record.nr, KFD_NR_MAP_MEMORY_TO_GPU);
    assert_int_equal(f->record.args.map.n_devices, 2);
    assert_int_equal(f->record.args.map.n_success, 2);
}

static void test_device_lists_are_checked(void **state)
{
    struct fixture *f = *state;
    struct kfd_device *many[KFD_MAX_DEVICES + 1];
    struct stub *other = stub_new(1);
    struct kfd *elsewhere;
    uint32_t done = 9;

    for (uint32_t i = 0; i <= KFD_MAX_DEVICES; i++)
        many[i] = f->devs[0];
    assert_int_equal(kfd_mem_map(f->kfd, 1, many, 0, &done), -EINVAL);
    assert_int_equal(done, 0);
    assert_int_equal(kfd_mem_map(f->kfd, 1, many, KFD_MAX_DEVICES + 1, &done), -EINVAL);
    assert_int_equal(kfd_open(&other->base, &elsewhere), 0);
    many[1] = kfd_device_at(elsewhere, 0);
    assert_int_equal(kfd_mem_map(f->kfd, 1, many, 2, &done), -EINVAL);
    many[1] = NULL;
    assert_int_equal(kfd_mem_unmap(f->kfd, 1, many, 2, &done), -EINVAL);
    assert_int_equal(f->record.calls, 0);
    assert_int_equal(kfd_mem_map(f->kfd, 1, many, 1, &done), 0);
    kfd_close(elsewhere);
    stub_free(other);
}

static void test_available_comes_from_kfd(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes;

    assert_int_equal(kfd_mem_available(f->devs[1], &bytes), 0);
    assert_int_equal(bytes, 6 * SIZE);
    assert_int_equal(f->record.args.available.gpu_id, 1001);
}

static void test_old_kernels_answer_from_the_heap(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes;

    reopen(f, 8);
    f->record.total = 10 * SIZE + 4096;
    f->record.used = 3 * SIZE + 8192;
    assert_int_equal(kfd_mem_available(f->devs[0], &bytes), 0);
    assert_int_equal(bytes, 6 * SIZE);
    f->record.used = 11 * SIZE; /* usage is read at another moment than the total */
    assert_int_equal(kfd_mem_available(f->devs[0], &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(f->record.calls, 0);
    bytes = 7;
    f->record.answer = -EIO;
    assert_int_equal(kfd_mem_available(f->devs[0], &bytes), -EIO);
    assert_int_equal(bytes, 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_alloc_hands_on_its_arguments),
        TEST(test_alloc_refuses_what_the_kernel_would_settle_for),
        TEST(test_alloc_refuses_ranges_that_a_map_would),
        TEST(test_public_needs_all_vram_visible),
        TEST(test_contiguous_needs_its_kernel),
        TEST(test_userptr_takes_its_address_from_the_offset),
        TEST(test_a_failed_alloc_leaves_its_results_alone),
        TEST(test_free_hands_on_its_handle),
        TEST(test_map_names_devices_in_order),
        TEST(test_a_failed_map_tells_how_far_it_came),
        TEST(test_flush_claims_success_beforehand),
        TEST(test_device_lists_are_checked),
        TEST(test_available_comes_from_kfd),
        TEST(test_old_kernels_answer_from_the_heap),
    };

    return cmocka_run_group_tests_name("kfd/memory", tests, NULL, NULL);
}
