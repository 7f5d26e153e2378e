/* SPDX-License-Identifier: MIT */
/* The two request dispatchers: size rules, copies in and out, process scope. */
#ifndef FAKE_IOCTL_H
#define FAKE_IOCTL_H

#include "fake/fake_internal.h"

/* ioctl(2) on a descriptor: the result or -errno. A descriptor that is not the machine's goes to
 * the real ioctl. */
int fake_ioctl(struct fake *fake, int fd, unsigned long request, void *arg);

/* The kernel's size of a request, which the personality may change; 0: it does not have it. */
uint32_t fake_kfd_size(const struct fake *fake, uint32_t nr);
uint32_t fake_drm_size(const struct fake *fake, uint32_t nr);

/* Sizes, copies in and out and everything between, once the dispatcher has set handler, in and out.
 * size: of the kernel's copy of the argument. */
int fake_call_run(struct fake_call *call, uint32_t size, void *arg);

/* The two dispatchers. A NULL file: the node was opened by another process. */
int fake_kfd_dispatch(struct fake_call *call, unsigned long request, void *arg);
int fake_drm_dispatch(struct fake_call *call, unsigned long request, void *arg);

/* KFD's own check of an argument, before all others. */
int fake_kfd_validate(const struct fake_call *call, const void *arg);

#endif
