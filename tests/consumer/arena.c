/* SPDX-License-Identifier: MIT */
#include "arena.h"

static hipMemAllocationProp arena_prop(int device)
{
    hipMemAllocationProp prop = {0};

    prop.type = hipMemAllocationTypePinned;
    prop.location.type = hipMemLocationTypeDevice;
    prop.location.id = device;
    return prop;
}

hipError_t arena_init(struct arena *arena, int device, size_t capacity)
{
    hipMemAllocationProp prop = arena_prop(device);
    hipError_t err;

    *arena = (struct arena){.device = device};
    err =
        hipMemGetAllocationGranularity(&arena->step, &prop, hipMemAllocationGranularityRecommended);
    if (err != hipSuccess)
        return err;
    arena->capacity = (capacity + arena->step - 1) / arena->step * arena->step;
    return hipMemAddressReserve(&arena->base, arena->capacity, 0, NULL, 0);
}

static hipError_t arena_add(struct arena *arena)
{
    hipMemAllocationProp prop = arena_prop(arena->device);
    hipMemAccessDesc access = {.location = prop.location, .flags = hipMemAccessFlagsProtReadWrite};
    void *at = (char *)arena->base + arena->size;
    hipMemGenericAllocationHandle_t handle;
    hipError_t err;

    err = hipMemCreate(&handle, arena->step, &prop, 0);
    if (err != hipSuccess)
        return err;
    err = hipMemMap(at, arena->step, 0, handle, 0);
    if (err == hipSuccess) {
        err = hipMemSetAccess(at, arena->step, &access, 1);
        if (err != hipSuccess)
            (void)hipMemUnmap(at, arena->step);
    }
    /* The mapping keeps the memory; without one it goes here. */
    (void)hipMemRelease(handle);
    if (err == hipSuccess)
        arena->size += arena->step;
    return err;
}

hipError_t arena_grow(struct arena *arena, size_t size)
{
    size_t before = arena->size;
    hipError_t err = hipSuccess;

    if (size > arena->capacity)
        return hipErrorOutOfMemory;
    while (err == hipSuccess && arena->size < size)
        err = arena_add(arena);
    if (err != hipSuccess && arena->size > before) {
        (void)hipMemUnmap((char *)arena->base + before, arena->size - before);
        arena->size = before;
    }
    return err;
}

hipError_t arena_fini(struct arena *arena)
{
    hipError_t err = hipSuccess;

    if (arena->size > 0)
        err = hipMemUnmap(arena->base, arena->size);
    if (err == hipSuccess)
        err = hipMemAddressFree(arena->base, arena->capacity);
    if (err == hipSuccess)
        *arena = (struct arena){0};
    return err;
}
