/* SPDX-License-Identifier: MIT */
#include "vmm/alloc.h"

#include <errno.h>
#include <sys/mman.h>

#include "vmm/engine.h"
#include "vmm/host.h"
#include "vmm/resv.h"

#include "kfd/poison.h"

#define FAR_INSIDE ((uint64_t)64 << 20)

int vmm_alloc_new(struct vmm *vmm, const struct vmm_props *props, uint64_t size,
                  struct vmm_alloc **out)
{
    struct vmm_alloc *alloc;

    alloc = vmm_calloc(1, sizeof(*alloc) + vmm->device_count * sizeof(alloc->imports[0]));
    if (!alloc)
        return kfd_fail(-ENOMEM, "no host memory for an allocation record");
    if (vmm_lock_init(&alloc->lock, VMM_RANK_ALLOCATION) != 0) {
        vmm_free_mem(alloc);
        return kfd_fail(-ENOMEM, "no host memory for a lock");
    }
    alloc->vmm = vmm;
    alloc->props = *props;
    alloc->size = size;
    atomic_init(&alloc->refs, 1);
    *out = alloc;
    return 0;
}

/* Runs under the handle table's lock, so the object cannot go away meanwhile. */
static bool take_ref(void *object)
{
    struct vmm_alloc *alloc = object;
    uint_fast64_t refs = atomic_load(&alloc->refs);

    while (refs != 0) {
        if (atomic_compare_exchange_weak(&alloc->refs, &refs, refs + 1))
            return true;
    }
    return false;
}

int vmm_alloc_get(struct vmm *vmm, vmm_handle handle, struct vmm_alloc **out)
{
    int err = vmm_need_owner(vmm);

    *out = err ? NULL : vmm_handles_get(&vmm->handles, handle, take_ref);
    if (err)
        return err;
    if (!*out)
        return kfd_fail(-EINVAL, "handle 0x%llx names no live allocation",
                        (unsigned long long)handle);
    return 0;
}

void vmm_alloc_ref(struct vmm_alloc *alloc)
{
    atomic_fetch_add(&alloc->refs, 1);
}

void vmm_alloc_delete(struct vmm_alloc *alloc)
{
    if (alloc->resv)
        vmm_resv_drop(alloc->resv);
    vmm_lock_destroy(&alloc->lock);
    vmm_free_mem(alloc);
}

static int alloc_destroy(struct vmm_alloc *alloc)
{
    struct vmm *vmm = alloc->vmm;
    uint64_t done;
    int err;

    if (alloc->handle)
        return vmm->engine->destroy(alloc);
    if (alloc->mapped) {
        err = vmm_engine_unmap(alloc, alloc->kfd_handle, alloc->mapped, &done);
        alloc->mapped &= ~done;
        if (err)
            return err;
    }
    return kfd_mem_free(vmm->kfd, alloc->kfd_handle);
}

/* Gives an allocation that nobody refers to back, now or, where the kernel refuses, later. */
static bool discard(struct vmm_alloc *alloc)
{
    struct vmm *vmm = alloc->vmm;
    int err;

    kfd_error_hold();
    err = alloc_destroy(alloc);
    kfd_error_resume();
    if (!err) {
        vmm_alloc_delete(alloc);
        return true;
    }
    alloc->next_zombie = NULL;
    vmm_lock_acquire(&vmm->log_lock);
    *vmm->last_zombie = alloc;
    vmm->last_zombie = &alloc->next_zombie;
    vmm_lock_release(&vmm->log_lock);
    return false;
}

void vmm_alloc_abandon(struct vmm_alloc *alloc)
{
    alloc_destroy(alloc);
    vmm_alloc_delete(alloc);
}

void vmm_alloc_put(struct vmm_alloc *alloc)
{
    struct vmm *vmm = alloc->vmm;

    if (atomic_fetch_sub(&alloc->refs, 1) != 1)
        return;
    if (alloc->handle) {
        vmm_handles_remove(&vmm->handles, alloc->handle);
        atomic_fetch_sub(&vmm->n_alloc, 1);
        atomic_fetch_sub(&vmm->alloc_bytes, alloc->size);
    }
    discard(alloc);
}

static struct vmm_alloc *first_zombie(struct vmm *vmm)
{
    struct vmm_alloc *alloc;

    vmm_lock_acquire(&vmm->log_lock);
    alloc = vmm->zombies;
    if (alloc)
        vmm->zombies = alloc->next_zombie;
    if (!vmm->zombies)
        vmm->last_zombie = &vmm->zombies;
    vmm_lock_release(&vmm->log_lock);
    return alloc;
}

/* A kernel that refuses one will refuse the next, so the first refusal ends it: whatever it keeps
 * for ever costs a later call one request, not one each. */
void vmm_alloc_reap(struct vmm *vmm)
{
    struct vmm_alloc *alloc = first_zombie(vmm);

    vmm_barrier_reap(vmm);
    while (alloc && discard(alloc))
        alloc = first_zombie(vmm);
}

