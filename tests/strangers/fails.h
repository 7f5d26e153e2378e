/* SPDX-License-Identifier: MIT */
/* A call of libc's that must fail, and how. */
#ifndef STRANGERS_FAILS_H
#define STRANGERS_FAILS_H

#include <errno.h>

#define assert_fails(call, error)       \
    do {                                \
        errno = 0;                      \
        assert_int_equal(call, -1);     \
        assert_int_equal(errno, error); \
    } while (0)

#endif
