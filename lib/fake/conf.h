/* SPDX-License-Identifier: MIT */
/*
 * The profile file format: `[section]` lines, `key = value` lines, `#` comments. A table says which
 * keys a section has and where their values go. Every message names file, line and what was
 * expected.
 */
#ifndef FAKE_CONF_H
#define FAKE_CONF_H

#include <stddef.h>
#include <stdint.h>

enum fake_conf_type {
    FAKE_CONF_U32,      /* decimal or 0x; uint32_t */
    FAKE_CONF_U64,      /* the same; uint64_t */
    FAKE_CONF_SIZE,     /* a number and one of B KiB MiB GiB TiB; uint64_t bytes */
    FAKE_CONF_BOOL,     /* yes or no; bool */
    FAKE_CONF_FRACTION, /* "63/64"; struct fake_fraction */
    FAKE_CONF_STRING,   /* the rest of the line; char[size] */
    FAKE_CONF_ENUM,     /* one of names; uint32_t index */
    FAKE_CONF_CALL,     /* handed to call */
};

struct fake_fraction {
    uint32_t num, den;
};

struct fake_conf;

struct fake_conf_key {
    const char *name;
    enum fake_conf_type type;
    size_t offset; /* in the section's target */
    size_t size;   /* FAKE_CONF_STRING: bytes there */
    const char *const *names;
    int (*call)(struct fake_conf *conf, void *target, const char *value);
};

/* A parse in progress. */
struct fake_conf {
    const char *file;
    unsigned int line;
    /* Gives the keys and the target of a section that begins; -EINVAL after fake_conf_fail. */
    int (*section)(struct fake_conf *conf, const char *name);
    const struct fake_conf_key *keys; /* ended by a NULL name; set by section */
    void *target;
    void *user;
};

/* Goes through text, which needs no terminator. -EINVAL with a text. */
int fake_conf_parse(struct fake_conf *conf, const char *text, size_t size);

/* Stores "file:line: ..." and returns -EINVAL. */
int fake_conf_fail(struct fake_conf *conf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads one number, or a number and a unit, that must fill value. -EINVAL without a text. */
int fake_conf_number(const char *value, uint64_t max, uint64_t *out);
int fake_conf_size(const char *value, uint64_t *out);

#endif
