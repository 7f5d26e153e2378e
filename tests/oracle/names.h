/* SPDX-License-Identifier: MIT */
/* The words of a script: its names, numbers and options. */
#ifndef ORACLE_NAMES_H
#define ORACLE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <kfdirect/kfd.h>

#define NAMES 10
#define MAX_WORDS 16

/* What a script has made; live entries are taken away at its end. */
struct slot {
    uint64_t value, size;
    bool live;
};

struct script_state {
    struct slot r[NAMES], h[NAMES], a[NAMES], p[NAMES], f[NAMES];
    uint64_t free_at_start[KFD_MAX_DEVICES];
    const char *problem; /* a check that did not hold */
};

extern struct script_state run;

/* One statement cut into words. */
struct words {
    char *word[MAX_WORDS];
    unsigned count;
};

/* The entry of a name, or NULL. */
struct slot *slot_of(const char *name);
/* A sum of terms; what is none becomes the run's problem. */
uint64_t number(const char *text);
void *address(const char *text);
/* The text after "name=", or NULL. */
const char *option_text(const struct words *w, const char *name);
uint64_t option(const struct words *w, const char *name, uint64_t otherwise);
bool has(const struct words *w, const char *name);

#endif
