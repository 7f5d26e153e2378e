/* SPDX-License-Identifier: MIT */
/* Copies and fills, made by the CPU through its views of the memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hip_api/state.h"
#include "hip_api/stream.h"
#include "kfd/error.h"

/* Between two ranges of ours bytes go through a buffer: no walk runs inside another. */
#define BOUNCE_SIZE ((size_t)4 << 20)

/* One side of a copy: the walk's callback moves bytes between the pieces and this. */
struct side {
    char *next;
};

static int copy_in(void *arg, void *cpu, uint64_t size)
{
    struct side *from = arg;

    memcpy(cpu, from->next, size);
    from->next += size;
    return 0;
}

static int copy_out(void *arg, void *cpu, uint64_t size)
{
    struct side *to = arg;

    memcpy(to->next, cpu, size);
    to->next += size;
    return 0;
}

static int look(void *arg, void *cpu, uint64_t size)
{
    return 0;
}

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

/* Whether the range is ours to walk; ordinary memory, registered or not, is not. A range that
 * begins outside and reaches into ours is neither, and nor is one that the kind calls the device's
 * but is unknown here: most likely it was freed, and a CPU access would be a fault. */
static hipError_t classify(struct hip_state *state, const char *what, const void *ptr, size_t size,
                           bool device, bool *ours)
{
    struct vmm_range first;

    if (size - 1 > UINT64_MAX - address(ptr))
        return hip_fail(hipErrorInvalidValue, "%s: 0x%zx bytes at 0x%llx leave the address space",
                        what, size, (unsigned long long)address(ptr));
    vmm_query(state->vmm, address(ptr), &first);
    *ours = first.kind != VMM_KIND_NONE && first.kind != VMM_KIND_REGISTERED;
    if (*ours)
        return hipSuccess;
    if (vmm_holds(state->vmm, address(ptr), size))
        return hip_fail(hipErrorInvalidValue,
                        "%s: 0x%zx bytes at 0x%llx begin outside GPU memory and reach into it",
                        what, size, (unsigned long long)address(ptr));
    if (device &&
        (first.kind != VMM_KIND_REGISTERED || size > first.base + first.size - address(ptr)))
        return hip_fail(
            hipErrorInvalidValue,
            "%s: 0x%zx bytes at 0x%llx are not the device's: neither HIP's nor registered", what,
            size, (unsigned long long)address(ptr));
    return hipSuccess;
}

static bool to_device(hipMemcpyKind kind)
{
    return kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice ||
           kind == hipMemcpyDeviceToDeviceNoCU;
}

static bool from_device(hipMemcpyKind kind)
{
    return kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice ||
           kind == hipMemcpyDeviceToDeviceNoCU;
}

static int copy_through(struct vmm *vmm, uint64_t dst, uint64_t src, size_t size)
{
    size_t step = size < BOUNCE_SIZE ? size : BOUNCE_SIZE;
    char *bounce = malloc(step);
    int err = 0;

    if (!bounce)
        return kfd_fail(-ENOMEM, "no host memory for a buffer of 0x%zx bytes", step);
    /* A single step checks each side before it writes; more than one must not stop half-way. */
    if (step < size) {
        err = vmm_cpu_walk(vmm, src, size, VMM_PROT_READ, look, NULL);
        if (!err)
            err = vmm_cpu_walk(vmm, dst, size, VMM_PROT_WRITE, look, NULL);
    }
    /* Downwards where the destination overlaps the source from above. */
    for (size_t done = 0; !err && done < size; done += step) {
        size_t n = size - done < step ? size - done : step;
        size_t at = dst > src && dst - src < size ? size - done - n : done;
        struct side side = {bounce};

        err = vmm_cpu_walk(vmm, src + at, n, VMM_PROT_READ, copy_out, &side);
        side.next = bounce;
        if (!err)
            err = vmm_cpu_walk(vmm, dst + at, n, VMM_PROT_WRITE, copy_in, &side);
    }
    free(bounce);
    return err;
}

static hipError_t check_kind(hipMemcpyKind kind)
{
    switch (kind) {
    case hipMemcpyHostToHost:
    case hipMemcpyHostToDevice:
    case hipMemcpyDeviceToHost:
    case hipMemcpyDeviceToDevice:
    case hipMemcpyDefault:
    case hipMemcpyDeviceToDeviceNoCU:
        return hipSuccess;
    default:
        return hip_fail(hipErrorInvalidMemcpyDirection,
                        "kind is %d, which is no direction of a copy", (int)kind);
    }
}

/* The addresses say where the bytes are; a kind that says "device" must be right, "host" need not.
 */
static hipError_t copy(void *dst, const void *src, size_t size, hipMemcpyKind kind)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    bool to_ours, from_ours;
    struct side side;

    if (code == hipSuccess)
        code = check_kind(kind);
    if (code != hipSuccess || size == 0)
        return code;
    if (!dst || !src)
        return hip_null(dst ? "src" : "dst");
    code = classify(state, "dst", dst, size, to_device(kind), &to_ours);
    if (code == hipSuccess)
        code = classify(state, "src", src, size, from_device(kind), &from_ours);
    if (code != hipSuccess)
        return code;
    if (to_ours && from_ours)
        return hip_from_errno(copy_through(state->vmm, address(dst), address(src), size));
    if (to_ours) {
        side.next = (char *)(uintptr_t)src;
        return hip_from_errno(
            vmm_cpu_walk(state->vmm, address(dst), size, VMM_PROT_WRITE, copy_in, &side));
    }
    if (from_ours) {
        side.next = dst;
        return hip_from_errno(
            vmm_cpu_walk(state->vmm, address(src), size, VMM_PROT_READ, copy_out, &side));
    }
    memmove(dst, src, size);
    return hipSuccess;
}

