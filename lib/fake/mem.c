/* SPDX-License-Identifier: MIT */
#include "fake/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake/usercopy.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Where the kernel's offsets for mmap on a render node begin. */
#define FIRST_OFFSET 0x100000000ull

static uint64_t offset_key(uint32_t gpu, uint64_t offset)
{
    return offset | gpu;
}

static struct fake_bo *bo_new(struct fake_process *p, struct fake_mem *mem, uint32_t gpu)
{
    struct fake_bo *bo = fake_calloc(sizeof(*bo));

    if (bo == NULL)
        return NULL;
    bo->mem = mem;
    bo->gpu = gpu;
    bo->refs = 1;
    if (p->next_offset == 0)
        p->next_offset = FIRST_OFFSET;
    bo->mmap_offset = p->next_offset;
    if (fake_map_put(&p->bo_maps, offset_key(gpu, bo->mmap_offset), bo) != 0) {
        fake_free(bo);
        return NULL;
    }
    p->next_offset += fake_page_up(mem->size);
    return bo;
}

static struct fake_mem *mem_new(struct fake *fake, struct fake_process *p, uint32_t index,
                                uint32_t ref)
{
    const struct fake_shared_bo *shared = fake_machine_bo(&fake->machine, index);
    struct fake_mem *mem = fake_calloc(sizeof(*mem));

    if (mem == NULL)
        return NULL;
    mem->moves = &shared->moves;
    mem->index = index;
    mem->generation = shared->generation;
    mem->ref = ref;
    mem->refs = 1;
    mem->owner = shared->owner;
    mem->domain = shared->domain;
    mem->flags = shared->flags;
    mem->size = shared->size;
    mem->userptr = shared->userptr;
    if (fake_map_put(&p->mems, index, mem) != 0) {
        fake_free(mem);
        return NULL;
    }
    return mem;
}

int fake_bo_create(struct fake *fake, struct fake_process *p, const struct fake_shared_bo *wanted,
                   struct fake_bo **out)
{
    struct fake_mem *mem;
    uint32_t index, ref;
    int err = fake_machine_add(&fake->machine, p->slot, wanted, &p->now, &index, &ref);

    if (err != 0)
        return err;
    mem = mem_new(fake, p, index, ref);
    if (mem == NULL) {
        fake_machine_put(&fake->machine, ref, &p->now);
        return -ENOMEM;
    }
    mem->home = bo_new(p, mem, mem->owner);
    if (mem->home == NULL) {
        fake_mem_put(fake, p, mem);
        return -ENOMEM;
    }
    *out = mem->home;
    return 0;
}

int fake_mem_from_fd(struct fake *fake, struct fake_process *p, int fd, struct fake_mem **out)
{
    uint32_t index, ref;
    struct fake_mem *mem;
    int err;

    if (fcntl(fd, F_GETFD) < 0)
        return -EBADF;
    err = fake_machine_find(&fake->machine, p->slot, fd, &index, &ref);
    if (err != 0)
        return err;
    mem = fake_map_get(&p->mems, index);
    if (mem != NULL) {
        fake_machine_put(&fake->machine, ref, &p->now);
        mem->refs++;
    } else {
        mem = mem_new(fake, p, index, ref);
        if (mem == NULL) {
            fake_machine_put(&fake->machine, ref, &p->now);
            return -ENOMEM;
        }
    }
    *out = mem;
    return 0;
}

void fake_mem_put(struct fake *fake, struct fake_process *p, struct fake_mem *mem)
{
    if (--mem->refs != 0)
        return;
    fake_map_take(&p->mems, mem->index);
    fake_machine_put(&fake->machine, mem->ref, &p->now);
    fake_free(mem);
}

/* Two devices are partitions of one card, which share its memory. */
static bool same_card(const struct fake *fake, uint32_t a, uint32_t b)
{
    return a == b || fake->profile->gpus[a].card == fake->profile->gpus[b].card;
}

/* Attaching to a device that cannot reach the VRAM moves the memory to the system's, and without
 * MOVE_NOTIFY every attachment does. */
static bool attach_moves(const struct fake *fake, const struct fake_mem *mem, uint32_t gpu)
{
    if (mem->domain != FAKE_DOMAIN_VRAM)
        return false;
    return !fake->profile->kernel.move_notify ||
           !fake_profile_peer(fake->profile, gpu, mem->owner, true);
}

static void attach(struct fake *fake, struct fake_bo *bo)
{
    const struct fake_mem *mem = bo->mem;

    if (attach_moves(fake, mem, bo->gpu)) {
        bo->pinned = true;
        fake_machine_pin_gtt(&fake->machine, mem->index, 1);
    }
    /* Without MOVE_NOTIFY the kernel pins it, and pins for the CPU's sight. */
    if (!fake->profile->kernel.move_notify)
        fake_machine_cpu_view(&fake->machine, mem->index);
}

static struct fake_bo **find_client(struct fake_mem *mem, uint32_t gpu)
{
    struct fake_bo **link = &mem->client;

