/* SPDX-License-Identifier: MIT */
/*
 * The part of the HIP host interface that kfdirect offers: virtual memory management and what a
 * program needs around it. It compiles as C11 and C++17 with any compiler and needs no macro.
 * Values and layouts are those of the HIP version in hip_version.h.
 *
 * Every stream is in order and every call finishes its work before it returns, the ...Async ones
 * included. Functions that exist only to report hipErrorNotSupported are marked so.
 */
#ifndef HIP_RUNTIME_API_H
#define HIP_RUNTIME_API_H

#include <hip/hip_version.h>
#include <hip/driver_types.h>
#include <hip/device_types.h>

typedef enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorMemoryAllocation = 2,
    hipErrorNotInitialized = 3,
    hipErrorInitializationError = 3,
    hipErrorDeinitialized = 4,
    hipErrorProfilerDisabled = 5,
    hipErrorProfilerNotInitialized = 6,
    hipErrorProfilerAlreadyStarted = 7,
    hipErrorProfilerAlreadyStopped = 8,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidPitchValue = 12,
    hipErrorInvalidSymbol = 13,
    hipErrorInvalidDevicePointer = 17,
    hipErrorInvalidMemcpyDirection = 21,
    hipErrorInsufficientDriver = 35,
    hipErrorMissingConfiguration = 52,
    hipErrorPriorLaunchFailure = 53,
    hipErrorInvalidDeviceFunction = 98,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorInvalidContext = 201,
    hipErrorContextAlreadyCurrent = 202,
    hipErrorMapFailed = 205,
    hipErrorMapBufferObjectFailed = 205,
    hipErrorUnmapFailed = 206,
    hipErrorArrayIsMapped = 207,
    hipErrorAlreadyMapped = 208,
    hipErrorNoBinaryForGpu = 209,
    hipErrorAlreadyAcquired = 210,
    hipErrorNotMapped = 211,
    hipErrorNotMappedAsArray = 212,
    hipErrorNotMappedAsPointer = 213,
    hipErrorECCNotCorrectable = 214,
    hipErrorUnsupportedLimit = 215,
    hipErrorContextAlreadyInUse = 216,
    hipErrorPeerAccessUnsupported = 217,
    hipErrorInvalidKernelFile = 218,
    hipErrorInvalidGraphicsContext = 219,
    hipErrorInvalidSource = 300,
    hipErrorFileNotFound = 301,
    hipErrorSharedObjectSymbolNotFound = 302,
    hipErrorSharedObjectInitFailed = 303,
    hipErrorOperatingSystem = 304,
    hipErrorInvalidHandle = 400,
    hipErrorInvalidResourceHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchOutOfResources = 701,
    hipErrorLaunchTimeOut = 702,
    hipErrorPeerAccessAlreadyEnabled = 704,
    hipErrorPeerAccessNotEnabled = 705,
    hipErrorSetOnActiveProcess = 708,
    hipErrorContextIsDestroyed = 709,
    hipErrorAssert = 710,
    hipErrorHostMemoryAlreadyRegistered = 712,
    hipErrorHostMemoryNotRegistered = 713,
    hipErrorLaunchFailure = 719,
    hipErrorCooperativeLaunchTooLarge = 720,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureInvalidated = 901,
    hipErrorStreamCaptureMerge = 902,
    hipErrorStreamCaptureUnmatched = 903,
    hipErrorStreamCaptureUnjoined = 904,
    hipErrorStreamCaptureIsolation = 905,
    hipErrorStreamCaptureImplicit = 906,
    hipErrorCapturedEvent = 907,
    hipErrorStreamCaptureWrongThread = 908,
    hipErrorGraphExecUpdateFailure = 910,
    hipErrorInvalidChannelDescriptor = 911,
    hipErrorInvalidTexture = 912,
    hipErrorInvalidResourceType = 914,
    hipErrorInvalidResourceConfiguration = 915,
    hipErrorStreamDetached = 916,
    hipErrorUnknown = 999,
    hipErrorRuntimeMemory = 1052,
    hipErrorRuntimeOther = 1053,
    hipErrorInvalidClusterSize = 1054,
    hipErrorTbd = 1055
} hipError_t;

