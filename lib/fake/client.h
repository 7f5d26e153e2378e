/* SPDX-License-Identifier: MIT */
/*
 * The hazard T1: KFD keeps the memory of all handles of all processes in one DRM file per GPU and
 * shares GEM numbers there without counting them. EXPORT makes a number known for its dma-buf,
 * IMPORT of that dma-buf takes the same number, and each FREE deletes it, even when it names other
 * memory by then. Only with FAKE_QUIRK_T1 on kernels that have it.
 */
#ifndef FAKE_CLIENT_H
#define FAKE_CLIENT_H

#include "fake/handle.h"

/* Gives a new handle its number: its own, or with `import` the one its dma-buf has. -ENOMEM. */
int fake_client_add(struct fake *fake, struct fake_handle *h, bool import);
/* The memory, an index in the machine, that EXPORT of the handle really exports; 0: -ENOENT. */
uint32_t fake_client_export(struct fake *fake, const struct fake_handle *h);
void fake_client_free(struct fake *fake, const struct fake_handle *h);

#endif
