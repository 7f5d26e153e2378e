/* SPDX-License-Identifier: MIT */
#include "fake/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/gem.h"
#include "fake/machine_state.h"
#include "fake/syncobj.h"
#include "fake/vm.h"

/* Lower ones are graphics programs'. */
#define FIRST_PASID 0x8000u
#define MARK 0x656c696665646f6eull

struct mark {
    uint64_t magic, machine;
    uint32_t kind, gpu;
};

static void file_path(const struct fake *fake, uint32_t serial, char *path)
{
    snprintf(path, FAKE_PATH_SIZE, "%.*s/f%u", (int)FAKE_PATH_SIZE - 16, fake->machine.dir, serial);
}

enum fake_fd_kind fake_fd_look(struct fake *fake, struct fake_process *p, int fd,
                               struct fake_file **file, enum fake_file_kind *kind)
{
    struct fake_shared_bo bo;
    struct mark mark;
    uint32_t index;
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_dev != fake->machine.dev)
        return FAKE_FD_OTHER;
    *file = fake_map_get(&p->files_by_ino, st.st_ino);
    if (*file != NULL)
        return FAKE_FD_FILE;
    if (fake_machine_peek(&fake->machine, fd, &index, &bo) == 0)
        return FAKE_FD_DMABUF;
    if (pread(fd, &mark, sizeof(mark), 0) == (ssize_t)sizeof(mark) && mark.magic == MARK &&
        mark.machine == fake->machine.id) {
        *kind = mark.kind;
        return FAKE_FD_FOREIGN;
    }
    return FAKE_FD_OTHER;
}

static bool lives(const struct fake_process *p)
{
    return !p->ended && fake_proc_start(p->pid) != 0;
}

enum fake_fd_kind fake_fd_lock(struct fake *fake, struct fake_process *p, int fd,
                               struct fake_process **owner, struct fake_file **file,
                               enum fake_file_kind *kind)
{
    enum fake_fd_kind what;
    struct stat st;

    fake_process_lock(p);
    *owner = p;
    what = fake_fd_look(fake, p, fd, file, kind);
    if (what != FAKE_FD_FOREIGN || *kind == FAKE_FILE_KFD || fstat(fd, &st) != 0)
        return what;
    for (struct fake_process *q = p->inherited; q != NULL; q = q->inherited) {
        fake_process_unlock(*owner);
        fake_process_lock(q);
        *owner = q;
        *file = lives(q) ? fake_map_get(&q->files_by_ino, st.st_ino) : NULL;
        if (*file != NULL)
            return FAKE_FD_FILE;
    }
    fake_process_unlock(*owner);
    fake_process_lock(p);
    *owner = p;
    return FAKE_FD_FOREIGN;
}

