/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "stub_sys.h"

/*
 * The test's arg: the GEM table of one render file, as the kernel keeps it. Importing descriptor
 * 1000 + h gives handle h, without a count; a close of a handle that is not open is an error.
 */
struct table {
    atomic_int open[600];
    atomic_int closes;
    union drm_amdgpu_gem_create create;
    struct drm_prime_handle export;
    int answer;
    uint32_t next; /* of GEM_CREATE */
};

static bool table_request(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    struct table *t = stub->arg;
    struct drm_prime_handle *prime = arg;

    if (_IOC_TYPE(request) != 'd')
        return false;
    *ret = t->answer;
    switch (_IOC_NR(request)) {
    case DRM_NR_PRIME_FD_TO_HANDLE:
        if (t->answer == 0) {
            prime->handle = (uint32_t)prime->fd - 1000;
            atomic_store(&t->open[prime->handle], 1);
        }
        return true;
    case DRM_NR_GEM_CREATE:
        t->create = *(union drm_amdgpu_gem_create *)arg;
        if (t->answer == 0) {
            ((union drm_amdgpu_gem_create *)arg)->out.handle = t->next;
            atomic_store(&t->open[t->next], 1);
        }
        return true;
    case DRM_NR_GEM_CLOSE:
        atomic_fetch_add(&t->closes, 1);
        if (!atomic_exchange(&t->open[((struct drm_gem_close *)arg)->handle], 0))
            *ret = -EINVAL;
        return true;
    case DRM_NR_PRIME_HANDLE_TO_FD:
        t->export = *prime;
        if (t->answer == 0)
            prime->fd = stub->base.ops->open_path(&stub->base, "/dev/kfd", 0);
        return true;
    case DRM_NR_GEM_MMAP:
        if (t->answer == 0)
            ((union drm_amdgpu_gem_mmap *)arg)->out.addr_ptr = 0x123456000;
        return true;
    default:
        return false;
    }
}

struct fixture {
    struct stub *stub;
    struct kfd *kfd;
    struct kfd_device *dev, *small_bar;
    struct table table;
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.stub = stub_new(2);
    stub_write_bank(f.stub, 1, 2, 1 << 30);
    f.stub->request = table_request;
    f.stub->arg = &f.table;
    assert_int_equal(kfd_open(&f.stub->base, &f.kfd), 0);
    f.dev = kfd_device_at(f.kfd, 0);
    f.small_bar = kfd_device_at(f.kfd, 1);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->table.answer = 0;
    kfd_close(f->kfd);
    for (int i = 0; i < 600; i++)
        assert_int_equal(f->table.open[i], 0);
    stub_free(f->stub);
    return 0;
}

static void test_a_handle_closes_with_its_last_use(void **state)
{
    struct fixture *f = *state;
    uint32_t gem;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(kfd_gem_import(f->dev, 1005, &gem), 0);
        assert_int_equal(gem, 5);
    }
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
    assert_int_equal(f->table.closes, 0);
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
    assert_int_equal(f->table.closes, 1);
}

static void test_a_handle_that_is_not_open_never_reaches_the_kernel(void **state)
{
    struct fixture *f = *state;
    uint32_t gem;

    assert_int_equal(kfd_gem_close(f->dev, 5), -EINVAL);
    assert_int_equal(kfd_gem_close(f->dev, UINT32_MAX), -EINVAL);
    assert_int_equal(kfd_gem_import(f->dev, 1005, &gem), 0);
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
    assert_int_equal(kfd_gem_close(f->dev, 5), -EINVAL);
    assert_int_equal(kfd_gem_close(f->dev, 4), -EINVAL);
    assert_int_equal(f->table.closes, 1);
}

static void test_devices_count_apart(void **state)
{
    struct fixture *f = *state;
    uint32_t gem;

    assert_int_equal(kfd_gem_import(f->dev, 1005, &gem), 0);
    assert_int_equal(kfd_gem_close(f->small_bar, 5), -EINVAL);
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
}

static void test_high_handles_are_counted_too(void **state)
{
    struct fixture *f = *state;
    static const uint32_t handles[] = {1, 63, 64, 65, 255, 256, 599};
    uint32_t gem;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
            assert_int_equal(kfd_gem_import(f->dev, 1000 + (int)handles[i], &gem), 0);
            assert_int_equal(gem, handles[i]);
        }
    }
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
        assert_int_equal(kfd_gem_close(f->dev, handles[i]), 0);
    assert_int_equal(f->table.closes, 0);
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
        assert_int_equal(kfd_gem_close(f->dev, handles[i]), 0);
    assert_int_equal(f->table.closes, sizeof(handles) / sizeof(handles[0]));
}

static void test_a_failed_import_counts_nothing(void **state)
{
    struct fixture *f = *state;
    uint32_t gem = 9;

    f->table.answer = -EBADF;
    assert_int_equal(kfd_gem_import(f->dev, 1005, &gem), -EBADF);
    assert_int_equal(gem, 9);
    f->table.answer = 0;
    assert_int_equal(kfd_gem_close(f->dev, 5), -EINVAL);
}

