/* SPDX-License-Identifier: MIT */
#include "fake/queues.h"

#include <errno.h>
#include <string.h>

#include "fake/handle.h"
#include "fake/svm.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

/* The kernel's own "not supported", which leaks to the user. */
#define ENOTSUPP_KERNEL 524
#define USER_END 0x7ffffffff000ull
#define MIN_RING 1024u
#define MAX_CU_MASK_BITS 1024u
#define HEADER_SINCE 13u /* KFD 1.13 writes a header into the save area */
#define MAX_PERCENTAGE 100u
#define MAX_PRIORITY 15u
#define DOORBELL_MMAP (3ull << 62)
#define GPU_ID_SHIFT 46
#define RUNTIME_ENABLED 1u

enum queue_type {
    QUEUE_COMPUTE,
    QUEUE_SDMA,
    QUEUE_COMPUTE_AQL,
    QUEUE_SDMA_XGMI,
    QUEUE_SDMA_BY_ENGINE,
};

enum {
    BUF_WPTR,
    BUF_RPTR,
    BUF_RING,
    BUF_EOP,
    BUF_CWSR,
    BUF_COUNT,
};

struct queue {
    uint32_t id, gpu, type;
    uint32_t size, engine;
    uint32_t doorbell; /* index in the process's slice */
    bool active, gws;
    struct fake_va *held[BUF_COUNT]; /* attachments kept alive and pinned against UNMAP */
};

struct fake_queues {
    struct fake_ids ids; /* struct queue * */
    bool runtime, xnack;
};

static struct fake_queues *queues_of(struct fake_process *p)
{
    if (p->queues == NULL)
        p->queues = fake_calloc(sizeof(*p->queues));
    return p->queues;
}

uint32_t fake_queues_count(const struct fake_process *p)
{
    return p->queues != NULL ? p->queues->ids.used : 0;
}

static struct queue *find(const struct fake_process *p, uint32_t id)
{
    return p->queues != NULL ? fake_ids_get(&p->queues->ids, id) : NULL;
}

static bool is_sdma(uint32_t type)
{
    return type == QUEUE_SDMA || type == QUEUE_SDMA_XGMI || type == QUEUE_SDMA_BY_ENGINE;
}

static bool user_address(uint64_t addr)
{
    return addr < USER_END;
}

/* What CREATE and UPDATE check alike; raises a ring that is too small. */
static int check_ring(uint32_t percentage, uint32_t priority, uint64_t ring, uint32_t *size)
{
    if ((percentage & 0xff) > MAX_PERCENTAGE || priority > MAX_PRIORITY)
        return -EINVAL;
    if (!user_address(ring))
        return -EFAULT;
    if (*size != 0 && (*size & (*size - 1)) != 0)
        return -EINVAL;
    if (*size != 0 && *size < MIN_RING)
        *size = MIN_RING;
    return 0;
}

static int check_arguments(const struct fake *fake, struct kfd_uapi_create_queue *a)
{
    int err =
        check_ring(a->queue_percentage, a->queue_priority, a->ring_base_address, &a->ring_size);
    uint32_t last = fake->profile->kernel.kfd_minor >= 17 ? QUEUE_SDMA_BY_ENGINE : QUEUE_SDMA_XGMI;

    if (err != 0)
        return err;
    if (!user_address(a->read_pointer_address) || !user_address(a->write_pointer_address) ||
        !user_address(a->eop_buffer_address) || !user_address(a->ctx_save_restore_address))
        return -EFAULT;
    return a->queue_type > last ? -ENOTSUPP_KERNEL : 0;
}

/* Holds the mapping that begins in addr's page and is exactly as long. */
static int hold(struct queue *q, unsigned int which, struct fake_vm *vm, uint64_t addr,
                uint64_t size)
{
    struct fake_mapping *m = fake_vm_mapping(vm, addr);
    int err;

    if (m == NULL || m->va == NULL || m->va->bo == NULL ||
        (addr & ~(FAKE_PAGE - 1)) != m->node.key || m->size != size)
        return -EINVAL;
    err = fake_vm_attach(vm, m->va->bo, &q->held[which]);
    if (err == 0)
        q->held[which]->queues++;
    return err;
}

static void release(struct fake *fake, struct fake_process *p, struct queue *q)
{
    for (unsigned int i = 0; i < BUF_COUNT; i++) {
        if (q->held[i] == NULL)
            continue;
        q->held[i]->queues--;
        fake_vm_detach(fake, p, q->held[i]);
        q->held[i] = NULL;
    }
}

