/* SPDX-License-Identifier: MIT */
/*
 * Random HIP calls with arguments that are right, stale, foreign or nonsense, and system calls that
 * fail now and then. Nothing is expected of a single call but that it does not crash, gives a code
 * that is documented, and says why it failed; the library's invariants hold throughout, and in the
 * end everything can be given back.
 *
 * usage: stress_hip [calls]
 */
#include "../unit/hip_api/fixture.h"
#include "../unit/vmm/random.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 24u
#define BUFFER (2 * MIB)

static struct random r;
static uint64_t calls = 6000;

/* What calls gave, dead or alive: stale values are wanted. */
static struct {
    char *range[SLOTS];
    size_t range_size[SLOTS];
    void *memory[SLOTS];
    hipMemGenericAllocationHandle_t handle[SLOTS];
    hipStream_t stream[SLOTS];
    hipEvent_t event[SLOTS];
    int fd[SLOTS];
    char *buffer; /* BUFFER bytes of the program's own */
} pool;

static struct kfd_sys *injector; /* NULL: no call fails */

/* From here on no system call fails. */
static void calm(void)
{
    if (injector)
        kfd_sys_inject_set(injector, NULL);
}

static uint32_t any(uint32_t n)
{
    return (uint32_t)random_below(&r, n);
}

static size_t size(void)
{
    static const size_t sizes[] = {0,       1,        4095,     4096,
                                   8192,    65536,    MIB,      2 * MIB,
                                   4 * MIB, 16 * MIB, SIZE_MAX, SIZE_MAX - 4095,
                                   1 << 21, 64 * GIB, 1 << 12,  (size_t)1 << 62};

    return any(8) ? sizes[any(sizeof(sizes) / sizeof(sizes[0]))] : random_next(&r);
}

static char *address(void)
{
    uint32_t slot = any(SLOTS);
    char *base = any(2) ? pool.range[slot] : pool.memory[slot];

    switch (any(12)) {
    case 0:
        return NULL;
    case 1:
        return (char *)(uintptr_t)random_next(&r);
    case 2:
        return (char *)UINTPTR_MAX - any(8192);
    case 3:
        return pool.buffer + any(4) * 4096;
    case 4:
        return base ? base + any(1 << 22) : NULL;
    case 5:
    case 6:
        return base ? base + any(1024) * 4096 : NULL;
    default:
        return base;
    }
}

static hipMemGenericAllocationHandle_t handle(void)
{
    switch (any(16)) {
    case 0:
        return NULL;
    case 1:
        return (hipMemGenericAllocationHandle_t)(uintptr_t)random_next(&r);
    case 2:
        return (hipMemGenericAllocationHandle_t)address();
    default:
        return pool.handle[any(SLOTS)];
    }
}

static int device(void)
{
    static const int devices[] = {0, 0, 0, 1, 1, 2, -1, INT32_MAX, INT32_MIN};

    return devices[any(sizeof(devices) / sizeof(devices[0]))];
}

static unsigned flags(void)
{
    return any(4) ? 0 : any(2) ? 1u << any(32) : (unsigned)random_next(&r);
}

static hipMemLocation location(void)
{
    hipMemLocation l = {.type = (hipMemLocationType)(any(8) ? 1 + any(2) : any(9)), .id = device()};

    return l;
}

static hipMemAllocationProp properties(void)
{
    hipMemAllocationProp p = {.type = hipMemAllocationTypePinned, .location = location()};

    if (any(6) == 0)
        p.type = (hipMemAllocationType)(any(2) ? 0x40000000u : any(5));
    if (any(2))
        p.requestedHandleTypes = (hipMemAllocationHandleType)(any(6) ? 1 : any(16));
    return p;
}

/* Makes room for new ones; until then the dead are tried again. */
static void forget_dead_ranges(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        hipError_t code = hipMemUnmap(pool.range[i], SIZE_MAX);

        if (code != hipSuccess && strstr(hipxGetLastErrorText(), "in no reservation"))
            pool.range[i] = NULL;
    }
}

