/* SPDX-License-Identifier: MIT */
/* The KFD dispatcher: numbers, sizes, pointers, process scope. */
#include "rig.h"

#include <sys/wait.h>

#define K(nr, size) _IOC(_IOC_READ | _IOC_WRITE, 'K', (nr), (size))

static void test_only_the_number_is_looked_at(void **state)
{
    struct kfd_ioctl_get_version_args v = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_VERSION, &v), 0);
    assert_int_equal(v.major_version, 1);
    assert_int_equal(v.minor_version, 17);
    memset(&v, 0, sizeof(v));
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_NONE, 'Z', 1, sizeof(v)), &v), 0);
    assert_int_equal(v.minor_version, 17);
    rig_end(&r);
}

static void test_unknown_numbers_are_enotty(void **state)
{
    const uint32_t unknown[] = {0, 0x27, 0x7f, 0x80, 0xff};
    uint8_t buf[64] = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(rig_request(&r, r.kfd, K(unknown[i], 16), buf), -ENOTTY);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_EXPORT_DMABUF, buf), -EINVAL);
    rig_end(&r);
    rig_start(&r, "mi210:1", "6.1", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_EXPORT_DMABUF, buf), -ENOTTY);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, buf), -ENOTTY);
    rig_end(&r);
}

static void test_sizes_may_differ(void **state)
{
    struct {
        struct kfd_ioctl_get_version_args v;
        uint8_t tail[56];
    } big;
    uint32_t alloc[2] = {0, 0};
    struct {
        struct kfd_ioctl_get_available_memory_args a;
        uint64_t tail;
    } longer = {.tail = 77};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    memset(&big, 0x55, sizeof(big));
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_READ, 'K', 1, 4), &big), 0);
    assert_int_equal(big.v.major_version, 1);
    assert_int_equal(big.v.minor_version, 0x55555555);
    /* Zeros go behind the struct of a request that only writes. */
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_READ, 'K', 1, sizeof(big)), &big), 0);
    assert_int_equal(big.v.minor_version, 17);
    assert_int_equal(big.tail[0] | big.tail[55], 0);
    /* The tail of an in/out request comes back as it was; a short one reads as 0. */
    longer.a.gpu_id = r.id[0];
    assert_int_equal(rig_request(&r, r.kfd, K(KFD_NR_AVAILABLE_MEMORY, sizeof(longer)), &longer),
                     0);
    assert_int_equal(longer.tail, 77);
    assert_true(longer.a.available != 0);
    assert_int_equal(rig_request(&r, r.kfd, K(KFD_NR_ALLOC_MEMORY_OF_GPU, 8), alloc), -EINVAL);
    rig_end(&r);
}

static void test_bad_pointers_are_efault(void **state)
{
    struct kfd_ioctl_get_available_memory_args *ro =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_VERSION, NULL), -EFAULT);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, (void *)8), -EFAULT);
    ro->gpu_id = r.id[0];
    mprotect(ro, 4096, PROT_READ);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_AVAILABLE_MEMORY, ro), -EFAULT);
    munmap(ro, 4096);
    rig_end(&r);
}

static void test_the_work_is_done_when_the_copy_back_fails(void **state)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args *ro =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct fake_usage u;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    *ro = (struct kfd_ioctl_alloc_memory_of_gpu_args){
        .size = MIB, .gpu_id = r.id[0], .flags = VRAM_RW};
    mprotect(ro, 4096, PROT_READ);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, ro), -EFAULT);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.kfd_handles, 1);
    munmap(ro, 4096);
    rig_end(&r);
}

static void test_outputs_of_a_failed_request_are_copied_back(void **state)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {.handle = 1234, .mmap_offset = 5678};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a.gpu_id = r.id[0];
    a.size = MIB;
    a.flags = 0;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a), -EINVAL);
    assert_int_equal(a.handle, 1234);
    assert_int_equal(a.mmap_offset, 5678);
    rig_end(&r);
}

static int child_view(struct rig *r)
{
    struct kfd_ioctl_get_version_args v;
    uint32_t id = r->id[0];
    void *p;
    int fd;

    if (rig_request(r, r->kfd, KFD_CODE_GET_VERSION, &v) != -EBADF)
        return 1;
    if (rig_request(r, r->kfd, K(0x7f, 8), &v) != -ENOTTY)
        return 2;
    if (r->sys->ops->map_pages(r->sys, NULL, 4096, PROT_READ, MAP_SHARED, r->kfd, 0, &p) != -EINVAL)
        return 3;
    fd = rig_open_path(r, "/dev/kfd");
    if (fd < 0 || rig_request(r, fd, KFD_CODE_GET_VERSION, &v) != 0)
        return 4;
    if (rig_request(r, r->kfd, KFD_CODE_GET_VERSION, &v) != -EBADF)
        return 5;
    r->kfd = fd;
    /* The inherited node carries the parent's VM. */
    if (rig_acquire(r, 0, r->drm[0]) != -EINVAL)
        return 6;
    r->drm[0] = rig_open_render(r, 0);
    if (rig_acquire(r, 0, r->drm[0]) != 0 || fake_gpu_id(r->fake, 0) != id)
        return 7;
    if (rig_must_alloc(r, 0, VA, MIB, VRAM_RW) != (uint64_t)id << 32)
        return 8;
    return 0;
}

static void test_a_forked_child_starts_afresh(void **state)
{
    struct fake_usage u;
    struct rig r;
    int status;
    pid_t pid;

    rig_start(&r, "mi300x:1", "6.12", 0);
    rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    pid = fork();
    if (pid == 0)
        _exit(child_view(&r));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    /* What the child had is gone with it. */
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 1);
    rig_end(&r);
}

static void test_one_process_behind_all_its_descriptors(void **state)
{
    uint64_t handle;
    struct rig r;
    int fd, copy;

    rig_start(&r, "mi300x:1", "6.12", 0);
    handle = rig_must_alloc(&r, 0, VA, MIB, VRAM_RW);
    fd = rig_open_path(&r, "/dev/kfd");
    copy = r.sys->ops->dup_fd(r.sys, fd, 100);
    assert_true(copy >= 100);
    rig_close(&r, r.kfd);
    rig_close(&r, fd);
    r.kfd = copy;
    assert_int_equal(rig_map(&r, handle, 0), 0);
    rig_close(&r, copy);
    /* Closing all of them frees nothing. */
    r.kfd = rig_open_path(&r, "/dev/kfd");
    assert_int_equal(rig_free(&r, handle), -EBUSY);
    assert_int_equal(rig_unmap(&r, handle, 0), 0);
    assert_int_equal(rig_free(&r, handle), 0);
    rig_end(&r);
}

static void test_svm_size_is_checked_before_all_else(void **state)
{
    struct kfd_ioctl_svm_args a = {.nattr = 2};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_SVM, &a), -EINVAL);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_number_is_looked_at),
        cmocka_unit_test(test_unknown_numbers_are_enotty),
        cmocka_unit_test(test_sizes_may_differ),
        cmocka_unit_test(test_bad_pointers_are_efault),
        cmocka_unit_test(test_the_work_is_done_when_the_copy_back_fails),
        cmocka_unit_test(test_outputs_of_a_failed_request_are_copied_back),
        cmocka_unit_test(test_a_forked_child_starts_afresh),
        cmocka_unit_test(test_one_process_behind_all_its_descriptors),
        cmocka_unit_test(test_svm_size_is_checked_before_all_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
