/* SPDX-License-Identifier: MIT */
/* Events: the time of a record, as everything before it is done when it is made. */
#include <time.h>

#include "hip_api/state.h"
#include "hip_api/object.h"
#include "hip_api/stream.h"
#include "hip_api/thread.h"

static hipError_t create(hipEvent_t *event, unsigned int flags)
{
    const unsigned int known = hipEventBlockingSync | hipEventDisableTiming |
                               hipEventDisableSystemFence | hipEventReleaseToDevice |
                               hipEventReleaseToSystem;
    struct hip_object init = {.kind = HIP_KIND_EVENT, .flags = flags};
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    uintptr_t handle;

    if (code != hipSuccess)
        return code;
    if (!event)
        return hip_null("event");
    if (flags & hipEventInterprocess)
        return hip_fail(hipErrorNotSupported,
                        "flags is 0x%x: no event is shared between processes here", flags);
    if ((flags & ~known) != 0)
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    init.device = hip_thread()->device;
    code = hip_object_new(&init, &handle);
    if (code == hipSuccess)
        *event = (hipEvent_t)handle;
    return code;
}

hipError_t hipEventCreate(hipEvent_t *event)
{
    HIP_RETURN(create(event, hipEventDefault));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags)
{
    HIP_RETURN(create(event, flags));
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    HIP_RETURN(hip_object_delete(HIP_KIND_EVENT, (uintptr_t)event));
}

static hipError_t record(struct hip_object *object, void *now)
{
    object->recorded = true;
    object->time_ns = *(const uint64_t *)now;
    return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    hipError_t code = hip_check_working_stream(stream);
    struct timespec clock;
    uint64_t now;

    if (code != hipSuccess)
        HIP_RETURN(code);
    clock_gettime(CLOCK_MONOTONIC, &clock);
    now = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
    HIP_RETURN(hip_object_change(HIP_KIND_EVENT, (uintptr_t)event, record, &now));
}

/* An event that was never recorded counts as done. */
hipError_t hipEventSynchronize(hipEvent_t event)
{
    struct hip_object object;

    HIP_RETURN(hip_object_get(HIP_KIND_EVENT, (uintptr_t)event, &object));
}

hipError_t hipEventQuery(hipEvent_t event)
{
    struct hip_object object;

    HIP_RETURN(hip_object_get(HIP_KIND_EVENT, (uintptr_t)event, &object));
}

static hipError_t get_time(hipEvent_t event, uint64_t *ns)
{
    struct hip_object object;
    hipError_t code = hip_object_get(HIP_KIND_EVENT, (uintptr_t)event, &object);

    if (code != hipSuccess)
        return code;
    if (!object.recorded || (object.flags & hipEventDisableTiming))
        return hip_fail(hipErrorInvalidHandle, "event 0x%llx %s",
                        (unsigned long long)(uintptr_t)event,
                        object.recorded ? "keeps no time" : "was not recorded");
    *ns = object.time_ns;
    return hipSuccess;
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
    uint64_t from, to;
    hipError_t code;

    if (!ms)
        HIP_RETURN(hip_null("ms"));
    code = get_time(start, &from);
    if (code == hipSuccess)
        code = get_time(stop, &to);
    if (code == hipSuccess)
        *ms = (float)((double)(int64_t)(to - from) / 1e6);
    HIP_RETURN(code);
}
