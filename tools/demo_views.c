/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a piece through every view of them: copies by the CPU (hipMemcpy), the CPU's own
 * loads and stores where it has access, and the GPUs' views, which the fake machine can be asked
 * for. On a real device no GPU executes here, so its views stay unchecked and the demo says so.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "demo.h"

#define BLOCK_WORDS ((size_t)1 << 17) /* 1 MiB at a time */

enum view {
    VIEW_COPY,
    VIEW_HOST,
    VIEW_OWNER,
    VIEW_READER,
    VIEW_COUNT,
};

static const char *const view_names[VIEW_COUNT] = {
    [VIEW_COPY] = "copied out by hipMemcpy",
    [VIEW_HOST] = "loaded by the CPU at the same address",
    [VIEW_OWNER] = "read by the GPU that owns the memory",
    [VIEW_READER] = "read by the peer with read-only access",
};

/* A 64-bit mixer: every word of every pattern differs. */
uint64_t demo_word(uint64_t pattern, uint64_t index)
{
    uint64_t x = (pattern << 40) + index + 1;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void demo_fill(uint64_t pattern, uint64_t first, uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = demo_word(pattern, first + i);
}

static bool has_view(const struct demo *demo, const struct demo_piece *piece, enum view view)
{
    if (view == VIEW_HOST)
        return piece->host;
    if (view == VIEW_READER && piece->reader < 0)
        return false;
    return view == VIEW_COPY || demo->machine.fake;
}

static int cpu_copy(void *at, void *buf, size_t size, bool write)
{
    hipError_t err = write ? hipMemcpy(at, buf, size, hipMemcpyHostToDevice)
                           : hipMemcpy(buf, at, size, hipMemcpyDeviceToHost);

    return err == hipSuccess ? 0 : err == hipErrorNotSupported ? -EOPNOTSUPP : -EIO;
}

static int gpu_copy(struct demo *demo, int gpu, void *at, void *buf, size_t size, bool write)
{
    struct fake *fake = demo->machine.fake;

    return write ? fake_gpu_write(fake, (uint32_t)gpu, (uintptr_t)at, buf, size, NULL)
                 : fake_gpu_read(fake, (uint32_t)gpu, (uintptr_t)at, buf, size, NULL);
}

int demo_copy(struct demo *demo, int gpu, void *at, void *buf, size_t size, bool write)
{
    int err = cpu_copy(at, buf, size, write);

    return err == -EOPNOTSUPP && demo->machine.fake ? gpu_copy(demo, gpu, at, buf, size, write)
                                                    : err;
}

/* As demo_copy, through one view of a piece. */
static int transfer(struct demo *demo, const struct demo_piece *piece, enum view view,
                    size_t offset, void *buf, size_t size, bool write)
{
    char *at = demo->base + piece->offset + offset;

    switch (view) {
    case VIEW_COPY:
        return cpu_copy(at, buf, size, write);
    case VIEW_HOST:
        memcpy(write ? at : buf, write ? buf : at, size);
        return 0;
    default:
        return gpu_copy(demo, view == VIEW_READER ? piece->reader : piece->owner, at, buf, size,
                        write);
    }
}

static int write_piece(struct demo *demo, const struct demo_piece *piece, enum view view)
{
    static uint64_t block[BLOCK_WORDS];

    for (size_t offset = 0; offset < piece->size; offset += sizeof(block)) {
        int err;

        demo_fill(piece->pattern, offset / 8, block, BLOCK_WORDS);
        err = transfer(demo, piece, view, offset, block, sizeof(block), true);
        if (err)
            return err;
    }
    return 0;
}

static int check_piece(struct demo *demo, const struct demo_piece *piece, enum view view)
{
    static uint64_t block[BLOCK_WORDS];

    for (size_t offset = 0; offset < piece->size; offset += sizeof(block)) {
        int err = transfer(demo, piece, view, offset, block, sizeof(block), false);

        if (err)
            return err;
        for (size_t i = 0; i < BLOCK_WORDS; i++) {
            if (block[i] != demo_word(piece->pattern, offset / 8 + i))
                return -EILSEQ;
        }
    }
    return 0;
}

/* Writes through the best view from `view` on that exists; which one is counted in used. */
static bool write_through(struct demo *demo, struct demo_piece *piece, enum view view,
                          size_t used[VIEW_COUNT])
{
    int err = -EOPNOTSUPP;

    if (piece->host)
        view = VIEW_HOST;
    if (!has_view(demo, piece, view))
        view = VIEW_COPY;
    err = write_piece(demo, piece, view);
    if (err == -EOPNOTSUPP && demo->machine.fake) {
        view = VIEW_OWNER;
        err = write_piece(demo, piece, view);
    }
    used[view]++;
    if (err == -EOPNOTSUPP) {
        demo_not_checked(demo, "the piece at +%zu MiB: the CPU cannot see its memory",
                         piece->offset / DEMO_MIB);
        return true;
    }
    return err == 0 || demo_check(demo, false, "writing the piece at +%zu MiB: %s",
                                  piece->offset / DEMO_MIB, strerror(-err));
}

bool demo_write_all(struct demo *demo)
{
    size_t used[VIEW_COUNT] = {0};

    for (size_t i = 0; i < demo->count; i++) {
        demo->pieces[i].pattern = demo->next_pattern++;
        if (!write_through(demo, &demo->pieces[i], i % 2 ? VIEW_OWNER : VIEW_COPY, used))
            return false;
    }
    demo_say(demo, "pieces written: %zu by hipMemcpy, %zu by CPU stores, %zu by the owning GPU",
             used[VIEW_COPY], used[VIEW_HOST], used[VIEW_OWNER]);
    return true;
}

bool demo_rewrite(struct demo *demo, struct demo_piece *piece)
{
    size_t used[VIEW_COUNT] = {0};

    piece->pattern = demo->next_pattern++;
    return write_through(demo, piece, VIEW_COPY, used);
}

bool demo_check_all(struct demo *demo)
{
    bool all = true;

    for (int view = 0; view < VIEW_COUNT; view++) {
        size_t seen = 0, bytes = 0, unseen = 0;
        char text[24];
        int err = 0;

        for (size_t i = 0; i < demo->count && !err; i++) {
            const struct demo_piece *piece = &demo->pieces[i];

            if (!has_view(demo, piece, (enum view)view))
                continue;
            err = check_piece(demo, piece, (enum view)view);
            if (err == -EOPNOTSUPP) {
                unseen++;
                err = 0;
                continue;
            }
            seen++;
            bytes += piece->size;
            if (err)
                all = demo_check(demo, false, "the piece at +%zu MiB, %s: %s",
                                 piece->offset / DEMO_MIB, view_names[view],
                                 err == -EILSEQ ? "other bytes" : strerror(-err));
        }
        if (unseen)
            demo_not_checked(demo, "%zu pieces, %s: the CPU cannot see their memory", unseen,
                             view_names[view]);
        if (seen && !err)
            demo_check(demo, true, "%zu piece(s), %s, %s: as written", seen, tool_size(bytes, text),
                       view_names[view]);
    }
    if (!demo->machine.fake)
        demo_not_checked(demo, "what the GPUs themselves read: nothing here executes on a GPU");
    return all;
}

static sigjmp_buf touched;

static void on_segv(int signal)
{
    siglongjmp(touched, signal);
}

/* Whether one load by the CPU faults. */
static bool cpu_faults(const volatile char *at)
{
    struct sigaction action = {.sa_handler = on_segv}, old_segv, old_bus;
    volatile bool faults = true;

    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    if (sigsetjmp(touched, 1) == 0) {
        (void)*at;
        faults = false;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return faults;
}

static bool gpu_boundaries(struct demo *demo, const struct demo_piece *piece, char *hole)
{
    char *at = demo->base + piece->offset;
    struct fake *fake = demo->machine.fake;
    struct fake_translation fault = {0};
    uint64_t word = 0, other = ~demo_word(piece->pattern, 0);
    bool all = true;
    int err;

    if (piece->reader >= 0) {
        uint32_t reader = (uint32_t)piece->reader;

        err = fake_gpu_write(fake, reader, (uintptr_t)at, &other, sizeof(other), &fault);
        all &= demo_check(demo, err == -EFAULT && fault.reason == FAKE_FAULT_READ_ONLY,
                          "GPU %u may read but not write: %s", reader,
                          err ? fault.text : "the write went through");
        err = fake_gpu_read(fake, (uint32_t)piece->owner, (uintptr_t)at, &word, sizeof(word), NULL);
        all &= demo_check(demo, err == 0 && word == demo_word(piece->pattern, 0),
                          "the refused write changed nothing");
    }
    for (int gpu = 0; gpu < demo->gpus; gpu++) {
        if (gpu == piece->owner || gpu == piece->reader)
            continue;
        err = fake_gpu_read(fake, (uint32_t)gpu, (uintptr_t)at, &word, sizeof(word), &fault);
        all &= demo_check(demo, err == -EFAULT && fault.reason == FAKE_FAULT_NOT_MAPPED,
                          "GPU %d, which was given no rights, faults: %s", gpu,
                          err ? fault.text : "it can read");
        break;
    }
    err = fake_gpu_read(fake, (uint32_t)piece->owner, (uintptr_t)hole, &word, sizeof(word), &fault);
    all &=
        demo_check(demo, err == -EFAULT && fault.reason == FAKE_FAULT_NOT_MAPPED,
                   "GPU %d faults in a hole: %s", piece->owner, err ? fault.text : "it can read");
    return all;
}

/* The first address behind a piece that has none next to it. */
static char *first_hole(struct demo *demo)
{
    size_t at = 0;

    for (size_t i = 0; i < demo->count && demo->pieces[i].offset == at; i++)
        at += demo->pieces[i].size;
    return demo->base + at;
}

bool demo_boundaries(struct demo *demo)
{
    const struct demo_piece *piece = &demo->pieces[1];
    char *hole = first_hole(demo);
    bool all = true;
    char byte;

    if (demo->machine.fake)
        all &= gpu_boundaries(demo, piece, hole);
    else
        demo_not_checked(demo, "GPU faults: nothing here executes on a GPU");
    all &= demo_check(demo, hipMemcpy(&byte, hole, 1, hipMemcpyDeviceToHost) != hipSuccess,
                      "hipMemcpy refuses a hole: %s", kfd_error_text());
    all &= demo_check(demo, cpu_faults(hole), "the CPU faults in a hole");
    all &= demo_check(demo, cpu_faults(demo->base + piece->offset),
                      "the CPU faults where it was given no access");
    return all;
}
