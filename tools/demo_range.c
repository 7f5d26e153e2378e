/* SPDX-License-Identifier: MIT */
/* The range: growing it, changing its middle, drawing it. */
#include <inttypes.h>
#include <string.h>

#include <kfdirect/vmm.h>

#include "demo.h"

#define DEMO_RANGE ((size_t)64 << 30)

hipMemAllocationProp demo_prop(int device)
{
    hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned,
                                 .requestedHandleTypes = hipMemHandleTypePosixFileDescriptor,
                                 .location = {hipMemLocationTypeDevice, device}};

    return prop;
}

struct demo_piece *demo_find(struct demo *demo, size_t offset)
{
    for (size_t i = 0; i < demo->count; i++) {
        if (demo->pieces[i].offset == offset)
            return &demo->pieces[i];
    }
    return NULL;
}

static bool insert(struct demo *demo, const struct demo_piece *piece)
{
    size_t at = 0;

    if (demo->count == DEMO_PIECES)
        return demo_check(demo, false, "the demo keeps at most %d pieces", DEMO_PIECES);
    while (at < demo->count && demo->pieces[at].offset < piece->offset)
        at++;
    memmove(&demo->pieces[at + 1], &demo->pieces[at], (demo->count - at) * sizeof(demo->pieces[0]));
    demo->pieces[at] = *piece;
    demo->pieces[at].pattern = demo->next_pattern++;
    demo->count++;
    if (piece->offset + piece->size > demo->end)
        demo->end = piece->offset + piece->size;
    return true;
}

static bool set_access(struct demo *demo, struct demo_piece *piece)
{
    hipMemAccessDesc access[] = {
        {{hipMemLocationTypeDevice, piece->owner}, hipMemAccessFlagsProtReadWrite},
        {{hipMemLocationTypeDevice, piece->reader}, hipMemAccessFlagsProtRead},
    };
    char *at = demo->base + piece->offset;
    hipError_t err;

    if (demo->no_reader)
        piece->reader = -1;
    err = hipMemSetAccess(at, piece->size, access, piece->reader < 0 ? 1 : 2);
    if (err == hipErrorNotSupported && piece->reader >= 0) {
        demo_say(demo, "no read-only mapping for the peer: %s", kfd_error_text());
        demo->no_reader = true;
        piece->reader = -1;
        err = hipMemSetAccess(at, piece->size, access, 1);
    }
    return demo_call(demo, err, "hipMemSetAccess");
}

bool demo_add(struct demo *demo, struct demo_piece piece, hipMemGenericAllocationHandle_t *handle)
{
    hipMemAllocationProp prop = demo_prop(piece.owner);
    hipMemGenericAllocationHandle_t memory;
    char *at = demo->base + piece.offset;

    if (!demo_call(demo, hipMemCreate(&memory, piece.size, &prop, 0), "hipMemCreate"))
        return false;
    if (!demo_call(demo, hipMemMap(at, piece.size, 0, memory, 0), "hipMemMap")) {
        (void)hipMemRelease(memory);
        return false;
    }
    if (!set_access(demo, &piece) || !insert(demo, &piece)) {
        (void)hipMemUnmap(at, piece.size);
        (void)hipMemRelease(memory);
        return false;
    }
    if (handle)
        *handle = memory;
    else
        return demo_call(demo, hipMemRelease(memory), "hipMemRelease");
    return true;
}

bool demo_reserve(struct demo *demo)
{
    hipMemAllocationProp prop = demo_prop(0);
    size_t granularity;
    void *base;

    if (!demo_call(demo,
                   hipMemGetAllocationGranularity(&granularity, &prop,
                                                  hipMemAllocationGranularityRecommended),
                   "hipMemGetAllocationGranularity") ||
        !demo_call(demo, hipMemAddressReserve(&base, DEMO_RANGE, 0, NULL, 0),
                   "hipMemAddressReserve"))
        return false;
    demo->base = base;
    demo->size = DEMO_RANGE;
    demo_say(demo, "64 GiB at %p, on every GPU and the CPU; granularity %zu KiB", base,
             granularity / 1024);
    return demo_check(demo, demo_ioctls(demo) == 0, "a reservation costs no ioctl and no memory");
}

