/* SPDX-License-Identifier: MIT */
/* Error codes of the HIP layer, and the calling thread's error state. */
#ifndef HIP_API_ERROR_H
#define HIP_API_ERROR_H

#include <kfdirect/version.h>
#include <hip/hip_runtime_api.h>

/* Stores the error text and returns the code. */
hipError_t hip_fail(hipError_t code, const char *fmt, ...) KFDIRECT_PRINTF(2, 3);

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
