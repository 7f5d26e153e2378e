/* SPDX-License-Identifier: MIT */
#include "kfd/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "kfd/access.h"
#include "kfd/error.h"
#include "kfd/object.h"
#include "kfd/process.h"
#include "kfd/request.h"
#include "kfd/uapi.h"
#include "kfd/poison.h"

#define PATH_SIZE 32

/* What hangs on a system's state pointer; under the opening lock. */
struct registry {
    struct kfd_sys_state base;
    uint32_t generation;
    struct kfd_vm *vms;
};

static struct registry **registry_of(struct kfd_sys *sys)
{
    return sys->ops->state ? (struct registry **)sys->ops->state(sys) : NULL;
}

static void node_path(uint32_t minor, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "/dev/dri/renderD%u", minor);
}

static void vm_free(struct kfd_sys *sys, struct kfd_vm *vm)
{
    char path[PATH_SIZE];

    node_path(vm->minor, path);
    kfd_fd_close_node(sys, vm->fd, path);
    /* A child may have inherited the lock locked. */
    if (vm->generation == kfd_process_generation())
        pthread_mutex_destroy(&vm->lock);
    free(vm->gem_refs);
    free(vm);
}

static void registry_drop(struct kfd_sys *sys, struct registry *reg)
{
    while (reg->vms) {
        struct kfd_vm *vm = reg->vms;

        reg->vms = vm->next;
        vm->next = NULL;
        vm->kept = false;
        if (vm->users == 0)
            vm_free(sys, vm);
    }
    free(reg);
}

static void registry_release(struct kfd_sys *sys, struct kfd_sys_state *state)
{
    kfd_process_lock();
    registry_drop(sys, (struct registry *)state);
    kfd_process_unlock();
}

void kfd_vm_forget_parent(struct kfd_sys *sys)
{
    struct registry **slot = registry_of(sys);

    if (slot && *slot && (*slot)->generation != kfd_process_generation()) {
        registry_drop(sys, *slot);
        *slot = NULL;
    }
}

/* Made before the first file is acquired, so that keeping one cannot fail. */
static int make_registry(struct kfd_sys *sys)
{
    struct registry **slot = registry_of(sys);

    if (!slot || *slot)
        return 0;
    *slot = calloc(1, sizeof(**slot));
    if (!*slot)
        return kfd_fail(-ENOMEM, "no memory for render nodes");
    (*slot)->base.release = registry_release;
    (*slot)->generation = kfd_process_generation();
    return 0;
}

static struct kfd_vm *find_kept(struct kfd_sys *sys, uint32_t gpu_id)
{
    struct registry **slot = registry_of(sys);

    if (!slot)
        return NULL;
    for (struct kfd_vm *vm = (*slot)->vms; vm; vm = vm->next) {
        if (vm->gpu_id == gpu_id)
            return vm;
    }
    return NULL;
}

/* Containers can give a node another node's name; acquiring the wrong one would corrupt memory
 * without a word, so compare the device number where the system can tell it. */
static int check_number(struct kfd_sys *sys, const char *path, uint32_t minor)
{
    struct kfd_sys_stat st;

    if (!sys->ops->stat_path || sys->ops->stat_path(sys, path, &st) < 0)
        return 0;
    if (st.device_minor != minor)
        return kfd_fail(-ENODEV, "%s is device %u:%u, not render node %u", path, st.device_major,
                        st.device_minor, minor);
    return 0;
}

int kfd_vm_get(struct kfd_sys *sys, uint32_t gpu_id, uint32_t minor, struct kfd_vm **out)
{
    char path[PATH_SIZE];
    int ret = make_registry(sys);
    struct kfd_vm *vm;

    if (ret < 0)
        return ret;
    vm = find_kept(sys, gpu_id);
    if (vm) {
        vm->users++;
        *out = vm;
        return 0;
    }
    node_path(minor, path);
    vm = calloc(1, sizeof(*vm));
    if (!vm)
        return kfd_fail(-ENOMEM, "no memory for %s", path);
    ret = kfd_fd_lift(sys, sys->ops->open_path(sys, path, O_RDWR | O_CLOEXEC));
    if (ret < 0) {
        kfd_access_explain(sys, path, ret);
        goto out_free;
    }
    vm->fd = ret;
    ret = check_number(sys, path, minor);
    if (ret < 0)
        goto out_close;
    vm->gpu_id = gpu_id;
    vm->minor = minor;
    vm->users = 1;
    vm->generation = kfd_process_generation();
    pthread_mutex_init(&vm->lock, NULL);
    *out = vm;
    return 0;

out_close:
    sys->ops->close_fd(sys, vm->fd);
out_free:
    free(vm);
    return ret;
}

void kfd_vm_keep(struct kfd_sys *sys, struct kfd_vm *vm)
{
    struct registry **slot = registry_of(sys);

    if (!slot || vm->kept)
        return;
    vm->next = (*slot)->vms;
    (*slot)->vms = vm;
    vm->kept = true;
}

/* KFD keeps the file open until the process ends, so what is left in it would stay as long.
 * KFD 1.11 crashes when it unmaps, then at the latest, an import whose GEM handle was closed: there
 * the handles stay, counts and all. */
static void drop_contents(struct kfd *kfd, struct kfd_vm *vm)
{
    if (!kfd_has(kfd, KFD_CAP_EXPORT_DMABUF))
        return;
    for (uint32_t gem = 0; gem < vm->gem_room; gem++) {
        struct drm_gem_close args = {.handle = gem};

        if (vm->gem_refs[gem])
            kfd_request(kfd, vm->fd, DRM_CODE_GEM_CLOSE, &args);
    }
    free(vm->gem_refs);
    vm->gem_refs = NULL;
    vm->gem_room = 0;
    if (vm->syncobj) {
        struct drm_syncobj_destroy args = {.handle = vm->syncobj};

        kfd_request(kfd, vm->fd, DRM_CODE_SYNCOBJ_DESTROY, &args);
        vm->syncobj = 0;
        vm->point = vm->waited = 0;
    }
}

void kfd_vm_put(struct kfd *kfd, struct kfd_vm *vm)
{
    if (--vm->users)
        return;
    if (vm->generation == kfd_process_generation())
        drop_contents(kfd, vm);
    if (!vm->kept)
        vm_free(kfd->sys, vm);
}
