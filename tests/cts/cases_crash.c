/* SPDX-License-Identifier: MIT */
/* Requests that take an unmodified kernel down. They run only where KFDIRECT_CTS_CRASH names them,
 * one machine each. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <sys/wait.h>

#include "hold.h"

enum {
    MAP = 1
};

#define VRAM (KFD_MEM_VRAM | CTS_RW)
#define VRAM_CLEARED (1u << 3) /* of GEM_CREATE */

/* A GPU that the process has not acquired, where nothing looks. */
static uint64_t first_only(struct cts *c)
{
    uint64_t h;

    cts_crashes(c);
    cts_open(c);
    cts_acquire(c, "acquire the first only", 0, c->gpu[0].drm, c->gpu[0].id);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    return h;
}

static void unmap_unacquired(struct cts *c)
{
    uint64_t h = first_only(c);

    cts_unmap(c, "unmap from both", CTS_ANY, h, 0, CTS_IDS(c->gpu[0].id, c->gpu[1].id));
}

static void flush_unacquired(struct cts *c)
{
    uint64_t h = first_only(c);

    cts_flush(c, "flush-only MAP of both", CTS_ANY, h, CTS_IDS(c->gpu[0].id, c->gpu[1].id));
}

/* The kernel knows of memory that it has cleared already; what such buffers leave it has not. */
static void dirty(struct cts *c)
{
    struct drm_gem_close gem[CTS_MAX_GPUS * 16];
    unsigned n = 0;

    for (; n < sizeof gem / sizeof gem[0] && n < c->gpu[0].vram / MiB(8); n++) {
        union drm_amdgpu_gem_create a = {
            .in = {.bo_size = MiB(8), .domains = AMDGPU_GEM_DOMAIN_VRAM}};

        if (cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CREATE, &a) < 0)
            break;
        gem[n] = (struct drm_gem_close){.handle = a.out.handle};
    }
    while (n--)
        cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CLOSE, &gem[n]);
}

/* Whether a process comes to wait for the engines. */
static bool waits_for_engines(pid_t pid)
{
    char path[32], text[64];

    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    for (int i = 0; i < 300; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

        close(fd);
        text[n > 0 ? n : 0] = '\0';
        if (!strcmp(text, "dma_fence_default_wait"))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* Maps one buffer after the other until one has waited to be cleared: some get what the kernel has
 * kept cleared. */
static void map_cleared(struct cts *c)
{
    struct timespec before, after = {0};

    for (uint64_t at = c->va + MiB(512); at < c->va + MiB(512) + c->gpu[0].vram; at += MiB(2)) {
        union drm_amdgpu_gem_create a = {.in = {.bo_size = MiB(2),
                                                .domains = AMDGPU_GEM_DOMAIN_VRAM,
                                                .domain_flags = VRAM_CLEARED}};
        struct drm_amdgpu_gem_va m = {
            .operation = MAP, .flags = 6, .va_address = at, .map_size = MiB(2)};

        if (cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CREATE, &a) < 0)
            return;
        m.handle = a.out.handle;
        clock_gettime(CLOCK_MONOTONIC, &before);
        cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_VA_OLD, &m);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if ((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >
            300)
            return;
    }
}

/* A process of its own that keeps the lock of the VM until the engines run. */
static pid_t keep_lock(struct cts *c)
{
    pid_t pid;

    dirty(c);
    if (hold_start(2000) < 0)
        cts_skip(c, "the engines cannot be held");
    pid = fork();
    if (pid == 0) {
        map_cleared(c);
        _exit(0);
    }
    if (!waits_for_engines(pid))
        cts_skip(c, "no process waits for the engines");
    return pid;
}

static void nothing(int sig)
{
}

/* A buffer that has been mapped, so that FREE wants the lock of the VM. */
static uint64_t mapped_once(struct cts *c)
{
    uint64_t h;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), VRAM);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    return h;
}

static void arm(unsigned ms)
{
    struct sigaction s = {.sa_handler = nothing};
    struct itimerspec t = {.it_value.tv_nsec = ms * 1000000L};
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;

    sigaction(SIGUSR1, &s, NULL);
    if (timer_create(CLOCK_MONOTONIC, &e, &timer) == 0)
        timer_settime(timer, 0, &t, NULL);
}

/* With a signal on its way, FREE gives up half done; the next one takes apart what is apart. */
static void free_interrupted(struct cts *c)
{
    uint64_t h;

    cts_crashes(c);
    h = mapped_once(c);
    keep_lock(c);
    arm(100);
    cts_free(c, "FREE, interrupted", CTS_ANY, h);
    cts_row(c, "the lock was kept", 0, 0, "%s", hold_on() ? "yes" : "no");
    hold_end();
    cts_log("cts: FREE again");
    cts_free(c, "FREE again", CTS_ANY, h);
}

/* The library's rule: no signal can come. */
static void free_unsignalled(struct cts *c)
{
    sigset_t all, old;
    uint64_t h;
    pid_t pid;

    h = mapped_once(c);
    pid = keep_lock(c);
    arm(100);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    cts_free(c, "FREE with signals blocked waits for the lock", 0, h);
    cts_row(c, "it was kept until the engines ran", 0, 0, "%s", hold_on() ? "no" : "yes");
    sigprocmask(SIG_SETMASK, &old, NULL);
    cts_free(c, "the handle is gone", -EINVAL, h);
    waitpid(pid, NULL, 0);
    hold_end();
}

const struct cts_case cts_crash_cases[] = {
    {"crash.unmap_unacquired", CTS_PEER | CTS_DRIVER, unmap_unacquired},
    {"crash.flush_unacquired", CTS_PEER | CTS_DRIVER, flush_unacquired},
    {"crash.free_interrupted", CTS_DRIVER, free_interrupted},
    {"crash.free_unsignalled", CTS_DRIVER, free_unsignalled},
    {0},
};
