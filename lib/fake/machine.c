/* SPDX-License-Identifier: MIT */
#include "fake/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/machine_state.h"
#include "kfd/error.h"

#define HUGE_UP(size) (((size) + (2ull << 20) - 1) & ~((2ull << 20) - 1))

static bool in_vram(const struct fake_shared_bo *bo)
{
    return bo->domain == FAKE_DOMAIN_VRAM && bo->pinned_gtt == 0 && !bo->evicted;
}

void fake_machine_account(struct fake_totals *t, const struct fake_shared_bo *bo, int sign)
{
    uint64_t size = sign > 0 ? bo->size : 0 - bo->size;
    uint64_t huge = sign > 0 ? HUGE_UP(bo->size) : 0 - HUGE_UP(bo->size);

    t->objects += (uint64_t)(int64_t)sign;
    if (in_vram(bo))
        t->vram[bo->owner] += size;
    else if (bo->domain == FAKE_DOMAIN_VRAM || bo->domain == FAKE_DOMAIN_GTT)
        t->gtt += size;
    if (bo->pinned_gtt != 0)
        t->pinned[bo->owner] += size;
    if (bo->flags & KFD_MEM_PUBLIC && in_vram(bo))
        t->visible[bo->owner] += size;
    if (bo->charge & FAKE_CHARGE_VRAM) {
        t->vram_kfd[bo->owner] += size;
        t->vram_2m[bo->owner] += huge;
    }
    if (bo->charge & FAKE_CHARGE_SYSTEM)
        t->system += size;
    if (bo->charge & FAKE_CHARGE_TTM)
        t->ttm += size;
}

/* No sum, which a size near 2^64 would overflow. */
static bool fits(const struct fake_shared_bo *bo, uint64_t used, uint64_t limit)
{
    return used <= limit && bo->size <= limit - used;
}

/* Whether the limits leave room for bo. Physical memory counts what the DRM node gave out too. */
static bool has_room(const struct fake_shared *s, const struct fake_shared_bo *bo)
{
    const struct fake_totals *t = &s->totals;
    const struct fake_limits *l = &s->limits;

    if (bo->charge & FAKE_CHARGE_SYSTEM && !fits(bo, t->system, l->system))
        return false;
    if (bo->charge & FAKE_CHARGE_TTM && !fits(bo, t->ttm, l->ttm))
        return false;
    if (bo->charge & FAKE_CHARGE_VRAM && !fits(bo, t->vram_kfd[bo->owner], l->vram_kfd[bo->owner]))
        return false;
    if (bo->domain == FAKE_DOMAIN_VRAM && !fits(bo, t->vram[bo->owner], l->vram[bo->owner]))
        return false;
    /* Each card has a window as large as this onto system memory. */
    return bo->domain != FAKE_DOMAIN_GTT || bo->size <= l->ttm;
}

static void ino_insert(struct fake_shared *s, uint32_t index)
{
    struct fake_shared_bo *bo = &s->bos[index];
    uint32_t *bucket = &s->ino_buckets[bo->ino % FAKE_INO_BUCKETS];

    bo->ino_next = *bucket;
    *bucket = index;
}

static void ino_remove(struct fake_shared *s, uint32_t index)
{
    struct fake_shared_bo *bo = &s->bos[index];
    uint32_t *link = &s->ino_buckets[bo->ino % FAKE_INO_BUCKETS];

    while (*link != index)
        link = &s->bos[*link].ino_next;
    *link = bo->ino_next;
}

static uint32_t ino_find(const struct fake_shared *s, uint64_t ino)
{
    uint32_t index = s->ino_buckets[ino % FAKE_INO_BUCKETS];

    while (index != 0 && s->bos[index].ino != ino)
        index = s->bos[index].ino_next;
    return index;
}

static void bo_path(const struct fake_machine *m, uint32_t index, char *path)
{
    snprintf(path, FAKE_PATH_SIZE, "%.*s/b%u", (int)FAKE_PATH_SIZE - 16, m->dir, index);
}

