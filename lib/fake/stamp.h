/* SPDX-License-Identifier: MIT */
/*
 * When something began: which request of which process did it. Kept with mappings, files, handles
 * and freed memory, so that a report can say since when a thing is as it is.
 */
#ifndef FAKE_STAMP_H
#define FAKE_STAMP_H

#include <stddef.h>
#include <stdint.h>

/* What is not a request. */
enum fake_deed {
    FAKE_DEED_OPEN = 1, /* of a node */
    FAKE_DEED_CLOSE,    /* of its last descriptor */
    FAKE_DEED_EVICTION,
    FAKE_DEED_EXIT, /* of the process */
};

struct fake_stamp {
    uint64_t request; /* the process's how manyth it was, or came before the deed */
    int32_t pid;      /* 0: nothing is known */
    uint16_t code;    /* type << 8 | number; 0: a deed */
    uint16_t op;      /* GEM_VA's operation; enum fake_deed */
};

#define FAKE_STAMP_TEXT 128u
/* "by request 57 of process 123 (GEM_VA UNMAP), 12 requests ago", the last where both are of one
 * process. */
/* GEM_VA's operation as a word with a blank before it, or "". */
const char *fake_va_op_name(uint32_t op);
void fake_stamp_print(const struct fake_stamp *stamp, const struct fake_stamp *now, char *text);

/* What was taken out of an address space: the last FAKE_HISTORY ranges. */
#define FAKE_HISTORY 128u

struct fake_past {
    uint64_t va, size;
    struct fake_stamp end;
};

struct fake_history {
    struct fake_past ring[FAKE_HISTORY];
    uint64_t count; /* ever added */
};

void fake_history_add(struct fake_history *history, uint64_t va, uint64_t size,
                      const struct fake_stamp *end);
/* The last one that held va, or NULL. */
const struct fake_past *fake_history_find(const struct fake_history *history, uint64_t va);

#endif
