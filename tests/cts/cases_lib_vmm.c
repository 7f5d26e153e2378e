/* SPDX-License-Identifier: MIT */
/*
 * The library's VMM layer on one GPU, with each engine that the kernel has: after every change the
 * page tables are read, those of the neighbours as well.
 */
#include "library.h"

static void open_engines(struct cts *c)
{
    static const enum vmm_engine engines[] = {VMM_ENGINE_AUTO, VMM_ENGINE_DRM, VMM_ENGINE_KFD,
                                              VMM_ENGINE_GEM};
    struct lib l;

    lib_open(&l, c);
    for (unsigned i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        struct vmm_options options = {.size = sizeof options, .engine = engines[i]};
        bool has = !c->gpus || engines[i] == VMM_ENGINE_AUTO || engines[i] == VMM_ENGINE_GEM ||
                   c->minor >= (engines[i] == VMM_ENGINE_DRM ? 15 : 12);
        long ret = vmm_open(l.kfd, &options, &l.vmm);

        lib_row(&l, cts_text("open, engine %s", vmm_engine_name(engines[i])), has ? 0 : -EOPNOTSUPP,
                ret, "%s", ret ? kfd_error_text() : "-");
        if (ret)
            continue;
        cts_row(c, "what it is", 0, 0, "%s can=0x%x granularity=%llu/%llu reason=%s",
                vmm_engine_name(vmm_engine(l.vmm)), vmm_engine_can(l.vmm),
                (unsigned long long)vmm_min_granularity(l.vmm),
                (unsigned long long)vmm_recommended_granularity(l.vmm), vmm_engine_reason(l.vmm));
        vmm_close(l.vmm);
        lib_row(&l, "close", 0, 0, "-");
    }
    kfd_close(l.kfd);
}

/* Addresses cost nothing and lie where every GPU reaches them. */
static void space(struct cts *c)
{
    static const struct {
        const char *name;
        uint64_t size, align;
        long want;
    } calls[] = {
        {"4 KiB", 4096, 0, 0},
        {"2 MiB", MiB(2), 0, 0},
        {"6 MiB aligned to 32 MiB", MiB(6), MiB(32), 0},
        {"512 MiB", MiB(512), 0, 0},
        {"nothing", 0, 0, -EINVAL},
        {"no multiple of the page", 5000, 0, -EINVAL},
        {"aligned to no power of two", MiB(2), MiB(3), -EINVAL},
        {"more than the GPU has", (uint64_t)1 << 48, 0, -ENOMEM},
    };
    uint64_t got[8], va;
    struct lib l;

    lib_vmm(&l, c, VMM_ENGINE_AUTO);
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        uint64_t size = calls[i].size, align = calls[i].align;
        bool right = false;
        long ret;

        if (!align)
            align = size < MiB(2) ? 4096 : MiB(2);
        ret = vmm_reserve(l.vmm, size, calls[i].align, 0, &got[i]);
        if (!ret)
            right = got[i] % align == 0 && got[i] + size - 1 <= c->gpu[0].va_limit;
        lib_row(&l, cts_text("reserve %s", calls[i].name), calls[i].want, ret, "%s",
                ret     ? "-"
                : right ? "aligned, in reach"
                        : "wrong place");
    }
    LIB_ROW(&l, "free a part", -EINVAL, vmm_address_free(l.vmm, got[3], MiB(2)), "-");
    LIB_ROW(&l, "free from the middle", -EINVAL, vmm_address_free(l.vmm, got[3] + MiB(2), MiB(510)),
            "-");
    LIB_ROW(&l, "reserve at a taken hint", 0, vmm_reserve(l.vmm, MiB(2), 0, got[3], &va), "%s",
            va == got[3] ? "there" : "elsewhere");
    LIB_ROW(&l, "free", 0, vmm_address_free(l.vmm, got[3], MiB(512)), "-");
    LIB_ROW(&l, "free again", -EINVAL, vmm_address_free(l.vmm, got[3], MiB(512)), "-");
    LIB_ROW(&l, "reserve at a free hint", 0, vmm_reserve(l.vmm, MiB(2), 0, got[3], &va), "%s",
            va == got[3] ? "there" : "elsewhere");
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "-");
    lib_end(&l, cts_available(c, 0));
}

