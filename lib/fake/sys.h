/* SPDX-License-Identifier: MIT */
/* The in-process attachment: the system-call table on top of the fake. */
#ifndef FAKE_SYS_H
#define FAKE_SYS_H

#include "fake/fake_internal.h"

struct kfd_sys *fake_sys_new(struct fake *fake);
/* Lets lib/kfd close what it kept open; while the fake still works. */
void fake_sys_release(struct kfd_sys *base);
void fake_sys_free(struct kfd_sys *sys);

#endif
