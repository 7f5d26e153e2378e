/* SPDX-License-Identifier: MIT */
#include "vmm/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic uint64_t budget = UINT64_MAX;

void *vmm_calloc(size_t n, size_t size)
{
    uint64_t left = atomic_load_explicit(&budget, memory_order_relaxed);

    while (left != UINT64_MAX) {
        if (left == 0)
            return NULL;
        if (atomic_compare_exchange_weak_explicit(&budget, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
    }
    return calloc(n, size);
}

void vmm_free_mem(void *p)
{
    free(p);
}

void vmm_memory_fail_after(uint64_t n)
{
    atomic_store_explicit(&budget, n, memory_order_relaxed);
}
