/* SPDX-License-Identifier: MIT */
#include "kfd/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <kfdirect/kfd.h>

#define TEXT_SIZE 512

static _Thread_local char text[TEXT_SIZE];
static _Thread_local unsigned held;

void kfd_error_set(const char *fmt, ...)
{
    va_list args;

    if (held)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
}

void kfd_error_prefix(const char *fmt, ...)
{
    char old[TEXT_SIZE];
    va_list args;
    int len;

    if (held)
        return;
    memcpy(old, text, sizeof(old));
    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len >= 0 && (size_t)len + 2 < sizeof(text) && old[0] != '\0') {
        size_t room = sizeof(text) - (size_t)len - 2;
        size_t n = strnlen(old, room - 1);

        memcpy(text + len, ": ", 2);
        memcpy(text + len + 2, old, n);
        text[(size_t)len + 2 + n] = '\0';
    }
}

const char *kfd_errno_name(int err)
{
    static _Thread_local char number[24];
    const char *name;

    if (err < 0)
        err = -err;
    name = strerrorname_np(err);
    if (name)
        return name;
    snprintf(number, sizeof(number), "errno %d", err);
    return number;
}

void kfd_error_hold(void)
{
    held++;
}

void kfd_error_resume(void)
{
    held--;
}

void kfd_error_clear(void)
{
    text[0] = '\0';
}

const char *kfd_error_text(void)
{
    return text;
}
