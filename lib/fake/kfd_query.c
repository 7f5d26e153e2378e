/* SPDX-License-Identifier: MIT */
/* KFD requests that ask, and ACQUIRE_VM. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fake/file.h"
#include "fake/handlers.h"
#include "fake/usercopy.h"
#include "fake/vm.h"
#include "kfd/uapi.h"

#define OLD_APERTURES 7u

int fake_kfd_get_version(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_version_args *a = arg;

    a->major_version = 1;
    a->minor_version = call->fake->profile->kernel.kfd_minor;
    return 0;
}

static void fill_aperture(const struct fake *fake, uint32_t gpu,
                          struct kfd_process_device_apertures *a)
{
    const struct fake_gpu *g = &fake->profile->gpus[gpu];
    bool gfx9 = fake_gpu_gfx_major(g) >= 9;

    memset(a, 0, sizeof(*a));
    a->lds_base = gfx9 ? 0x0001000000000000ull : 0x2000000000000000ull;
    a->lds_limit = a->lds_base + 0xffffffffull;
    a->scratch_base = gfx9 ? 0x0002000000000000ull : 0x2000000100000000ull;
    a->scratch_limit = a->scratch_base + 0xffffffffull;
    a->gpuvm_base = fake->profile->kernel.gpuvm_base;
    a->gpuvm_limit = (1ull << g->va_bits) - 1;
    a->gpu_id = g->gpu_id;
}

/* GPUs the device cgroup keeps from the process are not its GPUs. */
static uint32_t visible_gpus(const struct fake *fake, uint32_t *list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < fake->profile->gpu_count; i++)
        if (!fake->profile->gpus[i].hidden)
            list[n++] = i;
    return n;
}

int fake_kfd_get_process_apertures(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_process_apertures_args *a = arg;
    uint32_t list[KFD_MAX_DEVICES], n = visible_gpus(call->fake, list);

    memset(a, 0, sizeof(*a));
    for (uint32_t i = 0; i < n && i < OLD_APERTURES; i++)
        fill_aperture(call->fake, list[i], &a->process_apertures[a->num_of_nodes++]);
    return 0;
}

int fake_kfd_get_process_apertures_new(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_process_apertures_new_args *a = arg;
    struct kfd_process_device_apertures entries[KFD_MAX_DEVICES];
    uint32_t list[KFD_MAX_DEVICES], n = visible_gpus(call->fake, list);

    if (a->num_of_nodes == 0) {
        a->num_of_nodes = n;
        return 0;
    }
    if (a->num_of_nodes > fake_profile_node_count(call->fake->profile))
        return -EINVAL;
    if (n > a->num_of_nodes)
        n = a->num_of_nodes;
    for (uint32_t i = 0; i < n; i++)
        fill_aperture(call->fake, list[i], &entries[i]);
    a->num_of_nodes = n;
    return fake_copy_out(a->kfd_process_device_apertures_ptr, entries, n * sizeof(entries[0]));
}

int fake_kfd_acquire_vm(struct fake_call *call, void *arg)
{
    const struct kfd_ioctl_acquire_vm_args *a = arg;
    struct fake_process *p = call->process;
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    enum fake_fd_kind what = fake_fd_look(call->fake, p, (int)a->drm_fd, &file, &kind);
    int gpu, err;

    if (fcntl((int)a->drm_fd, F_GETFD) < 0)
        return -EINVAL;
    gpu = fake_gpu_of_id(call->fake, a->gpu_id);
    if (gpu < 0)
        return -EINVAL;
    if (p->gpus[gpu].file != NULL)
        return p->gpus[gpu].file == file ? 0 : -EBUSY;
    /* A node of another process carries that process's VM. */
    if (what != FAKE_FD_FILE || file->vm == NULL || file->vm->compute)
        return -EINVAL;
    if (!call->fake->profile->kernel.acquire_used_vm && file->vm->used)
        return -EINVAL;
    if (file->gpu != (uint32_t)gpu) {
        err = fake_strict(call->fake, p, 0, &file->opened,
                          "ACQUIRE_VM: the render node of GPU %u for GPU %d", file->gpu, gpu);
        if (err != 0)
            return err;
    }
    err = fake_vm_acquire(call->fake, file->vm);
    if (err != 0)
        return err;
    file->acquired = true;
    p->gpus[gpu].file = file;
    return 0;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

int fake_kfd_available_memory(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_available_memory_args *a = arg;
    const struct fake_limits *limits = &call->fake->limits;
    int gpu = fake_gpu_of_id(call->fake, a->gpu_id);
    struct fake_totals t;

    if (gpu < 0)
        return -EINVAL;
    fake_machine_totals(&call->fake->machine, &t);
    if (call->fake->profile->gpus[gpu].apu) {
        uint64_t system = left(limits->system, t.system), ttm = left(limits->ttm, t.ttm);

        a->available = (system < ttm ? system : ttm) & ~(FAKE_PAGE - 1);
    } else {
        a->available = left(limits->vram_kfd[gpu], t.vram_2m[gpu]) & ~(FAKE_HUGE - 1);
    }
    return 0;
}
