/* SPDX-License-Identifier: MIT */
/* Events: create, set, reset, wait, destroy. */
#include "cts.h"

static uint32_t create(struct cts *c, const char *step, long want, uint32_t type, uint32_t reset,
                       uint64_t page)
{
    struct kfd_ioctl_create_event_args a = {
        .event_page_offset = page, .event_type = type, .auto_reset = reset};
    long ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &a);

    if (ret < 0)
        cts_row(c, step, want, ret, "-");
    else
        cts_row(c, step, want, ret, "id=0x%x slot=%u trigger=0x%x page=0x%llx", a.event_id,
                a.event_slot_index, a.event_trigger_data, a.event_page_offset);
    return a.event_id;
}

static void change(struct cts *c, const char *step, long want, unsigned long code, uint32_t id)
{
    struct kfd_ioctl_set_event_args a = {.event_id = id};

    cts_row(c, step, want, cts_request(c, c->kfd, code, &a), "-");
}

static void wait_for(struct cts *c, const char *step, long want, uint64_t pointer, uint32_t n,
                     bool all, uint32_t timeout)
{
    struct kfd_ioctl_wait_events_args a = {.events_ptr = pointer,
                                           .num_events = n,
                                           .wait_for_all = all,
                                           .timeout = timeout,
                                           .wait_result = 9};
    long ret = cts_request(c, c->kfd, KFD_CODE_WAIT_EVENTS, &a);

    cts_row(c, step, want, ret, "result=%u", a.wait_result);
}

static void life(struct cts *c)
{
    struct kfd_event_data e[2] = {0};
    uint64_t at = (uintptr_t)e;

    cts_open(c);
    e[0].event_id = create(c, "a signal event", 0, KFD_IOC_EVENT_SIGNAL, 1, 0);
    e[1].event_id = create(c, "a second, not reset by a wait", 0, KFD_IOC_EVENT_SIGNAL, 0, 0);
    wait_for(c, "poll: nothing set", 0, at, 1, false, 0);
    change(c, "set", 0, KFD_CODE_SET_EVENT, e[0].event_id);
    wait_for(c, "poll: set", 0, at, 1, false, 0);
    wait_for(c, "the wait reset it", 0, at, 1, false, 0);
    wait_for(c, "wait 20 ms in vain", 0, at, 1, false, 20);
    change(c, "set the second", 0, KFD_CODE_SET_EVENT, e[1].event_id);
    wait_for(c, "any of two", 0, at, 2, false, 0);
    wait_for(c, "all of two", 0, at, 2, true, 0);
    change(c, "set the first", 0, KFD_CODE_SET_EVENT, e[0].event_id);
    wait_for(c, "all of two, both set", 0, at, 2, true, 0);
    change(c, "reset the second", 0, KFD_CODE_RESET_EVENT, e[1].event_id);
    wait_for(c, "nothing set any more", 0, at, 2, false, 0);
    wait_for(c, "none", 0, at, 0, false, 0);
    wait_for(c, "bad pointer", -EFAULT, 8, 1, false, 0);
    e[0].event_id = 0x7777;
    wait_for(c, "unknown id", -EINVAL, at, 1, false, 0);
    change(c, "set an unknown id", -EINVAL, KFD_CODE_SET_EVENT, 0x7777);
    change(c, "reset an unknown id", -EINVAL, KFD_CODE_RESET_EVENT, 0x7777);
    change(c, "destroy an unknown id", -EINVAL, KFD_CODE_DESTROY_EVENT, 0x7777);
    change(c, "destroy", 0, KFD_CODE_DESTROY_EVENT, e[1].event_id);
    change(c, "destroy again", -EINVAL, KFD_CODE_DESTROY_EVENT, e[1].event_id);
    create(c, "the id comes back", 0, KFD_IOC_EVENT_SIGNAL, 1, 0);
}

static void kinds(struct cts *c)
{
    uint32_t id;

    cts_open(c);
    id = create(c, "memory", 0, KFD_IOC_EVENT_MEMORY, 0, 0);
    change(c, "set it", -EINVAL, KFD_CODE_SET_EVENT, id);
    create(c, "hardware exception", 0, KFD_IOC_EVENT_HW_EXCEPTION, 0, 0);
    create(c, "unknown type", 0, 99, 0, 0);
    create(c, "debug", 0, KFD_IOC_EVENT_DEBUG_EVENT, 0, 0);
    create(c, "a page of an unknown handle", -EINVAL, KFD_IOC_EVENT_SIGNAL, 0, 0xdead00000001);
}

static void page(struct cts *c)
{
    uint64_t *p;

    cts_open(c);
    create(c, "the first event makes the page", 0, KFD_IOC_EVENT_SIGNAL, 0, 0);
    cts_mmap(c, "more than the page", -EINVAL, c->kfd, (uint64_t)1 << 63, KiB(64),
             PROT_READ | PROT_WRITE, MAP_SHARED);
    p = cts_mmap(c, "the page", 0, c->kfd, (uint64_t)1 << 63, KiB(32), PROT_READ | PROT_WRITE,
                 MAP_SHARED);
    if (p)
        cts_row(c, "slots", 0, 0, "0: %llx, 1: %llx, last: %llx", (unsigned long long)p[0],
                (unsigned long long)p[1], (unsigned long long)p[4095]);
    cts_munmap(c, p, KiB(32));
}

static void page_of_a_buffer(struct cts *c)
{
    uint64_t small, h;

    cts_start(c);
    small = cts_alloc(c, "a small buffer", 0, 0, c->va + MiB(2), KiB(16), KFD_MEM_GTT | CTS_RW);
    h = cts_alloc(c, "a buffer", 0, 0, c->va, KiB(32), KFD_MEM_GTT | CTS_RW);
    create(c, "too small for a page", -EINVAL, KFD_IOC_EVENT_SIGNAL, 0, small);
    create(c, "an event with its page there", 0, KFD_IOC_EVENT_SIGNAL, 0, h);
    create(c, "the page is set already", -EINVAL, KFD_IOC_EVENT_SIGNAL, 0, h);
    cts_free(c, "the page cannot be freed", -EPERM, h);
    cts_free(c, "free the small one", 0, small);
}

static void exhausted(struct cts *c)
{
    struct kfd_ioctl_create_event_args a;
    unsigned n = 0;
    long ret;

    cts_open(c);
    do {
        memset(&a, 0, sizeof a);
        ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &a);
    } while (ret >= 0 && ++n < 5000);
    cts_row(c, "signal events until it fails", -ENOSPC, ret, "%u", n);
}

const struct cts_case cts_event_cases[] = {
    {"event.life", CTS_NO_GPU, life},           {"event.kinds", CTS_NO_GPU, kinds},
    {"event.page", CTS_NO_GPU, page},           {"event.page_of_a_buffer", 0, page_of_a_buffer},
    {"event.exhausted", CTS_NO_GPU, exhausted}, {0},
};