static int peer_of(int gpu, int gpus)
{
    int peer = gpu == 0 ? 1 : 0, can = 0;

    if (gpus < 2 || hipDeviceCanAccessPeer(&can, peer, gpu) != hipSuccess || !can)
        return -1;
    return peer;
}

/* Adds at the end and says what it took. */
static bool append(struct demo *demo, int owner, size_t size)
{
    struct demo_piece piece = {
        .offset = demo->end, .size = size, .owner = owner, .reader = peer_of(owner, demo->gpus)};
    uint64_t before = demo_ioctls(demo);
    char reader[40] = "no peer", text[24];
    int kept;

    if (!demo_add(demo, piece, NULL))
        return false;
    kept = demo_find(demo, piece.offset)->reader;
    if (kept >= 0)
        snprintf(reader, sizeof(reader), "read-only for GPU %d", kept);
    demo_say(demo, "+ %6s at +%-6zu MiB on GPU %d, %s: %" PRIu64 " ioctls", tool_size(size, text),
             piece.offset / DEMO_MIB, owner, reader, demo_ioctls(demo) - before);
    return true;
}

bool demo_grow(struct demo *demo)
{
    for (int i = 0; i < 6; i++) {
        if (!append(demo, 0, i % 2 ? demo->large : demo->small))
            return false;
    }
    return true;
}

bool demo_stripes(struct demo *demo)
{
    for (int gpu = 1; gpu < demo->gpus; gpu++) {
        if (!append(demo, gpu, demo->small))
            return false;
    }
    if (demo->gpus == 1)
        demo_say(demo, "only one GPU here: no stripes");
    return true;
}

bool demo_host(struct demo *demo)
{
    struct demo_piece *piece = &demo->pieces[0];
    hipMemAccessDesc access = {{hipMemLocationTypeHost, 0}, hipMemAccessFlagsProtReadWrite};
    hipError_t err = hipMemSetAccess(demo->base + piece->offset, piece->size, &access, 1);

    if (err == hipErrorNotSupported) {
        demo_not_checked(demo, "host access: %s", kfd_error_text());
        return true;
    }
    if (!demo_call(demo, err, "hipMemSetAccess for the host"))
        return false;
    piece->host = true;
    demo_say(demo, "the CPU may read and write the piece at +0 MiB through the same address");
    return true;
}

bool demo_take_out(struct demo *demo)
{
    /* The second small and the second large piece: holes in the middle, neighbours on both sides.
     */
    size_t first = demo->small + demo->large;

    for (int i = 0; i < 2; i++) {
        struct demo_piece *piece = demo_find(demo, first + (i ? demo->small : 0));
        uint64_t before = demo_ioctls(demo);
        char text[24];

        if (!demo_call(demo, hipMemUnmap(demo->base + piece->offset, piece->size), "hipMemUnmap"))
            return false;
        demo_say(demo, "- %6s at +%-6zu MiB: %" PRIu64 " ioctls", tool_size(piece->size, text),
                 piece->offset / DEMO_MIB, demo_ioctls(demo) - before);
        demo->count--;
        memmove(piece, piece + 1,
                (size_t)(&demo->pieces[demo->count] - piece) * sizeof(demo->pieces[0]));
    }
    return true;
}

