/* SPDX-License-Identifier: MIT */
/* Calls by name, for programs that load the library themselves. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hip_api/error.h"

/* Every function of the header, sorted. Those with a versioned name in the library are found by the
 * name in the header. */
#define PROCS(X)                               \
    X(hipChooseDevice)                         \
    X(hipCtxCreate)                            \
    X(hipCtxDestroy)                           \
    X(hipCtxGetCurrent)                        \
    X(hipCtxGetDevice)                         \
    X(hipCtxPopCurrent)                        \
    X(hipCtxPushCurrent)                       \
    X(hipCtxSetCurrent)                        \
    X(hipCtxSynchronize)                       \
    X(hipDeviceCanAccessPeer)                  \
    X(hipDeviceComputeCapability)              \
    X(hipDeviceDisablePeerAccess)              \
    X(hipDeviceEnablePeerAccess)               \
    X(hipDeviceGet)                            \
    X(hipDeviceGetAttribute)                   \
    X(hipDeviceGetByPCIBusId)                  \
    X(hipDeviceGetName)                        \
    X(hipDeviceGetP2PAttribute)                \
    X(hipDeviceGetPCIBusId)                    \
    X(hipDeviceGetStreamPriorityRange)         \
    X(hipDeviceGetUuid)                        \
    X(hipDevicePrimaryCtxGetState)             \
    X(hipDevicePrimaryCtxRelease)              \
    X(hipDevicePrimaryCtxRetain)               \
    X(hipDeviceReset)                          \
    X(hipDeviceSynchronize)                    \
    X(hipDeviceTotalMem)                       \
    X(hipDriverGetVersion)                     \
    X(hipDrvGetErrorName)                      \
    X(hipDrvGetErrorString)                    \
    X(hipDrvPointerGetAttributes)              \
    X(hipEventCreate)                          \
    X(hipEventCreateWithFlags)                 \
    X(hipEventDestroy)                         \
    X(hipEventElapsedTime)                     \
    X(hipEventQuery)                           \
    X(hipEventRecord)                          \
    X(hipEventSynchronize)                     \
    X(hipExtGetLastError)                      \
    X(hipExtMallocWithFlags)                   \
    X(hipFree)                                 \
    X(hipFreeAsync)                            \
    X(hipFreeHost)                             \
    X(hipGetDevice)                            \
    X(hipGetDeviceCount)                       \
    X(hipGetDeviceFlags)                       \
    X(hipGetDeviceProperties)                  \
    X(hipGetErrorName)                         \
    X(hipGetErrorString)                       \
    X(hipGetLastError)                         \
    X(hipGetProcAddress)                       \
    X(hipGraphDestroy)                         \
    X(hipHostAlloc)                            \
    X(hipHostFree)                             \
    X(hipHostGetDevicePointer)                 \
    X(hipHostGetFlags)                         \
    X(hipHostMalloc)                           \
    X(hipHostRegister)                         \
    X(hipHostUnregister)                       \
    X(hipInit)                                 \
    X(hipIpcCloseMemHandle)                    \
    X(hipIpcGetMemHandle)                      \
    X(hipIpcOpenMemHandle)                     \
    X(hipMalloc)                               \
    X(hipMallocAsync)                          \
    X(hipMallocHost)                           \
    X(hipMallocManaged)                        \
    X(hipMemAddressFree)                       \
    X(hipMemAddressReserve)                    \
    X(hipMemAllocHost)                         \
    X(hipMemCreate)                            \
    X(hipMemExportToShareableHandle)           \
    X(hipMemGetAccess)                         \
    X(hipMemGetAddressRange)                   \
    X(hipMemGetAllocationGranularity)          \
    X(hipMemGetAllocationPropertiesFromHandle) \
    X(hipMemGetHandleForAddressRange)          \
    X(hipMemGetInfo)                           \
    X(hipMemImportFromShareableHandle)         \
    X(hipMemMap)                               \
    X(hipMemMapArrayAsync)                     \
    X(hipMemPtrGetInfo)                        \
    X(hipMemRelease)                           \
    X(hipMemRetainAllocationHandle)            \
    X(hipMemSetAccess)                         \
    X(hipMemUnmap)                             \
    X(hipMemcpy)                               \
    X(hipMemcpyAsync)                          \
    X(hipMemcpyDtoD)                           \
    X(hipMemcpyDtoDAsync)                      \
    X(hipMemcpyDtoH)                           \
    X(hipMemcpyDtoHAsync)                      \
    X(hipMemcpyHtoD)                           \
    X(hipMemcpyHtoDAsync)                      \
    X(hipMemcpyPeer)                           \
    X(hipMemcpyPeerAsync)                      \
    X(hipMemcpyWithStream)                     \
    X(hipMemset)                               \
    X(hipMemsetAsync)                          \
    X(hipMemsetD16)                            \
    X(hipMemsetD16Async)                       \
    X(hipMemsetD32)                            \
    X(hipMemsetD32Async)                       \
    X(hipMemsetD8)                             \
    X(hipMemsetD8Async)                        \
    X(hipPeekAtLastError)                      \
    X(hipPointerGetAttribute)                  \
    X(hipPointerGetAttributes)                 \
    X(hipRuntimeGetVersion)                    \
    X(hipSetDevice)                            \
    X(hipSetDeviceFlags)                       \
    X(hipStreamBeginCapture)                   \
    X(hipStreamCreate)                         \
    X(hipStreamCreateWithFlags)                \
    X(hipStreamCreateWithPriority)             \
    X(hipStreamDestroy)                        \
    X(hipStreamEndCapture)                     \
    X(hipStreamGetDevice)                      \
    X(hipStreamGetFlags)                       \
    X(hipStreamGetPriority)                    \
    X(hipStreamIsCapturing)                    \
    X(hipStreamQuery)                          \
    X(hipStreamSynchronize)                    \
    X(hipStreamWaitEvent)                      \
    X(hipThreadExchangeStreamCaptureMode)      \
    X(hipxGetLastErrorText)                    \
    X(hipxReset)

/* All names in one piece, so that only the functions need work at load time. */
struct names {
#define X(function) char function##_[sizeof(#function)];
    PROCS(X)
#undef X
};

static const struct names names = {
#define X(function) #function,
    PROCS(X)
#undef X
};

static const struct proc {
    void (*function)(void);
    uint16_t name; /* in names */
} procs[] = {
#define X(function) {(void (*)(void))function, offsetof(struct names, function##_)},
    PROCS(X)
#undef X
};

static const struct proc *find(const char *name)
{
    size_t low = 0, high = sizeof(procs) / sizeof(procs[0]);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, (const char *)&names + procs[middle].name);

        if (order == 0)
            return &procs[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static hipError_t get_address(const char *symbol, void **function, uint64_t flags,
                              hipDriverProcAddressQueryResult *status)
{
    const struct proc *proc;

    if (!symbol || !function)
        return hip_null(symbol ? "function" : "symbol");
    if ((flags & ~(uint64_t)(HIP_GET_PROC_ADDRESS_LEGACY_STREAM |
                             HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) != 0)
        return hip_fail(hipErrorInvalidValue, "flags is 0x%llx", (unsigned long long)flags);
    proc = find(symbol);
    *function = NULL;
    if (status)
        *status = proc ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!proc)
        return hip_fail(hipErrorNotFound, "there is no function %s here", symbol);
    memcpy(function, &proc->function, sizeof(proc->function));
    return hipSuccess;
}

/* Any version gets the function there is: it has one interface. */
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status)
{
    (void)version;
    HIP_RETURN(get_address(symbol, function, flags, status));
}