/* A handle from its making to its end, between two neighbours. */
static void life(struct cts *c, enum vmm_engine engine)
{
    struct vmm_props props;
    vmm_handle a, b, n;
    uint64_t size, va;
    struct lib l;

    lib_range(&l, c, engine, MiB(64));
    va = l.base + MiB(2);
    b = lib_create(&l, "create the neighbours", VMM_LOCATION_DEVICE, 0, MiB(2));
    n = lib_create(&l, "create the neighbours", VMM_LOCATION_DEVICE, 0, MiB(2));
    lib_give(&l, b, 'B', l.base, MiB(2));
    lib_give(&l, n, 'N', va + MiB(4), MiB(2));
    lib_release(&l, b);
    lib_release(&l, n);
    a = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    LIB_ROW(&l, "properties", 0, vmm_get_props(l.vmm, a, &props, &size),
            "size=0x%llx location=%d device=%u imported=%d", (unsigned long long)size,
            props.location, props.device, props.imported);
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, va, MiB(4), 0, a), "-");
    lib_look_around(&l, "without access", 0, va, MiB(4));
    lib_access(&l, "give access", 0, va, MiB(4), 0, VMM_PROT_READ_WRITE);
    lib_stamp(&l, 'A', va, MiB(4), 0);
    lib_look_around(&l, "with access", 0, va, MiB(4));
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, va, MiB(4)), "-");
    lib_look_around(&l, "unmapped", 0, va, MiB(4));
    LIB_ROW(&l, "map elsewhere", 0, vmm_map(l.vmm, va + MiB(16), MiB(4), 0, a), "-");
    lib_access(&l, "give access", 0, va + MiB(16), MiB(4), 0, VMM_PROT_READ_WRITE);
    lib_look_around(&l, "elsewhere", 0, va + MiB(16), MiB(4));
    LIB_ROW(&l, "release the handle", 0, vmm_release(l.vmm, a), "used=%lld", lib_used(&l, l.start));
    lib_look(&l, "the mapping stays", 0, va + MiB(16));
    LIB_ROW(&l, "release again", -EINVAL, vmm_release(l.vmm, a), "-");
    LIB_ROW(&l, "retain by address", 0, vmm_retain(l.vmm, va + MiB(17), &n), "%s",
            n == a ? "the same value" : "another");
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, va + MiB(16), MiB(4)), "used=%lld",
            lib_used(&l, l.start));
    LIB_ROW(&l, "release what was retained", 0, vmm_release(l.vmm, n), "used=%lld",
            lib_used(&l, l.start));
    LIB_ROW(&l, "map what is gone", -EINVAL, vmm_map(l.vmm, va, MiB(4), 0, a), "-");
    LIB_ROW(&l, "free the addresses", -EINVAL, vmm_address_free(l.vmm, l.base, MiB(64)), "-");
    lib_look(&l, "the neighbour before", 0, va - 4096);
    lib_look(&l, "the neighbour behind", 0, va + MiB(4));
    LIB_ROW(&l, "unmap both", 0, vmm_unmap(l.vmm, l.base, MiB(64)), "-");
    lib_look(&l, "the neighbour before", 0, va - 4096);
    lib_look(&l, "the neighbour behind", 0, va + MiB(4));
    LIB_ROW(&l, "free the addresses", 0, vmm_address_free(l.vmm, l.base, MiB(64)), "-");
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "-");
    lib_end(&l, l.start);
}

static void life_drm(struct cts *c)
{
    life(c, VMM_ENGINE_DRM);
}

static void life_kfd(struct cts *c)
{
    life(c, VMM_ENGINE_KFD);
}

static void life_gem(struct cts *c)
{
    life(c, VMM_ENGINE_GEM);
}

