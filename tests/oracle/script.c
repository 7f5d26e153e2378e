/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "common.h"
#include "names.h"

#include <sys/mman.h>
#include <unistd.h>

#define MAX_MADE 20480
#define PAGE MIB(2)

static void check(bool holds, const char *what)
{
    if (!holds && !run.problem)
        run.problem = what;
}

static hipMemGenericAllocationHandle_t handle_value(const char *text)
{
    return (hipMemGenericAllocationHandle_t)(uintptr_t)number(text);
}

static void made(struct slot *slot, hipError_t result, uint64_t value, uint64_t size)
{
    if (result == hipSuccess)
        *slot = (struct slot){.value = value, .size = size, .live = true};
}

static hipError_t do_reserve(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);
    uint64_t size = number(w->word[2]), hint = option(w, "hint", 0);
    void *va = (void *)0x1234;
    hipError_t result = hipMemAddressReserve(&va, size, option(w, "align", 0),
                                             (void *)(uintptr_t)hint, option(w, "flags", 0));

    check(result == hipSuccess || va == (void *)0x1234 || !va, "output of a failed reserve");
    made(slot, result, (uintptr_t)va, size);
    return result;
}

static hipError_t do_free(const struct words *w)
{
    uint64_t va = number(w->word[1]), size = number(w->word[2]);
    hipError_t result = hipMemAddressFree((void *)(uintptr_t)va, size);

    for (unsigned i = 0; result == hipSuccess && i < NAMES; i++) {
        if (run.r[i].live && run.r[i].value == va)
            run.r[i].live = false;
    }
    return result;
}

static hipMemAllocationProp prop_of(const struct words *w)
{
    hipMemAllocationProp prop = device_prop((int)option(w, "id", 0));
    uint32_t pad = (uint32_t)option(w, "pad", 0);

    prop.type = (hipMemAllocationType)option(w, "type", hipMemAllocationTypePinned);
    prop.location.type = (hipMemLocationType)option(w, "loc", hipMemLocationTypeDevice);
    prop.requestedHandleType = (hipMemAllocationHandleType)option(w, "ht", 0);
    prop.win32HandleMetaData = (void *)(uintptr_t)option(w, "win", 0);
    prop.allocFlags.compressionType = (unsigned char)option(w, "comp", 0);
    prop.allocFlags.gpuDirectRDMACapable = (unsigned char)option(w, "rdma", 0);
    prop.allocFlags.usage = (unsigned short)option(w, "usage", 0);
    memcpy((char *)&prop + 28, &pad, sizeof(pad));
    return prop;
}

static hipError_t do_create(const struct words *w)
{
    hipMemGenericAllocationHandle_t handle = (hipMemGenericAllocationHandle_t)(uintptr_t)0x1234;
    hipMemAllocationProp prop = prop_of(w);
    uint64_t size = number(w->word[2]);
    hipError_t result = hipMemCreate(has(w, "null") ? NULL : &handle, size,
                                     has(w, "noprop") ? NULL : &prop, option(w, "flags", 0));

    check(result == hipSuccess || (uintptr_t)handle == 0x1234, "output of a failed create");
    made(slot_of(w->word[1]), result, (uintptr_t)handle, size);
    return result;
}

static hipError_t do_map(const struct words *w)
{
    return hipMemMap(address(w->word[1]), number(w->word[2]), option(w, "off", 0),
                     handle_value(w->word[3]), option(w, "flags", 0));
}

static hipError_t do_unmap(const struct words *w)
{
    return hipMemUnmap(address(w->word[1]), number(w->word[2]));
}

static unsigned parse_rights(char *text, hipMemAccessDesc *descs, unsigned room)
{
    unsigned count = 0;
    char *save = NULL;

    for (char *one = strtok_r(text, ",", &save); one && count < room;
         one = strtok_r(NULL, ",", &save)) {
        char *equal = strchr(one, '='), *colon = strchr(one, ':');

        if (!equal || !colon)
            continue;
        *equal = *colon = '\0';
        descs[count] = device_access((int)number(colon + 1), (hipMemAccessFlags)number(equal + 1));
        descs[count++].location.type = (hipMemLocationType)number(one);
    }
    return count;
}

