/* SPDX-License-Identifier: MIT */
/*
 * Every argument of every VMM call with NULL, zero, unaligned, overflowing, foreign and stale
 * values: the code, a text that names the culprit, and no change in the library or the kernel.
 */
#include "fixture.h"

#include <unistd.h>

#define SIZE (2 * MIB)

/* Things a wrong argument can point at. */
struct scene {
    struct fixture f;
    char *mapped;   /* two mappings of SIZE in a reservation of 4 * SIZE, the rest unmapped */
    char *reserved; /* nothing mapped */
    char *gone;     /* was a reservation */
    char *malloced; /* of hipMalloc */
    hipMemGenericAllocationHandle_t handle, imported, stale, malloc_as_handle, stack_as_handle;
    hipMemAllocationProp prop;
    hipMemAccessDesc desc;
    int fd; /* of handle */
};

static struct scene s;

static int start(void **state)
{
    void *ptr;
    int local;

    fixture_open(&s.f, "mi300x:2", "6.12");
    s.handle = make_handle(0, 2 * SIZE, true);
    HIP_OK(hipMemExportToShareableHandle(&s.fd, s.handle, hipMemHandleTypePosixFileDescriptor, 0));
    HIP_OK(hipMemImportFromShareableHandle(&s.imported, (void *)(intptr_t)s.fd,
                                           hipMemHandleTypePosixFileDescriptor));
    s.stale = make_handle(0, SIZE, true);
    HIP_OK(hipMemRelease(s.stale));
    s.gone = reserve(64 * SIZE);
    s.mapped = reserve(4 * SIZE);
    s.reserved = reserve(SIZE);
    HIP_OK(hipMemMap(s.mapped, SIZE, 0, s.handle, 0));
    HIP_OK(hipMemMap(s.mapped + SIZE, SIZE, SIZE, s.handle, 0));
    set_access(s.mapped, 2 * SIZE, 0, hipMemAccessFlagsProtReadWrite);
    HIP_OK(hipMalloc(&ptr, SIZE));
    s.malloced = ptr;
    HIP_OK(hipMemAddressFree(s.gone, 64 * SIZE));
    s.malloc_as_handle = (hipMemGenericAllocationHandle_t)ptr;
    s.stack_as_handle = (hipMemGenericAllocationHandle_t)(void *)&local;
    s.prop = device_prop(0);
    s.desc = device_access(0, hipMemAccessFlagsProtReadWrite);
    gpu_write(&s.f, 0, s.mapped, 1);
    gpu_write(&s.f, 0, s.mapped + SIZE, 2);
    return 0;
}

static int stop(void **state)
{
    assert_int_equal(gpu_read(&s.f, 0, s.mapped), 1);
    assert_int_equal(gpu_read(&s.f, 0, s.mapped + SIZE), 2);
    close(s.fd);
    HIP_OK(hipFree(s.malloced));
    HIP_OK(hipMemUnmap(s.mapped, 2 * SIZE));
    HIP_OK(hipMemAddressFree(s.mapped, 4 * SIZE));
    HIP_OK(hipMemAddressFree(s.reserved, SIZE));
    HIP_OK(hipMemRelease(s.imported));
    HIP_OK(hipMemRelease(s.handle));
    fixture_close(&s.f);
    return 0;
}

/* Everything that a refused call must leave as it is. */
struct snapshot {
    struct vmm_stats stats;
    struct fake_usage usage;
    int next_fd;
};

static void take(struct snapshot *out)
{
    memset(out, 0, sizeof(*out));
    if (vmm_validate(s.f.vmm) != 0)
        fail_msg("%s", hipxGetLastErrorText());
    vmm_get_stats(s.f.vmm, &out->stats);
    assert_int_equal(fake_get_usage(s.f.fake, &out->usage), 0);
    out->next_fd = dup(s.fd);
    close(out->next_fd);
}

