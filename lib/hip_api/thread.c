/* SPDX-License-Identifier: MIT */
#include "hip_api/thread.h"

#include <string.h>

#include "hip_api/error.h"

static _Thread_local struct hip_thread self;

struct hip_thread *hip_thread(void)
{
    return &self;
}

void hip_thread_reset(void)
{
    memset(&self, 0, sizeof(self));
    hip_error_reset();
}
