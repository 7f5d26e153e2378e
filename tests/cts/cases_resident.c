/* SPDX-License-Identifier: MIT */
/*
 * What stays where it was when another process wants the memory. KFD's own accounting never lets
 * two processes ask for more than there is; buffers of the DRM side are outside it, so a child
 * presses with those.
 */
#include <stdio.h>
#include <time.h>
#include <sys/wait.h>

#include "cts.h"

enum {
    MAP = 1,
    UNMAP = 2
};

#define SIZE MiB(32)
#define VRAM (KFD_MEM_VRAM | KFD_MEM_PUBLIC | CTS_RW)

/* Fills the card with buffers of the DRM side and touches them; what is left is evicted for it. */
static void press(struct cts *c, uint64_t bytes)
{
    int drm = cts_open_render(c, 0);

    for (uint64_t done = 0; done < bytes; done += MiB(8)) {
        union drm_amdgpu_gem_create a = {.in = {
                                             .bo_size = MiB(8),
                                             .domains = AMDGPU_GEM_DOMAIN_VRAM,
                                             .domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED,
                                         }};
        union drm_amdgpu_gem_mmap m;
        void *p = NULL;

        if (cts_request(c, drm, DRM_CODE_GEM_CREATE, &a) < 0)
            break;
        m.in.handle = a.out.handle;
        m.in._pad = 0;
        if (cts_request(c, drm, DRM_CODE_GEM_MMAP, &m) >= 0 &&
            c->sys->ops->map_pages(c->sys, NULL, MiB(8), PROT_READ | PROT_WRITE, MAP_SHARED, drm,
                                   m.out.addr_ptr, &p) >= 0)
            memset(p, 0xff, MiB(8));
    }
}

/* The child presses, holds on until it is told, and dies. */
static pid_t presser(struct cts *c, uint64_t bytes, int *go)
{
    int ready[2], hold[2];
    char byte;
    pid_t pid;

    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(hold, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        close(hold[1]);
        press(c, bytes);
        if (write(ready[1], "", 1) != 1 || read(hold[0], &byte, 1) < 0)
            _exit(1);
        _exit(0);
    }
    close(ready[1]);
    close(hold[0]);
    if (read(ready[0], &byte, 1) != 1)
        pid = -1;
    close(ready[0]);
    *go = hold[1];
    return pid;
}

static void wait_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

/* Milliseconds this process's queues have been stopped on GPU 0; -1 where the kernel does not say.
 */
static long evicted_ms(struct cts *c)
{
    FILE *f = fopen(
        cts_text("/sys/class/kfd/kfd/proc/%d/stats_%u/evicted_ms", (int)getpid(), c->gpu[0].id),
        "r");
    long v = -1;

    if (f && fscanf(f, "%ld", &v) != 1)
        v = -1;
    if (f)
        fclose(f);
    return v;
}

static const char *domain(struct cts *c, uint64_t va)
{
    struct cts_pte p;

    if (cts_translate(c, 0, va, &p) < 0)
        return "?";
    return !p.page_size ? "not mapped" : p.system ? "system memory" : "VRAM";
}

struct subject {
    uint64_t h, offset;
    uint32_t gem;
    uint32_t *view;
};

