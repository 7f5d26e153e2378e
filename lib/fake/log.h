/* SPDX-License-Identifier: MIT */
/*
 * The log of requests: raw arguments in a ring, decoded when somebody reads. Its lock nests inside
 * the process lock.
 */
#ifndef FAKE_LOG_H
#define FAKE_LOG_H

#include "fake/fake_internal.h"

#define FAKE_LOG_MAX_IDS 64u

/* One operation. `node` names the file it went to, `object` the node or memory behind a descriptor
 * among the arguments or results: descriptors' numbers mean nothing in another run. */
struct fake_log_record {
    uint64_t sequence;
    pid_t pid;
    enum fake_log_kind kind;
    enum fake_file_kind file_kind;
    int fd, result;
    unsigned long request;
    uint32_t node, gpu;
    uint64_t object;
    uint32_t in, out, ids; /* sizes; the bytes follow in this order */
    uint32_t out_room;     /* while under way: bytes left free for the outputs */
    uint8_t bytes[];
};

/* What a FAKE_LOG_MAP has among its bytes. */
struct fake_log_mapping {
    uint64_t addr, size, offset, out;
    int32_t prot, flags;
};

struct fake_log *fake_log_new(void);
void fake_log_free(struct fake_log *log);

/* From now on every operation also goes to the end of a file at once, so that it is there whatever
 * becomes of the process. Several processes may share the file. */
int fake_log_to_file(struct fake *fake, const char *path);

/* Around a handler; NULL in, NULL out when the log is off. arg NULL: it could not be read. */
struct fake_log_record *fake_log_begin(struct fake_call *call, const void *arg);
void fake_log_end(struct fake_call *call, struct fake_log_record *record, const void *arg,
                  int result);
/* Opening of a node, closing and mapping of a descriptor. */
void fake_log_open(struct fake *fake, struct fake_process *p, enum fake_file_kind kind,
                   uint32_t gpu, int fd);
void fake_log_close(struct fake *fake, struct fake_process *p, int fd);
void fake_log_map(struct fake *fake, struct fake_process *p, int fd,
                  const struct fake_log_mapping *mapping, int result);

/* The object behind a descriptor: a node's number with the top bit set, or a memory's; 0: neither.
 */
uint64_t fake_log_object(struct fake *fake, struct fake_process *p, int fd);
/* Where a request's argument holds a descriptor; NULL: nowhere. */
int *fake_log_fd_in(uint32_t type, uint32_t nr, void *arg);
int *fake_log_fd_out(uint32_t type, uint32_t nr, void *arg);

#endif