/* Whether a descriptor or a mapping that was given out is still there. */
static bool externally_held(struct fake_machine *m, uint32_t index)
{
    struct fake_shared_bo *bo = fake_machine_bo(m, index);
    char path[FAKE_PATH_SIZE];
    bool held;
    int fd;

    if (!bo->external)
        return false;
    bo_path(m, index, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT; /* no descriptor free to look with: keep it for now */
    held = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    if (!held)
        bo->external = 0;
    return held;
}

static void bo_destroy(struct fake_machine *m, uint32_t index)
{
    struct fake_shared *s = m->shared;
    struct fake_shared_bo *bo = &s->bos[index];
    char path[FAKE_PATH_SIZE];

    if (bo->ino != 0) {
        ino_remove(s, index);
        bo_path(m, index, path);
        unlink(path);
    }
    fake_machine_account(&s->totals, bo, -1);
    *bo = (struct fake_shared_bo){
        .generation = bo->generation + 1, .list_next = s->free_bo, .gone = bo->gone};
    s->free_bo = index;
}

static void idle_sweep(struct fake_machine *m)
{
    struct fake_shared *s = m->shared;
    uint32_t *link = &s->idle_bo, index;

    while ((index = *link) != 0) {
        struct fake_shared_bo *bo = &s->bos[index];

        if (externally_held(m, index)) {
            link = &bo->list_next;
            continue;
        }
        *link = bo->list_next;
        s->totals.idle--;
        bo_destroy(m, index);
    }
}

static void unref_locked(struct fake_machine *m, uint32_t index, const struct fake_stamp *now)
{
    struct fake_shared *s = m->shared;
    struct fake_shared_bo *bo = &s->bos[index];

    if (--bo->refs != 0)
        return;
    bo->gone = *now;
    if (!externally_held(m, index)) {
        bo_destroy(m, index);
        return;
    }
    bo->state = FAKE_BO_IDLE;
    bo->list_next = s->idle_bo;
    s->idle_bo = index;
    s->totals.idle++;
}

static int ref_add(struct fake_shared *s, uint32_t slot, uint32_t bo, uint32_t *out)
{
    struct fake_shared_proc *proc = &s->head.procs[slot];
    uint32_t index = s->free_ref;
    struct fake_shared_ref *ref;

    if (index != 0)
        s->free_ref = s->refs[index].next;
    else if (s->top_ref < FAKE_MAX_REFS)
        index = s->top_ref++;
    else
        return kfd_fail(-ENOMEM, "fake: more than %u references on the machine", FAKE_MAX_REFS);
    ref = &s->refs[index];
    ref->slot = slot;
    ref->number = 0;
    ref->kfd = 0;
    ref->prev = 0;
    ref->next = proc->first_ref;
    if (ref->next != 0)
        s->refs[ref->next].prev = index;
    proc->first_ref = index;
    ref->bo = bo;
    *out = index;
    return 0;
}

static void ref_drop(struct fake_machine *m, uint32_t index, const struct fake_stamp *now)
{
    struct fake_shared *s = m->shared;
    struct fake_shared_ref *ref = &s->refs[index];
    uint32_t bo = ref->bo;

    if (ref->next != 0)
        s->refs[ref->next].prev = ref->prev;
    if (ref->prev != 0)
        s->refs[ref->prev].next = ref->next;
    else
        s->head.procs[ref->slot].first_ref = ref->next;
    s->bos[bo].kfd -= ref->kfd;
    *ref = (struct fake_shared_ref){.next = s->free_ref};
    s->free_ref = index;
    unref_locked(m, bo, now);
}

static void forget_kfd(struct fake_shared *s, uint32_t slot)
{
    struct fake_shared_kfd *kfd = &s->kfd[slot];

    /* Untouched pages of the file stay holes. */
    if (kfd->pasid != 0)
        memset(kfd, 0, sizeof(*kfd));
}

static void leave_locked(struct fake_machine *m, uint32_t slot)
{
    struct fake_shared_proc *proc = &m->shared->head.procs[slot];
    const struct fake_stamp end = {.pid = proc->pid, .op = FAKE_DEED_EXIT};

    while (proc->first_ref != 0) {
        const struct fake_shared_ref *ref = &m->shared->refs[proc->first_ref];

        if (ref->number != 0)
            fake_machine_number_forget(m->shared, m->shared->bos[ref->bo].owner, ref->number);
        ref_drop(m, proc->first_ref, &end);
    }
    forget_kfd(m->shared, slot);
    proc->pid = 0;
}

void fake_machine_reap(struct fake_machine *m)
{
    struct fake_shared *s = m->shared;

    for (uint32_t i = 0; i < s->head.top_proc; i++)
        if (s->head.procs[i].pid != 0 && s->head.procs[i].pid != getpid() &&
            !fake_proc_alive(&s->head.procs[i]))
            leave_locked(m, i);
}

int fake_machine_enter(struct fake_machine *m, uint32_t *slot)
{
    struct fake_shared *s = m->shared;
    pid_t pid = getpid();
    int err = -EAGAIN;

    fake_machine_lock(m);
    /* What this pid left behind before it called exec is gone like a dead process's. */
    for (uint32_t i = 0; i < s->head.top_proc; i++)
        if (s->head.procs[i].pid == pid && s->head.procs[i].image != fake_proc_image())
            leave_locked(m, i);
    fake_machine_reap(m);
    for (uint32_t i = 0; i < FAKE_MAX_PROCS; i++) {
        if (s->head.procs[i].pid != 0)
            continue;
        s->head.procs[i].start = fake_proc_start(pid);
        s->head.procs[i].image = fake_proc_image();
        s->head.procs[i].first_ref = 0;
        s->head.procs[i].pid = pid;
        if (i >= s->head.top_proc)
            s->head.top_proc = i + 1;
        *slot = i;
        err = 0;
        break;
    }
    fake_machine_unlock(m);
    return err == 0 ? 0 : kfd_fail(err, "fake: more than %u processes", FAKE_MAX_PROCS);
}

void fake_machine_leave(struct fake_machine *m, uint32_t slot)
{
    fake_machine_lock(m);
    leave_locked(m, slot);
    fake_machine_unlock(m);
}

/* KFD's memory drives out what only the DRM node asked for, the oldest first. */
static void evict(struct fake_shared *s, const struct fake_shared_bo *wanted,
                  const struct fake_stamp *now)
{
    if (!(wanted->charge & FAKE_CHARGE_VRAM) ||
        !fits(wanted, s->totals.vram_kfd[wanted->owner], s->limits.vram_kfd[wanted->owner]))
        return;
    for (uint32_t i = 1; i < s->top_bo && !has_room(s, wanted); i++) {
        struct fake_shared_bo *bo = &s->bos[i];

        if (bo->state == FAKE_BO_FREE || bo->owner != wanted->owner || !in_vram(bo) ||
            bo->kfd != 0 || !(bo->charge & FAKE_CHARGE_GRAPHICS))
            continue;
        fake_machine_account(&s->totals, bo, -1);
        bo->evicted = 1;
        bo->moves++;
        bo->gone = *now;
        fake_machine_account(&s->totals, bo, 1);
    }
}

static bool make_room(struct fake_machine *m, const struct fake_shared_bo *wanted,
                      const struct fake_stamp *now)
{
    if (has_room(m->shared, wanted))
        return true;
    idle_sweep(m);
    if (has_room(m->shared, wanted))
        return true;
    fake_machine_reap(m);
    if (!has_room(m->shared, wanted))
        evict(m->shared, wanted, now);
    return has_room(m->shared, wanted);
}

int fake_machine_add(struct fake_machine *m, uint32_t slot, const struct fake_shared_bo *wanted,
                     const struct fake_stamp *now, uint32_t *index, uint32_t *ref)
{
    struct fake_shared *s = m->shared;
    struct fake_shared_bo *bo;
    uint32_t i;
    int err = 0;

    fake_machine_lock(m);
    if (!make_room(m, wanted, now)) {
        err = kfd_fail(-ENOMEM, "fake: no room for 0x%llx bytes on GPU %u",
                       (unsigned long long)wanted->size, wanted->owner);
        goto out;
    }
    i = s->free_bo;
    if (i == 0 && s->top_bo == FAKE_MAX_BOS) {
        err = kfd_fail(-ENOMEM, "fake: more than %u buffer objects", FAKE_MAX_BOS);
        goto out;
    }
    err = ref_add(s, slot, i != 0 ? i : s->top_bo, ref);
    if (err != 0)
        goto out;
    if (i != 0)
        s->free_bo = s->bos[i].list_next;
    else
        i = s->top_bo++;
    bo = &s->bos[i];
    *bo = (struct fake_shared_bo){
        .generation = bo->generation | 1,
        .refs = 1,
        .owner = wanted->owner,
        .domain = wanted->domain,
        .flags = wanted->flags,
        .charge = wanted->charge,
        .dmabuf_mode = UINT32_MAX,
        .size = wanted->size,
        .userptr = wanted->userptr,
        .gone = bo->gone,
        .gem_domains = wanted->gem_domains,
        .gem_flags = wanted->gem_flags,
        .gem_alignment = wanted->gem_alignment,
    };
    bo->state = FAKE_BO_LIVE;
    fake_machine_account(&s->totals, bo, 1);
    *index = i;
out:
    fake_machine_unlock(m);
    return err;
}

void fake_machine_hold(struct fake_machine *m, uint32_t ref, int by)
{
    fake_machine_lock(m);
    m->shared->refs[ref].kfd += (uint32_t)by;
    m->shared->bos[m->shared->refs[ref].bo].kfd += (uint32_t)by;
    fake_machine_unlock(m);
}

static void revive(struct fake_shared *s, uint32_t index)
{
    uint32_t *link = &s->idle_bo;

    while (*link != index)
        link = &s->bos[*link].list_next;
    *link = s->bos[index].list_next;
    s->bos[index].state = FAKE_BO_LIVE;
    s->totals.idle--;
}

static uint32_t index_of_fd(struct fake_machine *m, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_dev != m->dev)
        return 0;
    return ino_find(m->shared, st.st_ino);
}

