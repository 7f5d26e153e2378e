/* SPDX-License-Identifier: MIT */
/*
 * What the cases of the library's own layers share. The library runs on a tracer in front of the
 * ground's system, so that a row also tells which requests a call made; page tables are read as in
 * the raw cases, and which page an entry names is told by what was written there through the
 * library's CPU view.
 */
#ifndef CTS_LIBRARY_H
#define CTS_LIBRARY_H

#include <stdio.h>

#include <hip/hip_runtime_api.h>
#include <kfdirect/vmm.h>

#include "cts.h"

struct lib {
    struct cts *c;
    struct kfd_sys *sys; /* the tracer: for kfd_open and kfd_sys_set_default */
    struct kfd *kfd;
    struct vmm *vmm;
    uint64_t base;  /* rows tell addresses relative to it */
    uint64_t start; /* GPU 0's available memory then */
    bool walking;
    FILE *log;
    char *text;
    size_t size, seen; /* of text: all, and what rows have told */
};

/* The tracer alone. Keeps the CPU off the addresses that lib_walk takes on the GPUs. */
void lib_watch(struct lib *l, struct cts *c);
/* And kfd_open with its row; skips the case where it fails. */
void lib_open(struct lib *l, struct cts *c);
/* And vmm_open; skips the case where this kernel lacks the engine. */
void lib_vmm(struct lib *l, struct cts *c, enum vmm_engine engine);
/* Page tables can be read from now on, or the case is skipped; after the library has been opened.
 */
void lib_walk(struct lib *l);
/* Closes what is open and says what is left of GPU 0's memory in use. */
void lib_end(struct lib *l, uint64_t available);

/* The requests since the last call, "ALLOC_MEMORY_OF_GPU GEM_VA x3 FREE_MEMORY_OF_GPU!EBUSY". */
const char *lib_requests(struct lib *l);
/* Rows that end with the requests; result and want as in cts_row, or HIP codes. */
void lib_row(struct lib *l, const char *step, long want, long ret, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void lib_hip(struct lib *l, const char *step, hipError_t want, hipError_t got, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for a call whose outputs are told: it is made before they are looked at. */
#define LIB_ROW(l, step, want, call, ...)             \
    do {                                              \
        long lib_ret = (call);                        \
        lib_row(l, step, want, lib_ret, __VA_ARGS__); \
    } while (0)
#define LIB_HIP(l, step, want, call, ...)             \
    do {                                              \
        hipError_t lib_ret = (call);                  \
        lib_hip(l, step, want, lib_ret, __VA_ARGS__); \
    } while (0)
/* An address relative to base. */
const char *lib_at(const struct lib *l, uint64_t va);
/* How much less GPU 0 has than before, in KiB. */
long long lib_used(struct lib *l, uint64_t before);

/*
 * Stamps: the first word of each page tells a buffer's letter and the page's place in it.
 * lib_stamp writes them through the library's CPU view of a mapping that begins `first` bytes into
 * the buffer and somebody may write; lib_stamp_at writes through a pointer.
 */
void lib_stamp(struct lib *l, char name, uint64_t va, uint64_t size, uint64_t first);
void lib_stamp_at(void *at, char name, uint64_t size, uint64_t first);
/* A row: which page va leads the GPU to, with which rights, in how large an entry. */
void lib_look(struct lib *l, const char *step, uint32_t gpu, uint64_t va);
/* Rows for the first and the last page of a range and for those next to it. */
void lib_look_around(struct lib *l, const char *step, uint32_t gpu, uint64_t va, uint64_t size);
/* Rows for the first page of each of n neighbours from base on. */
void lib_look_each(struct lib *l, uint32_t n, uint64_t size);
/* A row: whether every page of a range leads to its page of that buffer, to read and write. */
void lib_pages(struct lib *l, const char *step, uint32_t gpu, char name, uint64_t va,
               uint64_t size);
/* "A+0x1000": what a stamp says. */
const char *lib_stamp_text(uint32_t word);
/* "read and write", "only read" or "do nothing": what a load and a store of ours do there. */
const char *lib_cpu_rights(uint64_t va);

/* lib_vmm, lib_walk and a reservation at base. */
void lib_range(struct lib *l, struct cts *c, enum vmm_engine engine, uint64_t size);
/* One call of the VMM each, which is wanted to succeed. */
vmm_handle lib_create(struct lib *l, const char *step, enum vmm_location location, uint32_t device,
                      uint64_t size);
/* Maps a whole handle, lets GPU 0 read and write, and stamps it unless name is 0. */
void lib_give(struct lib *l, vmm_handle handle, char name, uint64_t va, uint64_t size);
void lib_release(struct lib *l, vmm_handle handle);
void lib_access(struct lib *l, const char *step, long want, uint64_t va, uint64_t size,
                uint32_t device, uint32_t prot);

#endif
