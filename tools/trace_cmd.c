/* SPDX-License-Identifier: MIT */
/* kfdirect trace: a program's requests in words. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "tool.h"

#define TRACE_NAME "libkfdirect-trace.so"

static int usage(void)
{
    printf(
        "usage: kfdirect trace [--output FILE] -- PROGRAM [ARGUMENTS]\n"
        "\n"
        "Writes a line for each request that a program and those it starts make of KFD and the\n"
        "DRM nodes: process, time, arguments and results in words, duration. On the real driver\n"
        "or, as kfdirect fake -- kfdirect trace -- PROGRAM, on a fake one.\n"
        "\n"
        "  --output FILE  to this file, begun anew, instead of standard error\n");
    return TOOL_OK;
}

/* The file is there from the start, and found from any folder. */
static int set_output(const char *name)
{
    char path[PATH_MAX];
    FILE *f;

    if (name == NULL)
        return setenv("KFDIRECT_TRACE", "-", 1);
    f = fopen(name, "we");
    if (f == NULL)
        return -1;
    fclose(f);
    return realpath(name, path) != NULL ? setenv("KFDIRECT_TRACE", path, 1) : -1;
}

int trace_cmd(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *output = NULL;
    char library[PATH_MAX];
    int opt;

    while ((opt = tool_option(argc, argv, "+", options)) != -1) {
        if (opt == 'o')
            output = optarg;
        else
            return opt == 'h' ? usage() : TOOL_USAGE;
    }
    if (optind >= argc)
        return tool_misused(argv[0], "no program given");
    if (!program_library(TRACE_NAME, "../lib/trace", library)) {
        fprintf(stderr, "kfdirect: " TRACE_NAME " is not here: a sanitized build has none\n");
        return TOOL_FAILED;
    }
    if (set_output(output) != 0) {
        fprintf(stderr, "kfdirect: --output %s: %s\n", output ? output : "", strerror(errno));
        return TOOL_USAGE;
    }
    return program_start(argv + optind, library, "its requests can't be seen");
}
