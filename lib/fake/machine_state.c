/* SPDX-License-Identifier: MIT */
#include "fake/machine_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "kfd/error.h"

#define MAGIC 0x32656b6166646b66ull
#define PREFIX "kfdirect-fake-"
#define UNBORN_SECONDS 60
#define PATIENT 100 /* milliseconds that the last of a machine waits to remove it */
/* A container's /dev/shm is often too small to hold a GPU's memory. */
#define SHM_WANTED (256ull << 20)

uint64_t fake_proc_start(int32_t pid)
{
    char path[32], text[1024], state, *p;
    unsigned long long start = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : 1;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    p = strrchr(text, ')');
    if (p == NULL)
        return 1;
    if (sscanf(p + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &state, &start) != 2)
        return 1;
    return state == 'Z' || state == 'X' ? 0 : start;
}

uint64_t fake_proc_image(void)
{
    uint64_t image = 1;
    const void *random = (const void *)getauxval(AT_RANDOM);

    if (random != NULL)
        memcpy(&image, random, sizeof(image));
    return image;
}

bool fake_proc_alive(const struct fake_shared_proc *proc)
{
    uint64_t start = fake_proc_start(proc->pid);

    /* 1 means that /proc would not say. */
    return start != 0 && (start == 1 || proc->start == 1 || start == proc->start);
}

static void rebuild_refs(struct fake_shared *s)
{
    s->free_ref = 0;
    for (uint32_t i = 0; i < FAKE_MAX_PROCS; i++)
        s->head.procs[i].first_ref = 0;
    for (uint32_t i = 1; i < s->top_ref; i++) {
        struct fake_shared_ref *ref = &s->refs[i];

        if (ref->bo == 0 || s->bos[ref->bo].state == FAKE_BO_FREE ||
            s->head.procs[ref->slot].pid == 0) {
            *ref = (struct fake_shared_ref){.next = s->free_ref};
            s->free_ref = i;
            continue;
        }
        ref->prev = 0;
        ref->next = s->head.procs[ref->slot].first_ref;
        if (ref->next != 0)
            s->refs[ref->next].prev = i;
        s->head.procs[ref->slot].first_ref = i;
        s->bos[ref->bo].refs++;
        s->bos[ref->bo].kfd += ref->kfd;
    }
}

void fake_machine_rebuild(struct fake_shared *s)
{
    memset(&s->totals, 0, sizeof(s->totals));
    memset(s->ino_buckets, 0, sizeof(s->ino_buckets));
    s->free_bo = 0;
    s->idle_bo = 0;
    for (uint32_t i = 1; i < s->top_bo; i++)
        s->bos[i].refs = s->bos[i].kfd = 0;
    rebuild_refs(s);
    for (uint32_t i = 1; i < s->top_bo; i++) {
        struct fake_shared_bo *bo = &s->bos[i];

        if (bo->state == FAKE_BO_FREE) {
            bo->list_next = s->free_bo;
            s->free_bo = i;
            continue;
        }
        fake_machine_account(&s->totals, bo, 1);
        if (bo->ino != 0) {
            bo->ino_next = s->ino_buckets[bo->ino % FAKE_INO_BUCKETS];
            s->ino_buckets[bo->ino % FAKE_INO_BUCKETS] = i;
        }
        bo->state = bo->refs != 0 ? FAKE_BO_LIVE : FAKE_BO_IDLE;
        if (bo->state == FAKE_BO_IDLE) {
            bo->list_next = s->idle_bo;
            s->idle_bo = i;
            s->totals.idle++;
        }
    }
}

void fake_machine_lock(struct fake_machine *m)
{
    if (pthread_mutex_lock(&m->shared->lock) == EOWNERDEAD) {
        fake_machine_rebuild(m->shared);
        pthread_mutex_consistent(&m->shared->lock);
    }
}

void fake_machine_unlock(struct fake_machine *m)
{
    pthread_mutex_unlock(&m->shared->lock);
}

