/* SPDX-License-Identifier: MIT */
/* Several processes on one device, and what the kernel tells about each of them. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rig.h"

#define VRAM (KFD_MEM_VRAM | CTS_RW)
#define MAX_NAMES 64u

/* In the order in which they are shown, so that rows compare. */
struct names {
    char *name[MAX_NAMES];
    unsigned n;
};

static int collect(void *arg, const char *name)
{
    struct names *all = arg;

    if (name[0] == '.')
        return 0;
    if (all->n == MAX_NAMES || !(all->name[all->n] = strdup(name)))
        return -ENOMEM;
    all->n++;
    return 0;
}

/* A name with gpu<n> in place of the gpu_id behind its last underscore. */
static void plain(struct cts *c, const char *name, char out[64])
{
    const char *line = strrchr(name, '_');

    snprintf(out, 64, "%s", name);
    for (uint32_t i = 0; line && i < c->gpus; i++)
        if (strtoul(line + 1, NULL, 10) == c->gpu[i].id)
            snprintf(out, 64, "%.*s_gpu%u", (int)(line - name), name, i);
}

static int by_shown_name(const void *a, const void *b, void *c)
{
    char one[64], other[64];

    plain(c, *(char *const *)a, one);
    plain(c, *(char *const *)b, other);
    return strcmp(one, other);
}

static int list(struct cts *c, const char *path, struct names *all)
{
    int ret;

    all->n = 0;
    ret = c->sys->ops->list_dir(c->sys, path, collect, all);
    qsort_r(all->name, all->n, sizeof all->name[0], by_shown_name, c);
    return ret;
}

static void show_file(struct cts *c, const char *shown, const char *path)
{
    char text[256] = "";
    bool ended;
    long ret = c->sys->ops->read_file(c->sys, path, text, sizeof text);

    ended = strchr(text, '\n') != NULL;
    text[strcspn(text, "\n")] = 0;
    if (ret >= 0 && strstr(shown, "gpuid"))
        snprintf(text, sizeof text, "%s", cts_gpu_text(c, (uint32_t)strtoul(text, NULL, 10)));
    /* numbers that depend on what ran before */
    if (strstr(shown, "pasid"))
        strcpy(text, strtoul(text, NULL, 10) ? "set" : "0");
    cts_row(c, shown, CTS_ANY, ret, "%s%s", ret < 0 || strstr(shown, "_ms") ? "-" : text,
            ended ? " and a newline" : "");
}

/* A row for everything below a folder; `shown` is the folder's name in the rows. */
static void show_tree(struct cts *c, const char *shown, const char *path)
{
    struct names all;
    int ret = list(c, path, &all);

    cts_row(c, shown, CTS_ANY, ret < 0 ? ret : 0, "%u names", all.n);
    for (unsigned i = 0; i < all.n; i++) {
        char below[256], name[256], last[64];
        struct names inner;

        snprintf(below, sizeof below, "%s/%s", path, all.name[i]);
        plain(c, all.name[i], last);
        snprintf(name, sizeof name, "%s/%s", shown, last);
        if (list(c, below, &inner) < 0)
            show_file(c, name, below);
        else
            show_tree(c, name, below);
        for (unsigned k = 0; k < inner.n; k++)
            free(inner.name[k]);
        free(all.name[i]);
    }
}

static const char *tree_of(pid_t pid)
{
    return cts_text("/sys/class/kfd/kfd/proc/%d", (int)pid);
}

/* Opens everything anew in a child, which may not use its parent's. */
static void start_again(struct cts *c)
{
    cts_close(c, c->kfd);
    for (uint32_t i = 0; i < c->gpus; i++)
        cts_close(c, c->gpu[i].drm);
    cts_start(c);
}

static void tree(struct cts *c)
{
    struct kfd_ioctl_destroy_queue_args d = {0};
    struct kfd_uapi_create_queue q;
    struct rig r;
    uint64_t h;
    long ret;
    int fd;

    show_tree(c, "before /dev/kfd is open", tree_of(getpid()));
    cts_open(c);
    show_tree(c, "opened", tree_of(getpid()));
    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(3) + 5, VRAM);
    fd = cts_export(c, "export", c->minor < 12 ? -ENOTTY : 0, h);
    if (fd >= 0)
        cts_import(c, "an import", 0, c->gpu[0].id, fd, c->va);
    cts_alloc(c, "system memory", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW);
    cts_row(c, "buffers of a queue", 0, rig_make(c, &r, 0, c->va + MiB(512)), "-");
    q = rig_arguments(c, &r);
    ret = rig_create(c, &q);
    cts_row(c, "create a queue", 0, ret, "id=%u", q.queue_id);
    show_tree(c, "with memory and a queue", tree_of(getpid()));
    d.queue_id = q.queue_id;
    cts_row(c, "destroy it", 0, cts_request(c, c->kfd, KFD_CODE_DESTROY_QUEUE, &d), "-");
    cts_free(c, "free", 0, h);
    show_tree(c, "without", tree_of(getpid()));
    cts_close(c, fd);
}

