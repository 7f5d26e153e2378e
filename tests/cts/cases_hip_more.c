/* SPDX-License-Identifier: MIT */
/* The HIP calls around virtual memory: pointers, one-step memory, and what is refused. */
#include <stdlib.h>

#include "hip.h"

/* Everything that is told about one address. */
static void told(struct lib *l, const char *what, char *at)
{
    static const hipPointer_attribute which[] = {
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,      HIP_POINTER_ATTRIBUTE_DEVICE_POINTER,
        HIP_POINTER_ATTRIBUTE_IS_MANAGED,       HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
        HIP_POINTER_ATTRIBUTE_MAPPED,           HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
        HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS,
    };
    hipPointerAttribute_t a = {0};
    hipDeviceptr_t base = NULL;
    hipError_t got;
    size_t size = 0;

    got = hipPointerGetAttributes(&a, at);
    cts_row_named(l->c, cts_text("%s: attributes", what), NULL, hipGetErrorName(got),
                  "type=%d device=%d device_at=%s host_at=%s managed=%d flags=0x%x", a.type,
                  a.device, lib_at(l, (uintptr_t)a.devicePointer),
                  lib_at(l, (uintptr_t)a.hostPointer), a.isManaged, a.allocationFlags);
    for (unsigned i = 0; i < sizeof which / sizeof which[0]; i++) {
        bool address = which[i] == HIP_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                       which[i] == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR;
        uint64_t value = 0;

        got = hipPointerGetAttribute(&value, which[i], at);
        cts_row_named(l->c, cts_text("%s: attribute %d", what, which[i]), NULL,
                      hipGetErrorName(got), "%s",
                      address ? lib_at(l, value) : cts_text("0x%llx", (unsigned long long)value));
    }
    got = hipMemGetAddressRange(&base, &size, at);
    cts_row_named(l->c, cts_text("%s: range", what), NULL, hipGetErrorName(got), "%s size=0x%zx",
                  lib_at(l, (uintptr_t)base), size);
    cts_row(l->c, cts_text("%s: requests", what), 0, 0, "%s", lib_requests(l));
}

static void pointers(struct cts *c)
{
    hipMemGenericAllocationHandle_t h;
    void *device = NULL, *host = NULL;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = hip_create(&l, "create", 0, MiB(4));
    told(&l, "reserved", base + MiB(1));
    LIB_HIP(&l, "map", hipSuccess, hipMemMap(base, MiB(4), 0, h, 0), "-");
    told(&l, "mapped", base + MiB(1));
    hip_access(&l, "give access", hipSuccess, base, MiB(4), 0, hipMemAccessFlagsProtReadWrite);
    told(&l, "with access", base + MiB(1));
    told(&l, "behind it", base + MiB(4));
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "-");
    told(&l, "unmapped", base + MiB(1));
    hip_release(&l, h);
    LIB_HIP(&l, "one-step memory", hipSuccess, hipMalloc(&device, MiB(4)), "-");
    l.base = (uintptr_t)device;
    told(&l, "hipMalloc", (char *)device + MiB(1));
    LIB_HIP(&l, "free", hipSuccess, hipFree(device), "-");
    told(&l, "freed", device);
    LIB_HIP(&l, "host memory", hipSuccess, hipHostMalloc(&host, MiB(4), 0), "-");
    l.base = (uintptr_t)host;
    told(&l, "hipHostMalloc", (char *)host + MiB(1));
    LIB_HIP(&l, "free", hipSuccess, hipHostFree(host), "-");
    l.base = (uintptr_t)&host & ~4095ull;
    told(&l, "the stack", (char *)(uintptr_t)l.base);
}

