/* SPDX-License-Identifier: MIT */
#include "fake/stamp.h"

#include <stdio.h>
#include <sys/ioctl.h>

#include "kfd/decode.h"
#include "kfd/uapi.h"

static const char *const deeds[] = {
    [FAKE_DEED_OPEN] = "an open",
    [FAKE_DEED_CLOSE] = "a close",
    [FAKE_DEED_EVICTION] = "an eviction",
    [FAKE_DEED_EXIT] = "the end",
};

const char *fake_va_op_name(uint32_t op)
{
    static const char *const names[] = {
        [AMDGPU_VA_OP_MAP] = " MAP",
        [AMDGPU_VA_OP_UNMAP] = " UNMAP",
        [AMDGPU_VA_OP_CLEAR] = " CLEAR",
        [AMDGPU_VA_OP_REPLACE] = " REPLACE",
    };

    return op != 0 && op <= AMDGPU_VA_OP_REPLACE ? names[op] : "";
}

static const char *operation(const struct fake_stamp *stamp)
{
    return stamp->code == (KFD_UAPI_TYPE_DRM << 8 | DRM_NR_GEM_VA) ? fake_va_op_name(stamp->op)
                                                                   : "";
}

void fake_stamp_print(const struct fake_stamp *stamp, const struct fake_stamp *now, char *text)
{
    unsigned long long request = stamp->request, ago = now->request - stamp->request;
    const char *name = kfd_decode_name(stamp->code);
    int n;

    if (stamp->pid == 0)
        n = snprintf(text, FAKE_STAMP_TEXT, "by what is not known any more");
    else if (stamp->code == 0 && stamp->op == FAKE_DEED_EXIT)
        n = snprintf(text, FAKE_STAMP_TEXT, "by the end of process %d", stamp->pid);
    else if (stamp->code == 0)
        n = snprintf(text, FAKE_STAMP_TEXT, "by %s after request %llu of process %d",
                     deeds[stamp->op], request, stamp->pid);
    else
        n = snprintf(text, FAKE_STAMP_TEXT, "by request %llu of process %d (%s%s)", request,
                     stamp->pid, name != NULL ? name : "unknown", operation(stamp));
    if (stamp->pid == now->pid && n > 0 && (size_t)n < FAKE_STAMP_TEXT)
        snprintf(text + n, FAKE_STAMP_TEXT - (size_t)n, ", %llu request%s ago", ago,
                 ago == 1 ? "" : "s");
}

void fake_history_add(struct fake_history *h, uint64_t va, uint64_t size,
                      const struct fake_stamp *end)
{
    h->ring[h->count++ % FAKE_HISTORY] = (struct fake_past){.va = va, .size = size, .end = *end};
}

const struct fake_past *fake_history_find(const struct fake_history *h, uint64_t va)
{
    uint64_t kept = h->count < FAKE_HISTORY ? h->count : FAKE_HISTORY;

    for (uint64_t i = 1; i <= kept; i++) {
        const struct fake_past *past = &h->ring[(h->count - i) % FAKE_HISTORY];

        if (va - past->va < past->size)
            return past;
    }
    return NULL;
}