static void look_at_parent(struct cts *c, void *arg)
{
    pid_t parent = getppid();

    show_tree(c, "child: the parent's", tree_of(parent));
    show_tree(c, "child: its own", tree_of(getpid()));
    start_again(c);
    cts_alloc(c, "child: alloc", 0, 0, 0, MiB(1), VRAM);
    show_tree(c, "child: its own once open", tree_of(getpid()));
    *(pid_t *)arg = getpid();
}

static void trees_of_others(struct cts *c)
{
    pid_t *child = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct names all;
    bool there = true;

    cts_start(c);
    cts_alloc(c, "alloc", 0, 0, 0, MiB(2), VRAM);
    cts_fork(c, look_at_parent, child);
    /* Cleaned up on a work queue, so it may take a moment. */
    for (int i = 0; i < 200 && there; i++) {
        there = list(c, tree_of(*child), &all) >= 0;
        for (unsigned k = 0; k < all.n; k++)
            free(all.name[k]);
        if (there)
            usleep(10000);
    }
    cts_row(c, "the dead child's", -ENOENT, there ? 0 : -ENOENT, "-");
    munmap(child, 4096);
}

static void free_import(struct cts *c, void *arg)
{
    int fd = *(int *)arg;
    uint64_t in;

    start_again(c);
    in = cts_import(c, "child: import", 0, c->gpu[0].id, fd, c->va);
    cts_free(c, "child: free", 0, in);
}

/* What an unrelated buffer exports that has got the number of h, whose dma-buf fd is. */
static void take_number(struct cts *c, uint64_t h, int fd)
{
    uint64_t victim = cts_alloc(c, "an unrelated buffer takes the number", 0, 0, 0, MiB(4), VRAM);
    int own;

    cts_free(c, "free the original", 0, h);
    own = cts_export(c, "export the unrelated one", CTS_ANY, victim);
    cts_row(c, "size of what was exported", 0, 0, "0x%llx",
            own < 0 ? 0ull : (unsigned long long)lseek(own, 0, SEEK_END));
    cts_close(c, own);
    cts_free(c, "free it", 0, victim);
    cts_close(c, fd);
}

/* The number of trap.shared_number is the device's, so a stranger can take it away. */
static void shared_number(struct cts *c)
{
    uint64_t h;
    int fd;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), VRAM);
    fd = cts_export(c, "export", 0, h);
    cts_fork(c, free_import, &fd);
    take_number(c, h, fd);
}

/* The same by the end of a process that never freed its import. */
static void leave_import(struct cts *c, void *arg)
{
    start_again(c);
    cts_import(c, "child: import", 0, c->gpu[0].id, *(int *)arg, c->va);
}

static void shared_number_at_exit(struct cts *c)
{
    uint64_t h;
    int fd;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), VRAM);
    fd = cts_export(c, "export", 0, h);
    cts_fork(c, leave_import, &fd);
    usleep(300000); /* its clean-up is a work queue's */
    take_number(c, h, fd);
}

