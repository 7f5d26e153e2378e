/* SPDX-License-Identifier: MIT */
#include "vmm/vmm.h"

#include <errno.h>
#include <unistd.h>

#include "vmm/engine.h"
#include "vmm/host.h"
#include "vmm/map.h"
#include "vmm/resv.h"
#include "vmm/userptr.h"

#include "kfd/poison.h"

/* GEM_VA on Linux 6.1 refuses what lies below 2 MiB; user addresses end at 2^47. */
#define LOWEST_VA 0x200000ull
#define HIGHEST_VA (1ull << 47)

uint64_t vmm_new_id(void)
{
    static atomic_uint_fast64_t last;

    return atomic_fetch_add(&last, 1) + 1;
}

int vmm_need_owner(const struct vmm *vmm)
{
    return kfd_is_owner(vmm->kfd)
               ? 0
               : kfd_fail(-EBADF,
                          "this process is forked from the one that opened the VMM: open another");
}

int vmm_need_engine(const struct vmm *vmm)
{
    int err = vmm_need_owner(vmm);

    if (err || vmm->engine)
        return err;
    return kfd_fail(-EOPNOTSUPP, "no memory mapping works here: %s", vmm->reason);
}

int vmm_check_multiple(const struct vmm *vmm, const char *what, uint64_t value)
{
    if (vmm_aligned(value, vmm->granule))
        return 0;
    return kfd_fail(-EINVAL, "%s 0x%llx is not a multiple of 0x%llx", what,
                    (unsigned long long)value, (unsigned long long)vmm->granule);
}

int vmm_check_size(const struct vmm *vmm, uint64_t size)
{
    return size ? vmm_check_multiple(vmm, "size", size) : kfd_fail(-EINVAL, "size is 0");
}

int vmm_check_range(const struct vmm *vmm, uint64_t va, uint64_t size)
{
    int err = vmm_check_size(vmm, size);

    if (!err)
        err = vmm_check_multiple(vmm, "address", va);
    if (err)
        return err;
    if (size > UINT64_MAX - va)
        return kfd_fail(-EINVAL, VMM_RANGE " leaves the address space", VMM_RANGE_ARGS(va, size));
    return 0;
}

static void list_devices(struct vmm *vmm)
{
    vmm->device_count = kfd_device_count(vmm->kfd);
    for (uint32_t d = 0; d < vmm->device_count; d++)
        vmm->devices[d] = kfd_device_at(vmm->kfd, d);
    for (uint32_t owner = 0; owner < vmm->device_count; owner++) {
        for (uint32_t d = 0; d < vmm->device_count; d++) {
            if (kfd_can_access(vmm->devices[d], vmm->devices[owner]))
                vmm->reach[owner] |= vmm_bit(d);
        }
    }
}

/* One address means the same to the CPU and every device, so only what all of them reach is used.
 */
static int open_space(struct vmm *vmm)
{
    uint64_t low = LOWEST_VA, high = HIGHEST_VA;
    int err;

    for (uint32_t d = 0; d < vmm->device_count; d++) {
        const struct kfd_device_info *info = kfd_device_info(vmm->devices[d]);

        if (info->va_base > low)
            low = info->va_base;
        if (info->va_limit < high - 1)
            high = info->va_limit + 1;
    }
    low = (low + vmm->granule - 1) & ~(vmm->granule - 1);
    high &= ~(vmm->granule - 1);
    if (low >= high)
        return kfd_fail(-EOPNOTSUPP, "the devices' apertures have no address in common");
    err = vmm_space_init(&vmm->space, vmm->sys, low, high, vmm->granule);
    vmm->space_ready = err == 0;
    return err;
}

static uint64_t granule(void)
{
    long page = sysconf(_SC_PAGESIZE);

    return page > (long)KFD_PAGE_SIZE ? (uint64_t)page : KFD_PAGE_SIZE;
}

