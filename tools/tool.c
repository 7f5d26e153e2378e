/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/uapi.h"
#include "tool.h"

const char *tool_fake_wanted(void)
{
    return dlsym(RTLD_DEFAULT, "kfdirect_fake_preloaded") ? NULL : getenv("KFDIRECT_FAKE");
}

int tool_machine_open(const char *machine, const char *kernel, struct tool_machine *out)
{
    struct fake_options options = {.size = sizeof(options)};
    const char *spec = tool_fake_wanted();
    int err;

    *out = (struct tool_machine){0};
    if (kernel && setenv("KFDIRECT_FAKE_KERNEL", kernel, 1)) {
        fprintf(stderr, "kfdirect: %s\n", strerror(errno));
        return TOOL_FAILED;
    }
    if (machine) {
        options.machine = machine;
        kernel = getenv("KFDIRECT_FAKE_KERNEL");
        options.kernel = kernel && kernel[0] ? kernel : NULL;
        err = fake_create(&options, &out->fake);
    } else if (spec && spec[0]) {
        machine = spec;
        err = fake_create_from_spec(spec, &out->fake);
    } else if (kernel) {
        fprintf(stderr, "kfdirect: --kernel is for a fake machine: give --machine too\n");
        return TOOL_USAGE;
    } else {
        out->sys = kfd_sys_linux();
        return TOOL_OK;
    }
    if (err) {
        fprintf(stderr, "kfdirect: %s\n", fake_error_text());
        return TOOL_USAGE;
    }
    out->sys = fake_sys(out->fake);
    out->name = machine;
    return TOOL_OK;
}

static int hint(const char *command)
{
    fprintf(stderr, "for the usage: %s --help\n", command);
    return TOOL_USAGE;
}

int tool_option(int argc, char **argv, const char *order, const struct option *options)
{
    int at = -1, opt = getopt_long(argc, argv, order, options, &at);

    if (opt == '?') {
        hint(argv[0]);
    } else if (opt != -1 && at >= 0 && options[at].has_arg == required_argument &&
               strcmp(optarg, "--") == 0) {
        tool_misused(argv[0], "option '--%s' requires an argument", options[at].name);
        opt = '?';
    }
    return opt;
}

int tool_misused(const char *command, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return hint(command);
}

void tool_machine_close(struct tool_machine *machine)
{
    fake_destroy(machine->fake);
    *machine = (struct tool_machine){0};
}

const char *tool_size(uint64_t bytes, char buf[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned int unit = 0;
    uint64_t whole = bytes, rest = 0;

    while (whole >= 1024 && unit < 5) {
        rest = whole % 1024;
        whole /= 1024;
        unit++;
    }
    if (rest * 10 / 1024)
        snprintf(buf, 24, "%" PRIu64 ".%" PRIu64 " %s", whole, rest * 10 / 1024, units[unit]);
    else
        snprintf(buf, 24, "%" PRIu64 " %s", whole, units[unit]);
    return buf;
}

const char *tool_request_name(int type, unsigned int nr)
{
    static const char *const kfd[256] = {
#define X(name, nr, dir, type) [nr] = #name,
        KFD_UAPI_KFD_REQUESTS(X)};
    static const char *const drm[256] = {KFD_UAPI_DRM_REQUESTS(X)};
#undef X

    if (nr >= 256)
        return NULL;
    return type == KFD_UAPI_TYPE_KFD ? kfd[nr] : type == KFD_UAPI_TYPE_DRM ? drm[nr] : NULL;
}
