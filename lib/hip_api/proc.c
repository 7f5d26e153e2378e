/* SPDX-License-Identifier: MIT */
/* Calls by name, for programs that load the library themselves. */
#include <string.h>

#include "hip_api/error.h"

#define PROC(function)                      \
    {                                       \
#function, (void (*)(void))function \
    }

/* Every function of the header, sorted. Those with a versioned name in the library are found by the
 * name in the header. */
static const struct proc {
    const char *name;
    void (*function)(void);
} procs[] = {
    PROC(hipChooseDevice),
    PROC(hipCtxCreate),
    PROC(hipCtxDestroy),
    PROC(hipCtxGetCurrent),
    PROC(hipCtxGetDevice),
    PROC(hipCtxPopCurrent),
    PROC(hipCtxPushCurrent),
    PROC(hipCtxSetCurrent),
    PROC(hipCtxSynchronize),
    PROC(hipDeviceCanAccessPeer),
    PROC(hipDeviceComputeCapability),
    PROC(hipDeviceDisablePeerAccess),
    PROC(hipDeviceEnablePeerAccess),
    PROC(hipDeviceGet),
    PROC(hipDeviceGetAttribute),
    PROC(hipDeviceGetByPCIBusId),
    PROC(hipDeviceGetName),
    PROC(hipDeviceGetP2PAttribute),
    PROC(hipDeviceGetPCIBusId),
    PROC(hipDeviceGetStreamPriorityRange),
    PROC(hipDeviceGetUuid),
    PROC(hipDevicePrimaryCtxGetState),
    PROC(hipDevicePrimaryCtxRelease),
    PROC(hipDevicePrimaryCtxRetain),
    PROC(hipDeviceReset),
    PROC(hipDeviceSynchronize),
    PROC(hipDeviceTotalMem),
    PROC(hipDriverGetVersion),
    PROC(hipDrvGetErrorName),
    PROC(hipDrvGetErrorString),
    PROC(hipDrvPointerGetAttributes),
    PROC(hipEventCreate),
    PROC(hipEventCreateWithFlags),
    PROC(hipEventDestroy),
    PROC(hipEventElapsedTime),
    PROC(hipEventQuery),
    PROC(hipEventRecord),
    PROC(hipEventSynchronize),
    PROC(hipExtGetLastError),
    PROC(hipExtMallocWithFlags),
    PROC(hipFree),
    PROC(hipFreeAsync),
    PROC(hipFreeHost),
    PROC(hipGetDevice),
    PROC(hipGetDeviceCount),
    PROC(hipGetDeviceFlags),
    PROC(hipGetDeviceProperties),
    PROC(hipGetErrorName),
    PROC(hipGetErrorString),
    PROC(hipGetLastError),
    PROC(hipGetProcAddress),
    PROC(hipGraphDestroy),
    PROC(hipHostAlloc),
    PROC(hipHostFree),
    PROC(hipHostGetDevicePointer),
    PROC(hipHostGetFlags),
    PROC(hipHostMalloc),
    PROC(hipHostRegister),
    PROC(hipHostUnregister),
    PROC(hipInit),
    PROC(hipIpcCloseMemHandle),
    PROC(hipIpcGetMemHandle),
    PROC(hipIpcOpenMemHandle),
    PROC(hipMalloc),
    PROC(hipMallocAsync),
    PROC(hipMallocHost),
    PROC(hipMallocManaged),
    PROC(hipMemAddressFree),
    PROC(hipMemAddressReserve),
    PROC(hipMemAllocHost),
    PROC(hipMemCreate),
    PROC(hipMemExportToShareableHandle),
    PROC(hipMemGetAccess),
    PROC(hipMemGetAddressRange),
    PROC(hipMemGetAllocationGranularity),
    PROC(hipMemGetAllocationPropertiesFromHandle),
    PROC(hipMemGetHandleForAddressRange),
    PROC(hipMemGetInfo),
    PROC(hipMemImportFromShareableHandle),
    PROC(hipMemMap),
    PROC(hipMemMapArrayAsync),
    PROC(hipMemPtrGetInfo),
    PROC(hipMemRelease),
    PROC(hipMemRetainAllocationHandle),
    PROC(hipMemSetAccess),
    PROC(hipMemUnmap),
    PROC(hipMemcpy),
    PROC(hipMemcpyAsync),
    PROC(hipMemcpyDtoD),
    PROC(hipMemcpyDtoDAsync),
    PROC(hipMemcpyDtoH),
    PROC(hipMemcpyDtoHAsync),
    PROC(hipMemcpyHtoD),
    PROC(hipMemcpyHtoDAsync),
    PROC(hipMemcpyPeer),
    PROC(hipMemcpyPeerAsync),
    PROC(hipMemcpyWithStream),
    PROC(hipMemset),
    PROC(hipMemsetAsync),
    PROC(hipMemsetD16),
    PROC(hipMemsetD16Async),
    PROC(hipMemsetD32),
    PROC(hipMemsetD32Async),
    PROC(hipMemsetD8),
    PROC(hipMemsetD8Async),
    PROC(hipPeekAtLastError),
    PROC(hipPointerGetAttribute),
    PROC(hipPointerGetAttributes),
    PROC(hipRuntimeGetVersion),
    PROC(hipSetDevice),
    PROC(hipSetDeviceFlags),
    PROC(hipStreamBeginCapture),
    PROC(hipStreamCreate),
    PROC(hipStreamCreateWithFlags),
    PROC(hipStreamCreateWithPriority),
    PROC(hipStreamDestroy),
    PROC(hipStreamEndCapture),
    PROC(hipStreamGetDevice),
    PROC(hipStreamGetFlags),
    PROC(hipStreamGetPriority),
    PROC(hipStreamIsCapturing),
    PROC(hipStreamQuery),
    PROC(hipStreamSynchronize),
    PROC(hipStreamWaitEvent),
    PROC(hipThreadExchangeStreamCaptureMode),
    PROC(hipxGetLastErrorText),
};

static const struct proc *find(const char *name)
{
    size_t low = 0, high = sizeof(procs) / sizeof(procs[0]);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, procs[middle].name);

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
        return hip_fail(hipErrorInvalidValue, "%s is NULL", symbol ? "function" : "symbol");
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
