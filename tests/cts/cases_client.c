/* SPDX-License-Identifier: MIT */
/*
 * What real programs do with the HIP calls, in short and in the size of a small card; tests/clients
 * has them at full length. After each habit the page tables are read.
 */
#include <sys/syscall.h>

#include "hip.h"

#define MANY 12
#define RW hipMemAccessFlagsProtReadWrite

static unsigned descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* One unit of a client: made, mapped, opened to device 0, written. */
static hipMemGenericAllocationHandle_t unit(struct lib *l, char name, char *at, size_t size)
{
    hipMemGenericAllocationHandle_t h = hip_create(l, cts_text("create %c", name), 0, size);

    hip_give(l, h, name, at, size);
    return h;
}

static void unmap(struct lib *l, const char *step, void *at, size_t size)
{
    LIB_HIP(l, step, hipSuccess, hipMemUnmap(at, size), "used=%lld", lib_used(l, l->start));
}

/* comfy-aimdo: a full card gives up one page, over whose addresses a mapping is laid, and the next
 * one fits in its place. */
static void comfy(struct cts *c)
{
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, RW};
    hipMemGenericAllocationHandle_t page[64] = {NULL};
    hipMemAllocationProp prop = hip_prop(0);
    hipError_t got = hipSuccess;
    struct lib l;
    char *base;
    int n = 0;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(256));
    for (; n < 64 && got == hipSuccess; n++) {
        char *at = base + MiB(4) * n;

        got = hipMemCreate(&page[n], MiB(4), &prop, 0);
        if (got == hipSuccess && (got = hipMemMap(at, MiB(4), 0, page[n], 0)) == hipSuccess &&
            (got = hipMemSetAccess(at, MiB(4), &access, 1)) != hipSuccess)
            (void)hipMemUnmap(at, MiB(4));
        if (got != hipSuccess && page[n])
            (void)hipMemRelease(page[n]);
    }
    lib_requests(&l);
    cts_row_named(c, "fill the card", hipGetErrorName(hipErrorOutOfMemory), hipGetErrorName(got),
                  "-");
    n--;
    unmap(&l, "evict the first page", base, MiB(4));
    LIB_ROW(&l, "lay a mapping over it", 0,
            c->sys->ops->map_pages(c->sys, base, MiB(4), PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0,
                                   &(void *){NULL}),
            "-");
    LIB_HIP(&l, "release it", hipSuccess, hipMemRelease(page[0]), "-");
    lib_look(&l, "the page", 0, l.base);
    LIB_HIP(&l, "create the next", hipSuccess, hipMemCreate(&page[0], MiB(4), &prop, 0), "-");
    hip_give(&l, page[0], 'N', base, MiB(4));
    lib_look_around(&l, "in its place", 0, l.base, MiB(4));
    (void)hipMemUnmap(base, MiB(256));
    for (int i = 0; i < n; i++)
        (void)hipMemRelease(page[i]);
    lib_requests(&l);
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, MiB(256)), "used=%lld",
            lib_used(&l, l.start));
}

/* vectorAddMMAP: one range, a stripe of each device, one grant for all of them over all of it. */
static void stripes(struct cts *c)
{
    hipMemAccessDesc all[CTS_MAX_GPUS];
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    for (uint32_t d = 0; d < c->gpus; d++) {
        hipMemGenericAllocationHandle_t h =
            hip_create(&l, cts_text("create on %u", d), (int)d, MiB(2));

        LIB_HIP(&l, "map", hipSuccess, hipMemMap(base + MiB(2) * d, MiB(2), 0, h, 0), "-");
        hip_release(&l, h);
        all[d] = (hipMemAccessDesc){{hipMemLocationTypeDevice, (int)d}, RW};
    }
    LIB_HIP(&l, "grant all to all", c->gpus == 1 ? hipSuccess : hipErrorInvalidValue,
            hipMemSetAccess(base, MiB(2) * c->gpus, all, c->gpus), "-");
    for (uint32_t d = 0; d < c->gpus; d++) {
        hip_access(&l, "grant its own", hipSuccess, base + MiB(2) * d, MiB(2), (int)d, RW);
        hip_stamp(&l, (char)('A' + d), base + MiB(2) * d, MiB(2));
    }
    for (uint32_t d = 0; d < c->gpus; d++)
        lib_look_around(&l, cts_text("stripe %u", d), d, l.base + MiB(2) * d, MiB(2));
    unmap(&l, "unmap all", base, MiB(2) * c->gpus);
    for (uint32_t d = 0; d < c->gpus; d++)
        lib_look(&l, cts_text("stripe %u", d), d, l.base + MiB(2) * d);
}

