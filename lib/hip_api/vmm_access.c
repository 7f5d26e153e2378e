/* SPDX-License-Identifier: MIT */
/* Who may read and write a mapping. */
#include "hip_api/vmm_access.h"

#include <stdio.h>

#include "hip_api/location.h"

/* Every device and the host. */
#define MAX_SUBJECTS (KFD_MAX_DEVICES + 1)

hipMemAccessFlags hip_access_from_prot(uint32_t prot)
{
    if (prot & VMM_PROT_WRITE)
        return hipMemAccessFlagsProtReadWrite;
    return prot & VMM_PROT_READ ? hipMemAccessFlagsProtRead : hipMemAccessFlagsProtNone;
}

static hipError_t prot_from_access(hipMemAccessFlags flags, const char *what, uint32_t *prot)
{
    switch (flags) {
    case hipMemAccessFlagsProtNone:
        *prot = VMM_PROT_NONE;
        return hipSuccess;
    case hipMemAccessFlagsProtRead:
        *prot = VMM_PROT_READ;
        return hipSuccess;
    case hipMemAccessFlagsProtReadWrite:
        *prot = VMM_PROT_READ_WRITE;
        return hipSuccess;
    default:
        return hip_fail(hipErrorInvalidValue, "%s: flags is 0x%x, not 0, 1 or 3", what,
                        (unsigned)flags);
    }
}

/* Checks every descriptor and keeps the last one of each subject, so that a list of any length
 * needs no memory. */
static hipError_t collect(const struct hip_state *state, const hipMemAccessDesc *desc, size_t count,
                          struct vmm_access access[MAX_SUBJECTS], size_t *subjects)
{
    *subjects = 0;
    for (size_t i = 0; i < count; i++) {
        char what[32];
        uint32_t device, prot = VMM_PROT_NONE;
        hipError_t code;
        size_t at = 0;

        snprintf(what, sizeof(what), "desc[%zu]", i);
        code = hip_check_location(state, &desc[i].location, hipErrorInvalidValue, what);
        if (code == hipSuccess)
            code = prot_from_access(desc[i].flags, what, &prot);
        if (code != hipSuccess)
            return code;
        device = hip_location_device(&desc[i].location);
        while (at < *subjects && access[at].device != device)
            at++;
        if (at == *subjects)
            (*subjects)++;
        access[at] = (struct vmm_access){.device = device, .prot = prot};
    }
    return hipSuccess;
}

static hipError_t set_access(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count)
{
    struct vmm_access access[MAX_SUBJECTS];
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    size_t subjects;

    if (code != hipSuccess)
        return code;
    if (!ptr || !desc)
        return hip_null(ptr ? "desc" : "ptr");
    if (size == 0 || count == 0)
        return hip_fail(hipErrorInvalidValue, "%s is 0", size ? "count" : "size");
    code = collect(state, desc, count, access, &subjects);
    if (code != hipSuccess)
        return code;
    return hip_from_errno(
        vmm_set_access(state->vmm, (uint64_t)(uintptr_t)ptr, size, access, subjects));
}

hipError_t hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count)
{
    HIP_RETURN(set_access(ptr, size, desc, count));
}

static hipError_t get_access(unsigned long long *flags, const hipMemLocation *location, void *ptr)
{
    struct hip_state *state;
    hipError_t code = hip_start_vmm(&state);
    uint32_t prot;

    if (code != hipSuccess)
        return code;
    if (!flags || !location || !ptr)
        return hip_null(!flags ? "flags" : !location ? "location" : "ptr");
    code = hip_check_location(state, location, hipErrorInvalidValue, "location");
    if (code != hipSuccess)
        return code;
    code = hip_from_errno(
        vmm_get_access(state->vmm, (uint64_t)(uintptr_t)ptr, hip_location_device(location), &prot));
    if (code == hipSuccess)
        *flags = hip_access_from_prot(prot);
    return code;
}

hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *ptr)
{
    HIP_RETURN(get_access(flags, location, ptr));
}
