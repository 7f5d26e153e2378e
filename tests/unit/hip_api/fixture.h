/* SPDX-License-Identifier: MIT */
/* HIP on a fake machine, one machine per test, and what its GPUs see. */
#ifndef TESTS_UNIT_HIP_API_FIXTURE_H
#define TESTS_UNIT_HIP_API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/fake.h>

#include "hip_api/state.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Fails the test with the library's own text. */
#define HIP_OK(call)                                                                          \
    do {                                                                                      \
        hipError_t hip_code = (call);                                                         \
                                                                                              \
        if (hip_code != hipSuccess)                                                           \
            fail_msg("%s: %s: %s", #call, hipGetErrorName(hip_code), hipxGetLastErrorText()); \
    } while (0)

/* Every text is one sentence: "hipMemMap: offset 0x10 is not a multiple of 0x1000". It names the
 * call once and then what is wrong, without an end stop, so that a program can put it anywhere. A
 * second name in front would be the text of an older failure. */
static inline void check_text(const char *call, const char *text)
{
    size_t name = strcspn(call, "("), end = strcspn(text, ":");
    const char *rest = text + end;

    if (strncmp(call, text, name) != 0 || strncmp(rest, ": ", 2) != 0)
        fail_msg("%s: the text does not begin with the call: %s", call, text);
    rest += 2;
    if (strncmp(rest, "hip", 3) == 0 || strstr(rest, ": hip") || strstr(rest, "vmm_"))
        fail_msg("%s: the text names another call: %s", call, text);
    if (strlen(rest) < 8 || strpbrk(text, "\n\t") || strchr(".: ", text[strlen(text) - 1]))
        fail_msg("%s: no sentence: \"%s\"", call, text);
    for (const char *p = strstr(text, ": "); p; p = strstr(p + 2, ": ")) {
        if (strncmp(p, strstr(p + 2, ": ") ? strstr(p + 2, ": ") : "", 6) == 0)
            fail_msg("%s: the text says something twice: %s", call, text);
    }
}

/* The code, a word of the text, and that it is made like the others. */
#define HIP_FAILS(call, expected, word)                                                     \
    do {                                                                                    \
        hipError_t hip_code = (call);                                                       \
                                                                                            \
        if (hip_code != (expected))                                                         \
            fail_msg("%s: %s, not %s: %s", #call, hipGetErrorName(hip_code),                \
                     hipGetErrorName(expected), hipxGetLastErrorText());                    \
        if (!strstr(hipxGetLastErrorText(), word))                                          \
            fail_msg("%s: the text lacks \"%s\": %s", #call, word, hipxGetLastErrorText()); \
        check_text(#call, hipxGetLastErrorText());                                          \
    } while (0)

struct fixture {
    struct fake *fake;
    struct vmm *vmm;
};

/* injector: NULL, or what becomes one in front of the machine, to be destroyed after the close. */
static inline void fixture_open_over(struct fixture *f, const char *machine, const char *kernel,
                                     struct kfd_sys **injector)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = machine, .kernel = kernel, .flags = FAKE_STRICT};
    struct hip_state *hip;

    hipxReset();
    if (fake_create(&options, &f->fake) != 0)
        fail_msg("%s", fake_error_text());
    if (injector)
        assert_int_equal(kfd_sys_inject_new(fake_sys(f->fake), injector), 0);
    kfd_sys_set_default(injector ? *injector : fake_sys(f->fake));
    HIP_OK(hip_start(&hip));
    f->vmm = hip->vmm;
}

static inline void fixture_open(struct fixture *f, const char *machine, const char *kernel)
{
    fixture_open_over(f, machine, kernel, NULL);
}

/* Checks that the test left nothing behind. */
static inline void fixture_close(struct fixture *f)
{
    struct vmm_stats stats;
    struct fake_usage usage;

    assert_int_equal(vmm_validate(f->vmm), 0);
    vmm_get_stats(f->vmm, &stats);
    assert_int_equal(stats.reservations, 0);
    assert_int_equal(stats.allocations, 0);
    assert_int_equal(stats.mappings, 0);
    assert_int_equal(stats.one_step, 0);
    if (fake_strict_count(f->fake) != 0)
        fail_msg("%s", fake_strict_report(f->fake));
    hipxReset();
    assert_int_equal(fake_get_usage(f->fake, &usage), 0);
    assert_int_equal(usage.kfd_handles, 0);
    assert_int_equal(usage.gem_handles, 0);
    assert_int_equal(usage.mappings, 0);
    kfd_sys_set_default(NULL);
    fake_destroy(f->fake);
}

static inline hipMemAllocationProp device_prop(int device)
{
    hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned};

    prop.location.type = hipMemLocationTypeDevice;
    prop.location.id = device;
    return prop;
}

static inline hipMemAccessDesc device_access(int device, hipMemAccessFlags flags)
{
    hipMemAccessDesc desc = {.flags = flags};

    desc.location.type = hipMemLocationTypeDevice;
    desc.location.id = device;
    return desc;
}

static inline hipMemGenericAllocationHandle_t make_handle(int device, size_t size, bool shareable)
{
    hipMemAllocationProp prop = device_prop(device);
    hipMemGenericAllocationHandle_t handle = NULL;

    if (shareable)
        prop.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
    HIP_OK(hipMemCreate(&handle, size, &prop, 0));
    return handle;
}

static inline char *reserve(size_t size)
{
    void *ptr = NULL;

    HIP_OK(hipMemAddressReserve(&ptr, size, 0, NULL, 0));
    return ptr;
}

static inline void set_access(void *ptr, size_t size, int device, hipMemAccessFlags flags)
{
    hipMemAccessDesc desc = device_access(device, flags);

    HIP_OK(hipMemSetAccess(ptr, size, &desc, 1));
}

/* A new range with memory of a device, which has read-write access; *handle stays the caller's. */
static inline char *map_new(int device, size_t size, hipMemGenericAllocationHandle_t *handle)
{
    char *ptr = reserve(size);

    *handle = make_handle(device, size, true);
    HIP_OK(hipMemMap(ptr, size, 0, *handle, 0));
    set_access(ptr, size, device, hipMemAccessFlagsProtReadWrite);
    return ptr;
}

static inline void unmap_all(void *ptr, size_t size, hipMemGenericAllocationHandle_t handle)
{
    HIP_OK(hipMemUnmap(ptr, size));
    HIP_OK(hipMemAddressFree(ptr, size));
    HIP_OK(hipMemRelease(handle));
}

static inline void gpu_write(struct fixture *f, uint32_t gpu, const void *ptr, uint64_t value)
{
    struct fake_translation fault;

    if (fake_gpu_write(f->fake, gpu, (uint64_t)(uintptr_t)ptr, &value, sizeof(value), &fault) != 0)
        fail_msg("%s", fault.text);
}

static inline uint64_t gpu_read(struct fixture *f, uint32_t gpu, const void *ptr)
{
    struct fake_translation fault;
    uint64_t value = 0;

    if (fake_gpu_read(f->fake, gpu, (uint64_t)(uintptr_t)ptr, &value, sizeof(value), &fault) != 0)
        fail_msg("%s", fault.text);
    return value;
}

static inline enum fake_fault_reason gpu_fault(struct fixture *f, uint32_t gpu, const void *ptr,
                                               enum fake_access access)
{
    struct fake_translation t;

    fake_gpu_translate(f->fake, gpu, (uint64_t)(uintptr_t)ptr, access, &t);
    assert_false(t.stale);
    return t.reason;
}

#endif
