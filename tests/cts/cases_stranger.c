/* SPDX-License-Identifier: MIT */
/*
 * Requests on /dev/kfd as libhsakmt and the ROCm runtime make them, where the other cases ask in
 * another way: their flags, their order.
 */
#include <pthread.h>

#include "rig.h"

#define THUNK (KFD_MEM_NO_SUBSTITUTE | CTS_RW)

/* What libhsakmt allocates when it opens a card, with its flags. */
static void opening(struct cts *c)
{
    uint32_t ids[CTS_MAX_GPUS], n = c->gpus;
    char *user = mmap(NULL, KiB(8), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct kfd_ioctl_set_memory_policy_args policy = {.gpu_id = c->gpu[0].id, .default_policy = 1};
    struct kfd_ioctl_set_trap_handler_args trap = {.gpu_id = c->gpu[0].id, .tba_addr = c->va};
    struct kfd_ioctl_set_scratch_backing_va_args scratch = {.gpu_id = c->gpu[0].id};
    uint64_t at = (uintptr_t)user, page = 0, h;
    void *p;

    cts_start(c);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = c->gpu[i].id;
    policy.alternate_aperture_base = c->va + MiB(64);
    policy.alternate_aperture_size = MiB(4);
    cts_row(c, "a policy with a range of its own", CTS_ANY,
            cts_request(c, c->kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), "-");
    policy.alternate_aperture_size = KiB(64) - 1;
    cts_row(c, "a policy with a crooked range", CTS_ANY,
            cts_request(c, c->kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), "-");
    h = cts_alloc_mmap(c, "a user page, uncached", 0, 0, c->va + MiB(256), KiB(8),
                       KFD_MEM_USERPTR | KFD_MEM_UNCACHED | KFD_MEM_COHERENT | THUNK, &at);
    cts_map(c, "map it on all", 0, h, 0, ids, n);
    cts_unmap(c, "unmap it", 0, h, 0, ids, n);
    cts_free(c, "free it", 0, h);
    h = cts_alloc_mmap(c, "a page for the CPU to guard", 0, 0, c->va, KiB(4), KFD_MEM_VRAM | THUNK,
                       &page);
    p = cts_mmap(c, "view it without rights", CTS_ANY, c->gpu[0].drm, page, KiB(4), PROT_NONE,
                 MAP_PRIVATE);
    cts_munmap(c, p, KiB(4));
    cts_map(c, "map the trap handler", 0, h, 0, CTS_IDS(c->gpu[0].id));
    trap.tba_addr = c->va;
    cts_row(c, "set it", 0, cts_request(c, c->kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), "-");
    trap.tba_addr = 0;
    cts_row(c, "take it away", 0, cts_request(c, c->kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), "-");
    scratch.va_addr = c->va + MiB(128);
    cts_row(c, "scratch", 0, cts_request(c, c->kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch),
            "-");
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free", 0, h);
    munmap(user, KiB(8));
}

/* AMD's own driver has requests behind the upstream ones: sharing, copies between processes. */
static void downstream(struct cts *c)
{
    char args[64] = {0};

    cts_open(c);
    for (unsigned nr = 0x80; nr < 0x88; nr++)
        cts_row(c, cts_text("request 0x%x", nr), -ENOTTY,
                cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', nr, 40), args), "-");
}

static void tiles(struct cts *c)
{
    uint32_t tile[64] = {0}, macro[64] = {0};
    struct kfd_ioctl_get_tile_config_args a = {
        .tile_config_ptr = (uintptr_t)tile,
        .macro_tile_config_ptr = (uintptr_t)macro,
        .num_tile_configs = 64,
        .num_macro_tile_configs = 64,
        .gpu_id = c->gpu[0].id,
    };
    long ret;

    cts_open(c);
    ret = cts_request(c, c->kfd, KFD_CODE_GET_TILE_CONFIG, &a);
    cts_row(c, "all", 0, ret, "%u %u address=0x%x banks=%u ranks=%u", a.num_tile_configs,
            a.num_macro_tile_configs, a.gb_addr_config, a.num_banks, a.num_ranks);
    for (uint32_t i = 0; i < a.num_tile_configs && i < 64; i++)
        cts_row(c, cts_text("tile mode %u", i), 0, 0, "0x%x", tile[i]);
    for (uint32_t i = 0; i < a.num_macro_tile_configs && i < 64; i++)
        cts_row(c, cts_text("macro tile mode %u", i), 0, 0, "0x%x", macro[i]);
    a.num_tile_configs = a.num_macro_tile_configs = 2;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_TILE_CONFIG, &a);
    cts_row(c, "two of each", 0, ret, "%u %u", a.num_tile_configs, a.num_macro_tile_configs);
}

struct waiter {
    struct cts *c;
    uint32_t event;
    long ret;
};

static void *set_event(void *arg)
{
    struct waiter *w = arg;
    struct kfd_ioctl_set_event_args a = {.event_id = w->event};

    w->ret = cts_request(w->c, w->c->kfd, KFD_CODE_SET_EVENT, &a);
    return NULL;
}

/* The runtime's signals: a page of its own in system memory, a thread that waits for ever. */
static void signals(struct cts *c)
{
    uint64_t h, page = 0;
    struct kfd_ioctl_create_event_args a = {.event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1};
    struct kfd_ioctl_create_event_args memory = {
        .event_type = KFD_IOC_EVENT_MEMORY, .auto_reset = 0, .node_id = 1};
    struct kfd_event_data e = {0};
    struct kfd_ioctl_wait_events_args wait = {
        .events_ptr = (uintptr_t)&e, .num_events = 1, .wait_for_all = 1, .timeout = 0xfffffffe};
    struct waiter w = {.c = c};
    pthread_t thread;
    void *p;
    long ret;

    cts_start(c);
    h = cts_alloc_mmap(c, "the page", 0, 0, c->va, KiB(32),
                       KFD_MEM_GTT | KFD_MEM_UNCACHED | KFD_MEM_COHERENT | THUNK, &page);
    p = cts_mmap(c, "the CPU's view", 0, c->gpu[0].drm, page, KiB(32), PROT_READ | PROT_WRITE,
                 MAP_SHARED);
    cts_map(c, "the GPU's view", 0, h, 0, CTS_IDS(c->gpu[0].id));
    a.event_page_offset = h;
    ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &a);
    cts_row(c, "an event there", 0, ret, "id=%u slot=%u trigger=%u", a.event_id, a.event_slot_index,
            a.event_trigger_data);
    ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &memory);
    cts_row(c, "a memory event of a node", 0, ret, "id=0x%x slot=%u", memory.event_id,
            memory.event_slot_index);
    w.event = e.event_id = a.event_id;
    if (pthread_create(&thread, NULL, set_event, &w) != 0)
        cts_skip(c, "no thread");
    ret = cts_request(c, c->kfd, KFD_CODE_WAIT_EVENTS, &wait);
    pthread_join(thread, NULL);
    cts_row(c, "set by another thread", 0, w.ret, "-");
    cts_row(c, "the waiter", 0, ret, "result=%u", wait.wait_result);
    cts_unmap(c, "unmap the page", CTS_ANY, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free the page", -EPERM, h);
    cts_munmap(c, p, KiB(32));
}

