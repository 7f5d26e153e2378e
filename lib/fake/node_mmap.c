/* SPDX-License-Identifier: MIT */
#include "fake/node_mmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake/events.h"
#include "fake/file.h"
#include "fake/log.h"
#include "fake/vm.h"

/* Offsets of /dev/kfd: type in bits 63:62, gpu_id in 61:46. */
enum kfd_mmap_type {
    KFD_MMAP_MMIO,
    KFD_MMAP_TRAP, /* for handlers of the program's */
    KFD_MMAP_EVENTS,
    KFD_MMAP_DOORBELLS,
};

static int real_mmap(void *addr, size_t size, int prot, int flags, int fd, uint64_t offset,
                     void **out)
{
    void *p = mmap(addr, size, prot, flags, fd, (off_t)offset);

    if (p == MAP_FAILED)
        return -errno;
    *out = p;
    return 0;
}

static void pages_path(const struct fake *fake, const struct fake_pages *pages, char *path)
{
    snprintf(path, FAKE_PATH_SIZE, "%.*s/n%u", (int)FAKE_PATH_SIZE - 16, fake->machine.dir,
             pages->serial);
}

int fake_pages_make(struct fake *fake, struct fake_pages *pages, size_t size)
{
    char path[FAKE_PATH_SIZE];
    void *at = NULL;
    int fd, err = 0;

    if (pages->at != NULL)
        return 0;
    pages->serial = fake_machine_serial(&fake->machine);
    pages_path(fake, pages, path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size) != 0)
        err = -errno;
    else
        err = real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &at);
    close(fd);
    if (err != 0) {
        unlink(path);
        return err;
    }
    madvise(at, size, MADV_DONTFORK);
    pages->at = at;
    pages->size = size;
    return 0;
}