/* The descriptor a program gets: close-on-exec and the access mode as it asked for them. */
static int open_node_file(struct fake *fake, struct fake_file *file, int flags)
{
    struct mark mark = {
        .magic = MARK, .machine = fake->machine.id, .kind = file->kind, .gpu = file->gpu};
    char path[FAKE_PATH_SIZE];
    struct stat st;
    int fd, err;

    file_path(fake, file->serial, path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (write(fd, &mark, sizeof(mark)) != (ssize_t)sizeof(mark) || fstat(fd, &st) != 0) {
        err = -errno;
        close(fd);
        goto undo;
    }
    close(fd);
    file->ino = st.st_ino;
    /* Write-only is opened for reading too, as the mark must be readable. */
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    fd = open(path, flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0) {
        err = -errno;
        goto undo;
    }
    if (flock(fd, LOCK_SH) == 0)
        return fd;
    err = -errno;
    close(fd);
undo:
    unlink(path);
    return err;
}

static void free_file(struct fake *fake, struct fake_process *p, struct fake_file *file)
{
    fake_gem_close_all(fake, p, file);
    fake_vm_destroy(fake, p, file->vm);
    fake_ids_clear(&file->gem);
    fake_map_clear(&file->prime);
    fake_syncobj_destroy_all(file);
    fake_free(file);
}

/* Number 0 is never given out as a handle. */
static int skip_zero(struct fake_ids *ids, void *owner)
{
    uint32_t zero;

    return fake_ids_add(ids, owner, &zero);
}

int fake_file_open(struct fake *fake, struct fake_process *p, enum fake_file_kind kind,
                   uint32_t gpu, int flags)
{
    struct fake_file *file;
    int fd = -ENOMEM;

    fake_process_lock(p);
    file = fake_calloc(sizeof(*file));
    if (file == NULL) {
        fake_process_unlock(p);
        return -ENOMEM;
    }
    file->kind = kind;
    file->gpu = gpu;
    fake_process_deed(p, FAKE_DEED_OPEN);
    file->opened = p->now;
    if (skip_zero(&file->gem, file) != 0 || skip_zero(&file->syncobj, file) != 0)
        goto fail;
    if (kind == FAKE_FILE_RENDER || kind == FAKE_FILE_PRIMARY) {
        file->vm = fake_vm_create(fake, p, gpu);
        if (file->vm == NULL)
            goto fail;
    }
    file->serial = fake_machine_serial(&fake->machine);
    fd = open_node_file(fake, file, flags);
    if (fd < 0)
        goto fail;
    if (fake_map_put(&p->files_by_ino, file->ino, file) != 0) {
        close(fd);
        fd = -ENOMEM;
        goto fail;
    }
    file->next = p->files;
    p->files = file;
    if (kind == FAKE_FILE_KFD && !p->kfd_open) {
        p->kfd_open = true;
        fake_machine_kfd(&fake->machine, p->slot)->pasid = FIRST_PASID + p->slot;
    }
    fake_process_unlock(p);
    return fd;
fail:
    free_file(fake, p, file);
    fake_process_unlock(p);
    return fd;
}

void fake_file_destroy(struct fake *fake, struct fake_process *p, struct fake_file *file)
{
    struct fake_file **link = &p->files;
    char path[FAKE_PATH_SIZE];

    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    fake_map_take(&p->files_by_ino, file->ino);
    file_path(fake, file->serial, path);
    unlink(path);
    free_file(fake, p, file);
}

/* Without a descriptor; a request of another thread may still be on its way. */
static void end(struct fake *fake, struct fake_process *p, struct fake_file *file)
{
    fake_process_deed(p, FAKE_DEED_CLOSE);
    file->closed = true;
    if (file->busy == 0)
        fake_file_destroy(fake, p, file);
}

void fake_file_put(struct fake *fake, struct fake_process *p, struct fake_file *file)
{
    if (--file->busy == 0 && file->closed)
        fake_file_destroy(fake, p, file);
}

int fake_file_probe(struct fake *fake, const struct fake_file *file)
{
    char path[FAKE_PATH_SIZE];

    file_path(fake, file->serial, path);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void fake_file_closed(struct fake *fake, struct fake_process *p, struct fake_file *file, int probe)
{
    bool gone = probe >= 0 && flock(probe, LOCK_EX | LOCK_NB) == 0;

    if (probe >= 0)
        close(probe);
    /* KFD holds the file whose VM it took until the process ends. */
    if (gone && !file->acquired)
        end(fake, p, file);
}

uint64_t fake_file_sweep(struct fake *fake, struct fake_process *p)
{
    struct fake_file *file, *next;
    uint64_t open_files = 0;

    for (file = p->files; file != NULL; file = next) {
        int probe = fake_file_probe(fake, file);
        bool gone = probe >= 0 && flock(probe, LOCK_EX | LOCK_NB) == 0;

        next = file->next;
        if (probe >= 0)
            close(probe);
        if (!gone)
            open_files++;
        else if (!file->acquired)
            end(fake, p, file);
    }
    return open_files;
}
