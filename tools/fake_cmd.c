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
#include "tool.h"

#define PRELOAD_NAME "libkfdirect-fake-preload.so"

static int usage(FILE *out, int code)
{
    fprintf(out,
            "usage: kfdirect fake [--machine NAME] [--kernel VERSION] [--strict] [--log FILE]\n"
            "                     -- PROGRAM [ARGUMENTS]\n"
            "\n"
            "Runs a program on a fake machine (default mi300x:8), whether it is linked with\n"
            "libkfdirect or opens the devices itself.\n");
    return code;
}

/* Where the preload library is, seen from this program: in the build directory or installed. */
static bool find_preload(char *out)
{
    static const char *const places[] = {"../lib/fake/preload", KFDIRECT_PRELOAD_FROM_BIN};
    char self[PATH_MAX], path[PATH_MAX + 128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (n <= 0)
        return false;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s/" PRELOAD_NAME, self, places[i]);
        if (realpath(path, out) != NULL)
            return true;
    }
    return false;
}

/* First of all that is preloaded, so that nothing else sees a device open. */
static int set_preload(void)
{
    const char *others = getenv("LD_PRELOAD");
    char path[PATH_MAX], *all;
    int err;

    if (!find_preload(path)) {
        fprintf(stderr, "kfdirect: " PRELOAD_NAME " is not here: only programs linked with "
                        "libkfdirect see the fake machine\n");
        return 0;
    }
    if (others == NULL || others[0] == '\0')
        return setenv("LD_PRELOAD", path, 1);
    if (asprintf(&all, "%s:%s", path, others) < 0)
        return -1;
    err = setenv("LD_PRELOAD", all, 1);
    free(all);
    return err;
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

static int set_log(const char *name)
{
    char *path = absolute(name);
    int err = path != NULL ? setenv("KFDIRECT_FAKE_LOG", path, 1) : -1;

    free(path);
    return err;
}

static int set_machine(const struct fake_options *options)
{
    char *machine = name_or_file(options->machine), *kernel = NULL, *spec = NULL;
    int err = -1;

    if (machine != NULL &&
        asprintf(&spec, "%s%s", machine, options->flags & FAKE_STRICT ? ",strict" : "") >= 0)
        err = setenv("KFDIRECT_FAKE", spec, 1);
    if (err == 0 && options->kernel != NULL) {
        kernel = name_or_file(options->kernel);
        err = kernel != NULL ? setenv("KFDIRECT_FAKE_KERNEL", kernel, 1) : -1;
    }
    free(machine);
    free(kernel);
    free(spec);
    return err;
}

/* Says what is wrong with the machine before the program starts, not in the middle of it. */
static bool machine_is_good(const struct fake_options *options)
{
    struct fake *fake;

    if (fake_create(options, &fake) != 0) {
        fprintf(stderr, "kfdirect: %s\n", fake_error_text());
        return false;
    }
    fake_destroy(fake);
    return true;
}

int fake_cmd(int argc, char **argv)
{
    static const struct option options[] = {
        {"machine", required_argument, NULL, 'm'}, {"kernel", required_argument, NULL, 'k'},
        {"strict", no_argument, NULL, 's'},        {"log", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {0}};
    struct fake_options machine = {.size = sizeof(machine), .machine = "mi300x:8"};
    const char *log = NULL;
    int opt;

    while ((opt = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (opt == 'm')
            machine.machine = optarg;
        else if (opt == 'k')
            machine.kernel = optarg;
        else if (opt == 's')
            machine.flags |= FAKE_STRICT;
        else if (opt == 'l')
            log = optarg;
        else
            return usage(opt == 'h' ? stdout : stderr, opt == 'h' ? TOOL_OK : TOOL_USAGE);
    }
    if (optind >= argc)
        return usage(stderr, TOOL_USAGE);
    if (!machine_is_good(&machine))
        return TOOL_FAILED;
    if (set_machine(&machine) || (log && set_log(log)) || set_preload()) {
        fprintf(stderr, "kfdirect: %s\n", strerror(errno));
        return TOOL_FAILED;
    }
    execvp(argv[optind], argv + optind);
    fprintf(stderr, "kfdirect: %s: %s\n", argv[optind], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
