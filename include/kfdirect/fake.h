/* SPDX-License-Identifier: MIT */
/*
 * The fake kernel: KFD and the amdgpu DRM node as a state machine, answering with the kernel's
 * errno in the kernel's order, on a machine described by a profile. It needs no GPU, no driver and
 * no libdrm. GPU memory is real memory, and a GPU side walks the fake page tables, so a test can
 * see what a GPU would see.
 *
 * Functions return 0 or a negative errno; fake_error_text() has a sentence. Any thread may call.
 */
#ifndef KFDIRECT_FAKE_H
#define KFDIRECT_FAKE_H

#include <sys/types.h>

#include <kfdirect/kfd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fake;

#define FAKE_STRICT 0x1u /* undefined use fails loudly, see fake_strict_report */
/* Hazards of the real driver, each off by default. That GEM_VA may succeed without page tables is
 * not a flag but an injection, FAKE_INJECT_SILENT. */
#define FAKE_QUIRK_T1 0x10u /* KFD deletes a GEM handle it shares twice */
#define FAKE_QUIRK_T5 0x40u /* cutting a huge page loses its rest */

struct fake_options {
    size_t size;         /* sizeof(struct fake_options) */
    const char *machine; /* "mi300x:8", a profile's name and count, or a profile file's path */
    const char *kernel;  /* "6.1", "6.8", "6.12", "current", or a file; NULL: "6.12" */
    uint32_t flags;      /* FAKE_* */
};

/* Makes a machine of its own, private to this process and its children. -EINVAL: a bad profile, the
 * text gives file, line and what was expected. */
KFDIRECT_API int fake_create(const struct fake_options *options, struct fake **out);
/* Ends it; descriptors that are still open become plain files. NULL is allowed. */
KFDIRECT_API void fake_destroy(struct fake *fake);
/* The system to hand to kfd_open; owned by the fake. */
KFDIRECT_API struct kfd_sys *fake_sys(struct fake *fake);
KFDIRECT_API const char *fake_error_text(void);

/*
 * What KFDIRECT_FAKE stands for: "machine[,kernel=V][,strict][,join=NAME]". Processes that give the
 * same NAME share one machine; without it this process and those it starts do, by the environment
 * variable KFDIRECT_FAKE_TREE, which is set here. The machine is left when the fake's library ends,
 * after the program's own handlers of atexit. Errors as of fake_create; -EINVAL: an option that is
 * not one of these.
 */
KFDIRECT_API int fake_create_from_spec(const char *spec, struct fake **out);
/* The same for a program that need not know of it: strict mode reports undefined use on stderr.
 * Returns the same errors. */
KFDIRECT_API int fake_sys_from_env(const char *spec, struct kfd_sys **out);

/* A built-in machine or kernel: its name, and what it is in a few words. */
struct fake_listed {
    char name[32], about[80];
};
/* The i-th, in the order of names and versions; -ENOENT behind the last. */
KFDIRECT_API int fake_list_machine(size_t i, struct fake_listed *out);
KFDIRECT_API int fake_list_kernel(size_t i, struct fake_listed *out);

/* GPUs of the machine, and KFD's gpu_id of one of them; 0 for a number that is none. */
KFDIRECT_API uint32_t fake_gpu_count(const struct fake *fake);
KFDIRECT_API uint32_t fake_gpu_id(const struct fake *fake, uint32_t gpu);

enum fake_access {
    FAKE_READ = 1,
    FAKE_WRITE = 2,
    FAKE_EXEC = 4,
};

enum fake_fault_reason {
    FAKE_FAULT_NONE,
    FAKE_FAULT_NO_VM, /* this process has no compute VM on that GPU */
    FAKE_FAULT_NOT_MAPPED,
    FAKE_FAULT_NOT_READABLE,
    FAKE_FAULT_READ_ONLY,
    FAKE_FAULT_NO_EXEC,
    FAKE_FAULT_FREED, /* the pages behind a stale translation are gone */
};