int fake_machine_find(struct fake_machine *m, uint32_t slot, int fd, uint32_t *index, uint32_t *ref)
{
    int err = -EINVAL;
    uint32_t i;

    fake_machine_lock(m);
    i = index_of_fd(m, fd);
    if (i != 0)
        err = ref_add(m->shared, slot, i, ref);
    if (err == 0) {
        if (m->shared->bos[i].state == FAKE_BO_IDLE)
            revive(m->shared, i);
        m->shared->bos[i].refs++;
        *index = i;
    }
    fake_machine_unlock(m);
    return err;
}

int fake_machine_peek(struct fake_machine *m, int fd, uint32_t *index, struct fake_shared_bo *out)
{
    fake_machine_lock(m);
    *index = index_of_fd(m, fd);
    if (*index != 0)
        *out = m->shared->bos[*index];
    fake_machine_unlock(m);
    return *index != 0 ? 0 : -EINVAL;
}

void fake_machine_put(struct fake_machine *m, uint32_t ref, const struct fake_stamp *now)
{
    fake_machine_lock(m);
    ref_drop(m, ref, now);
    fake_machine_unlock(m);
}

struct fake_shared_bo *fake_machine_bo(struct fake_machine *m, uint32_t index)
{
    return &m->shared->bos[index];
}

