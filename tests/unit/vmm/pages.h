/* SPDX-License-Identifier: MIT */
/* A system for tests that need only address space: real mmap, munmap and madvise, with switches
 * that make them fail or behave like another kernel. */
#ifndef TESTS_PAGES_H
#define TESTS_PAGES_H

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include <kfdirect/kfd.h>

struct pages {
    struct kfd_sys sys;
    uint64_t maps, unmaps, advises; /* calls */
    uint64_t fail_map_after;        /* that many more calls succeed */
    int map_error;                  /* and then this one comes */
    bool fail_unmap, fail_advise;
    bool no_noreplace;    /* a kernel before 4.17: MAP_FIXED_NOREPLACE is unknown */
    bool drop_noreserve;  /* counts memory as vm.overcommit_memory=2 does */
    uint64_t largest_map; /* more bytes in one call are -ENOMEM; 0: any */
};

static int pages_map(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                     uint64_t offset, void **out)
{
    struct pages *p = (struct pages *)sys;

    p->maps++;
    if (p->fail_map_after == 0)
        return p->map_error;
    if (p->fail_map_after != UINT64_MAX)
        p->fail_map_after--;
    if (p->largest_map && size > p->largest_map)
        return -ENOMEM;
    if (p->no_noreplace)
        flags &= ~MAP_FIXED_NOREPLACE;
    if (p->drop_noreserve)
        flags &= ~MAP_NORESERVE;
    *out = mmap(addr, size, prot, flags, fd, (off_t)offset);
    return *out == MAP_FAILED ? -errno : 0;
}

static int pages_unmap(struct kfd_sys *sys, void *addr, size_t size)
{
    struct pages *p = (struct pages *)sys;

    p->unmaps++;
    if (p->fail_unmap)
        return -ENOMEM;
    return munmap(addr, size) ? -errno : 0;
}

static int pages_advise(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    struct pages *p = (struct pages *)sys;

    p->advises++;
    if (p->fail_advise)
        return -EINVAL;
    return madvise(addr, size, advice) ? -errno : 0;
}

static const struct kfd_sys_ops pages_ops = {
    .map_pages = pages_map,
    .unmap_pages = pages_unmap,
    .advise_pages = pages_advise,
};

static inline struct pages pages_start(void)
{
    return (struct pages){.sys.ops = &pages_ops, .fail_map_after = UINT64_MAX};
}

#endif