static hipError_t copy_on(hipStream_t stream, void *dst, const void *src, size_t size,
                          hipMemcpyKind kind)
{
    hipError_t code = hip_check_working_stream(stream);

    return code == hipSuccess ? copy(dst, src, size, kind) : code;
}

hipError_t hipMemcpy(void *dst, const void *src, size_t size, hipMemcpyKind kind)
{
    HIP_RETURN(copy(dst, src, size, kind));
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t size, hipMemcpyKind kind,
                          hipStream_t stream)
{
    HIP_RETURN(copy_on(stream, dst, src, size, kind));
}

hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t size, hipMemcpyKind kind,
                               hipStream_t stream)
{
    HIP_RETURN(copy_on(stream, dst, src, size, kind));
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t size)
{
    HIP_RETURN(copy(dst, src, size, hipMemcpyHostToDevice));
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t size)
{
    HIP_RETURN(copy(dst, src, size, hipMemcpyDeviceToHost));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size)
{
    HIP_RETURN(copy(dst, src, size, hipMemcpyDeviceToDevice));
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t size, hipStream_t stream)
{
    HIP_RETURN(copy_on(stream, dst, src, size, hipMemcpyHostToDevice));
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t size, hipStream_t stream)
{
    HIP_RETURN(copy_on(stream, dst, src, size, hipMemcpyDeviceToHost));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size,
                              hipStream_t stream)
{
    HIP_RETURN(copy_on(stream, dst, src, size, hipMemcpyDeviceToDevice));
}

static hipError_t copy_peer(hipStream_t stream, void *dst, int to, const void *src, int from,
                            size_t size)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_check_device(state, to, hipErrorInvalidDevice);
    if (code == hipSuccess)
        code = hip_check_device(state, from, hipErrorInvalidDevice);
    return code == hipSuccess ? copy_on(stream, dst, src, size, hipMemcpyDeviceToDevice) : code;
}

hipError_t hipMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t size)
{
    HIP_RETURN(copy_peer(NULL, dst, dstDevice, src, srcDevice, size));
}

hipError_t hipMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t size,
                              hipStream_t stream)
{
    HIP_RETURN(copy_peer(stream, dst, dstDevice, src, srcDevice, size));
}

/* A pattern of 1, 2 or 4 bytes. Pieces of a walk are whole pages but for the ends, and the start is
 * aligned, so every piece begins with a whole pattern. */
struct pattern {
    uint32_t value;
    unsigned int width;
};

static int fill_piece(void *arg, void *cpu, uint64_t size)
{
    const struct pattern *pattern = arg;
    uint64_t count = size / pattern->width;

    if (pattern->width == 1) {
        memset(cpu, (int)pattern->value, size);
    } else if (pattern->width == 2) {
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)cpu)[i] = (uint16_t)pattern->value;
    } else {
        for (uint64_t i = 0; i < count; i++)
            ((uint32_t *)cpu)[i] = pattern->value;
    }
    return 0;
}

static hipError_t fill(hipStream_t stream, void *dst, uint32_t value, unsigned int width,
                       size_t count)
{
    struct pattern pattern = {value, width};
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    bool ours;

    if (code == hipSuccess)
        code = hip_check_working_stream(stream);
    if (code != hipSuccess || count == 0)
        return code;
    if (!dst || address(dst) % width != 0)
        return hip_fail(hipErrorInvalidValue, "dst is 0x%llx, not a multiple of %u",
                        (unsigned long long)address(dst), width);
    if (count > SIZE_MAX / width)
        return hip_fail(hipErrorInvalidValue, "count is 0x%zx", count);
    code = classify(state, "dst", dst, count * width, true, &ours);
    if (code != hipSuccess)
        return code;
    if (!ours) /* the program's own, registered */
        return hip_from_errno(fill_piece(&pattern, dst, count * width));
    return hip_from_errno(vmm_cpu_walk(state->vmm, address(dst), count * width, VMM_PROT_WRITE,
                                       fill_piece, &pattern));
}

hipError_t hipMemset(void *dst, int value, size_t size)
{
    HIP_RETURN(fill(NULL, dst, (unsigned char)value, 1, size));
}

hipError_t hipMemsetAsync(void *dst, int value, size_t size, hipStream_t stream)
{
    HIP_RETURN(fill(stream, dst, (unsigned char)value, 1, size));
}

hipError_t hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count)
{
    HIP_RETURN(fill(NULL, dst, value, 1, count));
}

hipError_t hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count)
{
    HIP_RETURN(fill(NULL, dst, value, 2, count));
}

hipError_t hipMemsetD32(hipDeviceptr_t dst, int value, size_t count)
{
    HIP_RETURN(fill(NULL, dst, (uint32_t)value, 4, count));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count,
                            hipStream_t stream)
{
    HIP_RETURN(fill(stream, dst, value, 1, count));
}

hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count,
                             hipStream_t stream)
{
    HIP_RETURN(fill(stream, dst, value, 2, count));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
{
    HIP_RETURN(fill(stream, dst, (uint32_t)value, 4, count));
}
