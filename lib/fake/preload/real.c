/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include <dlfcn.h>

/* Filled by whoever comes first; a second thread writes the same values. */
static struct preload_real real;
static _Atomic bool ready;

const struct preload_real *preload_real(void)
{
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return &real;
#define FIND(ret, name, args) \
    __atomic_store_n((void **)&real.name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);
    PRELOAD_REAL(FIND)
#undef FIND
    atomic_store_explicit(&ready, true, memory_order_release);
    return &real;
}
