/* SPDX-License-Identifier: MIT */
/* Rows of a run, in memory, and their comparison with those of another ground. */
#ifndef CTS_RECORD_H
#define CTS_RECORD_H

#include <stddef.h>

struct record {
    char **line;
    size_t count;
};

/* Reads a file of rows; lines that begin with # are comments. 0 or -errno. */
int record_load(struct record *r, const char *path);
void record_free(struct record *r);
/* Compares the rows of one case, prints each difference, adds to *compared and returns how many
 * were equal. */
size_t record_compare(const struct record *want, const struct record *got, const char *name,
                      size_t *compared);

#endif
