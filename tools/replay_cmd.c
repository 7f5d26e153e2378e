/* SPDX-License-Identifier: MIT */
/* kfdirect replay: does the requests of a log again on a new fake machine. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int usage(void)
{
    printf(
        "usage: kfdirect replay [--machine NAME] [--kernel VERSION] [--process ID] LOG\n"
        "\n"
        "Does the requests of one process again that kfdirect fake --log wrote down, on a new\n"
        "machine, and compares results and outputs. Prints what differs, then and now, and exits\n"
        "with 0 when all are alike.\n"
        "\n"
        "  --machine NAME, --kernel VERSION  another machine or kernel than the log names\n"
        "  --process ID                      of which process; default: of the first in the log\n");
    return TOOL_OK;
}

/* Machine and kernel of the first line, "magic\tmachine\tkernel"; they point into it. */
static void read_header(FILE *in, char *line, size_t size, char **machine, char **kernel)
{
    char *rest = fgets(line, (int)size, in) != NULL ? line : NULL;

    strsep(&rest, "\t");
    *machine = strsep(&rest, "\t");
    *kernel = strsep(&rest, "\n");
    rewind(in);
}

static int report(const struct fake_replay *r, const char *machine, const char *kernel)
{
    printf("%" PRIu64 " operations done again on %s, kernel %s: %" PRIu64 " answered differently\n",
           r->replayed, machine, kernel, r->differing);
    if (r->skipped != 0)
        printf("%" PRIu64 " left out: mappings, queues, events and others that hold addresses\n",
               r->skipped);
    if (r->others != 0)
        printf("%" PRIu64 " left out: of other processes\n", r->others);
    return r->differing == 0 ? TOOL_OK : TOOL_FAILED;
}

static int replay(FILE *in, const char *name, const char *machine, const char *kernel, pid_t pid)
{
    char line[1024], *wrote_machine, *wrote_kernel;
    struct fake_options options = {.size = sizeof(options)};
    struct fake_replay result;
    struct fake *fake;
    int status;

    read_header(in, line, sizeof(line), &wrote_machine, &wrote_kernel);
    options.machine = machine != NULL ? machine : wrote_machine;
    options.kernel = kernel != NULL ? kernel : wrote_kernel;
    if (wrote_kernel == NULL) {
        fprintf(stderr, "kfdirect: %s: this is no log of kfdirect fake --log\n", name);
        return TOOL_USAGE;
    }
    if (fake_create(&options, &fake) != 0) {
        fprintf(stderr, "kfdirect: %s\n", fake_error_text());
        return TOOL_USAGE;
    }
    if (fake_log_replay(fake, in, pid, stdout, &result) != 0) {
        fprintf(stderr, "kfdirect: %s: %s\n", name, fake_error_text());
        status = TOOL_USAGE;
    } else {
        status = report(&result, options.machine, options.kernel);
    }
    fake_destroy(fake);
    return status;
}

int replay_cmd(int argc, char **argv)
{
    static const struct option options[] = {{"machine", required_argument, NULL, 'm'},
                                            {"kernel", required_argument, NULL, 'k'},
                                            {"process", required_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *machine = NULL, *kernel = NULL, *process = NULL;
    char *end = NULL;
    long pid = 0;
    int opt, status;
    FILE *in;

    while ((opt = tool_option(argc, argv, "", options)) != -1) {
        if (opt == 'm')
            machine = optarg;
        else if (opt == 'k')
            kernel = optarg;
        else if (opt == 'p')
            pid = strtol(process = optarg, &end, 10);
        else
            return opt == 'h' ? usage() : TOOL_USAGE;
    }
    if (process != NULL && (*end != '\0' || pid <= 0 || pid > INT32_MAX))
        return tool_misused(argv[0], "--process '%s': expected the number of a process", process);
    if (optind == argc)
        return tool_misused(argv[0], "no log given: expected the file of kfdirect fake --log");
    if (optind + 1 < argc)
        return tool_misused(argv[0], "argument '%s' behind the log", argv[optind + 1]);
    in = fopen(argv[optind], "re");
    if (in == NULL) {
        fprintf(stderr, "kfdirect: %s: %s\n", argv[optind], strerror(errno));
        return TOOL_USAGE;
    }
    status = replay(in, argv[optind], machine, kernel, (pid_t)pid);
    fclose(in);
    return status;
}
