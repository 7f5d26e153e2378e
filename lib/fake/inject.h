/* SPDX-License-Identifier: MIT */
/* Failures on order. The injector has a lock of its own, inside the process lock. */
#ifndef FAKE_INJECT_H
#define FAKE_INJECT_H

#include "fake/fake_internal.h"

struct fake_injector *fake_injector_new(void);
void fake_injector_free(struct fake_injector *injector);

/* Sets call->strike when an injection is due for this request, and sleeps its delay. Called without
 * the process lock, with the kernel's copy of the argument. */
void fake_inject_check(struct fake_call *call, const void *arg);

/* Is this request to fail on the way, `done` devices (or steps) being finished? */
static inline bool fake_strike_at(const struct fake_call *call, uint32_t done)
{
    return call->strike.armed && call->strike.point == FAKE_INJECT_MIDDLE &&
           call->strike.done == done;
}

#endif
