/* SPDX-License-Identifier: MIT */
/*
 * cts [options] [NAME...]: runs the cases whose names begin with a NAME (all without one) and
 * prints TAP.
 *   --fake MACHINE    on the fake kernel instead of the driver, e.g. vega10-hollow
 *   --kernel VERSION  the fake's personality
 *   --record FILE     write the rows there
 *   --expect FILE     compare the rows with those recorded elsewhere
 *   --except NAME     leave out the cases whose names begin so; may be repeated
 *   --list            names only
 * Exit code: 0 all passed or skipped, 1 a case failed, 77 every case was skipped.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "cts.h"
#include "record.h"

static const struct cts_case *const tables[] = {
    cts_door_cases,        cts_dispatch_cases, cts_topology_cases, cts_query_cases,
    cts_vm_cases,          cts_alloc_cases,    cts_map_cases,      cts_share_cases,
    cts_gem_cases,         cts_gemva_cases,    cts_mmap_cases,     cts_event_cases,
    cts_queue_cases,       cts_peer_cases,     cts_trap_cases,     cts_late_cases,
    cts_silent_cases,      cts_crash_cases,    cts_foreign_cases,  cts_sdma_cases,
    cts_table_cases,       cts_resident_cases, cts_lib_kfd_cases,  cts_lib_vmm_cases,
    cts_lib_share_cases,   cts_hip_cases,      cts_hip_more_cases, cts_client_cases,
    cts_client_more_cases, cts_demo_cases,     cts_process_cases,  cts_order_cases,
    cts_random_cases,      cts_stranger_cases, cts_render_cases,
};

struct options {
    const char *machine, *kernel, *record, *expect;
    const char *except[32];
    int n_except;
    char **names;
    int n_names;
};

/* Seconds before a case is taken for hung. */
#define CASE_LIMIT 30

static bool wanted(const struct options *o, const char *name)
{
    for (int i = 0; i < o->n_except; i++)
        if (!strncmp(name, o->except[i], strlen(o->except[i])))
            return false;
    for (int i = 0; i < o->n_names; i++)
        if (!strncmp(name, o->names[i], strlen(o->names[i])))
            return true;
    return !o->n_names;
}

static void check_needs(struct cts *c, uint32_t needs)
{
    struct kfd_ioctl_get_version_args v = {0};
    int fd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        cts_skip(c, "/dev/kfd: %s", strerror(-fd));
    cts_request(c, fd, KFD_CODE_GET_VERSION, &v);
    c->sys->ops->close_fd(c->sys, fd);
    c->minor = v.minor_version;
    if (!(needs & CTS_NO_GPU) && !c->gpus)
        cts_skip(c, "no GPU");
    if (needs & CTS_PEER && c->gpus < 2)
        cts_skip(c, "one GPU only");
    if (needs & CTS_EXPORT && c->minor < 12)
        cts_skip(c, "KFD 1.%u has no EXPORT_DMABUF", c->minor);
    if (needs & CTS_GEM_VA && c->minor < 15)
        cts_skip(c, "KFD 1.%u does not keep GEM_VA mappings", c->minor);
    if (needs & CTS_LARGE_BAR && !c->gpu[0].large_bar)
        cts_skip(c, "the CPU does not see all VRAM");
    if (needs & CTS_DRIVER && c->fake)
        cts_skip(c, "not on the fake");
}

static void child(const struct options *o, const struct cts_case *k, struct cts_tally *t, int rows)
{
    struct cts c = {.tally = t, .rows = rows, .name = k->name, .kfd = -1};

    alarm(CASE_LIMIT);
    if (cts_ground_init(&c, o->machine, o->kernel) < 0)
        _exit(1);
    cts_ground_scan(&c);
    check_needs(&c, k->needs);
    k->run(&c);
    fflush(stdout);
    _exit(0);
}

/* The kernel takes a dead process's memory back some time later; until then the next case would see
 * the last one's. */
static void wait_gone(pid_t pid)
{
    char path[64];
    struct timespec pause = {.tv_nsec = 10000000};

    snprintf(path, sizeof path, "/sys/class/kfd/kfd/proc/%d", (int)pid);
    for (int i = 0; i < 300 && access(path, F_OK) == 0; i++)
        nanosleep(&pause, NULL);
}

