/* SPDX-License-Identifier: MIT */
/* Making, looking up and ending handles with many alive. */
#include "vmm/handle.h"

#include "bench.h"

struct object {
    uint64_t references;
    uint64_t rest[13]; /* as large as an allocation */
};

static struct bench bench;

static bool take(void *object)
{
    ((struct object *)object)->references++;
    return true;
}

static void add(struct vmm_handles *h, void *object, uint64_t *handle)
{
    if (vmm_handles_add(h, object, handle)) {
        fprintf(stderr, "bench_handle: no memory\n");
        exit(1);
    }
}

static void run(uint64_t count)
{
    struct object *objects = calloc(count, sizeof(*objects));
    uint64_t *handles = calloc(count, sizeof(*handles));
    uint64_t state = 1, *order = bench_order(count, &state);
    struct vmm_handles table;

    if (!objects || !handles || vmm_handles_init(&table, 1))
        exit(1);

    bench_start(&bench, "handle add", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++)
            add(&table, &objects[k], &handles[k]);
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "handle get with reference", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++)
            vmm_handles_get(&table, handles[order[k]], take);
        bench_end(&bench);
    }
    bench_print(&bench);

    bench_start(&bench, "handle remove + add", count);
    for (uint64_t i = 0; i + BENCH_BATCH <= count; i += BENCH_BATCH) {
        bench_begin(&bench);
        for (uint64_t k = i; k < i + BENCH_BATCH; k++) {
            void *object = vmm_handles_remove(&table, handles[order[k]]);

            add(&table, object, &handles[order[k]]);
        }
        bench_end(&bench);
    }
    bench_print(&bench);

    vmm_handles_fini(&table);
    free(order);
    free(handles);
    free(objects);
}

int main(int argc, char **argv)
{
    uint64_t most = bench_most(argc, argv);

    for (size_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= most; i++)
        run(bench_sizes[i]);
    return 0;
}
