/* SPDX-License-Identifier: MIT */
/*
 * Benchmarks print nanoseconds per operation: half and 99 % of the samples lie at or below. A
 * sample is the mean of a few operations, because reading the clock costs as much as the shortest
 * of them. Nothing is judged.
 *
 * Usage of each program: bench_x [most objects, default 1000000]
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_BATCH 8u
#define BENCH_SAMPLES 20000u

struct bench {
    const char *name;
    uint64_t objects;
    uint64_t began;
    size_t count;
    double samples[BENCH_SAMPLES];
};

static inline uint64_t bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void bench_start(struct bench *b, const char *name, uint64_t objects)
{
    b->name = name;
    b->objects = objects;
    b->count = 0;
}

/* Around BENCH_BATCH operations. The last samples are kept, so that of a growing structure the full
 * size is measured. */
static inline void bench_begin(struct bench *b)
{
    b->began = bench_now();
}

static inline void bench_end(struct bench *b)
{
    uint64_t now = bench_now();

    b->samples[b->count++ % BENCH_SAMPLES] = (double)(now - b->began) / BENCH_BATCH;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline void bench_print(struct bench *b)
{
    size_t count = b->count < BENCH_SAMPLES ? b->count : BENCH_SAMPLES;

    if (count == 0)
        return;
    qsort(b->samples, count, sizeof(*b->samples), bench_compare);
    printf("%-30s %8llu objects  p50 %8.0f ns  p99 %8.0f ns\n", b->name,
           (unsigned long long)b->objects, b->samples[count / 2], b->samples[count * 99 / 100]);
    fflush(stdout);
}

/* The sizes to run: 1,000, 100,000 and 1,000,000, up to the one given. */
static inline uint64_t bench_most(int argc, char **argv)
{
    return argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
}

/* splitmix64, from a fixed seed: every run does the same. */
static inline uint64_t bench_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A random order of 0 .. n - 1, to be freed. */
static inline uint64_t *bench_order(uint64_t n, uint64_t *state)
{
    uint64_t *order = malloc(n * sizeof(*order));

    if (!order) {
        fprintf(stderr, "bench: no memory\n");
        exit(1);
    }
    for (uint64_t i = 0; i < n; i++)
        order[i] = i;
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t k = bench_random(state) % (i + 1), tmp = order[i];

        order[i] = order[k];
        order[k] = tmp;
    }
    return order;
}

static const uint64_t bench_sizes[] = {1000, 100000, 1000000};
#define BENCH_SIZES (sizeof(bench_sizes) / sizeof(bench_sizes[0]))

#endif
