/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "rig.h"

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

uint64_t rig_property(struct cts *c, uint32_t gpu, const char *key)
{
    const char *path = cts_text(NODES "/%u/properties", c->gpu[gpu].node);
    char buf[4096], *p;

    if (c->sys->ops->read_file(c->sys, path, buf, sizeof buf) < 0)
        return 0;
    p = strstr(buf, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

int rig_make(struct cts *c, struct rig *r, uint32_t gpu, uint64_t va)
{
    uint64_t simds = rig_property(c, gpu, "simd_per_cu ");
    uint64_t arrays = rig_property(c, gpu, "simd_arrays_per_engine ");
    uint64_t cus = simds ? rig_property(c, gpu, "simd_count ") / simds : 0;
    uint64_t waves = arrays ? rig_property(c, gpu, "array_count ") / arrays * 512 : 0;

    if (waves > cus * 40)
        waves = cus * 40;
    if (rig_property(c, gpu, "gfx_target_version ") >= 100100)
        waves = cus * 32;
    r->gpu = gpu;
    r->save = (uint32_t)rig_property(c, gpu, "cwsr_size ");
    r->ctl = (uint32_t)rig_property(c, gpu, "ctl_stack_size ");
    r->size[RIG_RING] = KiB(8);
    r->size[RIG_POINTERS] = r->size[RIG_EOP] = KiB(4);
    /* The debugger's part behind the save area. 1.11 tells no size and checks none. */
    r->size[RIG_SAVE] = (r->save + waves * 32 + 4095) & ~(uint64_t)4095;
    if (!r->save)
        r->size[RIG_SAVE] = MiB(16);
    for (int i = 0; i < RIG_BUFFERS; i++) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .va_addr = r->va[i] = va + (uint64_t)i * MiB(64),
            .size = r->size[i],
            .gpu_id = c->gpu[gpu].id,
            .flags = KFD_MEM_GTT | CTS_RW,
        };
        struct kfd_ioctl_map_memory_to_gpu_args m = {.device_ids_array_ptr = (uintptr_t)&a.gpu_id,
                                                     .n_devices = 1};
        long ret = cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);

        r->h[i] = m.handle = a.handle;
        if (ret >= 0)
            ret = cts_request(c, c->kfd, KFD_CODE_MAP_MEMORY_TO_GPU, &m);
        if (ret < 0)
            return (int)ret;
    }
    return 0;
}

struct kfd_uapi_create_queue rig_arguments(const struct cts *c, const struct rig *r)
{
    return (struct kfd_uapi_create_queue){
        .ring_base_address = r->va[RIG_RING],
        .ring_size = (uint32_t)r->size[RIG_RING],
        .write_pointer_address = r->va[RIG_POINTERS],
        .read_pointer_address = r->va[RIG_POINTERS] + 128,
        .eop_buffer_address = r->va[RIG_EOP],
        .eop_buffer_size = r->size[RIG_EOP],
        .ctx_save_restore_address = r->va[RIG_SAVE],
        .ctx_save_restore_size = r->save ? r->save : (uint32_t)r->size[RIG_SAVE],
        .ctl_stack_size = r->save ? r->ctl : 4096,
        .gpu_id = c->gpu[r->gpu].id,
        .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE,
        .queue_percentage = 100,
        .queue_priority = 7,
    };
}

long rig_create(struct cts *c, struct kfd_uapi_create_queue *q)
{
    unsigned long code =
        c->minor < 17 ? _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 88) : KFD_CODE_CREATE_QUEUE;

    return cts_request(c, c->kfd, code, q);
}
