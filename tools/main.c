/* SPDX-License-Identifier: MIT */
/* The kfdirect command: picks the sub-command. */
#include <errno.h>
#include <string.h>

#include "tool.h"

#define EXPECTED "expected one of info demo fake replay trace"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage;
    const char *text;
} commands[] = {
    {"info", info_cmd, "[--json] [--machine NAME] [--kernel VERSION]",
     "devices, memory, links, and what works here and why not"},
    {"demo", demo_cmd, "[--json] [--machine NAME] [--kernel VERSION]",
     "grow, share and take down one 64-GiB range, checking every byte"},
    {"fake", fake_cmd, "[OPTIONS] -- PROGRAM [ARGUMENTS]",
     "run a program on a fake machine (kfdirect fake --help)"},
    {"replay", replay_cmd, "[--machine NAME] [--kernel VERSION] [--process ID] LOG",
     "do again what kfdirect fake --log wrote, and compare the answers"},
    {"trace", trace_cmd, "[--output FILE] -- PROGRAM [ARGUMENTS]",
     "write down what a program asks of the driver, in words"},
};

static int usage(void)
{
    printf("usage: kfdirect COMMAND ...\n\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        printf("  %s %s\n      %s\n", commands[i].name, commands[i].usage, commands[i].text);
    printf("\nNAME is a fake machine such as mi300x:8; without it, and without KFDIRECT_FAKE in\n"
           "the environment, the real /dev/kfd is used. See kfdirect(1).\n");
    return TOOL_OK;
}

static int run(int argc, char **argv)
{
    static char name[32];

    if (argc < 2)
        return tool_misused("kfdirect", "no command given: " EXPECTED);
    if (argc == 3 && !strcmp(argv[1], "help")) {
        char option[] = "--help", *of[] = {argv[0], argv[2], option, NULL};

        return run(3, of);
    }
    if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return usage();
    if (!strcmp(argv[1], "--version")) {
        printf("kfdirect %s\n", KFDIRECT_VERSION_STRING);
        return TOOL_OK;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!strcmp(argv[1], commands[i].name)) {
            snprintf(name, sizeof(name), "kfdirect %s", commands[i].name);
            argv[1] = name; /* what getopt calls it in its messages */
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return tool_misused("kfdirect", "no command '%s': " EXPECTED, argv[1]);
}

/* What a reader did not get in full is no success. */
int main(int argc, char **argv)
{
    int status = run(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "kfdirect: standard output: %s\n", strerror(errno));
    return status == TOOL_OK ? TOOL_FAILED : status;
}
