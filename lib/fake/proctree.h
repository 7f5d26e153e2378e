/* SPDX-License-Identifier: MIT */
/*
 * /sys/class/kfd/kfd/proc: a folder for every process of the machine that has /dev/kfd open or had,
 * with what it holds. Made from the machine's shared records when it is read, as it changes.
 */
#ifndef FAKE_PROCTREE_H
#define FAKE_PROCTREE_H

#include "fake/fake_internal.h"
#include "fake/sysfs.h"

/* Does the absolute path lie below the tree's root? */
bool fake_proctree_owns(const char *path);
enum fake_sysfs_kind fake_proctree_lookup(struct fake *fake, const char *path);
/* As fake_sysfs_read and fake_sysfs_list. */
int fake_proctree_read(struct fake *fake, const char *path, char *buf, size_t size);
int fake_proctree_list(struct fake *fake, const char *path,
                       int (*each)(void *arg, const char *name), void *arg);

#endif