typedef enum hipStreamCaptureMode {
    hipStreamCaptureModeGlobal = 0,
    hipStreamCaptureModeThreadLocal = 1,
    hipStreamCaptureModeRelaxed = 2
} hipStreamCaptureMode;

typedef enum hipStreamCaptureStatus {
    hipStreamCaptureStatusNone = 0,
    hipStreamCaptureStatusActive = 1,
    hipStreamCaptureStatusInvalidated = 2
} hipStreamCaptureStatus;

typedef enum hipDriverProcAddressQueryResult {
    HIP_GET_PROC_ADDRESS_SUCCESS = 0,
    HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} hipDriverProcAddressQueryResult;

#define HIP_GET_PROC_ADDRESS_DEFAULT 0x0
#define HIP_GET_PROC_ADDRESS_LEGACY_STREAM 0x1
#define HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 0x2

#define hipCpuDeviceId ((int)-1)
#define hipInvalidDeviceId ((int)-2)

#define hipDeviceScheduleAuto 0x0
#define hipDeviceScheduleSpin 0x1
#define hipDeviceScheduleYield 0x2
#define hipDeviceScheduleBlockingSync 0x4
#define hipDeviceScheduleMask 0x7
#define hipDeviceMapHost 0x8
#define hipDeviceLmemResizeToMax 0x10

#define hipStreamDefault 0x0
#define hipStreamNonBlocking 0x1

#define hipEventDefault 0x0
#define hipEventBlockingSync 0x1
#define hipEventDisableTiming 0x2
#define hipEventInterprocess 0x4
#define hipEventDisableSystemFence 0x20000000
#define hipEventReleaseToDevice 0x40000000
#define hipEventReleaseToSystem 0x80000000

#define hipHostMallocDefault 0x0
#define hipHostMallocPortable 0x1
#define hipHostMallocMapped 0x2
#define hipHostMallocWriteCombined 0x4
#define hipHostMallocUncached 0x10000000
#define hipHostMallocNumaUser 0x20000000
#define hipHostMallocCoherent 0x40000000
#define hipHostMallocNonCoherent 0x80000000

#define hipHostAllocDefault 0x0
#define hipHostAllocPortable 0x1
#define hipHostAllocMapped 0x2
#define hipHostAllocWriteCombined 0x4

#define hipHostRegisterDefault 0x0
#define hipHostRegisterPortable 0x1
#define hipHostRegisterMapped 0x2
#define hipHostRegisterIoMemory 0x4
#define hipHostRegisterReadOnly 0x8

#define hipDeviceMallocDefault 0x0
#define hipDeviceMallocFinegrained 0x1
#define hipMallocSignalMemory 0x2
#define hipDeviceMallocUncached 0x3
#define hipDeviceMallocContiguous 0x4

#define hipMemAttachGlobal 0x1
#define hipMemAttachHost 0x2
#define hipMemAttachSingle 0x4

#ifdef __cplusplus
#define HIPX_DEFAULT(value) = value
extern "C" {
#else
#define HIPX_DEFAULT(value)
#endif

#pragma GCC visibility push(default)

/*
 * Start and errors. The library starts on the first call that needs a device, whatever thread
 * makes it. Only failures set a thread's last error; hipGetLastError reads and clears it. Every
 * call may come from any thread, but not from a signal handler or a handler of pthread_atfork; none
 * is a point of cancellation.
 *
 * Every call that needs a device, those of all sections below included, is also
 *   hipErrorNoDevice        no driver, no right to use it, or no usable GPU; the text says which
 *   hipErrorNotInitialized  KFDIRECT_ENGINE or KFDIRECT_MIN_GRANULARITY makes no sense
 *   hipErrorNotSupported    KFDIRECT_ENGINE names an engine that this kernel lacks
 *   hipErrorOperatingSystem descriptors ran out, or the driver failed in a way of its own
 * and gives hipErrorInvalidValue for a NULL where a pointer is needed, hipErrorInvalidDevice for a
 * device index that does not exist, unless it says otherwise. A call that fails changes nothing.
 */
hipError_t hipInit(unsigned int flags);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipRuntimeGetVersion(int *version);
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);
hipError_t hipDrvGetErrorName(hipError_t error, const char **name);
hipError_t hipDrvGetErrorString(hipError_t error, const char **text);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
/* The result of this thread's latest call, success included; reading clears it. */
hipError_t hipExtGetLastError(void);
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status HIPX_DEFAULT(NULL));

