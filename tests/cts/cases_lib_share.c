/* SPDX-License-Identifier: MIT */
/* The library's VMM layer beyond one process, one GPU and success. */
#include "library.h"

static const uint32_t no_tag[4];

struct given {
    enum vmm_engine engine;
    int fd;
};

/* Takes the memory over in a process of its own, sees what the parent wrote, and writes. */
static void take_over(struct cts *c, void *arg)
{
    const struct given *given = arg;
    struct vmm_props props;
    vmm_handle h = 0;
    uint64_t size = 0;
    struct lib l;

    lib_range(&l, c, given->engine, MiB(64));
    LIB_ROW(&l, "child: import", 0, vmm_import(l.vmm, given->fd, no_tag, &h), "used=%lld",
            lib_used(&l, l.start));
    LIB_ROW(&l, "child: properties", 0, vmm_get_props(l.vmm, h, &props, &size),
            "size=0x%llx device=%u imported=%d", (unsigned long long)size, props.device,
            props.imported);
    lib_give(&l, h, 0, l.base + MiB(4), MiB(4));
    lib_look_around(&l, "child: the parent's bytes", 0, l.base + MiB(4), MiB(4));
    lib_stamp(&l, 'C', l.base + MiB(4), MiB(4), 0);
    LIB_ROW(&l, "child: export an import", -EINVAL, vmm_export(l.vmm, h, &(int){0}), "-");
    lib_release(&l, h);
    LIB_ROW(&l, "child: unmap", 0, vmm_unmap(l.vmm, l.base + MiB(4), MiB(4)), "-");
    lib_look(&l, "child: unmapped", 0, l.base + MiB(4));
    lib_end(&l, l.start);
}

static void processes(struct cts *c, enum vmm_engine engine)
{
    struct given given = {engine, -1};
    struct lib l;
    vmm_handle h;

    lib_range(&l, c, engine, MiB(64));
    h = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    lib_give(&l, h, 'A', l.base, MiB(4));
    LIB_ROW(&l, "export", 0, vmm_export(l.vmm, h, &given.fd), "%s",
            given.fd > 2 && fcntl(given.fd, F_GETFD) == FD_CLOEXEC ? "above 2, close-on-exec"
                                                                   : "wrong");
    cts_fork(c, take_over, &given);
    lib_look_around(&l, "the child's bytes", 0, l.base, MiB(4));
    lib_release(&l, h);
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, l.base, MiB(4)), "used=%lld", lib_used(&l, l.start));
    c->sys->ops->close_fd(c->sys, given.fd);
    cts_row(c, "the descriptor closed", 0, 0, "used=%lld", lib_used(&l, l.start));
    lib_end(&l, l.start);
}

static void processes_drm(struct cts *c)
{
    processes(c, VMM_ENGINE_DRM);
}

static void processes_kfd(struct cts *c)
{
    processes(c, VMM_ENGINE_KFD);
}

static void processes_gem(struct cts *c)
{
    processes(c, VMM_ENGINE_GEM);
}

/* The same within a process: the import is another handle of the same memory. */
static void own_import(struct cts *c)
{
    vmm_handle a, b = 0;
    uint64_t offset = 9;
    struct lib l;
    int fd = -1;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    a = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    lib_give(&l, a, 'A', l.base, MiB(4));
    LIB_ROW(&l, "export by address", 0,
            vmm_export_range(l.vmm, l.base + MiB(1), MiB(1), &fd, &offset), "offset=0x%llx",
            (unsigned long long)offset);
    LIB_ROW(&l, "import", 0, vmm_import(l.vmm, fd, no_tag, &b), "%s, used=%lld",
            a == b ? "the same value" : "another value", lib_used(&l, l.start));
    c->sys->ops->close_fd(c->sys, fd);
    lib_give(&l, b, 0, l.base + MiB(32), MiB(4));
    lib_look_around(&l, "the import", 0, l.base + MiB(32), MiB(4));
    LIB_ROW(&l, "unmap the original", 0, vmm_unmap(l.vmm, l.base, MiB(4)), "-");
    lib_release(&l, a);
    lib_look_around(&l, "the original", 0, l.base, MiB(4));
    lib_look_around(&l, "the import", 0, l.base + MiB(32), MiB(4));
    lib_release(&l, b);
    LIB_ROW(&l, "unmap the import", 0, vmm_unmap(l.vmm, l.base + MiB(32), MiB(4)), "used=%lld",
            lib_used(&l, l.start));
    lib_look(&l, "the import", 0, l.base + MiB(32));
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "-");
    lib_end(&l, l.start);
}

