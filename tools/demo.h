/* SPDX-License-Identifier: MIT */
/*
 * kfdirect demo: one 64-GiB address range used the way a serving engine uses its key-value cache,
 * through the HIP calls only. Every claim it prints is a check; one that fails fails the program.
 *
 * One thread; struct demo belongs to demo_cmd.c, which runs the steps in order.
 */
#ifndef DEMO_H
#define DEMO_H

#include <hip/hip_runtime_api.h>

#include "json.h"
#include "tool.h"

#define DEMO_PIECES 96 /* a stripe on each of 64 GPUs, and the rest */
#define DEMO_MIB ((size_t)1 << 20)

/* A mapped part of the range. */
struct demo_piece {
    size_t offset, size; /* in the range */
    int owner;           /* the GPU whose memory it is; it reads and writes */
    int reader;          /* the GPU that may only read, or -1 */
    bool host;           /* the CPU may read and write */
    uint64_t pattern;    /* what its bytes are made from */
};

struct demo {
    struct tool_machine machine;
    struct kfd_sys *counter; /* what the HIP calls run on */
    struct json json;
    bool as_json, in_step;
    uint64_t steps, passed, failed, unchecked;

    int gpus;
    char *base;  /* of the range */
    size_t size; /* reserved */
    size_t end;  /* of what was ever used */
    size_t small, large;
    struct demo_piece pieces[DEMO_PIECES]; /* by offset */
    size_t count;
    uint64_t next_pattern;
    bool no_reader; /* the engine has no read-only mappings */
};

/* Reporting (demo_report.c). A step prints what happens in it, then its ioctls. */
void demo_step(struct demo *demo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void demo_step_end(struct demo *demo);
void demo_say(struct demo *demo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reports whether something holds; returns it. */
bool demo_check(struct demo *demo, bool holds, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports a check that cannot be made here, and why. */
void demo_not_checked(struct demo *demo, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Reports a call that failed, with the library's own text; returns whether it succeeded. */
bool demo_call(struct demo *demo, hipError_t err, const char *what);
uint64_t demo_ioctls(const struct demo *demo);

/* Pieces of the range (demo_range.c). All return false after reporting a failure. */
bool demo_reserve(struct demo *demo);
bool demo_grow(struct demo *demo);
bool demo_stripes(struct demo *demo);
bool demo_host(struct demo *demo);
bool demo_take_out(struct demo *demo);
bool demo_put_in(struct demo *demo);
void demo_picture(struct demo *demo);
struct demo_piece *demo_find(struct demo *demo, size_t offset);
/* Creates memory on the piece's owner and maps it at the piece with its rights; gives up the
 * reader, once and for all, where the engine cannot. handle may be NULL: released at once. */
bool demo_add(struct demo *demo, struct demo_piece piece, hipMemGenericAllocationHandle_t *handle);
hipMemAllocationProp demo_prop(int device);

/* Views of the bytes (demo_views.c). */
uint64_t demo_word(uint64_t pattern, uint64_t index);
void demo_fill(uint64_t pattern, uint64_t first, uint64_t *words, size_t count);
bool demo_write_all(struct demo *demo);
bool demo_check_all(struct demo *demo);
/* Fills one piece with a new pattern through the CPU. */
bool demo_rewrite(struct demo *demo, struct demo_piece *piece);
bool demo_boundaries(struct demo *demo);
/* Copies between a mapped address and buf by hipMemcpy, or where the CPU cannot see the memory
 * through a fake GPU. 0; -EOPNOTSUPP when neither can; another negative errno. */
int demo_copy(struct demo *demo, int gpu, void *at, void *buf, size_t size, bool write);

/* Sharing with a child process (demo_share.c). */
bool demo_share(struct demo *demo);

/* What the machine holds, before and after (demo_left.c). */
struct demo_holdings {
    size_t available[KFD_MAX_DEVICES];
    struct fake_usage usage;
    unsigned int files;
};
bool demo_holdings(struct demo *demo, struct demo_holdings *out);
bool demo_tear_down(struct demo *demo, const struct demo_holdings *before);

#endif