static const char *kind(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return "-";
    return cts_text("mode=0%o links=%lu size=0x%llx flags=0%o cloexec=%d", st.st_mode,
                    (unsigned long)st.st_nlink, (unsigned long long)st.st_size,
                    fcntl(fd, F_GETFL) & ~O_LARGEFILE & 0xfffff, fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void io_row(struct cts *c, const char *step, long n)
{
    cts_row(c, step, CTS_ANY, n < 0 ? -errno : 0, "%ld", n < 0 ? 0 : n);
}

static void poll_row(struct cts *c, const char *step, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};

    cts_row(c, step, CTS_ANY, poll(&p, 1, 0) < 0 ? -errno : 0, "0x%x", p.revents);
}

static int smi_open(struct cts *c)
{
    struct kfd_ioctl_smi_events_args a = {0};

    cts_open(c);
    a.gpuid = c->gpu[0].id;
    cts_row(c, "a file of events", 0, cts_request(c, c->kfd, KFD_CODE_SMI_EVENTS, &a), "-");
    return (int)a.anon_fd;
}

/* What a program sees of an event file. */
static void smi_file(struct cts *c)
{
    int fd = smi_open(c);
    uint64_t mask = 0;
    char text[64];

    cts_row(c, "close-on-exec", 0, 0, "%d", fcntl(fd, F_GETFD) & FD_CLOEXEC);
    poll_row(c, "poll", fd);
    io_row(c, "read", read(fd, text, sizeof text));
    io_row(c, "seek", lseek(fd, 0, SEEK_SET));
    io_row(c, "a mask", write(fd, &mask, 8));
    poll_row(c, "poll after a mask", fd);
    cts_row(c, "map it", CTS_ANY,
            mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -errno : 0, "-");
    cts_row(c, "an unknown request on it", CTS_ANY,
            cts_request(c, fd, _IOR('K', 1, uint64_t), text), "-");
    cts_close(c, fd);
}

/* What the file itself decides, without a request. */
static void smi_plain(struct cts *c)
{
    void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = smi_open(c);
    uint64_t mask[2] = {0};
    char text[64];

    cts_row(c, "its kind", 0, 0, "%s", kind(fd));
    io_row(c, "read nothing", read(fd, text, 0));
    io_row(c, "mask of 4 bytes", write(fd, mask, 4));
    io_row(c, "mask of 0 bytes", write(fd, mask, 0));
    io_row(c, "mask of 16 bytes", write(fd, mask, 16));
    io_row(c, "mask at a bad address", write(fd, bad, 8));
    cts_close(c, fd);
}

/* By what a program tells dma-bufs apart. */
static void dmabuf_file(struct cts *c)
{
    struct stat a = {0}, b = {0}, other = {0};
    uint64_t h, h2;
    char text[64];
    int fd, twin, more, drm;
    uint32_t gem;

    cts_start(c);
    drm = c->gpu[0].drm;
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW);
    h2 = cts_alloc(c, "another", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW);
    fd = cts_export(c, "export", 0, h);
    twin = cts_export(c, "export again", 0, h);
    more = cts_export(c, "export the other", 0, h2);
    fstat(fd, &a);
    fstat(twin, &b);
    fstat(more, &other);
    cts_row(c, "which are one", 0, 0, "twin=%d other=%d devices equal=%d size=0x%llx",
            a.st_ino == b.st_ino, a.st_ino == other.st_ino, a.st_dev == other.st_dev,
            (unsigned long long)a.st_size);
    gem = cts_prime(c, "PRIME import", 0, drm, fd);
    cts_close(c, twin);
    twin = cts_prime_export(c, "PRIME export", 0, drm, gem, O_CLOEXEC | O_RDWR);
    fstat(twin, &b);
    cts_row(c, "it is the same", 0, a.st_ino == b.st_ino ? 0 : -EXDEV, "-");
    cts_gem_close(c, "GEM_CLOSE", 0, drm, gem);
    io_row(c, "seek to the end", lseek(fd, 0, SEEK_END));
    io_row(c, "seek to the start", lseek(fd, 0, SEEK_SET));
    poll_row(c, "poll", fd);
    cts_row(c, "an unknown request on it", CTS_ANY,
            cts_request(c, fd, _IOR('b', 99, uint64_t), text), "-");
    cts_row(c, "a KFD request on it", CTS_ANY, cts_request(c, fd, KFD_CODE_GET_VERSION, text), "-");
    cts_close(c, more);
    cts_close(c, twin);
    cts_close(c, fd);
}

static void dmabuf_plain(struct cts *c)
{
    char text[8] = {0};
    uint64_t h;
    int fd;

    cts_start(c);
    h = cts_alloc(c, "alloc", 0, 0, 0, MiB(2), KFD_MEM_GTT | CTS_RW);
    fd = cts_export(c, "export", 0, h);
    cts_row(c, "its kind", 0, 0, "%s", kind(fd));
    io_row(c, "seek to 4096", lseek(fd, 4096, SEEK_SET));
    io_row(c, "where it is", lseek(fd, 0, SEEK_CUR));
    io_row(c, "seek to 4096 from the end", lseek(fd, 4096, SEEK_END));
    io_row(c, "read", read(fd, text, 8));
    io_row(c, "write", write(fd, text, 8));
    io_row(c, "truncate", ftruncate(fd, 4096));
    cts_close(c, fd);
}

static void criu_row(struct cts *c, const char *step, long want, uint32_t op, pid_t pid)
{
    struct kfd_ioctl_criu_args a = {.op = op, .pid = (uint32_t)pid};
    long ret = cts_request(c, c->kfd, KFD_CODE_CRIU_OP, &a);

    cts_row(c, step, want, ret, "devices=%u bos=%u objects=%u", a.num_devices, a.num_bos,
            a.num_objects);
}

/* The requests a checkpointing tool makes, as far as they can be made without one. UNPAUSE without
 * a VM crashes the kernel and is not tried. */
