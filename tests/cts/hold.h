/* SPDX-License-Identifier: MIT */
/* The guest's cards can be told to leave their SDMA engines standing. A child process lets them go
 * again, so that a request that waits for them comes back. */
#ifndef CTS_HOLD_H
#define CTS_HOLD_H

#include "cts.h"

/* Stops the engines for some milliseconds. -ENOSYS where nobody can. */
int hold_start(unsigned ms);
/* Whether they still stand. */
bool hold_on(void);
/* Waits until they run again. */
void hold_end(void);

#endif