static bool run_case(const struct options *o, const struct cts_case *k, struct cts_tally *t,
                     int rows)
{
    int status = 0;
    pid_t pid;

    memset(t, 0, sizeof *t);
    if (!o->machine)
        cts_log(cts_text("cts: %s", k->name));
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        child(o, k, t, rows);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (!o->machine)
        wait_gone(pid);
    if (WIFSIGNALED(status))
        printf("# %s: %s\n", k->name,
               WTERMSIG(status) == SIGALRM ? "hung" : strsignal(WTERMSIG(status)));
    if (t->skipped)
        dprintf(rows, "%s\t-\tSKIP\t%s\n", k->name, t->reason);
    return !status && !t->wrong;
}

static int copy_rows(int rows, const char *path)
{
    char buf[65536];
    ssize_t n;
    off_t at = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), ret = fd < 0;

    while (!ret && (n = pread(rows, buf, sizeof buf, at)) > 0) {
        for (ssize_t done = 0, k; !ret && done < n; done += k) {
            k = write(fd, buf + done, (size_t)(n - done));
            ret = k <= 0;
        }
        at += n;
    }
    if (fd >= 0)
        close(fd);
    return ret;
}

struct totals {
    unsigned n, failed, skipped;
    size_t rows, compared, equal;
};

static void report(const struct options *o, const struct cts_case *k, const struct cts_tally *t,
                   bool good, const struct record *want, int rows, struct totals *sum)
{
    size_t compared = 0, equal = 0;

    if (o->expect && !(o->machine && k->needs & CTS_DRIVER)) {
        struct record got;

        if (record_load(&got, cts_text("/proc/self/fd/%d", rows)) == 0) {
            equal = record_compare(want, &got, k->name, &compared);
            record_free(&got);
        }
        good = good && equal == compared;
    }
    sum->n++;
    sum->rows += t->rows;
    sum->compared += compared;
    sum->equal += equal;
    sum->skipped += t->skipped && good;
    sum->failed += !good;
    printf("%sok %u - %s", good ? "" : "not ", sum->n, k->name);
    if (t->skipped && good)
        printf(" # SKIP %s", t->reason);
    putchar('\n');
    fflush(stdout);
}

static int run_all(const struct options *o)
{
    struct cts_tally *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rows = memfd_create("rows", MFD_CLOEXEC);
    struct totals sum = {0};
    struct record want = {0};

    if (t == MAP_FAILED || rows < 0 || fcntl(rows, F_SETFL, O_APPEND) < 0)
        return 2;
    if (o->expect && record_load(&want, o->expect) < 0) {
        fprintf(stderr, "cts: cannot read %s\n", o->expect);
        return 2;
    }
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct cts_case *k = tables[i]; k->name; k++)
            if (wanted(o, k->name))
                report(o, k, t, run_case(o, k, t, rows), &want, rows, &sum);
    record_free(&want);
    printf("1..%u\n# %zu rows", sum.n, sum.rows);
    if (o->expect)
        printf(", %zu compared, %zu equal", sum.compared, sum.equal);
    putchar('\n');
    fflush(stdout);
    if (o->record && copy_rows(rows, o->record)) {
        fprintf(stderr, "cts: cannot write %s\n", o->record);
        return 2;
    }
    return sum.failed ? 1 : sum.skipped == sum.n ? 77 : 0;
}

static int list(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct cts_case *k = tables[i]; k->name; k++)
            printf("%s\n", k->name);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"fake", required_argument, NULL, 'f'},
        {"kernel", required_argument, NULL, 'k'},
        {"record", required_argument, NULL, 'r'},
        {"expect", required_argument, NULL, 'e'},
        {"except", required_argument, NULL, 'x'},
        {"list", no_argument, NULL, 'l'},
        {0},
    };
    struct options o = {0};

    for (int opt; (opt = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (opt) {
        case 'f':
            o.machine = optarg;
            break;
        case 'k':
            o.kernel = optarg;
            break;
        case 'r':
            o.record = optarg;
            break;
        case 'e':
            o.expect = optarg;
            break;
        case 'x':
            if (o.n_except == 32)
                return 2;
            o.except[o.n_except++] = optarg;
            break;
        case 'l':
            return list();
        default:
            return 2;
        }
    }
    o.names = argv + optind;
    o.n_names = argc - optind;
    return run_all(&o);
}
