/* SPDX-License-Identifier: MIT */
/* GEM_VA. */
#include <errno.h>

#include "fake/gem.h"
#include "fake/handlers.h"
#include "fake/syncobj.h"
#include "fake/usercopy.h"
#include "kfd/uapi.h"

#define HOLE_START 0x0000800000000000ull
#define HOLE_END 0xffff800000000000ull
#define ADDRESS_MASK ((1ull << 48) - 1)

/* Younger than the header. */
#define PAGE_NOALLOC 0x200u

#define NORMAL_FLAGS                                                               \
    (AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | \
     AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_MTYPE_MASK | PAGE_NOALLOC)
#define SPARSE_FLAGS (AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_PRT)

static int check(const struct fake_kernel *k, struct kfd_uapi_gem_va *a)
{
    if (a->va_address < k->gem_va_bottom)
        return -EINVAL;
    if (a->va_address >= HOLE_START && a->va_address < HOLE_END)
        return -EINVAL;
    a->va_address &= ADDRESS_MASK;
    /* As the kernel's, this sum may wrap; later checks catch that. */
    if (a->va_address + a->map_size > ADDRESS_MASK + 1 - k->gem_va_reserved_top)
        return -EINVAL;
    if ((a->flags & ~NORMAL_FLAGS) != 0 && (a->flags & ~SPARSE_FLAGS) != 0)
        return -EINVAL;
    if (a->operation < AMDGPU_VA_OP_MAP || a->operation > AMDGPU_VA_OP_REPLACE)
        return -EINVAL;
    return 0;
}

static int change(struct fake_vm *vm, struct fake_va *va, const struct kfd_uapi_gem_va *a)
{
    uint32_t flags = a->flags & ~(uint32_t)AMDGPU_VM_DELAY_UPDATE;

    switch (a->operation) {
    case AMDGPU_VA_OP_MAP:
        return fake_vm_map(va, a->va_address, a->offset_in_bo, a->map_size, flags);
    case AMDGPU_VA_OP_UNMAP:
        /* The kernel looks for the page, not for the address. */
        return fake_vm_unmap(va, a->va_address & ~(FAKE_PAGE - 1));
    case AMDGPU_VA_OP_CLEAR:
        return fake_vm_clear(vm, a->va_address, a->map_size);
    default:
        return fake_vm_replace(va, a->va_address, a->offset_in_bo, a->map_size, flags);
    }
}

static bool writes(uint32_t operation)
{
    return operation == AMDGPU_VA_OP_MAP || operation == AMDGPU_VA_OP_REPLACE;
}

/* Failures here are only logged by the kernel: the request has succeeded by then. */
static void update(struct fake_vm *vm, struct fake_va *va, uint32_t operation)
{
    if (fake_vm_clear_freed(vm) != 0)
        return;
    if (writes(operation))
        (void)fake_vm_update(va);
}

/* The part of the argument that DRM 3.64 added: what to wait for, and the point to signal. */
static int check_sync(const struct fake_call *call, const struct kfd_uapi_gem_va *a,
                      struct fake_syncobj **point)
{
    uint32_t handle;

    if (call->fake->profile->kernel.gem_va_size < sizeof(*a))
        return 0;
    for (uint32_t i = 0; i < a->num_syncobj_handles; i++) {
        if (fake_copy_in(&handle, a->input_fence_syncobj_handles + i * sizeof(handle),
                         sizeof(handle)) != 0)
            return -EFAULT;
        if (fake_syncobj_get(call->file, handle) == NULL)
            return -ENOENT;
    }
    if (a->vm_timeline_syncobj_out == 0)
        return 0;
    *point = fake_syncobj_get(call->file, a->vm_timeline_syncobj_out);
    return *point != NULL ? 0 : -ENOENT;
}

/* What the kernel does, but nobody can want. */
static int check_strict(const struct fake_call *call, const struct kfd_uapi_gem_va *a)
{
    const struct fake_vm *vm = call->file->vm;
    bool ranged = a->operation == AMDGPU_VA_OP_CLEAR || a->operation == AMDGPU_VA_OP_REPLACE;
    uint64_t size = a->operation == AMDGPU_VA_OP_UNMAP ? 1 : a->map_size;
    const struct fake_mapping *m;

    if (!(call->fake->flags & FAKE_STRICT) || a->operation == AMDGPU_VA_OP_MAP || size == 0)
        return 0;
    m = fake_vm_kfd_mapping(vm, a->va_address, size);
    if (m != NULL)
        return fake_strict(call->fake, call->process, 0, &m->made,
                           "GEM_VA%s at 0x%llx on GPU %u takes a mapping of KFD's away",
                           fake_va_op_name(a->operation), (unsigned long long)a->va_address,
                           vm->gpu);
    m = ranged ? fake_vm_cut_mapping(vm, a->va_address, size) : NULL;
    if (m != NULL)
        return fake_strict(call->fake, call->process, 0, &m->made,
                           "GEM_VA%s over 0x%llx bytes at 0x%llx on GPU %u cuts a "
                           "mapping, whose rest a huge page may lose",
                           fake_va_op_name(a->operation), (unsigned long long)size,
                           (unsigned long long)a->va_address, vm->gpu);
    return 0;
}

int fake_drm_gem_va(struct fake_call *call, void *arg)
{
    struct kfd_uapi_gem_va *a = arg;
    struct fake_vm *vm = call->file->vm;
    struct fake_va *va = NULL;
    struct fake_syncobj *point = NULL;
    int err = check(&call->fake->profile->kernel, a);

    if (err != 0)
        return err;
    if (a->operation != AMDGPU_VA_OP_CLEAR) {
        if (a->flags & AMDGPU_VM_PAGE_PRT) {
            va = &vm->prt;
        } else {
            struct fake_gem *gem = fake_gem_get(call->file, a->handle);

            if (gem == NULL)
                return -ENOENT;
            va = gem->va;
        }
    }
    err = check_strict(call, a);
    if (err == 0)
        err = check_sync(call, a, &point);
    if (err == 0)
        err = change(vm, va, a);
    if (err != 0)
        return err;
    vm->used = true;
    if (call->strike.armed && call->strike.point == FAKE_INJECT_SILENT)
        return 0;
    if ((a->flags & AMDGPU_VM_DELAY_UPDATE) != 0)
        return 0;
    if (vm->by_engine)
        fake_vm_defer(vm, writes(a->operation) ? va : NULL);
    else
        update(vm, va, a->operation);
    if (writes(a->operation))
        fake_vm_written(call->fake, vm);
    if (point != NULL)
        fake_syncobj_submit(point, vm, a->vm_timeline_point);
    return 0;
}
