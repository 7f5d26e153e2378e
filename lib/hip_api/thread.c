/* SPDX-License-Identifier: MIT */
#include "hip_api/thread.h"

#include <stdatomic.h>

#include "hip_api/error.h"

static _Thread_local struct hip_thread self;
/* How often all threads were reset: a thread that missed one has chosen among devices that may not
 * exist any more. */
static atomic_uint resets;

static void clear(unsigned seen)
{
    self = (struct hip_thread){.resets = seen};
}

struct hip_thread *hip_thread(void)
{
    unsigned now = atomic_load_explicit(&resets, memory_order_relaxed);

    if (self.resets != now)
        clear(now);
    return &self;
}

void hip_thread_reset(void)
{
    clear(atomic_load(&resets));
    hip_error_reset();
}

void hip_thread_reset_all(void)
{
    atomic_fetch_add(&resets, 1);
}
