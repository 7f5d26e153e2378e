/* SPDX-License-Identifier: MIT */
/* The per-thread error text, shared by every layer. */
#ifndef KFD_ERROR_H
#define KFD_ERROR_H

#include <kfdirect/version.h>

/* Stores the text (truncated at 511 bytes) and returns err, a negative errno, so that a failing
 * path reads `return kfd_fail(-EINVAL, "size 0x%llx: ...", size)`. */
int kfd_fail(int err, const char *fmt, ...) KFDIRECT_PRINTF(2, 3);

/* Puts "prefix: " before the present text; returns err. For a layer that knows what the failing
 * step was part of. */
int kfd_fail_in(int err, const char *fmt, ...) KFDIRECT_PRINTF(2, 3);

void kfd_error_clear(void);

/* "ENOMEM" for -ENOMEM or ENOMEM; "errno 524" where libc has no name for it. Valid until the
 * thread's next call. */
const char *kfd_errno_name(int err);

#endif
