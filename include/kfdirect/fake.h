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

#include <kfdirect/kfd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fake;

#define FAKE_STRICT 0x1u    /* undefined use fails loudly, see fake_strict_report */
#define FAKE_QUIRK_T1 0x10u /* shared GEM handle deleted twice */
#define FAKE_QUIRK_T3 0x20u /* armed by fake_inject: GEM_VA success without page tables */
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
 * variable KFDIRECT_FAKE_TREE, which is set here. The machine is left at exit.
 */
KFDIRECT_API int fake_sys_from_env(const char *spec, struct kfd_sys **out);

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
    bool from_tlb;      /* served by the TLB */
    bool stale;         /* the TLB entry no longer matches the page tables */
    char text[160];
};

/* The GPU side of the calling process's compute VM. Reads and writes go through the TLB and fill
 * it; -EFAULT on a fault, with the reason in fault (which may be NULL). gpu is an index. */
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
KFDIRECT_API int fake_get_cost(struct fake *fake, uint32_t gpu, struct fake_cost *out);

/* What is alive, over all processes of the machine. */
struct fake_usage {
    uint64_t objects; /* buffer objects */
    uint64_t vram_used[KFD_MAX_DEVICES];
    uint64_t gtt_used;
    uint64_t kfd_handles, gem_handles, mappings; /* of this process */
    uint64_t open_files; /* kfd and render descriptors of this process, as far as it knows */
};
KFDIRECT_API int fake_get_usage(struct fake *fake, struct fake_usage *out);

/* Strict mode: how many undefined uses were seen, and the text of the first (what, where, since
 * when); the offending request failed with -ENOTRECOVERABLE. NULL if none. */
KFDIRECT_API uint64_t fake_strict_count(const struct fake *fake);
KFDIRECT_API const char *fake_strict_report(const struct fake *fake);

#ifdef __cplusplus
}
#endif

#endif