/* Devices. hipDeviceGetAttribute gives what hipGetDeviceProperties has in the field of that
 * meaning, 0 where it is not known (device_types.h); an attribute without a field that the kernel
 * does not tell is hipErrorInvalidValue. The devices of the peer calls must differ;
 * hipErrorPeerAccessUnsupported, ...AlreadyEnabled and ...NotEnabled are as in HIP. */
hipError_t hipGetDeviceCount(int *count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDeviceFlags(unsigned int flags);
hipError_t hipGetDeviceFlags(unsigned int *flags);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device);
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device);
hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char *pci, int size, int device);
hipError_t hipDeviceGetByPCIBusId(int *device, const char *pci);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device);
/* The names with R0600 are those of the present layout in the library. */
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
#define hipChooseDevice hipChooseDeviceR0600
hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int device);
hipError_t hipChooseDevice(int *device, const hipDeviceProp_t *prop);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipDeviceGetP2PAttribute(int *value, hipDeviceP2PAttr attribute, int device, int peer);
hipError_t hipDeviceSynchronize(void);
/* Frees what hipMalloc and its kin made for the current device, whoever uses it; reservations,
 * handles and registered memory stay. */
hipError_t hipDeviceReset(void);

/*
 * Contexts: one per device, which always exists; flags are ignored, and to create one pushes it.
 *   hipErrorInvalidContext  no context, or nothing was pushed that could be popped
 *   hipErrorInvalidValue    32 are pushed already
 */
hipError_t hipCtxCreate(hipCtx_t *context, unsigned int flags, hipDevice_t device);
hipError_t hipCtxDestroy(hipCtx_t context);
hipError_t hipCtxGetCurrent(hipCtx_t *context);
hipError_t hipCtxSetCurrent(hipCtx_t context);
hipError_t hipCtxPushCurrent(hipCtx_t context);
hipError_t hipCtxPopCurrent(hipCtx_t *context);
hipError_t hipCtxGetDevice(hipDevice_t *device);
hipError_t hipCtxSynchronize(void);
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device);
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device);
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned int *flags, int *active);

/*
 * Virtual memory management. Sizes, offsets and addresses are multiples of 4096 bytes (of the
 * host's page where that is larger), flags parameters are 0: all else is hipErrorInvalidValue. So
 * is a handle that is stale, foreign or made up. Where the kernel offers no way to map,
 * every call but hipMemMapArrayAsync is hipErrorNotSupported.
 */
/*
 * Reserves addresses. alignment: 0 or a power of two; addr: a wish, NULL for none.
 *   hipErrorInvalidValue  size is 0, alignment is no power of two
 *   hipErrorOutOfMemory   no such range of addresses is left
 */
hipError_t hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
                                unsigned long long flags);