/* One handle at two places, its halves exchanged; whole where the engine knows no offsets. */
static bool put_halves(struct demo *demo, struct demo_piece piece)
{
    hipMemAllocationProp prop = demo_prop(piece.owner);
    hipMemGenericAllocationHandle_t memory;
    size_t half = piece.size / 2;
    char *at = demo->base + piece.offset;
    hipError_t err;

    if (!demo_call(demo, hipMemCreate(&memory, piece.size, &prop, 0), "hipMemCreate"))
        return false;
    err = hipMemMap(at, half, half, memory, 0);
    if (err == hipErrorNotSupported) {
        demo_say(demo, "no halves of handles: %s", kfd_error_text());
        (void)hipMemRelease(memory);
        return demo_add(demo, piece, NULL);
    }
    if (!demo_call(demo, err, "hipMemMap of the upper half") ||
        !demo_call(demo, hipMemMap(at + half, half, 0, memory, 0), "hipMemMap of the lower half") ||
        !demo_call(demo, hipMemRelease(memory), "hipMemRelease"))
        return false;
    for (int i = 0; i < 2; i++) {
        struct demo_piece part = piece;

        part.offset += i ? half : 0;
        part.size = half;
        if (!set_access(demo, &part) || !insert(demo, &part))
            return false;
    }
    demo_say(demo, "+ one handle, its halves exchanged, at +%zu MiB", piece.offset / DEMO_MIB);
    return true;
}

bool demo_put_in(struct demo *demo)
{
    size_t first = demo->small + demo->large;
    int owner = demo->gpus > 1 ? demo->gpus - 1 : 0;
    struct demo_piece one = {
        .offset = first, .size = demo->small, .owner = owner, .reader = peer_of(owner, demo->gpus)};
    struct demo_piece two = {
        .offset = first + demo->small, .size = demo->large, .reader = peer_of(0, demo->gpus)};

    if (!demo_add(demo, one, NULL))
        return false;
    demo_say(demo, "+ memory of GPU %d at +%zu MiB", owner, first / DEMO_MIB);
    return put_halves(demo, two);
}

static const char *rights_text(unsigned long long flags)
{
    return flags == hipMemAccessFlagsProtReadWrite ? "rw"
           : flags == hipMemAccessFlagsProtRead    ? "r-"
                                                   : ". ";
}

/* One line of the picture; NULL for a hole. Rights are asked of the library. */
static void row(struct demo *demo, size_t offset, size_t size, const struct demo_piece *piece)
{
    char *at = demo->base + offset;
    char rights[256] = "", text[24];
    size_t used = 0;

    for (int i = 0; piece && i <= demo->gpus && used + 4 < sizeof(rights); i++) {
        hipMemLocation location = {hipMemLocationTypeDevice, i};
        unsigned long long flags = 0;

        if (i == demo->gpus)
            location = (hipMemLocation){hipMemLocationTypeHost, 0};
        if (!demo_call(demo, hipMemGetAccess(&flags, &location, at), "hipMemGetAccess"))
            return;
        used += (size_t)snprintf(rights + used, sizeof(rights) - used, "%s ", rights_text(flags));
    }
    if (!demo->as_json) {
        if (piece)
            printf("   %p %9s  GPU %-2d  %s\n", at, tool_size(size, text), piece->owner, rights);
        else
            printf("   %p %9s  hole\n", at, tool_size(size, text));
        return;
    }
    json_object(&demo->json, NULL);
    json_format(&demo->json, "address", "%p", at);
    json_number(&demo->json, "size", size);
    if (piece) {
        json_number(&demo->json, "owner", (uint64_t)piece->owner);
        json_string(&demo->json, "rights", rights);
    } else {
        json_null(&demo->json, "owner");
    }
    json_end(&demo->json);
}

void demo_picture(struct demo *demo)
{
    size_t at = 0;

    if (demo->as_json) {
        json_object(&demo->json, NULL);
        json_array(&demo->json, "range");
    } else {
        printf("\n   address        size       memory  rights of ");
        for (int i = 0; i < demo->gpus; i++)
            printf("%-2d ", i);
        printf("CPU\n");
    }
    for (size_t i = 0; i <= demo->count; i++) {
        size_t next = i < demo->count ? demo->pieces[i].offset : demo->size;

        if (next > at)
            row(demo, at, next - at, NULL);
        if (i < demo->count) {
            row(demo, next, demo->pieces[i].size, &demo->pieces[i]);
            at = next + demo->pieces[i].size;
        }
    }
    if (demo->as_json) {
        json_end(&demo->json);
        json_end(&demo->json);
    }
}
