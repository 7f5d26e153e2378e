/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define EVENT_PAGE_OFFSET 0x8000000000000000ull

static uint64_t mapped_gtt(struct rig *f, uint64_t va, uint64_t size)
{
    uint64_t handle = rig_must_alloc(f, 0, va, size, KFD_MEM_GTT | KFD_MEM_WRITABLE);

    assert_int_equal(rig_map(f, handle, 0), 0);
    return handle;
}

static int create(struct rig *f, uint32_t type, bool auto_reset,
                  struct kfd_ioctl_create_event_args *a)
{
    *a = (struct kfd_ioctl_create_event_args){.event_type = type, .auto_reset = auto_reset};
    return rig_request(f, f->kfd, KFD_CODE_CREATE_EVENT, a);
}

static int with_id(struct rig *f, unsigned long code, uint32_t id)
{
    struct kfd_ioctl_set_event_args a = {.event_id = id};

    return rig_request(f, f->kfd, code, &a);
}

static int wait_for(struct rig *f, struct kfd_event_data *data, uint32_t n, bool all,
                    uint32_t timeout, uint32_t *result)
{
    struct kfd_ioctl_wait_events_args a = {
        .events_ptr = (uintptr_t)data, .num_events = n, .wait_for_all = all, .timeout = timeout};
    int err = rig_request(f, f->kfd, KFD_CODE_WAIT_EVENTS, &a);

    *result = a.wait_result;
    return err;
}

static void test_signal_ids_count_from_one_and_others_from_far_above(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;

    rig_open(&f, "none", NULL, 0);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), 0);
        assert_int_equal(a.event_id, i);
        assert_int_equal(a.event_slot_index, i);
        assert_int_equal(a.event_trigger_data, i);
        assert_true(a.event_page_offset == EVENT_PAGE_OFFSET);
    }
    assert_int_equal(create(&f, KFD_IOC_EVENT_MEMORY, false, &a), 0);
    assert_int_equal(a.event_id, 0x40000000);
    assert_true(a.event_page_offset == 0);
    assert_int_equal(create(&f, 99, false, &a), 0);
    assert_int_equal(a.event_id, 0x40000001);
    assert_int_equal(with_id(&f, KFD_CODE_DESTROY_EVENT, 2), 0);
    assert_int_equal(with_id(&f, KFD_CODE_DESTROY_EVENT, 2), -EINVAL);
    assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), 0);
    assert_int_equal(a.event_id, 2);
    rig_end(&f);
}

static void test_only_signals_can_be_set(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;

    rig_open(&f, "none", NULL, 0);
    assert_int_equal(with_id(&f, KFD_CODE_SET_EVENT, 1), -EINVAL);
    assert_int_equal(create(&f, KFD_IOC_EVENT_MEMORY, false, &a), 0);
    assert_int_equal(with_id(&f, KFD_CODE_SET_EVENT, a.event_id), -EINVAL);
    assert_int_equal(with_id(&f, KFD_CODE_RESET_EVENT, a.event_id), -EINVAL);
    assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), 0);
    assert_int_equal(with_id(&f, KFD_CODE_SET_EVENT, a.event_id), 0);
    assert_int_equal(with_id(&f, KFD_CODE_RESET_EVENT, a.event_id), 0);
    rig_end(&f);
}