static void test_a_failed_close_keeps_the_count(void **state)
{
    struct fixture *f = *state;
    uint32_t gem;

    assert_int_equal(kfd_gem_import(f->dev, 1005, &gem), 0);
    f->table.open[5] = 0; /* the kernel has lost it */
    assert_int_equal(kfd_gem_close(f->dev, 5), -EINVAL);
    f->table.open[5] = 1;
    assert_int_equal(kfd_gem_close(f->dev, 5), 0);
}

static void test_create_asks_for_cleared_memory_the_cpu_sees(void **state)
{
    struct fixture *f = *state;
    const uint64_t cleared = AMDGPU_GEM_CREATE_VRAM_CLEARED;
    uint32_t gem;

    f->table.next = 3;
    assert_int_equal(kfd_gem_create(f->dev, 0x200000, true, &gem), 0);
    assert_int_equal(gem, 3);
    assert_int_equal(f->table.create.in.bo_size, 0x200000);
    assert_int_equal(f->table.create.in.alignment, 0x200000);
    assert_int_equal(f->table.create.in.domains, AMDGPU_GEM_DOMAIN_VRAM);
    assert_int_equal(f->table.create.in.domain_flags,
                     cleared | AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED);
    f->table.next = 4;
    assert_int_equal(kfd_gem_create(f->dev, 0x1000, false, &gem), 0);
    assert_int_equal(f->table.create.in.alignment, 0x1000);
    assert_int_equal(f->table.create.in.domains, AMDGPU_GEM_DOMAIN_GTT);
    assert_int_equal(f->table.create.in.domain_flags, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED);
    assert_int_equal(kfd_gem_close(f->dev, 3), 0);
    assert_int_equal(kfd_gem_close(f->dev, 4), 0);
    assert_int_equal(kfd_gem_create(f->small_bar, 0x1000, true, &gem), 0);
    assert_int_equal(f->table.create.in.domain_flags, cleared);
    assert_int_equal(kfd_gem_close(f->small_bar, 4), 0);
}

static void test_create_refuses_odd_sizes(void **state)
{
    struct fixture *f = *state;
    uint32_t gem;

    assert_int_equal(kfd_gem_create(f->dev, 0, true, &gem), -EINVAL);
    assert_int_equal(kfd_gem_create(f->dev, 100, true, &gem), -EINVAL);
    assert_int_equal(f->table.create.in.bo_size, 0);
}

static void test_export_is_writable_close_on_exec_and_above_2(void **state)
{
    struct fixture *f = *state;
    int before = f->stub->open_fds, fd;

    f->stub->low_fds = 1;
    assert_int_equal(kfd_gem_export(f->dev, 7, &fd), 0);
    assert_int_equal(f->table.export.handle, 7);
    assert_int_equal(f->table.export.flags, DRM_CLOEXEC | DRM_RDWR);
    assert_true(fd > 2);
    assert_int_equal(f->stub->open_fds, before + 1);
    f->stub->base.ops->close_fd(&f->stub->base, fd);
    fd = 1;
    f->table.answer = -ENOENT;
    assert_int_equal(kfd_gem_export(f->dev, 7, &fd), -ENOENT);
    assert_int_equal(fd, 1);
}

static void test_mmap_offset_comes_from_the_kernel(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = 1;

    assert_int_equal(kfd_gem_mmap_offset(f->dev, 7, &offset), 0);
    assert_int_equal(offset, 0x123456000);
    f->table.answer = -ENOENT;
    assert_int_equal(kfd_gem_mmap_offset(f->dev, 8, &offset), -ENOENT);
    assert_int_equal(offset, 0x123456000);
}

/* A close that the kernel answers with an error closed a handle another thread still used. */
static void *import_and_close(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 500; i++) {
        uint32_t gem;

        if (kfd_gem_import(f->dev, 1000 + i % 5, &gem) < 0 || !atomic_load(&f->table.open[gem]) ||
            kfd_gem_close(f->dev, gem) < 0)
            return f;
    }
    return NULL;
}

static void test_threads_share_handles(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, import_and_close, f), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_handle_closes_with_its_last_use),
        TEST(test_a_handle_that_is_not_open_never_reaches_the_kernel),
        TEST(test_devices_count_apart),
        TEST(test_high_handles_are_counted_too),
        TEST(test_a_failed_import_counts_nothing),
        TEST(test_a_failed_close_keeps_the_count),
        TEST(test_create_asks_for_cleared_memory_the_cpu_sees),
        TEST(test_create_refuses_odd_sizes),
        TEST(test_export_is_writable_close_on_exec_and_above_2),
        TEST(test_mmap_offset_comes_from_the_kernel),
        TEST(test_threads_share_handles),
    };

    return cmocka_run_group_tests_name("kfd/gem", tests, NULL, NULL);
}
