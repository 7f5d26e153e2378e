/* SPDX-License-Identifier: MIT */
#include "hip_api/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kfdirect/kfd.h>

#include "kfd/error.h"

/* The thread's last failure, and the result of its latest call. */
static _Thread_local hipError_t last_failure, last_result;

/* Ordered by code. Where two names share a code the one that is not deprecated is given. */
#define ERRORS(X)                                                                     \
    X(hipSuccess, "no error")                                                         \
    X(hipErrorInvalidValue, "invalid argument")                                       \
    X(hipErrorOutOfMemory, "out of memory")                                           \
    X(hipErrorNotInitialized, "initialization error")                                 \
    X(hipErrorDeinitialized, "library is shut down")                                  \
    X(hipErrorProfilerDisabled, "profiler is disabled")                               \
    X(hipErrorProfilerNotInitialized, "profiler not initialized")                     \
    X(hipErrorProfilerAlreadyStarted, "profiler already started")                     \
    X(hipErrorProfilerAlreadyStopped, "profiler already stopped")                     \
    X(hipErrorInvalidConfiguration, "invalid configuration")                          \
    X(hipErrorInvalidPitchValue, "invalid pitch")                                     \
    X(hipErrorInvalidSymbol, "invalid symbol")                                        \
    X(hipErrorInvalidDevicePointer, "invalid device pointer")                         \
    X(hipErrorInvalidMemcpyDirection, "invalid copy direction")                       \
    X(hipErrorInsufficientDriver, "driver is too old")                                \
    X(hipErrorMissingConfiguration, "configuration missing")                          \
    X(hipErrorPriorLaunchFailure, "an earlier launch failed")                         \
    X(hipErrorInvalidDeviceFunction, "invalid device function")                       \
    X(hipErrorNoDevice, "no usable GPU")                                              \
    X(hipErrorInvalidDevice, "invalid device ordinal")                                \
    X(hipErrorInvalidImage, "invalid code image")                                     \
    X(hipErrorInvalidContext, "invalid context")                                      \
    X(hipErrorContextAlreadyCurrent, "context already current")                       \
    X(hipErrorMapFailed, "mapping failed")                                            \
    X(hipErrorUnmapFailed, "unmapping failed")                                        \
    X(hipErrorArrayIsMapped, "array is mapped")                                       \
    X(hipErrorAlreadyMapped, "already mapped")                                        \
    X(hipErrorNoBinaryForGpu, "no code for this GPU")                                 \
    X(hipErrorAlreadyAcquired, "already acquired")                                    \
    X(hipErrorNotMapped, "not mapped")                                                \
    X(hipErrorNotMappedAsArray, "not mapped as an array")                             \
    X(hipErrorNotMappedAsPointer, "not mapped as a pointer")                          \
    X(hipErrorECCNotCorrectable, "uncorrectable ECC error")                           \
    X(hipErrorUnsupportedLimit, "limit not supported")                                \
    X(hipErrorContextAlreadyInUse, "context is in use")                               \
    X(hipErrorPeerAccessUnsupported, "no path to the peer device")                    \
    X(hipErrorInvalidKernelFile, "invalid kernel file")                               \
    X(hipErrorInvalidGraphicsContext, "invalid graphics context")                     \
    X(hipErrorInvalidSource, "invalid source")                                        \
    X(hipErrorFileNotFound, "file not found")                                         \
    X(hipErrorSharedObjectSymbolNotFound, "symbol not found in shared object")        \
    X(hipErrorSharedObjectInitFailed, "shared object failed to start")                \
    X(hipErrorOperatingSystem, "operating system call failed")                        \
    X(hipErrorInvalidHandle, "invalid resource handle")                               \
    X(hipErrorIllegalState, "not possible in this state")                             \
    X(hipErrorNotFound, "named symbol not found")                                     \
    X(hipErrorNotReady, "device not ready")                                           \
    X(hipErrorIllegalAddress, "illegal memory access by a GPU")                       \
    X(hipErrorLaunchOutOfResources, "too many resources asked for")                   \
    X(hipErrorLaunchTimeOut, "launch timed out")                                      \
    X(hipErrorPeerAccessAlreadyEnabled, "peer access already enabled")                \
    X(hipErrorPeerAccessNotEnabled, "peer access not enabled")                        \
    X(hipErrorSetOnActiveProcess, "too late: devices are in use")                     \
    X(hipErrorContextIsDestroyed, "context is destroyed")                             \
    X(hipErrorAssert, "assertion failed on a GPU")                                    \
    X(hipErrorHostMemoryAlreadyRegistered, "host memory already registered")          \
    X(hipErrorHostMemoryNotRegistered, "host memory not registered")                  \
    X(hipErrorLaunchFailure, "kernel failed")                                         \
    X(hipErrorCooperativeLaunchTooLarge, "cooperative launch too large")              \
    X(hipErrorNotSupported, "operation not supported")                                \
    X(hipErrorStreamCaptureUnsupported, "not possible while the stream is capturing") \
    X(hipErrorStreamCaptureInvalidated, "capture failed before")                      \
    X(hipErrorStreamCaptureMerge, "captures would merge")                             \
    X(hipErrorStreamCaptureUnmatched, "capture was begun on another stream")          \
    X(hipErrorStreamCaptureUnjoined, "captured work not joined")                      \
    X(hipErrorStreamCaptureIsolation, "dependency leaves the capture")                \
    X(hipErrorStreamCaptureImplicit, "implicit dependency on a capture")              \
    X(hipErrorCapturedEvent, "event belongs to a capture")                            \
    X(hipErrorStreamCaptureWrongThread, "capture was begun by another thread")        \
    X(hipErrorGraphExecUpdateFailure, "graph update failed")                          \
    X(hipErrorInvalidChannelDescriptor, "invalid channel descriptor")                 \
    X(hipErrorInvalidTexture, "invalid texture")                                      \
    X(hipErrorInvalidResourceType, "invalid resource type")                           \
    X(hipErrorInvalidResourceConfiguration, "invalid resource configuration")         \
    X(hipErrorStreamDetached, "stream is detached")                                   \
    X(hipErrorUnknown, "unknown error")                                               \
    X(hipErrorRuntimeMemory, "memory call of the runtime failed")                     \
    X(hipErrorRuntimeOther, "call of the runtime failed")                             \
    X(hipErrorInvalidClusterSize, "invalid cluster size")                             \
    X(hipErrorTbd, "error without a code of its own")