static hipError_t do_access(const struct words *w)
{
    static const struct {
        const char *name;
        hipMemAccessFlags flags;
    } usual[] = {{"no", hipMemAccessFlagsProtNone},
                 {"ro", hipMemAccessFlagsProtRead},
                 {"rw", hipMemAccessFlagsProtReadWrite}};
    hipMemAccessDesc descs[8] = {device_access(0, hipMemAccessFlagsProtReadWrite)};
    unsigned count = 0;
    char text[128];

    for (unsigned i = 0; i < COUNT_OF(usual); i++) {
        if (strcmp(w->word[3], usual[i].name) == 0) {
            descs[0].flags = usual[i].flags;
            count = 1;
        }
    }
    snprintf(text, sizeof(text), "%s", w->word[3]);
    if (count == 0)
        count = parse_rights(text, descs, COUNT_OF(descs));
    if (has(w, "null"))
        return hipMemSetAccess(address(w->word[1]), number(w->word[2]), NULL, 1);
    return hipMemSetAccess(address(w->word[1]), number(w->word[2]), descs, count);
}

static hipError_t do_get(const struct words *w)
{
    hipMemLocation location = {.type = (hipMemLocationType)option(w, "loc", 1),
                               .id = (int)option(w, "id", 0)};
    unsigned long long flags = 77;
    hipError_t result =
        hipMemGetAccess(&flags, has(w, "null") ? NULL : &location, address(w->word[1]));

    check(result == hipSuccess || flags == 77, "output of a failed get");
    if (result == hipSuccess && option_text(w, "want"))
        check(flags == option(w, "want", 0), "flags of get");
    return result;
}

static hipError_t do_retain(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);
    hipMemGenericAllocationHandle_t handle = (hipMemGenericAllocationHandle_t)(uintptr_t)0x1234;
    hipError_t result = hipMemRetainAllocationHandle(&handle, address(w->word[2]));

    check(result == hipSuccess || (uintptr_t)handle == 0x1234, "output of a failed retain");
    made(slot, result, (uintptr_t)handle, 0);
    return result;
}

static hipError_t do_release(const struct words *w)
{
    hipError_t result = hipMemRelease(handle_value(w->word[1]));
    struct slot *slot = slot_of(w->word[1]);

    if (result == hipSuccess && slot)
        slot->live = false;
    return result;
}

static hipError_t do_props(const struct words *w)
{
    hipMemAllocationProp prop;
    hipError_t result;

    memset(&prop, 0xff, sizeof(prop));
    result = hipMemGetAllocationPropertiesFromHandle(has(w, "null") ? NULL : &prop,
                                                     handle_value(w->word[1]));
    if (result != hipSuccess)
        return result;
    check(prop.type == hipMemAllocationTypePinned, "type of props");
    check(prop.requestedHandleType == option(w, "ht", prop.requestedHandleType),
          "handle type of props");
    check(prop.location.type == option(w, "loc", prop.location.type), "location of props");
    check((uint64_t)prop.location.id == option(w, "id", (uint64_t)prop.location.id),
          "device of props");
    return result;
}

static hipError_t do_gran(const struct words *w)
{
    hipMemAllocationProp prop = prop_of(w);
    size_t value = 0;
    hipError_t result = hipMemGetAllocationGranularity(
        has(w, "null") ? NULL : &value, has(w, "noprop") ? NULL : &prop,
        (hipMemAllocationGranularity_flags)option(w, "opt", 0));

    if (result == hipSuccess)
        check(value == (option(w, "opt", 0) ? MIB(2) : KIB(4)), "granularity");
    return result;
}

static hipError_t do_export(const struct words *w)
{
    int fd = -7;
    hipError_t result = hipMemExportToShareableHandle(
        has(w, "null") ? NULL : &fd, handle_value(w->word[2]),
        (hipMemAllocationHandleType)option(w, "type", 1), option(w, "flags", 0));

    check(result == hipSuccess || fd == -7, "output of a failed export");
    made(slot_of(w->word[1]), result, (uint64_t)fd, 0);
    return result;
}