/* hipErrorInvalidValue: not the exact base and size of a reservation, or something is mapped. */
hipError_t hipMemAddressFree(void *ptr, size_t size);
/*
 * Allocates memory of prop->location, zeroed, with one reference, the caller's.
 *   hipErrorInvalidValue   size is 0; prop->type is not Pinned or Uncached (Managed neither); a
 *                          location type or NUMA node that does not exist
 *   hipErrorInvalidDevice  prop->location is a device that does not exist
 *   hipErrorNotSupported   requestedHandleTypes is neither None nor PosixFileDescriptor; Uncached
 *                          memory on engine gem
 *   hipErrorOutOfMemory    the memory of that location is exhausted
 */
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                        const hipMemAllocationProp *prop, unsigned long long flags);
/* Drops a reference; mappings keep the memory. hipErrorInvalidValue: no reference is left. */
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle);
/*
 * Maps, with no access for anybody. offset and size may name any part of the allocation where the
 * kernel allows it; AMD's library takes offset 0 only.
 *   hipErrorInvalidValue  the range is not inside one reservation, overlaps a mapping, or goes
 *                         beyond the allocation
 *   hipErrorNotSupported  a part of the allocation on a kernel that maps whole ones only
 *   hipErrorOutOfMemory   no host memory for the record
 */
hipError_t hipMemMap(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags);
/* Removes whole mappings, holes between them are skipped. hipErrorInvalidValue: a mapping would be
 * cut, or there is none in the range. */
hipError_t hipMemUnmap(void *ptr, size_t size);
/*
 * Sets rights on a run of whole mappings, all or nothing; devices not named keep theirs.
 *   hipErrorInvalidValue  count or size is 0; a hole or a part of a mapping; flags not 0, 1 or 3; a
 *                         device (not hipErrorInvalidDevice here), location type or NUMA node that
 *                         does not exist; a device that cannot reach the memory
 *   hipErrorNotSupported  rights that the kernel cannot express; the host, for memory that the CPU
 *                         cannot see
 *   hipErrorOutOfMemory   page tables, or memory of a kernel that allocates only now
 */
hipError_t hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count);
/* hipErrorInvalidValue: nothing is mapped at ptr, or a location that does not exist. */
hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *ptr);
/* hipErrorInvalidValue: an option that is none, or a type or location (a device too) that
 * hipMemCreate would refuse. */
hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *prop,
                                          hipMemAllocationGranularity_flags option);
/* Of an import the location is the kernel's word. hipErrorInvalidValue: a bad handle. */
hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop,
                                                   hipMemGenericAllocationHandle_t handle);
/* Adds a reference, the caller's. hipErrorInvalidValue: no hipMemMap mapping at addr. */
hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *addr);
/*
 * Writes an int, a descriptor, the caller's to close.
 *   hipErrorInvalidValue  type is not PosixFileDescriptor, or not among the requestedHandleTypes
 *                         that the handle was made with; the handle is an import
 */
hipError_t hipMemExportToShareableHandle(void *shareableHandle,
                                         hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags);
/*
 * osHandle is the descriptor itself cast to a pointer, or the address of an int that holds it; it
 * stays the caller's. (Descriptor 0 cast is NULL: give its address.)
 *   hipErrorInvalidValue     no open descriptor, no memory of the GPU driver or of a GPU that is
 *                            not open here; an address that cannot be read; a type that is none
 *   hipErrorNotSupported     type is Win32, Win32Kmt or Fabric
 *   hipErrorOperatingSystem  an address, on a system that does not let it be read safely
 *   hipErrorOutOfMemory      no memory for the import
 */
hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *osHandle,
                                           hipMemAllocationHandleType type);
/*
 * Writes an int, a dma-buf descriptor of the allocation that begins at ptr, the caller's to close.
 *   hipErrorInvalidValue  not mapped, an import, a size of 0, a type that is none, unknown flags
 *   hipErrorNotSupported  ptr is inside its allocation, the range spans several, or flags is
 *                         MappingTypePcie
 */
hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t ptr, size_t size,
                                          hipMemRangeHandleType type, unsigned long long flags);
/* Always hipErrorNotSupported (hipErrorInvalidValue for an empty list): no sparse arrays here. */
hipError_t hipMemMapArrayAsync(hipArrayMapInfo *mapInfoList, unsigned int count,
                               hipStream_t stream);

