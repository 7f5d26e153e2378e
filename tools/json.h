/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON as it comes, with commas and indentation kept right. Inside an object every call
 * names a key; inside an array key is NULL.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 16

struct json {
    FILE *out;
    int depth;
    bool filled[JSON_DEPTH]; /* something was written at this depth */
    char close[JSON_DEPTH];
};

void json_init(struct json *json, FILE *out);
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Ends the innermost object or array; the last one ends the line. */
void json_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value);
void json_format(struct json *json, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