static void both(struct lib *l, const char *step, uint64_t va)
{
    lib_look(l, cts_text("%s: first GPU", step), 0, va);
    lib_look(l, cts_text("%s: second GPU", step), 1, va);
}

/* Each GPU has its own rights at one address. */
static void peers(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t device, prot;
    } steps[] = {
        {"the first reads and writes", 0, VMM_PROT_READ_WRITE},
        {"the second reads", 1, VMM_PROT_READ},
        {"the first reads", 0, VMM_PROT_READ},
        {"the second reads and writes", 1, VMM_PROT_READ_WRITE},
        {"the first has nothing", 0, VMM_PROT_NONE},
        {"the second has nothing", 1, VMM_PROT_NONE},
    };
    const struct vmm_access all[] = {{0, VMM_PROT_READ_WRITE}, {1, VMM_PROT_READ_WRITE}};
    vmm_handle host, vram, second;
    struct lib l;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    host = lib_create(&l, "create host memory", VMM_LOCATION_HOST, 0, MiB(4));
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, l.base, MiB(4), 0, host), "-");
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool can = steps[i].prot != VMM_PROT_READ || vmm_engine_can(l.vmm) & VMM_CAN_READ_ONLY;

        lib_access(&l, steps[i].name, can ? 0 : -EOPNOTSUPP, l.base, MiB(4), steps[i].device,
                   steps[i].prot);
        if (i == 0)
            lib_stamp(&l, 'H', l.base, MiB(4), 0);
        both(&l, "then", l.base + MiB(1));
    }
    LIB_ROW(&l, "both at once", 0, vmm_set_access(l.vmm, l.base, MiB(4), all, 2), "-");
    both(&l, "then", l.base);
    vram = lib_create(&l, "create VRAM of the first", VMM_LOCATION_DEVICE, 0, MiB(4));
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, l.base + MiB(4), MiB(4), 0, vram), "-");
    LIB_ROW(&l, "both at once, unreachable", -EINVAL,
            vmm_set_access(l.vmm, l.base + MiB(4), MiB(4), all, 2), "-");
    both(&l, "nothing changed", l.base + MiB(4));
    lib_access(&l, "its own", 0, l.base + MiB(4), MiB(4), 0, VMM_PROT_READ_WRITE);
    lib_stamp(&l, 'A', l.base + MiB(4), MiB(4), 0);
    second = lib_create(&l, "create VRAM of the second", VMM_LOCATION_DEVICE, 1, MiB(2));
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, l.base + MiB(8), MiB(2), 0, second), "-");
    lib_access(&l, "its own", 0, l.base + MiB(8), MiB(2), 1, VMM_PROT_READ_WRITE);
    lib_stamp(&l, 'B', l.base + MiB(8), MiB(2), 0);
    both(&l, "host memory", l.base);
    both(&l, "VRAM of the first", l.base + MiB(4));
    both(&l, "VRAM of the second", l.base + MiB(8));
    LIB_ROW(&l, "unmap all", 0, vmm_unmap(l.vmm, l.base, MiB(10)), "-");
    both(&l, "host memory", l.base);
    both(&l, "VRAM of the first", l.base + MiB(4));
    both(&l, "VRAM of the second", l.base + MiB(8));
    lib_release(&l, host);
    lib_release(&l, vram);
    lib_release(&l, second);
    lib_end(&l, l.start);
}

/* Memory of the host, seen by the CPU at the GPU's address. */
static void host_memory(struct cts *c)
{
    struct lib l;
    vmm_handle h;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    h = lib_create(&l, "create", VMM_LOCATION_HOST, 0, MiB(4));
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, l.base, MiB(4), 0, h), "-");
    lib_access(&l, "the CPU", 0, l.base, MiB(4), VMM_HOST, VMM_PROT_READ_WRITE);
    cts_row(c, "the CPU", 0, 0, "can %s", lib_cpu_rights(l.base));
    lib_stamp_at((void *)(uintptr_t)l.base, 'H', MiB(4), 0);
    lib_access(&l, "the GPU", 0, l.base, MiB(4), 0, VMM_PROT_READ_WRITE);
    lib_look_around(&l, "stored by the CPU", 0, l.base, MiB(4));
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, l.base, MiB(4)), "-");
    lib_look_around(&l, "unmapped", 0, l.base, MiB(4));
    cts_row(c, "the CPU", 0, 0, "can %s", lib_cpu_rights(l.base));
    lib_release(&l, h);
    lib_end(&l, l.start);
}

