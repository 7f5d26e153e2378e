/* SPDX-License-Identifier: MIT */
/*
 * The log as text: a header that names the machine, then a line for each operation. A line has the
 * process, the numbers and raw bytes that replay needs, and behind '#' the operation in words.
 */
#ifndef FAKE_LOG_FILE_H
#define FAKE_LOG_FILE_H

#include "fake/log.h"

#define FAKE_LOG_MAGIC "kfdirect-fake-log 2"

void fake_log_describe(const struct fake_log_record *record, char *text, size_t size);
void fake_log_print_header(const struct fake *fake, FILE *out);
void fake_log_print(const struct fake_log_record *record, FILE *out);

/* Makes the file if there is none, with its header if it is empty; -errno. */
int fake_log_file_begin(const struct fake *fake, const char *path);
/* Appends one line in one write. Nobody is there to be told of a failure. */
void fake_log_file_add(const char *path, const struct fake_log_record *record);

#endif