/* Memory in one step: written and read by copies, seen by every GPU that reaches it. */
static void one_step(struct cts *c)
{
    uint32_t word = 0;
    size_t least, total;
    struct lib l;

    lib_hip_start(&l, c);
    LIB_HIP(&l, "memory", hipSuccess, hipMemGetInfo(&least, &total), "%zu MiB in all", total >> 20);
    for (int i = 0; i < 2; i++) {
        const char *what = i ? "host memory" : "device memory";
        void *at = NULL;

        LIB_HIP(&l, cts_text("get %s", what), hipSuccess,
                i ? hipHostMalloc(&at, MiB(4), 0) : hipMalloc(&at, MiB(4)), "used=%lld",
                lib_used(&l, l.start));
        hip_stamp(&l, 'A', at, MiB(4));
        for (uint32_t gpu = 0; gpu < c->gpus; gpu++)
            lib_look_around(&l, cts_text("GPU %u", gpu), gpu, (uintptr_t)at, MiB(4));
        LIB_HIP(&l, "read", hipSuccess,
                hipMemcpy(&word, (char *)at + MiB(3), sizeof word, hipMemcpyDeviceToHost), "%s",
                lib_stamp_text(word));
        LIB_HIP(&l, "copy within", hipSuccess,
                hipMemcpy(at, (char *)at + MiB(2), MiB(1), hipMemcpyDeviceToDevice), "-");
        lib_look(&l, "copied", 0, (uintptr_t)at);
        LIB_HIP(&l, "fill", hipSuccess, hipMemset((char *)at + MiB(1), 0, MiB(1)), "-");
        lib_look(&l, "filled", 0, (uintptr_t)at + MiB(1));
        lib_look(&l, "behind the fill", 0, (uintptr_t)at + MiB(2));
        LIB_HIP(&l, "copy past the end", hipErrorInvalidValue,
                hipMemcpy((char *)at + MiB(3), at, MiB(2), hipMemcpyDeviceToDevice), "-");
        LIB_HIP(&l, "free from the middle", hipErrorInvalidValue, hipFree((char *)at + MiB(1)),
                "-");
        LIB_HIP(&l, "unmap it", hipErrorInvalidValue, hipMemUnmap(at, MiB(4)), "-");
        LIB_HIP(&l, "free", hipSuccess, i ? hipHostFree(at) : hipFree(at), "used=%lld",
                lib_used(&l, l.start));
        lib_look_around(&l, "freed", 0, (uintptr_t)at, MiB(4));
        LIB_HIP(&l, "free again", hipErrorInvalidValue, i ? hipHostFree(at) : hipFree(at), "-");
    }
    LIB_HIP(&l, "more than there is", hipErrorOutOfMemory, hipMalloc(&(void *){NULL}, MiB(160)),
            "used=%lld", lib_used(&l, l.start));
}

static void refused_range(struct lib *l, char *base, hipMemGenericAllocationHandle_t h)
{
    void *at = NULL;

    LIB_HIP(l, "reserve nothing", hipErrorInvalidValue, hipMemAddressReserve(&at, 0, 0, NULL, 0),
            "-");
    LIB_HIP(l, "reserve an odd size", hipErrorInvalidValue,
            hipMemAddressReserve(&at, 1000, 0, NULL, 0), "-");
    LIB_HIP(l, "reserve with an odd alignment", hipErrorInvalidValue,
            hipMemAddressReserve(&at, MiB(2), MiB(3), NULL, 0), "-");
    LIB_HIP(l, "reserve with flags", hipErrorInvalidValue,
            hipMemAddressReserve(&at, MiB(2), 0, NULL, 1), "-");
    LIB_HIP(l, "reserve for nobody", hipErrorInvalidValue,
            hipMemAddressReserve(NULL, MiB(2), 0, NULL, 0), "-");
    LIB_HIP(l, "map with flags", hipErrorInvalidValue, hipMemMap(base + MiB(8), MiB(4), 0, h, 1),
            "-");
    LIB_HIP(l, "map over a mapping", hipErrorInvalidValue,
            hipMemMap(base + MiB(2), MiB(4), 0, h, 0), "-");
    LIB_HIP(l, "map more than it has", hipErrorInvalidValue,
            hipMemMap(base + MiB(8), MiB(8), 0, h, 0), "-");
    LIB_HIP(l, "map at an odd place", hipErrorInvalidValue,
            hipMemMap(base + MiB(8) + 100, MiB(4), 0, h, 0), "-");
    LIB_HIP(l, "map outside", hipErrorInvalidValue, hipMemMap(base + MiB(62), MiB(4), 0, h, 0),
            "-");
    LIB_HIP(l, "map no handle", hipErrorInvalidValue, hipMemMap(base + MiB(8), MiB(4), 0, NULL, 0),
            "-");
    LIB_HIP(l, "unmap a part", hipErrorInvalidValue, hipMemUnmap(base, MiB(2)), "-");
    LIB_HIP(l, "free the addresses in use", hipErrorInvalidValue, hipMemAddressFree(base, MiB(64)),
            "-");
    LIB_HIP(l, "free a part of the addresses", hipErrorInvalidValue,
            hipMemAddressFree(base + MiB(32), MiB(32)), "-");
}

