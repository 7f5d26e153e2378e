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
        "or, where KFDIRECT_FAKE is set and as kfdirect fake -- kfdirect trace -- PROGRAM, on a\n"
        "fake one.\n"
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

static bool find_self(char self[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

    self[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* With KFDIRECT_FAKE the library makes a fake inside the program, which then asks the kernel for
 * nothing: here the same machine is put under it. Returns on failure. */
static int start_on_fake(int argc, char **argv)
{
    const char *log = getenv("KFDIRECT_FAKE_LOG"), **all = calloc((size_t)argc + 8, sizeof(*all));
    char self[PATH_MAX];
    size_t n = 0;

    if (all != NULL && find_self(self)) {
        all[n++] = self;
        all[n++] = "fake";
        if (log != NULL && log[0] != '\0') {
            all[n++] = "--log";
            all[n++] = log;
        }
        all[n++] = "--";
        all[n++] = self;
        all[n++] = "trace";
        memcpy(all + n, argv + 1, ((size_t)argc - 1) * sizeof(*all));
        execv(self, (char **)all);
    }
    fprintf(stderr, "kfdirect: %s\n", strerror(errno));
    free((void *)all);
    return TOOL_FAILED;
}

/* Its preload would come before the tracer, which then sees nothing. */
static bool is_kfdirect_fake(char **argv)
{
    char self[PATH_MAX], other[PATH_MAX];
    struct program program;

    return argv[1] != NULL && strcmp(argv[1], "fake") == 0 && find_self(self) &&
           program_look(argv[0], &program) == 0 && realpath(program.path, other) != NULL &&
           strcmp(self, other) == 0;
}

int trace_cmd(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *output = NULL, *spec;
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
    if (is_kfdirect_fake(argv + optind))
        return tool_misused(argv[0], "the fake goes outside: kfdirect fake ... -- kfdirect trace "
                                     "-- PROGRAM");
    spec = tool_fake_wanted();
    if (spec != NULL && spec[0] != '\0' &&
        program_library(PROGRAM_FAKE, PROGRAM_FAKE_BUILT, library))
        return start_on_fake(argc, argv);
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
