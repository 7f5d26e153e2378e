/* SPDX-License-Identifier: MIT */
/* What HIP keeps with one-step memory, packed into the tag of struct vmm_props. */
#ifndef HIP_API_MALLOC_H
#define HIP_API_MALLOC_H

#include <kfdirect/vmm.h>

/* tag[0]: the flags it was asked for with; tag[1], tag[2]: the size asked for, low and high. */
#define HIP_TAG_FLAGS 0
#define HIP_TAG_SIZE_LOW 1
#define HIP_TAG_SIZE_HIGH 2

/* The size that was asked for, of which the range's is rounded up. */
static inline uint64_t hip_asked_size(const struct vmm_range *range)
{
    return (uint64_t)range->props.tag[HIP_TAG_SIZE_HIGH] << 32 | range->props.tag[HIP_TAG_SIZE_LOW];
}

#endif
