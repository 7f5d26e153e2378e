/* SPDX-License-Identifier: MIT */
/* What an operation of the seam leaves to its caller as it was: errno, and that no thread is
 * cancelled in it, which would leave the locks locked that are held over it. */
#ifndef KFD_KEPT_H
#define KFD_KEPT_H

#include <errno.h>
#include <pthread.h>

struct kfd_kept {
    int error, cancel;
};

static inline struct kfd_kept kfd_keep(void)
{
    struct kfd_kept kept = {.error = errno};

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &kept.cancel);
    return kept;
}

/* Is result. */
static inline int kfd_let_go(struct kfd_kept kept, int result)
{
    errno = kept.error;
    pthread_setcancelstate(kept.cancel, NULL);
    return result;
}

#endif