uint32_t vmm_alloc_flags(const struct vmm_alloc *alloc)
{
    uint32_t flags = KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE | KFD_MEM_NO_SUBSTITUTE;

    if (alloc->props.location == VMM_LOCATION_HOST)
        flags |= KFD_MEM_GTT | KFD_MEM_COHERENT;
    else
        flags |= KFD_MEM_VRAM;
    if (alloc->props.location == VMM_LOCATION_DEVICE &&
        kfd_device_info(vmm_alloc_owner(alloc))->large_bar)
        flags |= KFD_MEM_PUBLIC;
    if (alloc->props.uncached)
        flags |= KFD_MEM_UNCACHED | KFD_MEM_COHERENT;
    return flags;
}

uint64_t vmm_alloc_reach(const struct vmm_alloc *alloc)
{
    const struct vmm *vmm = alloc->vmm;

    if (alloc->props.location == VMM_LOCATION_HOST)
        return vmm->device_count == 64 ? UINT64_MAX : vmm_bit(vmm->device_count) - 1;
    return vmm->reach[alloc->props.device];
}

bool vmm_alloc_host_visible(const struct vmm_alloc *alloc)
{
    const struct kfd_device_info *info = kfd_device_info(vmm_alloc_owner(alloc));

    return alloc->props.location == VMM_LOCATION_HOST || info->large_bar || info->apu;
}

static int export_fd(struct vmm_alloc *alloc, int *fd)
{
    if (alloc->handle)
        return alloc->vmm->engine->export_fd(alloc, fd);
    return kfd_dmabuf_export(alloc->vmm->kfd, alloc->kfd_handle, fd);
}

static int view_map(struct vmm *vmm, void *fixed, uint64_t len, int prot, int fd, uint64_t offset,
                    struct vmm_view *view)
{
    int flags = MAP_SHARED | (fixed ? MAP_FIXED : 0);
    int err;

    err = vmm->sys->ops->map_pages(vmm->sys, fixed, len, prot, flags, fd, offset, &view->base);
    if (err && fixed)
        vmm_space_mend(&vmm->space, (uint64_t)(uintptr_t)fixed, len);
    if (err)
        return kfd_fail(err, "a CPU view of 0x%llx bytes: %s", (unsigned long long)len,
                        kfd_errno_name(err));
    view->len = len;
    vmm->sys->ops->advise_pages(vmm->sys, view->base, len, MADV_DONTFORK);
    return 0;
}

int vmm_alloc_view(struct vmm_alloc *alloc, uint64_t offset, uint64_t size, int prot, void *fixed,
                   struct vmm_view *view)
{
    struct vmm *vmm = alloc->vmm;
    uint64_t skip = offset & (vmm->granule - 1);
    int fd, err = fixed ? vmm_host_save(vmm) : 0;

    if (err)
        return err;
    /* The render node maps a BO only from its start (T17), so its prefix serves an inner range when
     * the address is free to choose; a dma-buf serves any range but costs an export. Far into a
     * large BO that is the better bargain: a prefix needs as much address space as it is long. */
    if (alloc->mmap_offset && (offset == 0 || (!fixed && offset <= FAR_INSIDE))) {
        err = view_map(vmm, fixed, offset + size, prot, kfd_device_drm_fd(vmm_alloc_owner(alloc)),
                       alloc->mmap_offset, view);
        if (!err)
            view->at = (char *)view->base + offset;
        return err;
    }
    err = export_fd(alloc, &fd);
    if (err)
        return err;
    err = view_map(vmm, fixed, size + skip, prot, fd, offset - skip, view);
    if (!err)
        view->at = (char *)view->base + skip;
    vmm->sys->ops->close_fd(vmm->sys, fd);
    return err;
}

void vmm_alloc_unview(struct vmm *vmm, const struct vmm_view *view)
{
    vmm->sys->ops->unmap_pages(vmm->sys, view->base, view->len);
}

/* Makes a record whose handle no look-up accepts yet: it has no reference. */
static int begin(struct vmm *vmm, const struct vmm_props *props, uint64_t size,
                 struct vmm_alloc **out)
{
    int err = vmm_alloc_new(vmm, props, size, out);

    if (err)
        return err;
    atomic_store(&(*out)->refs, 0);
    err = vmm_handles_add(&vmm->handles, *out, &(*out)->handle);
    if (err) {
        vmm_alloc_delete(*out);
        return kfd_fail(err, "no host memory for a handle");
    }
    return 0;
}

/* Lets a record with memory be found, with one user reference, or takes back one without. */
static int finish(struct vmm_alloc *alloc, int err, vmm_handle *handle)
{
    struct vmm *vmm = alloc->vmm;

    if (err) {
        vmm_handles_remove(&vmm->handles, alloc->handle);
        discard(alloc);
        return err;
    }
    atomic_fetch_add(&vmm->n_alloc, 1);
    atomic_fetch_add(&vmm->alloc_bytes, alloc->size);
    *handle = alloc->handle;
    atomic_store(&alloc->users, 1);
    atomic_store(&alloc->refs, 1);
    return 0;
}

