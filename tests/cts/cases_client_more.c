/* SPDX-License-Identifier: MIT */
/* More clients: those that find memory by its address, and those that give it up and take it back.
 */
#include <stdlib.h>

#include "hip.h"

#define RW hipMemAccessFlagsProtReadWrite

/* RCCL: uncached memory, zeroed after mapping, host memory for both; found and freed by address. */
static void rccl_buffer(struct lib *l, const char *what, hipMemAllocationProp prop, char *at)
{
    hipMemGenericAllocationHandle_t h = NULL;
    hipDeviceptr_t base = NULL;
    size_t size = 0;

    LIB_HIP(l, cts_text("create %s", what), hipSuccess, hipMemCreate(&h, MiB(4), &prop, 0), "-");
    LIB_HIP(l, "map", hipSuccess, hipMemMap(at, MiB(4), 0, h, 0), "-");
    hip_access(l, "open", hipSuccess, at, MiB(4), 0, RW);
    if (prop.location.type == hipMemLocationTypeHost)
        hip_access(l, "open to the CPU", hipSuccess, at, MiB(4), -1, RW);
    hip_stamp(l, 'U', at, MiB(4));
    lib_look_around(l, "written", 0, (uintptr_t)at, MiB(4));
    LIB_HIP(l, "zero it", hipSuccess, hipMemset(at, 0, MiB(4)), "-");
    lib_look(l, "zeroed", 0, (uintptr_t)at + MiB(2));
    LIB_HIP(l, "retain by address", hipSuccess, hipMemRetainAllocationHandle(&h, at), "-");
    hip_release(l, h);
    LIB_HIP(l, "its range", hipSuccess, hipMemGetAddressRange(&base, &size, at + MiB(3)),
            "%s size=0x%zx", lib_at(l, (uintptr_t)base), size);
    LIB_HIP(l, "unmap", hipSuccess, hipMemUnmap(base, size), "-");
    hip_release(l, h);
    lib_look(l, "gone", 0, (uintptr_t)at);
}

static void rccl(struct cts *c)
{
    hipMemAllocationProp prop = hip_prop(0);
    hipMemGenericAllocationHandle_t none;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    prop.type = hipMemAllocationTypeUncached;
    if (c->minor < 12) {
        LIB_HIP(&l, "uncached memory", hipErrorNotSupported, hipMemCreate(&none, MiB(4), &prop, 0),
                "-");
        prop.type = hipMemAllocationTypePinned;
    }
    rccl_buffer(&l, "device memory", prop, base);
    prop = hip_prop(0);
    prop.location.type = hipMemLocationTypeHost;
    rccl_buffer(&l, "host memory", prop, base + MiB(8));
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, MiB(64)), "-");
}

/* torch_memory_saver: bytes are saved in pinned memory, the memory given up, and new memory brought
 * to the old address. */
static void saver(struct cts *c)
{
    hipMemGenericAllocationHandle_t h[3];
    void *saved[3] = {NULL};
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    for (int i = 0; i < 3; i++) {
        h[i] = hip_create(&l, "create", 0, MiB(4));
        hip_give(&l, h[i], (char)('A' + i), base + MiB(4) * i, MiB(4));
        LIB_HIP(&l, "pinned memory", hipSuccess, hipHostMalloc(&saved[i], MiB(4), 0), "-");
    }
    for (int i = 0; i < 3; i++) {
        LIB_HIP(&l, "save", hipSuccess,
                hipMemcpy(saved[i], base + MiB(4) * i, MiB(4), hipMemcpyDeviceToHost), "%s",
                lib_stamp_text(*(uint32_t *)saved[i]));
        LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base + MiB(4) * i, MiB(4)), "-");
        hip_release(&l, h[i]);
    }
    lib_look_each(&l, 4, MiB(4));
    for (int i = 0; i < 3; i++) {
        h[i] = hip_create(&l, "create anew", 0, MiB(4));
        hip_give(&l, h[i], 0, base + MiB(4) * i, MiB(4));
        lib_look(&l, "new memory", 0, l.base + MiB(4) * i);
        LIB_HIP(&l, "bring back", hipSuccess,
                hipMemcpy(base + MiB(4) * i, saved[i], MiB(4), hipMemcpyHostToDevice), "-");
        LIB_HIP(&l, "free the pinned memory", hipSuccess, hipHostFree(saved[i]), "-");
    }
    lib_look_each(&l, 4, MiB(4));
    for (int i = 0; i < 3; i++) {
        LIB_HIP(&l, "unmap", hipSuccess, hipMemUnmap(base + MiB(4) * i, MiB(4)), "-");
        hip_release(&l, h[i]);
    }
}