static void test_wait_answers_complete_timeout_and_fail(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a, b;
    struct kfd_event_data data[2] = {0};
    uint32_t result;

    rig_open(&f, "none", NULL, 0);
    create(&f, KFD_IOC_EVENT_SIGNAL, false, &a);
    create(&f, KFD_IOC_EVENT_SIGNAL, true, &b);
    data[0].event_id = a.event_id;
    data[1].event_id = b.event_id;
    assert_int_equal(wait_for(&f, NULL, 0, false, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_COMPLETE);
    assert_int_equal(wait_for(&f, data, 2, false, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    assert_int_equal(wait_for(&f, data, 2, false, 5, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    assert_int_equal(wait_for(&f, (void *)8, 2, false, 0, &result), -EFAULT);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_FAIL);
    data[1].event_id = 77;
    assert_int_equal(wait_for(&f, data, 2, false, 0, &result), -EINVAL);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_FAIL);
    data[1].event_id = b.event_id;
    with_id(&f, KFD_CODE_SET_EVENT, b.event_id);
    assert_int_equal(wait_for(&f, data, 2, true, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    /* The wait has taken the event that resets itself. */
    assert_int_equal(wait_for(&f, data, 2, false, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    with_id(&f, KFD_CODE_SET_EVENT, a.event_id);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wait_for(&f, data, 2, false, 0, &result), 0);
        assert_int_equal(result, KFD_IOC_WAIT_RESULT_COMPLETE);
    }
    rig_end(&f);
}

static void test_old_age_completes_a_wait_from_1_14_on(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;
    struct kfd_event_data data = {0};
    uint64_t *age = (uint64_t *)(void *)&data;
    uint32_t result;

    rig_open(&f, "none", "6.12", 0);
    create(&f, KFD_IOC_EVENT_SIGNAL, true, &a);
    data.event_id = a.event_id;
    *age = 1;
    assert_int_equal(wait_for(&f, &data, 1, true, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    with_id(&f, KFD_CODE_SET_EVENT, a.event_id);
    with_id(&f, KFD_CODE_RESET_EVENT, a.event_id);
    assert_int_equal(wait_for(&f, &data, 1, true, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_COMPLETE);
    assert_true(*age == 2);
    rig_end(&f);
    rig_open(&f, "none", "6.1", 0);
    create(&f, KFD_IOC_EVENT_SIGNAL, true, &a);
    data.event_id = a.event_id;
    *age = 7;
    assert_int_equal(wait_for(&f, &data, 1, true, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
    rig_end(&f);
}

struct helper {
    struct rig *f;
    uint32_t id;
    int err;
    uint32_t result;
};

static void *waiter(void *arg)
{
    struct helper *h = arg;
    struct kfd_event_data data = {.event_id = h->id};

    h->err = wait_for(h->f, &data, 1, true, 0xffffffff, &h->result);
    return NULL;
}

static void test_set_and_destroy_wake_a_waiter(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;
    struct helper h = {.f = &f};
    pthread_t thread;

    rig_open(&f, "none", NULL, 0);
    create(&f, KFD_IOC_EVENT_SIGNAL, false, &a);
    h.id = a.event_id;
    pthread_create(&thread, NULL, waiter, &h);
    usleep(10000);
    assert_int_equal(with_id(&f, KFD_CODE_SET_EVENT, a.event_id), 0);
    pthread_join(thread, NULL);
    assert_int_equal(h.err, 0);
    assert_int_equal(h.result, KFD_IOC_WAIT_RESULT_COMPLETE);
    assert_int_equal(with_id(&f, KFD_CODE_RESET_EVENT, a.event_id), 0);
    pthread_create(&thread, NULL, waiter, &h);
    usleep(10000);
    assert_int_equal(with_id(&f, KFD_CODE_DESTROY_EVENT, a.event_id), 0);
    pthread_join(thread, NULL);
    /* Either it slept already, or the event was gone when it came. */
    assert_true(h.err == -EIO || h.err == -EINVAL);
    assert_int_equal(h.result, KFD_IOC_WAIT_RESULT_FAIL);
    rig_end(&f);
}

static void on_alarm(int nr)
{
}

static void test_signal_interrupts_a_wait(void **state)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct rig f;
    struct kfd_ioctl_create_event_args a;
    struct kfd_event_data data = {0};
    uint32_t result;

    rig_open(&f, "none", NULL, 0);
    create(&f, KFD_IOC_EVENT_SIGNAL, false, &a);
    data.event_id = a.event_id;
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);
    assert_int_equal(wait_for(&f, &data, 1, true, 0xffffffff, &result), -EINTR);
    ualarm(0, 0);
    rig_end(&f);
}

static void test_page_can_be_mapped_once_there_is_an_event(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;
    void *page;

    rig_open(&f, "none", NULL, 0);
    assert_int_equal(f.sys->ops->map_pages(f.sys, NULL, 32768, PROT_READ, MAP_SHARED, f.kfd,
                                           EVENT_PAGE_OFFSET, &page),
                     -EINVAL);
    create(&f, KFD_IOC_EVENT_SIGNAL, false, &a);
    assert_int_equal(f.sys->ops->map_pages(f.sys, NULL, 65536, PROT_READ, MAP_SHARED, f.kfd,
                                           EVENT_PAGE_OFFSET, &page),
                     -EINVAL);
    /* 256 signals until the page is mapped. */
    for (int i = 2; i < 256; i++)
        assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), 0);
    assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), -ENOSPC);
    assert_int_equal(f.sys->ops->map_pages(f.sys, NULL, 32768, PROT_READ | PROT_WRITE, MAP_SHARED,
                                           f.kfd, EVENT_PAGE_OFFSET, &page),
                     0);
    assert_int_equal(((unsigned char *)page)[32767], 0xff);
    assert_int_equal(create(&f, KFD_IOC_EVENT_SIGNAL, false, &a), 0);
    assert_int_equal(a.event_id, 256);
    munmap(page, 32768);
    rig_end(&f);
}

static void test_own_event_page_is_taken_once_and_not_freed(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a = {0};
    struct kfd_ioctl_free_memory_of_gpu_args fr;
    uint64_t small, page;
    unsigned char byte;

    rig_start(&f, "mi210", NULL, 0);
    small = mapped_gtt(&f, 0x10000000, 4096);
    page = mapped_gtt(&f, 0x20000000, 32768);
    a.event_page_offset = small;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CREATE_EVENT, &a), -EINVAL);
    a.event_page_offset = 0xdead00000000;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CREATE_EVENT, &a), -EINVAL);
    a.event_page_offset = page;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CREATE_EVENT, &a), 0);
    assert_int_equal(a.event_id, 1);
    assert_int_equal(fake_gpu_read(f.fake, 0, 0x20000000 + 8, &byte, 1, NULL), 0);
    assert_int_equal(byte, 0xff);
    a.event_page_offset = page;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CREATE_EVENT, &a), -EINVAL);
    assert_int_equal(rig_unmap(&f, page, 0), 0);
    fr.handle = page;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &fr), -EPERM);
    rig_end(&f);
}

