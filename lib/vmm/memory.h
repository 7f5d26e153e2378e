/* SPDX-License-Identifier: MIT */
/* The heap of lib/vmm: zeroed memory, in one place so that tests can make it run out. */
#ifndef VMM_MEMORY_H
#define VMM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* n * size zeroed bytes; NULL when there are none. */
void *vmm_calloc(size_t n, size_t size);
void vmm_free_mem(void *p);

/* For tests: n more calls of vmm_calloc succeed, in all threads together, and every later one
 * fails. UINT64_MAX ends that. */
void vmm_memory_fail_after(uint64_t n);

#endif
