/* SPDX-License-Identifier: MIT */
/* mmap of the device nodes and of dma-bufs. */
#ifndef FAKE_NODE_MMAP_H
#define FAKE_NODE_MMAP_H

#include "fake/fake_internal.h"

/* mmap(2) on any descriptor; one that is not the machine's goes to the real mmap. */
int fake_mmap(struct fake *fake, void *addr, size_t size, int prot, int flags, int fd,
              uint64_t offset, void **out);

/* Gives back the pages behind a GPU's doorbells and registers. Process lock held, or none needed.
 */
void fake_node_pages_free(struct fake *fake, struct fake_process *p, uint32_t gpu);

/* Makes zeroed pages unless they are there; -errno. */
int fake_pages_make(struct fake *fake, struct fake_pages *pages, size_t size);
/* Maps them once more, as mmap(2) would with these arguments; not inherited by fork. */
int fake_pages_map(struct fake *fake, const struct fake_pages *pages, void *addr, size_t size,
                   int prot, int flags, void **out);
void fake_pages_free(struct fake *fake, struct fake_pages *pages);

#endif
