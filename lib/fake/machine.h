/* SPDX-License-Identifier: MIT */
/*
 * What the processes of one fake machine share: a directory of files, and in it a state file that
 * every process maps. Each buffer object whose bytes or descriptor are needed is one sparse file of
 * that directory; the file is the memory, so the fake holds no descriptor and no mapping per buffer
 * and needs no daemon.
 *
 * Life of a buffer object: processes hold references (one record per process and object). Dma-buf
 * descriptors and CPU mappings are open file descriptions of the object's file, each with a shared
 * flock on it; they can travel to any process and be closed by anyone, and an exclusive flock tells
 * whether any of them is left. The charge goes back when neither kind remains.
 *
 * A process that died is noticed by its pid and start time, and its references are dropped by
 * whoever looks next. The lock is robust: after its holder died the derived parts of the state are
 * rebuilt from the records.
 */
#ifndef FAKE_MACHINE_H
#define FAKE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kfdirect/kfd.h>

#include "fake/stamp.h"

#define FAKE_PATH_SIZE 192u

enum fake_domain {
    FAKE_DOMAIN_VRAM = 1,
    FAKE_DOMAIN_GTT,
    FAKE_DOMAIN_USERPTR,
    FAKE_DOMAIN_DOORBELL,
    FAKE_DOMAIN_MMIO,
};

/* What a buffer object is charged to. Bits, as one object may count in several limits. */
enum fake_charge {
    FAKE_CHARGE_VRAM = 0x1,     /* KFD's VRAM limit of its GPU */
    FAKE_CHARGE_SYSTEM = 0x2,   /* KFD's limit on system memory */
    FAKE_CHARGE_TTM = 0x4,      /* KFD's limit on TTM pages */
    FAKE_CHARGE_GRAPHICS = 0x8, /* no limit of KFD's: made by the DRM node */
};

enum fake_bo_state {
    FAKE_BO_FREE,
    FAKE_BO_LIVE,
    FAKE_BO_IDLE, /* no process refers to it, but a descriptor or a mapping may */
};

#define FAKE_METADATA_SIZE 256u

/* A buffer object of the machine. Changed under the machine's lock; size, owner, domain, flags and
 * generation do not change while it lives. */
struct fake_shared_bo {
    uint32_t state;
    uint32_t generation; /* odd while it lives */
    uint32_t refs;       /* processes that refer to it (derived) */
    uint32_t owner;      /* GPU */
    uint32_t domain;
    uint32_t flags; /* ALLOC's */
    uint32_t charge;
    uint32_t dmabuf_mode; /* O_RDONLY or O_RDWR since the first export, else -1 */
    uint64_t size;
    uint64_t ino; /* of its file; 0: none yet */
    uint64_t userptr;
    uint32_t ino_next;   /* hash chain (derived) */
    uint32_t list_next;  /* free or idle list (derived) */
    uint32_t external;   /* a descriptor or a mapping was given out */
    uint32_t pinned_gtt; /* attached to a device that cannot reach its VRAM */
    uint32_t cpu_viewed; /* the CPU has or had a mapping of it, or it was pinned */
    uint32_t metadata_size;
    uint32_t gem_domains; /* what DRM says it was created as */
    uint64_t gem_flags, gem_alignment;
    uint64_t metadata_flags, tiling;
    uint32_t kfd;     /* handles of KFD's that keep it in its place (derived) */
    uint32_t evicted; /* VRAM that made room: it lies in system memory */
    uint32_t moves;   /* how often page tables that pointed at it were left behind */
    /* Who let the last reference of a process go, which is kept when the record is used again; or
     * who evicted it. */
    struct fake_stamp gone;
};

enum fake_queue_kind {
    FAKE_QUEUE_COMPUTE,
    FAKE_QUEUE_SDMA,
    FAKE_QUEUE_SDMA_XGMI,
};