static void one_step(struct cts *c)
{
    static const enum vmm_location places[] = {VMM_LOCATION_DEVICE, VMM_LOCATION_HOST};
    struct lib l;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(2));
    for (int i = 0; i < 2; i++) {
        const char *what = i ? "host" : "device";
        struct vmm_props props = {.location = places[i]};
        struct vmm_range r;
        uint64_t va = 0;

        LIB_ROW(&l, cts_text("alloc of the %s", what), 0, vmm_alloc(l.vmm, &props, MiB(4), &va),
                "used=%lld", lib_used(&l, l.start));
        vmm_query(l.vmm, va + MiB(1), &r);
        cts_row(c, "query", 0, 0, "kind=%d base=%s size=0x%llx read=0x%llx write=0x%llx host=%u",
                r.kind, r.base == va ? "its own" : "another", (unsigned long long)r.size,
                (unsigned long long)r.read_mask, (unsigned long long)r.write_mask, r.host_prot);
        lib_stamp(&l, 'A', va, MiB(4), 0);
        for (uint32_t gpu = 0; gpu < c->gpus; gpu++)
            lib_look_around(&l, cts_text("GPU %u", gpu), gpu, va, MiB(4));
        cts_row(c, "the CPU", 0, 0, "can %s", lib_cpu_rights(va));
        LIB_ROW(&l, "free from the middle", -EINVAL, vmm_free(l.vmm, va + MiB(2)), "-");
        LIB_ROW(&l, "free", 0, vmm_free(l.vmm, va), "used=%lld", lib_used(&l, l.start));
        for (uint32_t gpu = 0; gpu < c->gpus; gpu++)
            lib_look(&l, cts_text("freed: GPU %u", gpu), gpu, va);
        LIB_ROW(&l, "free again", -EINVAL, vmm_free(l.vmm, va), "-");
    }
    lib_end(&l, l.start);
}

/* Whichever request fails, the page tables are as before. */
static void undo(struct cts *c, enum vmm_engine engine)
{
    struct kfd_sys_fault fault = {KFD_SYS_REQUEST, .error = ENOMEM};
    struct vmm_options options = {.size = sizeof options, .engine = engine};
    struct vmm_access access = {0, VMM_PROT_READ_WRITE};
    struct kfd_sys *injector;
    vmm_handle a, b;
    bool fired;
    struct lib l;

    lib_watch(&l, c);
    if (kfd_sys_inject_new(l.sys, &injector) < 0 || kfd_open(injector, &l.kfd) < 0 ||
        vmm_open(l.kfd, &options, &l.vmm) < 0)
        cts_skip(c, "%s", kfd_error_text());
    lib_walk(&l);
    l.start = cts_available(c, 0);
    LIB_ROW(&l, "reserve", 0, vmm_reserve(l.vmm, MiB(64), 0, 0, &l.base), "-");
    a = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(2));
    b = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(2));
    lib_give(&l, a, 'A', l.base, MiB(2));
    lib_give(&l, b, 'B', l.base + MiB(2), MiB(2));
    lib_access(&l, "take access away", 0, l.base, MiB(4), 0, VMM_PROT_NONE);
    for (fault.skip = 0, fired = true; fired; fault.skip++) {
        long ret;

        kfd_sys_inject_set(injector, &fault);
        ret = vmm_set_access(l.vmm, l.base, MiB(4), &access, 1);
        kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        lib_row(&l, cts_text("give access, request %u fails", (unsigned)fault.skip),
                fired ? -ENOMEM : 0, ret, "%s", fired ? "-" : "it was not reached");
        lib_look_each(&l, 3, MiB(2));
    }
    for (fault.skip = 0, fired = true; fired; fault.skip++) {
        long ret;

        kfd_sys_inject_set(injector, &fault);
        ret = vmm_unmap(l.vmm, l.base, MiB(4));
        kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        lib_row(&l, cts_text("unmap, request %u fails", (unsigned)fault.skip), fired ? -ENOMEM : 0,
                ret, "%s", fired ? "-" : "it was not reached");
        lib_look_each(&l, 3, MiB(2));
    }
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "-");
    lib_release(&l, a);
    lib_release(&l, b);
    lib_end(&l, l.start);
    kfd_sys_destroy(injector);
}

static void undo_drm(struct cts *c)
{
    undo(c, VMM_ENGINE_DRM);
}

static void undo_kfd(struct cts *c)
{
    undo(c, VMM_ENGINE_KFD);
}

static void undo_gem(struct cts *c)
{
    undo(c, VMM_ENGINE_GEM);
}

