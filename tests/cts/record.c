/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cts.h"
#include "record.h"

const char *cts_text(const char *fmt, ...)
{
    static char ring[16][256];
    static unsigned next;
    char *buf = ring[next++ % 16];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof ring[0], fmt, ap);
    va_end(ap);
    return buf;
}

static const char *result_text(long ret)
{
    const char *name = ret < 0 ? strerrorname_np((int)-ret) : "0";

    return name ? name : cts_text("E%ld", -ret);
}

const char *cts_gpu_text(const struct cts *c, uint32_t gpu_id)
{
    for (uint32_t i = 0; i < c->gpus; i++)
        if (gpu_id == c->gpu[i].id)
            return cts_text("gpu%u", i);
    return gpu_id ? "other" : "none";
}

const char *cts_handle_text(const struct cts *c, uint64_t handle)
{
    return cts_text("%s:%u", cts_gpu_text(c, (uint32_t)(handle >> 32)), (uint32_t)handle);
}

static void __attribute__((format(printf, 6, 0)))
write_row(struct cts *c, const char *step, const char *want, const char *got, bool wrong,
          const char *fmt, va_list ap)
{
    char out[1280];

    vsnprintf(out, sizeof out, fmt, ap);
    dprintf(c->rows, "%s\t%s\t%s\t%s\n", c->name, step, got, out);
    __atomic_add_fetch(&c->tally->rows, 1, __ATOMIC_RELAXED);
    if (wrong) {
        __atomic_add_fetch(&c->tally->wrong, 1, __ATOMIC_RELAXED);
        printf("# %s: %s: %s, wanted %s (%s)\n", c->name, step, got, want, out);
        fflush(stdout);
    }
}

void cts_row(struct cts *c, const char *step, long want, long ret, const char *fmt, ...)
{
    va_list ap;

    if (ret > 0)
        ret = 0;
    va_start(ap, fmt);
    write_row(c, step, result_text(want), result_text(ret), want != CTS_ANY && want != ret, fmt,
              ap);
    va_end(ap);
}

void cts_row_named(struct cts *c, const char *step, const char *want, const char *got,
                   const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_row(c, step, want, got, want && strcmp(want, got) != 0, fmt, ap);
    va_end(ap);
}

void cts_skip(struct cts *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->tally->reason, sizeof c->tally->reason, fmt, ap);
    va_end(ap);
    c->tally->skipped = true;
    fflush(stdout);
    _exit(0);
}

int record_load(struct record *r, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;

    memset(r, 0, sizeof *r);
    if (!f)
        return -errno;
    for (; getline(&line, &cap, f) > 0; line = NULL, cap = 0) {
        if (line[0] == '#') {
            free(line);
            continue;
        }
        line[strcspn(line, "\n")] = 0;
        if (!(r->count & (r->count + 1)))
            r->line = realloc(r->line, (2 * r->count + 2) * sizeof *r->line);
        r->line[r->count++] = line;
    }
    free(line); /* getline allocates at the end of the file as well */
    fclose(f);
    return 0;
}

void record_free(struct record *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->line[i]);
    free(r->line);
}

/* The rows of one case lie together. */
static size_t rows_of(const struct record *r, const char *name, size_t *first)
{
    size_t n = strlen(name), count = 0;

    for (size_t i = 0; i < r->count; i++)
        if (!strncmp(r->line[i], name, n) && r->line[i][n] == '\t') {
            if (!count)
                *first = i;
            count++;
        }
    return count;
}

size_t record_compare(const struct record *want, const struct record *got, const char *name,
                      size_t *compared)
{
    size_t wf = 0, gf = 0, wn = rows_of(want, name, &wf), gn = rows_of(got, name, &gf), equal = 0;
    size_t most = wn > gn ? wn : gn;

    for (size_t i = 0; i < most; i++) {
        const char *w = i < wn ? want->line[wf + i] : "(no row)";
        const char *g = i < gn ? got->line[gf + i] : "(no row)";

        if (!strcmp(w, g))
            equal++;
        else
            printf("# recorded: %s\n#     here: %s\n", w, g);
    }
    *compared += most;
    return equal;
}
