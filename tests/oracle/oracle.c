/* SPDX-License-Identifier: MIT */
/*
 * Replays on the fake what was measured on a CUDA driver, call by call, from cases.tsv: our code
 * must be the one written there, and where it is not CUDA's a reason must stand beside it. Every id
 * of ids.txt must be there exactly once, as a case or with the reason why it cannot be one.
 */
#include "common.h"
#include "script.h"

#include <errno.h>

#define COLUMNS 5 /* id, script or "-", CUDA's code, our code, reason */

struct row {
    char *column[COLUMNS];
};

static char *read_whole(const char *dir, const char *name)
{
    char path[4096];
    FILE *file;
    char *text;
    long size;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "re");
    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(1);
    }
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) {
        printf("Bail out! %s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static size_t split_rows(char *text, struct row *rows, size_t room)
{
    size_t count = 0;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (*line == '#')
            continue;
        if (count == room) {
            printf("Bail out! more rows than the program has room for\n");
            exit(1);
        }
        for (unsigned i = 0; i < COLUMNS; i++) {
            char *tab = strchr(line, '\t');

            rows[count].column[i] = line;
            if (tab)
                *tab = '\0';
            line = tab ? tab + 1 : line + strlen(line);
        }
        count++;
    }
    return count;
}

static unsigned occurrences(const struct row *rows, size_t count, const char *id)
{
    unsigned n = 0;

    for (size_t i = 0; i < count; i++)
        n += strcmp(rows[i].column[0], id) == 0;
    return n;
}

static bool every_id_is_there_once(char *ids, const struct row *rows, size_t count)
{
    size_t known = 0;
    char *save = NULL;
    bool good = true;

    for (char *id = strtok_r(ids, "\n", &save); id; id = strtok_r(NULL, "\n", &save)) {
        unsigned n = occurrences(rows, count, id);

        known++;
        if (n != 1)
            printf("# %s stands %u times in cases.tsv\n", id, n);
        good &= n == 1;
    }
    if (known != count)
        printf("# %zu ids, %zu rows\n", known, count);
    return good && known == count;
}

/* A difference needs a reason, and so does a row that is not a case. */
static bool every_difference_has_a_reason(const struct row *rows, size_t count)
{
    bool good = true;

    for (size_t i = 0; i < count; i++) {
        bool same = strcmp(rows[i].column[2], rows[i].column[3]) == 0;
        bool played = strcmp(rows[i].column[1], "-") != 0;

        if ((!same || !played) && rows[i].column[4][0] == '\0') {
            printf("# %s has no reason\n", rows[i].column[0]);
            good = false;
        }
    }
    return good;
}

/* Sanitizers keep their shadow where a case may want a range of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif

static bool needs_taken_address(const char *script)
{
#ifdef SANITIZER
    const char *equal = strstr(script, "equal r0 ");

    return equal && equal[9] >= '0' && equal[9] <= '9';
#else
    return false;
#endif
}

static bool play(const struct row *row)
{
    char text[768] = "";
    const char *got = script_run(row->column[1], text, sizeof(text));

    if (!got)
        printf("# %s: %s\n", row->column[0], text[0] ? text : "the script has no case");
    else if (strcmp(got, row->column[3]) != 0)
        printf("# %s: gave %s, written %s; %s\n", row->column[0], got, row->column[3],
               kfd_error_text());
    return got && strcmp(got, row->column[3]) == 0;
}

int main(int argc, char **argv)
{
    static struct row rows[1024];
    size_t count, number = 2, same = 0, different = 0, played = 0;
    bool good, complete, reasoned;

    if (argc < 2) {
        fprintf(stderr, "usage: oracle DIRECTORY [machine]\n");
        return 2;
    }
    machine_choose(argc - 1, argv + 1, "mi300x:8");
    if (!machine.fake) {
        printf("1..0 # SKIP the cases look through the fake's page tables\n");
        return 0;
    }
    HIP_OK(hipGetDeviceCount(&machine.devices));
    count = split_rows(read_whole(argv[1], "cases.tsv"), rows, COUNT_OF(rows));
    for (size_t i = 0; i < count; i++)
        played += strcmp(rows[i].column[1], "-") != 0;
    printf("1..%zu\n", played + 2);
    complete = every_id_is_there_once(read_whole(argv[1], "ids.txt"), rows, count);
    printf("%s 1 - every measured id stands once\n", complete ? "ok" : "not ok");
    reasoned = every_difference_has_a_reason(rows, count);
    printf("%s 2 - every difference has a reason\n", reasoned ? "ok" : "not ok");
    good = complete && reasoned;
    for (size_t i = 0; i < count; i++) {
        bool fine;

        if (strcmp(rows[i].column[1], "-") == 0)
            continue;
        if (needs_taken_address(rows[i].column[1])) {
            printf("ok %zu - %s # SKIP the sanitizer has that address\n", ++number,
                   rows[i].column[0]);
            continue;
        }
        fine = play(&rows[i]);
        good &= fine;
        same += strcmp(rows[i].column[2], rows[i].column[3]) == 0;
        different += strcmp(rows[i].column[2], rows[i].column[3]) != 0;
        printf("%s %zu - %s\n", fine ? "ok" : "not ok", ++number, rows[i].column[0]);
    }
    printf("# %zu ids: %zu played (%zu with CUDA's code, %zu with another for a stated reason), "
           "%zu not expressible\n",
           count, played, same, different, count - played);
    return good ? 0 : 1;
}