/* kvcached: one zero page in every slot, exchanged for pages of their own and back. */
static void zero_page(struct cts *c)
{
    hipMemGenericAllocationHandle_t zero, page;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    zero = hip_create(&l, "create the zero page", 0, MiB(2));
    for (int i = 0; i < 6; i++)
        LIB_HIP(&l, "map it", hipSuccess, hipMemMap(base + MiB(2) * i, MiB(2), 0, zero, 0), "-");
    hip_access(&l, "open all slots", hipSuccess, base, MiB(12), 0, RW);
    hip_stamp(&l, 'Z', base, MiB(2));
    lib_look_each(&l, 7, MiB(2));
    unmap(&l, "take slot 2", base + MiB(4), MiB(2));
    page = unit(&l, 'P', base + MiB(4), MiB(2));
    lib_look_each(&l, 7, MiB(2));
    unmap(&l, "give slot 2 back", base + MiB(4), MiB(2));
    LIB_HIP(&l, "map the zero page", hipSuccess, hipMemMap(base + MiB(4), MiB(2), 0, zero, 0), "-");
    hip_access(&l, "open it", hipSuccess, base + MiB(4), MiB(2), 0, RW);
    hip_release(&l, page);
    lib_look_each(&l, 7, MiB(2));
    unmap(&l, "unmap all", base, MiB(12));
    lib_look_each(&l, 7, MiB(2));
    hip_release(&l, zero);
}

/* kvcached's benchmark: many small handles, none of which costs a descriptor. */
static void many(struct cts *c)
{
    hipMemGenericAllocationHandle_t h[MANY];
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, RW};
    hipMemAllocationProp prop = hip_prop(0);
    unsigned before, bad = 0;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    before = descriptors();
    for (int i = 0; i < MANY; i++)
        bad += hipMemCreate(&h[i], MiB(2), &prop, 0) != hipSuccess;
    for (int i = 0; i < MANY; i++)
        bad += hipMemMap(base + MiB(2) * i, MiB(2), 0, h[i], 0) != hipSuccess;
    for (int i = 0; i < MANY; i++)
        bad += hipMemSetAccess(base + MiB(2) * i, MiB(2), &access, 1) != hipSuccess;
    lib_row(&l, "create, map and open them", 0, bad ? -EIO : 0, "used=%lld, %u more descriptors",
            lib_used(&l, l.start), descriptors() - before);
    for (int i = 0; i < MANY; i++)
        hip_stamp(&l, (char)('A' + i), base + MiB(2) * i, MiB(2));
    lib_look_each(&l, MANY + 1, MiB(2));
    for (int i = 0; i < MANY; i++)
        bad += hipMemUnmap(base + MiB(2) * i, MiB(2)) != hipSuccess;
    for (int i = 0; i < MANY; i++)
        bad += hipMemRelease(h[i]) != hipSuccess;
    lib_requests(&l);
    cts_row(c, "all given back", 0, bad ? -EIO : 0, "used=%lld", lib_used(&l, l.start));
    lib_look_each(&l, MANY + 1, MiB(2));
}

/* llama.cpp: a pool that grows at its end and lives by its mappings. */
static void pool(struct cts *c)
{
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(256));
    for (int i = 0; i < 3; i++) {
        hip_release(&l, unit(&l, (char)('A' + i), base + MiB(4) * i, MiB(4)));
        lib_look_each(&l, 4, MiB(4));
    }
    unmap(&l, "unmap it whole", base, MiB(12));
    lib_look_each(&l, 4, MiB(4));
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, MiB(256)), "-");
}

/* MORI, rocSHMEM: every rank has a slot for every other at equal offsets. */
static void second_rank(struct cts *c, void *arg)
{
    hipMemGenericAllocationHandle_t other = NULL;
    int *fd = arg;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    hip_release(&l, unit(&l, 'B', base + MiB(16), MiB(2)));
    LIB_HIP(&l, "rank 1: import", hipSuccess,
            hipMemImportFromShareableHandle(&other, (void *)(uintptr_t)*fd,
                                            hipMemHandleTypePosixFileDescriptor),
            "-");
    hip_give(&l, other, 0, base, MiB(2));
    hip_release(&l, other);
    lib_look(&l, "rank 1: slot 0", 0, l.base);
    lib_look(&l, "rank 1: slot 1", 0, l.base + MiB(16));
    hip_stamp(&l, 'C', base, MiB(2));
    unmap(&l, "rank 1: unmap both", base, MiB(18));
    lib_look(&l, "rank 1: slot 0", 0, l.base);
    lib_look(&l, "rank 1: slot 1", 0, l.base + MiB(16));
}