    while (*link != NULL && (*link)->gpu != gpu)
        link = &(*link)->next_import;
    return link;
}

int fake_bo_for_mem(struct fake *fake, struct fake_process *p, struct fake_mem *mem, uint32_t gpu,
                    enum fake_importer by, struct fake_bo **out)
{
    bool own = same_card(fake, mem->owner, gpu), shared = own || by == FAKE_IMPORT_KFD;
    struct fake_bo **link = own ? &mem->home : find_client(mem, gpu), *bo;

    if (shared && *link != NULL) {
        /* A GEM object holds one reference on its memory however often it is held itself. */
        (*link)->refs++;
        fake_mem_put(fake, p, mem);
        *out = *link;
        return 0;
    }
    bo = bo_new(p, mem, own ? mem->owner : gpu);
    if (bo == NULL) {
        fake_mem_put(fake, p, mem);
        return -ENOMEM;
    }
    bo->absent = !own && by == FAKE_IMPORT_EARLY;
    if (!own && !bo->absent)
        attach(fake, bo);
    if (shared)
        *link = bo;
    *out = bo;
    return 0;
}

void fake_bo_get(struct fake_bo *bo)
{
    bo->refs++;
}

void fake_bo_put(struct fake *fake, struct fake_process *p, struct fake_bo *bo)
{
    struct fake_mem *mem = bo->mem;

    if (--bo->refs != 0)
        return;
    fake_map_take(&p->bo_maps, offset_key(bo->gpu, bo->mmap_offset));
    if (bo->pinned)
        fake_machine_pin_gtt(&fake->machine, mem->index, -1);
    if (mem->home == bo) {
        mem->home = NULL;
    } else {
        struct fake_bo **link = &mem->client;

        while (*link != NULL && *link != bo)
            link = &(*link)->next_import;
        if (*link != NULL)
            *link = bo->next_import;
    }
    fake_free(bo);
    fake_mem_put(fake, p, mem);
}

struct fake_bo *fake_bo_by_offset(struct fake_process *p, uint32_t gpu, uint64_t offset)
{
    return (offset & (FAKE_PAGE - 1)) != 0 ? NULL
                                           : fake_map_get(&p->bo_maps, offset_key(gpu, offset));
}

int fake_mem_export(struct fake *fake, uint32_t index, int flags, int mode)
{
    struct fake_shared_bo *shared = fake_machine_bo(&fake->machine, index);

    if (shared->dmabuf_mode == UINT32_MAX)
        shared->dmabuf_mode = (uint32_t)mode;
    return fake_machine_export_bo(&fake->machine, index, (int)shared->dmabuf_mode | flags);
}

/* The kernel faults the pages in for writing, whatever the flags say. */
int fake_check_userptr(uint64_t addr, uint64_t size)
{
    void *p = (void *)(uintptr_t)(addr & ~(FAKE_PAGE - 1));
    uint64_t len = fake_page_up(size + (addr & (FAKE_PAGE - 1)));
    unsigned char in_core;

    if (madvise(p, len, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return -EFAULT;
    /* Either not writable, or the host does not know this advice. */
    if (madvise(p, 0, MADV_POPULATE_WRITE) == 0)
        return -EPERM;
    for (uint64_t i = 0; i < len; i += FAKE_PAGE)
        if (mincore((char *)p + i, FAKE_PAGE, &in_core) != 0)
            return -EFAULT;
    return 0;
}

bool fake_has_file(uint64_t addr, uint64_t size)
{
    unsigned long long first, last, ino;
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");

    while (f != NULL && !found && getline(&line, &room, f) > 0)
        found = sscanf(line, "%llx-%llx %*s %*s %*s %llu", &first, &last, &ino) == 3 && ino != 0 &&
                first < addr + size && last > addr;
    free(line);
    if (f != NULL)
        fclose(f);
    return found;
}

int fake_mem_read(struct fake *fake, const struct fake_mem *mem, uint64_t offset, void *buf,
                  size_t size)
{
    ssize_t n;
    int fd;

    if (mem->domain == FAKE_DOMAIN_USERPTR)
        return fake_copy_in(buf, mem->userptr + offset, size);
    fd = fake_machine_open_bo(&fake->machine, mem->index, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    n = pread(fd, buf, size, (off_t)offset);
    if (n < 0)
        n = -errno;
    close(fd);
    return n == (ssize_t)size ? 0 : n < 0 ? (int)n : -EIO;
}

int fake_mem_write(struct fake *fake, const struct fake_mem *mem, uint64_t offset, const void *buf,
                   size_t size)
{
    ssize_t n;
    int fd;

    if (mem->domain == FAKE_DOMAIN_USERPTR)
        return fake_copy_out(mem->userptr + offset, buf, size);
    fd = fake_machine_open_bo(&fake->machine, mem->index, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return fd;
    n = pwrite(fd, buf, size, (off_t)offset);
    if (n < 0)
        n = -errno;
    close(fd);
    return n == (ssize_t)size ? 0 : n < 0 ? (int)n : -EIO;
}
