/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/handle.h"
#include "vmm/memory.h"

#include "random.h"

#define TAG 0xa5

static struct vmm_handles table;
static int objects[4096];

static int setup(void **state)
{
    memset(objects, 0, sizeof(objects));
    return vmm_handles_init(&table, TAG);
}

static int teardown(void **state)
{
    vmm_memory_fail_after(UINT64_MAX);
    vmm_handles_fini(&table);
    return 0;
}

static uint64_t add(void *object)
{
    uint64_t handle = 0;

    assert_int_equal(vmm_handles_add(&table, object, &handle), 0);
    return handle;
}

static bool take(void *object)
{
    ++*(int *)object;
    return true;
}

/* The position in the table; indices are the process's. */
static uint32_t index_of(uint64_t handle)
{
    return (uint32_t)handle - table.first_slab * VMM_HANDLE_SLAB;
}

static void test_tag_zero_is_refused(void **state)
{
    struct vmm_handles other;

    assert_int_equal(vmm_handles_init(&other, 0), -EINVAL);
}

static void test_get_takes_under_the_lock_and_remove_returns_the_object(void **state)
{
    uint64_t handle = add(&objects[7]);

    assert_int_equal(handle >> 56, TAG);
    assert_ptr_equal(vmm_handles_get(&table, handle, take), &objects[7]);
    assert_ptr_equal(vmm_handles_get(&table, handle, NULL), &objects[7]);
    assert_int_equal(objects[7], 1);
    assert_int_equal(vmm_handles_count(&table), 1);
    assert_ptr_equal(vmm_handles_remove(&table, handle), &objects[7]);
    assert_int_equal(vmm_handles_count(&table), 0);
}

static bool refuse(void *object)
{
    return false;
}

static void test_take_may_refuse_a_dying_object(void **state)
{
    uint64_t handle = add(&objects[3]);

    assert_null(vmm_handles_get(&table, handle, refuse));
    assert_int_equal(vmm_handles_count(&table), 1);
    assert_ptr_equal(vmm_handles_remove(&table, handle), &objects[3]);
}

static void test_stale_handle_is_nothing(void **state)
{
    uint64_t handle = add(&objects[0]);

    vmm_handles_remove(&table, handle);
    assert_null(vmm_handles_get(&table, handle, take));
    assert_null(vmm_handles_remove(&table, handle));
    assert_int_equal(objects[0], 0);
    assert_int_equal(vmm_handles_count(&table), 0);
    assert_int_equal(vmm_handles_validate(&table), 0);
}

static void test_garbage_and_foreign_values_are_nothing(void **state)
{
    struct random r = random_start("handle garbage");
    uint64_t handle = add(&objects[0]);
    struct vmm_handles other;
    uint64_t foreign;

    for (uint64_t v = 0; v < 5000; v++)
        assert_null(vmm_handles_get(&table, v, take));
    for (int bit = 0; bit < 64; bit++)
        assert_null(vmm_handles_get(&table, handle ^ (1ull << bit), take));
    assert_null(vmm_handles_get(&table, UINT64_MAX, take));
    assert_null(vmm_handles_get(&table, (uint64_t)(uintptr_t)&objects[0], take));
    for (int i = 0; i < 100000; i++) {
        uint64_t v = random_next(&r);

        if (i & 1)
            v = (v & 0x00ffffff0000ffffu) | (uint64_t)TAG << 56;
        if (v == handle)
            continue;
        assert_null(vmm_handles_get(&table, v, take));
        assert_null(vmm_handles_remove(&table, v));
    }
    assert_int_equal(vmm_handles_init(&other, TAG + 1), 0);
    assert_int_equal(vmm_handles_add(&other, &objects[1], &foreign), 0);
    assert_null(vmm_handles_get(&table, foreign, take));
    assert_null(vmm_handles_get(&other, handle, take));
    vmm_handles_fini(&other);
    assert_int_equal(objects[0], 0);
    assert_ptr_equal(vmm_handles_get(&table, handle, NULL), &objects[0]);
}

