/* SPDX-License-Identifier: MIT */
/* Random numbers of a test that can be run again: the seed is printed, and taken from the
 * environment variable KFDIRECT_SEED if that is set. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct random {
    uint64_t state;
};

/* Not every test of a program that includes this draws numbers. */
#define RANDOM_FN __attribute__((unused)) static

RANDOM_FN struct random random_start(const char *what)
{
    const char *given = getenv("KFDIRECT_SEED");
    struct random r;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    r.state = given ? strtoull(given, NULL, 0)
                    : (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    printf("# %s: KFDIRECT_SEED=%" PRIu64 "\n", what, r.state);
    fflush(stdout);
    return r;
}

/* splitmix64 */
RANDOM_FN uint64_t random_next(struct random *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 0 .. n - 1 */
RANDOM_FN uint64_t random_below(struct random *r, uint64_t n)
{
    return random_next(r) % n;
}

#endif
