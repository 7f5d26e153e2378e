/* SPDX-License-Identifier: MIT */
/* What the sources of the program against libhsakmt share. */
#ifndef STRANGERS_HSAKMT_TESTS_H
#define STRANGERS_HSAKMT_TESTS_H

#include "witness.h"

#include <hsakmt.h>

#define SIZE (4ull << 20)

/* The machine, and the library opened on it; each test opens it anew. */
extern struct fake_profile *profile;
extern HsaSystemProperties system_properties;

uint32_t node_of(uint32_t gpu);
/* The status of a call, with a row; returns it. */
HSAKMT_STATUS shown(const char *step, HSAKMT_STATUS status);
#define DONE(step, call) assert_int_equal(shown(step, call), HSAKMT_STATUS_SUCCESS)

void *alloc(uint32_t node, uint64_t size, bool host, bool exec);
void map_on(void *p, uint64_t size, uint32_t n, uint32_t *nodes);
void release(void *p, uint64_t size);

/* hsakmt_memory.c */
void test_memory_is_mapped_on_one_and_on_all_nodes(void **state);
void test_pointers_are_described(void **state);
void test_user_memory_is_registered_and_mapped(void **state);
void test_vram_goes_to_peers_the_kernel_allows(void **state);
void test_memory_is_shared_between_processes_nowhere_upstream(void **state);
void test_dma_bufs_of_the_render_node_are_imported_and_mapped(void **state);
void test_dma_bufs_are_imported_by_another_process(void **state);

/* hsakmt_queue.c */
void test_sdma_queues_are_made_and_destroyed(void **state);
void test_compute_queues_are_made_where_the_save_area_fits(void **state);
void test_events_are_set_waited_for_and_reset(void **state);
void test_an_event_wakes_the_thread_that_waits(void **state);
void test_small_requests_are_answered(void **state);

#endif