/* One handle at two addresses, written through the one and seen through the other. */
static void alias(struct cts *c, enum vmm_engine engine)
{
    struct lib l;
    vmm_handle h;

    lib_range(&l, c, engine, MiB(64));
    h = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    lib_give(&l, h, 'A', l.base, MiB(4));
    lib_give(&l, h, 0, l.base + MiB(32), MiB(4));
    lib_release(&l, h);
    lib_look_around(&l, "first", 0, l.base, MiB(4));
    lib_look_around(&l, "second", 0, l.base + MiB(32), MiB(4));
    LIB_ROW(&l, "unmap the first", 0, vmm_unmap(l.vmm, l.base, MiB(4)), "-");
    lib_look(&l, "first", 0, l.base);
    lib_look_around(&l, "second", 0, l.base + MiB(32), MiB(4));
    LIB_ROW(&l, "unmap the second", 0, vmm_unmap(l.vmm, l.base + MiB(32), MiB(4)), "-");
    lib_look(&l, "second", 0, l.base + MiB(32));
    lib_end(&l, l.start);
}

static void alias_drm(struct cts *c)
{
    alias(c, VMM_ENGINE_DRM);
}

static void alias_kfd(struct cts *c)
{
    alias(c, VMM_ENGINE_KFD);
}

static void alias_gem(struct cts *c)
{
    alias(c, VMM_ENGINE_GEM);
}

/* Parts of a handle; an engine that cannot says so and changes nothing. */
static void offsets(struct cts *c)
{
    static const struct {
        const char *name;
        uint64_t at, size, offset;
    } parts[] = {
        {"2 MiB from 4 MiB", MiB(2), MiB(2), MiB(4)},
        {"3 pages from an odd place", MiB(4), 0x3000, 0x5000},
        {"4 MiB at an address off the 2 MiB", MiB(17), MiB(4), MiB(1)},
        {"the last page", MiB(32), 0x1000, MiB(8) - 0x1000},
    };
    struct lib l;
    vmm_handle h;
    long want;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    want = vmm_engine_can(l.vmm) & VMM_CAN_OFFSET ? 0 : -EOPNOTSUPP;
    h = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(8));
    lib_give(&l, h, 'A', l.base + MiB(48), MiB(8));
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t va = l.base + parts[i].at;

        LIB_ROW(&l, cts_text("map %s", parts[i].name), want,
                vmm_map(l.vmm, va, parts[i].size, parts[i].offset, h), "-");
        if (!want)
            lib_access(&l, "give access", 0, va, parts[i].size, 0, VMM_PROT_READ_WRITE);
        lib_look_around(&l, parts[i].name, 0, va, parts[i].size);
    }
    LIB_ROW(&l, "past its end", -EINVAL, vmm_map(l.vmm, l.base + MiB(40), MiB(2), MiB(7), h), "-");
    if (!want) {
        LIB_ROW(&l, "unmap the 3 pages", 0, vmm_unmap(l.vmm, l.base + MiB(4), 0x3000), "-");
        lib_look_around(&l, "3 pages", 0, l.base + MiB(4), 0x3000);
        LIB_ROW(&l, "unmap a part of a part", -EINVAL, vmm_unmap(l.vmm, l.base + MiB(17), MiB(2)),
                "-");
        lib_look_around(&l, "it is whole", 0, l.base + MiB(17), MiB(4));
    }
    lib_look_around(&l, "the whole handle", 0, l.base + MiB(48), MiB(8));
    LIB_ROW(&l, "unmap everything", 0, vmm_unmap(l.vmm, l.base, MiB(64)), "-");
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        lib_look(&l, parts[i].name, 0, l.base + parts[i].at);
    lib_release(&l, h);
    lib_end(&l, l.start);
}

