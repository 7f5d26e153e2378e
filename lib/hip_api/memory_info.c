/* SPDX-License-Identifier: MIT */
/* How much memory there is. */
#include "hip_api/state.h"
#include "hip_api/thread.h"

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess && !bytes)
        code = hip_null("bytes");
    if (code == hipSuccess)
        *bytes = state->memory[device];
    HIP_RETURN(code);
}

/* Of the calling thread's device. */
hipError_t hipMemGetInfo(size_t *available, size_t *total)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    uint32_t device = (uint32_t)hip_thread()->device;
    uint64_t bytes;

    if (code == hipSuccess && available) {
        code = hip_from_errno(kfd_mem_available(kfd_device_at(state->kfd, device), &bytes));
        /* An APU has more than at the start when other programs have ended. */
        if (code == hipSuccess)
            *available = bytes < state->memory[device] ? bytes : state->memory[device];
    }
    if (code == hipSuccess && total)
        *total = state->memory[device];
    HIP_RETURN(code);
}