static hipError_t do_import(const struct words *w)
{
    hipMemGenericAllocationHandle_t handle = (hipMemGenericAllocationHandle_t)(uintptr_t)0x1234;
    hipError_t result =
        hipMemImportFromShareableHandle(has(w, "null") ? NULL : &handle, address(w->word[2]),
                                        (hipMemAllocationHandleType)option(w, "type", 1));

    check(result == hipSuccess || (uintptr_t)handle == 0x1234, "output of a failed import");
    made(slot_of(w->word[1]), result, (uintptr_t)handle, 0);
    return result;
}

static hipError_t do_close(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);

    close((int)slot->value);
    slot->live = false;
    return hipSuccess;
}

static hipError_t do_malloc(const struct words *w)
{
    uint64_t size = number(w->word[2]);
    void *va = NULL;
    hipError_t result =
        strcmp(w->word[0], "malloc") == 0 ? hipMalloc(&va, size) : hipHostMalloc(&va, size, 0);

    made(slot_of(w->word[1]), result, (uintptr_t)va, size);
    return result;
}

static hipError_t do_mfree(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);
    hipError_t result = hipFree(address(w->word[1]));

    if (result == hipSuccess && slot)
        slot->live = false;
    return result;
}

/* Memory of the program itself, 2-MiB aligned. */
static hipError_t do_host(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);
    uint64_t size = number(w->word[2]);
    char *all = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t skip = (PAGE - (uintptr_t)all % PAGE) % PAGE;

    assert_true(all != MAP_FAILED);
    if (skip)
        munmap(all, skip);
    munmap(all + skip + size, PAGE - skip);
    made(slot, hipSuccess, (uintptr_t)all + skip, size);
    return hipSuccess;
}

static hipError_t do_unhost(const struct words *w)
{
    struct slot *slot = slot_of(w->word[1]);

    munmap((void *)(uintptr_t)slot->value, slot->size);
    slot->live = false;
    return hipSuccess;
}

static hipError_t do_set(const struct words *w)
{
    void *va = address(w->word[1]);
    int byte = (int)number(w->word[2]);
    uint64_t size = number(w->word[3]);

    return has(w, "async") ? hipMemsetAsync(va, byte, size, NULL) : hipMemset(va, byte, size);
}

static hipError_t do_toread(const struct words *w)
{
    uint64_t size = number(w->word[2]);
    void *bytes = malloc(size);
    hipError_t result = hipMemcpy(bytes, address(w->word[1]), size, hipMemcpyDeviceToHost);

    free(bytes);
    return result;
}

static hipError_t do_towrite(const struct words *w)
{
    uint64_t size = number(w->word[2]);
    void *bytes = calloc(1, size);
    hipError_t result = hipMemcpy(address(w->word[1]), bytes, size, hipMemcpyHostToDevice);

    free(bytes);
    return result;
}

static hipError_t do_copy(const struct words *w)
{
    void *to = address(w->word[1]), *from = address(w->word[2]);
    uint64_t size = number(w->word[3]);

    return has(w, "async") ? hipMemcpyAsync(to, from, size, hipMemcpyDeviceToDevice, NULL)
                           : hipMemcpy(to, from, size, hipMemcpyDeviceToDevice);
}

static hipError_t do_byte(const struct words *w)
{
    unsigned char byte = 0;
    hipError_t result = hipMemcpy(&byte, address(w->word[1]), 1, hipMemcpyDeviceToHost);

    check(result != hipSuccess || byte == number(w->word[2]), "byte in memory");
    return result;
}

static hipError_t do_ipc(const struct words *w)
{
    hipIpcMemHandle_t handle;

    return hipIpcGetMemHandle(&handle, address(w->word[1]));
}