static void test_gpu_fault_reaches_a_memory_event(void **state)
{
    struct rig f;
    struct kfd_ioctl_create_event_args a;
    struct kfd_event_data data = {0};
    uint32_t result;
    char byte = 0;

    rig_start(&f, "mi210", NULL, 0);
    create(&f, KFD_IOC_EVENT_MEMORY, true, &a);
    data.event_id = a.event_id;
    assert_int_equal(fake_gpu_write(f.fake, 0, 0x30000123, &byte, 1, NULL), -EFAULT);
    assert_int_equal(wait_for(&f, &data, 1, true, 0, &result), 0);
    assert_int_equal(result, KFD_IOC_WAIT_RESULT_COMPLETE);
    assert_true(data.memory_exception_data.va == 0x30000000);
    assert_int_equal(data.memory_exception_data.gpu_id, f.id[0]);
    assert_int_equal(data.memory_exception_data.failure.NotPresent, 1);
    rig_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_ids_count_from_one_and_others_from_far_above),
        cmocka_unit_test(test_only_signals_can_be_set),
        cmocka_unit_test(test_wait_answers_complete_timeout_and_fail),
        cmocka_unit_test(test_old_age_completes_a_wait_from_1_14_on),
        cmocka_unit_test(test_set_and_destroy_wake_a_waiter),
        cmocka_unit_test(test_signal_interrupts_a_wait),
        cmocka_unit_test(test_page_can_be_mapped_once_there_is_an_event),
        cmocka_unit_test(test_own_event_page_is_taken_once_and_not_freed),
        cmocka_unit_test(test_gpu_fault_reaches_a_memory_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