/* A queue as the machine's other processes know of it. */
struct fake_shared_queue {
    uint32_t used; /* 0: no such queue */
    uint32_t gpu, kind;
    uint32_t type, size; /* as CREATE_QUEUE and UPDATE_QUEUE gave them */
    uint32_t place;      /* of an SDMA queue, among those of the device and kind */
};

#define FAKE_MAX_QUEUES 1024u

/* What sysfs tells of a process that has /dev/kfd open or had. */
struct fake_shared_kfd {
    uint32_t pasid; /* 0: it had not */
    uint64_t vram[KFD_MAX_DEVICES];
    struct fake_shared_queue queues[FAKE_MAX_QUEUES]; /* by id */
};

struct fake_shared;

struct fake_machine {
    struct fake_shared *shared;
    char dir[FAKE_PATH_SIZE];
    dev_t dev;
    uint64_t id; /* of this machine among all */
};

/* Limits that the profile sets, in bytes. */
struct fake_limits {
    uint32_t gpu_count, zero;           /* no padding: limits are compared byte by byte */
    uint64_t vram[KFD_MAX_DEVICES];     /* all there is */
    uint64_t vram_kfd[KFD_MAX_DEVICES]; /* what KFD gives out */
    uint64_t system, ttm;
};

/*
 * Makes a machine of its own (name NULL) or joins the one of that name, made if it is not there,
 * and enters the calling process; the slot names it in the calls below. Machines whose processes
 * are all gone are swept first. Who joins must bring the same limits. 0 or -errno with a text.
 */
int fake_machine_open(const char *name, const struct fake_limits *limits,
                      struct fake_machine *machine, uint32_t *slot);
/* Leaves the machine, and removes its files when no process is left in it. */
void fake_machine_close(struct fake_machine *machine, uint32_t slot);

/* The same, with the state left mapped for threads that still look. */
void fake_machine_abandon(struct fake_machine *machine, uint32_t slot);
/* True once for a machine: the caller is to say that it stands in. */
bool fake_machine_speaks_first(struct fake_machine *machine);
/* Forgets a machine that this process never entered. */
void fake_machine_unmap(struct fake_machine *machine);

/* Enters a forked child into the machine it inherited. -EAGAIN: too many processes. */
int fake_machine_enter(struct fake_machine *machine, uint32_t *slot);
void fake_machine_leave(struct fake_machine *machine, uint32_t slot);

/* The record of a process, which alone changes it. */
struct fake_shared_kfd *fake_machine_kfd(struct fake_machine *machine, uint32_t slot);
/* The slot of the i-th process that has one, and its pid; -ENOENT. The dead are gone first when i
 * is 0. */
int fake_machine_kfd_at(struct fake_machine *machine, uint32_t i, uint32_t *slot, int32_t *pid);

/*
 * Enters a queue. An SDMA queue takes a place of its device's: of `places` the lowest free one that
 * is `first` more than a multiple of `step`. -ENOMEM: none; -EPERM: too many queues on the device.
 */
int fake_machine_queue_add(struct fake_machine *machine, uint32_t slot, uint32_t id,
                           const struct fake_shared_queue *queue, uint32_t places, uint32_t first,
                           uint32_t step);
void fake_machine_queue_remove(struct fake_machine *machine, uint32_t slot, uint32_t id);

/*
 * Numbers of KFD's own DRM file on a GPU, see client.h. take: for the object behind this process's
 * reference, the lowest free one or with `import` the one its dma-buf is known by; share: makes the
 * number's object, which is returned, known by it, 0 when there is none.
 */
int fake_machine_number_take(struct fake_machine *machine, uint32_t gpu, uint32_t ref, bool import,
                             uint32_t *number);
uint32_t fake_machine_number_share(struct fake_machine *machine, uint32_t gpu, uint32_t number);
void fake_machine_number_drop(struct fake_machine *machine, uint32_t gpu, uint32_t ref,
                              uint32_t number);

