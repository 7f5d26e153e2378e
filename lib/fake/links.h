/* SPDX-License-Identifier: MIT */
/* The links of a machine, derived as the kernel derives them, then what its file says. */
#ifndef FAKE_LINKS_H
#define FAKE_LINKS_H

#include "fake/profile_file.h"

/* Fills profile->links from its nodes and kernel; -EINVAL, -ENOMEM. */
int fake_links_build(struct fake_profile *profile, const struct fake_machine_file *file);

#endif