#define REFUSED(call, code, word)                         \
    do {                                                  \
        struct snapshot before, after;                    \
                                                          \
        take(&before);                                    \
        HIP_FAILS(call, code, word);                      \
        take(&after);                                     \
        if (memcmp(&before, &after, sizeof(before)) != 0) \
            fail_msg("%s changed the state", #call);      \
    } while (0)
#define INVALID(call, word) REFUSED(call, hipErrorInvalidValue, word)

static void test_address_reserve(void **state)
{
    void *ptr = s.gone;

    INVALID(hipMemAddressReserve(NULL, SIZE, 0, NULL, 0), "ptr is NULL");
    INVALID(hipMemAddressReserve(&ptr, 0, 0, NULL, 0), "size");
    INVALID(hipMemAddressReserve(&ptr, SIZE - 1, 0, NULL, 0), "size");
    INVALID(hipMemAddressReserve(&ptr, 1, 0, NULL, 0), "size");
    INVALID(hipMemAddressReserve(&ptr, SIZE_MAX, 0, NULL, 0), "size");
    INVALID(hipMemAddressReserve(&ptr, SIZE, 3, NULL, 0), "align");
    INVALID(hipMemAddressReserve(&ptr, SIZE, SIZE + 4096, NULL, 0), "align");
    INVALID(hipMemAddressReserve(&ptr, SIZE, SIZE_MAX, NULL, 0), "align");
    INVALID(hipMemAddressReserve(&ptr, SIZE, 0, (void *)0x1234567, 0), "hint");
    INVALID(hipMemAddressReserve(&ptr, SIZE, 0, NULL, 1), "flags");
    INVALID(hipMemAddressReserve(&ptr, SIZE, 0, NULL, ~0ull), "flags");
    REFUSED(hipMemAddressReserve(&ptr, (size_t)1 << 62, 0, NULL, 0), hipErrorOutOfMemory, "0x");
    REFUSED(hipMemAddressReserve(&ptr, SIZE_MAX & ~(size_t)4095, 0, NULL, 0), hipErrorOutOfMemory,
            "0x");
    REFUSED(hipMemAddressReserve(&ptr, SIZE, (size_t)1 << 63, NULL, 0), hipErrorOutOfMemory, "0x");
    assert_ptr_equal(ptr, s.gone);
}

static void test_address_free(void **state)
{
    int local;

    INVALID(hipMemAddressFree(NULL, SIZE), "ptr is NULL");
    INVALID(hipMemAddressFree(s.reserved, 0), "size is 0");
    INVALID(hipMemAddressFree(s.reserved, SIZE - 1), "0x");
    INVALID(hipMemAddressFree(s.reserved, SIZE / 2), "0x");
    INVALID(hipMemAddressFree(s.reserved, 2 * SIZE), "0x");
    INVALID(hipMemAddressFree(s.reserved, SIZE_MAX), "0x");
    INVALID(hipMemAddressFree(s.reserved + 4096, SIZE - 4096), "0x");
    INVALID(hipMemAddressFree(s.reserved + 1, SIZE), "0x");
    INVALID(hipMemAddressFree(s.mapped, 4 * SIZE), "mappings: 2");
    INVALID(hipMemAddressFree(s.gone, 64 * SIZE), "0x");
    INVALID(hipMemAddressFree(s.malloced, SIZE), "0x");
    INVALID(hipMemAddressFree(&local, SIZE), "0x");
    INVALID(hipMemAddressFree((void *)UINTPTR_MAX, SIZE), "0x");
}

static void test_create(void **state)
{
    hipMemGenericAllocationHandle_t out = s.stale;
    hipMemAllocationProp p = s.prop;

    INVALID(hipMemCreate(NULL, SIZE, &p, 0), "handle is NULL");
    INVALID(hipMemCreate(&out, SIZE, NULL, 0), "prop is NULL");
    INVALID(hipMemCreate(&out, 0, &p, 0), "size is 0");
    INVALID(hipMemCreate(&out, SIZE, &p, 1), "flags");
    /* bugs.md B01: a multiple of 2048 is none of 4096. */
    INVALID(hipMemCreate(&out, 6912, &p, 0), "size");
    INVALID(hipMemCreate(&out, 2048, &p, 0), "size");
    INVALID(hipMemCreate(&out, SIZE - 1, &p, 0), "size");
    INVALID(hipMemCreate(&out, SIZE_MAX, &p, 0), "size");
    REFUSED(hipMemCreate(&out, (size_t)1 << 45, &p, 0), hipErrorOutOfMemory, "0x");
    REFUSED(hipMemCreate(&out, SIZE_MAX & ~(size_t)4095, &p, 0), hipErrorOutOfMemory, "0x");
    p.type = hipMemAllocationTypeInvalid;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "prop->type");
    p.type = hipMemAllocationTypeManaged;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "prop->type");
    p.type = hipMemAllocationTypeMax;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "prop->type");
    p = s.prop;
    p.location.type = hipMemLocationTypeInvalid;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "of type 0");
    p.location.type = (hipMemLocationType)5;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "of type 5");
    p.location.type = hipMemLocationTypeHostNuma;
    p.location.id = -1;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "NUMA node -1");
    p.location.id = 2;
    INVALID(hipMemCreate(&out, SIZE, &p, 0), "NUMA node 2");
    p.location.type = hipMemLocationTypeDevice;
    REFUSED(hipMemCreate(&out, SIZE, &p, 0), hipErrorInvalidDevice, "device 2");
    p.location.id = -1;
    REFUSED(hipMemCreate(&out, SIZE, &p, 0), hipErrorInvalidDevice, "device -1");
    p = s.prop;
    p.requestedHandleTypes = hipMemHandleTypeWin32;
    REFUSED(hipMemCreate(&out, SIZE, &p, 0), hipErrorNotSupported, "requestedHandleTypes is 0x2");
    p.requestedHandleTypes = hipMemHandleTypeFabric;
    REFUSED(hipMemCreate(&out, SIZE, &p, 0), hipErrorNotSupported, "requestedHandleTypes is 0x8");
    p.requestedHandleTypes = (hipMemAllocationHandleType)0x41;
    REFUSED(hipMemCreate(&out, SIZE, &p, 0), hipErrorNotSupported, "requestedHandleTypes is 0x41");
    assert_ptr_equal(out, s.stale);
}

