/* SPDX-License-Identifier: MIT */
#include "rig.h"

#define PAGE 4096ull

struct request {
    struct kfd_ioctl_svm_args args;
    struct kfd_ioctl_svm_attribute attrs[8];
};

static int svm(struct rig *r, struct request *q, uint32_t op, void *at, uint64_t size, uint32_t n)
{
    unsigned long code = _IOC(_IOC_READ | _IOC_WRITE, 'K', KFD_NR_SVM, 24 + 8 * n);

    q->args.start_addr = (uintptr_t)at;
    q->args.size = size;
    q->args.op = op;
    q->args.nattr = n;
    return rig_request(r, r->kfd, code, q);
}

static int set(struct rig *r, void *at, uint64_t size, uint32_t type, uint32_t value)
{
    struct request q = {.attrs = {{type, value}}};

    return svm(r, &q, KFD_IOCTL_SVM_OP_SET_ATTR, at, size, 1);
}

/* The answer: the type for an access, else the value. */
static uint32_t get(struct rig *r, void *at, uint64_t size, uint32_t type, uint32_t value)
{
    struct request q = {.attrs = {{type, value}}};

    assert_int_equal(svm(r, &q, KFD_IOCTL_SVM_OP_GET_ATTR, at, size, 1), 0);
    return type == KFD_IOCTL_SVM_ATTR_ACCESS ? q.attrs[0].type : q.attrs[0].value;
}

static char *memory(uint64_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static void test_without_the_switch_it_is_eperm_after_the_size_check(void **state)
{
    struct rig r;
    struct request q = {.args.nattr = 5};

    rig_start(&r, "mi210", "6.12", 0);
    assert_int_equal(svm(&r, &q, 0, NULL, 0, 0), -EPERM);
    q.args.nattr = 5;
    assert_int_equal(rig_request(&r, r.kfd, _IOC(3u, 'K', KFD_NR_SVM, 24), &q), -EINVAL);
    rig_end(&r);
}

static void test_arguments_are_checked(void **state)
{
    struct rig r;
    struct request q = {0};
    char *p = memory(4 * PAGE);

    rig_start(&r, "mi210", "6.12+svm", 0);
    assert_int_equal(svm(&r, &q, 0, p, 0, 0), -EINVAL);
    assert_int_equal(svm(&r, &q, 0, p + 1, PAGE, 0), -EINVAL);
    assert_int_equal(svm(&r, &q, 0, p, PAGE + 1, 0), -EINVAL);
    assert_int_equal(svm(&r, &q, 2, p, PAGE, 0), -EINVAL);
    assert_int_equal(set(&r, p, PAGE, 99, 0), -EINVAL);
    assert_int_equal(set(&r, p, PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0xdead), -EINVAL);
    assert_int_equal(set(&r, p, PAGE, KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, UINT32_MAX), -EINVAL);
    munmap(p + 2 * PAGE, PAGE);
    assert_int_equal(set(&r, p, 4 * PAGE, KFD_IOCTL_SVM_ATTR_SET_FLAGS, 0), -EFAULT);
    munmap(p, 4 * PAGE);
    rig_end(&r);
}

static void test_attributes_of_a_part_split_the_range(void **state)
{
    struct rig r;
    char *p = memory(4 * PAGE);

    rig_start(&r, "mi210:2", "6.12+svm", 0);
    assert_int_equal(get(&r, p, PAGE, KFD_IOCTL_SVM_ATTR_SET_FLAGS, 0), 3);
    assert_int_equal(get(&r, p, PAGE, KFD_IOCTL_SVM_ATTR_GRANULARITY, 0), 9);
    assert_int_equal(set(&r, p, 4 * PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, r.id[0]), 0);
    assert_int_equal(set(&r, p + PAGE, PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, r.id[1]), 0);
    assert_int_equal(set(&r, p + PAGE, PAGE, KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE, r.id[1]), 0);
    assert_int_equal(get(&r, p, PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0), r.id[0]);
    assert_int_equal(get(&r, p + PAGE, PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0), r.id[1]);
    assert_int_equal(get(&r, p + 2 * PAGE, 2 * PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0), r.id[0]);
    assert_int_equal(get(&r, p, 4 * PAGE, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0), UINT32_MAX);
    assert_int_equal(get(&r, p + PAGE, PAGE, KFD_IOCTL_SVM_ATTR_ACCESS, r.id[1]),
                     KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE);
    assert_int_equal(get(&r, p, 2 * PAGE, KFD_IOCTL_SVM_ATTR_ACCESS, r.id[1]),
                     KFD_IOCTL_SVM_ATTR_NO_ACCESS);
    munmap(p, 4 * PAGE);
    rig_end(&r);
}

static void test_svm_and_buffers_exclude_each_other(void **state)
{
    struct rig r;
    char *p = memory(4 * PAGE);
    uint64_t h;

    rig_start(&r, "mi210", "6.12+svm", 0);
    h = rig_must_alloc(&r, 0, (uintptr_t)p, PAGE, VRAM_RW);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(set(&r, p, 4 * PAGE, KFD_IOCTL_SVM_ATTR_GRANULARITY, 1), -EADDRINUSE);
    assert_int_equal(set(&r, p + PAGE, 3 * PAGE, KFD_IOCTL_SVM_ATTR_GRANULARITY, 1), 0);
    assert_int_equal(rig_alloc(&r, 0, (uintptr_t)p + 3 * PAGE, PAGE, VRAM_RW, &h), -EADDRINUSE);
    /* Memory without an address meets nothing. */
    assert_int_equal(rig_alloc(&r, 0, 0, PAGE, VRAM_RW, &h), 0);
    munmap(p, 4 * PAGE);
    rig_end(&r);
}

static void test_always_mapped_range_serves_as_save_area(void **state)
{
    static const uint64_t save = (23203840ull + 48640) * 8;
    struct rig r;
    char *p = memory(save);
    uint64_t va[3] = {VA, VA + MIB, VA + 2 * MIB};
    struct kfd_uapi_create_queue a = {.write_pointer_address = va[0],
                                      .read_pointer_address = va[1],
                                      .ring_base_address = va[2],
                                      .ring_size = 4096,
                                      .queue_percentage = 100,
                                      .ctx_save_restore_address = (uintptr_t)p,
                                      .ctx_save_restore_size = 23203840,
                                      .ctl_stack_size = 12288};

    rig_start(&r, "mi300x", "6.12+svm", 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            rig_map(&r, rig_must_alloc(&r, 0, va[i], PAGE, KFD_MEM_GTT | KFD_MEM_WRITABLE), 0), 0);
    a.gpu_id = r.id[0];
    assert_int_equal(set(&r, p, save, KFD_IOCTL_SVM_ATTR_ACCESS, r.id[0]), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_CREATE_QUEUE, &a), -EINVAL);
    assert_int_equal(set(&r, p, save, KFD_IOCTL_SVM_ATTR_SET_FLAGS, 0x40), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_CREATE_QUEUE, &a), 0);
    munmap(p, save);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_the_switch_it_is_eperm_after_the_size_check),
        cmocka_unit_test(test_arguments_are_checked),
        cmocka_unit_test(test_attributes_of_a_part_split_the_range),
        cmocka_unit_test(test_svm_and_buffers_exclude_each_other),
        cmocka_unit_test(test_always_mapped_range_serves_as_save_area),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
