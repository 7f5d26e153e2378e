/* SPDX-License-Identifier: MIT */
/*
 * cmocka 1.1.5 reports a skipped test as "not ok N # SKIP", which TAP readers count as a failure,
 * and lets a test's own messages into the TAP stream. It prints both through print_message(), so a
 * test program that is linked with this file gets "ok N # SKIP" and comments instead.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void print_message(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), visibility("default")));

static bool is_tap_line(const char *fmt)
{
    static const char *const starts[] = {"ok ", "not ok ", "1..", "#"};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (strncmp(fmt, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return false;
}

void print_message(const char *fmt, ...)
{
    const char *output = getenv("CMOCKA_MESSAGE_OUTPUT");
    va_list args;

    va_start(args, fmt);
    if (output && strcasecmp(output, "tap") == 0) {
        if (strncmp(fmt, "not ok ", 7) == 0 && strstr(fmt, "# SKIP"))
            fmt += strlen("not ");
        else if (!is_tap_line(fmt))
            printf("# ");
    }
    vprintf(fmt, args);
    va_end(args);
}
