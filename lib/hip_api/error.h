/* SPDX-License-Identifier: MIT */
/* Error codes of the HIP layer, and the calling thread's error state. */
#ifndef HIP_API_ERROR_H
#define HIP_API_ERROR_H

#include <kfdirect/version.h>
#include <hip/hip_runtime_api.h>

/* Stores the error text. */
void hip_error_set(const char *fmt, ...) KFDIRECT_PRINTF(1, 2);

static inline hipError_t hip_error_is(hipError_t code)
{
    return code;
}

/* Stores the error text and is the code; a macro for kfd_fail's reason. */
#define hip_fail(code, ...)                      \
    ({                                           \
        const hipError_t hip_fail_code = (code); \
        hip_error_set(__VA_ARGS__);              \
        hip_error_is(hip_fail_code);             \
    })

/* Says that an argument must not be NULL. */
void hip_tell_null(const char *argument);

/* The code for it, in the open so that an analyzer sees that it is no success. */
static inline hipError_t hip_null(const char *argument)
{
    hip_tell_null(argument);
    return hipErrorInvalidValue;
}

/* The code for a result of the layers below, which have stored the text. */
hipError_t hip_from_errno(int err);

/*
 * Ends a public call: puts its name before the text of a failure and records the code in the
 * thread's error state. Only failures change what hipGetLastError gives.
 */
hipError_t hip_end(const char *function, hipError_t code);
#define HIP_RETURN(code) return hip_end(__func__, (code))

/* Forgets the calling thread's errors. */
void hip_error_reset(void);

#endif
