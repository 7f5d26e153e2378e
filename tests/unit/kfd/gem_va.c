/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "stub_sys.h"

#define VA UINT64_C(0x7f0000000000)

/* The test's arg: the last GEM_VA, and the timeline of one VM. */
struct record {
    int changes, creates, destroys, waits, answer;
    unsigned long code;
    struct kfd_uapi_gem_va last;
    struct drm_syncobj_timeline_wait wait;
    uint64_t reached, waited_point;
    uint32_t waited_handle;
    bool disorder;
};

static bool record(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    struct record *r = stub->arg;

    if (_IOC_TYPE(request) != 'd')
        return false;
    *ret = 0;
    switch (_IOC_NR(request)) {
    case DRM_NR_GEM_VA:
        r->changes++;
        r->code = request;
        memset(&r->last, 0, sizeof(r->last));
        memcpy(&r->last, arg, _IOC_SIZE(request));
        *ret = r->answer;
        if (r->answer == 0 && r->last.vm_timeline_syncobj_out) {
            r->disorder = r->disorder || r->last.vm_timeline_point != r->reached + 1;
            r->reached = r->last.vm_timeline_point;
        }
        return true;
    case DRM_NR_SYNCOBJ_CREATE:
        r->creates++;
        ((struct drm_syncobj_create *)arg)->handle = 40 + (uint32_t)r->creates;
        return true;
    case DRM_NR_SYNCOBJ_DESTROY:
        r->destroys++;
        return true;
    case DRM_NR_SYNCOBJ_TIMELINE_WAIT:
        r->waits++;
        r->wait = *(struct drm_syncobj_timeline_wait *)arg;
        r->waited_handle = *(uint32_t *)(uintptr_t)r->wait.handles;
        r->waited_point = *(uint64_t *)(uintptr_t)r->wait.points;
        *ret = r->answer;
        return true;
    default:
        return false;
    }
}

static struct kfd_device *open_record(struct stub **stub, struct record *r, uint32_t drm_minor)
{
    struct kfd *kfd;

    *stub = stub_new(1);
    (*stub)->gpus[0].drm_minor = drm_minor;
    (*stub)->request = record;
    (*stub)->arg = r;
    assert_int_equal(kfd_open(&(*stub)->base, &kfd), 0);
    return kfd_device_at(kfd, 0);
}

static void close_record(struct stub *stub, struct kfd_device *dev)
{
    kfd_close(kfd_device_kfd(dev));
    stub_free(stub);
}

static void test_arguments_are_handed_on_in_the_old_form(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 63);

    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0x3000, 0x2000, KFD_VA_READ | KFD_VA_EXEC),
                     0);
    assert_int_equal((uint32_t)r.code, 0x40286448);
    assert_int_equal(r.last.handle, 5);
    assert_int_equal(r.last.operation, AMDGPU_VA_OP_MAP);
    assert_int_equal(r.last.flags, AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_EXECUTABLE);
    assert_int_equal(r.last.va_address, VA);
    assert_int_equal(r.last.offset_in_bo, 0x3000);
    assert_int_equal(r.last.map_size, 0x2000);
    assert_int_equal(kfd_gem_va_wait(&dev, 1), 0);
    assert_int_equal(r.creates + r.waits, 0);
    close_record(stub, dev);
    assert_int_equal(r.destroys, 0);
}

static void test_every_operation_has_its_number(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 61);

    for (int op = KFD_VA_MAP; op <= KFD_VA_REPLACE; op++) {
        assert_int_equal(kfd_gem_va(dev, (enum kfd_va_op)op, 5, VA, 0, 0x1000, 0), 0);
        assert_int_equal(r.last.operation, op);
    }
    close_record(stub, dev);
}

static void test_unknown_operations_and_flags_are_refused(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 61);

    assert_int_equal(kfd_gem_va(dev, (enum kfd_va_op)0, 5, VA, 0, 0x1000, 0), -EINVAL);
    assert_int_equal(kfd_gem_va(dev, (enum kfd_va_op)5, 5, VA, 0, 0x1000, 0), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "device 0: GEM_VA: there is no operation 5"));
    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, 1), -EINVAL);
    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, 0x10), -EINVAL);
    assert_int_equal(r.changes, 0);
    close_record(stub, dev);
}

