/* SPDX-License-Identifier: MIT */
/* ALLOC and FREE: what is checked, what is handed out, what is charged. */
#include "cts.h"

#define GTT (KFD_MEM_GTT | CTS_RW)
#define VRAM (KFD_MEM_VRAM | CTS_RW)

static void errors(struct cts *c)
{
    cts_start(c);
    cts_alloc(c, "size 0", -EINVAL, 0, c->va, 0, GTT);
    cts_alloc(c, "unknown GPU", -EINVAL, CTS_BAD_GPU, c->va, MiB(2), GTT);
    cts_alloc(c, "size 0 of an unknown GPU", -EINVAL, CTS_BAD_GPU, c->va, 0, GTT);
    cts_alloc(c, "no type", -EINVAL, 0, c->va, MiB(2), CTS_RW);
    cts_alloc(c, "1 TiB of VRAM", -ENOMEM, 0, c->va, MiB(1) << 20, VRAM);
    cts_alloc(c, "all of VRAM", -ENOMEM, 0, c->va, c->gpu[0].vram, VRAM);
    cts_alloc(c, "1 TiB of GTT", -ENOMEM, 0, c->va, MiB(1) << 20, GTT);
    cts_alloc(c, "a userptr at 0", -EINVAL, 0, c->va, MiB(2), KFD_MEM_USERPTR | CTS_RW);
    cts_alloc(c, "a doorbell of the wrong size", -EINVAL, 0, c->va, KiB(12),
              KFD_MEM_DOORBELL | CTS_RW);
    cts_alloc(c, "an MMIO page of the wrong size", -EINVAL, 0, c->va, KiB(8),
              KFD_MEM_MMIO_REMAP | CTS_RW);
}

static void userptr(struct cts *c)
{
    size_t size = KiB(64);
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uintptr_t)p, nothing = 0x10000, h;

    cts_start(c);
    memset(p, 0x5a, size);
    h = cts_alloc_mmap(c, "a userptr", 0, 0, c->va, size, KFD_MEM_USERPTR | CTS_RW, &at);
    cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
    if (c->minor >= 12)
        cts_export(c, "export", -EPERM, h);
    cts_free(c, "free", 0, h);
    cts_alloc_mmap(c, "a userptr where nothing is", -EFAULT, 0, c->va, size,
                   KFD_MEM_USERPTR | CTS_RW, &nothing);
    munmap(p, size);
}

/* ALLOC looks at no address; MAP does. */
static void addresses(struct cts *c)
{
    uint32_t id = c->gpu[0].id;
    const struct {
        const char *name;
        uint64_t va;
    } bad[] = {
        {"not on a page", c->va + 0x123},
        {"0", 0},
        {"in the upper half", 0xfffffffffffff000},
    };
    uint64_t first, second;

    cts_start(c);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t h = cts_alloc(c, cts_text("alloc at an address %s", bad[i].name), 0, 0, bad[i].va,
                               KiB(8), GTT);

        cts_map(c, cts_text("map at an address %s", bad[i].name), -EINVAL, h, 0, CTS_IDS(id));
        cts_free(c, "free", 0, h);
    }
    first = cts_alloc(c, "alloc", 0, 0, c->va, MiB(2), GTT);
    second = cts_alloc(c, "alloc at the same address", 0, 0, c->va, MiB(2), GTT);
    cts_map(c, "map the first", 0, first, 0, CTS_IDS(id));
    cts_map(c, "map the second", -EINVAL, second, 0, CTS_IDS(id));
    cts_unmap(c, "unmap the first", 0, first, 0, CTS_IDS(id));
    cts_map(c, "now the second", 0, second, 0, CTS_IDS(id));
    cts_unmap(c, "unmap the second", 0, second, 0, CTS_IDS(id));
    cts_free(c, "free the second", 0, second);
    cts_free(c, "free the first", 0, first);
}