static void refused_handle(struct lib *l, hipMemGenericAllocationHandle_t h)
{
    hipMemAllocationProp prop = hip_prop(0), bad = prop;
    hipMemGenericAllocationHandle_t out = NULL;
    size_t size;
    int fd = -1;

    LIB_HIP(l, "create nothing", hipErrorInvalidValue, hipMemCreate(&out, 0, &prop, 0), "-");
    LIB_HIP(l, "create an odd size", hipErrorInvalidValue, hipMemCreate(&out, 1000, &prop, 0), "-");
    LIB_HIP(l, "create with flags", hipErrorInvalidValue, hipMemCreate(&out, MiB(2), &prop, 1),
            "-");
    bad.location.id = 99;
    LIB_HIP(l, "create on no device", hipErrorInvalidDevice, hipMemCreate(&out, MiB(2), &bad, 0),
            "-");
    bad = prop;
    bad.type = hipMemAllocationTypeInvalid;
    LIB_HIP(l, "create no type", hipErrorInvalidValue, hipMemCreate(&out, MiB(2), &bad, 0), "-");
    bad = prop;
    bad.requestedHandleTypes = hipMemHandleTypeFabric;
    LIB_HIP(l, "create for fabric handles", hipErrorNotSupported,
            hipMemCreate(&out, MiB(2), &bad, 0), "-");
    LIB_HIP(l, "create more than there is", hipErrorOutOfMemory,
            hipMemCreate(&out, (size_t)1 << 44, &prop, 0), "used=%lld", lib_used(l, l->start));
    LIB_HIP(l, "granularity of nothing", hipErrorInvalidValue,
            hipMemGetAllocationGranularity(&size, NULL, hipMemAllocationGranularityMinimum), "-");
    LIB_HIP(l, "release a made-up handle", hipErrorInvalidValue,
            hipMemRelease((hipMemGenericAllocationHandle_t)(uintptr_t)0x1234), "-");
    LIB_HIP(l, "export with flags", hipErrorInvalidValue,
            hipMemExportToShareableHandle(&fd, h, hipMemHandleTypePosixFileDescriptor, 1), "-");
    LIB_HIP(l, "import no descriptor", hipErrorInvalidValue,
            hipMemImportFromShareableHandle(&out, (void *)(uintptr_t)1000,
                                            hipMemHandleTypePosixFileDescriptor),
            "-");
    LIB_HIP(l, "retain what is no mapping", hipErrorInvalidValue,
            hipMemRetainAllocationHandle(&out, &out), "-");
}

static void refused(struct cts *c)
{
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 99}, hipMemAccessFlagsProtReadWrite};
    hipMemLocation nowhere = {hipMemLocationTypeDevice, 99};
    hipMemGenericAllocationHandle_t h;
    unsigned long long flags = 0;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = hip_create(&l, "create", 0, MiB(4));
    hip_give(&l, h, 'A', base, MiB(4));
    refused_range(&l, base, h);
    refused_handle(&l, h);
    LIB_HIP(&l, "access for no device", hipErrorInvalidValue,
            hipMemSetAccess(base, MiB(4), &access, 1), "-");
    access.location.id = 0;
    LIB_HIP(&l, "access for nobody", hipErrorInvalidValue,
            hipMemSetAccess(base, MiB(4), &access, 0), "-");
    access.flags = (hipMemAccessFlags)2;
    LIB_HIP(&l, "access of no kind", hipErrorInvalidValue,
            hipMemSetAccess(base, MiB(4), &access, 1), "-");
    LIB_HIP(&l, "ask for no device's access", hipErrorInvalidValue,
            hipMemGetAccess(&flags, &nowhere, base), "-");
    LIB_HIP(&l, "ask for a hole's access", hipErrorInvalidValue,
            hipMemGetAccess(&flags, &access.location, base + MiB(8)), "-");
    lib_look_around(&l, "as before", 0, l.base, MiB(4));
    hip_release(&l, h);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "used=%lld", lib_used(&l, l.start));
    LIB_HIP(&l, "the last error stays until it is read", hipErrorInvalidValue, hipGetLastError(),
            "-");
    LIB_HIP(&l, "and is gone then", hipSuccess, hipGetLastError(), "-");
}

