/* SPDX-License-Identifier: MIT */
/* Allocations handed to other processes and drivers as file descriptors. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hip_api/state.h"
#include "hip_api/vmm_handle.h"

/* An osHandle below this is a descriptor, above it the address of one: no process has memory there
 * nor, at the kernel's default limits, descriptors beyond it. */
#define FD_BOUND (1u << 20)

static hipError_t export_handle(void *out, hipMemGenericAllocationHandle_t handle,
                                hipMemAllocationHandleType type, unsigned long long flags)
{
    struct vmm_props props;
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    int fd;

    if (code != hipSuccess)
        return code;
    if (!out || !handle)
        return hip_null(out ? "handle" : "shareableHandle");
    if (flags != 0)
        return hip_fail(hipErrorInvalidValue, "flags is 0x%llx, not 0", flags);
    code = hip_from_errno(vmm_get_props(state->vmm, hip_to_vmm(handle), &props, NULL));
    if (code != hipSuccess)
        return code;
    if (type != hipMemHandleTypePosixFileDescriptor ||
        (props.tag[HIP_TAG_HANDLE_TYPES] & (uint32_t)type) == 0)
        return hip_fail(hipErrorInvalidValue, "type is %d; the handle was made with types 0x%x",
                        (int)type, props.tag[HIP_TAG_HANDLE_TYPES]);
    code = hip_from_errno(vmm_export(state->vmm, hip_to_vmm(handle), &fd));
    if (code == hipSuccess)
        memcpy(out, &fd, sizeof(fd));
    return code;
}

hipError_t hipMemExportToShareableHandle(void *shareableHandle,
                                         hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
    HIP_RETURN(export_handle(shareableHandle, handle, type, flags));
}

/* The descriptor that osHandle is or points to. The address is read by the kernel, so that a wild
 * one is an error and no fault. */
static hipError_t read_fd(void *os_handle, int *fd)
{
    struct iovec to = {fd, sizeof(*fd)}, from = {os_handle, sizeof(*fd)};

    if ((uintptr_t)os_handle < FD_BOUND) {
        *fd = (int)(uintptr_t)os_handle;
        return hipSuccess;
    }
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(*fd))
        return hipSuccess;
    if (errno == EFAULT)
        return hip_fail(hipErrorInvalidValue,
                        "osHandle is 0x%llx: neither a descriptor nor the address of one",
                        (unsigned long long)(uintptr_t)os_handle);
    return hip_fail(hipErrorOperatingSystem,
                    "osHandle is an address, and this system does not let the library read it "
                    "safely: give the descriptor itself");
}

static hipError_t import_handle(hipMemGenericAllocationHandle_t *handle, void *os_handle,
                                hipMemAllocationHandleType type)
{
    const uint32_t tag[4] = {[HIP_TAG_HANDLE_TYPES] = hipMemHandleTypePosixFileDescriptor};
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    vmm_handle made;
    int fd;

    if (code != hipSuccess)
        return code;
    if (!handle || !os_handle)
        return hip_null(handle ? "osHandle" : "handle");
    switch (type) {
    case hipMemHandleTypePosixFileDescriptor:
        break;
    case hipMemHandleTypeWin32:
    case hipMemHandleTypeWin32Kmt:
    case hipMemHandleTypeFabric:
        return hip_fail(hipErrorNotSupported, "type is %d: memory is shared by file descriptor",
                        (int)type);
    default:
        return hip_fail(hipErrorInvalidValue, "type is %d, which is no kind of handle", (int)type);
    }
    code = read_fd(os_handle, &fd);
    if (code != hipSuccess)
        return code;
    code = hip_from_errno(vmm_import(state->vmm, fd, tag, &made));
    if (code == hipSuccess)
        *handle = hip_from_vmm(made);
    return code;
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *osHandle,
                                           hipMemAllocationHandleType type)
{
    HIP_RETURN(import_handle(handle, osHandle, type));
}

/* The descriptor stands for the whole allocation and cannot tell an offset, so the range must begin
 * with it. */
static hipError_t export_range(struct hip_state *state, uint64_t va, uint64_t size, int *fd)
{
    struct vmm_range range;

    vmm_query(state->vmm, va, &range);
    if (va - range.base + range.offset != 0 && range.base != 0)
        return hip_fail(hipErrorNotSupported,
                        "0x%llx is 0x%llx bytes into its allocation: only the begin can be given",
                        (unsigned long long)va,
                        (unsigned long long)(va - range.base + range.offset));
    return hip_from_errno(vmm_export_range(state->vmm, va, size, fd, NULL));
}

static hipError_t range_handle(void *handle, hipDeviceptr_t ptr, size_t size,
                               hipMemRangeHandleType type, unsigned long long flags)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    int fd;

    if (code != hipSuccess)
        return code;
    if (!handle || !ptr)
        return hip_null(handle ? "ptr" : "handle");
    if (size == 0)
        return hip_fail(hipErrorInvalidValue, "size is 0");
    if (type != hipMemRangeHandleTypeDmaBufFd)
        return hip_fail(hipErrorInvalidValue, "type is %d, which is no kind of range handle",
                        (int)type);
    if (flags == hipMemRangeFlagDmaBufMappingTypePcie)
        return hip_fail(hipErrorNotSupported, "a mapping through PCIe cannot be asked for");
    if (flags != 0)
        return hip_fail(hipErrorInvalidValue,
                        "flags is 0x%llx, which has bits that are not known here", flags);
    code = export_range(state, (uint64_t)(uintptr_t)ptr, size, &fd);
    if (code == hipSuccess)
        memcpy(handle, &fd, sizeof(fd));
    return code;
}

hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t ptr, size_t size,
                                          hipMemRangeHandleType type, unsigned long long flags)
{
    HIP_RETURN(range_handle(handle, ptr, size, type, flags));
}
