/* SPDX-License-Identifier: MIT */
/* kfdirect fake: runs a program on a fake machine. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kfdirect/fake.h>
#include "program.h"
#include "tool.h"

#define DEFAULT_MACHINE "mi300x:8"

static void list(int (*entry)(size_t i, struct fake_listed *out))
{
    struct fake_listed listed;

    for (size_t i = 0; entry(i, &listed) == 0; i++)
        printf("  %-16s  %s\n", listed.name, listed.about);
}

static int usage(void)
{
    printf("usage: kfdirect fake [--machine NAME] [--kernel VERSION] [--strict] [--log FILE]\n"
           "                     -- PROGRAM [ARGUMENTS]\n"
           "\n"
           "Runs a program on a fake machine (default " DEFAULT_MACHINE
           "), whether it is linked with\n"
           "libkfdirect or opens the devices itself.\n"
           "\n"
           "  --machine NAME    a machine such as mi210:4, or the path of a machine file\n"
           "  --kernel VERSION  a kernel (default 6.12), or the path of a kernel file\n"
           "  --strict          what the kernel leaves undefined fails, with a report on stderr\n"
           "  --log FILE        write what is asked of the devices, for reading and for\n"
           "                    kfdirect replay\n"
           "\n"
           "The machines; with :N behind the name, N times its GPUs:\n");
    list(fake_list_machine);
    printf("\nThe kernels; +svm, +p2p, +move_notify and +no-... behind the name switch "
           "options:\n");
    list(fake_list_kernel);
    return TOOL_OK;
}

/* The program may change its directory before it opens its first device. */
static char *absolute(const char *name)
{
    char cwd[PATH_MAX], *path = NULL;

    if (name[0] == '/')
        return strdup(name);
    return getcwd(cwd, sizeof(cwd)) == NULL || asprintf(&path, "%s/%s", cwd, name) < 0 ? NULL
                                                                                       : path;
}

/* A machine or kernel with a slash is a file, any other a name. */
static char *name_or_file(const char *name)
{
    return strchr(name, '/') != NULL ? absolute(name) : strdup(name);
}

/* The log begins anew; every process of the program adds to it. */
static int set_log(const char *name)
{
    char *path = absolute(name);
    FILE *f = path != NULL ? fopen(path, "we") : NULL;
    int err = f != NULL ? setenv("KFDIRECT_FAKE_LOG", path, 1) : -1;

    if (f != NULL)
        fclose(f);
    free(path);
    return err;
}

/* What KFDIRECT_FAKE and KFDIRECT_FAKE_KERNEL will say. */
struct world {
    char *spec, *kernel;
};

static int describe(const char *machine, const char *kernel, bool strict, struct world *out)
{
    const char *spec = getenv("KFDIRECT_FAKE");
    char *base;

    if (machine == NULL && spec != NULL && spec[0] != '\0')
        base = strdup(spec);
    else
        base = name_or_file(machine != NULL ? machine : DEFAULT_MACHINE);
    if (kernel == NULL)
        kernel = getenv("KFDIRECT_FAKE_KERNEL");
    out->kernel = kernel != NULL && kernel[0] != '\0' ? name_or_file(kernel) : NULL;
    if (base == NULL || asprintf(&out->spec, "%s%s", base, strict ? ",strict" : "") < 0)
        out->spec = NULL;
    free(base);
    return out->spec != NULL ? 0 : -1;
}

/* A machine of its own, also under another `kfdirect fake`; says what is wrong with it before the
 * program starts, not in the middle of it. */
static int set_machine(const struct world *world)
{
    struct fake *fake;

    unsetenv("KFDIRECT_FAKE_SAID");
    unsetenv("KFDIRECT_FAKE_TREE");
    unsetenv("KFDIRECT_FAKE_LOG");
    if (setenv("KFDIRECT_FAKE", world->spec, 1) != 0 ||
        (world->kernel != NULL && setenv("KFDIRECT_FAKE_KERNEL", world->kernel, 1) != 0)) {
        fprintf(stderr, "kfdirect: %s\n", strerror(errno));
        return TOOL_FAILED;
    }
    if (fake_create_from_spec(world->spec, &fake) != 0) {
        fprintf(stderr, "kfdirect: %s\n", fake_error_text());
        return TOOL_USAGE;
    }
    fake_destroy(fake);
    return TOOL_OK;
}

static int start(char **argv, const struct world *world, const char *log)
{
    char path[PATH_MAX];
    int status = set_machine(world);

    if (status != TOOL_OK)
        return status;
    if (log != NULL && set_log(log) != 0) {
        fprintf(stderr, "kfdirect: --log %s: %s\n", log, strerror(errno));
        return TOOL_USAGE;
    }
    if (!program_library(PROGRAM_FAKE, PROGRAM_FAKE_BUILT, path)) {
        fprintf(stderr, "kfdirect: " PROGRAM_FAKE " is not here: only programs linked with "
                        "libkfdirect see the fake machine\n");
        path[0] = '\0';
    }
    return program_start(argv, path, "it would see this machine's devices, not the fake ones");
}

int fake_cmd(int argc, char **argv)
{
    static const struct option options[] = {
        {"machine", required_argument, NULL, 'm'}, {"kernel", required_argument, NULL, 'k'},
        {"strict", no_argument, NULL, 's'},        {"log", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {0}};
    const char *machine = NULL, *kernel = NULL, *log = NULL;
    struct world world;
    bool strict = false;
    int opt, status;

    while ((opt = tool_option(argc, argv, "+", options)) != -1) {
        if (opt == 'm')
            machine = optarg;
        else if (opt == 'k')
            kernel = optarg;
        else if (opt == 's')
            strict = true;
        else if (opt == 'l')
            log = optarg;
        else
            return opt == 'h' ? usage() : TOOL_USAGE;
    }
    if (optind >= argc)
        return tool_misused(argv[0], "no program given");
    if (describe(machine, kernel, strict, &world) != 0) {
        fprintf(stderr, "kfdirect: %s\n", strerror(ENOMEM));
        return TOOL_FAILED;
    }
    status = start(argv + optind, &world, log);
    free(world.spec);
    free(world.kernel);
    return status;
}