static void criu(struct cts *c)
{
    pid_t self = getpid();

    cts_start(c);
    cts_alloc(c, "a buffer", 0, 0, 0, MiB(2), VRAM);
    criu_row(c, "checkpoint before info", CTS_ANY, KFD_CRIU_OP_CHECKPOINT, self);
    criu_row(c, "info of a process without KFD", CTS_ANY, KFD_CRIU_OP_PROCESS_INFO, 1);
    criu_row(c, "info of no process", CTS_ANY, KFD_CRIU_OP_PROCESS_INFO, 0);
    criu_row(c, "info", CTS_ANY, KFD_CRIU_OP_PROCESS_INFO, self);
    criu_row(c, "info again", CTS_ANY, KFD_CRIU_OP_PROCESS_INFO, self);
    criu_row(c, "checkpoint without arrays", CTS_ANY, KFD_CRIU_OP_CHECKPOINT, self);
    criu_row(c, "unpause", CTS_ANY, KFD_CRIU_OP_UNPAUSE, self);
    criu_row(c, "unpause again", CTS_ANY, KFD_CRIU_OP_UNPAUSE, self);
    criu_row(c, "resume of no process", CTS_ANY, KFD_CRIU_OP_RESUME, 0x7fffff);
    criu_row(c, "resume of a process without KFD", CTS_ANY, KFD_CRIU_OP_RESUME, 1);
    criu_row(c, "resume of what was not restored", CTS_ANY, KFD_CRIU_OP_RESUME, self);
    criu_row(c, "restore without arrays", CTS_ANY, KFD_CRIU_OP_RESTORE, self);
    criu_row(c, "an unknown operation", CTS_ANY, 99, self);
    if (setresuid(65534, 65534, 65534) != 0)
        cts_skip(c, "not root");
    criu_row(c, "info without privileges", -EACCES, KFD_CRIU_OP_PROCESS_INFO, self);
    criu_row(c, "an unknown operation without privileges", -EACCES, 99, self);
}

struct pressure {
    int to_child[2], to_parent[2];
};

static void tell(int fd)
{
    if (write(fd, "", 1) != 1)
        _exit(9);
}

static void await(int fd)
{
    char b;

    if (read(fd, &b, 1) != 1)
        _exit(9);
}

static void fill_vram(struct cts *c, void *arg)
{
    struct pressure *p = arg;
    union drm_amdgpu_gem_create a;
    unsigned n = 0;

    start_again(c);
    for (uint64_t at = 0; at + MiB(4) <= c->gpu[0].vram; at += MiB(4), n++) {
        memset(&a, 0, sizeof a);
        a.in.bo_size = MiB(4);
        a.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
        if (cts_request(c, c->gpu[0].drm, DRM_CODE_GEM_CREATE, &a) < 0)
            break;
    }
    cts_row(c, "child: DRM buffers as large as the card", 0, 0, "all=%d",
            n == c->gpu[0].vram / MiB(4));
    tell(p->to_parent[1]);
    await(p->to_child[0]);
}

/* Buffers of the DRM side make room for KFD's; KFD's for none. */
static void pressure(struct cts *c)
{
    struct pressure p;
    uint64_t vram = c->gpu[0].vram / 4 & ~(MiB(2) - 1), h;
    pid_t pid;

    if (pipe(p.to_child) || pipe(p.to_parent))
        cts_skip(c, "no pipe");
    cts_start(c);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        fill_vram(c, &p);
        _exit(0);
    }
    await(p.to_parent[0]);
    h = cts_alloc(c, "a quarter of the card for KFD", CTS_ANY, 0, c->va, vram, VRAM);
    cts_map(c, "map it", CTS_ANY, h, 0, CTS_IDS(c->gpu[0].id));
    cts_alloc(c, "another", CTS_ANY, 0, 0, vram, VRAM);
    cts_alloc(c, "a third", CTS_ANY, 0, 0, vram, VRAM);
    cts_alloc(c, "a fourth", CTS_ANY, 0, 0, vram, VRAM);
    tell(p.to_child[1]);
    waitpid(pid, NULL, 0);
}

const struct cts_case cts_process_cases[] = {
    {"process.tree", 0, tree},
    {"process.trees_of_others", 0, trees_of_others},
    {"process.shared_number", CTS_EXPORT, shared_number},
    {"process.shared_number_at_exit", CTS_EXPORT, shared_number_at_exit},
    {"process.smi_file", 0, smi_file},
    {"process.dmabuf_file", CTS_EXPORT, dmabuf_file},
    {"plain.smi", 0, smi_plain},
    {"plain.dmabuf", CTS_EXPORT, dmabuf_plain},
    {"process.criu", 0, criu},
    {"process.pressure", 0, pressure},
    {0},
};