/* All names and texts in one piece, found by offset: a table of pointers would be three times as
 * large and need work at load time. */
struct words {
#define X(code, text) char name_##code[sizeof(#code)], text_##code[sizeof(text)];
    ERRORS(X)
#undef X
};

static const struct words words = {
#define X(code, text) #code, text,
    ERRORS(X)
#undef X
};

struct error_info {
    uint16_t code, name, text;
};

static const struct error_info infos[] = {
#define X(code, text) \
    {code, offsetof(struct words, name_##code), offsetof(struct words, text_##code)},
    ERRORS(X)
#undef X
};

static const char *word(uint16_t offset)
{
    return (const char *)&words + offset;
}

static const struct error_info *find_info(hipError_t code)
{
    const struct error_info *unknown = NULL;

    for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++) {
        if (infos[i].code == code)
            return &infos[i];
        if (infos[i].code == hipErrorUnknown)
            unknown = &infos[i];
    }
    return unknown;
}

void hip_error_set(const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    kfd_error_set("%s", text);
}

void hip_tell_null(const char *argument)
{
    hip_error_set("%s is NULL", argument);
}

hipError_t hip_from_errno(int err)
{
    switch (err) {
    case 0:
        return hipSuccess;
    case -EINVAL:
        return hipErrorInvalidValue;
    case -ENODEV:
        return hipErrorInvalidDevice;
    case -ENOMEM:
        return hipErrorOutOfMemory;
    case -EOPNOTSUPP:
        return hipErrorNotSupported;
    default:
        return hipErrorOperatingSystem;
    }
}

hipError_t hip_end(const char *function, hipError_t code)
{
    last_result = code;
    if (code != hipSuccess) {
        last_failure = code;
        kfd_fail_in(0, "%s", function);
    }
    return code;
}

void hip_error_reset(void)
{
    last_failure = hipSuccess;
    last_result = hipSuccess;
    kfd_error_clear();
}

const char *hipGetErrorName(hipError_t error)
{
    return word(find_info(error)->name);
}

const char *hipGetErrorString(hipError_t error)
{
    return word(find_info(error)->text);
}

hipError_t hipDrvGetErrorName(hipError_t error, const char **name)
{
    const struct error_info *info = find_info(error);

    if (!name)
        HIP_RETURN(hip_null("name"));
    *name = NULL;
    if (info->code != error)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "%d is no error code", (int)error));
    *name = word(info->name);
    HIP_RETURN(hipSuccess);
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    const struct error_info *info = find_info(error);

    if (!text)
        HIP_RETURN(hip_null("text"));
    *text = NULL;
    if (info->code != error)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "%d is no error code", (int)error));
    *text = word(info->text);
    HIP_RETURN(hipSuccess);
}

hipError_t hipGetLastError(void)
{
    hipError_t code = last_failure;

    last_failure = hipSuccess;
    return code;
}

hipError_t hipPeekAtLastError(void)
{
    return last_failure;
}

hipError_t hipExtGetLastError(void)
{
    hipError_t code = last_result;

    last_result = hipSuccess;
    return code;
}

const char *hipxGetLastErrorText(void)
{
    return kfd_error_text();
}
