/* SPDX-License-Identifier: MIT */
#include "hip_api/ctx.h"

#include "hip_api/state.h"
#include "hip_api/thread.h"

/* What a hipCtx_t points at; its place in the array is all there is to know. */
struct ihipCtx_t {
    char unused;
};

static struct ihipCtx_t contexts[KFD_MAX_DEVICES];

hipCtx_t hip_context_of(int device)
{
    return &contexts[device];
}

static hipError_t device_of(const struct hip_state *state, hipCtx_t context, int *device)
{
    uintptr_t at = (uintptr_t)context - (uintptr_t)contexts;

    if (at / sizeof(*contexts) >= state->devices || at % sizeof(*contexts) != 0)
        return hip_fail(hipErrorInvalidContext, "0x%llx is no context",
                        (unsigned long long)(uintptr_t)context);
    *device = (int)(at / sizeof(*contexts));
    return hipSuccess;
}

static hipError_t push(int device)
{
    struct hip_thread *self = hip_thread();

    if (self->pushed == HIP_CONTEXT_DEPTH)
        return hip_fail(hipErrorInvalidValue, "%u contexts are pushed already", self->pushed);
    self->saved[self->pushed++] = self->device;
    self->device = device;
    return hipSuccess;
}

/* Back to the device before the last push; the thread's only choice stays. */
static void pop(void)
{
    struct hip_thread *self = hip_thread();

    if (self->pushed > 0)
        self->device = self->saved[--self->pushed];
}

hipError_t hipCtxCreate(hipCtx_t *context, unsigned int flags, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    (void)flags;
    if (code == hipSuccess && !context)
        code = hip_null("context");
    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess)
        code = push(device);
    if (code == hipSuccess)
        *context = hip_context_of(device);
    HIP_RETURN(code);
}

hipError_t hipCtxDestroy(hipCtx_t context)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    int device = 0;

    if (code == hipSuccess && !context)
        code = hip_null("context");
    if (code == hipSuccess)
        code = device_of(state, context, &device);
    if (code == hipSuccess && device == hip_thread()->device)
        pop();
    HIP_RETURN(code);
}

hipError_t hipCtxGetCurrent(hipCtx_t *context)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !context)
        code = hip_null("context");
    if (code == hipSuccess)
        *context = hip_context_of(hip_thread()->device);
    HIP_RETURN(code);
}

/* NULL takes back the last push, as in AMD's library. */
hipError_t hipCtxSetCurrent(hipCtx_t context)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    int device = 0;

    if (code != hipSuccess)
        HIP_RETURN(code);
    if (!context) {
        pop();
        HIP_RETURN(hipSuccess);
    }
    code = device_of(state, context, &device);
    if (code == hipSuccess)
        hip_thread()->device = device;
    HIP_RETURN(code);
}

hipError_t hipCtxPushCurrent(hipCtx_t context)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    int device = 0;

    if (code == hipSuccess)
        code = device_of(state, context, &device);
    if (code == hipSuccess)
        code = push(device);
    HIP_RETURN(code);
}

hipError_t hipCtxPopCurrent(hipCtx_t *context)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && hip_thread()->pushed == 0)
        code = hip_fail(hipErrorInvalidContext, "no context was pushed");
    if (code != hipSuccess)
        HIP_RETURN(code);
    if (context)
        *context = hip_context_of(hip_thread()->device);
    pop();
    HIP_RETURN(hipSuccess);
}

hipError_t hipCtxGetDevice(hipDevice_t *device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !device)
        code = hip_null("device");
    if (code == hipSuccess)
        *device = hip_thread()->device;
    HIP_RETURN(code);
}

hipError_t hipCtxSynchronize(void)
{
    struct hip_state *state;

    HIP_RETURN(hip_start(&state));
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess && !context)
        code = hip_null("context");
    if (code == hipSuccess)
        *context = hip_context_of(device);
    HIP_RETURN(code);
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    HIP_RETURN(code);
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned int *flags, int *active)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess && flags)
        *flags = 0;
    if (code == hipSuccess && active)
        *active = 1;
    HIP_RETURN(code);
}
