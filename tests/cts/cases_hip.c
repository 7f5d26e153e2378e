/* SPDX-License-Identifier: MIT */
/* The HIP calls of virtual memory management: codes, outputs, requests, and the page tables. */
#include "hip.h"

static void start(struct cts *c)
{
    static const hipDeviceAttribute_t attributes[] = {
        hipDeviceAttributeVirtualMemoryManagementSupported,
        hipDeviceAttributeHandleTypeFabricSupported,
        hipDeviceAttributeGPUDirectRDMAWithHipVMMSupported,
        hipDeviceAttributeDmaBufSupported,
        hipDeviceAttributeUnifiedAddressing,
        hipDeviceAttributeIntegrated,
        hipDeviceAttributeIsLargeBar,
        hipDeviceAttributeMultiprocessorCount,
        hipDeviceAttributeWarpSize,
        hipDeviceAttributeMemoryPoolsSupported,
        hipDeviceAttributePciBusId,
        hipDeviceAttributeManagedMemory,
    };
    hipError_t none = c->gpus ? hipSuccess : hipErrorNoDevice;
    int count = -1, value, can;
    struct lib l;

    lib_watch(&l, c);
    kfd_sys_set_default(l.sys);
    LIB_HIP(&l, "hipInit", none, hipInit(0), "-");
    LIB_HIP(&l, "hipGetDeviceCount", none, hipGetDeviceCount(&count), "%d", count);
    LIB_HIP(&l, "hipSetDevice past the last", c->gpus ? hipErrorInvalidDevice : none,
            hipSetDevice(count), "-");
    for (int d = 0; d < count; d++) {
        hipDeviceProp_t prop = {0};
        char name[64] = "", pci[32] = "";
        size_t total = 0;

        /* Which one is a matter of libdrm's table. */
        LIB_HIP(&l, cts_text("name of %d", d), hipSuccess, hipDeviceGetName(name, 64, d), "%s",
                name[0] ? "one" : "none");
        LIB_HIP(&l, "PCI address", hipSuccess, hipDeviceGetPCIBusId(pci, 32, d), "%s", pci);
        LIB_HIP(&l, "memory", hipSuccess, hipDeviceTotalMem(&total, d), "%zu MiB", total >> 20);
        for (unsigned i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
            value = -1;
            LIB_HIP(&l, cts_text("attribute %d", attributes[i]), hipSuccess,
                    hipDeviceGetAttribute(&value, attributes[i], d), "%d", value);
        }
        LIB_HIP(&l, "properties", hipSuccess, hipGetDeviceProperties(&prop, d),
                "%s %zu MiB, %d.%d, %d CUs of %d lanes", prop.gcnArchName,
                prop.totalGlobalMem >> 20, prop.major, prop.minor, prop.multiProcessorCount,
                prop.warpSize);
        for (int e = 0; e < count; e++)
            LIB_HIP(&l, cts_text("can it reach %d", e), hipSuccess,
                    hipDeviceCanAccessPeer(&can, d, e), "%d", can);
    }
}

