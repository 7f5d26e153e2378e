/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "hip.h"

void lib_hip_start(struct lib *l, struct cts *c)
{
    lib_watch(l, c);
    kfd_sys_set_default(l->sys);
    lib_hip_begin(l);
}

void lib_hip_begin(struct lib *l)
{
    int count;

    if (hipInit(0) != hipSuccess || hipGetDeviceCount(&count) != hipSuccess)
        cts_skip(l->c, "%s", hipxGetLastErrorText());
    lib_walk(l);
    l->start = cts_available(l->c, 0);
}

hipMemAllocationProp hip_prop(int device)
{
    return (hipMemAllocationProp){
        .type = hipMemAllocationTypePinned,
        .requestedHandleTypes = hipMemHandleTypePosixFileDescriptor,
        .location = {hipMemLocationTypeDevice, device},
    };
}

char *hip_reserve(struct lib *l, size_t size)
{
    void *base = NULL;

    LIB_HIP(l, "reserve", hipSuccess, hipMemAddressReserve(&base, size, 0, NULL, 0), "-");
    l->base = (uintptr_t)base;
    return base;
}

hipMemGenericAllocationHandle_t hip_create(struct lib *l, const char *step, int device, size_t size)
{
    hipMemAllocationProp prop = hip_prop(device);
    hipMemGenericAllocationHandle_t h = NULL;

    LIB_HIP(l, step, hipSuccess, hipMemCreate(&h, size, &prop, 0), "used=%lld",
            lib_used(l, l->start));
    return h;
}

void hip_release(struct lib *l, hipMemGenericAllocationHandle_t handle)
{
    LIB_HIP(l, "release", hipSuccess, hipMemRelease(handle), "used=%lld", lib_used(l, l->start));
}

void hip_access(struct lib *l, const char *step, hipError_t want, void *at, size_t size, int device,
                hipMemAccessFlags flags)
{
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, device}, flags};

    if (device < 0)
        access.location = (hipMemLocation){hipMemLocationTypeHost, 0};
    LIB_HIP(l, step, want, hipMemSetAccess(at, size, &access, 1), "-");
}

void hip_give(struct lib *l, hipMemGenericAllocationHandle_t handle, char name, void *at,
              size_t size)
{
    LIB_HIP(l, "map", hipSuccess, hipMemMap(at, size, 0, handle, 0), "-");
    hip_access(l, "give access", hipSuccess, at, size, 0, hipMemAccessFlagsProtReadWrite);
    if (name)
        hip_stamp(l, name, at, size);
}

void hip_stamp(struct lib *l, char name, void *at, size_t size)
{
    void *bytes = calloc(1, size);

    if (!bytes)
        cts_skip(l->c, "no memory");
    lib_stamp_at(bytes, name, size, 0);
    LIB_HIP(l, "write", hipSuccess, hipMemcpy(at, bytes, size, hipMemcpyHostToDevice), "-");
    free(bytes);
}