/* A kernel's access that faults is the code a kernel's fault gives. */
static hipError_t do_store(const struct words *w)
{
    unsigned char byte =
        w->count > 2 && !strchr(w->word[2], '=') ? (unsigned char)number(w->word[2]) : 0x7b;

    return fake_gpu_write(machine.fake, (uint32_t)option(w, "gpu", 0), number(w->word[1]), &byte, 1,
                          NULL) == 0
               ? hipSuccess
               : hipErrorIllegalAddress;
}

static hipError_t do_load(const struct words *w)
{
    unsigned char byte = 0;

    if (fake_gpu_read(machine.fake, (uint32_t)option(w, "gpu", 0), number(w->word[1]), &byte, 1,
                      NULL) != 0)
        return hipErrorIllegalAddress;
    if (w->count > 2 && !strchr(w->word[2], '='))
        check(byte == number(w->word[2]), "byte the GPU loads");
    return hipSuccess;
}

static hipError_t do_range(const struct words *w)
{
    hipDeviceptr_t base = NULL;
    size_t size = 0;
    hipError_t result = hipMemGetAddressRange(&base, &size, address(w->word[1]));

    if (result != hipSuccess)
        return result;
    check((uintptr_t)base == option(w, "base", (uintptr_t)base), "base of range");
    check(size == option(w, "size", size), "size of range");
    return result;
}

static hipError_t do_attr(const struct words *w)
{
    static const struct {
        const char *name;
        hipPointer_attribute attribute;
    } names[] = {
        {"type", HIP_POINTER_ATTRIBUTE_MEMORY_TYPE},
        {"pointer", HIP_POINTER_ATTRIBUTE_DEVICE_POINTER},
        {"managed", HIP_POINTER_ATTRIBUTE_IS_MANAGED},
        {"device", HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
        {"ipc", HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE},
        {"start", HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR},
        {"size", HIP_POINTER_ATTRIBUTE_RANGE_SIZE},
        {"mapped", HIP_POINTER_ATTRIBUTE_MAPPED},
        {"handles", HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES},
        {"access", HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS},
    };
    uint64_t value = 0;

    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        hipError_t result;

        if (strcmp(w->word[1], names[i].name) != 0)
            continue;
        result = hipPointerGetAttribute(&value, names[i].attribute, address(w->word[2]));
        if (result == hipSuccess && option_text(w, "want"))
            check(value == option(w, "want", 0), w->word[1]);
        return result;
    }
    run.problem = "an attribute of the script";
    return hipSuccess;
}

static hipError_t do_hostload(const struct words *w)
{
    return cpu_can_read(address(w->word[1])) ? hipSuccess : hipErrorIllegalAddress;
}

/* The addresses are taken: neither readable nor free for another host mapping. */
static hipError_t do_nohost(const struct words *w)
{
    void *va = address(w->word[1]);
    uint64_t size = number(w->word[2]);
    void *other = mmap(va, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (other != MAP_FAILED)
        munmap(other, size);
    check(other == MAP_FAILED, "a host mapping over the reservation");
    check(!cpu_can_read(va), "a host load in the reservation");
    return hipSuccess;
}

/* Room behind the layout, as the cases go past its end. */
static hipError_t do_layout(const struct words *w)
{
    const char *layout = w->word[1];
    uint64_t size = MIB(16) > strlen(layout) * PAGE ? MIB(16) : strlen(layout) * PAGE;
    unsigned piece = 0;
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, size, 0, NULL, 0));
    made(&run.r[0], hipSuccess, (uintptr_t)base, size);
    for (unsigned i = 0; layout[i];) {
        hipMemAllocationProp prop = device_prop(0);
        hipMemGenericAllocationHandle_t handle = NULL;
        unsigned length = 1;

        while (layout[i + length] == layout[i])
            length++;
        if (layout[i] != '.') {
            HIP_OK(hipMemCreate(&handle, length * PAGE, &prop, 0));
            made(&run.h[piece++], hipSuccess, (uintptr_t)handle, length * PAGE);
            HIP_OK(hipMemMap(at(base, i * PAGE), length * PAGE, 0, handle, 0));
        }
        i += length;
    }
    return hipSuccess;
}

