/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <sys/wait.h>

#define GTT_RW (KFD_MEM_GTT | KFD_MEM_WRITABLE)
#define RING_SIZE 65536u
#define ENOTSUPP_KERNEL 524

enum {
    WPTR,
    RPTR,
    RING,
    EOP,
    CWSR,
    BUFFERS,
};

struct buffers {
    uint64_t va[BUFFERS], handle[BUFFERS];
};

/* MI300X: the save area of one queue, over its eight XCCs. */
#define CWSR_SIZE ((23203840ull + 48640) * 8)

static void make_buffers(struct rig *r, struct buffers *b, uint64_t at)
{
    static const uint64_t sizes[BUFFERS] = {4096, 4096, RING_SIZE, 4096, CWSR_SIZE};

    for (int i = 0; i < BUFFERS; i++) {
        b->va[i] = at + i * (1ull << 30);
        b->handle[i] = rig_must_alloc(r, 0, b->va[i], sizes[i], GTT_RW);
        assert_int_equal(rig_map(r, b->handle[i], 0), 0);
    }
}

static struct kfd_uapi_create_queue compute(struct rig *r, const struct buffers *b)
{
    return (struct kfd_uapi_create_queue){.ring_base_address = b->va[RING],
                                          .write_pointer_address = b->va[WPTR] + 64,
                                          .read_pointer_address = b->va[RPTR],
                                          .ring_size = RING_SIZE,
                                          .gpu_id = r->id[0],
                                          .queue_type = 2,
                                          .queue_percentage = 100,
                                          .queue_priority = 7,
                                          .eop_buffer_address = b->va[EOP],
                                          .eop_buffer_size = 4096,
                                          .ctx_save_restore_address = b->va[CWSR],
                                          .ctx_save_restore_size = 23203840,
                                          .ctl_stack_size = 12288};
}

static int create(struct rig *r, struct kfd_uapi_create_queue *a)
{
    return rig_request(r, r->kfd, KFD_CODE_CREATE_QUEUE, a);
}

static int destroy(struct rig *r, uint32_t id)
{
    struct kfd_ioctl_destroy_queue_args a = {.queue_id = id};

    return rig_request(r, r->kfd, KFD_CODE_DESTROY_QUEUE, &a);
}

static void test_queue_gets_lowest_id_and_a_doorbell(void **state)
{
    struct rig r;
    struct buffers b, c;
    struct kfd_uapi_create_queue a, second;
    void *page;

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    make_buffers(&r, &c, VA + (16ull << 30));
    a = compute(&r, &b);
    second = compute(&r, &c);
    assert_int_equal(create(&r, &a), 0);
    assert_int_equal(create(&r, &second), 0);
    assert_int_equal(a.queue_id, 0);
    assert_int_equal(second.queue_id, 1);
    assert_true(a.doorbell_offset == (3ull << 62 | (uint64_t)r.id[0] << 46));
    assert_true(second.doorbell_offset == a.doorbell_offset + 8);
    assert_int_equal(r.sys->ops->map_pages(r.sys, NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED,
                                           r.kfd, second.doorbell_offset, &page),
                     0);
    munmap(page, 8192);
    assert_int_equal(destroy(&r, 0), 0);
    assert_int_equal(destroy(&r, 0), -EINVAL);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    assert_int_equal(a.queue_id, 0);
    rig_end(&r);
}

static void test_arguments_are_checked_in_the_kernels_order(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;

    rig_open(&r, "mi300x", "6.12", 0);
    a = (struct kfd_uapi_create_queue){.queue_percentage = 101, .ring_base_address = 1ull << 60};
    assert_int_equal(create(&r, &a), -EINVAL);
    a.queue_percentage = 100 | 7 << 8;
    a.queue_priority = 16;
    assert_int_equal(create(&r, &a), -EINVAL);
    a.queue_priority = 15;
    a.ring_size = 3000;
    assert_int_equal(create(&r, &a), -EFAULT);
    a.ring_base_address = 0;
    assert_int_equal(create(&r, &a), -EINVAL);
    a.ring_size = 512;
    a.read_pointer_address = 1ull << 60;
    assert_int_equal(create(&r, &a), -EFAULT);
    /* A small ring has been raised by then, and is seen in spite of the failure. */
    assert_int_equal(a.ring_size, 1024);
    a.read_pointer_address = 0;
    a.queue_type = 9;
    assert_int_equal(create(&r, &a), -ENOTSUPP_KERNEL);
    a.queue_type = 2;
    assert_int_equal(create(&r, &a), -EINVAL);
    a.gpu_id = r.id[0];
    assert_int_equal(create(&r, &a), -ESRCH);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    a.queue_type = 4;
    a.sdma_engine_id = 16;
    assert_int_equal(create(&r, &a), -EINVAL);
    make_buffers(&r, &b, VA);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    rig_end(&r);
}

