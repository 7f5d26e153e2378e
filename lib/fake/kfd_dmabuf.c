/* SPDX-License-Identifier: MIT */
/* EXPORT_DMABUF, IMPORT_DMABUF and GET_DMABUF_INFO. */
#include <errno.h>
#include <fcntl.h>

#include "fake/client.h"
#include "fake/handle.h"
#include "fake/handlers.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

int fake_kfd_export_dmabuf(struct fake_call *call, void *arg)
{
    struct kfd_uapi_export_dmabuf *a = arg;
    struct fake_handle *h;
    uint32_t index;
    int gpu, fd;

    h = fake_handle_get(call->fake, call->process, a->handle, &gpu);
    if (h == NULL)
        return -EINVAL;
    if (h->domain == FAKE_DOMAIN_USERPTR)
        return -EPERM;
    index = fake_client_export(call->fake, h);
    if (index == 0)
        return -ENOENT;
    fd = fake_mem_export(call->fake, index, (int)(a->flags & O_CLOEXEC),
                         h->flags & KFD_MEM_WRITABLE ? O_RDWR : O_RDONLY);
    if (fd < 0)
        return fd;
    a->dmabuf_fd = (uint32_t)fd;
    return 0;
}

static int import(struct fake_call *call, const struct kfd_ioctl_import_dmabuf_args *a,
                  struct fake_mem *mem, int gpu, struct fake_handle **out)
{
    const struct fake_profile *profile = call->fake->profile;
    bool foreign = profile->gpus[mem->owner].card != profile->gpus[gpu].card;
    struct fake_bo *bo;
    int err;

    err = foreign && !profile->kernel.import_foreign ? -EINVAL : 0;
    if (err == 0 && (mem->domain == FAKE_DOMAIN_DOORBELL || mem->domain == FAKE_DOMAIN_MMIO))
        err = fake_strict(call->fake, call->process, 0, NULL,
                          "IMPORT of GPU %u's doorbells or registers, which both FREEs free in the "
                          "kernel",
                          mem->owner);
    if (err != 0) {
        fake_mem_put(call->fake, call->process, mem);
        return err;
    }
    err = fake_bo_for_mem(call->fake, call->process, mem, (uint32_t)gpu, FAKE_IMPORT_KFD, &bo);
    if (err != 0)
        return err;
    return fake_handle_add(call->fake, call->process, bo, (uint32_t)gpu, a->va_addr,
                           KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE, true, out);
}

int fake_kfd_import_dmabuf(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_import_dmabuf_args *a = arg;
    bool fd_first = call->fake->profile->kernel.import_checks_fd_first;
    struct fake_handle *h;
    struct fake_mem *mem;
    int gpu, err = 0;

    if (fd_first) {
        err = fake_mem_from_fd(call->fake, call->process, (int)a->dmabuf_fd, &mem);
        if (err != 0)
            return err;
    }
    gpu = fake_gpu_of_id(call->fake, a->gpu_id);
    if (gpu < 0)
        err = -EINVAL;
    else if (call->process->gpus[gpu].file == NULL)
        err = -ENODEV;
    if (err != 0) {
        if (fd_first)
            fake_mem_put(call->fake, call->process, mem);
        return err;
    }
    if (!fd_first)
        err = fake_mem_from_fd(call->fake, call->process, (int)a->dmabuf_fd, &mem);
    if (err == 0)
        err = import(call, a, mem, gpu, &h);
    if (err == 0)
        a->handle = fake_handle_value(call->fake, h);
    return err;
}

static uint32_t first_visible(const struct fake_profile *profile)
{
    uint32_t i = 0;

    while (i < profile->gpu_count && profile->gpus[i].hidden)
        i++;
    return i;
}

int fake_kfd_get_dmabuf_info(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_get_dmabuf_info_args *a = arg;
    const struct fake_profile *profile = call->fake->profile;
    uint32_t first = first_visible(profile), index, owner, room = a->metadata_size;
    struct fake_shared_bo bo;

    if (first == profile->gpu_count)
        return -EINVAL;
    if (fcntl((int)a->dmabuf_fd, F_GETFD) < 0)
        return -EBADF;
    if (fake_machine_peek(&call->fake->machine, (int)a->dmabuf_fd, &index, &bo) != 0)
        return -EINVAL;
    a->size = bo.size;
    a->metadata_size = bo.metadata_size;
    if (bo.metadata_size > room)
        return -EINVAL;
    owner = bo.owner;
    /* Chips that can be partitioned name the first GPU for system memory. */
    if (bo.domain != FAKE_DOMAIN_VRAM && profile->gpus[owner].gfx_target_version / 100 == 904)
        owner = first;
    a->gpu_id = profile->gpus[owner].gpu_id;
    a->flags = bo.domain == FAKE_DOMAIN_VRAM ? KFD_MEM_VRAM : KFD_MEM_GTT;
    /* Where the CPU sees everything the wish is forgotten; pinning records it, and so does the
     * CPU's first access, which here is the making of its view. Doorbells and registers are pinned.
     */
    if (bo.pinned_gtt != 0 || bo.cpu_viewed != 0 || bo.domain == FAKE_DOMAIN_DOORBELL ||
        bo.domain == FAKE_DOMAIN_MMIO ||
        (bo.flags & KFD_MEM_PUBLIC && !fake_gpu_large_bar(&profile->gpus[owner])))
        a->flags |= KFD_MEM_PUBLIC;
    return a->metadata_ptr == 0
               ? 0
               : fake_copy_out(a->metadata_ptr, fake_machine_metadata(&call->fake->machine, index),
                               bo.metadata_size);
}
