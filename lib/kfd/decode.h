/* SPDX-License-Identifier: MIT */
/* Requests in words, for the tracer and the fake's log. Pointers inside arguments are printed and
 * never followed, so an argument copied from anywhere is safe. */
#ifndef KFD_DECODE_H
#define KFD_DECODE_H

#include <stddef.h>

/*
 * "NAME in=... in=... -> out=...": the fields the caller sets, from `in`, then those the kernel
 * sets, from `out`. They are two blocks because a union's result lies over its input. Either may be
 * NULL. At most the bytes that the request code's size field gives are read. Unknown requests come
 * out as their numbers. Returns the length as snprintf does.
 */
int kfd_decode_call(unsigned long request, const void *in, const void *out, char *buf, size_t size);

/* The bare name, or NULL if the tables lack it. */
const char *kfd_decode_name(unsigned long request);

#endif
