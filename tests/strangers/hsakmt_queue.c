/* SPDX-License-Identifier: MIT */
/* libhsakmt's queues and events, and the small requests around them. */
#include "hsakmt_tests.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define RING_SIZE 65536ull

/* pointers: where an AQL queue's are; the library has its own for the other kinds. */
static HSAKMT_STATUS queue_on(const char *step, uint32_t node, HSA_QUEUE_TYPE type, void *ring,
                              uint64_t *pointers, HsaQueueResource *queue)
{
    memset(queue, 0, sizeof(*queue));
    if (type == HSA_QUEUE_COMPUTE_AQL) {
        queue->Queue_write_ptr_aql = pointers;
        queue->Queue_read_ptr_aql = pointers + 16;
    }
    return shown(step, hsaKmtCreateQueue(node, type, 100, HSA_QUEUE_PRIORITY_NORMAL, ring,
                                         RING_SIZE, NULL, queue));
}

/* SDMA queues need no save area. */
void test_sdma_queues_are_made_and_destroyed(void **state)
{
    for (uint32_t g = 0; g < profile->gpu_count; g++) {
        uint32_t node = node_of(g);
        HsaQueueResource queue[2];
        void *ring[2];

        for (int i = 0; i < 2; i++) {
            ring[i] = alloc(0, RING_SIZE, true, true);
            map_on(ring[i], RING_SIZE, 1, &node);
            assert_int_equal(queue_on("create", node, HSA_QUEUE_SDMA, ring[i], NULL, &queue[i]),
                             HSAKMT_STATUS_SUCCESS);
            *(volatile uint32_t *)queue[i].Queue_DoorBell = 0;
        }
        assert_ptr_not_equal(queue[0].Queue_DoorBell, queue[1].Queue_DoorBell);
        for (int i = 0; i < 2; i++) {
            DONE("update", hsaKmtUpdateQueue(queue[i].QueueId, 50, HSA_QUEUE_PRIORITY_LOW, ring[i],
                                             RING_SIZE, NULL));
            DONE("destroy", hsaKmtDestroyQueue(queue[i].QueueId));
            release(ring[i], RING_SIZE);
        }
    }
}

/*
 * libhsakmt 5.2.3 sizes the save area by its own table of chips. A kernel from 6.12 on checks the
 * size and refuses the queue when it disagrees; older ones take what they are given.
 */
void test_compute_queues_are_made_where_the_save_area_fits(void **state)
{
    static const struct {
        const char *name;
        HSA_QUEUE_TYPE type;
    } kinds[] = {{"packets", HSA_QUEUE_COMPUTE}, {"AQL", HSA_QUEUE_COMPUTE_AQL}};

    for (uint32_t g = 0; g < profile->gpu_count; g++) {
        uint32_t node = node_of(g);

        for (size_t k = 0; k < 2; k++) {
            HsaQueueResource queue;
            void *ring = alloc(0, RING_SIZE, true, true);
            uint64_t *pointers = alloc(0, 4096, true, false);
            uint32_t mask[2] = {0x3, 0};
            HSAKMT_STATUS made;

            map_on(ring, RING_SIZE, 1, &node);
            map_on(pointers, 4096, 1, &node);
            made = queue_on(kinds[k].name, node, kinds[k].type, ring, pointers, &queue);
            if (!profile->kernel.queue_buffer_checks)
                assert_int_equal(made, HSAKMT_STATUS_SUCCESS);
            if (made == HSAKMT_STATUS_SUCCESS) {
                *(volatile uint64_t *)queue.Queue_DoorBell_aql = 0;
                shown("CU mask", hsaKmtSetQueueCUMask(queue.QueueId, 64, mask));
                DONE("update", hsaKmtUpdateQueue(queue.QueueId, 0, HSA_QUEUE_PRIORITY_NORMAL, ring,
                                                 RING_SIZE, NULL));
                DONE("destroy", hsaKmtDestroyQueue(queue.QueueId));
            }
            release(pointers, 4096);
            release(ring, RING_SIZE);
        }
    }
}

