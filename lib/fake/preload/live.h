/* SPDX-License-Identifier: MIT */
/* The part of the tree that changes while the machine runs: what KFD tells of its processes. */
#ifndef FAKE_PRELOAD_LIVE_H
#define FAKE_PRELOAD_LIVE_H

#include "fake/preload/preload.h"

/* Brings the tree up to date if path, clean and absolute, is in that part. */
void preload_refresh(struct fake *fake, const char *root, const char *path);

#endif