/* The part for compute queues: end-of-pipe buffer and the wave save area. */
static int hold_compute(struct fake *fake, struct fake_process *p, struct queue *q,
                        const struct kfd_uapi_create_queue *a)
{
    const struct fake_gpu *gpu = &fake->profile->gpus[q->gpu];
    struct fake_vm *vm = p->gpus[q->gpu].file->vm;
    uint64_t save =
        fake_page_up(((uint64_t)a->ctx_save_restore_size + gpu->debug_memory_size) * gpu->num_xcc);
    int err;

    if (a->eop_buffer_address != 0) {
        if (a->eop_buffer_size < gpu->eop_buffer_size)
            return -EINVAL;
        err = hold(q, BUF_EOP, vm, a->eop_buffer_address, a->eop_buffer_size);
        if (err != 0)
            return err;
    }
    if (a->ctl_stack_size != gpu->ctl_stack_size || a->ctx_save_restore_size < gpu->cwsr_size)
        return -EINVAL;
    err = hold(q, BUF_CWSR, vm, a->ctx_save_restore_address, save);
    /* Memory registered with SVM and always mapped on this GPU serves as well. */
    if (err != 0 && fake_svm_always_mapped(p, q->gpu, a->ctx_save_restore_address, save))
        err = 0;
    return err;
}

static int hold_buffers(struct fake *fake, struct fake_process *p, struct queue *q,
                        const struct kfd_uapi_create_queue *a)
{
    const struct fake_gpu *gpu = &fake->profile->gpus[q->gpu];
    struct fake_vm *vm = p->gpus[q->gpu].file->vm;
    uint64_t ring = a->ring_size;
    int err;

    if (!fake->profile->kernel.queue_buffer_checks)
        return 0;
    /* Before gfx9 an AQL ring is mapped twice, back to back. */
    if (q->type == QUEUE_COMPUTE_AQL && fake_gpu_gfx_major(gpu) < 9)
        ring /= 2;
    err = hold(q, BUF_WPTR, vm, a->write_pointer_address, FAKE_PAGE);
    if (err == 0)
        err = hold(q, BUF_RPTR, vm, a->read_pointer_address, FAKE_PAGE);
    if (err == 0)
        err = hold(q, BUF_RING, vm, a->ring_base_address, ring);
    if (err == 0 && !is_sdma(q->type))
        err = hold_compute(fake, p, q, a);
    return err;
}

/* Room for one more queue of the process on the GPU; finds it a doorbell. */
static int find_room(const struct fake *fake, const struct fake_process *p, struct queue *q)
{
    const struct fake_gpu *gpu = &fake->profile->gpus[q->gpu];
    uint32_t width = fake_gpu_gfx_major(gpu) >= 9 ? 8 : 4;
    uint32_t limit = gpu->gfx_target_version / 100 == 904 ? 255 : 127;
    uint32_t on_gpu = 0;
    const struct fake_ids *ids = &p->queues->ids;
    uint64_t used[16] = {0};

    for (uint32_t i = 0; i < ids->top; i++) {
        const struct queue *other = fake_ids_get(ids, i);

        if (other == NULL || other->gpu != q->gpu)
            continue;
        on_gpu++;
        used[other->doorbell / 64] |= UINT64_C(1) << other->doorbell % 64;
    }
    if (on_gpu >= limit)
        return -ENOSPC;
    if (ids->used >= FAKE_MAX_QUEUES)
        return -ENOMEM;
    q->doorbell = 0;
    while (used[q->doorbell / 64] >> q->doorbell % 64 & 1)
        q->doorbell++;
    return (q->doorbell + 1) * width <= gpu->doorbell_size ? 0 : -ENOMEM;
}

/* Takes a place on the device, whose SDMA queues are shared by all processes. */
static int enter_device(struct fake *fake, struct fake_process *p, const struct queue *q)
{
    const struct fake_gpu *gpu = &fake->profile->gpus[q->gpu];
    struct fake_shared_queue shared = {.gpu = q->gpu, .type = q->type, .size = q->size};
    uint32_t engines = gpu->num_sdma_engines, first = 0, step = 1;
    bool xgmi = q->type == QUEUE_SDMA_XGMI ||
                (q->type == QUEUE_SDMA_BY_ENGINE && q->engine >= gpu->num_sdma_engines);

    if (is_sdma(q->type))
        shared.kind = xgmi ? FAKE_QUEUE_SDMA_XGMI : FAKE_QUEUE_SDMA;
    if (xgmi)
        engines = gpu->num_sdma_xgmi_engines;
    if (q->type == QUEUE_SDMA_BY_ENGINE) {
        /* Places go around the engines. */
        first = xgmi ? q->engine - gpu->num_sdma_engines : q->engine;
        step = engines;
    }
    return fake_machine_queue_add(&fake->machine, p->slot, q->id, &shared,
                                  engines * gpu->num_sdma_queues_per_engine, first, step);
}

