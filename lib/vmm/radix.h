/* SPDX-License-Identifier: MIT */
/*
 * Finds the object that owns an address in three memory accesses, however many there are: a radix
 * tree over 2-MiB granules, laid out like a page table. An entry of an upper level that lies wholly
 * in one range names its object itself, so a range costs few entries whatever its size. Only whole
 * granules below VMM_RADIX_END are entered; for other addresses the caller keeps another index.
 *
 * Invariant: no table is empty. Part of struct vmm_space, whose caller serialises.
 */
#ifndef VMM_RADIX_H
#define VMM_RADIX_H

#include <stdint.h>

#define VMM_RADIX_GRANULE ((uint64_t)1 << 21)
#define VMM_RADIX_BITS 9
#define VMM_RADIX_SLOTS (1u << VMM_RADIX_BITS)
#define VMM_RADIX_END ((uint64_t)1 << 48)

/* 0: nothing; bit 0 set: an object; else a table of the next level, which nothing else leads to: a
 * search for leaks must take this for a pointer. */
typedef uintptr_t vmm_radix_entry;

struct vmm_radix {
    vmm_radix_entry root[VMM_RADIX_SLOTS];
};

/* Enters the whole granules of [base, base + size), where nothing is entered yet. object is not
 * NULL and at an even address. -ENOMEM, nothing changed. */
int vmm_radix_insert(struct vmm_radix *r, uint64_t base, uint64_t size, void *object);
/* Takes out what was entered for the same range and object, if it was. */
void vmm_radix_remove(struct vmm_radix *r, uint64_t base, uint64_t size, const void *object);
/* The object entered for the granule of va, or NULL. */
void *vmm_radix_find(const struct vmm_radix *r, uint64_t va);
/* Takes out everything. */
void vmm_radix_clear(struct vmm_radix *r);

/* Granules entered in all, or -EUCLEAN and the error text. */
int64_t vmm_radix_validate(const struct vmm_radix *r);

#endif
