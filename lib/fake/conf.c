/* SPDX-License-Identifier: MIT */
#include "fake/conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/error.h"

#define LINE_MAX_BYTES 1024

int fake_conf_fail(struct fake_conf *conf, const char *fmt, ...)
{
    char what[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return kfd_fail(-EINVAL, "%s:%u: %s", conf->file, conf->line, what);
}

int fake_conf_number(const char *value, uint64_t max, uint64_t *out)
{
    unsigned long long n;
    char *end;

    if (!isdigit((unsigned char)value[0]))
        return -EINVAL;
    errno = 0;
    n = strtoull(value, &end, 0);
    if (errno != 0 || *end != '\0' || n > max)
        return -EINVAL;
    *out = n;
    return 0;
}

int fake_conf_size(const char *value, uint64_t *out)
{
    static const struct {
        const char *name;
        unsigned int shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    unsigned long long n;
    char *end;

    if (!isdigit((unsigned char)value[0]))
        return -EINVAL;
    errno = 0;
    n = strtoull(value, &end, 0);
    if (errno != 0)
        return -EINVAL;
    while (*end == ' ' || *end == '\t')
        end++;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        if (n > UINT64_MAX >> units[i].shift)
            return -EINVAL;
        *out = (uint64_t)n << units[i].shift;
        return 0;
    }
    return -EINVAL;
}

static int store_fraction(struct fake_conf *conf, struct fake_fraction *out, const char *name,
                          const char *value)
{
    unsigned int num, den;
    int end = 0;

    if (sscanf(value, "%u/%u%n", &num, &den, &end) != 2 || value[end] != '\0' || den == 0)
        return fake_conf_fail(conf, "'%s': '%s' is not a fraction such as 63/64", name, value);
    out->num = num;
    out->den = den;
    return 0;
}

static int store_enum(struct fake_conf *conf, uint32_t *out, const struct fake_conf_key *key,
                      const char *value)
{
    char all[160] = "";

    for (uint32_t i = 0; key->names[i] != NULL; i++) {
        if (strcmp(value, key->names[i]) == 0) {
            *out = i;
            return 0;
        }
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
                 key->names[i]);
    }
    return fake_conf_fail(conf, "'%s': '%s' is none of %s", key->name, value, all);
}

static int store_string(struct fake_conf *conf, char *out, const struct fake_conf_key *key,
                        const char *value)
{
    if (strlen(value) >= key->size)
        return fake_conf_fail(conf, "'%s': more than %zu characters", key->name, key->size - 1);
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

static int store(struct fake_conf *conf, const struct fake_conf_key *key, const char *value)
{
    void *out = (char *)conf->target + key->offset;
    uint64_t n;

    switch (key->type) {
    case FAKE_CONF_U32:
        if (fake_conf_number(value, UINT32_MAX, &n) != 0)
            return fake_conf_fail(conf, "'%s': '%s' is not a 32-bit number", key->name, value);
        *(uint32_t *)out = (uint32_t)n;
        return 0;
    case FAKE_CONF_U64:
        if (fake_conf_number(value, UINT64_MAX, out) != 0)
            return fake_conf_fail(conf, "'%s': '%s' is not a 64-bit number", key->name, value);
        return 0;
    case FAKE_CONF_SIZE:
        if (fake_conf_size(value, out) != 0)
            return fake_conf_fail(conf, "'%s': '%s' is not a size such as 512 MiB", key->name,
                                  value);
        return 0;
    case FAKE_CONF_BOOL:
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
            return fake_conf_fail(conf, "'%s': '%s' is neither yes nor no", key->name, value);
        *(bool *)out = value[0] == 'y';
        return 0;
    case FAKE_CONF_FRACTION:
        return store_fraction(conf, out, key->name, value);
    case FAKE_CONF_STRING:
        return store_string(conf, out, key, value);
    case FAKE_CONF_ENUM:
        return store_enum(conf, out, key, value);
    case FAKE_CONF_CALL:
        return key->call(conf, conf->target, value);
    }
    return fake_conf_fail(conf, "'%s': no way to store it", key->name);
}

static char *trim(char *s)
{
    char *end;

    while (isspace((unsigned char)*s))
        s++;
    end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return s;
}

static int parse_line(struct fake_conf *conf, char *line)
{
    char *hash = strchr(line, '#');
    char *key, *value, *eq;

    if (hash != NULL)
        *hash = '\0';
    key = trim(line);
    if (*key == '\0')
        return 0;
    if (*key == '[') {
        size_t len = strlen(key);

        if (key[len - 1] != ']')
            return fake_conf_fail(conf, "'%s': expected a closing ]", key);
        key[len - 1] = '\0';
        return conf->section(conf, trim(key + 1));
    }
    eq = strchr(key, '=');
    if (eq == NULL)
        return fake_conf_fail(conf, "'%s': expected 'key = value' or '[section]'", key);
    *eq = '\0';
    value = trim(eq + 1);
    key = trim(key);
    if (conf->keys == NULL)
        return fake_conf_fail(conf, "'%s': expected a '[section]' before the first key", key);
    if (*value == '\0')
        return fake_conf_fail(conf, "'%s': expected a value after '='", key);
    for (const struct fake_conf_key *k = conf->keys; k->name != NULL; k++) {
        if (strcmp(k->name, key) == 0)
            return store(conf, k, value);
    }
    return fake_conf_fail(conf, "'%s': no such key in this section", key);
}

int fake_conf_parse(struct fake_conf *conf, const char *text, size_t size)
{
    char line[LINE_MAX_BYTES];
    size_t at = 0;

    conf->line = 0;
    while (at < size) {
        const char *nl = memchr(text + at, '\n', size - at);
        size_t len = nl != NULL ? (size_t)(nl - (text + at)) : size - at;
        int err;

        conf->line++;
        if (len >= sizeof(line))
            return fake_conf_fail(conf, "line of %zu bytes, expected less than %zu", len,
                                  sizeof(line));
        memcpy(line, text + at, len);
        line[len] = '\0';
        if (strlen(line) != len)
            return fake_conf_fail(conf, "NUL byte: expected text");
        err = parse_line(conf, line);
        if (err != 0)
            return err;
        at += len + (nl != NULL);
    }
    return 0;
}