/* vLLM: chunks all made, all mapped, one grant; asleep nothing is held but the addresses, or not
 * even those. */
static void awake(struct lib *l, hipMemGenericAllocationHandle_t *h, char *base)
{
    for (int i = 0; i < 3; i++)
        h[i] = hip_create(l, "create a chunk", 0, MiB(4));
    for (int i = 0; i < 3; i++)
        LIB_HIP(l, "map it", hipSuccess, hipMemMap(base + MiB(4) * i, MiB(4), 0, h[i], 0), "-");
    hip_access(l, "open all", hipSuccess, base, MiB(12), 0, RW);
    lib_look_each(l, 4, MiB(4));
    for (int i = 0; i < 3; i++)
        hip_stamp(l, (char)('A' + i), base + MiB(4) * i, MiB(4));
    lib_look_each(l, 4, MiB(4));
}

static void asleep(struct lib *l, hipMemGenericAllocationHandle_t *h, char *base)
{
    for (int i = 0; i < 3; i++) {
        LIB_HIP(l, "unmap a chunk", hipSuccess, hipMemUnmap(base + MiB(4) * i, MiB(4)), "-");
        hip_release(l, h[i]);
    }
    lib_look_each(l, 4, MiB(4));
}

static void sleep_wake(struct cts *c)
{
    hipMemGenericAllocationHandle_t h[3];
    void *again = NULL;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    awake(&l, h, base);
    asleep(&l, h, base);
    awake(&l, h, base);
    asleep(&l, h, base);
    LIB_HIP(&l, "give up the addresses", hipSuccess, hipMemAddressFree(base, MiB(64)), "-");
    LIB_HIP(&l, "ask for them again", hipSuccess, hipMemAddressReserve(&again, MiB(64), 0, base, 0),
            "%s", again == base ? "the same" : "others");
    awake(&l, h, again);
    asleep(&l, h, again);
}

/* XLA: pieces in a padded range, one of them perhaps a part of a handle; the whole range is
 * unmapped whatever lies in it. */
static void padded(struct cts *c)
{
    hipError_t parts = c->minor >= 15 ? hipSuccess : hipErrorNotSupported;
    hipMemGenericAllocationHandle_t h;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    LIB_HIP(&l, "unmap what was never mapped", hipErrorInvalidValue, hipMemUnmap(base, MiB(64)),
            "-");
    h = hip_create(&l, "create", 0, MiB(4));
    hip_give(&l, h, 'A', base + MiB(2), MiB(4));
    LIB_HIP(&l, "a part of it", parts, hipMemMap(base + MiB(12), MiB(2), MiB(2), h, 0), "-");
    if (parts == hipSuccess)
        hip_access(&l, "open the part", hipSuccess, base + MiB(12), MiB(2), 0, RW);
    lib_look_around(&l, "the part", 0, l.base + MiB(12), MiB(2));
    hip_release(&l, h);
    LIB_HIP(&l, "unmap that cuts a piece", hipErrorInvalidValue, hipMemUnmap(base, MiB(4)), "-");
    lib_look_around(&l, "the piece", 0, l.base + MiB(2), MiB(4));
    LIB_HIP(&l, "unmap the padded range", hipSuccess, hipMemUnmap(base, MiB(64)), "used=%lld",
            lib_used(&l, l.start));
    lib_look_around(&l, "the piece", 0, l.base + MiB(2), MiB(4));
    lib_look_around(&l, "the part", 0, l.base + MiB(12), MiB(2));
}

const struct cts_case cts_client_more_cases[] = {
    {"client.rccl_teardown", CTS_LARGE_BAR, rccl},
    {"client.torch_memory_saver", CTS_LARGE_BAR, saver},
    {"client.vllm_sleep_wake", CTS_LARGE_BAR, sleep_wake},
    {"client.xla_padded_unmap", CTS_LARGE_BAR, padded},
    {0},
};
