/* SPDX-License-Identifier: MIT */
/* KFD requests about clocks and modes of a GPU, and those that are always refused. */
#ifndef FAKE_CONTROL_H
#define FAKE_CONTROL_H

#include "fake/fake_internal.h"

int fake_kfd_get_clock_counters(struct fake_call *call, void *arg);
int fake_kfd_set_memory_policy(struct fake_call *call, void *arg);
int fake_kfd_set_scratch_backing_va(struct fake_call *call, void *arg);
int fake_kfd_set_trap_handler(struct fake_call *call, void *arg);
int fake_kfd_get_tile_config(struct fake_call *call, void *arg);
int fake_kfd_dbg_old(struct fake_call *call, void *arg);
int fake_kfd_dbg_trap(struct fake_call *call, void *arg);
int fake_kfd_criu_op(struct fake_call *call, void *arg);

#endif
