/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "library.h"

#define PAGE ((uint64_t)4096)
/* What cts_walk_start takes, see walk.c. */
#define KEPT ((uint64_t)64 << 30)

static void step_back(struct lib *l)
{
    fflush(l->log);
    l->seen = l->size;
}

void lib_watch(struct lib *l, struct cts *c)
{
    void *kept;

    *l = (struct lib){.c = c};
    cts_open(c);
    if (c->gpus)
        c->sys->ops->map_pages(c->sys, (void *)(uintptr_t)c->va, KEPT, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                               -1, 0, &kept);
    l->log = open_memstream(&l->text, &l->size);
    if (!l->log || kfd_sys_trace_new(c->sys, l->log, &l->sys) < 0)
        cts_skip(c, "no memory");
}

void lib_open(struct lib *l, struct cts *c)
{
    int err;

    lib_watch(l, c);
    err = kfd_open(l->sys, &l->kfd);
    if (err < 0)
        cts_skip(c, "kfd_open: %s", kfd_error_text());
    step_back(l);
}

void lib_vmm(struct lib *l, struct cts *c, enum vmm_engine engine)
{
    struct vmm_options options = {.size = sizeof options, .engine = engine};
    int err;

    lib_open(l, c);
    err = vmm_open(l->kfd, &options, &l->vmm);
    if (err < 0)
        cts_skip(c, "%s", kfd_error_text());
    step_back(l);
}

void lib_walk(struct lib *l)
{
    if (cts_walk_start(l->c) < 0)
        cts_skip(l->c, "the tables cannot be read");
    l->walking = true;
    step_back(l);
}

void lib_end(struct lib *l, uint64_t available)
{
    if (l->vmm)
        vmm_close(l->vmm);
    lib_row(l, "vmm_close", 0, 0, "GPU 0 has %lld KiB less than before", lib_used(l, available));
    kfd_close(l->kfd);
    lib_row(l, "kfd_close", 0, 0, "-");
    l->vmm = NULL;
    l->kfd = NULL;
}

long long lib_used(struct lib *l, uint64_t before)
{
    return ((long long)before - (long long)cts_available(l->c, 0)) / 1024;
}

const char *lib_at(const struct lib *l, uint64_t va)
{
    if (!va)
        return "none";
    return va < l->base ? cts_text("-0x%llx", (unsigned long long)(l->base - va))
                        : cts_text("+0x%llx", (unsigned long long)(va - l->base));
}

/* "  0.001 ioctl fd=5 NAME ... = -22 EINVAL <1.0 us>" */
static bool parse(const char *line, char *name, size_t size)
{
    const char *p = strstr(line, " ioctl fd="), *end = line + strcspn(line, "\n"), *r = NULL;
    size_t n;

    if (!p || p > end)
        return false;
    p += strlen(" ioctl fd=");
    p += strcspn(p, " ") + 1;
    n = strcspn(p, " \n");
    for (const char *q = p; (q = strstr(q, " = ")) && q < end; q++)
        r = q + 3;
    if (r && *r == '-') {
        r += strcspn(r, " ") + 1;
        snprintf(name, size, "%.*s!%.*s", (int)n, p, (int)strcspn(r, " \n"), r);
    } else {
        snprintf(name, size, "%.*s", (int)n, p);
    }
    return true;
}

const char *lib_requests(struct lib *l)
{
    static char out[512];
    char name[96], last[96] = "";
    unsigned times = 0;
    size_t n = 0;

    fflush(l->log);
    out[0] = 0;
    for (const char *p = l->text + l->seen;; p += strcspn(p, "\n") + 1) {
        bool end = p >= l->text + l->size, some = !end && parse(p, name, sizeof name);

        if (some && !strcmp(name, last)) {
            times++;
            continue;
        }
        if (!some && !end)
            continue;
        if (times && n < sizeof out)
            n += (size_t)snprintf(out + n, sizeof out - n, times > 1 ? "%s%s x%u" : "%s%s",
                                  n ? " " : "", last, times);
        if (end)
            break;
        strcpy(last, name);
        times = 1;
    }
    l->seen = l->size;
    return out[0] ? out : "nothing";
}

static const char *join(struct lib *l, const char *fmt, va_list ap)
{
    static char out[1024];
    int n = vsnprintf(out, sizeof out, fmt, ap);

    if (n >= 0 && (size_t)n < sizeof out)
        snprintf(out + n, sizeof out - (size_t)n, "; requests: %s", lib_requests(l));
    return out;
}

void lib_row(struct lib *l, const char *step, long want, long ret, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cts_row(l->c, step, want, ret, "%s", join(l, fmt, ap));
    va_end(ap);
}

void lib_hip(struct lib *l, const char *step, hipError_t want, hipError_t got, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cts_row_named(l->c, step, hipGetErrorName(want), hipGetErrorName(got), "%s", join(l, fmt, ap));
    va_end(ap);
}

static uint32_t stamp_word(char name, uint64_t offset)
{
    return (uint32_t)name << 24 | (uint32_t)(offset / PAGE);
}

void lib_stamp_at(void *at, char name, uint64_t size, uint64_t first)
{
    for (uint64_t done = 0; done < size; done += PAGE)
        *(volatile uint32_t *)((char *)at + done) = stamp_word(name, first + done);
}

struct stamping {
    char name;
    uint64_t first;
};

static int stamp_piece(void *arg, void *cpu, uint64_t size)
{
    struct stamping *s = arg;

    lib_stamp_at(cpu, s->name, size, s->first);
    s->first += size;
    return 0;
}

