/* SPDX-License-Identifier: MIT */
#include "vmm/userptr.h"

#include <errno.h>

#include "vmm/engine.h"

#include "kfd/poison.h"

static struct vmm_userptr *userptr_of(struct vmm_tree_node *n)
{
    return n ? vmm_container(n, struct vmm_userptr, node) : NULL;
}

static uint64_t page_of(const struct vmm_tree_node *n)
{
    return vmm_container(n, const struct vmm_userptr, node)->page;
}

static int compare(const struct vmm_tree_node *a, const struct vmm_tree_node *b)
{
    return (page_of(a) > page_of(b)) - (page_of(a) < page_of(b));
}

/* The range whose pages contain or are the last below va. */
static struct vmm_userptr *floor_of(const struct vmm *vmm, uint64_t va)
{
    return userptr_of(vmm_tree_floor(&vmm->userptrs, va, page_of));
}

bool vmm_userptr_query(const struct vmm *vmm, uint64_t va, struct vmm_range *out)
{
    const struct vmm_userptr *found = floor_of(vmm, va);

    /* Pages do not overlap, so no other range can hold a byte of this one's. */
    if (!found || !found->live || va < found->va || va - found->va >= found->size)
        return false;
    out->kind = VMM_KIND_REGISTERED;
    out->base = found->va;
    out->size = found->size;
    out->props = found->alloc->props;
    out->id = found->id;
    out->read_mask = out->write_mask = found->alloc->mapped;
    out->host_prot = VMM_PROT_READ_WRITE;
    return true;
}

static int check(const struct vmm *vmm, uint64_t va, uint64_t size)
{
    if (va == 0 || size == 0)
        return kfd_fail(-EINVAL, "%s is 0", va ? "size" : "address");
    if (va > UINT64_MAX - vmm->granule || size > UINT64_MAX - vmm->granule - va)
        return kfd_fail(-EINVAL, VMM_RANGE " leaves the address space", VMM_RANGE_ARGS(va, size));
    for (uint32_t d = 0; d < vmm->device_count; d++) {
        const struct kfd_device_info *info = kfd_device_info(vmm->devices[d]);

        if (va < info->va_base || va + size - 1 > info->va_limit)
            return kfd_fail(-EOPNOTSUPP,
                            VMM_RANGE " is outside of what device %u addresses, 0x%llx..0x%llx",
                            VMM_RANGE_ARGS(va, size), d, (unsigned long long)info->va_base,
                            (unsigned long long)info->va_limit);
    }
    return 0;
}

/* Holds the pages in the tree, not yet live. */
static int enter(struct vmm *vmm, struct vmm_userptr *new)
{
    const struct vmm_userptr *other;
    int err = 0;

    vmm_lock_acquire(&vmm->space_lock);
    other = floor_of(vmm, new->page + new->page_size - 1);
    if (vmm_space_holds(&vmm->space, new->page, new->page_size))
        err = kfd_fail(-EINVAL, VMM_RANGE " is or holds memory of this library",
                       VMM_RANGE_ARGS(new->va, new->size));
    else if (other && other->page + other->page_size > new->page)
        err = kfd_fail(-EEXIST, VMM_RANGE " shares pages with the registered " VMM_RANGE,
                       VMM_RANGE_ARGS(new->va, new->size), VMM_RANGE_ARGS(other->va, other->size));
    else
        vmm_tree_insert(&vmm->userptrs, &new->node, compare);
    vmm_lock_release(&vmm->space_lock);
    return err;
}

static void set_live(struct vmm *vmm, struct vmm_userptr *userptr, bool live)
{
    vmm_lock_acquire(&vmm->space_lock);
    userptr->live = live;
    vmm_lock_release(&vmm->space_lock);
}

static void leave(struct vmm *vmm, struct vmm_userptr *userptr)
{
    vmm_lock_acquire(&vmm->space_lock);
    vmm_tree_remove(&vmm->userptrs, &userptr->node);
    vmm_lock_release(&vmm->space_lock);
    vmm_free_mem(userptr);
}