/* Values that are no live handle. */
static hipMemGenericAllocationHandle_t bad_handle(int i)
{
    const hipMemGenericAllocationHandle_t handles[] = {
        s.stale,
        s.malloc_as_handle,
        s.stack_as_handle,
        (hipMemGenericAllocationHandle_t)(uintptr_t)1,
        (hipMemGenericAllocationHandle_t)UINTPTR_MAX,
        (hipMemGenericAllocationHandle_t)((uintptr_t)s.handle + 1000),
        (hipMemGenericAllocationHandle_t)((uintptr_t)s.handle ^ (uintptr_t)1 << 63),
    };

    return (size_t)i < sizeof(handles) / sizeof(handles[0]) ? handles[i] : NULL;
}

static void test_handles(void **state)
{
    hipMemAllocationProp prop = s.prop;
    int fd = -1;

    INVALID(hipMemRelease(NULL), "handle is NULL");
    INVALID(hipMemGetAllocationPropertiesFromHandle(&prop, NULL), "handle is NULL");
    INVALID(hipMemGetAllocationPropertiesFromHandle(NULL, s.handle), "prop is NULL");
    for (int i = 0; bad_handle(i) != NULL; i++) {
        INVALID(hipMemRelease(bad_handle(i)), "handle");
        INVALID(hipMemGetAllocationPropertiesFromHandle(&prop, bad_handle(i)), "handle");
        INVALID(hipMemMap(s.reserved, SIZE, 0, bad_handle(i), 0), "handle");
        INVALID(hipMemExportToShareableHandle(&fd, bad_handle(i),
                                              hipMemHandleTypePosixFileDescriptor, 0),
                "handle");
    }
    assert_int_equal(fd, -1);
    assert_memory_equal(&prop, &s.prop, sizeof(prop));
}