static void forget_handle(hipMemGenericAllocationHandle_t dead)
{
    calm();
    while (hipMemRelease(dead) == hipSuccess)
        ;
    for (uint32_t i = 0; i < SLOTS; i++)
        pool.handle[i] = pool.handle[i] == dead ? NULL : pool.handle[i];
}

static hipError_t call_range(uint32_t which, const char **name)
{
    hipMemAccessDesc desc[3] = {
        {location(), (hipMemAccessFlags)(any(8) ? 3 * any(2) : any(5))},
        {location(), hipMemAccessFlagsProtRead},
        {location(), hipMemAccessFlagsProtReadWrite},
    };
    unsigned long long got;
    uint32_t slot = any(SLOTS);
    void *out = NULL;
    hipError_t code;
    size_t bytes;

    switch (which) {
    case 0:
        *name = "hipMemAddressReserve";
        bytes = size();
        code = hipMemAddressReserve(&out, bytes, any(4) ? 0 : size(), any(4) ? NULL : address(),
                                    flags());
        if (code == hipSuccess && !pool.range[slot]) {
            pool.range[slot] = out;
            pool.range_size[slot] = bytes;
        } else if (code == hipSuccess) {
            calm();
            HIP_OK(hipMemAddressFree(out, bytes));
        }
        return code;
    case 1:
        *name = "hipMemAddressFree";
        bytes = any(4) ? pool.range_size[slot] : size();
        code = hipMemAddressFree(any(2) ? pool.range[slot] : address(), bytes);
        if (code == hipSuccess && any(2))
            forget_dead_ranges();
        return code;
    case 2:
        *name = "hipMemMap";
        return hipMemMap(address(), any(2) ? 2 * MIB : size(), any(4) ? 0 : size(), handle(),
                         flags());
    case 3:
        *name = "hipMemUnmap";
        return hipMemUnmap(address(), any(2) ? 2 * MIB : size());
    case 4:
        *name = "hipMemSetAccess";
        return hipMemSetAccess(address(), any(2) ? 2 * MIB : size(), any(16) ? desc : NULL, any(4));
    default:
        *name = "hipMemGetAccess";
        return hipMemGetAccess(any(16) ? &got : NULL, &desc[0].location, address());
    }
}

static hipError_t call_handle(uint32_t which, const char **name)
{
    hipMemAllocationProp prop = properties();
    hipMemGenericAllocationHandle_t out = NULL;
    uint32_t slot = any(SLOTS);
    hipError_t code;
    size_t got;
    int fd = -1;

    switch (which) {
    case 0:
    case 1:
        *name = "hipMemCreate";
        code = hipMemCreate(&out, any(2) ? 2 * MIB : size(), any(16) ? &prop : NULL, flags());
        break;
    case 2:
        *name = "hipMemRelease";
        out = handle();
        code = hipMemRelease(out);
        if (code == hipSuccess && any(2))
            forget_handle(out);
        return code;
    case 3:
        *name = "hipMemRetainAllocationHandle";
        code = hipMemRetainAllocationHandle(&out, address());
        break;
    case 4:
        *name = "hipMemGetAllocationPropertiesFromHandle";
        return hipMemGetAllocationPropertiesFromHandle(any(16) ? &prop : NULL, handle());
    case 5:
        *name = "hipMemGetAllocationGranularity";
        return hipMemGetAllocationGranularity(any(16) ? &got : NULL, &prop,
                                              (hipMemAllocationGranularity_flags)any(3));
    case 6:
        *name = any(2) ? "hipMemExportToShareableHandle" : "hipMemGetHandleForAddressRange";
        code = (*name)[6] == 'E'
                   ? hipMemExportToShareableHandle(&fd, handle(),
                                                   (hipMemAllocationHandleType)any(3), flags())
                   : hipMemGetHandleForAddressRange(&fd, address(), size(),
                                                    hipMemRangeHandleTypeDmaBufFd, flags());
        if (code == hipSuccess) {
            if (pool.fd[slot] >= 0)
                close(pool.fd[slot]);
            pool.fd[slot] = fd;
        }
        return code;
    default:
        *name = "hipMemImportFromShareableHandle";
        fd = any(4) ? pool.fd[slot] : (int)any(64);
        code = hipMemImportFromShareableHandle(&out, (void *)(intptr_t)fd,
                                               (hipMemAllocationHandleType)(any(4) ? 1 : any(9)));
        break;
    }
    if (code == hipSuccess && !pool.handle[slot])
        pool.handle[slot] = out;
    else if (code == hipSuccess) {
        calm();
        HIP_OK(hipMemRelease(out));
    }
    return code;
}

