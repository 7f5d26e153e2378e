/* SPDX-License-Identifier: MIT */
/*
 * What the preload costs calls that have nothing to do with the fake: nanoseconds per call of this
 * program alone, with the preload, and with the preload once /dev/kfd is open. Each is the least of
 * several rounds' medians.
 *
 * Usage: bench_preload SAMPLES PRELOAD-LIBRARY
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 5

static char file[] = "/tmp/bench-preload-XXXXXX", folder[] = "/tmp/bench-preload-XXXXXX";
static const char *base; /* the file's name, without its folder */
static int fd;

static void open_close(void)
{
    close(open(file, O_RDONLY));
}

static void open_relative(void)
{
    close(open(base, O_RDONLY));
}

static void open_null(void)
{
    close(open("/dev/null", O_RDONLY));
}

static void stat_path(void)
{
    struct stat st;

    stat(file, &st);
}

static void fstat_fd(void)
{
    struct stat st;

    fstat(fd, &st);
}

static void access_path(void)
{
    (void)!access(file, R_OK);
}

static void read_byte(void)
{
    char byte;

    (void)!pread(fd, &byte, 1, 0);
}

static void read_end(void)
{
    char byte;

    (void)!read(fd, &byte, 1);
}

static void seek(void)
{
    lseek(fd, 0, SEEK_END);
}

static void control(void)
{
    int n;

    ioctl(fd, FIONREAD, &n);
}

static void map(void)
{
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), 4096);
}

static void duplicate(void)
{
    close(dup(fd));
}

static void list(void)
{
    DIR *dir = opendir(folder);

    while (dir != NULL && readdir(dir) != NULL)
        ;
    if (dir != NULL)
        closedir(dir);
}

static void stream(void)
{
    FILE *f = fopen(file, "r");

    if (f != NULL)
        fclose(f);
}

static void by_number(void)
{
    syscall(SYS_getppid);
}

static const struct {
    const char *name;
    void (*run)(void);
} calls[] = {
    {"open, close", open_close},
    {"open, close (relative)", open_relative},
    {"open, close (/dev/null)", open_null},
    {"fopen, fclose", stream},
    {"stat", stat_path},
    {"fstat", fstat_fd},
    {"access", access_path},
    {"pread", read_byte},
    {"read", read_end},
    {"lseek", seek},
    {"ioctl", control},
    {"mmap, munmap", map},
    {"dup, close", duplicate},
    {"opendir, readdir, closedir", list},
    {"syscall", by_number},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* In a child: one median per call, to the pipe. */
static void measure(size_t samples, int out)
{
    static struct bench bench;
    double medians[CALLS];

    fd = mkstemp(file);
    base = strrchr(file, '/') + 1;
    if (fd < 0 || write(fd, "byte", 4) != 4 || mkdtemp(folder) == NULL || chdir("/tmp") != 0)
        exit(1);
    for (size_t c = 0; c < CALLS; c++) {
        bench_start(&bench, calls[c].name, 0);
        for (size_t i = 0; i < samples; i++) {
            bench_begin(&bench);
            for (unsigned int k = 0; k < BENCH_BATCH; k++)
                calls[c].run();
            bench_end(&bench);
        }
        qsort(bench.samples, samples, sizeof(double), bench_compare);
        medians[c] = bench.samples[samples / 2];
    }
    unlink(file);
    rmdir(folder);
    exit(write(out, medians, sizeof(medians)) == sizeof(medians) ? 0 : 1);
}

enum how {
    ALONE,
    LOADED,
    IN_USE,
    HOWS
};

/* This program again, with or without the preload. */
static void again(enum how how, char **argv, double *medians)
{
    static char words[HOWS][8] = {"alone", "loaded", "in use"};
    char *child[] = {argv[0], argv[1], words[how], NULL};
    int pipes[2], status;
    pid_t pid;

    if (pipe(pipes) != 0 || (pid = fork()) < 0)
        exit(1);
    if (pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        if (how != ALONE)
            setenv("LD_PRELOAD", argv[2], 1);
        execv("/proc/self/exe", child);
        _exit(1);
    }
    close(pipes[1]);
    if (read(pipes[0], medians, CALLS * sizeof(*medians)) != (ssize_t)(CALLS * sizeof(*medians)) ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench_preload: no measurement\n");
        exit(1);
    }
    close(pipes[0]);
}

int main(int argc, char **argv)
{
    size_t samples = argc > 2 ? strtoull(argv[1], NULL, 0) : 0;
    double least[HOWS][CALLS], now[CALLS];

    if (samples == 0 || samples > BENCH_SAMPLES) {
        fprintf(stderr, "usage: bench_preload SAMPLES PRELOAD-LIBRARY\n");
        return 2;
    }
    if (strcmp(argv[2], "in use") == 0 && open("/dev/kfd", O_RDWR) < 0)
        return 1;
    if (strchr(argv[2], '/') == NULL)
        measure(samples, STDOUT_FILENO);
    setenv("KFDIRECT_FAKE", "mi210:1", 1);
    setenv("KFDIRECT_FAKE_SAID", "1", 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int how = 0; how < HOWS; how++) {
            again(how, argv, now);
            for (size_t c = 0; c < CALLS; c++) {
                if (round == 0 || now[c] < least[how][c])
                    least[how][c] = now[c];
            }
        }
    }
    printf("%-28s %8s %8s %8s\n", "ns per call", "alone", "loaded", "in use");
    for (size_t c = 0; c < CALLS; c++)
        printf("%-28s %8.0f %+8.0f %+8.0f\n", calls[c].name, least[ALONE][c],
               least[LOADED][c] - least[ALONE][c], least[IN_USE][c] - least[ALONE][c]);
    return 0;
}