uint32_t fake_machine_serial(struct fake_machine *m)
{
    return __atomic_add_fetch(&m->shared->file_serial, 1, __ATOMIC_RELAXED);
}

bool fake_machine_speaks_first(struct fake_machine *m)
{
    return __atomic_exchange_n(&m->shared->said, 1, __ATOMIC_RELAXED) == 0;
}

#define BASES 4

/* Where machines may be, NULL at the end. */
static void list_bases(const char *bases[BASES])
{
    const char *tmp = getenv("TMPDIR");
    bool set = tmp != NULL && tmp[0] == '/' && strcmp(tmp, "/tmp") != 0;

    bases[0] = "/dev/shm";
    bases[1] = set ? tmp : "/tmp";
    bases[2] = set ? "/tmp" : NULL;
    bases[3] = NULL;
}

/* Where a new machine goes. */
static const char *base_dir(const char *const bases[BASES])
{
    struct statvfs fs;

    if (statvfs(bases[0], &fs) == 0 && access(bases[0], W_OK) == 0 &&
        (uint64_t)fs.f_bavail * fs.f_frsize >= SHM_WANTED)
        return bases[0];
    return bases[1];
}

static uint64_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    /* The state file goes last: whoever finds the directory without it leaves it alone. */
    if (where->level == 1 && strcmp(path + where->base, "state") == 0)
        return 0;
    if (where->level != 0 && type == FTW_DP)
        rmdir(path);
    else if (where->level != 0)
        unlink(path);
    return 0;
}

static void remove_dir(const char *dir)
{
    char path[FAKE_PATH_SIZE + 8];

    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(path, sizeof(path), "%s/state", dir);
    unlink(path);
    rmdir(dir);
}

static bool anyone_alive(const struct fake_shared_head *head)
{
    for (uint32_t i = 0; i < head->top_proc && i < FAKE_MAX_PROCS; i++)
        if (head->procs[i].pid != 0 && fake_proc_alive(&head->procs[i]))
            return true;
    return false;
}

static struct fake_shared *map_state(int fd)
{
    void *p = mmap(NULL, sizeof(struct fake_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, sizeof(struct fake_shared), MADV_DONTDUMP);
    return p;
}

/* Whether the maker of this state file came no further than that. */
static bool is_unborn(int fd)
{
    uint64_t magic = 0;

    return pread(fd, &magic, sizeof(magic), offsetof(struct fake_shared, head.magic)) >= 0 &&
           magic == 0;
}

/* A directory whose maker died before it had a state file, or before there was a state in it. */
static void sweep_unborn(const char *dir)
{
    struct stat st;

    if (lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
        time(NULL) - st.st_mtime > UNBORN_SECONDS)
        remove_dir(dir);
}

/* Others lock it only for a moment, but a copy of their descriptor in a forked child may last. */
static bool lock_file(int fd, int tries)
{
    static const struct timespec pause = {.tv_nsec = 1000000}; /* a millisecond */

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (--tries == 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Removes the machine in dir if all its processes are gone. Its state file is held locked by
 * whoever makes, joins or sweeps it. */
static void sweep_one(const char *dir, int tries)
{
    char path[FAKE_PATH_SIZE + 8];
    struct fake_shared_head *head = MAP_FAILED;
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "%s/state", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (errno == ENOENT)
            sweep_unborn(dir);
        return;
    }
    if (lock_file(fd, tries) && fstat(fd, &st) == 0 && st.st_uid == geteuid()) {
        if (is_unborn(fd))
            sweep_unborn(dir);
        else if (st.st_size >= (off_t)sizeof(*head))
            head = mmap(NULL, sizeof(*head), PROT_READ, MAP_SHARED, fd, 0);
    }
    if (head != MAP_FAILED) {
        if (head->magic == MAGIC && head->pid_namespace == pid_namespace() && !anyone_alive(head))
            remove_dir(dir);
        munmap(head, sizeof(*head));
    }
    close(fd);
}

static void sweep_all(const char *base)
{
    char path[FAKE_PATH_SIZE];
    struct dirent *e;
    DIR *d = opendir(base);

    if (d == NULL)
        return;
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) != 0)
            continue;
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", base, e->d_name) < sizeof(path))
            sweep_one(path, 1);
    }
    closedir(d);
}