static void ranks(struct cts *c)
{
    hipMemGenericAllocationHandle_t h;
    struct lib l;
    char *base;
    int fd = -1;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(64));
    h = unit(&l, 'A', base, MiB(2));
    hip_access(&l, "open to the CPU", hipSuccess, base, MiB(2), -1, RW);
    LIB_HIP(&l, "rank 0: export", hipSuccess,
            hipMemExportToShareableHandle(&fd, h, hipMemHandleTypePosixFileDescriptor, 0), "-");
    cts_fork(c, second_rank, &fd);
    close(fd);
    lib_look(&l, "rank 0: slot 0", 0, l.base);
    cts_row(c, "rank 0: loaded by the CPU", 0, 0, "%s", lib_stamp_text(*(uint32_t *)(void *)base));
    unmap(&l, "rank 0: unmap", base, MiB(2));
    LIB_HIP(&l, "free the addresses first", hipSuccess, hipMemAddressFree(base, MiB(64)), "-");
    hip_release(&l, h);
}

/* PyTorch: holes are refilled lowest first; another process takes a unit over by its number. */
struct number {
    pid_t pid;
    int fd;
};

static void taker(struct cts *c, void *arg)
{
    const struct number *n = arg;
    int pidfd = (int)syscall(SYS_pidfd_open, n->pid, 0);
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, n->fd, 0);
    hipMemGenericAllocationHandle_t h = NULL;
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    cts_row(c, "child: pidfd_getfd", 0, fd < 0 ? -errno : 0, "-");
    base = hip_reserve(&l, MiB(64));
    LIB_HIP(&l, "child: import", hipSuccess,
            hipMemImportFromShareableHandle(&h, (void *)(uintptr_t)fd,
                                            hipMemHandleTypePosixFileDescriptor),
            "-");
    hip_give(&l, h, 0, base, MiB(2));
    lib_look_around(&l, "child: the unit", 0, l.base, MiB(2));
    hip_release(&l, h);
    unmap(&l, "child: unmap", base, MiB(2));
}

static void expandable(struct cts *c)
{
    hipMemGenericAllocationHandle_t h[6];
    struct number n = {.pid = getpid()};
    struct lib l;
    char *base;

    lib_hip_start(&l, c);
    base = hip_reserve(&l, MiB(192));
    for (int i = 0; i < 6; i++)
        h[i] = unit(&l, (char)('A' + i), base + MiB(2) * i, MiB(2));
    lib_look_each(&l, 7, MiB(2));
    for (int i = 1; i < 5; i += i == 1 ? 2 : 1) {
        unmap(&l, cts_text("give up %d", i), base + MiB(2) * i, MiB(2));
        hip_release(&l, h[i]);
    }
    lib_look_each(&l, 7, MiB(2));
    for (int i = 1; i < 4; i += 2)
        h[i] = unit(&l, (char)('P' + i), base + MiB(2) * i, MiB(2));
    lib_look_each(&l, 7, MiB(2));
    LIB_HIP(&l, "export", hipSuccess,
            hipMemExportToShareableHandle(&n.fd, h[3], hipMemHandleTypePosixFileDescriptor, 0),
            "-");
    cts_fork(c, taker, &n);
    close(n.fd);
    for (int i = 0; i < 6; i++)
        if (i != 4) {
            unmap(&l, "unmap a unit", base + MiB(2) * i, MiB(2));
            hip_release(&l, h[i]);
        }
    lib_look_each(&l, 7, MiB(2));
    LIB_HIP(&l, "free the addresses", hipSuccess, hipMemAddressFree(base, MiB(192)), "-");
}

const struct cts_case cts_client_cases[] = {
    {"client.comfy_pages", CTS_LARGE_BAR, comfy},
    {"client.cuda_stripes", CTS_LARGE_BAR, stripes},
    {"client.kvcached_zero_page", CTS_LARGE_BAR, zero_page},
    {"client.kvcached_many", CTS_LARGE_BAR, many},
    {"client.llamacpp_pool", CTS_LARGE_BAR, pool},
    {"client.mori_ranks", CTS_LARGE_BAR, ranks},
    {"client.pytorch_expandable", CTS_LARGE_BAR, expandable},
    {0},
};