int fake_kfd_create_queue(struct fake_call *call, void *arg)
{
    struct kfd_uapi_create_queue *a = arg;
    struct fake *fake = call->fake;
    struct fake_process *p = call->process;
    const struct fake_gpu *gpu;
    struct queue *q;
    int g, err;

    err = check_arguments(fake, a);
    if (err != 0)
        return err;
    g = fake_gpu_of_id(fake, a->gpu_id);
    if (g < 0)
        return -EINVAL;
    if (p->gpus[g].file == NULL)
        return -ESRCH;
    gpu = &fake->profile->gpus[g];
    if (a->queue_type == QUEUE_SDMA_BY_ENGINE &&
        a->sdma_engine_id >= gpu->num_sdma_engines + gpu->num_sdma_xgmi_engines)
        return -EINVAL;
    q = fake_calloc(sizeof(*q));
    if (q == NULL || queues_of(p) == NULL) {
        fake_free(q);
        return -ENOMEM;
    }
    q->gpu = (uint32_t)g;
    q->type = a->queue_type;
    q->size = a->ring_size;
    q->engine = a->sdma_engine_id;
    q->active = a->ring_base_address != 0 && a->ring_size != 0 && (a->queue_percentage & 0xff) != 0;
    err = hold_buffers(fake, p, q, a);
    if (err == 0)
        err = find_room(fake, p, q);
    if (err == 0)
        err = fake_ids_add(&p->queues->ids, q, &q->id);
    if (err == 0) {
        err = enter_device(fake, p, q);
        if (err != 0)
            fake_ids_take(&p->queues->ids, q->id);
    }
    if (err != 0) {
        release(fake, p, q);
        fake_free(q);
        return err;
    }
    a->queue_id = q->id;
    a->doorbell_offset = DOORBELL_MMAP | (uint64_t)gpu->gpu_id << GPU_ID_SHIFT;
    if (fake_gpu_gfx_major(gpu) >= 9)
        a->doorbell_offset |= q->doorbell * 8u;
    /* Creation flushes the translations of the process on that GPU. */
    fake_vm_flush(p->gpus[g].file->vm);
    return 0;
}

int fake_kfd_destroy_queue(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_destroy_queue_args *a = arg;
    struct fake_process *p = call->process;
    struct queue *q = find(p, a->queue_id);

    if (q == NULL)
        return -EINVAL;
    fake_ids_take(&p->queues->ids, q->id);
    fake_machine_queue_remove(&call->fake->machine, p->slot, q->id);
    release(call->fake, p, q);
    fake_free(q);
    return 0;
}

int fake_kfd_update_queue(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_update_queue_args *a = arg;
    struct fake_process *p = call->process;
    struct queue *q;
    int err =
        check_ring(a->queue_percentage, a->queue_priority, a->ring_base_address, &a->ring_size);

    if (err != 0)
        return err;
    q = find(p, a->queue_id);
    if (q == NULL)
        return -EFAULT;
    if (call->fake->profile->kernel.queue_buffer_checks && a->ring_base_address != 0) {
        struct queue moved = {.gpu = q->gpu};

        if (hold(&moved, BUF_RING, p->gpus[q->gpu].file->vm, a->ring_base_address, a->ring_size) !=
            0)
            return -EFAULT;
        if (q->held[BUF_RING] != NULL) {
            q->held[BUF_RING]->queues--;
            fake_vm_detach(call->fake, p, q->held[BUF_RING]);
        }
        q->held[BUF_RING] = moved.held[BUF_RING];
    }
    q->active = a->ring_base_address != 0 && a->ring_size != 0 && (a->queue_percentage & 0xff) != 0;
    fake_machine_kfd(&call->fake->machine, p->slot)->queues[q->id].size = a->ring_size;
    return 0;
}

/* From gfx10 on two compute units make a workgroup processor, which is on or off as a whole. */
static bool in_pairs(const uint32_t *mask, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if ((mask[i] ^ mask[i] >> 1) & 0x55555555)
            return false;
    return true;
}