/* From a reservation to its end. */
static void life(struct cts *c)
{
    hipMemAllocationProp prop = hip_prop(0), got = {0};
    hipMemGenericAllocationHandle_t h, n, again;
    size_t least = 0, good = 0;
    unsigned long long flags = 9;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    LIB_HIP(&l, "least granularity", hipSuccess,
            hipMemGetAllocationGranularity(&least, &prop, hipMemAllocationGranularityMinimum),
            "%zu KiB", least >> 10);
    LIB_HIP(&l, "recommended granularity", hipSuccess,
            hipMemGetAllocationGranularity(&good, &prop, hipMemAllocationGranularityRecommended),
            "%zu KiB", good >> 10);
    base = hip_reserve(&l, MiB(64));
    n = hip_create(&l, "create a neighbour", 0, MiB(2));
    hip_give(&l, n, 'N', base + MiB(4), MiB(2));
    hip_release(&l, n);
    h = hip_create(&l, "create", 0, MiB(4));
    LIB_HIP(&l, "its properties", hipSuccess, hipMemGetAllocationPropertiesFromHandle(&got, h),
            "type=%d handles=%d location=%d:%d", got.type, got.requestedHandleTypes,
            got.location.type, got.location.id);
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base, MiB(4), 0, h, 0), "-");
    lib_look_around(&l, "without access", 0, l.base, MiB(4));
    LIB_HIP(&l, "get access", hipSuccess, hipMemGetAccess(&flags, &prop.location, base), "%llu",
            flags);
    hip_access(&l, "give access", hipSuccess, base, MiB(4), 0, hipMemAccessFlagsProtReadWrite);
    hip_stamp(&l, 'A', base, MiB(4));
    lib_look_around(&l, "with access", 0, l.base, MiB(4));
    LIB_HIP(&l, "get access", hipSuccess, hipMemGetAccess(&flags, &prop.location, base + MiB(3)),
            "%llu", flags);
    LIB_HIP(&l, "retain", hipSuccess, hipMemRetainAllocationHandle(&again, base + 12345), "%s",
            again == h ? "the same handle" : "another");
    hip_release(&l, h);
    hip_release(&l, again);
    LIB_HIP(&l, "release once more", hipErrorInvalidValue, hipMemRelease(h), "-");
    lib_look(&l, "the mapping keeps it", 0, l.base);
    LIB_HIP(&l, "free the addresses", hipErrorInvalidValue, hipMemAddressFree(base, MiB(64)), "-");
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "used=%lld", lib_used(&l, l.start));
    lib_look_around(&l, "unmapped", 0, l.base, MiB(4));
    LIB_HIP(&l, "unmap again", hipErrorInvalidValue, hipMemUnmap(base, MiB(4)), "-");
    LIB_HIP(&l, "unmap the neighbour", hipSuccess, hipMemUnmap(base + MiB(4), MiB(2)), "used=%lld",
            lib_used(&l, l.start));
    lib_look(&l, "the neighbour", 0, l.base + MiB(4));
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, MiB(64)), "-");
}

static void rights(struct cts *c)
{
    static const struct {
        const char *name;
        int device; /* -1: the CPU */
        hipMemAccessFlags flags;
    } steps[] = {
        {"the GPU reads and writes", 0, hipMemAccessFlagsProtReadWrite},
        {"the GPU only reads", 0, hipMemAccessFlagsProtRead},
        {"the CPU reads and writes", -1, hipMemAccessFlagsProtReadWrite},
        {"the CPU only reads", -1, hipMemAccessFlagsProtRead},
        {"the GPU has nothing", 0, hipMemAccessFlagsProtNone},
        {"the CPU has nothing", -1, hipMemAccessFlagsProtNone},
        {"the GPU reads and writes again", 0, hipMemAccessFlagsProtReadWrite},
    };
    hipMemLocation gpu = {hipMemLocationTypeDevice, 0}, host = {hipMemLocationTypeHost, 0};
    hipMemGenericAllocationHandle_t h;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = hip_create(&l, "create", 0, MiB(4));
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base, MiB(4), 0, h, 0), "-");
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool can =
            steps[i].device < 0 || steps[i].flags != hipMemAccessFlagsProtRead || c->minor >= 15;
        unsigned long long on_gpu = 9, on_host = 9;

        hip_access(&l, steps[i].name, can ? hipSuccess : hipErrorNotSupported, base, MiB(4),
                   steps[i].device, steps[i].flags);
        if (i == 0)
            hip_stamp(&l, 'A', base, MiB(4));
        lib_look(&l, "first page", 0, l.base);
        lib_look(&l, "last page", 0, l.base + MiB(4) - 4096);
        (void)hipMemGetAccess(&on_gpu, &gpu, base);
        (void)hipMemGetAccess(&on_host, &host, base);
        cts_row(c, "rights", 0, 0, "gpu=%llu host=%llu, the CPU can %s", on_gpu, on_host,
                lib_cpu_rights(l.base));
    }
    hip_release(&l, h);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "-");
    lib_look(&l, "unmapped", 0, l.base);
}

