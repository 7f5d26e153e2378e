/* SPDX-License-Identifier: MIT */
/* Mapping, finding, walking and unmapping in one reservation with many mappings. */
#include <kfdirect/kfd.h>

#include "vmm/maptab.h"

#include "bench.h"

#define SLOT ((uint64_t)2 << 20)
#define BASE ((uint64_t)1 << 40)
#define RUN 16u /* mappings of a range that is looked at */

static struct bench bench;

static void insert(struct vmm_maptab *t, struct vmm_mapping *m)
{
    if (vmm_maptab_insert(t, m)) {
        fprintf(stderr, "bench_maptab: %s\n", kfd_error_text());
        exit(1);
    }
}

static void run(uint64_t count)
{
    struct vmm_mapping *mappings = calloc(count, sizeof(*mappings));
    uint64_t state = 1, *order = bench_order(count, &state);
    volatile uint64_t sink = 0;
    struct vmm_maptab table;

    if (!mappings)
        exit(1);
    vmm_maptab_init(&table);
    for (uint64_t i = 0; i < count; i++) {
        mappings[i].va = BASE + order[i] * SLOT; /* in any order */
        mappings[i].size = SLOT;
    }

    bench_start(&bench, "maptab insert", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++)
            insert(&table, &mappings[k]);
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "maptab at", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++)
            sink += vmm_maptab_at(&table, BASE + bench_random(&state) % count * SLOT + 99)->size;
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "maptab cover of 16", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = 0; k < BENCH_BATCH; k++)
            sink += vmm_maptab_cover(&table, BASE + bench_random(&state) % (count - RUN) * SLOT,
                                     RUN * SLOT, NULL, NULL);
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "maptab remove + insert", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++) {
            vmm_maptab_remove(&table, vmm_maptab_at(&table, mappings[k].va));
            insert(&table, &mappings[k]);
        }
        bench_end(&bench);
    }
    bench_print(&bench);

    vmm_maptab_fini(&table);
    free(order);
    free(mappings);
    (void)sink;
}

/* The usual case: as many mappings, but few in each of many reservations. */
static void run_spread(uint64_t count)
{
    uint64_t tables = count / RUN, state = 1, *order = bench_order(count, &state);
    struct vmm_mapping *mappings = calloc(count, sizeof(*mappings));
    struct vmm_maptab *table = calloc(tables, sizeof(*table));

    if (!mappings || !table)
        exit(1);
    for (uint64_t i = 0; i < tables * RUN; i++) {
        mappings[i].va = BASE + i * SLOT;
        mappings[i].size = SLOT;
        insert(&table[i / RUN], &mappings[i]);
    }
    bench_start(&bench, "maptab remove + insert, of 16", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++) {
            uint64_t n = order[k] % (tables * RUN);

            vmm_maptab_remove(&table[n / RUN], vmm_maptab_at(&table[n / RUN], mappings[n].va));
            insert(&table[n / RUN], &mappings[n]);
        }
        bench_end(&bench);
    }
    bench_print(&bench);
    for (uint64_t i = 0; i < tables; i++)
        vmm_maptab_fini(&table[i]);
    free(table);
    free(mappings);
    free(order);
}

int main(int argc, char **argv)
{
    uint64_t most = bench_most(argc, argv);

    for (size_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= most; i++)
        run(bench_sizes[i]);
    for (size_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= most; i++)
        run_spread(bench_sizes[i]);
    return 0;
}
