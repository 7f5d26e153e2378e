/* SPDX-License-Identifier: MIT */
/* Which of several mistakes a request answers for, and what it leaves behind. */
#include <stdio.h>

#include "rig.h"

#define GTT (KFD_MEM_GTT | CTS_RW)
#define VRAM (KFD_MEM_VRAM | CTS_RW)
#define KFD_MEM_AQL_QUEUE 0x08000000u

static void try_alloc(struct cts *c, const char *step, uint32_t gpu_id, uint64_t size,
                      uint32_t flags, uint64_t user)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args a = {.va_addr = c->va,
                                                   .size = size,
                                                   .gpu_id = gpu_id,
                                                   .flags = flags,
                                                   .mmap_offset = user,
                                                   .handle = 77};
    struct kfd_ioctl_free_memory_of_gpu_args f;
    long ret = cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);

    if (ret < 0) {
        cts_row(c, step, CTS_ANY, ret, "handle kept=%d offset kept=%d", a.handle == 77,
                a.mmap_offset == user);
        return;
    }
    cts_row(c, step, CTS_ANY, ret, "%s", cts_handle_text(c, a.handle));
    f.handle = a.handle;
    cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU, &f);
}

static void alloc(struct cts *c)
{
    uint8_t *page = mmap(NULL, KiB(64), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t doorbells, id;
    uint64_t at = (uintptr_t)page;

    cts_open(c);
    id = c->gpu[0].id;
    doorbells = c->gpu[0].va_limit >> 46 ? KiB(8) : KiB(4);
    try_alloc(c, "no VM: size 0", id, 0, GTT, 0);
    try_alloc(c, "no VM: no type", id, KiB(4), CTS_RW, 0);
    try_alloc(c, "no VM: doorbells of a wrong size", id, 1, KFD_MEM_DOORBELL, 0);
    try_alloc(c, "no VM: MMIO of a wrong size", id, 1, KFD_MEM_MMIO_REMAP, 0);
    try_alloc(c, "no VM: userptr at 0", id, KiB(4), KFD_MEM_USERPTR, 0);
    try_alloc(c, "no VM: unknown GPU", CTS_BAD_GPU, KiB(4), 0, 0);
    for (uint32_t i = 0; i < c->gpus; i++)
        cts_acquire(c, "acquire", 0, c->gpu[i].drm, c->gpu[i].id);
    try_alloc(c, "doorbells and VRAM", id, MiB(2), KFD_MEM_DOORBELL | VRAM, 0);
    try_alloc(c, "doorbells and VRAM of the doorbells' size", id, doorbells,
              KFD_MEM_DOORBELL | VRAM, 0);
    try_alloc(c, "MMIO and VRAM", id, MiB(2), KFD_MEM_MMIO_REMAP | VRAM, 0);
    try_alloc(c, "userptr at 0 and GTT", id, KiB(4), KFD_MEM_USERPTR | GTT, 0);
    try_alloc(c, "userptr and VRAM", id, KiB(4), KFD_MEM_USERPTR | VRAM, at);
    try_alloc(c, "userptr inside a page", id, KiB(4), KFD_MEM_USERPTR | CTS_RW, at + 8);
    try_alloc(c, "userptr of a part of a page", id, 100, KFD_MEM_USERPTR | CTS_RW, at);
    mprotect(page + KiB(32), KiB(32), PROT_READ);
    try_alloc(c, "userptr over read-only pages", id, KiB(64), KFD_MEM_USERPTR | CTS_RW, at);
    try_alloc(c, "read-only userptr over read-only pages", id, KiB(32), KFD_MEM_USERPTR,
              at + KiB(32));
    munmap(page + KiB(32), KiB(32));
    try_alloc(c, "userptr over a hole", id, KiB(64), KFD_MEM_USERPTR | CTS_RW, at);
    try_alloc(c, "a doubled ring of 1 byte", id, 1, GTT | KFD_MEM_AQL_QUEUE, 0);
    try_alloc(c, "a doubled ring of one page", id, KiB(4), GTT | KFD_MEM_AQL_QUEUE, 0);
    try_alloc(c, "a doubled ring of three pages", id, KiB(12), GTT | KFD_MEM_AQL_QUEUE, 0);
    try_alloc(c, "2^63 bytes of GTT", id, UINT64_C(1) << 63, GTT, 0);
    cts_alloc(c, "a buffer that counts", 0, 0, 0, KiB(64), GTT);
    try_alloc(c, "2^64 - 64 KiB of GTT", id, UINT64_MAX - KiB(64) + 1, GTT, 0);
    try_alloc(c, "2^64 - 1 bytes of GTT", id, UINT64_MAX, GTT, 0);
    cts_alloc(c, "and one of VRAM", 0, 0, 0, KiB(64), VRAM);
    try_alloc(c, "2^64 - 64 KiB of VRAM", id, UINT64_MAX - KiB(64) + 1, VRAM, 0);
}

static void map(struct cts *c)
{
    uint32_t id, done = 0;
    uint64_t unknown;

    cts_open(c);
    id = c->gpu[0].id;
    unknown = (uint64_t)id << 32 | 9;
    cts_map(c, "no VM: unknown handle", CTS_ANY, unknown, 0, CTS_IDS(id));
    cts_map(c, "no VM: unknown handle, array at 8", CTS_ANY, unknown, 0,
            (const uint32_t *)(uintptr_t)8, 1);
    cts_map(c, "no VM: unknown handle, all done", CTS_ANY, unknown, 1, CTS_IDS(id));
    cts_unmap(c, "no VM: unmap an unknown handle", CTS_ANY, unknown, 0, CTS_IDS(id));
    cts_export(c, "no VM: export an unknown handle", CTS_ANY, unknown);
    cts_acquire(c, "acquire", 0, c->gpu[0].drm, id);
    cts_map(c, "more done than devices, array at 8", CTS_ANY, unknown, 3,
            (const uint32_t *)(uintptr_t)8, 2);
    done = cts_map(c, "unknown handle and unknown GPU", CTS_ANY, unknown, 0, CTS_IDS(CTS_BAD_GPU));
    cts_row(c, "done", 0, 0, "%u", done);
}

static int open_node(struct cts *c, const char *path, int flags)
{
    return c->sys->ops->open_path(c->sys, path, flags | O_CLOEXEC);
}

static void views(struct cts *c)
{
    const char *node = cts_text("/dev/dri/renderD%u", c->gpu[0].minor);
    uint64_t at = 0, doorbells;
    int drm, reader, writer, kfd;
    uint32_t gem;
    size_t slice;

    cts_start(c);
    drm = c->gpu[0].drm;
    slice = c->gpu[0].va_limit >> 46 ? KiB(8) : KiB(4);
    doorbells = (uint64_t)3 << 62 | (uint64_t)c->gpu[0].id << 46;
    cts_alloc_mmap(c, "alloc", 0, 0, 0, MiB(2), GTT, &at);
#define VIEW(step, fd, offset, size, prot, flags) \
    cts_munmap(c, cts_mmap(c, step, CTS_ANY, fd, offset, size, prot, flags), size)
    VIEW("private and read-only", drm, at, MiB(2), PROT_READ, MAP_PRIVATE);
    VIEW("shared and executable", drm, at, MiB(2), PROT_READ | PROT_EXEC, MAP_SHARED);
    VIEW("part of a page", drm, at, 100, PROT_READ, MAP_SHARED);
    VIEW("of no size", drm, at, 0, PROT_READ, MAP_SHARED);
    VIEW("inside a page", drm, at + 8, KiB(4), PROT_READ, MAP_SHARED);
    reader = open_node(c, node, O_RDONLY);
    writer = open_node(c, node, O_WRONLY);
    cts_row(c, "nodes to read and to write", 0, reader < 0 ? reader : writer, "-");
    gem = cts_gem_create(c, "create through the reader", CTS_ANY, reader, MiB(2),
                         AMDGPU_GEM_DOMAIN_GTT);
    at = cts_gem_mmap(c, "its offset", CTS_ANY, reader, gem);
    VIEW("reader: read", reader, at, MiB(2), PROT_READ, MAP_SHARED);
    VIEW("reader: write", reader, at, MiB(2), PROT_READ | PROT_WRITE, MAP_SHARED);
    gem = cts_gem_create(c, "create through the writer", CTS_ANY, writer, MiB(2),
                         AMDGPU_GEM_DOMAIN_GTT);
    at = cts_gem_mmap(c, "its offset", CTS_ANY, writer, gem);
    VIEW("writer: write", writer, at, MiB(2), PROT_WRITE, MAP_SHARED);
    VIEW("writer: read", writer, at, MiB(2), PROT_READ, MAP_SHARED);
    VIEW("doorbells, private and read-only", c->kfd, doorbells, slice, PROT_READ, MAP_PRIVATE);
    VIEW("doorbells", c->kfd, doorbells, slice, PROT_READ | PROT_WRITE, MAP_SHARED);
    VIEW("half the doorbells", c->kfd, doorbells, slice / 2, PROT_READ | PROT_WRITE, MAP_SHARED);
    VIEW("doorbells, a byte less", c->kfd, doorbells, slice - 1, PROT_READ | PROT_WRITE,
         MAP_SHARED);
    VIEW("doorbells at an offset", c->kfd, doorbells + KiB(4), slice, PROT_READ | PROT_WRITE,
         MAP_SHARED);
    kfd = open_node(c, "/dev/kfd", O_RDONLY);
    VIEW("doorbells to write through a reader", kfd, doorbells, slice, PROT_READ | PROT_WRITE,
         MAP_SHARED);
    VIEW("doorbells to read through a reader", kfd, doorbells, slice, PROT_READ, MAP_SHARED);
    VIEW("trap memory of a GPU", kfd, (uint64_t)1 << 62 | (uint64_t)c->gpu[0].id << 46, KiB(8),
         PROT_READ, MAP_SHARED);
#undef VIEW
    cts_close(c, kfd);
    cts_close(c, writer);
    cts_close(c, reader);
}

static void queue(struct cts *c)
{
    struct kfd_ioctl_set_cu_mask_args mask = {.num_cu_mask = 32, .cu_mask_ptr = 8};
    struct kfd_ioctl_get_queue_wave_state_args wave = {0};
    struct kfd_ioctl_alloc_queue_gws_args gws = {0};
    struct kfd_uapi_runtime_enable runtime = {.mode_mask = 1};
    struct kfd_ioctl_update_queue_args u = {.queue_percentage = 100, .queue_priority = 7};
    struct kfd_ioctl_destroy_queue_args d = {0};
    struct kfd_uapi_create_queue q;
    uint32_t bits[32] = {1};
    struct rig r;
    long ret;

    cts_start(c);
    cts_row(c, "buffers", 0, rig_make(c, &r, 0, c->va), "-");
    q = rig_arguments(c, &r);
    q.queue_percentage = 101;
    q.queue_priority = 16;
    q.ring_base_address = UINT64_MAX;
    cts_row(c, "percentage before the ring", CTS_ANY, rig_create(c, &q), "-");
    q.queue_percentage = 100;
    q.queue_priority = 7;
    q.ring_size = 3000;
    cts_row(c, "the ring's address before its size", CTS_ANY, rig_create(c, &q), "-");
    q = rig_arguments(c, &r);
    q.ring_size = 512;
    q.read_pointer_address = UINT64_MAX;
    ret = rig_create(c, &q);
    cts_row(c, "a small ring is raised by then", CTS_ANY, ret, "%u", q.ring_size);
    q = rig_arguments(c, &r);
    q.queue_type = 9;
    q.gpu_id = CTS_BAD_GPU;
    cts_row(c, "the type before the GPU", CTS_ANY, rig_create(c, &q), "-");
    q = rig_arguments(c, &r);
    ret = rig_create(c, &q);
    cts_row(c, "create", 0, ret, "id=%u", q.queue_id);
    mask.queue_id = u.queue_id = wave.queue_id = gws.queue_id = d.queue_id = q.queue_id;
#define ASK(step, code, arg) cts_row(c, step, CTS_ANY, cts_request(c, c->kfd, code, arg), "-")
    ASK("a CU mask at 8", KFD_CODE_SET_CU_MASK, &mask);
    mask.cu_mask_ptr = (uintptr_t)bits;
    ASK("a CU mask", KFD_CODE_SET_CU_MASK, &mask);
    mask.num_cu_mask = 2048;
    ASK("a CU mask of 2048 bits", KFD_CODE_SET_CU_MASK, &mask);
    mask.num_cu_mask = 0;
    ASK("a CU mask of no bits", KFD_CODE_SET_CU_MASK, &mask);
    mask.num_cu_mask = 32;
    mask.queue_id = 99;
    ASK("a CU mask of an unknown queue", KFD_CODE_SET_CU_MASK, &mask);
    ASK("the wave state of a live queue", KFD_CODE_GET_QUEUE_WAVE_STATE, &wave);
    ASK("no GWS for a queue that has none", KFD_CODE_ALLOC_QUEUE_GWS, &gws);
    gws.num_gws = 1;
    ASK("GWS", KFD_CODE_ALLOC_QUEUE_GWS, &gws);
    if (c->minor >= 12)
        ASK("runtime on with a live queue", KFD_CODE_RUNTIME_ENABLE, &runtime);
    u.ring_base_address = r.va[RIG_RING];
    u.ring_size = (uint32_t)r.size[RIG_RING];
    u.queue_percentage = 101;
    ASK("update: percentage 101", KFD_CODE_UPDATE_QUEUE, &u);
    u.queue_percentage = 100;
    u.ring_size = 3000;
    ASK("update: 3000 bytes", KFD_CODE_UPDATE_QUEUE, &u);
    u.ring_size = (uint32_t)r.size[RIG_RING];
    u.ring_base_address = c->va + MiB(48);
    ASK("update: a ring that is not mapped", KFD_CODE_UPDATE_QUEUE, &u);
    u.ring_base_address = r.va[RIG_RING];
    ASK("update: the same ring", KFD_CODE_UPDATE_QUEUE, &u);
    u.ring_base_address = 0;
    ASK("update: no ring", KFD_CODE_UPDATE_QUEUE, &u);
    ASK("the wave state of a queue without ring", KFD_CODE_GET_QUEUE_WAVE_STATE, &wave);
    cts_unmap(c, "unmap the ring", CTS_ANY, r.h[RIG_RING], 0, CTS_IDS(c->gpu[0].id));
    ASK("destroy", KFD_CODE_DESTROY_QUEUE, &d);
    cts_unmap(c, "unmap the pointers", CTS_ANY, r.h[RIG_POINTERS], 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap the save area", CTS_ANY, r.h[RIG_SAVE], 0, CTS_IDS(c->gpu[0].id));
#undef ASK
}

static void share(struct cts *c)
{
    uint8_t *page = mmap(NULL, KiB(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uintptr_t)page, h, in;
    struct kfd_ioctl_get_dmabuf_info_args info = {0};
    uint32_t id;
    long ret;
    int fd;

    cts_start(c);
    id = c->gpu[0].id;
    h = cts_alloc_mmap(c, "a userptr", 0, 0, c->va, KiB(4), KFD_MEM_USERPTR | CTS_RW, &at);
    cts_export(c, "export it", c->minor < 12 ? CTS_ANY : -EPERM, h);
    h = cts_alloc(c, "doorbells", 0, 0, c->va, c->gpu[0].va_limit >> 46 ? KiB(8) : KiB(4),
                  KFD_MEM_DOORBELL | CTS_RW);
    fd = cts_export(c, "export them", CTS_ANY, h);
    if (fd >= 0) {
        cts_info(c, "info of them", CTS_ANY, fd);
        /* A KFD import of them is taken, and the two frees then free the same memory of the
         * kernel's, which crashes sooner or later. */
        cts_gem_close(c, "close", CTS_ANY, c->gpu[0].drm,
                      cts_prime(c, "PRIME import of them", CTS_ANY, c->gpu[0].drm, fd));
        cts_close(c, fd);
    }
    cts_free(c, "free them", CTS_ANY, h);
    h = cts_alloc(c, "GTT", 0, 0, 0, MiB(2), GTT);
    fd = cts_export(c, "export it", CTS_ANY, h);
    if (fd < 0)
        return;
    in = cts_import(c, "import at an address inside a page", CTS_ANY, id, fd, c->va + 8);
    cts_map(c, "map that", CTS_ANY, in, 0, CTS_IDS(id));
    cts_import(c, "import on GPU 0", CTS_ANY, 0, fd, c->va);
    info.dmabuf_fd = (uint32_t)fd;
    info.metadata_ptr = 8;
    info.metadata_size = 100;
    ret = cts_request(c, c->kfd, KFD_CODE_GET_DMABUF_INFO, &info);
    cts_row(c, "info with metadata at 8", CTS_ANY, ret, "size=0x%llx metadata=%u",
            (unsigned long long)info.size, info.metadata_size);
    cts_close(c, fd);
}

static void wait_events(struct cts *c, const char *step, struct kfd_ioctl_wait_events_args *w)
{
    long ret = cts_request(c, c->kfd, KFD_CODE_WAIT_EVENTS, w);

    cts_row(c, step, CTS_ANY, ret, "result=%u", w->wait_result);
}

static void events(struct cts *c)
{
    struct kfd_event_data e[3] = {0};
    struct kfd_ioctl_wait_events_args w = {.num_events = 2, .wait_for_all = 1};
    struct kfd_ioctl_create_event_args a = {.auto_reset = 1};
    struct kfd_ioctl_set_event_args set = {0};
    uint8_t *two = mmap(NULL, KiB(8), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long ret;

    cts_open(c);
    munmap(two + KiB(4), KiB(4));
    ret = cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, &a);
    cts_row(c, "create", 0, ret, "id=%u", a.event_id);
    set.event_id = e[0].event_id = e[1].event_id = a.event_id;
    w.events_ptr = (uintptr_t)e;
    cts_row(c, "set", 0, cts_request(c, c->kfd, KFD_CODE_SET_EVENT, &set), "-");
    wait_events(c, "all of one event twice", &w);
    w.wait_for_all = 0;
    wait_events(c, "any of it, afterwards", &w);
    cts_row(c, "set", 0, cts_request(c, c->kfd, KFD_CODE_SET_EVENT, &set), "-");
    e[1].event_id = 77;
    wait_events(c, "it and an unknown one", &w);
    w.num_events = 1;
    wait_events(c, "was it taken by then", &w);
    memcpy(two + KiB(4) - sizeof e[0], e, sizeof e[0]);
    w.num_events = 2;
    w.events_ptr = (uintptr_t)two + KiB(4) - sizeof e[0];
    cts_row(c, "set", 0, cts_request(c, c->kfd, KFD_CODE_SET_EVENT, &set), "-");
    wait_events(c, "an array that ends early", &w);
    w.num_events = 1;
    wait_events(c, "was it taken by then", &w);
}

/* Synchronisation objects: what can be asked of one that no submission ever touches. */
static void syncobj(struct cts *c)
{
    struct drm_syncobj_create a = {.flags = 2};
    struct drm_syncobj_destroy d = {0};
    struct drm_syncobj_timeline_wait w = {0};
    uint64_t point = 0;
    uint32_t handle = 0;
    int drm;
    long ret;

    cts_start(c);
    drm = c->gpu[0].drm;
    ret = cts_request(c, drm, DRM_CODE_SYNCOBJ_CREATE, &a);
    cts_row(c, "create with an unknown flag", CTS_ANY, ret, "-");
    a.flags = 0;
    ret = cts_request(c, drm, DRM_CODE_SYNCOBJ_CREATE, &a);
    cts_row(c, "create", CTS_ANY, ret, "%u", a.handle);
    handle = a.handle;
    a.flags = 1;
    ret = cts_request(c, drm, DRM_CODE_SYNCOBJ_CREATE, &a);
    cts_row(c, "create signalled", CTS_ANY, ret, "%u", a.handle);
    w.points = (uintptr_t)&point;
    w.handles = (uintptr_t)&handle;
#define WAIT(step)                                                  \
    (ret = cts_request(c, drm, DRM_CODE_SYNCOBJ_TIMELINE_WAIT, &w), \
     cts_row(c, step, CTS_ANY, ret, "first=%u", w.first_signaled))
    WAIT("wait for none");
    w.count_handles = 1;
    w.flags = 1 << 7;
    WAIT("an unknown flag");
    w.flags = 0;
    WAIT("what was never submitted");
    w.flags = 2;
    WAIT("what is to be submitted");
    w.flags = 4;
    WAIT("what is to be available");
    handle = a.handle;
    w.flags = 0;
    WAIT("the signalled one");
    point = 1;
    WAIT("its point 1");
    w.flags = 2;
    WAIT("its point 1, to be submitted");
    handle = 77;
    WAIT("an unknown one");
    w.handles = 8;
    WAIT("handles at 8");
#undef WAIT
    d.handle = a.handle;
    d.pad = 1;
    cts_row(c, "destroy with padding", CTS_ANY, cts_request(c, drm, DRM_CODE_SYNCOBJ_DESTROY, &d),
            "-");
    d.pad = 0;
    cts_row(c, "destroy", CTS_ANY, cts_request(c, drm, DRM_CODE_SYNCOBJ_DESTROY, &d), "-");
    cts_row(c, "destroy again", CTS_ANY, cts_request(c, drm, DRM_CODE_SYNCOBJ_DESTROY, &d), "-");
    a.flags = 0;
    ret = cts_request(c, drm, DRM_CODE_SYNCOBJ_CREATE, &a);
    cts_row(c, "the number comes back", CTS_ANY, ret, "%u", a.handle);
}

/* The privilege is asked for before the argument is read. */
static void privilege(struct cts *c)
{
    cts_open(c);
    cts_row(c, "root: CRIU at 8", -EFAULT,
            cts_request(c, c->kfd, KFD_CODE_CRIU_OP, (void *)(uintptr_t)8), "-");
    if (setresuid(65534, 65534, 65534) != 0)
        cts_skip(c, "not root");
    cts_row(c, "CRIU at 8", -EACCES, cts_request(c, c->kfd, KFD_CODE_CRIU_OP, (void *)(uintptr_t)8),
            "-");
    cts_row(c, "nothing else asks", CTS_ANY,
            cts_request(c, c->kfd, KFD_CODE_DBG_TRAP, (void *)(uintptr_t)8), "-");
}

const struct cts_case cts_order_cases[] = {
    {"order.alloc", 0, alloc},
    {"order.map", 0, map},
    {"order.views", 0, views},
    {"order.queue", 0, queue},
    {"order.share", 0, share},
    {"order.events", CTS_NO_GPU, events},
    {"order.syncobj", 0, syncobj},
    {"order.privilege", CTS_NO_GPU, privilege},
    {0},
};
