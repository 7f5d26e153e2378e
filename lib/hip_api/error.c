/* SPDX-License-Identifier: MIT */
#include "hip_api/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <kfdirect/kfd.h>

#include "kfd/error.h"

/* The thread's last failure, and the result of its latest call. */
static _Thread_local hipError_t last_failure, last_result;

struct error_info {
    hipError_t code;
    const char *name, *text;
};

/* Ordered by code. Where two names share a code the one that is not deprecated is given. */
static const struct error_info infos[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorDeinitialized, "hipErrorDeinitialized", "library is shut down"},
    {hipErrorProfilerDisabled, "hipErrorProfilerDisabled", "profiler is disabled"},
    {hipErrorProfilerNotInitialized, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {hipErrorProfilerAlreadyStarted, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {hipErrorProfilerAlreadyStopped, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid copy direction"},
    {hipErrorInsufficientDriver, "hipErrorInsufficientDriver", "driver is too old"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration", "configuration missing"},
    {hipErrorPriorLaunchFailure, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no usable GPU"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "invalid code image"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid context"},
    {hipErrorContextAlreadyCurrent, "hipErrorContextAlreadyCurrent", "context already current"},
    {hipErrorMapFailed, "hipErrorMapFailed", "mapping failed"},
    {hipErrorUnmapFailed, "hipErrorUnmapFailed", "unmapping failed"},
    {hipErrorArrayIsMapped, "hipErrorArrayIsMapped", "array is mapped"},
    {hipErrorAlreadyMapped, "hipErrorAlreadyMapped", "already mapped"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no code for this GPU"},
    {hipErrorAlreadyAcquired, "hipErrorAlreadyAcquired", "already acquired"},
    {hipErrorNotMapped, "hipErrorNotMapped", "not mapped"},
    {hipErrorNotMappedAsArray, "hipErrorNotMappedAsArray", "not mapped as an array"},
    {hipErrorNotMappedAsPointer, "hipErrorNotMappedAsPointer", "not mapped as a pointer"},
    {hipErrorECCNotCorrectable, "hipErrorECCNotCorrectable", "uncorrectable ECC error"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit", "limit not supported"},
    {hipErrorContextAlreadyInUse, "hipErrorContextAlreadyInUse", "context is in use"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported", "no path to the peer device"},
    {hipErrorInvalidKernelFile, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {hipErrorInvalidGraphicsContext, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {hipErrorInvalidSource, "hipErrorInvalidSource", "invalid source"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorSharedObjectSymbolNotFound, "hipErrorSharedObjectSymbolNotFound",
     "symbol not found in shared object"},
    {hipErrorSharedObjectInitFailed, "hipErrorSharedObjectInitFailed",
     "shared object failed to start"},
    {hipErrorOperatingSystem, "hipErrorOperatingSystem", "operating system call failed"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "not possible in this state"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "illegal memory access by a GPU"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "too many resources asked for"},
    {hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "launch timed out"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled",
     "peer access already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access not enabled"},
    {hipErrorSetOnActiveProcess, "hipErrorSetOnActiveProcess", "too late: devices are in use"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorAssert, "hipErrorAssert", "assertion failed on a GPU"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "host memory already registered"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "host memory not registered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "kernel failed"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "cooperative launch too large"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "not possible while the stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated", "capture failed before"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "captures would merge"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
     "capture was begun on another stream"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "captured work not joined"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency leaves the capture"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit",
     "implicit dependency on a capture"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "event belongs to a capture"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "capture was begun by another thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure", "graph update failed"},
    {hipErrorInvalidChannelDescriptor, "hipErrorInvalidChannelDescriptor",
     "invalid channel descriptor"},
    {hipErrorInvalidTexture, "hipErrorInvalidTexture", "invalid texture"},
    {hipErrorInvalidResourceType, "hipErrorInvalidResourceType", "invalid resource type"},
    {hipErrorInvalidResourceConfiguration, "hipErrorInvalidResourceConfiguration",
     "invalid resource configuration"},
    {hipErrorStreamDetached, "hipErrorStreamDetached", "stream is detached"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
    {hipErrorRuntimeMemory, "hipErrorRuntimeMemory", "memory call of the runtime failed"},
    {hipErrorRuntimeOther, "hipErrorRuntimeOther", "call of the runtime failed"},
    {hipErrorInvalidClusterSize, "hipErrorInvalidClusterSize", "invalid cluster size"},
    {hipErrorTbd, "hipErrorTbd", "error without a code of its own"},
};

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
    return find_info(error)->name;
}

const char *hipGetErrorString(hipError_t error)
{
    return find_info(error)->text;
}

hipError_t hipDrvGetErrorName(hipError_t error, const char **name)
{
    const struct error_info *info = find_info(error);

    if (!name)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "name is NULL"));
    *name = NULL;
    if (info->code != error)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "%d is no error code", (int)error));
    *name = info->name;
    HIP_RETURN(hipSuccess);
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    const struct error_info *info = find_info(error);

    if (!text)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "text is NULL"));
    *text = NULL;
    if (info->code != error)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "%d is no error code", (int)error));
    *text = info->text;
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
