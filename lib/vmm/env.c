/* SPDX-License-Identifier: MIT */
/* What the environment chooses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kfdirect/vmm.h>

#include "kfd/error.h"
#include "kfd/poison.h"

static int read_engine(enum vmm_engine *engine)
{
    const char *name = getenv("KFDIRECT_ENGINE");

    *engine = VMM_ENGINE_AUTO;
    if (!name || !*name)
        return 0;
    for (int e = VMM_ENGINE_DRM; e <= VMM_ENGINE_GEM; e++) {
        if (strcmp(name, vmm_engine_name((enum vmm_engine)e)) == 0) {
            *engine = (enum vmm_engine)e;
            return 0;
        }
    }
    return kfd_fail(
        -EINVAL, "the environment variable KFDIRECT_ENGINE is \"%s\", not drm, kfd or gem", name);
}

/* Bytes, with K, M or G behind the number. 0 when it is not set. */
static int read_granularity(uint64_t *bytes)
{
    static const char units[] = "KMG";
    const char *text = getenv("KFDIRECT_MIN_GRANULARITY");
    const char *unit;
    char *end;
    unsigned shift = 0;

    *bytes = 0;
    if (!text || !*text)
        return 0;
    errno = 0;
    *bytes = strtoull(text, &end, 0);
    unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (errno || *end || end == text || *text == '-' || *bytes > UINT64_MAX >> shift)
        *bytes = 0;
    *bytes <<= shift;
    if (*bytes < KFD_PAGE_SIZE || (*bytes & (*bytes - 1)) != 0)
        return kfd_fail(-EINVAL,
                        "the environment variable KFDIRECT_MIN_GRANULARITY is \"%s\", not a power "
                        "of two from %u on",
                        text, KFD_PAGE_SIZE);
    return 0;
}

int vmm_options_from_env(struct vmm_options *options)
{
    struct vmm_options read = {.size = sizeof(read)};
    int err;

    if (!options || options->size < sizeof(*options))
        return kfd_fail(-EINVAL, "%s", options ? "options->size is too small" : "options is NULL");
    err = read_engine(&read.engine);
    if (err == 0)
        err = read_granularity(&read.min_granularity);
    if (err == 0) {
        options->engine = read.engine;
        options->min_granularity = read.min_granularity;
    }
    return err;
}