void test_events_are_set_waited_for_and_reset(void **state)
{
    HsaEventDescriptor d = {.EventType = HSA_EVENTTYPE_SIGNAL};
    HsaEvent *events[3];

    for (int i = 0; i < 3; i++) {
        DONE("create", hsaKmtCreateEvent(&d, true, false, &events[i]));
        witness_row("create", "0", "id=%u", events[i]->EventId);
    }
    assert_int_equal(shown("wait", hsaKmtWaitOnEvent(events[0], 1)), HSAKMT_STATUS_WAIT_TIMEOUT);
    DONE("set", hsaKmtSetEvent(events[1]));
    DONE("wait", hsaKmtWaitOnEvent(events[1], 1000));
    DONE("any of three", hsaKmtWaitOnMultipleEvents(events, 3, false, 1000));
    assert_int_equal(shown("all of three", hsaKmtWaitOnMultipleEvents(events, 3, true, 1)),
                     HSAKMT_STATUS_WAIT_TIMEOUT);
    DONE("reset", hsaKmtResetEvent(events[1]));
    assert_int_equal(shown("wait", hsaKmtWaitOnEvent(events[1], 1)), HSAKMT_STATUS_WAIT_TIMEOUT);
    for (int i = 0; i < 3; i++)
        DONE("destroy", hsaKmtDestroyEvent(events[i]));
}

static void *set_later(void *event)
{
    return (void *)(uintptr_t)hsaKmtSetEvent(event);
}

void test_an_event_wakes_the_thread_that_waits(void **state)
{
    HsaEventDescriptor d = {.EventType = HSA_EVENTTYPE_SIGNAL};
    HsaEvent *event, *memory;
    pthread_t thread;
    void *set;

    DONE("create", hsaKmtCreateEvent(&d, false, false, &event));
    d.EventType = HSA_EVENTTYPE_MEMORY;
    d.NodeId = node_of(0);
    DONE("create a memory event", hsaKmtCreateEvent(&d, false, false, &memory));
    assert_int_equal(shown("set a memory event", hsaKmtSetEvent(memory)), HSAKMT_STATUS_ERROR);
    assert_int_equal(pthread_create(&thread, NULL, set_later, event), 0);
    DONE("wait", hsaKmtWaitOnEvent(event, 0xfffffffe));
    pthread_join(thread, &set);
    assert_null(set);
    /* It resets itself. */
    assert_int_equal(shown("wait again", hsaKmtWaitOnEvent(event, 1)), HSAKMT_STATUS_WAIT_TIMEOUT);
    DONE("destroy", hsaKmtDestroyEvent(event));
    DONE("destroy", hsaKmtDestroyEvent(memory));
}

void test_small_requests_are_answered(void **state)
{
    uint32_t node = node_of(0), tile[64], macro[64], attribute[2] = {0};
    HsaGpuTileConfig tiles = {.TileConfig = tile,
                              .MacroTileConfig = macro,
                              .NumTileConfigs = 64,
                              .NumMacroTileConfigs = 64};
    HSA_SVM_ATTRIBUTE svm = {.type = HSA_SVM_ATTR_SET_FLAGS, .value = attribute[0]};
    HSAint32 xnack = -1;
    void *trap = alloc(node, 4096, false, true);

    shown("tile configuration", hsaKmtGetTileConfig(node, &tiles));
    witness_row("tile configuration", "0", "%u %u address=0x%x banks=%u ranks=%u",
                tiles.NumTileConfigs, tiles.NumMacroTileConfigs, tiles.GbAddrConfig, tiles.NumBanks,
                tiles.NumRanks);
    map_on(trap, 4096, 1, &node);
    DONE("trap handler", hsaKmtSetTrapHandler(node, trap, 4096, NULL, 0));
    DONE("trap handler away", hsaKmtSetTrapHandler(node, NULL, 0, NULL, 0));
    release(trap, 4096);
    shown("memory policy", hsaKmtSetMemoryPolicy(node, 1, 1, NULL, 0));
    shown("XNACK", hsaKmtGetXNACKMode(&xnack));
    shown("SVM", hsaKmtSVMGetAttr(trap, 4096, 1, &svm));
    shown("runtime on", hsaKmtRuntimeEnable(NULL, false));
    shown("runtime off", hsaKmtRuntimeDisable());
    shown("debugger", hsaKmtDbgRegister(node));
}