/* One mapping's rights, for the GPU and for the CPU. */
static void rights(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t device, prot;
    } steps[] = {
        {"the GPU reads and writes", 0, VMM_PROT_READ_WRITE},
        {"the GPU only reads", 0, VMM_PROT_READ},
        {"the CPU only reads", VMM_HOST, VMM_PROT_READ},
        {"the CPU reads and writes", VMM_HOST, VMM_PROT_READ_WRITE},
        {"the GPU has nothing", 0, VMM_PROT_NONE},
        {"the GPU reads and writes again", 0, VMM_PROT_READ_WRITE},
        {"the CPU has nothing", VMM_HOST, VMM_PROT_NONE},
    };
    uint64_t va;
    struct lib l;
    vmm_handle h;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    va = l.base + MiB(2);
    h = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    LIB_ROW(&l, "map", 0, vmm_map(l.vmm, va, MiB(4), 0, h), "-");
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool can = steps[i].device == VMM_HOST || steps[i].prot != VMM_PROT_READ ||
                   vmm_engine_can(l.vmm) & VMM_CAN_READ_ONLY;
        uint32_t gpu = 9, host = 9;

        lib_access(&l, steps[i].name, can ? 0 : -EOPNOTSUPP, va, MiB(4), steps[i].device,
                   steps[i].prot);
        if (i == 0)
            lib_stamp(&l, 'A', va, MiB(4), 0);
        lib_look(&l, "first page", 0, va);
        lib_look(&l, "last page", 0, va + MiB(4) - 4096);
        vmm_get_access(l.vmm, va, 0, &gpu);
        vmm_get_access(l.vmm, va, VMM_HOST, &host);
        cts_row(c, "rights", 0, 0, "gpu=%u host=%u, the CPU can %s %s", gpu, host,
                lib_cpu_rights(va), lib_cpu_rights(va + MiB(4) - 4096));
    }
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, va, MiB(4)), "-");
    lib_look(&l, "unmapped", 0, va);
    cts_row(c, "the CPU", 0, 0, "can %s", lib_cpu_rights(va));
    lib_release(&l, h);
    lib_end(&l, l.start);
}

/* A run of mappings changes as one; what cuts one of them is refused. */
static void runs(struct cts *c)
{
    uint32_t less = VMM_PROT_READ;
    vmm_handle h[4];
    struct lib l;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    if (!(vmm_engine_can(l.vmm) & VMM_CAN_READ_ONLY))
        less = VMM_PROT_NONE;
    for (int i = 0; i < 4; i++) {
        h[i] = lib_create(&l, cts_text("create %c", 'A' + i), VMM_LOCATION_DEVICE, 0, MiB(2));
        LIB_ROW(&l, "map", 0, vmm_map(l.vmm, l.base + MiB(2 * i), MiB(2), 0, h[i]), "-");
        lib_release(&l, h[i]);
    }
    lib_access(&l, "all four", 0, l.base, MiB(8), 0, VMM_PROT_READ_WRITE);
    for (int i = 0; i < 4; i++)
        lib_stamp(&l, (char)('A' + i), l.base + MiB(2 * i), MiB(2), 0);
    lib_look_each(&l, 4, MiB(2));
    lib_access(&l, "less for the middle two", 0, l.base + MiB(2), MiB(4), 0, less);
    lib_look_each(&l, 4, MiB(2));
    lib_access(&l, "a range that cuts the last", -EINVAL, l.base, MiB(7), 0, less);
    lib_access(&l, "a range with a hole", -EINVAL, l.base, MiB(10), 0, less);
    lib_look_each(&l, 5, MiB(2));
    LIB_ROW(&l, "unmap a range that cuts", -EINVAL, vmm_unmap(l.vmm, l.base + MiB(1), MiB(4)), "-");
    LIB_ROW(&l, "unmap where nothing is", -EINVAL, vmm_unmap(l.vmm, l.base + MiB(32), MiB(4)), "-");
    lib_look_each(&l, 5, MiB(2));
    LIB_ROW(&l, "unmap the second", 0, vmm_unmap(l.vmm, l.base + MiB(2), MiB(2)), "-");
    lib_look_each(&l, 5, MiB(2));
    lib_access(&l, "over the hole", -EINVAL, l.base, MiB(8), 0, VMM_PROT_READ_WRITE);
    LIB_ROW(&l, "unmap over the hole", 0, vmm_unmap(l.vmm, l.base, MiB(64)), "-");
    lib_look_each(&l, 5, MiB(2));
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "used=%lld", lib_used(&l, l.start));
    lib_end(&l, l.start);
}

