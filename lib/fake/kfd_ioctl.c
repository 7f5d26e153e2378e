/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "fake/control.h"
#include "fake/events.h"
#include "fake/handlers.h"
#include "fake/ioctl.h"
#include "fake/queues.h"
#include "fake/smi.h"
#include "fake/svm.h"
#include "kfd/uapi.h"

const struct fake_handler fake_kfd_handlers[256] = {
    [KFD_NR_GET_VERSION] = {fake_kfd_get_version, false},
    [KFD_NR_GET_PROCESS_APERTURES] = {fake_kfd_get_process_apertures, false},
    [KFD_NR_GET_PROCESS_APERTURES_NEW] = {fake_kfd_get_process_apertures_new, false},
    [KFD_NR_ACQUIRE_VM] = {fake_kfd_acquire_vm, false},
    [KFD_NR_ALLOC_MEMORY_OF_GPU] = {fake_kfd_alloc_memory_of_gpu, false},
    [KFD_NR_FREE_MEMORY_OF_GPU] = {fake_kfd_free_memory_of_gpu, false},
    [KFD_NR_MAP_MEMORY_TO_GPU] = {fake_kfd_map_memory_to_gpu, false},
    [KFD_NR_UNMAP_MEMORY_FROM_GPU] = {fake_kfd_unmap_memory_from_gpu, false},
    [KFD_NR_GET_DMABUF_INFO] = {fake_kfd_get_dmabuf_info, false},
    [KFD_NR_IMPORT_DMABUF] = {fake_kfd_import_dmabuf, false},
    [KFD_NR_AVAILABLE_MEMORY] = {fake_kfd_available_memory, false},
    [KFD_NR_EXPORT_DMABUF] = {fake_kfd_export_dmabuf, false},
    [KFD_NR_CREATE_QUEUE] = {fake_kfd_create_queue, false},
    [KFD_NR_DESTROY_QUEUE] = {fake_kfd_destroy_queue, false},
    [KFD_NR_SET_MEMORY_POLICY] = {fake_kfd_set_memory_policy, false},
    [KFD_NR_GET_CLOCK_COUNTERS] = {fake_kfd_get_clock_counters, false},
    [KFD_NR_UPDATE_QUEUE] = {fake_kfd_update_queue, false},
    [KFD_NR_CREATE_EVENT] = {fake_kfd_create_event, false},
    [KFD_NR_DESTROY_EVENT] = {fake_kfd_destroy_event, false},
    [KFD_NR_SET_EVENT] = {fake_kfd_set_event, false},
    [KFD_NR_RESET_EVENT] = {fake_kfd_reset_event, false},
    [KFD_NR_WAIT_EVENTS] = {fake_kfd_wait_events, true},
    [KFD_NR_DBG_REGISTER] = {fake_kfd_dbg_old, false},
    [KFD_NR_DBG_UNREGISTER] = {fake_kfd_dbg_old, false},
    [KFD_NR_DBG_ADDRESS_WATCH] = {fake_kfd_dbg_old, false},
    [KFD_NR_DBG_WAVE_CONTROL] = {fake_kfd_dbg_old, false},
    [KFD_NR_SET_SCRATCH_BACKING_VA] = {fake_kfd_set_scratch_backing_va, false},
    [KFD_NR_GET_TILE_CONFIG] = {fake_kfd_get_tile_config, false},
    [KFD_NR_SET_TRAP_HANDLER] = {fake_kfd_set_trap_handler, false},
    [KFD_NR_SET_CU_MASK] = {fake_kfd_set_cu_mask, false},
    [KFD_NR_GET_QUEUE_WAVE_STATE] = {fake_kfd_get_queue_wave_state, false},
    [KFD_NR_ALLOC_QUEUE_GWS] = {fake_kfd_alloc_queue_gws, false},
    [KFD_NR_SMI_EVENTS] = {fake_kfd_smi_events, false},
    [KFD_NR_SVM] = {fake_kfd_svm, false},
    [KFD_NR_SET_XNACK_MODE] = {fake_kfd_set_xnack_mode, false},
    [KFD_NR_CRIU_OP] = {fake_kfd_criu_op, false},
    [KFD_NR_RUNTIME_ENABLE] = {fake_kfd_runtime_enable, false},
    [KFD_NR_DBG_TRAP] = {fake_kfd_dbg_trap, false},
};

uint32_t fake_kfd_size(const struct fake *fake, uint32_t nr)
{
    const struct fake_kernel *k = &fake->profile->kernel;

    if (nr == 0 || nr > k->kfd_last_request || (nr < 64 && k->kfd_holes >> nr & 1))
        return 0;
    if (nr == KFD_NR_CREATE_QUEUE)
        return k->create_queue_size;
    return kfd_uapi_find(KFD_UAPI_TYPE_KFD, nr)->size;
}

int fake_kfd_dispatch(struct fake_call *call, unsigned long request, void *arg)
{
    uint32_t user = _IOC_SIZE(request), kernel = fake_kfd_size(call->fake, call->nr);
    uint32_t dir = kfd_uapi_find(KFD_UAPI_TYPE_KFD, call->nr)->dir;

    if (kernel == 0)
        return -ENOTTY;
    if (call->file == NULL)
        return -EBADF;
    if (call->nr == KFD_NR_CRIU_OP && geteuid() != 0)
        return -EACCES;
    call->handler = &fake_kfd_handlers[call->nr];
    call->in = dir & _IOC_WRITE ? user : 0;
    call->out = dir & _IOC_READ ? user : 0;
    return fake_call_run(call, user > kernel ? user : kernel, arg);
}

int fake_kfd_validate(const struct fake_call *call, const void *arg)
{
    const struct kfd_ioctl_svm_args *svm = arg;

    if (call->nr == KFD_NR_SVM &&
        call->user_size < sizeof(*svm) + sizeof(svm->attrs[0]) * (uint64_t)svm->nattr)
        return -EINVAL;
    return 0;
}