/* Where an address leads, or why it does not. */
struct fake_translation {
    uint64_t va;
    uint32_t gpu;
    enum fake_access access;
    enum fake_fault_reason reason;
    uint64_t object;    /* identity of the memory, equal for every view of one BO */
    uint64_t offset;    /* of va in it */
    uint64_t page_size; /* of the entry: 4 KiB up to 1 GiB */
    uint32_t flags;     /* KFD_VA_* of the entry */
    bool system;        /* the memory is the host's */
    bool from_tlb;      /* served by the TLB */
    bool stale;         /* the TLB entry no longer matches the page tables */
    char text[320];     /* all of this, and since when it is so */
};

/* The GPU side of the calling process's compute VM. Reads and writes go through the TLB and fill
 * it; -EFAULT on a fault, with the reason in fault (which may be NULL); -ENOTRECOVERABLE in strict
 * mode for what fake_strict_report() tells. gpu is an index. */
KFDIRECT_API int fake_gpu_translate(struct fake *fake, uint32_t gpu, uint64_t va,
                                    enum fake_access access, struct fake_translation *out);
KFDIRECT_API int fake_gpu_read(struct fake *fake, uint32_t gpu, uint64_t va, void *buf, size_t size,
                               struct fake_translation *fault);
KFDIRECT_API int fake_gpu_write(struct fake *fake, uint32_t gpu, uint64_t va, const void *buf,
                                size_t size, struct fake_translation *fault);

/* Simulated cost since the start, per GPU. */
struct fake_cost {
    uint64_t pte_writes, table_allocs, tlb_flushes;
};
/* -EINVAL: no such GPU. */
KFDIRECT_API int fake_get_cost(struct fake *fake, uint32_t gpu, struct fake_cost *out);

/* What is alive, over all processes of the machine. */
struct fake_usage {
    uint64_t objects; /* buffer objects */
    uint64_t vram_used[KFD_MAX_DEVICES];
    uint64_t gtt_used;
    uint64_t kfd_handles, gem_handles, mappings; /* of this process */
    uint64_t open_files; /* kfd and render descriptors of this process, as far as it knows */
};
/* -ENOMEM is the only error. */
KFDIRECT_API int fake_get_usage(struct fake *fake, struct fake_usage *out);

/*
 * Failures on order. Each request is compared with the injections in the order they were made, and
 * the first that matches and is due decides what becomes of it. Requests are those of this process.
 */
enum fake_inject_point {
    FAKE_INJECT_BEFORE, /* fails with nothing done */
    /* Fails with everything done, as when the copy back to the caller fails. What such a request
     * made (a handle, a descriptor) is lost: nobody was told its name, so no library can give it
     * back, and fake_get_usage counts it until the process or file ends. */
    FAKE_INJECT_AFTER,
    /* Fails on the way. MAP and UNMAP: after `done` devices, n_success saying so; with done at or
     * above the number of devices, everything is mapped but the wait for the page tables and the
     * flush did not happen. FREE: half-detached, so that repeating it is undefined use. Others:
     * what was begun is undone. */
    FAKE_INJECT_MIDDLE,
    FAKE_INJECT_SILENT,   /* GEM_VA succeeds and its page tables stay as they were; error unused */
    FAKE_INJECT_TRUNCATE, /* succeeds, but only the first `done` bytes are copied back */
    FAKE_INJECT_DELAY,    /* nothing but the delay */
};

#define FAKE_ANY_GPU UINT32_MAX
#define FAKE_ANY_FD (-1)

struct fake_injection {
    size_t size;      /* sizeof(struct fake_injection) */
    uint16_t request; /* type << 8 | number, as the low half of a request code; 0: any */
    uint32_t gpu;     /* the request works on this one; FAKE_ANY_GPU */
    int fd;           /* it came through this descriptor or a dup of it; FAKE_ANY_FD */
    uint64_t skip;    /* matching requests let through first */
    uint64_t count;   /* how many then fail; 0: for ever */
    enum fake_inject_point point;
    int error;         /* positive errno */
    uint32_t done;     /* FAKE_INJECT_MIDDLE and FAKE_INJECT_TRUNCATE */
    uint32_t delay_us; /* first of all */
};

