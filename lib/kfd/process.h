/* SPDX-License-Identifier: MIT */
/* What belongs to the process and not to a struct kfd: fork detection and the opening lock. */
#ifndef KFD_PROCESS_H
#define KFD_PROCESS_H

#include <stdint.h>

/*
 * A number that differs between a process and any child it forked later (by fork(3); a raw clone is
 * left to the kernel's own EBADF). Costs a load.
 */
uint32_t kfd_process_generation(void);

/* Serialises kfd_open, kfd_close and the choice of a default system; taken across fork so that a
 * child can open. Held over ioctls: opening is initialisation, and two opens must not acquire one
 * GPU twice. */
void kfd_process_lock(void);
void kfd_process_unlock(void);

#endif
