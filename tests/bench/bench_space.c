/* SPDX-License-Identifier: MIT */
/* Reserving, finding and freeing address space with many reservations alive. */
#include <kfdirect/kfd.h>

#include "vmm/space.h"

#include "bench.h"

static struct vmm_space space;
static struct bench bench;

static void must(int err)
{
    if (err) {
        fprintf(stderr, "bench_space: %s\n", kfd_error_text());
        exit(1);
    }
}

/* 2 MiB to 32 MiB, one in eight at a multiple of 1 GiB */
static void reserve_one(struct vmm_space_node *n, uint64_t *state)
{
    uint64_t r = bench_random(state);

    must(vmm_space_reserve(&space, (1 + r % 16) * KFD_HUGE_PAGE_SIZE,
                           r >> 32 & 7 ? 0 : (uint64_t)1 << 30, 0, n));
}

static void run(uint64_t objects)
{
    struct vmm_space_node *nodes = calloc(objects, sizeof(*nodes));
    uint64_t state = 1, *order = bench_order(objects, &state), i = 0;
    volatile uint64_t sink = 0;

    if (!nodes)
        exit(1);
    must(vmm_space_init(&space, kfd_sys_linux(), 1 << 24, (uint64_t)1 << 47, KFD_PAGE_SIZE));

    bench_start(&bench, "space reserve, no holes", objects);
    while (i < objects) {
        bench_begin(&bench);
        for (int k = 0; k < (int)BENCH_BATCH && i < objects; k++)
            must(vmm_space_reserve(&space, KFD_HUGE_PAGE_SIZE, 0, 0, &nodes[i++]));
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "space find", objects);
    for (i = 0; i + BENCH_BATCH <= objects; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = 0; k < BENCH_BATCH; k++)
            sink += vmm_space_find(&space, nodes[order[i + k]].base + 12345)->size;
        bench_end(&bench);
    }
    bench_print(&bench);

    for (i = 0; i < objects; i++) {
        vmm_space_free(&space, &nodes[order[i]]);
        reserve_one(&nodes[order[i]], &state);
    }
    bench_start(&bench, "space free + reserve, mixed", objects);
    for (i = 0; i + BENCH_BATCH <= objects; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = 0; k < BENCH_BATCH; k++) {
            vmm_space_free(&space, &nodes[order[i + k]]);
            reserve_one(&nodes[order[i + k]], &state);
        }
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "space free", objects);
    for (i = 0; i + BENCH_BATCH <= objects; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = 0; k < BENCH_BATCH; k++)
            vmm_space_free(&space, &nodes[order[i + k]]);
        bench_end(&bench);
    }
    bench_print(&bench);

    vmm_space_fini(&space);
    free(order);
    free(nodes);
    (void)sink;
}

int main(int argc, char **argv)
{
    uint64_t most = bench_most(argc, argv);

    for (size_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= most; i++)
        run(bench_sizes[i]);
    return 0;
}