static hipError_t do_state(const struct words *w)
{
    hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = 0};

    for (unsigned i = 0; w->word[1][i]; i++) {
        unsigned long long flags = 0;
        void *va = at((void *)(uintptr_t)run.r[0].value, i * PAGE);
        hipError_t result = hipMemGetAccess(&flags, &location, va);
        char is = result != hipSuccess ? '.' : flags == 3 ? 'W' : flags == 1 ? 'R' : '0';
        bool write = fake_gpu_write(machine.fake, 0, (uintptr_t)va, "x", 1, NULL) == 0;

        check(is == w->word[1][i], "the state afterwards");
        check(write == (is == 'W'), "what the GPU may write afterwards");
    }
    return hipSuccess;
}

static hipError_t do_left(const struct words *w)
{
    int device = (int)option(w, "dev", 0);

    check(free_bytes(device) == run.free_at_start[device] - number(w->word[1]), "free memory");
    return hipSuccess;
}

static hipError_t do_equal(const struct words *w)
{
    bool equal = number(w->word[1]) == number(w->word[2]);

    check(equal == (strcmp(w->word[0], "equal") == 0), "two values");
    return hipSuccess;
}

static hipError_t do_aligned(const struct words *w)
{
    check(number(w->word[1]) % number(w->word[2]) == 0, "alignment");
    return hipSuccess;
}

/* COUNT reservations of SIZE, all alive at once, then freed. */
static hipError_t do_many(const struct words *w)
{
    static void *all[MAX_MADE];
    uint64_t count = number(w->word[1]), size = number(w->word[2]), n = 0;
    hipError_t result = hipSuccess;

    while (n < count && result == hipSuccess) {
        result = hipMemAddressReserve(&all[n], size, 0, NULL, 0);
        n += result == hipSuccess;
    }
    for (uint64_t i = 0; i < n; i++)
        check(hipMemAddressFree(all[i], size) == hipSuccess, "free of many");
    return result;
}

/* Handles of SIZE until one fails, at most COUNT; the failure is the result. */
static hipError_t do_untilfull(const struct words *w)
{
    static hipMemGenericAllocationHandle_t all[1024];
    uint64_t size = number(w->word[1]), count = number(w->word[2]), n = 0;
    hipMemAllocationProp prop = device_prop(0);
    hipError_t result = hipSuccess;

    while (n < count && n < COUNT_OF(all) && result == hipSuccess) {
        result = hipMemCreate(&all[n], size, &prop, 0);
        n += result == hipSuccess;
    }
    check(free_bytes(0) < size, "memory left when full");
    for (uint64_t i = 0; i < n; i++)
        check(hipMemRelease(all[i]) == hipSuccess, "release of many");
    check(free_bytes(0) == run.free_at_start[0], "memory after the release of all");
    return result;
}

static const struct {
    const char *name;
    unsigned arguments;
    hipError_t (*run)(const struct words *words);
} statements[] = {
    {"reserve", 2, do_reserve},   {"free", 2, do_free},     {"create", 2, do_create},
    {"map", 3, do_map},           {"unmap", 2, do_unmap},   {"access", 3, do_access},
    {"get", 1, do_get},           {"retain", 2, do_retain}, {"release", 1, do_release},
    {"props", 1, do_props},       {"gran", 0, do_gran},     {"export", 2, do_export},
    {"import", 2, do_import},     {"close", 1, do_close},   {"malloc", 2, do_malloc},
    {"hostmalloc", 2, do_malloc}, {"mfree", 1, do_mfree},   {"host", 2, do_host},
    {"unhost", 1, do_unhost},     {"set", 3, do_set},       {"toread", 2, do_toread},
    {"towrite", 2, do_towrite},   {"copy", 3, do_copy},     {"byte", 2, do_byte},
    {"ipc", 1, do_ipc},           {"store", 1, do_store},   {"load", 1, do_load},
    {"range", 1, do_range},       {"attr", 2, do_attr},     {"hostload", 1, do_hostload},
    {"nohost", 2, do_nohost},     {"layout", 1, do_layout}, {"state", 1, do_state},
    {"left", 1, do_left},         {"equal", 2, do_equal},   {"differ", 2, do_equal},
    {"aligned", 2, do_aligned},   {"many", 2, do_many},     {"untilfull", 2, do_untilfull},
};

