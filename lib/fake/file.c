/* SPDX-License-Identifier: MIT */
#include "fake/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/gem.h"
#include "fake/machine_state.h"
#include "fake/syncobj.h"
#include "fake/vm.h"

/* Lower ones are graphics programs'. */
#define FIRST_PASID 0x8000u

/* The letter that names of files begin with, by kind. */
static const char letters[] = {
    [FAKE_FILE_KFD] = 'k', [FAKE_FILE_RENDER] = 'r', [FAKE_FILE_PRIMARY] = 'c'};

/* The minor number is in it for those who see the file from outside. */
static void file_path(const struct fake *fake, const struct fake_file *file, char *path)
{
    uint32_t minor = file->kind == FAKE_FILE_KFD ? 0 : fake->profile->gpus[file->gpu].render_minor;

    if (file->kind == FAKE_FILE_PRIMARY)
        minor -= 128;
    snprintf(path, FAKE_PATH_SIZE, "%.*s/%c%u-%u", (int)FAKE_PATH_SIZE - 24, fake->machine.dir,
             letters[file->kind], minor, file->serial);
}

/* Is it an open node of another process of the machine? The file's name says so. */
static bool look_at_name(const struct fake *fake, int fd, enum fake_file_kind *kind)
{
    const char *dir = strrchr(fake->machine.dir, '/'), *name;
    char link[32], path[FAKE_PATH_SIZE + 64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    name = strstr(path, dir);
    if (name == NULL || name[strlen(dir)] != '/')
        return false;
    name += strlen(dir) + 1;
    for (uint32_t k = FAKE_FILE_KFD; k <= FAKE_FILE_PRIMARY; k++) {
        if (name[0] == letters[k] && strchr(name, '/') == NULL) {
            *kind = k;
            return true;
        }
    }
    return false;
}

enum fake_fd_kind fake_fd_look(struct fake *fake, struct fake_process *p, int fd,
                               struct fake_file **file, enum fake_file_kind *kind)
{
    struct fake_shared_bo bo;
    uint32_t index;
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_dev != fake->machine.dev)
        return FAKE_FD_OTHER;
    *file = fake_map_get(&p->files_by_ino, st.st_ino);
    if (*file != NULL)
        return FAKE_FD_FILE;
    if (fake_machine_peek(&fake->machine, fd, &index, &bo) == 0)
        return FAKE_FD_DMABUF;
    return look_at_name(fake, fd, kind) ? FAKE_FD_FOREIGN : FAKE_FD_OTHER;
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

/* /dev/kfd is a file, a render node a FIFO: whoever reads it waits for events that never come. */
static int make_node_file(struct fake_file *file, const char *path)
{
    struct stat st;
    int fd;

    if (file->kind != FAKE_FILE_KFD) {
        if (mkfifo(path, 0600) != 0)
            return -errno;
    } else {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        close(fd);
    }
    if (stat(path, &st) != 0)
        return -errno;
    file->ino = st.st_ino;
    return 0;
}

/* The descriptor a program gets: close-on-exec as it asked for it. The access mode too, but for a
 * FIFO, which a second side would make ready. */
static int open_node_file(struct fake *fake, struct fake_file *file, int flags)
{
    int access = file->kind == FAKE_FILE_KFD ? flags & O_ACCMODE : O_RDONLY;
    char path[FAKE_PATH_SIZE];
    int fd, err;

    if (access == O_ACCMODE) /* neither reads nor writes, which no file here allows */
        access = O_RDWR;
    file_path(fake, file, path);
    err = make_node_file(file, path);
    if (err != 0)
        goto undo;
    fd = open(path, access | (flags & O_CLOEXEC) | O_NONBLOCK);
    if (fd < 0) {
        err = -errno;
        goto undo;
    }
    if (fcntl(fd, F_SETFL, flags & (O_NONBLOCK | O_APPEND)) == 0 && flock(fd, LOCK_SH) == 0)
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
    fake_syncobj_destroy_all(file); /* which waits for the VM */
    fake_vm_destroy(fake, p, file->vm);
    fake_ids_clear(&file->gem);
    fake_map_clear(&file->prime);
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
    file->access = flags & O_ACCMODE;
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
    file_path(fake, file, path);
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

    file_path(fake, file, path);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
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
