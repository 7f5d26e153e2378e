/* SPDX-License-Identifier: MIT */
/*
 * The main job, as `kfdirect demo` does it: one large range that grows, has its middle exchanged,
 * is shared and goes, with every page of it read through the page tables.
 */
#include "hip.h"

#define RW hipMemAccessFlagsProtReadWrite

struct piece {
    char name;
    int gpu;
    size_t at, size;
    hipMemGenericAllocationHandle_t handle;
};

static void add(struct lib *l, struct piece *p, char *base)
{
    p->handle = hip_create(l, cts_text("create %c", p->name), p->gpu, p->size);
    LIB_HIP(l, "map", hipSuccess, hipMemMap(base + p->at, p->size, 0, p->handle, 0), "-");
    hip_access(l, "open to its GPU", hipSuccess, base + p->at, p->size, p->gpu, RW);
}

/* Every page on the piece's GPU, none on the others, nothing behind it. */
static void check(struct lib *l, const struct piece *p)
{
    for (uint32_t gpu = 0; gpu < l->c->gpus; gpu++) {
        if ((int)gpu == p->gpu)
            lib_pages(l, cts_text("%c on GPU %u", p->name, gpu), gpu, p->name, l->base + p->at,
                      p->size);
        else
            lib_look(l, cts_text("%c on GPU %u", p->name, gpu), gpu, l->base + p->at);
    }
}

static void check_all(struct lib *l, const struct piece *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (p[i].handle)
            check(l, &p[i]);
        else
            lib_look_around(l, cts_text("%c is out", p[i].name), (uint32_t)p[i].gpu,
                            l->base + p[i].at, p[i].size);
}

static void write_all(struct lib *l, const struct piece *p, unsigned n, char *base)
{
    for (unsigned i = 0; i < n; i++)
        if (p[i].handle)
            hip_stamp(l, p[i].name, base + p[i].at, p[i].size);
}

struct shared {
    struct piece piece;
    int fd;
};

static void child(struct cts *c, void *arg)
{
    struct shared *s = arg;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, s->piece.size);
    LIB_HIP(&l, "child: import", hipSuccess,
            hipMemImportFromShareableHandle(&s->piece.handle, (void *)(uintptr_t)s->fd,
                                            hipMemHandleTypePosixFileDescriptor),
            "-");
    hip_give(&l, s->piece.handle, 0, base, s->piece.size);
    lib_pages(&l, "child: every page", 0, s->piece.name, l.base, s->piece.size);
    hip_stamp(&l, 'S', base, s->piece.size);
    hip_release(&l, s->piece.handle);
    LIB_HIP(&l, "child: unmap", hipSuccess, hipMemUnmap(base, s->piece.size), "-");
}

static void share(struct lib *l, const struct piece *p, char *base)
{
    struct shared s = {*p, -1};

    LIB_HIP(l, "export", hipSuccess,
            hipMemExportToShareableHandle(&s.fd, p->handle, hipMemHandleTypePosixFileDescriptor, 0),
            "-");
    cts_fork(l->c, child, &s);
    close(s.fd);
    lib_pages(l, "what the child wrote", 0, 'S', l->base + p->at, p->size);
    hip_stamp(l, p->name, base + p->at, p->size);
}

static void main_job(struct cts *c)
{
    struct piece p[] = {
        {'A', 0, 0, MiB(2), NULL},
        {'B', 0, MiB(2), MiB(2), NULL},
        {'C', 0, MiB(4), MiB(4), NULL},
        {'D', c->gpus > 1, MiB(8), MiB(2), NULL},
    };
    const unsigned n = sizeof p / sizeof p[0];
    void *range = NULL;
    size_t size;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    /* A sanitizer leaves little below 2^40. */
    size = c->gpu[0].va_limit >> 40 ? (size_t)64 << 30 : MiB(512);
    LIB_HIP(&l, "reserve", hipSuccess, hipMemAddressReserve(&range, size, 0, NULL, 0), "-");
    base = range;
    l.base = (uintptr_t)base;
    for (unsigned i = 0; i < n; i++)
        add(&l, &p[i], base);
    hip_access(&l, "open B to the CPU", hipSuccess, base + p[1].at, p[1].size, -1, RW);
    write_all(&l, p, n, base);
    check_all(&l, p, n);
    lib_stamp_at(base + p[1].at, 'B', p[1].size, 0);
    check(&l, &p[1]);
    cts_row(c, "the CPU", 0, 0, "can %s in B, %s in A, %s behind D",
            lib_cpu_rights(l.base + MiB(3)), lib_cpu_rights(l.base),
            lib_cpu_rights(l.base + MiB(10)));
    for (int i = 1; i < 3; i++) {
        LIB_HIP(&l, cts_text("take %c out", p[i].name), hipSuccess,
                hipMemUnmap(base + p[i].at, p[i].size), "-");
        hip_release(&l, p[i].handle);
        p[i].handle = NULL;
    }
    check_all(&l, p, n);
    cts_row(c, "the CPU", 0, 0, "can %s where B was", lib_cpu_rights(l.base + MiB(3)));
    p[1] = (struct piece){'E', 0, MiB(2), MiB(4), NULL};
    p[2] = (struct piece){'F', 0, MiB(6), MiB(2), NULL};
    add(&l, &p[1], base);
    add(&l, &p[2], base);
    write_all(&l, p, n, base);
    check_all(&l, p, n);
    share(&l, &p[1], base);
    check_all(&l, p, n);
    LIB_HIP(&l, "unmap all", hipSuccess, hipMemUnmap(base, MiB(10)), "-");
    for (unsigned i = 0; i < n; i++) {
        hip_release(&l, p[i].handle);
        p[i].handle = NULL;
    }
    check_all(&l, p, n);
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, size), "used=%lld",
            lib_used(&l, l.start));
}

const struct cts_case cts_demo_cases[] = {
    {"demo.main_job", CTS_LARGE_BAR, main_job},
    {0},
};
