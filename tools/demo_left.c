/* SPDX-License-Identifier: MIT */
/* Taking everything down, and showing that nothing is left. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

static unsigned int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned int count = 0;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
            count++;
    }
    if (dir)
        closedir(dir);
    return count;
}

bool demo_holdings(struct demo *demo, struct demo_holdings *out)
{
    *out = (struct demo_holdings){.files = open_files()};
    for (int gpu = 0; gpu < demo->gpus; gpu++) {
        size_t total;

        if (!demo_call(demo, hipSetDevice(gpu), "hipSetDevice") ||
            !demo_call(demo, hipMemGetInfo(&out->available[gpu], &total), "hipMemGetInfo"))
            return false;
    }
    if (demo->machine.fake && fake_get_usage(demo->machine.fake, &out->usage))
        return demo_check(demo, false, "%s", fake_error_text());
    return demo_call(demo, hipSetDevice(0), "hipSetDevice");
}

static bool compare(struct demo *demo, const struct demo_holdings *before,
                    const struct demo_holdings *after)
{
    const struct fake_usage *was = &before->usage, *is = &after->usage;
    bool all = true;
    int less = 0;

    for (int gpu = 0; gpu < demo->gpus; gpu++)
        less += after->available[gpu] < before->available[gpu];
    all &= demo_check(demo, less == 0, "every GPU has as much free memory as at the start");
    all &= demo_check(demo, after->files == before->files, "open descriptors: %u, as at the start",
                      after->files);
    if (demo->machine.fake)
        all &=
            demo_check(demo,
                       is->objects == was->objects && is->gtt_used == was->gtt_used &&
                           is->kfd_handles == was->kfd_handles &&
                           is->gem_handles == was->gem_handles && is->mappings == was->mappings &&
                           !memcmp(is->vram_used, was->vram_used, sizeof(was->vram_used)),
                       "the kernel holds what it held at the start: %" PRIu64
                       " buffer objects, %" PRIu64 " handles, %" PRIu64 " page-table mappings",
                       is->objects, is->kfd_handles + is->gem_handles, is->mappings);
    else
        demo_not_checked(demo, "the kernel's own objects: only a fake one can be asked");
    return all;
}

bool demo_tear_down(struct demo *demo, const struct demo_holdings *before)
{
    struct demo_holdings after;
    hipDeviceptr_t found;
    char *base = demo->base;
    size_t size;

    if ((demo->end && !demo_call(demo, hipMemUnmap(base, demo->end), "hipMemUnmap")) ||
        !demo_call(demo, hipMemAddressFree(base, demo->size), "hipMemAddressFree"))
        return false;
    demo_say(demo, "one unmap for all %zu pieces, one address free", demo->count);
    demo->count = 0;
    if (!demo_holdings(demo, &after) || !compare(demo, before, &after))
        return false;
    return demo_check(demo, hipMemGetAddressRange(&found, &size, base) != hipSuccess,
                      "the address belongs to nobody");
}