/* What closing finds it takes away. */
static void close_left(struct cts *c)
{
    struct vmm_props props = {.device = 0};
    uint64_t va = 0;
    struct lib l;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    lib_give(&l, lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4)), 'A', l.base, MiB(4));
    lib_give(&l, lib_create(&l, "create", VMM_LOCATION_HOST, 0, MiB(4)), 'H', l.base + MiB(4),
             MiB(4));
    LIB_ROW(&l, "one-step memory", 0, vmm_alloc(l.vmm, &props, MiB(4), &va), "-");
    lib_stamp(&l, 'O', va, MiB(4), 0);
    lib_look_around(&l, "VRAM", 0, l.base, MiB(4));
    lib_look_around(&l, "host memory", 0, l.base + MiB(4), MiB(4));
    lib_look(&l, "one-step memory", 0, va);
    lib_end(&l, l.start);
    lib_look_around(&l, "VRAM", 0, l.base, MiB(4));
    lib_look_around(&l, "host memory", 0, l.base + MiB(4), MiB(4));
    lib_look(&l, "one-step memory", 0, va);
}

/* Memory that ends is told apart from everything else, and what was there before stays as it was.
 */
static void exhausted(struct cts *c)
{
    struct vmm_access access = {0, VMM_PROT_READ_WRITE};
    struct vmm_props props = {.device = 0};
    vmm_handle h[64] = {0}, again = 0;
    const char *step = "create";
    struct lib l;
    uint32_t n;
    int err = 0;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(512));
    for (n = 0; n < 64; n++) {
        uint64_t va = l.base + n * MiB(4);

        step = "create";
        if ((err = vmm_create(l.vmm, &props, MiB(4), &h[n])))
            break;
        step = "map";
        if ((err = vmm_map(l.vmm, va, MiB(4), 0, h[n])))
            break;
        step = "access";
        if ((err = vmm_set_access(l.vmm, va, MiB(4), &access, 1)))
            break;
        lib_stamp(&l, (char)('A' + n % 26), va, MiB(4), 0);
    }
    lib_requests(&l);
    /* Memory of the DRM side is not charged when it is made, and finds its place when mapped. */
    cts_row(c, "until there is none", -ENOMEM, err, "%s of number %s", step,
            vmm_engine(l.vmm) == VMM_ENGINE_GEM ? "some" : cts_text("%u", n));
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "-");
    for (uint32_t i = 0; i < 28; i += 9)
        lib_look_around(&l, cts_text("number %u", i), 0, l.base + i * MiB(4), MiB(4));
    lib_look(&l, "the one that failed", 0, l.base + n * MiB(4));
    LIB_ROW(&l, "take the first away", 0, vmm_unmap(l.vmm, l.base, MiB(4)), "-");
    LIB_ROW(&l, "release it", 0, vmm_release(l.vmm, h[0]), "-");
    LIB_ROW(&l, "create another", 0, vmm_create(l.vmm, &props, MiB(4), &again), "-");
    lib_give(&l, again, 'Z', l.base, MiB(4));
    lib_look_around(&l, "in its place", 0, l.base, MiB(4));
    LIB_ROW(&l, "unmap all", 0, vmm_unmap(l.vmm, l.base, MiB(512)), "-");
    for (uint32_t i = 1; i < 64; i++)
        if (h[i])
            vmm_release(l.vmm, h[i]);
    lib_requests(&l);
    lib_release(&l, again);
    lib_end(&l, l.start);
}

const struct cts_case cts_lib_share_cases[] = {
    {"lib_vmm.processes_drm", CTS_GEM_VA | CTS_LARGE_BAR, processes_drm},
    {"lib_vmm.processes_kfd", CTS_EXPORT | CTS_LARGE_BAR, processes_kfd},
    {"lib_vmm.processes_gem", CTS_LARGE_BAR, processes_gem},
    {"lib_vmm.own_import", CTS_LARGE_BAR, own_import},
    {"lib_vmm.peers", CTS_PEER | CTS_LARGE_BAR, peers},
    {"lib_vmm.host_memory", 0, host_memory},
    {"lib_vmm.one_step", CTS_LARGE_BAR, one_step},
    {"lib_vmm.undo_drm", CTS_GEM_VA | CTS_LARGE_BAR, undo_drm},
    {"lib_vmm.undo_kfd", CTS_EXPORT | CTS_LARGE_BAR, undo_kfd},
    {"lib_vmm.undo_gem", CTS_LARGE_BAR, undo_gem},
    {"lib_vmm.close_left", CTS_LARGE_BAR, close_left},
    {"lib_vmm.exhausted", CTS_LARGE_BAR, exhausted},
    {0},
};