/* A number for a file of the directory, never given twice. */
uint32_t fake_machine_serial(struct fake_machine *machine);

/*
 * Makes an object with one reference of this process. wanted: only size, owner, domain, flags,
 * charge and userptr are read. Where KFD's memory does not fit, the DRM node's that no KFD handle
 * holds is moved to system memory first. -ENOMEM when a limit or the physical memory is exceeded.
 */
int fake_machine_add(struct fake_machine *machine, uint32_t slot,
                     const struct fake_shared_bo *wanted, const struct fake_stamp *now,
                     uint32_t *index, uint32_t *ref);
/* One KFD handle more or less (by 1 or -1) of this process keeps the object where it is. */
void fake_machine_hold(struct fake_machine *machine, uint32_t ref, int by);
/* Finds the object behind an open descriptor and refers to it: -EINVAL when it is none. */
int fake_machine_find(struct fake_machine *machine, uint32_t slot, int fd, uint32_t *index,
                      uint32_t *ref);
/* As find, without a reference: copies the record. */
int fake_machine_peek(struct fake_machine *machine, int fd, uint32_t *index,
                      struct fake_shared_bo *out);
/* Drops this process's reference; now: who does. */
void fake_machine_put(struct fake_machine *machine, uint32_t ref, const struct fake_stamp *now);
/* The record of an object that the caller refers to. */
struct fake_shared_bo *fake_machine_bo(struct fake_machine *machine, uint32_t index);
/* Its FAKE_METADATA_SIZE bytes for whoever shares it, of which metadata_size count. */
uint8_t *fake_machine_metadata(struct fake_machine *machine, uint32_t index);
/* Whether the object that had this generation is still there, and where it was. */
bool fake_machine_in_place(struct fake_machine *machine, uint32_t index, uint32_t generation,
                           uint32_t moves);
/* Who let it go (true) or evicted it (false) when it is not. Nothing is known when its record was
 * used twice since. */
bool fake_machine_gone(struct fake_machine *machine, uint32_t index, uint32_t generation,
                       struct fake_stamp *out);

/* Opens the object's file, making it at first use; the description carries no flock, so it must
 * not outlive the caller's reference. -errno as open(2). */
int fake_machine_open_bo(struct fake_machine *machine, uint32_t index, int flags);
/* The same, to be given out: counts as an external reference while it or a mapping of it lives. */
int fake_machine_export_bo(struct fake_machine *machine, uint32_t index, int flags);

/* Moves an object to VRAM; -ENOMEM when that is full. */
int fake_machine_to_vram(struct fake_machine *machine, uint32_t index);
/* The CPU has mapped the object. */
void fake_machine_cpu_view(struct fake_machine *machine, uint32_t index);
/* The object is (by 1) or is no longer (by -1) kept in system memory for a device that cannot reach
 * its VRAM. */
void fake_machine_pin_gtt(struct fake_machine *machine, uint32_t index, int by);

/* Usage over all processes; objects that only waited for a closed descriptor are let go first. */
struct fake_totals {
    uint64_t objects, idle;
    uint64_t vram[KFD_MAX_DEVICES];     /* all */
    uint64_t vram_kfd[KFD_MAX_DEVICES]; /* charged to KFD, exact */
    uint64_t vram_2m[KFD_MAX_DEVICES];  /* the same with each object rounded up to 2 MiB */
    uint64_t pinned[KFD_MAX_DEVICES];
    uint64_t visible[KFD_MAX_DEVICES]; /* in CPU-visible memory by wish */
    uint64_t system, ttm, gtt;
};
void fake_machine_totals(struct fake_machine *machine, struct fake_totals *out);

/* -EUCLEAN with a text when the records and the derived state disagree. */
int fake_machine_validate(struct fake_machine *machine);

void fake_machine_lock(struct fake_machine *machine);
void fake_machine_unlock(struct fake_machine *machine);

#endif