/* Arms one; id (may be NULL) names it. -EINVAL, -ENOMEM. */
KFDIRECT_API int fake_inject(struct fake *fake, const struct fake_injection *injection,
                             uint32_t *id);
/* How often it matched and how often it struck, in this process. -ENOENT. */
KFDIRECT_API int fake_inject_seen(struct fake *fake, uint32_t id, uint64_t *matched,
                                  uint64_t *struck);
/* Disarms all. */
KFDIRECT_API void fake_inject_clear(struct fake *fake);

/*
 * Eviction and restore, as another program's hunger for a GPU's VRAM causes them: what a KFD handle
 * of this process protects comes back with its page tables written and the TLBs flushed (GEM_VA
 * mappings only where the kernel does that); what nothing protects has moved, and GPUs that still
 * reach it get FAKE_FAULT_FREED. -EINVAL: no such GPU.
 */
KFDIRECT_API int fake_evict(struct fake *fake, uint32_t gpu);

enum fake_log_kind {
    FAKE_LOG_OPEN,
    FAKE_LOG_CLOSE,
    FAKE_LOG_REQUEST,
    FAKE_LOG_MAP, /* mmap of a node or a dma-buf */
};

struct fake_log_entry {
    uint64_t sequence; /* 1 for the first operation since the log was started */
    enum fake_log_kind kind;
    int fd;                /* -1: an open that failed */
    unsigned long request; /* its whole code, as the caller gave it */
    int result;
    uint32_t gpu;   /* of the render node; FAKE_ANY_GPU for /dev/kfd */
    char text[512]; /* decoded: name, arguments, "->", outputs, "= result" */
};

/*
 * The log: the last `capacity` operations of this process on its device nodes, from the call on;
 * 0 stops it and drops what it holds. -ENOMEM.
 */
KFDIRECT_API int fake_log_start(struct fake *fake, size_t capacity);
/* Operations kept, oldest first. */
KFDIRECT_API size_t fake_log_count(struct fake *fake);
/* -ENOENT past the end. */
KFDIRECT_API int fake_log_get(struct fake *fake, size_t i, struct fake_log_entry *out);
/* How many entries have `part` in their text. */
KFDIRECT_API size_t fake_log_find(struct fake *fake, const char *part);
/* Writes what is kept, one line each: readable, and with the raw bytes that replay needs. The
 * environment variable KFDIRECT_FAKE_LOG names a file that a fake which KFDIRECT_FAKE made writes
 * in the same way, each operation at once. Calls that go past the library are not in it, so a
 * dma-buf that the program closes by itself lives on when the log is done again; under kfdirect
 * fake those are seen. -EIO: the stream has an error. */
KFDIRECT_API int fake_log_save(struct fake *fake, FILE *out);

/* What became of a replay. */
struct fake_replay {
    uint64_t replayed, differing;
    uint64_t skipped; /* mappings, queues, events and others whose arguments are addresses */
    uint64_t others;  /* of other processes than the one that was replayed */
    char text[512];   /* of the first difference: line, request, then and now */
};
/*
 * Does the saved operations of one process again on this fake, which should be as new as the
 * recorded one was when its log began, and compares results and outputs, but for what a kernel says
 * of itself (GET_VERSION) and the offsets and descriptors it is free to choose. pid 0: the process
 * of the first operation. report: gets two lines for each difference, then and now; NULL for none.
 * -EINVAL: not a log, the text says where; -ESRCH: nothing in it is of this process.
 */
KFDIRECT_API int fake_log_replay(struct fake *fake, FILE *in, pid_t pid, FILE *report,
                                 struct fake_replay *out);

/* Strict mode: how many undefined uses were seen, and the text of the first (what, where, since
 * when); the offending request failed with -ENOTRECOVERABLE. NULL if none. */
KFDIRECT_API uint64_t fake_strict_count(const struct fake *fake);
KFDIRECT_API const char *fake_strict_report(const struct fake *fake);

#ifdef __cplusplus
}
#endif

#endif
