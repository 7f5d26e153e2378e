/* SPDX-License-Identifier: MIT */
/* Why a device node cannot be opened, in words. */
#ifndef KFD_ACCESS_H
#define KFD_ACCESS_H

#include <kfdirect/kfd.h>

/* Sets the error text for a failed open of path; for EACCES and EPERM with the node's mode and
 * group, and whether this process is in that group. Returns err. */
int kfd_access_explain(struct kfd_sys *sys, const char *path, int err);

#endif
