/* SPDX-License-Identifier: MIT */
/* The KFD process object and its end. */
#ifndef FAKE_PROCESS_H
#define FAKE_PROCESS_H

#include "fake/fake_internal.h"

/* Makes the calling process's object in the machine's slot. NULL without memory. */
struct fake_process *fake_process_create(struct fake *fake, uint32_t slot);
/* Unmaps its objects, and those of the processes it was forked from, which go on. */
void fake_process_forget(struct fake_process *p);
/* What process exit does: files, handles and memory go. */
void fake_process_destroy(struct fake *fake, struct fake_process *p);
/* Leaves the machine at the end of the program, keeping the objects: later calls are -ENODEV. */
void fake_process_exit(struct fake *fake);

#endif