void lib_stamp(struct lib *l, char name, uint64_t va, uint64_t size, uint64_t first)
{
    struct stamping s = {name, first};
    int err = vmm_cpu_walk(l->vmm, va, size, VMM_PROT_WRITE, stamp_piece, &s);

    if (err)
        cts_row(l->c, "stamp", 0, err, "%s", kfd_error_text());
}

const char *lib_stamp_text(uint32_t word)
{
    char name = (char)(word >> 24);

    if (!word)
        return "zeros";
    if (name < 'A' || name > 'Z')
        return "something else";
    return cts_text("%c+0x%x", name, (unsigned)((word & 0xffffff) * PAGE));
}

void lib_look(struct lib *l, const char *step, uint32_t gpu, uint64_t va)
{
    struct cts *c = l->c;
    struct cts_pte p;
    uint32_t word = 0;

    cts_settle(c);
    if (!l->walking || cts_translate(c, gpu, va, &p) < 0) {
        cts_row(c, step, 0, -ENOSYS, "the tables cannot be read");
        return;
    }
    if (!p.page_size) {
        cts_row(c, step, 0, 0, "not mapped");
        return;
    }
    cts_row(c, step, 0, 0, "%s %s%s%s%s",
            cts_peek(c, gpu, &p, &word) < 0 ? "unreadable" : lib_stamp_text(word),
            p.flags & KFD_VA_READ ? "r" : "-", p.flags & KFD_VA_WRITE ? "w" : "-",
            p.flags & KFD_VA_EXEC ? "x" : "-",
            p.system ? " of the host"
            : c->gpu[gpu].va_limit >> 40 == 0
                ? ""
                : cts_text(" in %u KiB", (unsigned)(p.page_size >> 10)));
}

void lib_look_around(struct lib *l, const char *step, uint32_t gpu, uint64_t va, uint64_t size)
{
    lib_look(l, cts_text("%s: first page", step), gpu, va);
    lib_look(l, cts_text("%s: last page", step), gpu, va + size - PAGE);
    lib_look(l, cts_text("%s: the page before", step), gpu, va - PAGE);
    lib_look(l, cts_text("%s: the page behind", step), gpu, va + size);
}

void lib_look_each(struct lib *l, uint32_t n, uint64_t size)
{
    for (uint32_t i = 0; i < n; i++)
        lib_look(l, cts_text("number %u", i), 0, l->base + i * size);
}

void lib_pages(struct lib *l, const char *step, uint32_t gpu, char name, uint64_t va, uint64_t size)
{
    uint64_t right = 0;

    cts_settle(l->c);
    for (uint64_t at = 0; at < size; at += PAGE) {
        struct cts_pte p;
        uint32_t word;

        right += cts_translate(l->c, gpu, va + at, &p) == 0 && p.page_size &&
                 (p.flags & (KFD_VA_READ | KFD_VA_WRITE)) == (KFD_VA_READ | KFD_VA_WRITE) &&
                 cts_peek(l->c, gpu, &p, &word) == 0 && word == stamp_word(name, at);
    }
    cts_row(l->c, step, 0, right == size / PAGE ? 0 : -EIO, "%llu of %llu pages are %c's",
            (unsigned long long)right, (unsigned long long)(size / PAGE), name);
}

static sigjmp_buf faulted;

static void on_fault(int signal)
{
    siglongjmp(faulted, signal);
}

const char *lib_cpu_rights(uint64_t va)
{
    struct sigaction action = {.sa_handler = on_fault}, segv, bus;
    volatile uint32_t *at = (volatile uint32_t *)(uintptr_t)va;
    volatile int rights = 0;

    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    if (!sigsetjmp(faulted, 1)) {
        uint32_t word = *at;

        rights = 1;
        *at = word;
        rights = 2;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return rights == 2 ? "read and write" : rights ? "only read" : "do nothing";
}

void lib_range(struct lib *l, struct cts *c, enum vmm_engine engine, uint64_t size)
{
    lib_vmm(l, c, engine);
    lib_walk(l);
    l->start = cts_available(c, 0);
    LIB_ROW(l, "reserve", 0, vmm_reserve(l->vmm, size, 0, 0, &l->base), "-");
}

vmm_handle lib_create(struct lib *l, const char *step, enum vmm_location location, uint32_t device,
                      uint64_t size)
{
    struct vmm_props props = {.location = location, .device = device};
    vmm_handle h = 0;

    LIB_ROW(l, step, 0, vmm_create(l->vmm, &props, size, &h), "used=%lld", lib_used(l, l->start));
    return h;
}

void lib_give(struct lib *l, vmm_handle handle, char name, uint64_t va, uint64_t size)
{
    LIB_ROW(l, "map", 0, vmm_map(l->vmm, va, size, 0, handle), "-");
    lib_access(l, "give access", 0, va, size, 0, VMM_PROT_READ_WRITE);
    if (name)
        lib_stamp(l, name, va, size, 0);
}

void lib_release(struct lib *l, vmm_handle handle)
{
    LIB_ROW(l, "release", 0, vmm_release(l->vmm, handle), "used=%lld", lib_used(l, l->start));
}

void lib_access(struct lib *l, const char *step, long want, uint64_t va, uint64_t size,
                uint32_t device, uint32_t prot)
{
    struct vmm_access access = {device, prot};

    LIB_ROW(l, step, want, vmm_set_access(l->vmm, va, size, &access, 1), "-");
}