uint8_t *fake_machine_metadata(struct fake_machine *m, uint32_t index)
{
    return m->shared->metadata[index];
}

bool fake_machine_in_place(struct fake_machine *m, uint32_t index, uint32_t generation,
                           uint32_t moves)
{
    const struct fake_shared_bo *bo = &m->shared->bos[index];

    return __atomic_load_n(&bo->generation, __ATOMIC_ACQUIRE) == generation &&
           __atomic_load_n(&bo->moves, __ATOMIC_ACQUIRE) == moves;
}

bool fake_machine_gone(struct fake_machine *m, uint32_t index, uint32_t generation,
                       struct fake_stamp *out)
{
    const struct fake_shared_bo *bo = &m->shared->bos[index];
    bool gone;

    fake_machine_lock(m);
    gone = bo->generation != generation;
    *out = bo->generation - generation <= 2 ? bo->gone : (struct fake_stamp){0};
    fake_machine_unlock(m);
    return gone;
}

/* Makes the file of an object that has none. Its length is the object's, and no byte is used. */
static int bo_create_file(struct fake_machine *m, uint32_t index, const char *path)
{
    struct fake_shared_bo *bo = &m->shared->bos[index];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err = 0;
    struct stat st;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bo->size) != 0 || fstat(fd, &st) != 0)
        err = -errno;
    close(fd);
    if (err != 0) {
        unlink(path);
        return err;
    }
    bo->ino = st.st_ino;
    ino_insert(m->shared, index);
    return 0;
}