static hipError_t call_memory(uint32_t which, const char **name)
{
    uint32_t slot = any(SLOTS);
    void *out = NULL;
    hipError_t code;
    size_t n;

    switch (which) {
    case 0:
        *name = "hipMalloc";
        code = hipMalloc(&out, size() & (16 * MIB - 1));
        break;
    case 1:
        *name = "hipHostMalloc";
        code = hipHostMalloc(&out, size() & (4 * MIB - 1), flags() & 0x1f);
        break;
    case 2:
    case 3:
        *name = "hipFree";
        return hipFree(any(2) ? pool.memory[slot] : address());
    case 4:
        *name = "hipHostRegister";
        return hipHostRegister(any(4) ? pool.buffer + any(64) * 4096 : address(),
                               any(2) ? 1 + any(65536) : size() & (BUFFER / 2 - 1), flags());
    case 5:
        *name = "hipHostUnregister";
        return hipHostUnregister(any(4) ? pool.buffer + any(64) * 4096 : address());
    case 6:
        *name = "hipMemset";
        return hipMemset(address(), 1, size());
    case 7:
        *name = "hipMemcpy";
        n = any(BUFFER);
        out = address();
        /* A wild pointer would be taken for the program's own. */
        return any(2) ? hipMemcpy(out, pool.buffer, n, hipMemcpyHostToDevice)
                      : hipMemcpy(pool.buffer, out, n, hipMemcpyDeviceToHost);
    default:
        *name = "hipDeviceReset";
        return any(8) ? hipSuccess : hipDeviceReset();
    }
    if (code == hipSuccess && !pool.memory[slot])
        pool.memory[slot] = out;
    else if (code == hipSuccess) {
        calm();
        HIP_OK(hipFree(out));
    }
    return code;
}

static hipError_t call_question(uint32_t which, const char **name)
{
    hipPointerAttribute_t attributes;
    uint32_t slot = any(SLOTS);
    hipDeviceptr_t base;
    uint64_t data[8];
    hipError_t code;
    size_t bytes;
    float ms;

    switch (which) {
    case 0:
        *name = "hipPointerGetAttributes";
        return hipPointerGetAttributes(any(16) ? &attributes : NULL, address());
    case 1:
        *name = "hipPointerGetAttribute";
        return hipPointerGetAttribute(data, (hipPointer_attribute)any(24), address());
    case 2:
        *name = "hipMemGetAddressRange";
        return hipMemGetAddressRange(any(4) ? &base : NULL, any(4) ? &bytes : NULL, address());
    case 3:
        *name = "hipStreamCreate";
        code = hipStreamCreate(&pool.stream[slot]);
        return code;
    case 4:
        *name = "hipStreamDestroy";
        return hipStreamDestroy(any(2) ? pool.stream[slot]
                                       : (hipStream_t)(uintptr_t)random_next(&r));
    case 5:
        *name = "hipEventCreate";
        return hipEventCreate(&pool.event[slot]);
    case 6:
        *name = "hipEventElapsedTime";
        return hipEventElapsedTime(&ms, pool.event[slot], (hipEvent_t)(uintptr_t)random_next(&r));
    case 7:
        *name = "hipSetDevice";
        return hipSetDevice(device());
    default:
        *name = "hipMemGetInfo";
        return hipMemGetInfo(any(2) ? &bytes : NULL, NULL);
    }
}

