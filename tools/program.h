/* SPDX-License-Identifier: MIT */
/* Starting a program with a library preloaded, if that can be. */
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

/* The fake machine as a library to preload, and where it is in the build directory. */
#define PROGRAM_FAKE "libkfdirect-fake-preload.so"
#define PROGRAM_FAKE_BUILT "../lib/fake/preload"

/* Where a library is, seen from this program: in the build directory or installed. out has PATH_MAX
 * bytes. */
bool program_library(const char *name, const char *built, char *out);

/* Becomes the program argv[0], with a library ("": none) preloaded. Returns only with an exit code,
 * after saying on stderr why; loss says what it means when no library can be preloaded. */
int program_start(char **argv, const char *library, const char *loss);

#endif
