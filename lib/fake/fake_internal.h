/* SPDX-License-Identifier: MIT */
/*
 * The objects of the fake kernel and how they hang together.
 *
 *   fake ── profile (immutable), machine (shared with other processes)
 *    └─ process (one per pid; a forked child gets its own at its first call)
 *        ├─ gpus[i]: KFD handles, the acquired VM
 *        ├─ files: every open of a device node, found by the inode behind a descriptor
 *        │    └─ render node: VM, GEM handles, prime cache
 *        └─ mems: this process's view of the machine's buffer objects
 *
 * One lock per process guards everything below it; the request dispatcher holds it around a handler
 * unless the handler's row says `unlocked`. The machine's lock nests inside it. A process and what
 * hangs on it lie in an arena that its forked children see too: what they do on a render node that
 * they inherited, they do to their parent's objects, under its lock.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kfdirect/fake.h>

#include "fake/arena.h"
#include "fake/machine.h"
#include "fake/profile.h"
#include "fake/stamp.h"
#include "fake/table.h"
#include "fake/tree.h"

#define FAKE_PAGE 4096ull
#define FAKE_HUGE (2ull << 20)
#define KFD_MEM_AQL_QUEUE 0x08000000u

struct fake_bo;
struct fake_events;
struct fake_mem;
struct fake_queues;
struct fake_smi;
struct fake_svm;
struct fake_syncobj_fd;
struct fake_vm;

enum fake_file_kind {
    FAKE_FILE_KFD = 1,
    FAKE_FILE_RENDER,
    FAKE_FILE_PRIMARY,
    FAKE_FILE_SYSFS,
};

/* One open of a device node; dup shares it. Its identity is the inode of its own small file in the
 * machine's directory. Lives until its last descriptor is closed, or with the process when KFD took
 * its VM. */
struct fake_file {
    enum fake_file_kind kind;
    uint64_t ino;
    uint32_t serial; /* of the file's name */
    uint32_t gpu;    /* render and primary */
    int access;      /* O_ACCMODE bits it was opened with */
    struct fake_vm *vm;
    struct fake_ids gem;     /* struct fake_gem *; number 0 is taken by the file itself */
    struct fake_map prime;   /* memory index -> struct fake_gem *, once imported or exported here */
    struct fake_ids syncobj; /* struct fake_syncobj *; number 0 likewise */
    bool acquired;           /* KFD holds it */
    struct fake_stamp opened;
    uint32_t busy;          /* requests under way */
    bool closed;            /* without a descriptor; goes when no longer busy */
    struct fake_file *next; /* of the process */
};

/* Pages of the kernel's own that a process maps as often as it likes: a file of the machine's
 * directory. */
struct fake_pages {
    void *at; /* the fake's own view; NULL: not made yet */
    size_t size;
    uint32_t serial; /* of the file's name */
};

/* A process's share of one GPU. */
struct fake_process_gpu {
    struct fake_ids handles;                 /* struct fake_handle * */
    struct fake_file *file;                  /* acquired; NULL: no compute VM */
    struct fake_pages doorbells, mmio, trap; /* behind the mappings of /dev/kfd */
};

struct fake_process {
    pid_t pid;
    uint32_t slot;            /* in the machine */
    pthread_mutex_t lock;     /* with the arena's, see fake_process_lock */
    struct fake_arena *arena; /* holds this and all that hangs on it */
    bool ended;               /* what it opened works for nobody any more */
    bool kfd_open;            /* /dev/kfd was opened: the KFD process exists until the end */
    uint64_t requests;
    struct fake_stamp now; /* the request under way, or the last one */
    struct fake_file *files;
    struct fake_map files_by_ino;
    struct fake_map mems;    /* memory index -> struct fake_mem * */
    struct fake_map bo_maps; /* mmap offset | gpu tag -> struct fake_bo * */
    uint64_t next_offset;    /* for mmap on the render node */
    struct fake_process_gpu gpus[KFD_MAX_DEVICES];
    bool criu_paused;    /* between CRIU_OP's info and unpause */
    uint64_t event_page; /* KFD handle that FREE must refuse with EPERM; 0: none */
    struct fake_events *events;
    struct fake_queues *queues;
    struct fake_svm *svm;
    struct fake_smi *smi;
    struct fake_syncobj_fd *syncobj_fds;
    struct fake_process *inherited; /* the parent's, whose render nodes work here too */
    struct fake_cost cost[KFD_MAX_DEVICES];
};

