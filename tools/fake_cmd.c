/* SPDX-License-Identifier: MIT */
/* kfdirect fake: runs a program on a fake machine. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static int usage(FILE *out, int code)
{
    fprintf(out, "usage: kfdirect fake [--machine NAME] [--kernel VERSION] -- PROGRAM [ARGUMENTS]\n"
                 "\n"
                 "Runs a program that is linked with libkfdirect on a fake machine\n"
                 "(default mi300x:8).\n");
    return code;
}

int fake_cmd(int argc, char **argv)
{
    static const struct option options[] = {{"machine", required_argument, NULL, 'm'},
                                            {"kernel", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *machine = "mi300x:8", *kernel = NULL;
    int opt;

    while ((opt = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (opt == 'm')
            machine = optarg;
        else if (opt == 'k')
            kernel = optarg;
        else
            return usage(opt == 'h' ? stdout : stderr, opt == 'h' ? TOOL_OK : TOOL_USAGE);
    }
    if (optind >= argc)
        return usage(stderr, TOOL_USAGE);
    if (setenv("KFDIRECT_FAKE", machine, 1) ||
        (kernel && setenv("KFDIRECT_FAKE_KERNEL", kernel, 1))) {
        fprintf(stderr, "kfdirect: %s\n", strerror(errno));
        return TOOL_FAILED;
    }
    execvp(argv[optind], argv + optind);
    fprintf(stderr, "kfdirect: %s: %s\n", argv[optind], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