int vmm_open(struct kfd *kfd, const struct vmm_options *options, struct vmm **out)
{
    uint64_t wanted;
    struct vmm *vmm;
    int err;

    if (!kfd || !out)
        return kfd_fail(-EINVAL, "%s is NULL", kfd ? "out" : "kfd");
    if (options && options->size < sizeof(*options))
        return kfd_fail(-EINVAL, "options->size is %zu, not %zu", options->size, sizeof(*options));
    wanted = options ? options->min_granularity : 0;
    vmm = vmm_calloc(1, sizeof(*vmm));
    if (!vmm)
        return kfd_fail(-ENOMEM, "no host memory for a vmm");
    vmm->kfd = kfd;
    vmm->sys = kfd_get_sys(kfd);
    vmm->last_zombie = &vmm->zombies;
    vmm->granule = vmm->granularity = granule();
    if (wanted & (wanted - 1)) {
        err = kfd_fail(-EINVAL, "minimum granularity 0x%llx is not a power of two",
                       (unsigned long long)wanted);
        goto fail;
    }
    if (wanted > vmm->granularity)
        vmm->granularity = wanted;
    err = vmm_lock_init(&vmm->space_lock, VMM_RANK_SPACE);
    if (err)
        goto fail;
    err = vmm_lock_init(&vmm->log_lock, VMM_RANK_LOG);
    if (err)
        goto fail_space_lock;
    err = vmm_handles_init(&vmm->handles, VMM_HANDLE_TAG);
    if (err)
        goto fail_log_lock;
    list_devices(vmm);
    err = vmm_engine_choose(vmm, options ? options->engine : VMM_ENGINE_AUTO);
    if (!err && vmm->device_count)
        err = open_space(vmm);
    if (err)
        goto fail_handles;
    err = vmm_barrier_init(vmm);
    if (err)
        goto fail_space;
    *out = vmm;
    return 0;

fail_space:
    if (vmm->space_ready)
        vmm_space_fini(&vmm->space);
fail_handles:
    vmm_handles_fini(&vmm->handles);
fail_log_lock:
    vmm_lock_destroy(&vmm->log_lock);
fail_space_lock:
    vmm_lock_destroy(&vmm->space_lock);
fail:
    vmm_free_mem(vmm);
    return err;
}

/* The kernel will not let go: the records go all the same, and the memory with the process. */
static void forget_maps(struct vmm_resv *resv)
{
    struct vmm_mapping *map;

    while ((map = vmm_maptab_first(&resv->maps))) {
        /* Closed under a KFD handle, a GEM handle crashes old kernels at the process's end. */
        if (map->kfd_handle)
            map->alloc->imports[map->alloc->props.device].gem = 0;
        vmm_map_remove(resv, map);
    }
}

static void close_resv(struct vmm_resv *resv)
{
    uint64_t va = vmm_resv_base(resv), size = resv->space.size;
    struct vmm *vmm = resv->vmm;

    if (resv->one_step) {
        if (vmm_free(vmm, va) == 0)
            return;
        resv->one_step = false;
        forget_maps(resv);
    } else if (resv->maps.count && vmm_unmap(vmm, va, size) != 0) {
        forget_maps(resv);
    }
    vmm_address_free(vmm, va, size);
}

static int release_all(void *arg, uint64_t handle, void *object)
{
    struct vmm_alloc **list = arg;
    struct vmm_alloc *alloc = object;

    (void)handle;
    alloc->next_zombie = *list;
    *list = alloc;
    return 0;
}

void vmm_close(struct vmm *vmm)
{
    struct vmm_alloc *list = NULL, *next;
    struct vmm_space_node *node, *after;

    if (!vmm || !kfd_is_owner(vmm->kfd))
        return;
    for (node = vmm->space_ready ? vmm_space_first(&vmm->space) : NULL; node; node = after) {
        after = vmm_space_next(node);
        if (vmm_resv_of(node) != vmm->barrier.resv)
            close_resv(vmm_resv_of(node));
    }
    vmm_userptr_close(vmm);
    vmm_handles_each(&vmm->handles, release_all, &list);
    for (; list; list = next) {
        uint_fast64_t users = atomic_exchange(&list->users, 0);

        next = list->next_zombie;
        while (users--)
            vmm_alloc_put(list);
    }
    for (list = vmm->zombies; list; list = next) {
        next = list->next_zombie;
        vmm_alloc_abandon(list);
    }
    vmm_barrier_fini(vmm);
    vmm_host_spend(vmm);
    if (vmm->space_ready)
        vmm_space_fini(&vmm->space);
    vmm_handles_fini(&vmm->handles);
    vmm_lock_destroy(&vmm->log_lock);
    vmm_lock_destroy(&vmm->space_lock);
    vmm_free_mem(vmm);
}

struct kfd *vmm_kfd(struct vmm *vmm)
{
    return vmm->kfd;
}

enum vmm_engine vmm_engine(const struct vmm *vmm)
{
    return vmm->engine ? vmm->engine->id : VMM_ENGINE_NONE;
}

uint32_t vmm_engine_can(const struct vmm *vmm)
{
    return vmm->engine ? vmm->engine->can : 0;
}

const char *vmm_engine_reason(const struct vmm *vmm)
{
    return vmm->reason;
}

uint64_t vmm_min_granularity(const struct vmm *vmm)
{
    return vmm->granularity;
}

uint64_t vmm_recommended_granularity(const struct vmm *vmm)
{
    return vmm->granularity > KFD_HUGE_PAGE_SIZE ? vmm->granularity : KFD_HUGE_PAGE_SIZE;
}