/* The program's own memory, at its own address. */
static void registered(struct cts *c)
{
    void *p = NULL, *device = NULL;
    struct lib l;
    bool reach;

    lib_hip_start(&l, c);
    reach = c->gpu[0].va_limit >> 40;
    if (c->sys->ops->map_pages(c->sys, NULL, MiB(1), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &p) < 0)
        cts_skip(c, "no memory");
    l.base = (uintptr_t)p;
    lib_stamp_at(p, 'M', MiB(1), 0);
    LIB_HIP(&l, "register", reach ? hipSuccess : hipErrorNotSupported,
            hipHostRegister(p, MiB(1), 0), "-");
    for (uint32_t gpu = 0; gpu < c->gpus; gpu++)
        lib_look_around(&l, cts_text("GPU %u", gpu), gpu, l.base, MiB(1));
    if (reach) {
        LIB_HIP(&l, "its address on a GPU", hipSuccess,
                hipHostGetDevicePointer(&device, (char *)p + 4096, 0), "%s",
                lib_at(&l, (uintptr_t)device));
        told(&l, "registered", p);
        lib_stamp_at(p, 'X', MiB(1), 0);
        lib_look_around(&l, "stored by the program", 0, l.base, MiB(1));
        LIB_HIP(&l, "register again", hipErrorHostMemoryAlreadyRegistered,
                hipHostRegister((char *)p + 4096, 4096, 0), "-");
        LIB_HIP(&l, "unregister from the middle", hipErrorHostMemoryNotRegistered,
                hipHostUnregister((char *)p + 4096), "-");
        LIB_HIP(&l, "unregister", hipSuccess, hipHostUnregister(p), "-");
        for (uint32_t gpu = 0; gpu < c->gpus; gpu++)
            lib_look_around(&l, cts_text("GPU %u", gpu), gpu, l.base, MiB(1));
    }
    LIB_HIP(&l, "unregister again", hipErrorHostMemoryNotRegistered, hipHostUnregister(p), "-");
    c->sys->ops->unmap_pages(c->sys, p, MiB(1));
}

/* A reset takes one-step memory away and leaves mappings alone. */
static void reset(struct cts *c)
{
    hipMemGenericAllocationHandle_t h;
    void *device = NULL, *host = NULL;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = hip_create(&l, "create", 0, MiB(4));
    hip_give(&l, h, 'A', base, MiB(4));
    LIB_HIP(&l, "one-step memory", hipSuccess, hipMalloc(&device, MiB(4)), "-");
    hip_stamp(&l, 'D', device, MiB(4));
    LIB_HIP(&l, "host memory", hipSuccess, hipHostMalloc(&host, MiB(4), 0), "used=%lld",
            lib_used(&l, l.start));
    LIB_HIP(&l, "reset", hipSuccess, hipDeviceReset(), "used=%lld", lib_used(&l, l.start));
    lib_look_around(&l, "the mapping", 0, l.base, MiB(4));
    lib_look(&l, "one-step memory", 0, (uintptr_t)device);
    lib_look(&l, "host memory", 0, (uintptr_t)host);
    LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base, MiB(4)), "-");
    hip_release(&l, h);
    lib_look(&l, "the mapping", 0, l.base);
}

/* What is declared and not offered. */
static void unsupported(struct cts *c)
{
    hipArrayMapInfo list = {0};
    hipIpcMemHandle_t handle;
    void *at = NULL;
    struct lib l;

    lib_hip_start(&l, c);
    LIB_HIP(&l, "managed memory", hipErrorNotSupported, hipMallocManaged(&at, MiB(2), 1), "-");
    LIB_HIP(&l, "one-step memory", hipSuccess, hipMalloc(&at, MiB(2)), "-");
    LIB_HIP(&l, "legacy sharing", hipErrorNotSupported, hipIpcGetMemHandle(&handle, at), "-");
    LIB_HIP(&l, "free", hipSuccess, hipFree(at), "-");
    LIB_HIP(&l, "sparse arrays", hipErrorNotSupported, hipMemMapArrayAsync(&list, 1, NULL), "-");
}

const struct cts_case cts_hip_more_cases[] = {
    {"hip.pointers", CTS_LARGE_BAR, pointers},
    {"hip.one_step", CTS_LARGE_BAR, one_step},
    {"hip.registered", 0, registered},
    {"hip.reset", CTS_LARGE_BAR, reset},
    {"hip.refused", CTS_LARGE_BAR, refused},
    {"hip.unsupported", 0, unsupported},
    {0},
};
