/* SPDX-License-Identifier: MIT */
/* Included last by every source above the seam: the kernel is reached through struct kfd_sys only,
 * so that the fake, the tracer and the fault injector see everything. */
#ifndef KFD_POISON_H
#define KFD_POISON_H

#pragma GCC poison ioctl mmap mmap64 munmap mremap mprotect madvise drmIoctl

#endif