static void test_map(void **state)
{
    int local;

    INVALID(hipMemMap(NULL, SIZE, 0, s.handle, 0), "ptr is NULL");
    INVALID(hipMemMap(s.reserved, 0, 0, s.handle, 0), "size is 0");
    INVALID(hipMemMap(s.reserved, SIZE, 0, NULL, 0), "handle is NULL");
    INVALID(hipMemMap(s.reserved, SIZE, 0, s.handle, 1), "flags");
    INVALID(hipMemMap(s.reserved, SIZE - 1, 0, s.handle, 0), "size");
    INVALID(hipMemMap(s.reserved, 2048, 0, s.handle, 0), "size");
    INVALID(hipMemMap(s.reserved, SIZE_MAX, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved, SIZE_MAX & ~(size_t)4095, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved, 2 * SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved + 4096, SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved + 1, 4096, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved, SIZE, 1, s.handle, 0), "offset");
    INVALID(hipMemMap(s.reserved, SIZE, 2 * SIZE, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved, SIZE, SIZE + 4096, s.handle, 0), "0x");
    INVALID(hipMemMap(s.reserved, SIZE, SIZE_MAX, s.handle, 0), "offset");
    INVALID(hipMemMap(s.reserved, SIZE, SIZE_MAX & ~(size_t)4095, s.handle, 0), "0x");
    INVALID(hipMemMap(s.mapped + 2 * SIZE, 2 * SIZE + 4096, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.mapped, SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.mapped + SIZE, 2 * SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.mapped + 2 * SIZE - 4096, 4096, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.gone, SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(s.malloced, SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap(&local, SIZE, 0, s.handle, 0), "0x");
    INVALID(hipMemMap((void *)(UINTPTR_MAX & ~(uintptr_t)4095), 4096, 0, s.handle, 0), "0x");
}

static void test_unmap(void **state)
{
    int local;

    INVALID(hipMemUnmap(NULL, SIZE), "ptr is NULL");
    INVALID(hipMemUnmap(s.mapped, 0), "size is 0");
    INVALID(hipMemUnmap(s.mapped, SIZE - 1), "0x");
    INVALID(hipMemUnmap(s.mapped, SIZE - 4096), "0x");
    INVALID(hipMemUnmap(s.mapped, SIZE + 4096), "0x");
    INVALID(hipMemUnmap(s.mapped + 4096, SIZE), "0x");
    INVALID(hipMemUnmap(s.mapped + 4096, SIZE - 4096), "0x");
    INVALID(hipMemUnmap(s.mapped + 1, SIZE), "0x");
    INVALID(hipMemUnmap(s.mapped, SIZE_MAX), "0x");
    INVALID(hipMemUnmap(s.mapped, SIZE_MAX & ~(size_t)4095), "0x");
    INVALID(hipMemUnmap(s.mapped, 5 * SIZE), "0x");
    INVALID(hipMemUnmap(s.mapped + 2 * SIZE, SIZE), "0x");
    INVALID(hipMemUnmap(s.reserved, SIZE), "0x");
    INVALID(hipMemUnmap(s.gone, SIZE), "0x");
    INVALID(hipMemUnmap(s.malloced, SIZE), "0x");
    INVALID(hipMemUnmap(&local, SIZE), "0x");
}

static void test_set_access(void **state)
{
    hipMemAccessDesc d = s.desc;
    int local;

    INVALID(hipMemSetAccess(NULL, SIZE, &d, 1), "ptr is NULL");
    INVALID(hipMemSetAccess(s.mapped, SIZE, NULL, 1), "desc is NULL");
    INVALID(hipMemSetAccess(s.mapped, 0, &d, 1), "size is 0");
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 0), "count is 0");
    INVALID(hipMemSetAccess(s.mapped, SIZE - 1, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped, SIZE + 1, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped, SIZE / 2, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped, SIZE_MAX, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped, 3 * SIZE, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped + 4096, SIZE, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.mapped + 2 * SIZE, SIZE, &d, 1), "0x");
    /* bugs.md A11. */
    INVALID(hipMemSetAccess(s.reserved, SIZE, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.gone, SIZE, &d, 1), "0x");
    INVALID(hipMemSetAccess(s.malloced, SIZE, &d, 1), "0x");
    INVALID(hipMemSetAccess(&local, SIZE, &d, 1), "0x");
    d.location.id = 2;
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0]: device 2");
    d.location.id = -1;
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0]: device -1");
    d.location.type = hipMemLocationTypeHostNuma;
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0]: NUMA node -1");
    d.location.type = hipMemLocationTypeInvalid;
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0] is of type 0");
    d.location.type = (hipMemLocationType)-1;
    INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0] is of type -1");
    for (int flags = -1; flags < 8; flags++) {
        d = s.desc;
        d.flags = (hipMemAccessFlags)flags;
        if (flags != 0 && flags != 1 && flags != 3)
            INVALID(hipMemSetAccess(s.mapped, SIZE, &d, 1), "desc[0]: flags");
    }
}

static void test_get_access(void **state)
{
    hipMemLocation l = s.desc.location;
    unsigned long long flags = 99;
    int local;

    INVALID(hipMemGetAccess(NULL, &l, s.mapped), "flags is NULL");
    INVALID(hipMemGetAccess(&flags, NULL, s.mapped), "location is NULL");
    INVALID(hipMemGetAccess(&flags, &l, NULL), "ptr is NULL");
    INVALID(hipMemGetAccess(&flags, &l, s.mapped + 2 * SIZE), "0x");
    INVALID(hipMemGetAccess(&flags, &l, s.reserved), "0x");
    INVALID(hipMemGetAccess(&flags, &l, s.gone), "0x");
    INVALID(hipMemGetAccess(&flags, &l, s.malloced), "0x");
    INVALID(hipMemGetAccess(&flags, &l, &local), "0x");
    INVALID(hipMemGetAccess(&flags, &l, (void *)UINTPTR_MAX), "0x");
    l.id = 2;
    INVALID(hipMemGetAccess(&flags, &l, s.mapped), "device 2");
    l.id = -1;
    INVALID(hipMemGetAccess(&flags, &l, s.mapped), "device -1");
    l.type = hipMemLocationTypeInvalid;
    INVALID(hipMemGetAccess(&flags, &l, s.mapped), "of type 0");
    assert_int_equal(flags, 99);
}