static bool documented(hipError_t code, bool failing)
{
    switch (code) {
    case hipSuccess:
    case hipErrorInvalidValue:
    case hipErrorInvalidDevice:
    case hipErrorInvalidHandle:
    case hipErrorNotSupported:
    case hipErrorOutOfMemory:
    case hipErrorNotFound:
    case hipErrorHostMemoryAlreadyRegistered:
    case hipErrorHostMemoryNotRegistered:
        return true;
    default:
        return failing && code == hipErrorOperatingSystem;
    }
}

static void give_everything_back(void)
{
    for (int d = 0; d < 2; d++) {
        HIP_OK(hipSetDevice(d));
        HIP_OK(hipDeviceReset());
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        while (pool.handle[i] && hipMemRelease(pool.handle[i]) == hipSuccess)
            ;
        if (pool.fd[i] >= 0)
            close(pool.fd[i]);
    }
    for (size_t at = 0; at < BUFFER; at += 4096)
        (void)hipHostUnregister(pool.buffer + at);
}

/* Whatever address a reservation has by now: the VMM's own list is the truth. */
static void free_reservations(struct vmm *vmm)
{
    struct vmm_range range;

    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t va = (uint64_t)(uintptr_t)pool.range[i];

        if (vmm_query(vmm, va, &range) != 0 || range.resv_size == 0)
            continue;
        (void)vmm_unmap(vmm, range.resv_base, range.resv_size);
        assert_int_equal(vmm_address_free(vmm, range.resv_base, range.resv_size), 0);
    }
}

static void run(const char *machine, const char *kernel, bool failing)
{
    uint64_t succeeded = 0;
    struct fixture f;

    memset(&pool, 0, sizeof(pool));
    memset(pool.fd, -1, sizeof(pool.fd));
    pool.buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pool.buffer, MAP_FAILED);
    fixture_open_over(&f, machine, kernel, failing ? &injector : NULL);
    for (uint64_t i = 0; i < calls; i++) {
        const char *name = "";
        hipError_t code;

        if (failing && i % 4 == 0) {
            struct kfd_sys_fault fault = {
                .op = KFD_SYS_ANY, .skip = any(6), .error = any(2) ? EIO : ENOMEM};

            kfd_sys_inject_set(injector, any(2) ? &fault : NULL);
        }
        switch (any(4)) {
        case 0:
            code = call_range(any(6), &name);
            break;
        case 1:
            code = call_handle(any(8), &name);
            break;
        case 2:
            code = call_memory(any(9), &name);
            break;
        default:
            code = call_question(any(9), &name);
            break;
        }
        succeeded += code == hipSuccess;
        if (!documented(code, failing))
            fail_msg("call %llu: %s: %s: %s", (unsigned long long)i, name, hipGetErrorName(code),
                     hipxGetLastErrorText());
        if (code != hipSuccess)
            check_text(name, hipxGetLastErrorText());
        if (i % 64 == 0 && vmm_validate(f.vmm) != 0)
            fail_msg("after call %llu, %s: %s", (unsigned long long)i, name, kfd_error_text());
        /* A slot whose value is dead by now may be given anew, or kept to be used again. */
        if (any(8) == 0)
            pool.memory[any(SLOTS)] = NULL;
    }
    print_message("# %llu of %llu calls succeeded\n", (unsigned long long)succeeded,
                  (unsigned long long)calls);
    assert_in_range(succeeded, calls / 8, calls);
    calm();
    give_everything_back();
    free_reservations(f.vmm);
    fixture_close(&f);
    kfd_sys_destroy(injector);
    injector = NULL;
    munmap(pool.buffer, BUFFER);
}

static void test_any_arguments(void **state)
{
    r = random_start("hip arguments");
    run("mi300x:2", "6.12", false);
}

static void test_any_arguments_on_the_gem_engine(void **state)
{
    r = random_start("hip arguments, gem");
    run("mi210:2", "6.1", false);
}

static void test_any_arguments_while_system_calls_fail(void **state)
{
    r = random_start("hip arguments, failing");
    run("mi300x:2", "current", true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_arguments),
        cmocka_unit_test(test_any_arguments_on_the_gem_engine),
        cmocka_unit_test(test_any_arguments_while_system_calls_fail),
    };

    if (argc > 1)
        calls = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
