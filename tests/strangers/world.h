/* SPDX-License-Identifier: MIT */
/* The profile of the machine that a stranger's program runs on, to compare with. */
#ifndef STRANGERS_WORLD_H
#define STRANGERS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "fake/profile.h"

/* As `kfdirect fake` sets the environment. */
static inline struct fake_profile *world(void)
{
    struct fake_profile *p = NULL;
    const char *machine = getenv("KFDIRECT_FAKE");

    assert_non_null(machine);
    assert_int_equal(fake_profile_load(machine, getenv("KFDIRECT_FAKE_KERNEL"), &p), 0);
    return p;
}

#endif