static void test_granularity(void **state)
{
    const hipMemAllocationGranularity_flags minimum = hipMemAllocationGranularityMinimum;
    hipMemAllocationProp p = s.prop;
    size_t out = 99;

    INVALID(hipMemGetAllocationGranularity(NULL, &p, minimum), "granularity is NULL");
    INVALID(hipMemGetAllocationGranularity(&out, NULL, minimum), "prop is NULL");
    INVALID(hipMemGetAllocationGranularity(&out, &p, (hipMemAllocationGranularity_flags)2),
            "option is 2");
    INVALID(hipMemGetAllocationGranularity(&out, &p, (hipMemAllocationGranularity_flags)-1),
            "option is -1");
    p.location.id = 2;
    INVALID(hipMemGetAllocationGranularity(&out, &p, minimum), "device 2");
    p.location.id = -1;
    INVALID(hipMemGetAllocationGranularity(&out, &p, minimum), "device -1");
    p.location.type = hipMemLocationTypeInvalid;
    INVALID(hipMemGetAllocationGranularity(&out, &p, minimum), "of type 0");
    p = s.prop;
    p.type = hipMemAllocationTypeInvalid;
    INVALID(hipMemGetAllocationGranularity(&out, &p, minimum), "prop->type");
    assert_int_equal(out, 99);
}

static void test_retain(void **state)
{
    hipMemGenericAllocationHandle_t out = s.stale;
    int local;

    INVALID(hipMemRetainAllocationHandle(NULL, s.mapped), "handle is NULL");
    INVALID(hipMemRetainAllocationHandle(&out, NULL), "addr is NULL");
    INVALID(hipMemRetainAllocationHandle(&out, s.mapped + 2 * SIZE), "0x");
    INVALID(hipMemRetainAllocationHandle(&out, s.reserved), "0x");
    INVALID(hipMemRetainAllocationHandle(&out, s.gone), "0x");
    /* bugs.md C09. */
    INVALID(hipMemRetainAllocationHandle(&out, s.malloced), "0x");
    INVALID(hipMemRetainAllocationHandle(&out, &local), "0x");
    INVALID(hipMemRetainAllocationHandle(&out, (void *)UINTPTR_MAX), "0x");
    assert_ptr_equal(out, s.stale);
}

static void test_export(void **state)
{
    const hipMemAllocationHandleType type = hipMemHandleTypePosixFileDescriptor;
    int fd = -1;

    INVALID(hipMemExportToShareableHandle(NULL, s.handle, type, 0), "shareableHandle is NULL");
    INVALID(hipMemExportToShareableHandle(&fd, NULL, type, 0), "handle is NULL");
    INVALID(hipMemExportToShareableHandle(&fd, s.handle, type, 1), "flags");
    INVALID(hipMemExportToShareableHandle(&fd, s.handle, hipMemHandleTypeNone, 0), "type is 0");
    INVALID(hipMemExportToShareableHandle(&fd, s.handle, hipMemHandleTypeWin32, 0), "type is 2");
    INVALID(hipMemExportToShareableHandle(&fd, s.handle, hipMemHandleTypeFabric, 0), "type is 8");
    INVALID(hipMemExportToShareableHandle(&fd, s.handle, (hipMemAllocationHandleType)3, 0),
            "type is 3");
    INVALID(hipMemExportToShareableHandle(&fd, s.imported, type, 0), "import");
    assert_int_equal(fd, -1);
}