static void test_new_kernels_get_points_in_order(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 64);

    assert_int_equal(r.creates, 0); /* made by the first change */
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ), 0);
        assert_int_equal((uint32_t)r.code, 0x40406448);
        assert_int_equal(r.last.vm_timeline_syncobj_out, 41);
        assert_int_equal(r.last.vm_timeline_point, i);
        assert_int_equal(r.last.num_syncobj_handles, 0);
    }
    assert_int_equal(r.creates, 1);
    close_record(stub, dev);
    assert_int_equal(r.destroys, 1);
}

static void test_one_wait_covers_all_points(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 64);

    assert_int_equal(kfd_gem_va_wait(&dev, 1), 0);
    assert_int_equal(r.waits, 0); /* nothing queued yet */
    for (int i = 0; i < 3; i++)
        assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ), 0);
    assert_int_equal(kfd_gem_va_wait(&dev, 1), 0);
    assert_int_equal(r.waits, 1);
    assert_int_equal(r.wait.count_handles, 1);
    assert_int_equal(r.wait.timeout_nsec, INT64_MAX);
    assert_int_equal(r.waited_handle, 41);
    assert_int_equal(r.waited_point, 3);
    assert_int_equal(kfd_gem_va_wait(&dev, 1), 0);
    assert_int_equal(r.waits, 1); /* nothing new */
    assert_int_equal(kfd_gem_va(dev, KFD_VA_UNMAP, 5, VA, 0, 0x1000, 0), 0);
    r.answer = -EIO;
    assert_int_equal(kfd_gem_va_wait(&dev, 1), -EIO);
    r.answer = 0;
    assert_int_equal(kfd_gem_va_wait(&dev, 1), 0);
    assert_int_equal(r.waits, 3);
    assert_int_equal(r.waited_point, 4);
    close_record(stub, dev);
}

/* A point that no change carries would never be signalled, and the wait for a later one hang. */
static void test_a_failed_change_takes_no_point(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 64);

    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ), 0);
    r.answer = -EINVAL;
    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "device 0 (gfx942): GEM_VA operation=MAP"));
    r.answer = 0;
    assert_int_equal(kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ), 0);
    assert_int_equal(r.last.vm_timeline_point, 2);
    close_record(stub, dev);
}

static void *change(void *arg)
{
    struct kfd_device *dev = arg;

    for (int i = 0; i < 200; i++) {
        if (kfd_gem_va(dev, KFD_VA_MAP, 5, VA, 0, 0x1000, KFD_VA_READ) < 0 ||
            kfd_gem_va_wait(&dev, 1) < 0)
            return arg;
    }
    return NULL;
}

static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

static bool locked_record(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    bool answered;

    pthread_mutex_lock(&record_lock);
    answered = record(stub, fd, request, arg, ret);
    pthread_mutex_unlock(&record_lock);
    return answered;
}

static void test_threads_keep_the_order_of_points(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd_device *dev = open_record(&stub, &r, 64);
    pthread_t threads[3];

    stub->request = locked_record;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change, dev), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_false(r.disorder);
    assert_int_equal(r.reached, 600);
    assert_int_equal(r.creates, 1);
    close_record(stub, dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments_are_handed_on_in_the_old_form),
        cmocka_unit_test(test_every_operation_has_its_number),
        cmocka_unit_test(test_unknown_operations_and_flags_are_refused),
        cmocka_unit_test(test_new_kernels_get_points_in_order),
        cmocka_unit_test(test_one_wait_covers_all_points),
        cmocka_unit_test(test_a_failed_change_takes_no_point),
        cmocka_unit_test(test_threads_keep_the_order_of_points),
    };

    return cmocka_run_group_tests_name("kfd/gem_va", tests, NULL, NULL);
}
