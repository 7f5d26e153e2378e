/* SPDX-License-Identifier: MIT */
/*
 * Streams. Every call has finished its work when it returns, so a stream is never busy; what is
 * left of it is what programs ask about, and captures that record nothing.
 */
#include "hip_api/stream.h"

#include <stdatomic.h>

#include "hip_api/state.h"
#include "hip_api/object.h"
#include "hip_api/thread.h"

/* A number per thread, to tell the one that began a capture. */
static uint32_t thread_number(void)
{
    static _Atomic uint32_t last;
    static _Thread_local uint32_t number;

    if (number == 0)
        number = atomic_fetch_add(&last, 1) + 1;
    return number;
}

static bool is_named(hipStream_t stream)
{
    return stream == NULL || stream == hipStreamLegacy || stream == hipStreamPerThread;
}

static hipError_t get(hipStream_t stream, struct hip_object *out)
{
    if (is_named(stream)) {
        *out = (struct hip_object){.kind = HIP_KIND_STREAM, .device = hip_thread()->device};
        return hipSuccess;
    }
    return hip_object_get(HIP_KIND_STREAM, (uintptr_t)stream, out);
}

hipError_t hip_check_stream(hipStream_t stream)
{
    struct hip_object object;

    return get(stream, &object);
}

hipError_t hip_check_working_stream(hipStream_t stream)
{
    struct hip_object object;
    hipError_t code = get(stream, &object);

    if (code == hipSuccess && object.capturing)
        code = hip_fail(hipErrorStreamCaptureUnsupported, "the stream is capturing, and nothing "
                                                          "can be recorded here");
    return code;
}

static hipError_t create(hipStream_t *stream, unsigned int flags, int priority)
{
    struct hip_object init = {.kind = HIP_KIND_STREAM, .flags = flags, .priority = priority};
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    uintptr_t handle;

    if (code != hipSuccess)
        return code;
    if (!stream)
        return hip_null("stream");
    if ((flags & ~(unsigned)hipStreamNonBlocking) != 0)
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    init.device = hip_thread()->device;
    code = hip_object_new(&init, &handle);
    if (code == hipSuccess)
        *stream = (hipStream_t)handle;
    return code;
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
    HIP_RETURN(create(stream, hipStreamDefault, 0));
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
    HIP_RETURN(create(stream, flags, 0));
}

/* There is one priority; any wish is taken for it. */
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
    (void)priority;
    HIP_RETURN(create(stream, flags, 0));
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && least)
        *least = 0;
    if (code == hipSuccess && greatest)
        *greatest = 0;
    HIP_RETURN(code);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    if (is_named(stream))
        HIP_RETURN(hip_fail(hipErrorInvalidHandle, "stream 0x%llx is not one that was created",
                            (unsigned long long)(uintptr_t)stream));
    HIP_RETURN(hip_object_delete(HIP_KIND_STREAM, (uintptr_t)stream));
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    HIP_RETURN(hip_check_working_stream(stream));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    HIP_RETURN(hip_check_working_stream(stream));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    struct hip_object object;
    hipError_t code = hip_check_working_stream(stream);

    if (code == hipSuccess && flags != 0)
        code = hip_fail(hipErrorInvalidValue, "flags is 0x%x, not 0", flags);
    if (code == hipSuccess)
        code = hip_object_get(HIP_KIND_EVENT, (uintptr_t)event, &object);
    HIP_RETURN(code);
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
    struct hip_object object;
    hipError_t code = get(stream, &object);

    if (code == hipSuccess && !flags)
        code = hip_null("flags");
    if (code == hipSuccess)
        *flags = object.flags;
    HIP_RETURN(code);
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority)
{
    struct hip_object object;
    hipError_t code = get(stream, &object);

    if (code == hipSuccess && !priority)
        code = hip_null("priority");
    if (code == hipSuccess)
        *priority = object.priority;
    HIP_RETURN(code);
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
    struct hip_object object;
    hipError_t code = get(stream, &object);

    if (code == hipSuccess && !device)
        code = hip_null("device");
    if (code == hipSuccess)
        *device = object.device;
    HIP_RETURN(code);
}

static hipError_t begin(struct hip_object *object, void *mode)
{
    if (object->capturing)
        return hip_fail(hipErrorIllegalState, "the stream is capturing already");
    object->capturing = true;
    object->capturer = thread_number();
    object->mode = *(const hipStreamCaptureMode *)mode;
    return hipSuccess;
}

static bool is_mode(hipStreamCaptureMode mode)
{
    return mode == hipStreamCaptureModeGlobal || mode == hipStreamCaptureModeThreadLocal ||
           mode == hipStreamCaptureModeRelaxed;
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    if (!is_mode(mode))
        HIP_RETURN(
            hip_fail(hipErrorInvalidValue, "mode is %d, which is no capture mode", (int)mode));
    if (is_named(stream))
        HIP_RETURN(hip_fail(hipErrorStreamCaptureUnsupported, "only a stream that was created can "
                                                              "capture"));
    HIP_RETURN(hip_object_change(HIP_KIND_STREAM, (uintptr_t)stream, begin, &mode));
}

static hipError_t end(struct hip_object *object, void *unused)
{
    if (!object->capturing)
        return hip_fail(hipErrorIllegalState, "the stream is not capturing");
    if (object->mode != hipStreamCaptureModeRelaxed && object->capturer != thread_number())
        return hip_fail(hipErrorStreamCaptureWrongThread, "another thread began the capture");
    object->capturing = false;
    return hipSuccess;
}

static hipError_t end_capture(hipStream_t stream, hipGraph_t *graph)
{
    const struct hip_object init = {.kind = HIP_KIND_GRAPH};
    uintptr_t handle;
    hipError_t code;

    if (!graph)
        return hip_null("graph");
    if (is_named(stream))
        return hip_fail(hipErrorIllegalState, "the stream is not capturing");
    /* Before the capture ends, so that nothing is lost when there is no room. */
    code = hip_object_new(&init, &handle);
    if (code != hipSuccess)
        return code;
    code = hip_object_change(HIP_KIND_STREAM, (uintptr_t)stream, end, NULL);
    if (code != hipSuccess)
        hip_object_delete(HIP_KIND_GRAPH, handle);
    else
        *graph = (hipGraph_t)handle;
    return code;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
    HIP_RETURN(end_capture(stream, graph));
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
    struct hip_object object;
    hipError_t code = get(stream, &object);

    if (code == hipSuccess && !status)
        code = hip_null("status");
    if (code == hipSuccess)
        *status = object.capturing ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
    HIP_RETURN(code);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
    struct hip_thread *self = hip_thread();
    hipStreamCaptureMode old = self->capture_mode;

    if (!mode || !is_mode(*mode))
        HIP_RETURN(hip_fail(hipErrorInvalidValue,
                            mode ? "mode is %d, which is no capture mode" : "mode is NULL",
                            mode ? (int)*mode : 0));
    self->capture_mode = *mode;
    *mode = old;
    HIP_RETURN(hipSuccess);
}

hipError_t hipGraphDestroy(hipGraph_t graph)
{
    HIP_RETURN(hip_object_delete(HIP_KIND_GRAPH, (uintptr_t)graph));
}
