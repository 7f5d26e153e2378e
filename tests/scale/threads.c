/* SPDX-License-Identifier: MIT */
/*
 * Threads: on reservations of their own, on one slot that only one can have, on slots of their own
 * in one reservation, and on one handle they all hold.
 */
#include "common.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 100
#define SIZE MIB(2)

struct worker {
    pthread_t thread;
    int number;
    void *va;
    hipMemGenericAllocationHandle_t handle;
    pthread_barrier_t *barrier;
    hipError_t result; /* of the first call that did not go as it had to */
    const char *call;
    unsigned wins;
};

#define TRY(worker, call_)                 \
    do {                                   \
        hipError_t try_result = (call_);   \
        if (try_result != hipSuccess) {    \
            (worker)->result = try_result; \
            (worker)->call = #call_;       \
            return NULL;                   \
        }                                  \
    } while (0)

static void run_workers(struct worker *workers, void *(*body)(void *arg))
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].result != hipSuccess)
            fail_msg("thread %d: %s: %s", i, workers[i].call, hipGetErrorString(workers[i].result));
    }
}

static void *whole_life(void *arg)
{
    struct worker *w = arg;
    hipMemAllocationProp prop = device_prop(w->number % machine.devices);

    for (unsigned i = 0; i < ROUNDS; i++) {
        hipMemGenericAllocationHandle_t handle = NULL, again = NULL;
        void *va = NULL;

        TRY(w, hipMemAddressReserve(&va, 4 * SIZE, 0, NULL, 0));
        TRY(w, hipMemCreate(&handle, SIZE, &prop, 0));
        TRY(w, hipMemMap(at(va, SIZE), SIZE, 0, handle, 0));
        TRY(w, set_access(at(va, SIZE), SIZE, prop.location.id, hipMemAccessFlagsProtReadWrite));
        TRY(w, hipMemset(at(va, SIZE), w->number, 4096));
        TRY(w, hipMemRetainAllocationHandle(&again, at(va, SIZE + 5)));
        TRY(w, hipMemUnmap(at(va, SIZE), SIZE));
        TRY(w, hipMemRelease(again));
        TRY(w, hipMemRelease(handle));
        TRY(w, hipMemAddressFree(va, 4 * SIZE));
    }
    return NULL;
}

static void test_threads_on_reservations_of_their_own_do_not_disturb_each_other(void **state)
{
    struct worker workers[THREADS] = {{0}};

    run_workers(workers, whole_life);
}

static void *map_one_slot(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        hipError_t result;

        pthread_barrier_wait(w->barrier);
        result = hipMemMap(w->va, SIZE, 0, w->handle, 0);
        w->wins += result == hipSuccess;
        if (result != hipSuccess && result != hipErrorInvalidValue) {
            w->result = result;
            w->call = "hipMemMap";
        }
        pthread_barrier_wait(w->barrier);
        /* The main thread looks at the slot and empties it. */
        pthread_barrier_wait(w->barrier);
    }
    return NULL;
}

static void test_racing_maps_of_one_slot_have_exactly_one_winner(void **state)
{
    struct worker workers[THREADS] = {{0}};
    hipMemAllocationProp prop = device_prop(0);
    pthread_barrier_t barrier;
    unsigned wins = 0;
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, SIZE, 0, NULL, 0));
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i].va = base;
        workers[i].barrier = &barrier;
        HIP_OK(hipMemCreate(&workers[i].handle, SIZE, &prop, 0));
        assert_int_equal(pthread_create(&workers[i].thread, NULL, map_one_slot, &workers[i]), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        wins++;
        if (set_access(base, SIZE, 0, hipMemAccessFlagsProtRead) != hipSuccess ||
            hipMemUnmap(base, SIZE) != hipSuccess)
            wins--;
        /* One unmap empties it: no second mapping lay below. */
        if (hipMemUnmap(base, SIZE) == hipSuccess)
            wins += 1000;
        pthread_barrier_wait(&barrier);
    }
    assert_int_equal(wins, ROUNDS);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        HIP_OK(workers[i].result);
        wins -= workers[i].wins;
        HIP_OK(hipMemRelease(workers[i].handle));
    }
    assert_int_equal(wins, 0);
    pthread_barrier_destroy(&barrier);
    HIP_OK(hipMemAddressFree(base, SIZE));
}