static void check_refused(struct rig *r, const struct buffers *b, size_t offset, size_t size,
                          uint64_t value)
{
    struct kfd_uapi_create_queue a = compute(r, b);

    memcpy((char *)&a + offset, &value, size);
    assert_int_equal(create(r, &a), -EINVAL);
}

#define REFUSED(field, value) \
    check_refused(&r, &b, offsetof(struct kfd_uapi_create_queue, field), sizeof(a.field), value)

static void test_each_buffer_must_be_a_whole_mapping_of_its_size(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    REFUSED(write_pointer_address, b.va[RING]);
    REFUSED(read_pointer_address, VA - 4096);
    REFUSED(ring_base_address, b.va[RING] + 4096);
    REFUSED(ring_size, RING_SIZE / 2);
    REFUSED(eop_buffer_size, 2048);
    REFUSED(eop_buffer_size, 8192);
    REFUSED(ctl_stack_size, 8192);
    REFUSED(ctx_save_restore_size, 23203839);
    REFUSED(ctx_save_restore_address, b.va[CWSR] + 4096);
    /* None of the failures kept anything. */
    for (int i = 0; i < BUFFERS; i++)
        assert_int_equal(rig_unmap(&r, b.handle[i], 0), 0);
    rig_end(&r);
}

static void test_buffers_of_a_live_queue_cannot_be_unmapped(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    for (int i = 0; i < BUFFERS; i++) {
        assert_int_equal(rig_unmap(&r, b.handle[i], 0), -EBUSY);
        assert_int_equal(rig_free(&r, b.handle[i]), -EBUSY);
    }
    assert_int_equal(destroy(&r, a.queue_id), 0);
    for (int i = 0; i < BUFFERS; i++) {
        assert_int_equal(rig_unmap(&r, b.handle[i], 0), 0);
        assert_int_equal(rig_free(&r, b.handle[i]), 0);
    }
    rig_end(&r);
}

static void test_6_1_checks_no_buffers_and_holds_none(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;

    rig_start(&r, "mi210", "6.1", 0);
    make_buffers(&r, &b, VA);
    a = compute(&r, &b);
    a.ring_base_address += 4096;
    a.ctl_stack_size = 0;
    a.sdma_engine_id = 0x1234;
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88), &a), 0);
    assert_int_equal(rig_unmap(&r, b.handle[RING], 0), 0);
    a.queue_type = 4;
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88), &a),
                     -ENOTSUPP_KERNEL);
    rig_end(&r);
}

static void test_gpu_has_room_for_so_many_queues(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;
    int n = 0, err;

    rig_start(&r, "mi210", "6.12", 0);
    make_buffers(&r, &b, VA);
    do {
        a = compute(&r, &b);
        a.queue_type = 1;
        err = create(&r, &a);
    } while (err == 0 && ++n);
    assert_int_equal(err, -ENOMEM);
    assert_int_equal(n, 2 * 8);
    rig_end(&r);
}

static void test_update_asks_for_a_known_queue_and_a_mapped_ring(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;
    struct kfd_ioctl_update_queue_args u = {0};

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_UPDATE_QUEUE, &u), -EFAULT);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    u.queue_percentage = 101;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_UPDATE_QUEUE, &u), -EINVAL);
    u.queue_percentage = 50;
    u.ring_base_address = VA + 0x1000;
    u.ring_size = RING_SIZE;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_UPDATE_QUEUE, &u), -EFAULT);
    u.ring_base_address = b.va[RING];
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_UPDATE_QUEUE, &u), 0);
    assert_int_equal(rig_unmap(&r, b.handle[RING], 0), -EBUSY);
    assert_int_equal(destroy(&r, a.queue_id), 0);
    assert_int_equal(rig_unmap(&r, b.handle[RING], 0), 0);
    rig_end(&r);
}

static void test_other_queue_requests_name_a_queue(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;
    struct kfd_ioctl_get_queue_wave_state_args w = {0};
    struct kfd_ioctl_alloc_queue_gws_args g = {.num_gws = 64};
    struct kfd_ioctl_set_cu_mask_args m = {0};
    uint32_t mask[2] = {1, 1};

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_QUEUE_WAVE_STATE, &w), -EFAULT);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_QUEUE_GWS, &g), -EINVAL);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_SET_CU_MASK, &m), -EINVAL);
    m.num_cu_mask = 64;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_SET_CU_MASK, &m), -EFAULT);
    m.cu_mask_ptr = (uintptr_t)mask;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_SET_CU_MASK, &m), -EFAULT);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_SET_CU_MASK, &m), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_GET_QUEUE_WAVE_STATE, &w), -EINVAL);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_QUEUE_GWS, &g), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_ALLOC_QUEUE_GWS, &g), -EINVAL);
    rig_end(&r);
}

static void test_runtime_is_enabled_once_and_before_queues(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;
    struct kfd_uapi_runtime_enable e = {.mode_mask = 1};

    rig_start(&r, "mi300x", "6.12", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, &e), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, &e), -EBUSY);
    e.mode_mask = 0;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, &e), 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, &e), 0);
    make_buffers(&r, &b, VA);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    e.mode_mask = 1;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_RUNTIME_ENABLE, &e), -EEXIST);
    rig_end(&r);
}

