/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cts/record.h"

static struct {
    int rows; /* a memory file, so that forked children write there as well */
    char name[128];
    const char *names[64]; /* in the order they began */
    size_t count;
} witness = {.rows = -1};

bool witness_on_driver(void)
{
    return getenv("KFDIRECT_REAL") != NULL;
}

void witness_begin(const char *program, const char *test)
{
    if (witness.rows < 0) {
        witness.rows = memfd_create("rows", MFD_CLOEXEC);
        assert_true(witness.rows >= 0 && fcntl(witness.rows, F_SETFL, O_APPEND) == 0);
    }
    snprintf(witness.name, sizeof(witness.name), "%s.%s", program,
             strncmp(test, "test_", 5) == 0 ? test + 5 : test);
    for (size_t i = 0; i < witness.count; i++)
        if (strcmp(witness.names[i], witness.name) == 0)
            return;
    assert_true(witness.count < 64);
    witness.names[witness.count] = strdup(witness.name);
    assert_non_null(witness.names[witness.count++]);
}

void witness_row(const char *step, const char *result, const char *fmt, ...)
{
    char out[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out, sizeof(out), fmt, ap);
    va_end(ap);
    dprintf(witness.rows, "%s\t%s\t%s\t%s\n", witness.name, step, result, out);
}

int witness_errno(const char *step, int ret)
{
    const char *name = ret < 0 ? strerrorname_np(-ret) : "0";

    witness_row(step, name != NULL ? name : "?", "-");
    return ret;
}

/* What a driver says of the render node of a GPU: other devices may have taken the first minors. */
static uint32_t minor_of(uint32_t node)
{
    char path[96], key[64];
    unsigned long long value;
    uint32_t minor = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/properties", node);
    f = fopen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%63s %llu", key, &value) == 2)
        if (strcmp(key, "drm_render_minor") == 0)
            minor = (uint32_t)value;
    fclose(f);
    return minor;
}

struct fake_profile *witness_world(void)
{
    struct fake_profile *p = world();
    unsigned long long kib = 0;
    FILE *f;

    if (!witness_on_driver())
        return p;
    f = fopen("/proc/meminfo", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "MemTotal: %llu kB", &kib), 1);
    fclose(f);
    assert_int_equal(p->cpu_count, 1);
    p->cpus[0].ram = kib * 1024;
    p->cpus[0].cores = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
    for (uint32_t g = 0; g < p->gpu_count; g++)
        p->gpus[g].render_minor = minor_of(fake_profile_gpu_node(p, g));
    return p;
}

static void test_rows_are_those_recorded_on_the_driver(void **state)
{
    struct record want, got;
    char path[64];
    size_t compared = 0, equal = 0;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", witness.rows);
    assert_int_equal(record_load(&want, getenv("STRANGERS_EXPECT")), 0);
    assert_int_equal(record_load(&got, path), 0);
    for (size_t i = 0; i < witness.count; i++)
        equal += record_compare(&want, &got, witness.names[i], &compared);
    printf("# %zu rows, %zu compared, %zu equal\n", got.count, compared, equal);
    fflush(stdout);
    record_free(&want);
    record_free(&got);
    assert_true(compared > 0);
    assert_int_equal(equal, compared);
}

static void keep_rows(const char *path)
{
    char buf[65536];
    ssize_t n;
    off_t at = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    assert_true(fd >= 0);
    while ((n = pread(witness.rows, buf, sizeof(buf), at)) > 0) {
        for (ssize_t done = 0, k; done < n; done += k) {
            k = write(fd, buf + done, (size_t)(n - done));
            assert_true(k > 0);
        }
        at += n;
    }
    close(fd);
}

int witness_run(const struct CMUnitTest *tests, size_t count)
{
    const struct CMUnitTest last = cmocka_unit_test(test_rows_are_those_recorded_on_the_driver);
    struct CMUnitTest *all = calloc(count + 1, sizeof(*all));
    int failed;

    if (all == NULL)
        return 1;
    memcpy(all, tests, count * sizeof(*all));
    all[count] = last;
    failed = _cmocka_run_group_tests("tests", all, count + (getenv("STRANGERS_EXPECT") != NULL),
                                     NULL, NULL);
    if (getenv("STRANGERS_RECORD") != NULL)
        keep_rows(getenv("STRANGERS_RECORD"));
    free(all);
    return failed;
}