static void *own_slot(void *arg)
{
    struct worker *w = arg;
    hipMemAllocationProp prop = device_prop(0);

    for (unsigned i = 0; i < ROUNDS; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        unsigned char byte = 0;

        TRY(w, hipMemCreate(&handle, SIZE, &prop, 0));
        TRY(w, hipMemMap(w->va, SIZE, 0, handle, 0));
        TRY(w, hipMemRelease(handle));
        TRY(w, set_access(w->va, SIZE, 0, hipMemAccessFlagsProtReadWrite));
        TRY(w, hipMemset(w->va, 100 + w->number, 4096));
        TRY(w, hipMemcpy(&byte, at(w->va, 4095), 1, hipMemcpyDeviceToHost));
        if (byte != 100 + w->number)
            TRY(w, hipErrorUnknown);
        TRY(w, hipMemUnmap(w->va, SIZE));
    }
    return NULL;
}

static void test_slots_of_one_reservation_are_independent(void **state)
{
    struct worker workers[THREADS] = {{0}};
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, THREADS * SIZE, 0, NULL, 0));
    for (int i = 0; i < THREADS; i++)
        workers[i].va = at(base, i * SIZE);
    run_workers(workers, own_slot);
    HIP_OK(hipMemAddressFree(base, THREADS * SIZE));
}

static void *shared_handle(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        hipMemGenericAllocationHandle_t again = NULL;

        TRY(w, hipMemMap(w->va, SIZE, 0, w->handle, 0));
        TRY(w, set_access(w->va, SIZE, w->number % machine.devices, hipMemAccessFlagsProtRead));
        TRY(w, hipMemRetainAllocationHandle(&again, w->va));
        TRY(w, hipMemRelease(again));
        TRY(w, hipMemUnmap(w->va, SIZE));
    }
    return NULL;
}

static void test_one_handle_is_mapped_by_all_threads_at_once(void **state)
{
    struct worker workers[THREADS] = {{0}};
    hipMemAllocationProp prop = device_prop(0);
    hipMemGenericAllocationHandle_t handle = NULL;
    void *base = NULL;

    HIP_OK(hipMemCreate(&handle, SIZE, &prop, 0));
    for (int i = 0; i < THREADS; i++) {
        HIP_OK(hipMemAddressReserve(&workers[i].va, SIZE, 0, NULL, 0));
        workers[i].handle = handle;
    }
    run_workers(workers, shared_handle);
    for (int i = 0; i < THREADS; i++)
        HIP_OK(hipMemAddressFree(workers[i].va, SIZE));
    HIP_OK(hipMemAddressReserve(&base, SIZE, 0, NULL, 0));
    HIP_OK(hipMemMap(base, SIZE, 0, handle, 0));
    HIP_OK(set_access(base, SIZE, 0, hipMemAccessFlagsProtReadWrite));
    gpu_stamp(0, base, SIZE, 1);
    HIP_OK(hipMemUnmap(base, SIZE));
    HIP_OK(hipMemAddressFree(base, SIZE));
    HIP_OK(hipMemRelease(handle));
}

/* One thread frees the address while others set access on it or ask about it: each call is done or
 * refused, none in between. */
static void *meddle(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < ROUNDS * 5; i++) {
        unsigned long long flags;
        hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = 0};
        hipPointerAttribute_t attributes;
        hipError_t result = set_access(
            w->va, SIZE, 0, i % 2 ? hipMemAccessFlagsProtRead : hipMemAccessFlagsProtReadWrite);

        if (result != hipSuccess && result != hipErrorInvalidValue)
            TRY(w, result);
        result = hipMemGetAccess(&flags, &location, w->va);
        if (result != hipSuccess && result != hipErrorInvalidValue)
            TRY(w, result);
        TRY(w, hipPointerGetAttributes(&attributes, w->va));
    }
    return NULL;
}

static void *come_and_go(void *arg)
{
    struct worker *w = arg;
    hipMemAllocationProp prop = device_prop(0);

    for (unsigned i = 0; i < ROUNDS; i++) {
        hipMemGenericAllocationHandle_t handle = NULL;
        void *va = NULL;

        TRY(w, hipMemAddressReserve(&va, SIZE, 0, w->va, 0));
        TRY(w, hipMemCreate(&handle, SIZE, &prop, 0));
        TRY(w, hipMemMap(va, SIZE, 0, handle, 0));
        TRY(w, hipMemRelease(handle));
        TRY(w, set_access(va, SIZE, 0, hipMemAccessFlagsProtReadWrite));
        TRY(w, hipMemUnmap(va, SIZE));
        TRY(w, hipMemAddressFree(va, SIZE));
    }
    return NULL;
}

