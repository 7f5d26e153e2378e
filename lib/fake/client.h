/* SPDX-License-Identifier: MIT */
/*
 * The hazard T1: KFD keeps the memory of all its handles in one DRM file per GPU and shares GEM
 * numbers there without counting them. EXPORT makes a number known for its dma-buf, IMPORT of that
 * dma-buf takes the same number, and each FREE deletes it, even when it names other memory by then.
 * Modelled within a process, and only with FAKE_QUIRK_T1 on kernels that have it.
 */
#ifndef FAKE_CLIENT_H
#define FAKE_CLIENT_H

#include "fake/handle.h"

/* Gives a new handle its number: its own, or with `import` the one its dma-buf has. -ENOMEM. */
int fake_client_add(struct fake *fake, struct fake_process *p, struct fake_handle *h, bool import);
/* The memory that EXPORT of the handle really exports; NULL: -ENOENT. */
struct fake_mem *fake_client_export(struct fake *fake, struct fake_process *p,
                                    struct fake_handle *h);
void fake_client_free(struct fake_process *p, struct fake_handle *h);
void fake_client_clear(struct fake_process_gpu *gpu);

#endif
