/* SPDX-License-Identifier: MIT */
/* Copies from and to the caller's memory, as a kernel must: a bad pointer is -EFAULT. */
#ifndef FAKE_USERCOPY_H
#define FAKE_USERCOPY_H

#include <stddef.h>
#include <stdint.h>

/* 0 or -EFAULT; on failure a part may have been copied. */
int fake_copy_in(void *to, uint64_t user, size_t size);
int fake_copy_out(uint64_t user, const void *from, size_t size);

#endif
