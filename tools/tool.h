/* SPDX-License-Identifier: MIT */
/* What the kfdirect sub-commands share. */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kfdirect/fake.h>

/* Exit codes. */
#define TOOL_OK 0
#define TOOL_FAILED 1
#define TOOL_USAGE 2

/* Each gets the arguments behind its own name: argv[0] names the sub-command. */
int info_cmd(int argc, char **argv);
int demo_cmd(int argc, char **argv);
int fake_cmd(int argc, char **argv);
int replay_cmd(int argc, char **argv);
int trace_cmd(int argc, char **argv);

/*
 * Where a sub-command works: on a fake machine made by the tool itself, so that its GPU side can be
 * asked, or on the real one (fake is NULL).
 */
struct tool_machine {
    struct fake *fake;
    struct kfd_sys *sys;
    const char *name; /* of the fake machine; points into the arguments or the environment */
};

/*
 * Takes `machine` and `kernel` (options, may be NULL) or, without them, KFDIRECT_FAKE and
 * KFDIRECT_FAKE_KERNEL; with neither the real machine. Prints to stderr and returns TOOL_USAGE or
 * TOOL_FAILED when that does not work.
 */
int tool_machine_open(const char *machine, const char *kernel, struct tool_machine *out);
void tool_machine_close(struct tool_machine *machine);

/* What KFDIRECT_FAKE asks for; NULL under kfdirect fake, whose preload answers in the driver's
 * place: one fake, not one in another. */
const char *tool_fake_wanted(void);

struct option;

/* The next option as getopt_long gives it, which knows "--help" as 'h'; '?' when there is something
 * wrong with it, which has been said. A value is never "--". */
int tool_option(int argc, char **argv, const char *order, const struct option *options);
/* Says on stderr what is wrong with the arguments of a command, and how to get its usage.
 * TOOL_USAGE. */
int tool_misused(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "2 MiB", "1.5 GiB", "4 KiB", "17 B"; into buf, which is returned. */
const char *tool_size(uint64_t bytes, char buf[24]);

/* The name of an ioctl by type ('K' or 'd') and number; NULL when unknown. */
const char *tool_request_name(int type, unsigned int nr);

#endif