static int xnack(struct rig *r, int32_t *mode)
{
    struct kfd_ioctl_set_xnack_mode_args a = {.xnack_enabled = *mode};
    int err = rig_request(r, r->kfd, KFD_CODE_SET_XNACK_MODE, &a);

    *mode = a.xnack_enabled;
    return err;
}

static void test_xnack_needs_svm_a_chip_that_can_and_no_queue(void **state)
{
    struct rig r;
    struct buffers b;
    struct kfd_uapi_create_queue a;
    int32_t ask = -1, on = 1, off = 0;

    rig_start(&r, "mi300x", "6.12", 0);
    assert_int_equal(xnack(&r, &ask), -EPERM);
    rig_end(&r);
    rig_start(&r, "navi31", "6.12+svm", 0);
    assert_int_equal(xnack(&r, &ask), 0);
    assert_int_equal(ask, 0);
    assert_int_equal(xnack(&r, &on), -EPERM);
    assert_int_equal(xnack(&r, &off), 0);
    rig_end(&r);
    rig_start(&r, "mi300x", "6.12+svm", 0);
    assert_int_equal(xnack(&r, &on), 0);
    ask = -1;
    assert_int_equal(xnack(&r, &ask), 0);
    assert_int_equal(ask, 1);
    make_buffers(&r, &b, VA);
    a = compute(&r, &b);
    assert_int_equal(create(&r, &a), 0);
    assert_int_equal(xnack(&r, &off), -EBUSY);
    rig_end(&r);
}

static struct kfd_uapi_create_queue sdma(struct rig *r, const struct buffers *b, uint32_t type,
                                         uint32_t engine)
{
    struct kfd_uapi_create_queue a = compute(r, b);

    a.queue_type = type;
    a.sdma_engine_id = engine;
    return a;
}

static unsigned int fill(struct rig *r, const struct buffers *b, uint32_t type, uint32_t engine)
{
    struct kfd_uapi_create_queue a;
    unsigned int n = 0;
    int err;

    while ((a = sdma(r, b, type, engine), err = create(r, &a)) == 0)
        n++;
    assert_int_equal(err, -ENOMEM);
    return n;
}

/* MI300X: two plain engines and fourteen for XGMI, eight queues each. */
static void test_sdma_queues_are_the_devices(void **state)
{
    struct buffers b;
    struct rig r;
    int status;
    pid_t pid;
    char c;
    int to[2], from[2];

    rig_start(&r, "mi300x", "6.12", 0);
    make_buffers(&r, &b, VA);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid = fork();
    if (pid == 0) {
        struct rig own = {.fake = r.fake, .sys = r.sys, .gpus = 1, .id = {r.id[0]}};
        struct kfd_uapi_create_queue a;

        own.kfd = rig_open_path(&own, "/dev/kfd");
        own.drm[0] = rig_open_render(&own, 0);
        assert_int_equal(rig_acquire(&own, 0, own.drm[0]), 0);
        make_buffers(&own, &b, VA);
        for (int i = 0; i < 5; i++) {
            a = sdma(&own, &b, 1, 0);
            assert_int_equal(create(&own, &a), 0);
        }
        (void)!write(from[1], "", 1);
        (void)!read(to[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(from[0], &c, 1), 1);
    /* The child has places 0 to 4, so three of engine 0 and two of engine 1. */
    assert_int_equal(fill(&r, &b, 4, 0), 5);
    assert_int_equal(fill(&r, &b, 1, 0), 6);
    assert_int_equal(fill(&r, &b, 4, 1), 0);
    assert_int_equal(fill(&r, &b, 4, 2), 8);
    assert_int_equal(fill(&r, &b, 3, 0), 13 * 8);
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    /* What a dead process had is free. */
    assert_int_equal(fill(&r, &b, 1, 0), 5);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_gets_lowest_id_and_a_doorbell),
        cmocka_unit_test(test_arguments_are_checked_in_the_kernels_order),
        cmocka_unit_test(test_each_buffer_must_be_a_whole_mapping_of_its_size),
        cmocka_unit_test(test_buffers_of_a_live_queue_cannot_be_unmapped),
        cmocka_unit_test(test_6_1_checks_no_buffers_and_holds_none),
        cmocka_unit_test(test_gpu_has_room_for_so_many_queues),
        cmocka_unit_test(test_update_asks_for_a_known_queue_and_a_mapped_ring),
        cmocka_unit_test(test_other_queue_requests_name_a_queue),
        cmocka_unit_test(test_runtime_is_enabled_once_and_before_queues),
        cmocka_unit_test(test_xnack_needs_svm_a_chip_that_can_and_no_queue),
        cmocka_unit_test(test_sdma_queues_are_the_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