/*
 * One-step memory, of the calling thread's device, which every device that reaches it may use.
 *   hipErrorInvalidValue        flags that are none or exclude each other; for the ways back,
 *                               anything but the very address that was given (NULL is fine, but
 *                               for hipFreeAsync)
 *   hipErrorOutOfMemory         memory or addresses are exhausted
 *   hipErrorInvalidHandle       a stream that does not live
 *   hipErrorNotSupported        hipMallocSignalMemory, hipDeviceMallocContiguous
 * Size 0 succeeds with NULL. The device and the host calls free each other's memory; VMM addresses
 * are refused. Either output of hipMemGetInfo may be NULL; available is never more than total.
 */
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipMalloc(void **ptr, size_t size);
hipError_t hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags);
hipError_t hipFree(void *ptr);
hipError_t hipMallocAsync(void **ptr, size_t size, hipStream_t stream);
hipError_t hipFreeAsync(void *ptr, hipStream_t stream);
hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags HIPX_DEFAULT(0));
hipError_t hipHostAlloc(void **ptr, size_t size, unsigned int flags);
hipError_t hipMallocHost(void **ptr, size_t size);
hipError_t hipMemAllocHost(void **ptr, size_t size);
hipError_t hipHostFree(void *ptr);
hipError_t hipFreeHost(void *ptr);
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned int flags);
hipError_t hipHostGetFlags(unsigned int *flags, void *host);
/*
 * Gives the program's own memory, whole pages, to every device at its own address. The pages stay
 * mapped and writable until hipHostUnregister, which takes the very address.
 *   hipErrorInvalidValue                 size 0, no memory that may be written, HIP's memory, flags
 *   hipErrorHostMemoryAlreadyRegistered  a page of it is
 *   hipErrorHostMemoryNotRegistered      hipHostUnregister of anything else
 *   hipErrorNotSupported                 IoMemory, ReadOnly; an address that a device cannot reach
 *   hipErrorOutOfMemory                  the driver's limit of pinned memory
 */
hipError_t hipHostRegister(void *ptr, size_t size, unsigned int flags);
hipError_t hipHostUnregister(void *ptr);
/* Always hipErrorNotSupported. */
hipError_t hipMallocManaged(void **ptr, size_t size, unsigned int flags HIPX_DEFAULT(1));

/* Pointers. Every output of hipMemGetAddressRange may be NULL. An address that is not the
 * library's is hipErrorInvalidValue, for hipMemGetAddressRange hipErrorNotFound; for
 * hipPointerGetAttributes it is success and hipMemoryTypeUnregistered, and for
 * hipDrvPointerGetAttributes success and zeros. A token of peers is hipErrorNotSupported. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr);
hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr);
hipError_t hipDrvPointerGetAttributes(unsigned int count, hipPointer_attribute *attributes,
                                      void **data, hipDeviceptr_t ptr);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr);
hipError_t hipMemPtrGetInfo(void *ptr, size_t *size);

/*
 * Copies and fills by the CPU.
 *   hipErrorNotSupported             memory that the CPU cannot see
 *   hipErrorInvalidValue             not all mapped, no right to it, memory that is not what kind
 *                                    says, a dst that is not a multiple of the value's size
 *   hipErrorInvalidMemcpyDirection   a kind that is none
 *   hipErrorInvalidHandle            a stream that does not live
 *   hipErrorStreamCaptureUnsupported a stream that captures
 */
hipError_t hipMemcpy(void *dst, const void *src, size_t size, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *dst, const void *src, size_t size, hipMemcpyKind kind,
                          hipStream_t stream HIPX_DEFAULT(0));
hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t size, hipMemcpyKind kind,
                               hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t size);
hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t size);
hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t size, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t size, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size,
                              hipStream_t stream);
hipError_t hipMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t size);
hipError_t hipMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t size,
                              hipStream_t stream HIPX_DEFAULT(0));