/* What is refused changes nothing and asks the kernel nothing. */
static void refused(struct cts *c)
{
    struct vmm_props props = {.device = 7};
    struct vmm_access nobody = {7, VMM_PROT_READ_WRITE}, odd = {0, VMM_PROT_WRITE};
    vmm_handle h, made = 0;
    uint32_t prot;
    uint64_t va;
    struct lib l;
    int fd;

    lib_range(&l, c, VMM_ENGINE_AUTO, MiB(64));
    va = l.base;
    h = lib_create(&l, "create", VMM_LOCATION_DEVICE, 0, MiB(4));
    lib_give(&l, h, 'A', va, MiB(4));
    LIB_ROW(&l, "create on no device", -ENODEV, vmm_create(l.vmm, &props, MiB(2), &made), "-");
    props.device = 0;
    LIB_ROW(&l, "create nothing", -EINVAL, vmm_create(l.vmm, &props, 0, &made), "-");
    LIB_ROW(&l, "create no multiple of the page", -EINVAL, vmm_create(l.vmm, &props, 5000, &made),
            "-");
    LIB_ROW(&l, "create more than there is", -ENOMEM,
            vmm_create(l.vmm, &props, (uint64_t)1 << 44, &made), "-");
    LIB_ROW(&l, "map over a mapping", -EINVAL, vmm_map(l.vmm, va + MiB(2), MiB(4), 0, h), "-");
    LIB_ROW(&l, "map outside", -EINVAL, vmm_map(l.vmm, va + MiB(62), MiB(4), 0, h), "-");
    LIB_ROW(&l, "map more than it has", -EINVAL, vmm_map(l.vmm, va + MiB(8), MiB(8), 0, h), "-");
    LIB_ROW(&l, "map off the page", -EINVAL, vmm_map(l.vmm, va + MiB(8) + 100, MiB(4), 0, h), "-");
    LIB_ROW(&l, "map a made-up handle", -EINVAL, vmm_map(l.vmm, va + MiB(8), MiB(4), 0, h ^ 1),
            "-");
    LIB_ROW(&l, "release a made-up handle", -EINVAL, vmm_release(l.vmm, 12345), "-");
    LIB_ROW(&l, "access for no device", -ENODEV, vmm_set_access(l.vmm, va, MiB(4), &nobody, 1),
            "-");
    LIB_ROW(&l, "write without read", -EINVAL, vmm_set_access(l.vmm, va, MiB(4), &odd, 1), "-");
    LIB_ROW(&l, "access where nothing is", -EINVAL, vmm_get_access(l.vmm, va + MiB(8), 0, &prot),
            "-");
    LIB_ROW(&l, "retain where nothing is", -EINVAL, vmm_retain(l.vmm, va + MiB(8), &made), "-");
    LIB_ROW(&l, "export a made-up handle", -EINVAL, vmm_export(l.vmm, 12345, &fd), "-");
    LIB_ROW(&l, "import no dma-buf", -EINVAL,
            vmm_import(l.vmm, c->kfd, (const uint32_t[4]){0}, &made), "-");
    LIB_ROW(&l, "free a mapping as one-step memory", -EINVAL, vmm_free(l.vmm, va), "-");
    lib_look_around(&l, "as before", 0, va, MiB(4));
    LIB_ROW(&l, "all is well", 0, vmm_validate(l.vmm), "used=%lld", lib_used(&l, l.start));
    LIB_ROW(&l, "unmap", 0, vmm_unmap(l.vmm, va, MiB(4)), "-");
    lib_release(&l, h);
    lib_end(&l, l.start);
}

const struct cts_case cts_lib_vmm_cases[] = {
    {"lib_vmm.open", CTS_NO_GPU, open_engines},
    {"lib_vmm.space", 0, space},
    {"lib_vmm.life_drm", CTS_GEM_VA | CTS_LARGE_BAR, life_drm},
    {"lib_vmm.life_kfd", CTS_EXPORT | CTS_LARGE_BAR, life_kfd},
    {"lib_vmm.life_gem", CTS_LARGE_BAR, life_gem},
    {"lib_vmm.alias_drm", CTS_GEM_VA | CTS_LARGE_BAR, alias_drm},
    {"lib_vmm.alias_kfd", CTS_EXPORT | CTS_LARGE_BAR, alias_kfd},
    {"lib_vmm.alias_gem", CTS_LARGE_BAR, alias_gem},
    {"lib_vmm.offsets", CTS_LARGE_BAR, offsets},
    {"lib_vmm.rights", CTS_LARGE_BAR, rights},
    {"lib_vmm.runs", CTS_LARGE_BAR, runs},
    {"lib_vmm.refused", CTS_LARGE_BAR, refused},
    {0},
};