/* Chunks side by side, one set-access over all; parts of handles where the kernel has them. */
static void chunks(struct cts *c)
{
    hipMemGenericAllocationHandle_t h, whole;
    hipError_t parts = c->minor >= 15 ? hipSuccess : hipErrorNotSupported;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    for (int i = 0; i < 3; i++) {
        h = hip_create(&l, cts_text("create %c", 'A' + i), 0, MiB(2));
        LIB_HIP(&l, "map", hipSuccess, hipMemMap(base + MiB(2) * i, MiB(2), 0, h, 0), "-");
        hip_release(&l, h);
    }
    hip_access(&l, "all three", hipSuccess, base, MiB(6), 0, hipMemAccessFlagsProtReadWrite);
    for (int i = 0; i < 3; i++)
        hip_stamp(&l, (char)('A' + i), base + MiB(2) * i, MiB(2));
    lib_look_each(&l, 4, MiB(2));
    hip_access(&l, "four, one of them a hole", hipErrorInvalidValue, base, MiB(8), 0,
               hipMemAccessFlagsProtNone);
    hip_access(&l, "two and a half", hipErrorInvalidValue, base, MiB(5), 0,
               hipMemAccessFlagsProtNone);
    LIB_HIP(&l, "unmap one and a half", hipErrorInvalidValue, hipMemUnmap(base, MiB(3)), "-");
    lib_look_each(&l, 4, MiB(2));
    LIB_HIP(&l, "unmap the middle", hipSuccess, hipMemUnmap(base + MiB(2), MiB(2)), "-");
    lib_look_each(&l, 4, MiB(2));
    whole = hip_create(&l, "create W", 0, MiB(8));
    hip_give(&l, whole, 'W', base + MiB(32), MiB(8));
    LIB_HIP(&l, "put a part of W into the hole", parts,
            hipMemMap(base + MiB(2), MiB(2), MiB(4), whole, 0), "-");
    if (parts == hipSuccess)
        hip_access(&l, "for the part", hipSuccess, base + MiB(2), MiB(2), 0,
                   hipMemAccessFlagsProtRead);
    lib_look_each(&l, 4, MiB(2));
    hip_release(&l, whole);
    lib_look_around(&l, "W", 0, l.base + MiB(32), MiB(8));
    LIB_HIP(&l, "unmap over everything", hipSuccess, hipMemUnmap(base, MiB(64)), "used=%lld",
            lib_used(&l, l.start));
    lib_look_each(&l, 4, MiB(2));
}

static void take_over(struct cts *c, void *arg)
{
    const int *fd = arg;
    hipMemGenericAllocationHandle_t by_value = NULL, by_pointer = NULL;
    hipMemAllocationProp prop = {0};
    struct lib l;
    char *base;
    int copy = -1;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    LIB_HIP(&l, "child: import, the descriptor by value", hipSuccess,
            hipMemImportFromShareableHandle(&by_value, (void *)(uintptr_t)*fd,
                                            hipMemHandleTypePosixFileDescriptor),
            "-");
    LIB_HIP(&l, "child: import, its address", hipSuccess,
            hipMemImportFromShareableHandle(&by_pointer, arg, hipMemHandleTypePosixFileDescriptor),
            "%s", by_pointer == by_value ? "the same handle" : "another");
    LIB_HIP(&l, "child: properties", hipSuccess,
            hipMemGetAllocationPropertiesFromHandle(&prop, by_value), "location=%d:%d",
            prop.location.type, prop.location.id);
    hip_give(&l, by_value, 0, base, MiB(4));
    lib_look_around(&l, "child: the parent's bytes", 0, l.base, MiB(4));
    hip_stamp(&l, 'C', base, MiB(4));
    LIB_HIP(&l, "child: export what was imported", hipErrorInvalidValue,
            hipMemExportToShareableHandle(&copy, by_value, hipMemHandleTypePosixFileDescriptor, 0),
            "-");
    hip_release(&l, by_value);
    hip_release(&l, by_pointer);
    LIB_HIP(&l, "child: unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "-");
    lib_look(&l, "child: unmapped", 0, l.base);
}

static void share(struct cts *c)
{
    hipMemGenericAllocationHandle_t h, alone;
    hipMemAllocationProp prop = hip_prop(0);
    struct lib l;
    char *base;
    int fd = -1;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = hip_create(&l, "create", 0, MiB(4));
    hip_give(&l, h, 'A', base, MiB(4));
    LIB_HIP(&l, "export", hipSuccess,
            hipMemExportToShareableHandle(&fd, h, hipMemHandleTypePosixFileDescriptor, 0), "%s",
            fd > 2 ? "above 2" : "wrong");
    cts_fork(c, take_over, &fd);
    lib_look_around(&l, "the child's bytes", 0, l.base, MiB(4));
    close(fd);
    fd = -1;
    LIB_HIP(&l, "the range's dma-buf", hipSuccess,
            hipMemGetHandleForAddressRange(&fd, base, MiB(4), hipMemRangeHandleTypeDmaBufFd, 0),
            "%s", fd > 2 ? "above 2" : "wrong");
    close(fd);
    prop.requestedHandleTypes = hipMemHandleTypeNone;
    LIB_HIP(&l, "create, not to be shared", hipSuccess, hipMemCreate(&alone, MiB(2), &prop, 0),
            "-");
    LIB_HIP(&l, "export it", hipErrorInvalidValue,
            hipMemExportToShareableHandle(&fd, alone, hipMemHandleTypePosixFileDescriptor, 0), "-");
    LIB_HIP(&l, "export as a fabric handle", hipErrorInvalidValue,
            hipMemExportToShareableHandle(&fd, h, hipMemHandleTypeFabric, 0), "-");
    hip_release(&l, alone);
    hip_release(&l, h);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "used=%lld", lib_used(&l, l.start));
}

