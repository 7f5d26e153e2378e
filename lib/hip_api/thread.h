/* SPDX-License-Identifier: MIT */
/* What a thread has chosen: its device and the contexts it has pushed. */
#ifndef HIP_API_THREAD_H
#define HIP_API_THREAD_H

#include <hip/hip_runtime_api.h>

#define HIP_CONTEXT_DEPTH 32

struct hip_thread {
    int device;
    unsigned pushed; /* of saved */
    int saved[HIP_CONTEXT_DEPTH];
    hipStreamCaptureMode capture_mode;
    unsigned resets; /* of the process that it has followed */
};

/* The calling thread's. */
struct hip_thread *hip_thread(void);

/* The calling thread back to device 0 with no error, as a thread starts. */
void hip_thread_reset(void);

/* Every thread back to device 0, seen at its next call. */
void hip_thread_reset_all(void);

#endif
