/* SPDX-License-Identifier: MIT */
/* Streams, as the calls that take one see them. */
#ifndef HIP_API_STREAM_H
#define HIP_API_STREAM_H

#include "hip_api/error.h"

/* hipErrorInvalidHandle: no live stream. The null stream and the two named ones always live. */
hipError_t hip_check_stream(hipStream_t stream);

/* The same, and hipErrorStreamCaptureUnsupported while it captures: work given to it would have to
 * be recorded, and here it would be done at once. */
hipError_t hip_check_working_stream(hipStream_t stream);

#endif
