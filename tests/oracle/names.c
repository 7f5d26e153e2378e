/* SPDX-License-Identifier: MIT */
#include "names.h"
#include "common.h"

struct script_state run;

struct slot *slot_of(const char *name)
{
    unsigned i = name[0] ? (unsigned)(name[1] - '0') : NAMES;

    if (i >= NAMES || name[2] != '\0')
        return NULL;
    switch (name[0]) {
    case 'r':
        return &run.r[i];
    case 'h':
        return &run.h[i];
    case 'a':
        return &run.a[i];
    case 'p':
        return &run.p[i];
    case 'f':
        return &run.f[i];
    default:
        return NULL;
    }
}

static uint64_t term(const char *text)
{
    struct slot *slot = slot_of(text);
    char *end;
    uint64_t value;

    if (slot)
        return slot->value;
    if (strcmp(text, "max") == 0)
        return UINT64_MAX;
    if (strcmp(text, "total") == 0)
        return total_bytes(0);
    if (strncmp(text, "2^", 2) == 0)
        return strtoull(text + 2, NULL, 10) < 64 ? (uint64_t)1 << strtoull(text + 2, NULL, 10) : 0;
    value = strtoull(text, &end, 0);
    switch (*end) {
    case 'K':
        return value << 10;
    case 'M':
        return value << 20;
    case 'G':
        return value << 30;
    case 'T':
        return value << 40;
    case '\0':
        return value;
    default:
        run.problem = "a number of the script";
        return 0;
    }
}

uint64_t number(const char *text)
{
    char part[64];
    uint64_t sum = 0;
    bool minus = false;

    if (*text == '-') {
        minus = true;
        text++;
    }
    for (;;) {
        size_t length = strcspn(text, "+-");

        snprintf(part, sizeof(part), "%.*s", (int)length, text);
        sum = minus ? sum - term(part) : sum + term(part);
        if (text[length] == '\0')
            return sum;
        minus = text[length] == '-';
        text += length + 1;
    }
}

void *address(const char *text)
{
    return (void *)(uintptr_t)number(text);
}

const char *option_text(const struct words *w, const char *name)
{
    size_t length = strlen(name);

    for (unsigned i = 1; i < w->count; i++) {
        if (strncmp(w->word[i], name, length) == 0 && w->word[i][length] == '=')
            return w->word[i] + length + 1;
    }
    return NULL;
}

uint64_t option(const struct words *w, const char *name, uint64_t otherwise)
{
    const char *text = option_text(w, name);

    return text ? number(text) : otherwise;
}

bool has(const struct words *w, const char *name)
{
    for (unsigned i = 1; i < w->count; i++) {
        if (strcmp(w->word[i], name) == 0)
            return true;
    }
    return false;
}