hipError_t hipMemset(void *dst, int value, size_t size);
hipError_t hipMemsetAsync(void *dst, int value, size_t size, hipStream_t stream HIPX_DEFAULT(0));
hipError_t hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count);
hipError_t hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count);
hipError_t hipMemsetD32(hipDeviceptr_t dst, int value, size_t count);
hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count,
                            hipStream_t stream HIPX_DEFAULT(0));
hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count,
                             hipStream_t stream HIPX_DEFAULT(0));
hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count,
                             hipStream_t stream HIPX_DEFAULT(0));

/*
 * Streams and events. A capture records nothing: memory calls that take no stream succeed inside
 * it, copies on the capturing stream are hipErrorStreamCaptureUnsupported, and the graph it ends
 * in is empty and can only be destroyed. Work is always done, so no call is hipErrorNotReady.
 *   hipErrorInvalidHandle              a stream, event or graph that does not live; to destroy a
 *                                      stream that was not created; the time of an event that was
 *                                      not recorded or keeps none
 *   hipErrorInvalidValue               flags, a mode, that are none
 *   hipErrorNotSupported               hipEventInterprocess
 *   hipErrorOutOfMemory                no host memory for one more
 *   hipErrorIllegalState               a capture begun twice, or ended without one
 *   hipErrorStreamCaptureWrongThread   a capture that is not relaxed, ended by another thread
 *   hipErrorStreamCaptureUnsupported   a capture of a stream that was not created; a query of, a
 *                                      wait for, or an event recorded on a stream that captures
 */
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags);
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority);
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event,
                              unsigned int flags HIPX_DEFAULT(0));
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status);
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream HIPX_DEFAULT(NULL));
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop);

/* Legacy sharing. Always hipErrorNotSupported: hipMemExportToShareableHandle is the way to share
 * memory. hipErrorInvalidValue: memory that is not hipMalloc's, flags that are not 1, and
 * every address to close, as none was opened. */
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr);
hipError_t hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned int flags);
hipError_t hipIpcCloseMemHandle(void *ptr);

/*
 * kfdirect's own. One sentence on the calling thread's last failed call: which argument, range and
 * device, or what the kernel refused; "" before the first. Valid until the next failure.
 */
const char *hipxGetLastErrorText(void);

/*
 * Ends everything that HIP holds in this process: frees all memory, mappings, reservations, handles
 * and registrations, ends streams, events and graphs, and closes the driver's files. Every address,
 * handle and context given out before is dead. All threads are on device 0 again with no context
 * pushed; the calling one has no last error. The next call starts afresh on the system that
 * kfd_sys_set_default() chose by then, so a test can give each case a machine of its own.
 * It is always hipSuccess, also where nothing had started; what the kernel refuses to free goes
 * with the process. No other thread may be inside a HIP call meanwhile, nor use memory of HIP's:
 * that is not checked.
 */
hipError_t hipxReset(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}

/* Typed pointers where the C functions take void **. */
template <class T> static inline hipError_t hipMalloc(T **ptr, size_t size)
{
    return hipMalloc(reinterpret_cast<void **>(ptr), size);
}

template <class T>
static inline hipError_t hipExtMallocWithFlags(T **ptr, size_t size, unsigned int flags)
{
    return hipExtMallocWithFlags(reinterpret_cast<void **>(ptr), size, flags);
}

template <class T> static inline hipError_t hipMallocAsync(T **ptr, size_t size, hipStream_t stream)
{
    return hipMallocAsync(reinterpret_cast<void **>(ptr), size, stream);
}

template <class T>
static inline hipError_t hipHostMalloc(T **ptr, size_t size,
                                       unsigned int flags = hipHostMallocDefault)
{
    return hipHostMalloc(reinterpret_cast<void **>(ptr), size, flags);
}

template <class T>
static inline hipError_t hipMallocManaged(T **ptr, size_t size,
                                          unsigned int flags = hipMemAttachGlobal)
{
    return hipMallocManaged(reinterpret_cast<void **>(ptr), size, flags);
}
#endif

#endif
