/* SPDX-License-Identifier: MIT */
/*
 * Open device nodes. Each open makes a small file of its own in the machine's directory, whose
 * inode identifies it through any dup and whose shared flock tells whether a descriptor is left.
 * Its name says what it is, so that a descriptor inherited from another process is recognised too.
 */
#ifndef FAKE_FILE_H
#define FAKE_FILE_H

#include "fake/fake_internal.h"

enum fake_fd_kind {
    FAKE_FD_OTHER,   /* not of this machine, or closed */
    FAKE_FD_FILE,    /* an open node of this process */
    FAKE_FD_FOREIGN, /* an open node of another process */
    FAKE_FD_DMABUF,
};

/* What a descriptor is. file: for FAKE_FD_FILE; kind: for FAKE_FD_FOREIGN. Process lock held. */
enum fake_fd_kind fake_fd_look(struct fake *fake, struct fake_process *p, int fd,
                               struct fake_file **file, enum fake_file_kind *kind);

/* The same, taking the lock and keeping it: *owner is whose, p or for a render node that p
 * inherited the process that opened it, while it lives. */
enum fake_fd_kind fake_fd_lock(struct fake *fake, struct fake_process *p, int fd,
                               struct fake_process **owner, struct fake_file **file,
                               enum fake_file_kind *kind);

/* Opens a node; returns a descriptor or -errno. Takes the process lock. */
int fake_file_open(struct fake *fake, struct fake_process *p, enum fake_file_kind kind,
                   uint32_t gpu, int flags);
/* Before and after a descriptor of the file was closed: lets the file go with the last one. The
 * probe is a descriptor or -1. */
int fake_file_probe(struct fake *fake, const struct fake_file *file);
void fake_file_closed(struct fake *fake, struct fake_process *p, struct fake_file *file, int probe);

/* Lets go every file whose descriptors were closed behind our back. Returns how many are open. */
uint64_t fake_file_sweep(struct fake *fake, struct fake_process *p);
/* Gives back a use that was counted in busy. */
void fake_file_put(struct fake *fake, struct fake_process *p, struct fake_file *file);
/* Ends a file whatever holds it. */
void fake_file_destroy(struct fake *fake, struct fake_process *p, struct fake_file *file);

#endif