static void peers(struct cts *c)
{
    hipMemAccessDesc both[] = {
        {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
        {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite},
    };
    hipMemAllocationProp prop = hip_prop(0);
    hipMemGenericAllocationHandle_t vram, host;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    vram = hip_create(&l, "create on the first", 0, MiB(4));
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base, MiB(4), 0, vram, 0), "-");
    LIB_HIP(&l, "for both", hipErrorInvalidValue, hipMemSetAccess(base, MiB(4), both, 2), "-");
    lib_look(&l, "first", 0, l.base);
    lib_look(&l, "second", 1, l.base);
    prop.location.type = hipMemLocationTypeHost;
    LIB_HIP(&l, "create on the host", hipSuccess, hipMemCreate(&host, MiB(4), &prop, 0), "-");
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base + MiB(4), MiB(4), 0, host, 0), "-");
    LIB_HIP(&l, "for both", hipSuccess, hipMemSetAccess(base + MiB(4), MiB(4), both, 2), "-");
    hip_stamp(&l, 'H', base + MiB(4), MiB(4));
    lib_look_around(&l, "first", 0, l.base + MiB(4), MiB(4));
    lib_look_around(&l, "second", 1, l.base + MiB(4), MiB(4));
    hip_access(&l, "not for the first", hipSuccess, base + MiB(4), MiB(4), 0,
               hipMemAccessFlagsProtNone);
    lib_look(&l, "first", 0, l.base + MiB(4));
    lib_look(&l, "second", 1, l.base + MiB(4));
    hip_release(&l, vram);
    hip_release(&l, host);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(8)), "used=%lld", lib_used(&l, l.start));
    lib_look(&l, "second", 1, l.base + MiB(4));
}

/* A failed request leaves everything as it was, and the code says what ran out. */
static void undo(struct cts *c)
{
    struct kfd_sys_fault fault = {KFD_SYS_REQUEST, .error = ENOMEM};
    hipMemGenericAllocationHandle_t h = NULL;
    hipMemAllocationProp prop = hip_prop(0);
    struct kfd_sys *injector;
    bool fired = true;
    struct lib l;
    char *base;

    lib_watch(&l, c);
    if (kfd_sys_inject_new(l.sys, &injector) < 0)
        cts_skip(c, "no memory");
    kfd_sys_set_default(injector);
    lib_hip_begin(&l);
    base = hip_reserve(&l, MiB(64));
    for (; fired; fault.skip++) {
        hipError_t got;

        kfd_sys_inject_set(injector, &fault);
        got = hipMemCreate(&h, MiB(4), &prop, 0);
        kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        lib_hip(&l, cts_text("create, request %u fails", (unsigned)fault.skip),
                fired ? hipErrorOutOfMemory : hipSuccess, got, "used=%lld", lib_used(&l, l.start));
    }
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base, MiB(4), 0, h, 0), "-");
    for (fired = true, fault.skip = 0; fired; fault.skip++) {
        hipMemAccessDesc access = {prop.location, hipMemAccessFlagsProtReadWrite};
        hipError_t got;

        kfd_sys_inject_set(injector, &fault);
        got = hipMemSetAccess(base, MiB(4), &access, 1);
        kfd_sys_inject_seen(injector, &fired);
        kfd_sys_inject_set(injector, NULL);
        lib_hip(&l, cts_text("set access, request %u fails", (unsigned)fault.skip),
                fired ? hipErrorOutOfMemory : hipSuccess, got, "-");
        lib_look(&l, "then", 0, l.base);
    }
    hip_release(&l, h);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "used=%lld", lib_used(&l, l.start));
    lib_look(&l, "then", 0, l.base);
}

const struct cts_case cts_hip_cases[] = {
    {"hip.start", CTS_NO_GPU, start},      {"hip.life", CTS_LARGE_BAR, life},
    {"hip.rights", CTS_LARGE_BAR, rights}, {"hip.chunks", CTS_LARGE_BAR, chunks},
    {"hip.share", CTS_LARGE_BAR, share},   {"hip.peers", CTS_PEER | CTS_LARGE_BAR, peers},
    {"hip.undo", CTS_LARGE_BAR, undo},     {0},
};
