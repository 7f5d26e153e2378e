/* SPDX-License-Identifier: MIT */
/*
 * Rows of what a stranger's library answered, one per call: program and test, step, result,
 * outputs. They are the same on the fake machine of the guest's card and on the driver in the
 * guest, or one of the two is wrong. The file of rows has the form of tests/cts, whose comparison
 * is used.
 *
 *   STRANGERS_RECORD=FILE   append the rows there
 *   STRANGERS_EXPECT=FILE   a last test compares them with those recorded on the driver
 */
#ifndef STRANGERS_WITNESS_H
#define STRANGERS_WITNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "world.h"

/* The program runs on a driver and the profile tells what card it has there. */
bool witness_on_driver(void);
/* From now on rows belong to this test of this program. */
void witness_begin(const char *program, const char *test);
void witness_row(const char *step, const char *result, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The result of a call that answers 0 or -errno, with a row; returns it. */
int witness_errno(const char *step, int ret);
/* The profile, with what is this computer's own on a driver: CPUs, RAM, numbers of the nodes. */
struct fake_profile *witness_world(void);
/* Runs the tests and compares the rows last, where there is something to compare them with. */
int witness_run(const struct CMUnitTest *tests, size_t count);

#endif