static int open_bo_locked(struct fake_machine *m, uint32_t index, int flags)
{
    char path[FAKE_PATH_SIZE];
    int fd, err;

    bo_path(m, index, path);
    if (m->shared->bos[index].state == FAKE_BO_FREE)
        return -ENOENT;
    if (m->shared->bos[index].ino == 0) {
        err = bo_create_file(m, index, path);
        if (err != 0)
            return err;
    }
    fd = open(path, flags);
    return fd >= 0 ? fd : -errno;
}

int fake_machine_open_bo(struct fake_machine *m, uint32_t index, int flags)
{
    int fd;

    fake_machine_lock(m);
    fd = open_bo_locked(m, index, flags);
    fake_machine_unlock(m);
    return fd;
}

int fake_machine_export_bo(struct fake_machine *m, uint32_t index, int flags)
{
    int fd;

    fake_machine_lock(m);
    fd = open_bo_locked(m, index, flags);
    if (fd >= 0 && flock(fd, LOCK_SH) != 0) {
        int err = -errno;

        close(fd);
        fd = err;
    }
    if (fd >= 0)
        m->shared->bos[index].external = 1;
    fake_machine_unlock(m);
    return fd;
}

int fake_machine_to_vram(struct fake_machine *m, uint32_t index)
{
    struct fake_shared_bo *bo = &m->shared->bos[index], moved;
    const struct fake_stamp nobody = {0}; /* the DRM node's memory drives nobody out */
    int err = 0;

    fake_machine_lock(m);
    moved = *bo;
    moved.domain = FAKE_DOMAIN_VRAM;
    if (bo->domain != FAKE_DOMAIN_VRAM && !make_room(m, &moved, &nobody)) {
        err = -ENOMEM;
    } else {
        fake_machine_account(&m->shared->totals, bo, -1);
        bo->domain = FAKE_DOMAIN_VRAM;
        fake_machine_account(&m->shared->totals, bo, 1);
    }
    fake_machine_unlock(m);
    return err;
}

void fake_machine_cpu_view(struct fake_machine *m, uint32_t index)
{
    fake_machine_lock(m);
    m->shared->bos[index].cpu_viewed = 1;
    fake_machine_unlock(m);
}

void fake_machine_pin_gtt(struct fake_machine *m, uint32_t index, int by)
{
    struct fake_shared_bo *bo = &m->shared->bos[index];

    fake_machine_lock(m);
    fake_machine_account(&m->shared->totals, bo, -1);
    bo->pinned_gtt += (uint32_t)by;
    fake_machine_account(&m->shared->totals, bo, 1);
    fake_machine_unlock(m);
}

void fake_machine_totals(struct fake_machine *m, struct fake_totals *out)
{
    fake_machine_lock(m);
    fake_machine_reap(m);
    idle_sweep(m);
    *out = m->shared->totals;
    fake_machine_unlock(m);
}
