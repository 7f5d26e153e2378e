/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "demo.h"

static void line(struct demo *demo, const char *mark, const char *key, const char *result,
                 const char *fmt, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), fmt, args);
    if (!demo->as_json) {
        printf("   %s%s\n", mark, text);
        fflush(stdout);
        return;
    }
    json_object(&demo->json, NULL);
    json_string(&demo->json, key, text);
    if (result)
        json_string(&demo->json, "result", result);
    json_end(&demo->json);
}

void demo_step(struct demo *demo, const char *fmt, ...)
{
    char text[128];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    demo->steps++;
    demo->in_step = true;
    if (demo->as_json) {
        json_object(&demo->json, NULL);
        json_string(&demo->json, "step", text);
        json_array(&demo->json, "lines");
    } else {
        printf("\n%" PRIu64 ". %s\n", demo->steps, text);
    }
    kfd_sys_count_reset(demo->counter);
}

static void count_group(struct demo *demo, int type, const uint64_t counts[256], bool *first)
{
    for (unsigned int nr = 0; nr < 256; nr++) {
        const char *name = tool_request_name(type, nr);
        char number[16];

        if (!counts[nr])
            continue;
        if (!name) {
            snprintf(number, sizeof(number), "%c 0x%02x", type, nr);
            name = number;
        }
        if (demo->as_json)
            json_number(&demo->json, name, counts[nr]);
        else
            printf("%s%s %" PRIu64, *first ? " = " : " + ", name, counts[nr]);
        *first = false;
    }
}

void demo_step_end(struct demo *demo)
{
    struct kfd_sys_counts counts;
    bool first = true;

    if (!demo->in_step)
        return;
    demo->in_step = false;
    kfd_sys_count_get(demo->counter, &counts);
    if (demo->as_json) {
        json_end(&demo->json);
        json_number(&demo->json, "ioctl_count", counts.requests);
        json_object(&demo->json, "ioctls");
    } else {
        printf("   ioctls: %" PRIu64, counts.requests);
    }
    count_group(demo, 'K', counts.kfd, &first);
    count_group(demo, 'd', counts.drm, &first);
    if (demo->as_json) {
        json_end(&demo->json);
        json_end(&demo->json);
    } else {
        printf("\n");
    }
}

uint64_t demo_ioctls(const struct demo *demo)
{
    struct kfd_sys_counts counts;

    kfd_sys_count_get(demo->counter, &counts);
    return counts.requests;
}

void demo_say(struct demo *demo, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    line(demo, "", "note", NULL, fmt, args);
    va_end(args);
}

bool demo_check(struct demo *demo, bool holds, const char *fmt, ...)
{
    va_list args;

    if (holds)
        demo->passed++;
    else
        demo->failed++;
    va_start(args, fmt);
    line(demo, holds ? "ok    " : "WRONG ", "check", holds ? "passed" : "failed", fmt, args);
    va_end(args);
    return holds;
}

void demo_not_checked(struct demo *demo, const char *fmt, ...)
{
    va_list args;

    demo->unchecked++;
    va_start(args, fmt);
    line(demo, "not checked: ", "check", "not checked", fmt, args);
    va_end(args);
}

bool demo_call(struct demo *demo, hipError_t err, const char *what)
{
    if (err == hipSuccess)
        return true;
    return demo_check(demo, false, "%s: %s: %s", what, hipGetErrorName(err), kfd_error_text());
}