static void fill(struct cts *c, struct subject *s, uint64_t offset)
{
    s->view =
        cts_mmap(c, "CPU view", 0, c->gpu[0].drm, offset, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (uint64_t i = 0; s->view && i < SIZE / 4; i += 1024)
        s->view[i] = (uint32_t)i ^ 0xa5a5a5a5;
}

static void map(struct cts *c, struct subject *s, int fd)
{
    s->gem = cts_prime(c, "PRIME", 0, c->gpu[0].drm, fd);
    cts_gem_va(c, "GEM_VA map", 0, c->gpu[0].drm, s->gem, MAP, c->va, 0, SIZE, 6);
}

static void subject_make(struct cts *c, struct subject *s)
{
    int fd;

    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    s->h = cts_alloc_mmap(c, "alloc without an address", 0, 0, 0, SIZE, VRAM, &s->offset);
    fd = cts_export(c, "export", 0, s->h);
    map(c, s, fd);
    cts_close(c, fd);
    fill(c, s, s->offset);
}

static bool intact(const struct subject *s)
{
    for (uint64_t i = 0; i < SIZE / 4; i += 1024)
        if (s->view[i] != ((uint32_t)i ^ 0xa5a5a5a5))
            return false;
    return true;
}

/* Whether the pages that the tables name hold what the CPU sees. */
static bool tables_true(struct cts *c, const struct subject *s)
{
    for (uint64_t at = 0; at < SIZE; at += MiB(2)) {
        struct cts_pte p;
        uint32_t word;

        if (cts_translate(c, 0, c->va + at, &p) < 0 || !p.page_size ||
            cts_peek(c, 0, &p, &word) < 0 || word != s->view[at / 4])
            return false;
    }
    return true;
}

static void look(struct cts *c, const struct subject *s, const char *when)
{
    const char *where = domain(c, c->va);
    bool right = tables_true(c, s), whole = intact(s);

    cts_row(c, when, 0, 0, "in %s, tables %s, content %s", where, right ? "right" : "wrong",
            whole ? "intact" : "lost");
}

/* Presses a mapped subject out, looks whether it comes back, and takes its mapping away. */
static void press_and_end(struct cts *c, const struct subject *s)
{
    int go;
    pid_t pid = presser(c, MiB(112), &go);

    wait_ms(800);
    look(c, s, "pressed, after the restore");
    close(go);
    waitpid(pid, NULL, 0);
    wait_ms(500);
    look(c, s, "after the other process is gone");
    cts_row(c, "its queues were stopped", 0, 0, "%s", evicted_ms(c) > 0 ? "yes" : "no");
    cts_gem_va(c, "unmap", 0, c->gpu[0].drm, s->gem, UNMAP, c->va, 0, SIZE, 0);
    cts_gem_close(c, "close", 0, c->gpu[0].drm, s->gem);
}

/* A handle without an address stays mapped through eviction as long as the KFD handle lives. */
static void kept(struct cts *c)
{
    struct subject s = {0};

    subject_make(c, &s);
    look(c, &s, "before");
    press_and_end(c, &s);
    cts_free(c, "free", 0, s.h);
}

/* Freed first, the mapping is nobody's. */
static void freed(struct cts *c)
{
    struct subject s = {0};
    pid_t pid;
    int go;

    subject_make(c, &s);
    cts_free(c, "free the KFD handle with the mapping left", 0, s.h);
    look(c, &s, "before");
    pid = presser(c, MiB(112), &go);
    wait_ms(800);
    look(c, &s, "pressed");
    close(go);
    waitpid(pid, NULL, 0);
    wait_ms(500);
    look(c, &s, "after the other process is gone");
    cts_row(c, "its queues were stopped", 0, 0, "%s", evicted_ms(c) > 0 ? "yes" : "no");
    cts_gem_va(c, "unmap", 0, c->gpu[0].drm, s.gem, UNMAP, c->va, 0, SIZE, 0);
    cts_gem_close(c, "close", 0, c->gpu[0].drm, s.gem);
}

struct shared {
    struct subject s;
    int fd;
    bool import; /* by KFD too, not only by PRIME */
};

/* Another process maps the buffer and is pressed. Its KFD is its own. */
static void second_child(struct cts *c, void *arg)
{
    struct shared *sh = arg;
    struct subject s = {0};

    cts_start(c);
    if (cts_walk_start(c) < 0)
        cts_skip(c, "the tables cannot be read");
    if (sh->import)
        s.h = cts_import(c, "KFD import without an address", 0, c->gpu[0].id, sh->fd, 0);
    map(c, &s, sh->fd);
    fill(c, &s, cts_gem_mmap(c, "mmap offset", 0, c->gpu[0].drm, s.gem));
    look(c, &s, "before");
    press_and_end(c, &s);
    if (sh->import)
        cts_free(c, "free the import", 0, s.h);
}

static void second(struct cts *c, bool import)
{
    struct shared sh = {.import = import};

    cts_start(c);
    sh.s.h = cts_alloc(c, "alloc in the first process", 0, 0, 0, SIZE, VRAM);
    sh.fd = cts_export(c, "export", 0, sh.s.h);
    cts_fork(c, second_child, &sh);
    cts_row(c, "the first one's queues were stopped", 0, 0, "%s", evicted_ms(c) > 0 ? "yes" : "no");
    cts_close(c, sh.fd);
    cts_free(c, "free", 0, sh.s.h);
}

/* Imported by PRIME alone, the second process's mapping is nobody's. */
static void second_prime(struct cts *c)
{
    second(c, false);
}

static void second_import(struct cts *c)
{
    second(c, true);
}

const struct cts_case cts_resident_cases[] = {
    {"resident.kept", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, kept},
    {"resident.freed", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, freed},
    {"resident.second_prime", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, second_prime},
    {"resident.second_import", CTS_GEM_VA | CTS_DRIVER | CTS_LARGE_BAR, second_import},
    {0},
};