static void init_state(struct fake_shared *s, const struct fake_limits *limits)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    s->head.pid_namespace = pid_namespace();
    if (getrandom(&s->head.id, sizeof(s->head.id), GRND_NONBLOCK) != (ssize_t)sizeof(s->head.id))
        s->head.id = fake_proc_start(getpid()) << 32 | (uint32_t)getpid();
    memcpy(&s->limits, limits, sizeof(*limits));
    s->top_bo = 1;
    s->top_ref = 1;
    s->head.magic = MAGIC;
}

/* Maps the state behind fd, which is locked, initialising it if it is new. */
static int attach(struct fake_machine *m, int fd, const struct fake_limits *limits)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -errno;
    if (st.st_size != 0 && st.st_size != (off_t)sizeof(struct fake_shared))
        return kfd_fail(-EPROTO, "fake: %s is of another version", m->dir);
    if (st.st_size == 0 && ftruncate(fd, sizeof(struct fake_shared)) != 0)
        return -errno;
    m->dev = st.st_dev;
    m->shared = map_state(fd);
    if (m->shared == NULL)
        return kfd_fail(-errno, "fake: cannot map %s/state", m->dir);
    if (m->shared->head.magic != MAGIC)
        init_state(m->shared, limits);
    m->id = m->shared->head.id;
    if (memcmp(&m->shared->limits, limits, sizeof(*limits)) == 0)
        return 0;
    munmap(m->shared, sizeof(*m->shared));
    return kfd_fail(-EINVAL, "fake: %s is a machine of another profile or kernel", m->dir);
}

static int open_in_dir(struct fake_machine *m, const struct fake_limits *limits, uint32_t *slot)
{
    char path[FAKE_PATH_SIZE + 8];
    struct stat st;
    int fd, err;

    snprintf(path, sizeof(path), "%s/state", m->dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return kfd_fail(-errno, "fake: cannot open %s", path);
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &st) != 0)
        err = -errno;
    else if (st.st_nlink == 0)
        err = -ESTALE; /* swept between open and lock */
    else
        err = attach(m, fd, limits);
    if (err == 0) {
        err = fake_machine_enter(m, slot);
        if (err != 0)
            munmap(m->shared, sizeof(*m->shared));
    }
    if (err != 0 && err != -ESTALE && is_unborn(fd)) {
        unlink(path);
        rmdir(m->dir);
    }
    /* The mapping keeps the description, and would keep the lock. */
    flock(fd, LOCK_UN);
    close(fd);
    if (err != 0 && err != -ESTALE)
        sweep_one(m->dir, PATIENT);
    return err;
}

