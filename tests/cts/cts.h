/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite: one table of cases that runs on the fake kernel, on the unmodified driver
 * in the test guest, and on real hardware. Everything goes through struct kfd_sys.
 *
 * A case runs in a process of its own, with nothing open but what it opens. Each of its steps makes
 * one row: case, step, result, outputs. A step that states a wanted result fails the case when the
 * result differs; the rows of two grounds are compared whole, so a step may also leave the result
 * open and only be recorded. Outputs are normalised: a KFD handle is written gpu<n>:<id>, a gpu_id
 * gpu<n>, an address relative to the case's own base, a descriptor "fd".
 */
#ifndef CTS_H
#define CTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <kfdirect/fake.h>
#include <kfdirect/kfd.h>

#include "kfd/uapi.h"

#define CTS_MAX_GPUS 8u
#define CTS_ANY 1L /* no wanted result: recorded only */
#define CTS_BAD_GPU 0xdeadu
#define KiB(n) ((uint64_t)(n) << 10)
#define MiB(n) ((uint64_t)(n) << 20)

struct cts_gpu {
    uint32_t id, node, minor;
    int drm; /* render node, -1 until cts_open */
    uint64_t va_limit, vram;
    bool large_bar;
};

/* What the child and everything it forks add up for the parent. */
struct cts_tally {
    uint32_t rows, wrong;
    bool skipped;
    char reason[160];
};

struct cts {
    struct kfd_sys *sys;
    struct fake *fake; /* NULL on a driver */
    struct cts_tally *tally;
    int rows; /* descriptor the rows go to */
    const char *name;
    int kfd; /* /dev/kfd, -1 until cts_open */
    uint32_t minor, drm_minor;
    uint32_t nodes, gpus;
    struct cts_gpu gpu[CTS_MAX_GPUS];
    uint64_t va; /* base of the case's addresses, 1 GiB aligned, 64 GiB free behind it */
};

/* Needs of a case. */
#define CTS_PEER 0x1u      /* two GPUs */
#define CTS_EXPORT 0x2u    /* KFD 1.12 */
#define CTS_GEM_VA 0x4u    /* KFD 1.15 */
#define CTS_LARGE_BAR 0x8u /* all VRAM visible to the CPU */
#define CTS_NO_GPU 0x10u   /* runs without any */
#define CTS_DRIVER 0x20u   /* only on a driver: looks at what only a kernel has */

struct cts_case {
    const char *name;
    uint32_t needs;
    void (*run)(struct cts *c);
};

/* The tables, one per file of cases; each ends with an empty name. */
extern const struct cts_case cts_door_cases[], cts_dispatch_cases[], cts_topology_cases[],
    cts_query_cases[], cts_vm_cases[], cts_alloc_cases[], cts_map_cases[], cts_share_cases[],
    cts_gem_cases[], cts_gemva_cases[], cts_mmap_cases[], cts_event_cases[], cts_queue_cases[],
    cts_peer_cases[], cts_trap_cases[], cts_table_cases[], cts_resident_cases[], cts_late_cases[],
    cts_silent_cases[], cts_crash_cases[], cts_foreign_cases[], cts_sdma_cases[],
    cts_lib_kfd_cases[], cts_lib_vmm_cases[], cts_lib_share_cases[], cts_hip_cases[],
    cts_hip_more_cases[], cts_client_cases[], cts_client_more_cases[], cts_demo_cases[],
    cts_process_cases[], cts_order_cases[], cts_random_cases[], cts_stranger_cases[],
    cts_render_cases[];

