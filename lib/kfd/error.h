/* SPDX-License-Identifier: MIT */
/* The per-thread error text, shared by every layer. */
#ifndef KFD_ERROR_H
#define KFD_ERROR_H

#include <errno.h>
#include <stdbool.h>

#include <kfdirect/version.h>

/* Stores the text, truncated at 511 bytes; with a prefix, puts "text: " before the present one. */
void kfd_error_set(const char *fmt, ...) KFDIRECT_PRINTF(1, 2);
void kfd_error_prefix(const char *fmt, ...) KFDIRECT_PRINTF(1, 2);

/* So that a call whose result nobody wants is no unused value. */
static inline int kfd_error_is(int err)
{
    return err;
}

/* Whether the error is about what the process or the system has left, and so says nothing about the
 * file, node or GPU that was asked: whoever leaves out what fails must not leave out that. */
static inline bool kfd_error_is_shortage(int err)
{
    return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* Stores the text and is err, a negative errno, so that a failing path reads
 * `return kfd_fail(-EINVAL, "size 0x%llx: ...", size)`. A macro, because a compiler that sees which
 * error comes back knows that what was not set on failure is not used. */
#define kfd_fail(err, ...)                \
    ({                                    \
        const int kfd_fail_error = (err); \
        kfd_error_set(__VA_ARGS__);       \
        kfd_error_is(kfd_fail_error);     \
    })

/* The same with the text as a prefix, for a layer that knows what the failing step was part of. */
#define kfd_fail_in(err, ...)             \
    ({                                    \
        const int kfd_fail_error = (err); \
        kfd_error_prefix(__VA_ARGS__);    \
        kfd_error_is(kfd_fail_error);     \
    })

void kfd_error_clear(void);

/* From the one to the other the calling thread's text stays as it is: what puts a failed call's
 * steps back, or is tried by the way, may fail as well, and has nothing to tell. They nest. */
void kfd_error_hold(void);
void kfd_error_resume(void);

/* "ENOMEM" for -ENOMEM or ENOMEM; "errno 524" where libc has no name for it. Valid until the
 * thread's next call. */
const char *kfd_errno_name(int err);

#endif
