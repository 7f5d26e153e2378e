/* SPDX-License-Identifier: MIT */
/* Short forms of the calls, for sequences from bug reports. Each fails its case on any error. */
#ifndef BUGS_H
#define BUGS_H

#include "common.h"

#define RW hipMemAccessFlagsProtReadWrite
#define RO hipMemAccessFlagsProtRead
#define NO hipMemAccessFlagsProtNone

typedef hipMemGenericAllocationHandle_t handle_t;

static inline void *reserve(uint64_t size)
{
    void *va = NULL;

    HIP_OK(hipMemAddressReserve(&va, size, 0, NULL, 0));
    return va;
}

static inline handle_t create(int device, uint64_t size)
{
    hipMemAllocationProp prop = device_prop(device);
    handle_t handle = NULL;

    HIP_OK(hipMemCreate(&handle, size, &prop, 0));
    return handle;
}

static inline handle_t create_shareable(int device, uint64_t size)
{
    hipMemAllocationProp prop = shareable_prop(device);
    handle_t handle = NULL;

    HIP_OK(hipMemCreate(&handle, size, &prop, 0));
    return handle;
}

static inline int export_fd(handle_t handle)
{
    int fd = -1;

    HIP_OK(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
    return fd;
}

static inline hipError_t import_fd(handle_t *handle, int fd)
{
    return hipMemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
                                           hipMemHandleTypePosixFileDescriptor);
}

/* Maps the whole handle for one device. */
static inline void map_rw(void *va, uint64_t size, handle_t handle, int device)
{
    HIP_OK(hipMemMap(va, size, 0, handle, 0));
    HIP_OK(set_access(va, size, device, RW));
}

/* Creates, maps, grants and releases at va. */
static inline void put_piece(void *va, uint64_t size, int device)
{
    handle_t handle = create(device, size);

    map_rw(va, size, handle, device);
    HIP_OK(hipMemRelease(handle));
}

static inline void unmap(void *va, uint64_t size)
{
    HIP_OK(hipMemUnmap(va, size));
}

static inline void address_free(void *va, uint64_t size)
{
    HIP_OK(hipMemAddressFree(va, size));
}

#endif
