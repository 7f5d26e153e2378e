/* SPDX-License-Identifier: MIT */
/* Queues, as far as book-keeping goes: nothing on a hollow card or the fake reads a ring. */
#include "rig.h"

static void create(struct cts *c, const char *step, long want, struct kfd_uapi_create_queue *q)
{
    long ret = rig_create(c, q);

    if (ret < 0)
        cts_row(c, step, want, ret, "-");
    else
        cts_row(c, step, want, ret, "id=%u type=%llu %s", q->queue_id,
                (unsigned long long)q->doorbell_offset >> 62,
                cts_gpu_text(c, q->doorbell_offset >> 46 & 0xffff));
}

static void destroy(struct cts *c, const char *step, long want, uint32_t id)
{
    struct kfd_ioctl_destroy_queue_args a = {.queue_id = id};

    cts_row(c, step, want, cts_request(c, c->kfd, KFD_CODE_DESTROY_QUEUE, &a), "-");
}

static void errors(struct cts *c)
{
    struct kfd_uapi_create_queue q;
    struct rig r;
    bool old;

    cts_start(c);
    old = c->minor < 12;
    cts_row(c, "buffers", 0, rig_make(c, &r, 0, c->va), "-");
#define TRY(step, want, field, value) \
    (q = rig_arguments(c, &r), q.field = (value), create(c, step, want, &q))
    TRY("percentage 101", -EINVAL, queue_percentage, 101);
    TRY("priority 16", -EINVAL, queue_priority, 16);
    TRY("a ring at a kernel address", -EFAULT, ring_base_address, 0xffff888000000000);
    TRY("a ring of 3000 bytes", -EINVAL, ring_size, 3000);
    TRY("a read pointer at a kernel address", -EFAULT, read_pointer_address, 0xffff888000000000);
    TRY("a write pointer at a kernel address", -EFAULT, write_pointer_address, 0xffff888000000000);
    TRY("an EOP buffer at a kernel address", -EFAULT, eop_buffer_address, 0xffff888000000000);
    TRY("unknown type", -524, queue_type, 9);
    TRY("unknown GPU", -EINVAL, gpu_id, CTS_BAD_GPU);
    if (!old) {
        TRY("a ring that is not mapped", -EINVAL, ring_base_address, r.va[RIG_RING] + MiB(16));
        TRY("a ring smaller than its mapping", -EINVAL, ring_size, 4096);
        TRY("a write pointer that is not mapped", -EINVAL, write_pointer_address, c->va + MiB(32));
        TRY("an EOP buffer that is not mapped", -EINVAL, eop_buffer_address, c->va + MiB(32));
        TRY("a save area that is too small", -EINVAL, ctx_save_restore_size, r.save - 4096);
        TRY("a wrong control stack", -EINVAL, ctl_stack_size, r.ctl + 4096);
    }
#undef TRY
    destroy(c, "destroy an unknown queue", -EINVAL, 5);
}

static void life(struct cts *c)
{
    struct kfd_ioctl_update_queue_args u = {.queue_percentage = 100, .queue_priority = 7};
    struct kfd_ioctl_set_cu_mask_args mask = {.num_cu_mask = 33};
    struct kfd_uapi_create_queue q;
    struct rig r;
    uint32_t id;
    bool old;

    cts_start(c);
    id = c->gpu[0].id;
    old = c->minor < 12;
    cts_row(c, "buffers", 0, rig_make(c, &r, 0, c->va), "-");
    q = rig_arguments(c, &r);
    create(c, "create", 0, &q);
    cts_unmap(c, "unmap the ring of a live queue", old ? 0 : -EBUSY, r.h[RIG_RING], 0, CTS_IDS(id));
    if (old)
        cts_map(c, "map it again", 0, r.h[RIG_RING], 0, CTS_IDS(id));
    cts_free(c, "free the ring of a live queue", -EBUSY, r.h[RIG_RING]);
    u.queue_id = 77;
    u.ring_base_address = r.va[RIG_RING];
    u.ring_size = KiB(8);
    cts_row(c, "update an unknown queue", -EFAULT,
            cts_request(c, c->kfd, KFD_CODE_UPDATE_QUEUE, &u), "-");
    mask.queue_id = q.queue_id;
    cts_row(c, "a CU mask of 33 bits", -EINVAL, cts_request(c, c->kfd, KFD_CODE_SET_CU_MASK, &mask),
            "-");
    destroy(c, "destroy", 0, q.queue_id);
    destroy(c, "destroy again", -EINVAL, q.queue_id);
    cts_unmap(c, "unmap the ring", 0, r.h[RIG_RING], 0, CTS_IDS(id));
    cts_free(c, "free the ring", 0, r.h[RIG_RING]);
}

const struct cts_case cts_queue_cases[] = {
    {"queue.errors", 0, errors},
    {"queue.life", 0, life},
    {0},
};