/* Where the address space ends. Past the end the driver of 6.12 refuses nothing on gfx9. */
static void end_of_space(struct cts *c)
{
    static const uint8_t bits[] = {40, 47, 48, 49, 52, 56, 63};

    cts_start(c);
    for (unsigned i = 0; i < sizeof bits; i++) {
        uint64_t end = (uint64_t)1 << bits[i];
        uint64_t below =
            cts_alloc(c, cts_text("alloc below 2^%u", bits[i]), 0, 0, end - KiB(4), KiB(4), GTT);
        uint64_t at = cts_alloc(c, "alloc at it", 0, 0, end, KiB(4), GTT);

        cts_map(c, "map below", CTS_ANY, below, 0, CTS_IDS(c->gpu[0].id));
        cts_map(c, "map at it", CTS_ANY, at, 0, CTS_IDS(c->gpu[0].id));
        cts_unmap(c, "unmap below", CTS_ANY, below, 0, CTS_IDS(c->gpu[0].id));
        cts_unmap(c, "unmap at it", CTS_ANY, at, 0, CTS_IDS(c->gpu[0].id));
        cts_free(c, "free", 0, below);
        cts_free(c, "free", 0, at);
    }
}

static void handles(struct cts *c)
{
    uint64_t h[4];

    cts_start(c);
    for (int i = 0; i < 4; i++)
        h[i] = cts_alloc(c, cts_text("alloc %d", i), 0, 0, 0, KiB(4), GTT);
    cts_free(c, "free 2", 0, h[2]);
    cts_free(c, "free 1", 0, h[1]);
    cts_free(c, "free 1 again", -EINVAL, h[1]);
    h[1] = cts_alloc(c, "the lowest free number comes first", 0, 0, 0, KiB(4), VRAM);
    h[2] = cts_alloc(c, "then the next", 0, 0, 0, KiB(4), GTT);
    for (int i = 0; i < 4; i++)
        cts_free(c, cts_text("free %d", i), 0, h[i]);
    cts_free(c, "free 0", -EINVAL, 0);
    cts_free(c, "free an unknown number of a known GPU", -EINVAL, h[0] + 7);
    cts_free(c, "free of an unknown GPU", -EINVAL, 0xdead00000001);
}

/* Flags that are neither checked nor refused. */
static void flags(struct cts *c)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } table[] = {
        {"GTT", KFD_MEM_GTT},
        {"GTT writable", KFD_MEM_GTT | KFD_MEM_WRITABLE},
        {"GTT coherent", GTT | KFD_MEM_COHERENT},
        {"GTT uncached", GTT | KFD_MEM_UNCACHED},
        {"GTT with an unknown bit", GTT | 0x00010000},
        {"VRAM", VRAM},
        {"VRAM without substitute", VRAM | KFD_MEM_NO_SUBSTITUTE},
        {"VRAM extended coherent", VRAM | KFD_MEM_EXT_COHERENT},
        {"VRAM contiguous", VRAM | KFD_MEM_CONTIGUOUS},
        {"VRAM and GTT", VRAM | KFD_MEM_GTT},
        {"GTT for the CPU", GTT | KFD_MEM_PUBLIC},
    };

    cts_start(c);
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint64_t h = cts_alloc(c, table[i].name, 0, 0, c->va, MiB(2), table[i].flags);

        cts_map(c, "map", 0, h, 0, CTS_IDS(c->gpu[0].id));
        cts_unmap(c, "unmap", 0, h, 0, CTS_IDS(c->gpu[0].id));
        cts_free(c, "free", 0, h);
    }
    cts_free(c, "VRAM for the CPU", c->gpu[0].large_bar ? 0 : -EINVAL,
             cts_alloc(c, "VRAM for the CPU", c->gpu[0].large_bar ? 0 : -EINVAL, 0, c->va, MiB(2),
                       VRAM | KFD_MEM_PUBLIC));
}