static int compare_values(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int count(void *arg, uint64_t handle, void *object)
{
    ++*(int *)arg;
    return 0;
}

/* Whether they live at once or one after the other, and whatever was removed between. */
static void test_tables_of_one_tag_share_no_value(void **state)
{
    enum {
        N = 3000
    };
    static uint64_t mine[N], others[N], after[N], all[3 * N];
    struct vmm_handles other;
    int seen = 0;

    assert_int_equal(vmm_handles_init(&other, TAG), 0);
    for (int i = 0; i < N; i++) {
        mine[i] = add(&objects[0]);
        assert_int_equal(vmm_handles_add(&other, &objects[1], &others[i]), 0);
        if (i % 3 == 0)
            assert_non_null(vmm_handles_remove(&other, others[i]));
    }
    assert_int_equal(vmm_handles_validate(&table), 0);
    assert_int_equal(vmm_handles_validate(&other), 0);
    assert_int_equal(vmm_handles_each(&other, count, &seen), 0);
    assert_int_equal(seen, N - N / 3);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(vmm_handles_get(&table, mine[i], NULL), &objects[0]);
        assert_null(vmm_handles_get(&other, mine[i], take));
        assert_null(vmm_handles_remove(&table, others[i]));
    }
    vmm_handles_fini(&other);
    assert_int_equal(vmm_handles_init(&other, TAG), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(vmm_handles_add(&other, &objects[2], &after[i]), 0);
    for (int i = 0; i < N; i++)
        assert_null(vmm_handles_get(&other, others[i], take));
    vmm_handles_fini(&other);
    memcpy(all, mine, sizeof(mine));
    memcpy(all + N, others, sizeof(others));
    memcpy(all + 2 * N, after, sizeof(after));
    qsort(all, 3 * N, sizeof(*all), compare_values);
    for (int i = 1; i < 3 * N; i++)
        assert_true(all[i - 1] < all[i]);
}

static int child_with_its_own_table(uint64_t of_parent)
{
    struct vmm_handles own;
    uint64_t handle = 0;

    if (vmm_handles_init(&own, TAG) || vmm_handles_get(&own, of_parent, NULL))
        return 1;
    if (vmm_handles_add(&own, &objects[1], &handle) || handle == of_parent)
        return 2;
    return vmm_handles_get(&own, of_parent, NULL) || vmm_handles_remove(&own, of_parent) ? 3 : 0;
}

static void test_a_child_refuses_its_parents_handles(void **state)
{
    uint64_t handle = add(&objects[0]);
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(child_with_its_own_table(handle));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_slot_rests_for_1024_other_frees(void **state)
{
    static uint64_t handles[2000];
    uint64_t again;

    for (size_t i = 0; i < 2000; i++)
        handles[i] = add(&objects[i]);
    for (size_t i = 0; i < 1024; i++) /* the slot in question and 1,023 others */
        vmm_handles_remove(&table, handles[i]);
    assert_int_equal(index_of(add(&objects[0])), 2000);
    vmm_handles_remove(&table, handles[1024]);
    again = add(&objects[0]);
    assert_int_equal(index_of(again), index_of(handles[0]));
    assert_int_not_equal(again, handles[0]);
    assert_null(vmm_handles_get(&table, handles[0], NULL));
    assert_int_equal(index_of(add(&objects[0])), 2001);
    assert_int_equal(vmm_handles_validate(&table), 0);
}

/* The last generation cannot be reached by use within a test; the slot is put there by hand. */
static void test_slot_is_retired_before_its_generation_wraps(void **state)
{
    uint64_t victim, handle;

    vmm_handles_remove(&table, add(&objects[0]));
    table.slabs[0][0].generation = VMM_HANDLE_GENERATIONS - 1;
    for (int i = 0; i < 1024; i++) {
        handle = add(&objects[0]);
        assert_int_not_equal(index_of(handle), 0);
        vmm_handles_remove(&table, handle);
    }
    victim = add(&objects[1]);
    assert_int_equal(index_of(victim), 0);
    assert_int_equal(victim >> 32 & 0xffffff, 0xffffff);
    assert_int_equal(victim >> 56, TAG);
    assert_ptr_equal(vmm_handles_get(&table, victim, NULL), &objects[1]);
    assert_ptr_equal(vmm_handles_remove(&table, victim), &objects[1]);
    assert_int_equal(vmm_handles_validate(&table), 0);
    for (int i = 0; i < 5000; i++) {
        handle = add(&objects[0]);
        assert_int_not_equal(index_of(handle), 0);
        vmm_handles_remove(&table, handle);
    }
    assert_null(vmm_handles_get(&table, victim, NULL));
    assert_null(vmm_handles_get(&table, (uint64_t)TAG << 56, NULL));
    assert_int_equal(vmm_handles_validate(&table), 0);
}

static void test_memory_running_out_changes_nothing(void **state)
{
    uint64_t handle = 1234;
    uint64_t failures = 0;

    /* Passes the growth of slabs (every 1,024) and of the directory (at 16 slabs). */
    for (int i = 0; i < 20000; i++) {
        for (uint64_t n = 0;; n++) {
            int err;

            vmm_memory_fail_after(n);
            err = vmm_handles_add(&table, &objects[0], &handle);
            vmm_memory_fail_after(UINT64_MAX);
            if (!err)
                break;
            assert_int_equal(err, -ENOMEM);
            assert_int_equal(vmm_handles_count(&table), i);
            failures++;
        }
    }
    assert_int_equal(vmm_handles_validate(&table), 0);
    assert_int_equal(failures, 20 + 2); /* 20 slabs, 2 directories */
}

static void test_random_against_list_and_no_value_twice(void **state)
{
    enum {
        STEPS = 20000,
        LIVE = 1500
    };
    struct random r = random_start("handle");
    static uint64_t ever[STEPS];
    static struct {
        uint64_t handle;
        void *object;
    } live[LIVE];
    size_t ever_count = 0, live_count = 0;

    for (int step = 0; step < STEPS; step++) {
        bool grow = (step / 4000) % 2 == 0;

        if (live_count < LIVE && random_below(&r, 10) < (grow ? 8 : 3)) {
            void *object = &objects[random_below(&r, 4096)];
            uint64_t handle = add(object);

            ever[ever_count++] = handle;
            live[live_count].handle = handle;
            live[live_count++].object = object;
        } else if (live_count) {
            size_t i = random_below(&r, live_count);

            assert_ptr_equal(vmm_handles_remove(&table, live[i].handle), live[i].object);
            assert_null(vmm_handles_get(&table, live[i].handle, NULL));
            live[i] = live[--live_count];
        }
        assert_int_equal(vmm_handles_count(&table), live_count);
        if (live_count) {
            size_t i = random_below(&r, live_count);

            assert_ptr_equal(vmm_handles_get(&table, live[i].handle, NULL), live[i].object);
        }
        if (step % 64 == 0)
            assert_int_equal(vmm_handles_validate(&table), 0);
    }
    for (size_t i = 0; i < live_count; i++)
        assert_ptr_equal(vmm_handles_get(&table, live[i].handle, NULL), live[i].object);
    qsort(ever, ever_count, sizeof(*ever), compare_values);
    for (size_t i = 1; i < ever_count; i++)
        assert_true(ever[i - 1] < ever[i]);
}

struct visit {
    size_t seen, stop;
    bool remove;
};

static int visit(void *arg, uint64_t handle, void *object)
{
    struct visit *v = arg;

    assert_ptr_equal(vmm_handles_get(&table, handle, take), object);
    if (v->remove)
        assert_ptr_equal(vmm_handles_remove(&table, handle), object);
    return ++v->seen == v->stop ? 42 : 0;
}

static void test_each_visits_once_stops_and_lets_remove(void **state)
{
    struct visit v = {0};
    uint64_t handles[100];

    for (size_t i = 0; i < 100; i++)
        handles[i] = add(&objects[i]);
    for (size_t i = 0; i < 100; i += 3)
        vmm_handles_remove(&table, handles[i]);
    assert_int_equal(vmm_handles_each(&table, visit, &v), 0);
    assert_int_equal(v.seen, 66);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(objects[i], i % 3 != 0);
    v = (struct visit){.stop = 5};
    assert_int_equal(vmm_handles_each(&table, visit, &v), 42);
    assert_int_equal(v.seen, 5);
    v = (struct visit){.remove = true};
    assert_int_equal(vmm_handles_each(&table, visit, &v), 0);
    assert_int_equal(v.seen, 66);
    assert_int_equal(vmm_handles_count(&table), 0);
}

struct shared {
    _Atomic int refs;
    _Atomic bool gone;
};

static struct shared shared[64];
static _Atomic uint64_t published[64];

static bool take_shared(void *object)
{
    atomic_fetch_add(&((struct shared *)object)->refs, 1);
    return true;
}

/* Objects come and go under published handles; whoever gets one holds a live object. */
static void *churn(void *arg)
{
    struct random r = {.state = (uint64_t)(uintptr_t)arg};

    for (int i = 0; i < 20000; i++) {
        size_t k = random_below(&r, 64);
        uint64_t handle = atomic_load(&published[k]);
        struct shared *s = vmm_handles_get(&table, handle, take_shared);

        if (!s)
            continue;
        if (s != &shared[k] || atomic_load(&s->refs) < 2)
            return (void *)1;
        if (i % 4 == 0 && vmm_handles_remove(&table, handle)) {
            /* One thread alone gets here: it ends the object's old name and gives it a new one. */
            if (vmm_handles_get(&table, handle, NULL) || vmm_handles_add(&table, s, &handle))
                return (void *)2;
            atomic_store(&published[k], handle);
        }
        atomic_fetch_sub(&s->refs, 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    for (size_t i = 0; i < 64; i++) {
        atomic_store(&shared[i].refs, 1);
        atomic_store(&published[i], add(&shared[i]));
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;

        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(vmm_handles_count(&table), 64);
    assert_int_equal(vmm_handles_validate(&table), 0);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(atomic_load(&shared[i].refs), 1);
}

static void test_validate_sees_damage(void **state)
{
    uint64_t a = add(&objects[0]), b = add(&objects[1]);

    vmm_handles_remove(&table, a);
    assert_int_equal(vmm_handles_validate(&table), 0);
    table.slabs[0][index_of(a)].object = &objects[0];
    assert_int_equal(vmm_handles_validate(&table), -EUCLEAN);
    table.slabs[0][index_of(a)].object = NULL;
    table.free_first = index_of(b);
    assert_int_equal(vmm_handles_validate(&table), -EUCLEAN);
    table.free_first = index_of(a);
    table.slabs[0][index_of(b)].generation = VMM_HANDLE_GENERATIONS;
    assert_int_equal(vmm_handles_validate(&table), -EUCLEAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tag_zero_is_refused),
        cmocka_unit_test_setup_teardown(test_get_takes_under_the_lock_and_remove_returns_the_object,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_take_may_refuse_a_dying_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale_handle_is_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_and_foreign_values_are_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_tables_of_one_tag_share_no_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_child_refuses_its_parents_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slot_rests_for_1024_other_frees, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slot_is_retired_before_its_generation_wraps, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_memory_running_out_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_against_list_and_no_value_twice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_each_visits_once_stops_and_lets_remove, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_validate_sees_damage, setup, teardown),
    };

    return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