static const char *code_name(hipError_t code)
{
    switch (code) {
    case hipSuccess:
        return "SUCCESS";
    case hipErrorInvalidValue:
        return "INVALID_VALUE";
    case hipErrorOutOfMemory:
        return "OUT_OF_MEMORY";
    case hipErrorNotSupported:
        return "NOT_SUPPORTED";
    case hipErrorInvalidDevice:
        return "INVALID_DEVICE";
    case hipErrorNotFound:
        return "NOT_FOUND";
    case hipErrorIllegalAddress:
        return "ILLEGAL_ADDRESS";
    default:
        return hipGetErrorName(code);
    }
}

static void take_away(void)
{
    for (unsigned i = 0; i < NAMES; i++) {
        if (run.r[i].live)
            (void)hipMemUnmap((void *)(uintptr_t)run.r[i].value, run.r[i].size);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        if (run.r[i].live)
            check(hipMemAddressFree((void *)(uintptr_t)run.r[i].value, run.r[i].size) == hipSuccess,
                  "the last free");
        if (run.a[i].live)
            check(hipFree((void *)(uintptr_t)run.a[i].value) == hipSuccess, "the last hipFree");
        if (run.p[i].live)
            munmap((void *)(uintptr_t)run.p[i].value, run.p[i].size);
        if (run.f[i].live)
            close((int)run.f[i].value);
        if (run.h[i].live)
            check(hipMemRelease((hipMemGenericAllocationHandle_t)(uintptr_t)run.h[i].value) ==
                      hipSuccess,
                  "the last release");
    }
    for (int i = 0; i < machine.devices; i++)
        check(free_bytes(i) == run.free_at_start[i], "memory left behind");
    (void)hipGetLastError();
}

/* Runs one statement; the result's name. */
static const char *step(char *statement)
{
    struct words w = {.count = 0};
    char *save = NULL;

    for (char *word = strtok_r(statement, " ", &save); word && w.count < MAX_WORDS;
         word = strtok_r(NULL, " ", &save))
        w.word[w.count++] = word;
    for (unsigned i = 0; w.count && i < COUNT_OF(statements); i++) {
        if (strcmp(statements[i].name, w.word[0]) == 0 && w.count > statements[i].arguments)
            return code_name(statements[i].run(&w));
    }
    run.problem = "a statement the script language does not have";
    return "";
}

const char *script_run(const char *script, char *text, unsigned size)
{
    const char *result = NULL;
    char line[1024], statement[256], *save = NULL;

    memset(&run, 0, sizeof(run));
    for (int i = 0; i < machine.devices; i++)
        run.free_at_start[i] = free_bytes(i);
    snprintf(line, sizeof(line), "%s", script);
    for (char *one = strtok_r(line, ";", &save); one && !run.problem;
         one = strtok_r(NULL, ";", &save)) {
        char want[64] = "SUCCESS";
        const char *got;
        int skip = 0;

        one += strspn(one, " ");
        snprintf(statement, sizeof(statement), "%s", one);
        if (*one == '=' && sscanf(one, "=%63s %n", want, &skip) != 1)
            run.problem = "a code of the script";
        got = step(statement + (*one == '!' ? 1 : skip));
        if (*one == '!')
            result = got;
        else if (!run.problem && strcmp(got, want) != 0)
            run.problem = "the code of a statement";
        if (run.problem)
            snprintf(text, size, "%s in \"%s\": %s; %s", run.problem, one, got, kfd_error_text());
    }
    if (!run.problem) {
        take_away();
        if (run.problem)
            snprintf(text, size, "%s; %s", run.problem, kfd_error_text());
    } else {
        take_away();
    }
    return run.problem ? NULL : result;
}