/* Rows. ret is 0 or positive on success, -errno on failure; positive results are written as 0. */
void cts_row(struct cts *c, const char *step, long want, long ret, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same with results that have names of their own; want may be NULL. */
void cts_row_named(struct cts *c, const char *step, const char *want, const char *got,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A text in a small ring of buffers, for steps named in a loop. */
const char *cts_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the case at once as skipped. */
void cts_skip(struct cts *c, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
const char *cts_handle_text(const struct cts *c, uint64_t handle);
const char *cts_gpu_text(const struct cts *c, uint32_t gpu_id);

/* A line in the kernel's log, so that its reports can be placed; nothing without permission. */
void cts_log(const char *text);
/* Says in the kernel's log that a report matching this regular expression is no fault of the run.
 */
void cts_expect_report(struct cts *c, const char *regex);

/* Ends a case that may stop the kernel as skipped, unless KFDIRECT_CTS_CRASH names it. */
void cts_crashes(struct cts *c);

/* Ground. */
int cts_ground_init(struct cts *c, const char *machine, const char *kernel);
int cts_ground_scan(struct cts *c);
/* Opens KFD and the render nodes without acquiring anything. */
void cts_open(struct cts *c);
/* The same, and acquires every GPU's VM. */
void cts_start(struct cts *c);
int cts_open_render(struct cts *c, uint32_t gpu);
/* Runs fn in a forked child and waits for it; its rows and failures count. */
void cts_fork(struct cts *c, void (*fn)(struct cts *c, void *arg), void *arg);

/* Requests. Each makes a row; `step` names it and `want` is CTS_ANY, 0 or -errno. */
#define CTS_IDS(...) \
    (const uint32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / 4)
#define CTS_RW (KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE)

long cts_request(struct cts *c, int fd, unsigned long code, void *arg);
uint64_t cts_alloc(struct cts *c, const char *step, long want, uint32_t gpu, uint64_t va,
                   uint64_t size, uint32_t flags);
uint64_t cts_alloc_mmap(struct cts *c, const char *step, long want, uint32_t gpu, uint64_t va,
                        uint64_t size, uint32_t flags, uint64_t *mmap_offset);
void cts_free(struct cts *c, const char *step, long want, uint64_t handle);
uint32_t cts_map(struct cts *c, const char *step, long want, uint64_t handle, uint32_t done,
                 const uint32_t *ids, uint32_t n);
uint32_t cts_unmap(struct cts *c, const char *step, long want, uint64_t handle, uint32_t done,
                   const uint32_t *ids, uint32_t n);
/* The flush-only MAP. */
void cts_flush(struct cts *c, const char *step, long want, uint64_t handle, const uint32_t *ids,
               uint32_t n);
int cts_export(struct cts *c, const char *step, long want, uint64_t handle);
uint64_t cts_import(struct cts *c, const char *step, long want, uint32_t gpu_id, int fd,
                    uint64_t va);
void cts_info(struct cts *c, const char *step, long want, int fd);
void cts_acquire(struct cts *c, const char *step, long want, int fd, uint32_t gpu_id);
/* AVAILABLE_MEMORY without a row; 0 when it fails. */
uint64_t cts_available(struct cts *c, uint32_t gpu);

uint32_t cts_prime(struct cts *c, const char *step, long want, int drm, int fd);
int cts_prime_export(struct cts *c, const char *step, long want, int drm, uint32_t gem,
                     uint32_t flags);
void cts_gem_close(struct cts *c, const char *step, long want, int drm, uint32_t gem);
uint32_t cts_gem_create(struct cts *c, const char *step, long want, int drm, uint64_t size,
                        uint64_t domains);
uint64_t cts_gem_mmap(struct cts *c, const char *step, long want, int drm, uint32_t gem);
void cts_gem_va(struct cts *c, const char *step, long want, int drm, uint32_t gem, uint32_t op,
                uint64_t va, uint64_t offset, uint64_t size, uint32_t flags);

/* mmap of fd with a row; NULL on failure. */
void *cts_mmap(struct cts *c, const char *step, long want, int fd, uint64_t offset, size_t size,
               int prot, int flags);
void cts_munmap(struct cts *c, void *p, size_t size);
void cts_close(struct cts *c, int fd);

/* Page tables. A translation of va on a gpu as the hardware would find it; page size 0 when nothing
 * is mapped. `pages` identifies the physical page: VRAM offset or system page address. */
struct cts_pte {
    uint64_t va, page, page_size;
    uint32_t flags; /* KFD_VA_* */
    bool system;
};
/* Once per process, after cts_start: -ENOSYS when the ground cannot show its tables. */
int cts_walk_start(struct cts *c);
/* What a parameter of the guest's cards holds, of a list the first; 0 where there is none. */
uint64_t cts_hollow(const char *parameter);
/* Waits for tables that SDMA writes a moment later. */
void cts_settle(const struct cts *c);
int cts_translate(struct cts *c, uint32_t gpu, uint64_t va, struct cts_pte *out);
/* The first word of a page that cts_translate found; on the fake it must be readable there. */
int cts_peek(struct cts *c, uint32_t gpu, const struct cts_pte *pte, uint32_t *word);
/* A count that rises with every TLB flush of the GPU. -ENOSYS where nothing counts. */
int cts_flushes(struct cts *c, uint32_t gpu, uint64_t *count);

#endif
