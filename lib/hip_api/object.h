/* SPDX-License-Identifier: MIT */
/*
 * Streams, events and graphs: small records behind handles that are no addresses, so that a stale,
 * foreign or made-up handle is an error and never a crash.
 */
#ifndef HIP_API_OBJECT_H
#define HIP_API_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

/* Part of the handle: the low four bits, so that no handle equals hipStreamPerThread. */
enum hip_kind {
    HIP_KIND_NONE,
    HIP_KIND_STREAM = 3,
    HIP_KIND_EVENT = 4,
    HIP_KIND_GRAPH = 5,
};

struct hip_object {
    enum hip_kind kind;
    uint32_t generation; /* of the slot; a handle names one */
    unsigned int flags;
    int device;
    int priority;      /* stream */
    bool capturing;    /* stream */
    bool recorded;     /* event */
    uint64_t time_ns;  /* event */
    uint32_t capturer; /* stream: identity of the thread that began the capture */
    hipStreamCaptureMode mode;
};

/* hipErrorOutOfMemory when there is no room. The fields of init are taken over. */
hipError_t hip_object_new(const struct hip_object *init, uintptr_t *handle);
/* Copies the object out. hipErrorInvalidHandle for a handle that is not live and of that kind. */
hipError_t hip_object_get(enum hip_kind kind, uintptr_t handle, struct hip_object *out);
/* Calls change on the object under the lock, which may refuse. */
hipError_t hip_object_change(enum hip_kind kind, uintptr_t handle,
                             hipError_t (*change)(struct hip_object *object, void *arg), void *arg);
hipError_t hip_object_delete(enum hip_kind kind, uintptr_t handle);

/* Deletes every stream and event of a device; their handles are dead then. */
void hip_object_delete_of(int device);

/* Start again without any object, so that handles given out before are dead: forget in a forked
 * child, whatever the parent's threads were doing; clear with no other call under way. */
void hip_object_forget(void);
void hip_object_clear(void);

#endif