int vmm_create(struct vmm *vmm, const struct vmm_props *props, uint64_t size, vmm_handle *handle)
{
    struct vmm_alloc *alloc;
    int err;

    err = vmm_need_engine(vmm);
    if (err)
        return err;
    if (!props)
        return kfd_fail(-EINVAL, "props is NULL");
    if (!handle)
        return kfd_fail(-EINVAL, "handle is NULL");
    if (props->location != VMM_LOCATION_DEVICE && props->location != VMM_LOCATION_HOST)
        return kfd_fail(-EINVAL, "location %d is neither device nor host", (int)props->location);
    if (props->device >= vmm->device_count)
        return kfd_fail(-ENODEV, "device %u: there are %u", props->device, vmm->device_count);
    err = vmm_check_size(vmm, size);
    if (err)
        return err;
    vmm_alloc_reap(vmm);
    err = begin(vmm, props, size, &alloc);
    if (err)
        return err;
    alloc->props.imported = false;
    err = vmm->engine->create(alloc, vmm_alloc_flags(alloc));
    if (err)
        err = kfd_fail_in(err, "0x%llx bytes", (unsigned long long)size);
    return finish(alloc, err, handle);
}

int vmm_import(struct vmm *vmm, int fd, const uint32_t tag[4], vmm_handle *handle)
{
    struct vmm_props props = {.imported = true};
    struct kfd_dmabuf_info info;
    struct vmm_alloc *alloc;
    int err;

    err = vmm_need_engine(vmm);
    if (err)
        return err;
    if (!handle)
        return kfd_fail(-EINVAL, "handle is NULL");
    vmm_alloc_reap(vmm);
    err = kfd_dmabuf_info(vmm->kfd, fd, &info);
    if (err == -EBADF)
        return kfd_fail(-EINVAL, "descriptor %d is not open", fd);
    if (err)
        return kfd_fail_in(
            err, err == -EINVAL ? "descriptor %d is no memory of the GPU driver" : "descriptor %d",
            fd);
    if (!info.owner)
        return kfd_fail(-EINVAL, "descriptor %d: memory of gpu_id %u, which is not open here", fd,
                        info.gpu_id);
    props.device = kfd_device_info(info.owner)->index;
    props.location = (info.flags & KFD_MEM_VRAM) ? VMM_LOCATION_DEVICE : VMM_LOCATION_HOST;
    for (int i = 0; tag && i < 4; i++)
        props.tag[i] = tag[i];
    err = begin(vmm, &props, info.size, &alloc);
    if (err)
        return err;
    err = vmm->engine->import(alloc, fd);
    if (err)
        err = kfd_fail_in(err, "descriptor %d", fd);
    return finish(alloc, err, handle);
}

int vmm_release(struct vmm *vmm, vmm_handle handle)
{
    struct vmm_alloc *alloc;
    uint_fast64_t users;
    int err;

    err = vmm_alloc_get(vmm, handle, &alloc);
    if (err)
        return err;
    users = atomic_load(&alloc->users);
    while (users != 0 && !atomic_compare_exchange_weak(&alloc->users, &users, users - 1))
        ;
    if (users == 0)
        err = kfd_fail(-EINVAL, "handle 0x%llx is released already: only mappings keep it",
                       (unsigned long long)handle);
    else
        vmm_alloc_put(alloc);
    vmm_alloc_put(alloc);
    vmm_alloc_reap(vmm);
    return err;
}

int vmm_get_props(struct vmm *vmm, vmm_handle handle, struct vmm_props *props, uint64_t *size)
{
    struct vmm_alloc *alloc;
    int err;

    err = vmm_alloc_get(vmm, handle, &alloc);
    if (err)
        return err;
    if (props)
        *props = alloc->props;
    if (size)
        *size = alloc->size;
    vmm_alloc_put(alloc);
    return 0;
}

int vmm_alloc_export(struct vmm_alloc *alloc, int *fd)
{
    if (alloc->props.imported)
        return kfd_fail(-EINVAL, "handle 0x%llx is an import: its exporter shares it",
                        (unsigned long long)alloc->handle);
    return export_fd(alloc, fd);
}

int vmm_export(struct vmm *vmm, vmm_handle handle, int *fd)
{
    struct vmm_alloc *alloc;
    int err, got;

    if (!fd)
        return kfd_fail(-EINVAL, "fd is NULL");
    err = vmm_alloc_get(vmm, handle, &alloc);
    if (err)
        return err;
    err = vmm_alloc_export(alloc, &got);
    vmm_alloc_put(alloc);
    if (!err)
        *fd = got;
    return err;
}