struct fake {
    struct fake_profile *profile;
    char *machine_text, *kernel_text; /* as they were asked for */
    uint32_t flags;                   /* FAKE_* */
    struct fake_machine machine;
    struct fake_limits limits;
    _Atomic(struct fake_process *) process;
    atomic_bool ended; /* the program is ending */
    bool of_tree;      /* the machine of a process and those it starts, not that of join= */
    bool speaks;       /* the program need not know of it: strict mode reports on stderr */
    struct fake *next_at_exit;
    struct kfd_sys *sys;
    struct fake_log *log;
    struct fake_injector *injector;
    _Atomic uint64_t strict_count;
    atomic_bool strict_ready;
    char strict_text[512]; /* of the first, valid once ready */
};

/* What an injection does to a request. */
struct fake_strike {
    bool armed;
    enum fake_inject_point point;
    int error; /* negative */
    uint32_t done;
};

struct fake_handler;

/* One request under way. */
struct fake_call {
    struct fake *fake;
    struct fake_process *process; /* the file's; the caller's otherwise */
    struct fake_file *file;
    int fd;
    unsigned long request; /* the code as the caller gave it */
    uint64_t sequence;     /* among the process's requests */
    int32_t caller;        /* not the process's pid on a node that it inherited */
    uint32_t nr;
    uint32_t user_size; /* of the argument as the caller sees it */
    uint32_t type;      /* 'K' or 'd', by the node */
    uint32_t in, out;   /* bytes copied from and to the caller */
    const struct fake_handler *handler;
    struct fake_strike strike;
};

/* A handler works on the kernel's copy of the argument, which is at least the kernel's size and
 * zero behind what the caller gave. Returns the ioctl's result or -errno. */
struct fake_handler {
    int (*call)(struct fake_call *call, void *arg);
    bool unlocked; /* takes the process lock by itself, because it sleeps */
};

/* Indexed by request number; a NULL call is a request the fake knows but does not model. */
extern const struct fake_handler fake_kfd_handlers[256];
extern const struct fake_handler fake_drm_handlers[256];

/* fake_create; with a name, on a machine that every process of that name joins. */
int fake_create_named(const struct fake_options *options, const char *name, struct fake **out);

/* Takes a fake off the list of those that are left at exit. */
void fake_env_forget(const struct fake *fake);

/* The calling process, entered into the machine at its first call; NULL with -errno in err. */
struct fake_process *fake_process_get(struct fake *fake, int *err);

/* The GPU with that id, or -1. */
int fake_gpu_of_id(const struct fake *fake, uint32_t gpu_id);

/* The lock of a process, and its arena for what is allocated and freed meanwhile. */
void fake_process_lock(struct fake_process *p);
void fake_process_unlock(struct fake_process *p);

/* What happens next under the process lock is this deed's. */
void fake_process_deed(struct fake_process *p, enum fake_deed deed);

/* Records undefined use in strict mode and returns -ENOTRECOVERABLE; else returns otherwise. since:
 * what made it undefined; NULL: nothing the process did. */
int fake_strict(struct fake *fake, struct fake_process *p, int otherwise,
                const struct fake_stamp *since, const char *fmt, ...) KFDIRECT_PRINTF(5, 6);
/* The same with a text that says everything. */
int fake_strict_text(struct fake *fake, int otherwise, const char *text);

static inline uint64_t fake_page_up(uint64_t size)
{
    return (size + FAKE_PAGE - 1) & ~(FAKE_PAGE - 1);
}

#endif