static void special(struct cts *c)
{
    bool gfx9 = c->gpu[0].va_limit >> 40;
    uint64_t h;

    cts_start(c);
    gfx9 = c->gpu[0].va_limit >> 40;
    h = cts_alloc(c, "doorbells", 0, 0, c->va, gfx9 ? KiB(8) : KiB(4), KFD_MEM_DOORBELL | CTS_RW);
    cts_map(c, "map the doorbells", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_unmap(c, "unmap the doorbells", 0, h, 0, CTS_IDS(c->gpu[0].id));
    cts_free(c, "free the doorbells", 0, h);
    h = cts_alloc(c, "the MMIO page", CTS_ANY, 0, c->va, KiB(4), KFD_MEM_MMIO_REMAP | CTS_RW);
    if (h) {
        cts_map(c, "map the MMIO page", CTS_ANY, h, 0, CTS_IDS(c->gpu[0].id));
        cts_unmap(c, "unmap the MMIO page", CTS_ANY, h, 0, CTS_IDS(c->gpu[0].id));
        cts_free(c, "free the MMIO page", 0, h);
    }
}

static void available_row(struct cts *c, const char *step, uint64_t start)
{
    long long delta = (long long)(cts_available(c, 0) - start);

    cts_row(c, step, 0, 0, "available%+lld KiB", delta / 1024);
}

static void accounting(struct cts *c)
{
    uint64_t start, a, b;
    int fd = -1;

    cts_start(c);
    start = cts_available(c, 0);
    cts_row(c, "at the start", 0, 0, "available=0x%llx", (unsigned long long)start);
    a = cts_alloc(c, "2 MiB of VRAM", 0, 0, 0, MiB(2), VRAM);
    available_row(c, "after 2 MiB", start);
    b = cts_alloc(c, "4 KiB of VRAM", 0, 0, 0, KiB(4), VRAM);
    available_row(c, "after 4 KiB more", start);
    cts_free(c, "free the 4 KiB", 0, b);
    available_row(c, "after their free", start);
    b = cts_alloc(c, "2 MiB of GTT", 0, 0, 0, MiB(2), GTT);
    available_row(c, "GTT costs no VRAM", start);
    cts_free(c, "free the GTT", 0, b);
    if (c->minor >= 12)
        fd = cts_export(c, "export the 2 MiB", 0, a);
    cts_free(c, "free the 2 MiB", 0, a);
    available_row(c, "a dma-buf keeps the charge", start);
    cts_close(c, fd);
    available_row(c, "after its close", start);
}

/* The process's own buffers are never moved out for it. */
static void exhausted(struct cts *c)
{
    uint64_t h[64], start;
    unsigned n = 0;

    cts_start(c);
    start = cts_available(c, 0);
    while (n < 64) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .size = MiB(8), .gpu_id = c->gpu[0].id, .flags = VRAM};
        long ret = cts_request(c, c->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a);

        if (ret < 0) {
            cts_row(c, "8 MiB buffers until it fails", -ENOMEM, ret, "-");
            break;
        }
        h[n++] = a.handle;
    }
    while (n)
        if (cts_request(c, c->kfd, KFD_CODE_FREE_MEMORY_OF_GPU,
                        &(struct kfd_ioctl_free_memory_of_gpu_args){.handle = h[--n]}) < 0)
            cts_row(c, "free", 0, -EIO, "-");
    available_row(c, "all of it comes back", start);
}

const struct cts_case cts_alloc_cases[] = {
    {"alloc.errors", 0, errors},       {"alloc.userptr", 0, userptr},
    {"alloc.addresses", 0, addresses}, {"alloc.end_of_space", 0, end_of_space},
    {"alloc.handles", 0, handles},     {"alloc.flags", 0, flags},
    {"alloc.special", 0, special},     {"alloc.accounting", 0, accounting},
    {"alloc.exhausted", 0, exhausted}, {0},
};