int fake_kfd_set_cu_mask(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_set_cu_mask_args *a = arg;
    uint32_t mask[MAX_CU_MASK_BITS / 32], bits = a->num_cu_mask;
    const struct queue *q;

    if (bits == 0 || bits % 32 != 0)
        return -EINVAL;
    if (bits > MAX_CU_MASK_BITS)
        bits = MAX_CU_MASK_BITS;
    if (fake_copy_in(mask, a->cu_mask_ptr, bits / 8) != 0)
        return -EFAULT;
    q = find(call->process, a->queue_id);
    if (q == NULL)
        return -EFAULT;
    return fake_gpu_gfx_major(&call->fake->profile->gpus[q->gpu]) < 10 || in_pairs(mask, bits / 32)
               ? 0
               : -EINVAL;
}

int fake_kfd_get_queue_wave_state(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_queue_wave_state_args *a = arg;
    const struct queue *q = find(call->process, a->queue_id);
    const uint32_t nothing[4] = {0}; /* of the stack and of the waves, offset and size */
    uint32_t major;

    if (q == NULL)
        return -EFAULT;
    if (is_sdma(q->type) || q->active)
        return -EINVAL;
    a->ctl_stack_used_size = 0;
    a->save_area_used_size = 0;
    major = fake_gpu_gfx_major(&call->fake->profile->gpus[q->gpu]);
    /* gfx9 had its stack copied before there was a header. */
    if (major < 9 || (major > 9 && call->fake->profile->kernel.kfd_minor < HEADER_SINCE))
        return 0;
    return fake_copy_out(a->ctl_stack_address, nothing, sizeof(nothing));
}

int fake_kfd_alloc_queue_gws(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_alloc_queue_gws_args *a = arg;
    struct fake_process *p = call->process;
    struct queue *q = find(p, a->queue_id);

    if (q == NULL)
        return -EINVAL;
    if (call->fake->profile->gpus[q->gpu].num_gws == 0)
        return -ENODEV;
    if ((a->num_gws != 0) == q->gws)
        return -EINVAL;
    /* One queue of a process on a GPU may have it. */
    for (uint32_t i = 0; i < p->queues->ids.top && a->num_gws != 0; i++) {
        const struct queue *other = fake_ids_get(&p->queues->ids, i);

        if (other != NULL && other->gpu == q->gpu && other->gws)
            return -EBUSY;
    }
    q->gws = a->num_gws != 0;
    a->first_gws = 0;
    return 0;
}

int fake_kfd_runtime_enable(struct fake_call *call, void *arg)
{
    const struct kfd_uapi_runtime_enable *a = arg;
    struct fake_queues *queues = queues_of(call->process);

    if (queues == NULL)
        return -ENOMEM;
    if ((a->mode_mask & RUNTIME_ENABLED) == 0) {
        queues->runtime = false;
        return 0;
    }
    if (queues->runtime)
        return -EBUSY;
    if (queues->ids.used != 0)
        return -EEXIST;
    queues->runtime = true;
    return 0;
}

/* Every GPU must be able to retry. */
static bool xnack_possible(const struct fake *fake)
{
    for (uint32_t i = 0; i < fake->profile->gpu_count; i++) {
        if (!fake->profile->gpus[i].hidden && !fake->profile->gpus[i].xnack)
            return false;
    }
    return fake->profile->gpu_count > 0;
}

int fake_kfd_set_xnack_mode(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_set_xnack_mode_args *a = arg;
    struct fake_queues *queues = queues_of(call->process);

    if (!call->fake->profile->kernel.svm)
        return -EPERM;
    if (queues == NULL)
        return -ENOMEM;
    if (a->xnack_enabled < 0) {
        a->xnack_enabled = queues->xnack;
        return 0;
    }
    if (queues->ids.used != 0)
        return -EBUSY;
    if (a->xnack_enabled != 0 && !xnack_possible(call->fake))
        return -EPERM;
    queues->xnack = a->xnack_enabled != 0;
    return 0;
}

void fake_queues_destroy(struct fake *fake, struct fake_process *p)
{
    if (p->queues == NULL)
        return;
    for (uint32_t i = 0; i < p->queues->ids.top; i++) {
        struct queue *q = fake_ids_take(&p->queues->ids, i);

        if (q == NULL)
            continue;
        fake_machine_queue_remove(&fake->machine, p->slot, q->id);
        release(fake, p, q);
        fake_free(q);
    }
    fake_ids_clear(&p->queues->ids);
    fake_free(p->queues);
    p->queues = NULL;
}