int fake_pages_map(struct fake *fake, const struct fake_pages *pages, void *addr, size_t size,
                   int prot, int flags, void **out)
{
    char path[FAKE_PATH_SIZE];
    int fd, err;

    pages_path(fake, pages, path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    err = real_mmap(addr, size, prot, flags, fd, 0, out);
    close(fd);
    if (err == 0)
        madvise(*out, size, MADV_DONTFORK);
    return err;
}

void fake_pages_free(struct fake *fake, struct fake_pages *pages)
{
    char path[FAKE_PATH_SIZE];

    if (pages->at == NULL)
        return;
    pages_path(fake, pages, path);
    unlink(path);
    munmap(pages->at, pages->size);
    pages->at = NULL;
}

void fake_node_pages_free(struct fake *fake, struct fake_process *p, uint32_t gpu)
{
    fake_pages_free(fake, &p->gpus[gpu].doorbells);
    fake_pages_free(fake, &p->gpus[gpu].mmio);
    fake_pages_free(fake, &p->gpus[gpu].trap);
}

static int mmap_kfd(struct fake *fake, struct fake_process *p, void *addr, size_t size, int prot,
                    int flags, uint64_t offset, void **out)
{
    enum kfd_mmap_type type = offset >> 62;
    int gpu = fake_gpu_of_id(fake, offset >> 46 & 0xffff), err;
    uint64_t want = FAKE_PAGE;
    struct fake_pages *pages;

    if (!p->kfd_open)
        return -EINVAL;
    if (type == KFD_MMAP_EVENTS) {
        const struct fake_pages *page;

        err = fake_events_page(p, size, &page);
        return err != 0 ? err : fake_pages_map(fake, page, addr, size, prot, flags, out);
    }
    if (gpu < 0)
        return -ENODEV;
    pages = &p->gpus[gpu].mmio;
    if (type == KFD_MMAP_DOORBELLS) {
        want = fake->profile->gpus[gpu].doorbell_size;
        pages = &p->gpus[gpu].doorbells;
    } else if (type == KFD_MMAP_TRAP) {
        want = 2 * FAKE_PAGE;
        pages = &p->gpus[gpu].trap;
    }
    if (fake_page_up(size) != want)
        return -EINVAL;
    err = fake_pages_make(fake, pages, want);
    return err != 0 ? err : fake_pages_map(fake, pages, addr, size, prot, flags, out);
}

/* A node lets a file map an object it has a handle for, or, KFD's, one it was given by ALLOC. */
static bool may_map(const struct fake_process *p, const struct fake_file *file,
                    const struct fake_bo *bo)
{
    const struct fake_va *va = fake_vm_find(file->vm, bo);

    if (va != NULL && va->gems != 0)
        return true;
    return bo->kfd_handles != 0 && p->gpus[bo->gpu].file == file;
}

static int mmap_bo(struct fake *fake, uint32_t index, void *addr, size_t size, int prot, int flags,
                   uint64_t offset, void **out)
{
    int fd = fake_machine_export_bo(&fake->machine, index, O_RDWR | O_CLOEXEC), err;

    if (fd < 0)
        return fd;
    err = real_mmap(addr, size, prot, flags, fd, offset, out);
    close(fd);
    if (err == 0)
        fake_machine_cpu_view(&fake->machine, index);
    return err;
}

static int mmap_render(struct fake *fake, struct fake_process *p, const struct fake_file *file,
                       void *addr, size_t size, int prot, int flags, uint64_t offset, void **out)
{
    struct fake_bo *bo = fake_bo_by_offset(p, file->gpu, offset);

    if (bo == NULL || fake_page_up(size) > bo->mem->size)
        return -EINVAL;
    if (!may_map(p, file, bo))
        return -EACCES;
    if (bo->no_cpu || (bo->mem->domain != FAKE_DOMAIN_VRAM && bo->mem->domain != FAKE_DOMAIN_GTT))
        return -EPERM;
    /* What is private may be written some day. */
    if ((flags & MAP_TYPE) == MAP_PRIVATE && prot != PROT_NONE)
        return -EINVAL;
    return mmap_bo(fake, bo->mem->index, addr, size, prot, flags, 0, out);
}

/* Through the descriptor itself, so that its mode counts; the mapping then keeps the description,
 * and with it the flock, alive. */
static int mmap_dmabuf(struct fake *fake, int fd, void *addr, size_t size, int prot, int flags,
                       uint64_t offset, void **out)
{
    struct fake_shared_bo bo;
    uint32_t index;
    int err;

    if (fake_machine_peek(&fake->machine, fd, &index, &bo) != 0)
        return -EBADF;
    if (offset > bo.size || fake_page_up(size) > bo.size - offset)
        return -EINVAL;
    err = real_mmap(addr, size, prot, flags, fd, offset, out);
    if (err == 0)
        fake_machine_cpu_view(&fake->machine, index);
    return err;
}

/* The rights of the open file come before what is behind it. */
static int check_access(const struct fake_file *file, size_t size, int prot, int flags)
{
    if (size == 0)
        return -EINVAL;
    if (file->access == O_WRONLY || file->access == O_ACCMODE)
        return -EACCES;
    return file->access == O_RDONLY && prot & PROT_WRITE && (flags & MAP_TYPE) != MAP_PRIVATE
               ? -EACCES
               : 0;
}

int fake_mmap(struct fake *fake, void *addr, size_t size, int prot, int flags, int fd,
              uint64_t offset, void **out)
{
    enum fake_file_kind kind = 0;
    struct fake_file *file = NULL;
    struct fake_process *p, *owner;
    enum fake_fd_kind what;
    int err;

    if (fd < 0 || flags & MAP_ANONYMOUS)
        return real_mmap(addr, size, prot, flags, fd, offset, out);
    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    what = fake_fd_lock(fake, p, fd, &owner, &file, &kind);
    switch (what) {
    case FAKE_FD_FILE:
        err = check_access(file, size, prot, flags);
        if (err != 0)
            break;
        kind = file->kind;
        if (kind == FAKE_FILE_KFD)
            err = mmap_kfd(fake, p, addr, size, prot, flags, offset, out);
        else
            err = mmap_render(fake, owner, file, addr, size, prot, flags, offset, out);
        break;
    case FAKE_FD_FOREIGN:
        /* The node asks who calls, not who opened it. */
        err = kind == FAKE_FILE_KFD ? mmap_kfd(fake, p, addr, size, prot, flags, offset, out)
                                    : -EACCES;
        break;
    case FAKE_FD_DMABUF:
        err = mmap_dmabuf(fake, fd, addr, size, prot, flags, offset, out);
        break;
    default:
        err = real_mmap(addr, size, prot, flags, fd, offset, out);
        break;
    }
    fake_process_unlock(owner);
    if (what != FAKE_FD_OTHER) {
        struct fake_log_mapping m = {.addr = (uintptr_t)addr,
                                     .size = size,
                                     .offset = offset,
                                     .out = err == 0 ? (uintptr_t)*out : 0,
                                     .prot = prot,
                                     .flags = flags};

        fake_log_map(fake, p, fd, &m, err);
    }
    return err;
}