static void test_import(void **state)
{
    const hipMemAllocationHandleType type = hipMemHandleTypePosixFileDescriptor;
    hipMemGenericAllocationHandle_t out = s.stale;
    void *fd = (void *)(intptr_t)s.fd;
    int pipes[2], bad = -1;

    assert_int_equal(pipe(pipes), 0);
    INVALID(hipMemImportFromShareableHandle(NULL, fd, type), "handle is NULL");
    INVALID(hipMemImportFromShareableHandle(&out, NULL, type), "osHandle is NULL");
    INVALID(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)pipes[0], type), "descriptor");
    INVALID(hipMemImportFromShareableHandle(&out, &pipes[1], type), "descriptor");
    INVALID(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)1000, type), "descriptor");
    INVALID(hipMemImportFromShareableHandle(&out, &bad, type), "descriptor");
    INVALID(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)-1, type), "osHandle");
    INVALID(hipMemImportFromShareableHandle(&out, (void *)((uintptr_t)1 << 50), type), "osHandle");
    INVALID(hipMemImportFromShareableHandle(&out, s.mapped, type), "osHandle");
    INVALID(hipMemImportFromShareableHandle(&out, fd, hipMemHandleTypeNone), "type is 0");
    INVALID(hipMemImportFromShareableHandle(&out, fd, (hipMemAllocationHandleType)3), "type is 3");
    REFUSED(hipMemImportFromShareableHandle(&out, fd, hipMemHandleTypeWin32), hipErrorNotSupported,
            "type is 2");
    REFUSED(hipMemImportFromShareableHandle(&out, fd, hipMemHandleTypeFabric), hipErrorNotSupported,
            "type is 8");
    close(pipes[0]);
    close(pipes[1]);
    assert_ptr_equal(out, s.stale);
}

static void test_range_handle(void **state)
{
    const hipMemRangeHandleType type = hipMemRangeHandleTypeDmaBufFd;
    int fd = -1, local;

    INVALID(hipMemGetHandleForAddressRange(NULL, s.mapped, SIZE, type, 0), "handle is NULL");
    INVALID(hipMemGetHandleForAddressRange(&fd, NULL, SIZE, type, 0), "ptr is NULL");
    INVALID(hipMemGetHandleForAddressRange(&fd, s.mapped, 0, type, 0), "size is 0");
    INVALID(hipMemGetHandleForAddressRange(&fd, s.mapped, SIZE, hipMemRangeHandleTypeMax, 0),
            "type");
    INVALID(hipMemGetHandleForAddressRange(&fd, s.mapped, SIZE, type, 2), "flags");
    REFUSED(hipMemGetHandleForAddressRange(&fd, s.mapped, SIZE, type, 1), hipErrorNotSupported,
            "PCIe");
    REFUSED(hipMemGetHandleForAddressRange(&fd, s.mapped, 2 * SIZE, type, 0), hipErrorNotSupported,
            "one mapping");
    REFUSED(hipMemGetHandleForAddressRange(&fd, s.mapped + SIZE, SIZE, type, 0),
            hipErrorNotSupported, "begin");
    INVALID(hipMemGetHandleForAddressRange(&fd, s.reserved, SIZE, type, 0), "0x");
    INVALID(hipMemGetHandleForAddressRange(&fd, s.gone, SIZE, type, 0), "0x");
    INVALID(hipMemGetHandleForAddressRange(&fd, &local, 4, type, 0), "0x");
    assert_int_equal(fd, -1);
}

/* VMM pointers given to the one-step family. */
static void test_one_step_calls_refuse_vmm_memory(void **state)
{
    hipIpcMemHandle_t ipc;
    int local;

    INVALID(hipFree(s.mapped), "0x");
    INVALID(hipFree(s.mapped + SIZE), "0x");
    INVALID(hipFree(s.reserved), "0x");
    INVALID(hipFree(s.malloced + 4096), "0x");
    INVALID(hipFree(&local), "0x");
    INVALID(hipHostFree(s.mapped), "0x");
    INVALID(hipFreeAsync(s.mapped, NULL), "0x");
    /* bugs.md C11, C12. */
    INVALID(hipIpcGetMemHandle(&ipc, s.mapped), "0x");
    INVALID(hipIpcGetMemHandle(&ipc, s.mapped + SIZE + 5), "0x");
    INVALID(hipIpcGetMemHandle(&ipc, s.reserved), "0x");
    REFUSED(hipIpcGetMemHandle(&ipc, s.malloced), hipErrorNotSupported, "hipMemExport");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_address_reserve),
        TEST(test_address_free),
        TEST(test_create),
        TEST(test_handles),
        TEST(test_map),
        TEST(test_unmap),
        TEST(test_set_access),
        TEST(test_get_access),
        TEST(test_granularity),
        TEST(test_retain),
        TEST(test_export),
        TEST(test_import),
        TEST(test_range_handle),
        TEST(test_one_step_calls_refuse_vmm_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
