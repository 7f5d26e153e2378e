/* SPDX-License-Identifier: MIT */
/* Queues, as far as book-keeping goes: nothing on a hollow card or the fake reads a ring. */
#include <stdlib.h>

#include "cts.h"

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

enum {
    RING,
    POINTERS,
    EOP,
    SAVE,
    BUFFERS
};

struct rig {
    uint64_t h[BUFFERS], va[BUFFERS], size[BUFFERS];
    uint32_t save, ctl;
};

static uint64_t property(struct cts *c, const char *key)
{
    char buf[4096], *p;

    if (c->sys->ops->read_file(c->sys, cts_text(NODES "/%u/properties", c->gpu[0].node), buf,
                               sizeof buf) < 0)
        return 0;
    p = strstr(buf, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Each buffer is a mapping of its own, of its exact size. */
static void rig_make(struct cts *c, struct rig *r)
{
    uint64_t simds = property(c, "simd_per_cu "), arrays = property(c, "simd_arrays_per_engine ");
    uint64_t cus = simds ? property(c, "simd_count ") / simds : 0;
    uint64_t waves = arrays ? property(c, "array_count ") / arrays * 512 : 0;

    if (waves > cus * 40)
        waves = cus * 40;
    r->save = (uint32_t)property(c, "cwsr_size ");
    r->ctl = (uint32_t)property(c, "ctl_stack_size ");
    r->size[RING] = KiB(8);
    r->size[POINTERS] = r->size[EOP] = KiB(4);
    r->size[SAVE] = (r->save + waves * 32 + 4095) & ~(uint64_t)4095;
    if (!r->save)
        r->size[SAVE] = MiB(16); /* 6.1 tells no size and checks none */
    for (int i = 0; i < BUFFERS; i++) {
        r->va[i] = c->va + (uint64_t)i * MiB(64);
        r->h[i] = cts_alloc(c, cts_text("buffer %d", i), 0, 0, r->va[i], r->size[i],
                            KFD_MEM_GTT | CTS_RW);
        cts_map(c, "map it", 0, r->h[i], 0, CTS_IDS(c->gpu[0].id));
    }
}

static struct kfd_uapi_create_queue arguments(const struct cts *c, const struct rig *r)
{
    return (struct kfd_uapi_create_queue){
        .ring_base_address = r->va[RING],
        .ring_size = KiB(8),
        .write_pointer_address = r->va[POINTERS],
        .read_pointer_address = r->va[POINTERS] + 128,
        .eop_buffer_address = r->va[EOP],
        .eop_buffer_size = 4096,
        .ctx_save_restore_address = r->va[SAVE],
        .ctx_save_restore_size = r->save ? r->save : (uint32_t)r->size[SAVE],
        .ctl_stack_size = r->save ? r->ctl : 4096,
        .gpu_id = c->gpu[0].id,
        .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE,
        .queue_percentage = 100,
        .queue_priority = 7,
    };
}

static void create(struct cts *c, const char *step, long want, struct kfd_uapi_create_queue *q)
{
    unsigned long code =
        c->minor < 17 ? _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88) : KFD_CODE_CREATE_QUEUE;
    long ret = cts_request(c, c->kfd, code, q);

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
    rig_make(c, &r);
#define TRY(step, want, field, value) \
    (q = arguments(c, &r), q.field = (value), create(c, step, want, &q))
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
        TRY("a ring that is not mapped", -EINVAL, ring_base_address, r.va[RING] + MiB(16));
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
    rig_make(c, &r);
    q = arguments(c, &r);
    create(c, "create", 0, &q);
    cts_unmap(c, "unmap the ring of a live queue", old ? 0 : -EBUSY, r.h[RING], 0, CTS_IDS(id));
    if (old)
        cts_map(c, "map it again", 0, r.h[RING], 0, CTS_IDS(id));
    cts_free(c, "free the ring of a live queue", -EBUSY, r.h[RING]);
    u.queue_id = 77;
    u.ring_base_address = r.va[RING];
    u.ring_size = KiB(8);
    cts_row(c, "update an unknown queue", -EFAULT,
            cts_request(c, c->kfd, KFD_CODE_UPDATE_QUEUE, &u), "-");
    mask.queue_id = q.queue_id;
    cts_row(c, "a CU mask of 33 bits", -EINVAL, cts_request(c, c->kfd, KFD_CODE_SET_CU_MASK, &mask),
            "-");
    destroy(c, "destroy", 0, q.queue_id);
    destroy(c, "destroy again", -EINVAL, q.queue_id);
    cts_unmap(c, "unmap the ring", 0, r.h[RING], 0, CTS_IDS(id));
    cts_free(c, "free the ring", 0, r.h[RING]);
}

const struct cts_case cts_queue_cases[] = {
    {"queue.errors", 0, errors},
    {"queue.life", 0, life},
    {0},
};