static void *meddle_or_go(void *arg)
{
    return ((struct worker *)arg)->number == 0 ? come_and_go(arg) : meddle(arg);
}

static void test_addresses_that_come_and_go_are_answered_or_refused(void **state)
{
    struct worker workers[THREADS] = {{0}};
    void *base = NULL;

    HIP_OK(hipMemAddressReserve(&base, SIZE, 0, NULL, 0));
    HIP_OK(hipMemAddressFree(base, SIZE));
    for (int i = 0; i < THREADS; i++)
        workers[i].va = base;
    run_workers(workers, meddle_or_go);
}

/* What all threads end, or register, at once; each thread counts what it did. */
static struct prize {
    void *malloced, *page;
    hipMemGenericAllocationHandle_t handle;
} prize;

static void *grab(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(w->barrier);
        w->wins += hipFree(prize.malloced) == hipSuccess;
        w->wins += hipMemRelease(prize.handle) == hipSuccess;
        w->wins += hipHostUnregister(prize.page) == hipSuccess;
        pthread_barrier_wait(w->barrier);
        w->wins += hipHostRegister(prize.page, 100, 0) == hipSuccess;
        pthread_barrier_wait(w->barrier);
    }
    return NULL;
}

static void test_what_can_happen_once_happens_once(void **state)
{
    struct worker workers[THREADS] = {{0}};
    hipMemAllocationProp prop = device_prop(0);
    static _Alignas(4096) char page[4096];
    pthread_barrier_t barrier;
    unsigned wins = 0;

    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    prize.page = page;
    HIP_OK(hipHostRegister(page, 100, 0));
    for (int i = 0; i < THREADS; i++) {
        workers[i].barrier = &barrier;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, grab, &workers[i]), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        hipError_t made = hipMalloc(&prize.malloced, 4096);

        if (made == hipSuccess)
            made = hipMemCreate(&prize.handle, SIZE, &prop, 0);
        wins += made == hipSuccess;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    assert_int_equal(wins, ROUNDS);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        wins += workers[i].wins;
    }
    assert_int_equal(wins, 5 * ROUNDS);
    pthread_barrier_destroy(&barrier);
    HIP_OK(hipHostUnregister(page));
}

/* One thread resets the device under the others: their memory is there or refused. */
static void *use_or_reset(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        void *ptr = NULL;
        hipError_t result;

        if (w->number == 0) {
            TRY(w, hipDeviceReset());
            continue;
        }
        TRY(w, hipMalloc(&ptr, 8192));
        result = hipMemset(ptr, w->number, 8192);
        if (result != hipSuccess && result != hipErrorInvalidValue)
            TRY(w, result);
        result = hipFree(ptr);
        /* Freed by the reset, its address may be another thread's by now. */
        if (result != hipSuccess && result != hipErrorInvalidValue)
            TRY(w, result);
    }
    return NULL;
}

static void test_a_reset_under_other_threads_leaves_nothing_half_done(void **state)
{
    struct worker workers[THREADS] = {{0}};

    run_workers(workers, use_or_reset);
    HIP_OK(hipDeviceReset());
}

/* A cancelled thread goes on to the end of its calls, so that it leaves no lock locked. */
static void *live_cancelled(void *arg)
{
    struct worker *w = arg;

    pthread_cancel(pthread_self());
    whole_life(w);
    w->wins++;
    return NULL;
}

static void test_cancelled_threads_end_no_call_halfway(void **state)
{
    struct worker workers[THREADS] = {{0}};

    run_workers(workers, live_cancelled);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(workers[i].wins, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_threads_on_reservations_of_their_own_do_not_disturb_each_other),
        CASE(test_racing_maps_of_one_slot_have_exactly_one_winner),
        CASE(test_slots_of_one_reservation_are_independent),
        CASE(test_one_handle_is_mapped_by_all_threads_at_once),
        CASE(test_addresses_that_come_and_go_are_answered_or_refused),
        CASE(test_what_can_happen_once_happens_once),
        CASE(test_cancelled_threads_end_no_call_halfway),
        CASE(test_a_reset_under_other_threads_leaves_nothing_half_done),
    };

    return RUN_CASES(argc, argv, "mi300x:4", cases);
}
