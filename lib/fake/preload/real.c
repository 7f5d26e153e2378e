/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include "fake/preload/real.h"

#include <dlfcn.h>

struct preload_real preload_real_calls;
_Atomic bool preload_real_ready;

/* Whoever comes first; a second thread writes the same values. */
void preload_real_find(void)
{
#define FIND(ret, name, args) \
    __atomic_store_n((void **)&preload_real_calls.name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);
    PRELOAD_REAL(FIND)
#undef FIND
    atomic_store_explicit(&preload_real_ready, true, memory_order_release);
}