static int fill(const struct vmm_userptr *userptr)
{
    struct vmm_alloc *alloc = userptr->alloc;
    struct vmm *vmm = alloc->vmm;
    uint64_t cpu = userptr->page;
    int err;

    err = kfd_mem_alloc(vmm_alloc_owner(alloc), userptr->page, userptr->page_size,
                        KFD_MEM_USERPTR | KFD_MEM_COHERENT | KFD_MEM_EXECUTABLE | KFD_MEM_WRITABLE |
                            KFD_MEM_NO_SUBSTITUTE,
                        &alloc->kfd_handle, &cpu);
    if (err == -EFAULT || err == -EPERM)
        return kfd_fail_in(-EINVAL, "the program may not write there");
    if (err)
        return err;
    alloc->has_kfd = true;
    return vmm_engine_map(vmm, alloc->kfd_handle, vmm_alloc_reach(alloc), &alloc->mapped);
}

int vmm_register(struct vmm *vmm, uint64_t va, uint64_t size, const uint32_t tag[4])
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    struct vmm_userptr *new;
    int err;

    if (vmm->device_count == 0)
        return vmm_need_engine(vmm);
    err = vmm_need_owner(vmm);
    if (!err)
        err = check(vmm, va, size);
    if (err)
        return err;
    for (int i = 0; tag && i < 4; i++)
        props.tag[i] = tag[i];
    vmm_alloc_reap(vmm);
    new = vmm_calloc(1, sizeof(*new));
    if (!new)
        return kfd_fail(-ENOMEM, "no host memory for a registration record");
    new->va = va;
    new->size = size;
    new->page = va & ~(vmm->granule - 1);
    new->page_size = ((va + size + vmm->granule - 1) & ~(vmm->granule - 1)) - new->page;
    new->id = vmm_new_id();
    err = vmm_alloc_new(vmm, &props, new->page_size, &new->alloc);
    if (err) {
        vmm_free_mem(new);
        return err;
    }
    err = enter(vmm, new);
    if (err) {
        vmm_alloc_delete(new->alloc);
        vmm_free_mem(new);
        return err;
    }
    err = fill(new);
    if (!err) {
        set_live(vmm, new, true);
        return 0;
    }
    err = kfd_fail_in(err, VMM_RANGE, VMM_RANGE_ARGS(va, size));
    if (new->alloc->has_kfd)
        vmm_alloc_put(new->alloc);
    else
        vmm_alloc_delete(new->alloc);
    leave(vmm, new);
    return err;
}

/* Takes the memory from every device, or puts it back. */
static int empty(struct vmm_alloc *alloc)
{
    uint64_t gone = 0, back = 0;
    int err = vmm_engine_unmap(alloc, alloc->kfd_handle, alloc->mapped, &gone);

    if (err && gone) {
        kfd_error_hold();
        vmm_engine_map(alloc->vmm, alloc->kfd_handle, gone, &back);
        kfd_error_resume();
    }
    alloc->mapped &= ~(gone & ~back);
    return err;
}

int vmm_unregister(struct vmm *vmm, uint64_t va)
{
    int err = vmm_need_owner(vmm);
    struct vmm_userptr *found;

    if (err)
        return err;
    vmm_lock_acquire(&vmm->space_lock);
    found = floor_of(vmm, va);
    if (found && found->live && found->va == va)
        found->live = false; /* ours to end from here on */
    else
        found = NULL;
    vmm_lock_release(&vmm->space_lock);
    if (!found)
        return kfd_fail(-ENOENT, "address 0x%llx is not the start of registered memory",
                        (unsigned long long)va);
    err = empty(found->alloc);
    if (err) {
        set_live(vmm, found, true);
        return kfd_fail_in(err, VMM_RANGE, VMM_RANGE_ARGS(found->va, found->size));
    }
    vmm_alloc_put(found->alloc);
    leave(vmm, found);
    return 0;
}

void vmm_userptr_count(const struct vmm *vmm, struct vmm_stats *out)
{
    struct vmm_tree_node *n;

    vmm_tree_for_each (n, &vmm->userptrs) {
        out->registered += userptr_of(n)->live;
        out->registered_bytes += userptr_of(n)->live ? userptr_of(n)->size : 0;
    }
}

void vmm_userptr_close(struct vmm *vmm)
{
    struct vmm_userptr *userptr;

    while ((userptr = userptr_of(vmm_tree_first(&vmm->userptrs)))) {
        vmm_alloc_put(userptr->alloc);
        leave(vmm, userptr);
    }
}