/* Free space comes and goes: a machine is where its first process found room for it. */
static int find_named(const char *const bases[BASES], const char *name, struct fake_machine *m)
{
    struct stat st;

    for (const char *const *b = bases;; b++) {
        const char *base = *b != NULL ? *b : base_dir(bases);
        bool fits = (size_t)snprintf(m->dir, sizeof(m->dir), "%s/" PREFIX "%u-%s", base, geteuid(),
                                     name) < sizeof(m->dir) - 16;

        if (*b == NULL)
            return fits ? 0 : kfd_fail(-ENAMETOOLONG, "fake: '%s' is too long a name", name);
        if (fits && lstat(m->dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
            return 0;
    }
}

static int open_named(const char *const bases[BASES], const char *name,
                      const struct fake_limits *limits, struct fake_machine *m, uint32_t *slot)
{
    int err;

    if (*name == '\0')
        return kfd_fail(-EINVAL, "fake: an empty name for a machine, expected a character or more");
    for (const char *p = name; *p != '\0'; p++)
        if (*p == '/' || (unsigned char)*p <= ' ')
            return kfd_fail(-EINVAL, "fake: '%s' is no name for a machine", name);
    do {
        err = find_named(bases, name, m);
        if (err != 0)
            return err;
        if (mkdir(m->dir, 0700) != 0 && errno != EEXIST)
            return kfd_fail(-errno, "fake: cannot make %s", m->dir);
        err = open_in_dir(m, limits, slot);
    } while (err == -ESTALE || err == -ENOENT);
    return err;
}

int fake_machine_open(const char *name, const struct fake_limits *limits, struct fake_machine *m,
                      uint32_t *slot)
{
    const char *bases[BASES], *base;
    int err;

    memset(m, 0, sizeof(*m));
    list_bases(bases);
    for (int i = 0; bases[i] != NULL; i++)
        sweep_all(bases[i]);
    if (name != NULL)
        return open_named(bases, name, limits, m, slot);
    base = base_dir(bases);
    if ((size_t)snprintf(m->dir, sizeof(m->dir), "%s/" PREFIX "%d-XXXXXX", base, getpid()) >=
        sizeof(m->dir) - 16)
        return kfd_fail(-ENAMETOOLONG, "fake: TMPDIR is too long");
    if (mkdtemp(m->dir) == NULL)
        return kfd_fail(-errno, "fake: cannot make a directory in %s", base);
    err = open_in_dir(m, limits, slot);
    if (err != 0)
        rmdir(m->dir);
    return err;
}

void fake_machine_unmap(struct fake_machine *m)
{
    munmap(m->shared, sizeof(*m->shared));
    m->shared = NULL;
}

void fake_machine_abandon(struct fake_machine *m, uint32_t slot)
{
    fake_machine_leave(m, slot);
    sweep_one(m->dir, PATIENT);
}

void fake_machine_close(struct fake_machine *m, uint32_t slot)
{
    fake_machine_leave(m, slot);
    fake_machine_unmap(m);
    sweep_one(m->dir, PATIENT);
}

static int validate_totals(const struct fake_shared *s)
{
    struct fake_totals sum;

    memset(&sum, 0, sizeof(sum));
    for (uint32_t i = 1; i < s->top_bo; i++)
        if (s->bos[i].state != FAKE_BO_FREE)
            fake_machine_account(&sum, &s->bos[i], 1);
    sum.idle = s->totals.idle;
    if (memcmp(&sum, &s->totals, sizeof(sum)) != 0)
        return kfd_fail(-EUCLEAN, "fake: totals differ from the objects (%llu against %llu)",
                        (unsigned long long)s->totals.objects, (unsigned long long)sum.objects);
    return 0;
}

static int validate_refs(const struct fake_shared *s, uint32_t *counts)
{
    uint64_t idle = 0;

    for (uint32_t i = 1; i < s->top_ref; i++)
        if (s->refs[i].bo != 0)
            counts[s->refs[i].bo]++;
    for (uint32_t i = 1; i < s->top_bo; i++)
        if (counts[i] != s->bos[i].refs)
            return kfd_fail(-EUCLEAN, "fake: object %u counts %u references, %u exist", i,
                            s->bos[i].refs, counts[i]);
    for (uint32_t i = s->idle_bo; i != 0; i = s->bos[i].list_next, idle++)
        if (s->bos[i].state != FAKE_BO_IDLE || idle > s->top_bo)
            return kfd_fail(-EUCLEAN, "fake: the list of idle objects is broken at %u", i);
    return idle == s->totals.idle ? 0 : kfd_fail(-EUCLEAN, "fake: idle objects are miscounted");
}

int fake_machine_validate(struct fake_machine *m)
{
    uint32_t *counts = calloc(FAKE_MAX_BOS, sizeof(*counts));
    int err = -ENOMEM;

    if (counts != NULL) {
        fake_machine_lock(m);
        err = validate_totals(m->shared);
        if (err == 0)
            err = validate_refs(m->shared, counts);
        fake_machine_unlock(m);
    }
    free(counts);
    return err;
}
