/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>

#include "json.h"

static void quoted(struct json *json, const char *text)
{
    fputc('"', json->out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(json->out, "\\%c", c);
        else if (c < 0x20)
            fprintf(json->out, "\\u%04x", c);
        else
            fputc(c, json->out);
    }
    fputc('"', json->out);
}

static void item(struct json *json, const char *key)
{
    if (json->depth > 0) {
        fprintf(json->out, "%s\n%*s", json->filled[json->depth] ? "," : "", json->depth * 2, "");
        json->filled[json->depth] = true;
    }
    if (key) {
        quoted(json, key);
        fputs(": ", json->out);
    }
}

static void open_level(struct json *json, const char *key, char open, char close)
{
    item(json, key);
    fputc(open, json->out);
    if (json->depth < JSON_DEPTH - 1)
        json->depth++;
    json->filled[json->depth] = false;
    json->close[json->depth] = close;
}

void json_init(struct json *json, FILE *out)
{
    *json = (struct json){.out = out};
}

void json_object(struct json *json, const char *key)
{
    open_level(json, key, '{', '}');
}

void json_array(struct json *json, const char *key)
{
    open_level(json, key, '[', ']');
}

void json_end(struct json *json)
{
    char close = json->close[json->depth];
    bool filled = json->filled[json->depth];

    json->depth--;
    if (filled)
        fprintf(json->out, "\n%*s", json->depth * 2, "");
    fputc(close, json->out);
    if (json->depth == 0)
        fputc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *value)
{
    item(json, key);
    quoted(json, value);
}

void json_format(struct json *json, const char *key, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    json_string(json, key, text);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    item(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    item(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
    item(json, key);
    fputs("null", json->out);
}