static void update(struct cts *c, const char *step, const struct rig *r, uint32_t id, uint64_t ring,
                   uint32_t percentage, uint32_t priority)
{
    struct kfd_ioctl_update_queue_args u = {.queue_id = id,
                                            .ring_base_address = ring,
                                            .ring_size = (uint32_t)r->size[RIG_RING],
                                            .queue_percentage = percentage,
                                            .queue_priority = priority};

    cts_row(c, step, CTS_ANY, cts_request(c, c->kfd, KFD_CODE_UPDATE_QUEUE, &u), "-");
}

static void mask_row(struct cts *c, const char *step, uint32_t id, uint32_t bits, uint32_t first)
{
    uint32_t mask[4] = {first};
    struct kfd_ioctl_set_cu_mask_args a = {
        .queue_id = id, .num_cu_mask = bits, .cu_mask_ptr = (uintptr_t)mask};

    cts_row(c, step, CTS_ANY, cts_request(c, c->kfd, KFD_CODE_SET_CU_MASK, &a), "-");
}

/* Queues of every kind, told other things and taken away. */
static void queues(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t type;
    } kinds[] = {{"compute", KFD_IOC_QUEUE_TYPE_COMPUTE},
                 {"AQL", KFD_IOC_QUEUE_TYPE_COMPUTE_AQL},
                 {"SDMA", KFD_IOC_QUEUE_TYPE_SDMA},
                 {"XGMI SDMA", KFD_IOC_QUEUE_TYPE_SDMA_XGMI}};
    struct kfd_uapi_create_queue q;
    struct rig r;

    cts_start(c);
    cts_row(c, "buffers", 0, rig_make(c, &r, 0, c->va), "-");
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct kfd_ioctl_destroy_queue_args d;
        long ret;

        q = rig_arguments(c, &r);
        q.queue_type = kinds[i].type;
        if (kinds[i].type == KFD_IOC_QUEUE_TYPE_SDMA ||
            kinds[i].type == KFD_IOC_QUEUE_TYPE_SDMA_XGMI) {
            q.eop_buffer_address = q.ctx_save_restore_address = 0;
            q.eop_buffer_size = q.ctx_save_restore_size = q.ctl_stack_size = 0;
        }
        ret = rig_create(c, &q);
        cts_row(c, kinds[i].name, CTS_ANY, ret, "id=%u", ret < 0 ? 0 : q.queue_id);
        if (ret < 0)
            continue;
        update(c, "less of it, and slower", &r, q.queue_id, r.va[RIG_RING], 50, 3);
        update(c, "stopped", &r, q.queue_id, r.va[RIG_RING], 0, 7);
        update(c, "without a ring", &r, q.queue_id, 0, 100, 7);
        update(c, "with another ring", &r, q.queue_id, r.va[RIG_EOP], 100, 7);
        update(c, "percentage 101", &r, q.queue_id, r.va[RIG_RING], 101, 7);
        update(c, "priority 16", &r, q.queue_id, r.va[RIG_RING], 100, 16);
        mask_row(c, "a mask of 32 units", q.queue_id, 32, 3);
        mask_row(c, "a mask of no unit", q.queue_id, 32, 0);
        mask_row(c, "a mask of no bits", q.queue_id, 0, 0);
        d.queue_id = q.queue_id;
        cts_row(c, "destroy", 0, cts_request(c, c->kfd, KFD_CODE_DESTROY_QUEUE, &d), "-");
    }
}

const struct cts_case cts_stranger_cases[] = {
    {"stranger.opening", 0, opening}, {"stranger.downstream", 0, downstream},
    {"stranger.tiles", 0, tiles},     {"stranger.signals", 0, signals},
    {"stranger.queues", 0, queues},   {0},
};
