/* SPDX-License-Identifier: MIT */
#include "fake/control.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake/events.h"
#include "fake/handle.h"
#include "fake/queues.h"
#include "fake/svm.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define NS_PER_SEC 1000000000ull
#define NS_PER_GPU_TICK 10u
/* Before gfx9 an alternate aperture lies on 64-KiB borders in the user half. */
#define APERTURE_FIXED_BITS 0xffff80000000ffffull
#define TILE_CONFIGS 32u
/* The GPU when the id is known and its VM acquired; otherwise -EINVAL or no_vm. */
static int acquired_gpu(const struct fake_call *call, uint32_t gpu_id, int no_vm)
{
    int g = fake_gpu_of_id(call->fake, gpu_id);

    if (g < 0)
        return -EINVAL;
    return call->process->gpus[g].file != NULL ? g : no_vm;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

int fake_kfd_get_clock_counters(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_clock_counters_args *c = arg;

    c->cpu_clock_counter = clock_ns(CLOCK_MONOTONIC_RAW);
    c->system_clock_counter = clock_ns(CLOCK_BOOTTIME);
    c->system_clock_freq = NS_PER_SEC;
    /* An unknown GPU is no error: its counter reads 0. */
    c->gpu_clock_counter =
        fake_gpu_of_id(call->fake, c->gpu_id) >= 0 ? c->cpu_clock_counter / NS_PER_GPU_TICK : 0;
    return 0;
}

int fake_kfd_set_memory_policy(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_set_memory_policy_args *a = arg;
    uint64_t base = a->alternate_aperture_base;
    uint64_t limit = base + a->alternate_aperture_size - 1;
    int g;

    if (a->default_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT ||
        a->alternate_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT)
        return -EINVAL;
    g = acquired_gpu(call, a->gpu_id, -ESRCH);
    if (g < 0)
        return g;
    if (fake_gpu_gfx_major(&call->fake->profile->gpus[g]) >= 9 || a->alternate_aperture_size == 0)
        return 0;
    return limit <= base || (base & APERTURE_FIXED_BITS) != 0 ||
                   (limit & APERTURE_FIXED_BITS) != 0xffff
               ? -EINVAL
               : 0;
}

int fake_kfd_set_scratch_backing_va(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_set_scratch_backing_va_args *a = arg;
    int g = acquired_gpu(call, a->gpu_id, -ENODEV);

    return g < 0 ? g : 0;
}

int fake_kfd_set_trap_handler(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_set_trap_handler_args *a = arg;
    int g = acquired_gpu(call, a->gpu_id, -ESRCH);

    return g < 0 ? g : 0;
}

/* A bad pointer leaves a count of 0. */
static int put_tiles(uint64_t user, uint32_t *count, const uint32_t *modes, uint32_t most)
{
    if (*count > most)
        *count = most;
    if (fake_copy_out(user, modes, *count * sizeof(*modes)) == 0)
        return 0;
    *count = 0;
    return -EFAULT;
}

int fake_kfd_get_tile_config(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_tile_config_args *a = arg;
    const uint32_t *modes;
    int g = fake_gpu_of_id(call->fake, a->gpu_id);
    int err;

    if (g < 0)
        return -EINVAL;
    a->gb_addr_config = call->fake->profile->gpus[g].gb_addr_config;
    a->num_banks = 0;
    a->num_ranks = 0;
    modes = call->fake->profile->gpus[g].tile_modes;
    err = put_tiles(a->tile_config_ptr, &a->num_tile_configs, modes, TILE_CONFIGS);
    if (err == 0)
        err = put_tiles(a->macro_tile_config_ptr, &a->num_macro_tile_configs, modes + TILE_CONFIGS,
                        FAKE_TILE_MODES - TILE_CONFIGS);
    return err;
}

int fake_kfd_dbg_old(struct fake_call *call, void *arg)
{
    return -EPERM;
}

/* A process that is not traced by us can't be debugged, and none here is. */
int fake_kfd_dbg_trap(struct fake_call *call, void *arg)
{
    const struct kfd_uapi_dbg_trap *a = arg;
    pid_t pid = (pid_t)a->pid;

    if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH))
        return -ESRCH;
    return -EPERM;
}

/* Kernels with residency from MAP on leave out what has no address. */
static uint32_t criu_buffers(const struct fake *fake, const struct fake_ids *handles)
{
    const struct fake_kernel *k = &fake->profile->kernel;
    uint32_t n = 0;

    for (uint32_t i = 0; i < handles->top; i++) {
        const struct fake_handle *h = fake_ids_get(handles, i);

        n += h != NULL && (k->residency == FAKE_RESIDENT_AT_ALLOC || h->va > k->gpuvm_base);
    }
    return n;
}

static int criu_info(struct fake_call *call, struct kfd_ioctl_criu_args *a)
{
    const struct fake_profile *profile = call->fake->profile;
    struct fake_process *p = call->process;

    if (profile->gpu_count == 0)
        return -ENODEV;
    a->num_devices = 0;
    a->num_bos = 0;
    for (uint32_t i = 0; i < profile->gpu_count; i++) {
        a->num_devices += !profile->gpus[i].hidden;
        a->num_bos += criu_buffers(call->fake, &p->gpus[i].handles);
    }
    a->num_objects = fake_queues_count(p) + fake_events_count(p) + fake_svm_count(p);
    p->criu_paused = true;
    return 0;
}

/* The kernel crashes on a GPU whose VM is not acquired. */
static int criu_unpause(struct fake_call *call)
{
    struct fake_process *p = call->process;
    int err = 0;

    if (!p->criu_paused)
        return -EINVAL;
    for (uint32_t i = 0; i < call->fake->profile->gpu_count && err == 0; i++)
        if (p->gpus[i].file == NULL && !call->fake->profile->gpus[i].hidden)
            err = fake_strict(call->fake, p, 0, NULL,
                              "CRIU_OP UNPAUSE with GPU %u, whose VM is not acquired", i);
    p->criu_paused = err != 0;
    return err;
}

/* Only what has been restored can be resumed, and nothing can be restored here. */
static int criu_resume(struct fake_call *call, const struct kfd_ioctl_criu_args *a)
{
    uint32_t slot;
    int32_t pid;

    for (uint32_t i = 0; fake_machine_kfd_at(&call->fake->machine, i, &slot, &pid) == 0; i++)
        if ((uint32_t)pid == a->pid)
            return -EINVAL;
    return -ESRCH;
}

/* What a checkpoint holds is not modelled: with all its arrays it is refused. */
int fake_kfd_criu_op(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_criu_args *a = arg;
    bool arrays = a->devices != 0 && a->bos != 0 && a->priv_data != 0;

    switch (a->op) {
    case KFD_CRIU_OP_PROCESS_INFO:
        return criu_info(call, a);
    case KFD_CRIU_OP_CHECKPOINT:
        return arrays ? -EOPNOTSUPP : -EINVAL;
    case KFD_CRIU_OP_UNPAUSE:
        return criu_unpause(call);
    case KFD_CRIU_OP_RESTORE:
        return arrays && a->priv_data_size != 0 && a->num_devices != 0 && a->num_bos != 0
                   ? -EOPNOTSUPP
                   : -EINVAL;
    case KFD_CRIU_OP_RESUME:
        return criu_resume(call, a);
    default:
        return -EINVAL;
    }
}
