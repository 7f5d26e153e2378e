/* SPDX-License-Identifier: MIT */
/* What a program is, before it is started: can a library be preloaded into it? */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct program {
    char path[PATH_MAX];
    /* Why no library can be preloaded into it; NULL: one can. */
    const char *closed;
    /* A sanitizer's runtime that it is linked with and that must come before all other libraries;
     * "": none. */
    char runtime[64];
};

/* Finds a program as execvp(3) does and looks at it, or at the interpreter that its first line
 * names. 0; ENOENT: not found; EACCES and others: found, but it can't be read or run. */
int program_look(const char *name, struct program *out);

#endif
