/* SPDX-License-Identifier: MIT */
/*
 * The KFD layer: devices, memory, dma-bufs and GPU page tables, one call above the kernel's own
 * requests. It is usable alone by someone who tests a driver; it knows nothing of HIP and keeps no
 * address space.
 *
 * Every function returns 0 or a negative errno unless it says otherwise; kfd_error_text() then
 * holds one sentence for the calling thread. Sizes, offsets and addresses are bytes; the GPU page
 * is 4096 bytes. No function prints, aborts or exits. All functions may be called from any thread,
 * on any object that is not being closed at the same time, but not from a signal handler or
 * a handler of pthread_atfork. None is a point of cancellation (pthreads(7)).
 *
 * Pointers to objects and for results must not be NULL unless a function says that they may.
 * Handles, descriptors, addresses, sizes and flags may be anything: what is wrong is an error.
 *
 * On -EINTR and -EAGAIN the layer repeats the request with the same argument block, which keeps
 * n_success of a MAP or UNMAP as the kernel left it; after a million tries it gives up with
 * -EAGAIN. FREE is sent once, with all signals blocked, because the kernel cannot restart it: see
 * kfd_mem_free. Callers never see -EINTR.
 *
 * After fork the child's struct kfd is dead: the kernel ties it to the parent's memory. Every
 * function that needs the kernel answers -EBADF without a call; look-ups go on working; kfd_close
 * gives back the child's descriptors. The child opens a struct kfd of its own. Forks by fork(3) are
 * noticed; after a raw clone(2) KFD requests still end as the kernel's EBADF, but render-node
 * requests would work on the parent's address space.
 *
 * Errors of the kernel are handed on with their errno; the ones listed are those it is known to
 * give (Linux 6.1 and 6.12) and when.
 */
#ifndef KFDIRECT_KFD_H
#define KFDIRECT_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kfdirect/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KFD_PAGE_SIZE 4096u
#define KFD_HUGE_PAGE_SIZE (2u << 20)
#define KFD_MAX_DEVICES 64u
#define KFD_NO_NODE UINT32_MAX

/*
 * The seam: everything the library asks of the operating system. Each operation returns a
 * non-negative result or -errno and never touches errno for its caller. An implementation embeds
 * struct kfd_sys as its first member; decorators (trace, count, inject) hold the next one.
 * Operations may be called from any thread at once. None is a point of cancellation, because locks
 * are held over them.
 */
struct kfd_sys;

/* What stat(2) says of a device node. */
struct kfd_sys_stat {
    uint32_t mode, uid, gid;
    uint32_t device_major, device_minor;
};

/*
 * What this library must keep for as long as the process has the system, beyond any struct kfd: the
 * kernel ties each GPU's address space to one open render node per process and never unties it. The
 * implementation of a system only stores the pointer; one that ends before the process calls
 * release, if the pointer is not NULL, while its operations still work.
 */
struct kfd_sys_state {
    void (*release)(struct kfd_sys *sys, struct kfd_sys_state *state);
};

struct kfd_sys_ops {
    /* Opens a device node or a sysfs file with open(2) flags; returns the descriptor. */
    int (*open_path)(struct kfd_sys *sys, const char *path, int flags);
    int (*close_fd)(struct kfd_sys *sys, int fd);
    /* Duplicates fd to the lowest free number >= min, close-on-exec. */
    int (*dup_fd)(struct kfd_sys *sys, int fd, int min);
    /* One ioctl. Returns the ioctl's result or -errno. A KFD request is not repeated on EINTR; a
     * DRM one may be. */
    int (*request)(struct kfd_sys *sys, int fd, unsigned long request, void *arg);
    /* mmap(2); offset is a byte offset taken as unsigned (KFD offsets use bit 63). */
    int (*map_pages)(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                     uint64_t offset, void **out);
    int (*unmap_pages)(struct kfd_sys *sys, void *addr, size_t size);
    int (*protect_pages)(struct kfd_sys *sys, void *addr, size_t size, int prot);
    int (*advise_pages)(struct kfd_sys *sys, void *addr, size_t size, int advice);
    /* Reads a whole small file into buf, NUL-terminated; returns its length without the NUL.
     * -EFBIG when it does not fit. */
    int (*read_file)(struct kfd_sys *sys, const char *path, char *buf, size_t size);
    /* Calls each(arg, name) for every entry but "." and "..", in no order, until it returns
     * non-zero; returns that value or 0. */
    int (*list_dir)(struct kfd_sys *sys, const char *path, int (*each)(void *arg, const char *name),
                    void *arg);
    /* Facts of a device node, to explain a refused open and to check a render node's number, and of
     * an open one by /proc/self/fd, to close no other file. May be NULL: then nothing is checked.
     */
    int (*stat_path)(struct kfd_sys *sys, const char *path, struct kfd_sys_stat *out);
    /* The product name of the GPU behind an open render node, from libdrm's table on Linux.
     * -ENOENT when unknown. */
    int (*product_name)(struct kfd_sys *sys, int drm_fd, char *buf, size_t size);
    /* Where the library keeps its state of this system; decorators hand on the next one's. May be
     * NULL: then a GPU cannot be opened again after kfd_close unless the kernel behind allows it.
     */
    struct kfd_sys_state **(*state)(struct kfd_sys *sys);
    /* Drops the implementation when its owner is done with it; may be NULL. */
    void (*destroy)(struct kfd_sys *sys);
};

struct kfd_sys {
    const struct kfd_sys_ops *ops;
};

/* The Linux system calls. Static; never destroyed. */
KFDIRECT_API struct kfd_sys *kfd_sys_linux(void);

/*
 * Sets the system that kfd_open(NULL, ...) uses from now on; NULL restores the built-in choice: the
 * fake kernel named by the environment variable KFDIRECT_FAKE if that is set (loaded from
 * libkfdirect-fake.so at first use, announced by one line on stderr), else Linux. Ownership stays
 * with the caller, who keeps it alive while anything opened on it lives. HIP opens once, at its
 * first call that needs a device, and then keeps that system whatever is set here: hipxReset() lets
 * go of it (before the system is destroyed) and makes the next call choose anew.
 */
KFDIRECT_API void kfd_sys_set_default(struct kfd_sys *sys);

/* The default system described above. -ENOENT: KFDIRECT_FAKE is set but the fake library cannot be
 * loaded or does not know that machine; the text says which. */
KFDIRECT_API int kfd_sys_default(struct kfd_sys **out);

/*
 * Decorators: each passes every operation on to next, which must outlive it, and is freed with
 * kfd_sys_destroy().
 */

/* What a counting decorator saw. Requests are counted by kind; total includes the failed ones. */
struct kfd_sys_counts {
    uint64_t opens, closes, dups, maps, unmaps, protects, advises, reads, lists;
    uint64_t requests; /* all ioctls */
    uint64_t kfd[256]; /* by request number, type 'K' */
    uint64_t drm[256]; /* by request number, type 'd' */
};

/* A counter in front of next, all counts 0; *out is the caller's. -ENOMEM. */
KFDIRECT_API int kfd_sys_count_new(struct kfd_sys *next, struct kfd_sys **out);
/* The counts so far, each exact; operations under way in other threads may be in some and not in
 * others. Reset starts them at 0. */
KFDIRECT_API void kfd_sys_count_get(struct kfd_sys *counter, struct kfd_sys_counts *out);
KFDIRECT_API void kfd_sys_count_reset(struct kfd_sys *counter);

/* Writes one decoded line per operation to a stream of the caller: name, arguments, result, time.
 * The stream stays the caller's, and *result is the caller's too. -ENOMEM. */
KFDIRECT_API int kfd_sys_trace_new(struct kfd_sys *next, FILE *out, struct kfd_sys **result);

enum kfd_sys_op {
    KFD_SYS_ANY,
    KFD_SYS_OPEN,
    KFD_SYS_DUP,
    KFD_SYS_REQUEST,
    KFD_SYS_MAP,
    KFD_SYS_PROTECT,
    KFD_SYS_READ,
};

/*
 * A failure to inject: among the operations of kind op (KFD_SYS_ANY: every kind listed above; for
 * KFD_SYS_REQUEST only requests whose low 16 bits, type and number, equal `request`, 0 for all;
 * KFD_SYS_READ: files and folders) the one after `skip` others fails with -error without reaching
 * the next system; with `forever` all later ones fail as well. Closing, unmapping, advice, stat and
 * names never fail. A skip of UINT64_MAX only counts. EINTR and EAGAIN of a request are repeated by
 * this layer, but for FREE.
 */
struct kfd_sys_fault {
    enum kfd_sys_op op;
    uint16_t request;
    uint64_t skip;
    int error;
    bool forever;
};

/* An injector in front of next, not armed; *out is the caller's. -ENOMEM. */
KFDIRECT_API int kfd_sys_inject_new(struct kfd_sys *next, struct kfd_sys **out);
/* Arms one fault (replacing the last) or, with NULL, disarms. */
KFDIRECT_API void kfd_sys_inject_set(struct kfd_sys *injector, const struct kfd_sys_fault *fault);
/* How many operations matched since the last set, and whether the fault fired. */
KFDIRECT_API uint64_t kfd_sys_inject_seen(struct kfd_sys *injector, bool *fired);

/* Ends a decorator or a fake's system; the Linux one is left alone. NULL is allowed. */
KFDIRECT_API void kfd_sys_destroy(struct kfd_sys *sys);

/* The text of the calling thread's last failure in kfd, vmm or hip, "" before the first. Valid
 * until the thread's next failing call. */
KFDIRECT_API const char *kfd_error_text(void);

struct kfd;
struct kfd_device;

enum kfd_cap {
    KFD_CAP_AVAILABLE_MEMORY, /* KFD 1.9: free-memory query */
    KFD_CAP_EXPORT_DMABUF,    /* KFD 1.12 */
    KFD_CAP_GEM_VA,           /* KFD 1.15: GEM_VA mappings kept across eviction */
    KFD_CAP_CONTIGUOUS,       /* KFD 1.16 */
    KFD_CAP_VM_TIMELINE,      /* DRM 3.64 on every device: GEM_VA signals a timeline point */
    KFD_CAP_COUNT,
};

struct kfd_cap_info {
    enum kfd_cap cap;
    const char *name; /* short, for a table */
    const char *text; /* what it is for */
    bool present;
};

/* Immutable facts of a device, from the topology. */
struct kfd_device_info {
    uint32_t index; /* position among the usable devices, 0.. */
    uint32_t node;  /* topology node */
    uint32_t gpu_id;
    uint32_t render_minor; /* /dev/dri/renderD<minor> */
    uint32_t vendor_id, device_id;
    uint32_t domain, location_id; /* PCI domain; bus << 8 | device << 3 | function */
    uint32_t gfx_version;         /* major * 10000 + minor * 100 + step */
    uint32_t num_xcc, simd_count, simd_per_cu, wave_front_size, max_clock_mhz;
    uint32_t lds_size_kb, max_waves_per_simd, array_count;
    uint32_t mem_width_bits, mem_clock_mhz;
    uint32_t drm_major, drm_minor;
    uint32_t cpu_node; /* topology node of the CPU it hangs on, or KFD_NO_NODE */
    uint64_t hive_id, unique_id, capability;
    uint64_t vram_size; /* bytes; 0 on an APU without a bank of its own */
    bool large_bar;     /* all VRAM visible to the CPU */
    bool apu;
    uint64_t va_base, va_limit; /* the GPUVM aperture, limit inclusive */
    char name[64];              /* gfx name, e.g. "gfx942" */
    char product[96];           /* marketing name, or the topology's name */
};

enum kfd_link_type {
    KFD_LINK_NONE = 0,
    KFD_LINK_PCIE = 2,
    KFD_LINK_XGMI = 11,
};

struct kfd_link_info {
    uint32_t node_from, node_to;
    uint32_t type; /* enum kfd_link_type or another value of the kernel's */
    uint32_t weight, min_bandwidth, max_bandwidth, flags;
    bool peer; /* listed under p2p_links */
};

/*
 * Opens /dev/kfd and every usable GPU on sys (NULL: the default): version, topology, apertures,
 * render nodes, VM acquisition. 3 ioctls, and 3 per GPU: DRM VERSION and INFO, which make sure that
 * the render node is the topology's chip, and ACQUIRE_VM. GPUs that cannot be used are left out
 * with a reason (kfd_skipped): hidden by the device cgroup, render node missing, forbidden or
 * another device, no aperture, taken by another library of this process, malformed sysfs text, or
 * more than KFD_MAX_DEVICES. Without a usable GPU it still succeeds, with a count of 0 and the
 * reasons kept.
 *
 * A process may hold several struct kfd on one system; they share the acquired render nodes, and
 * their GEM handles, because the kernel knows one address space per process and GPU.
 * Opens and closes of one process run one at a time. *out is the caller's, ended by kfd_close, and
 * untouched on failure.
 * Errors: -ENOENT no /dev/kfd, or see kfd_sys_default; -EACCES or -EPERM no permission (the text
 * names the file, its mode and its group); -EPROTO a KFD major version other than 1; -EAGAIN the
 * topology kept changing; -ENODEV where the driver refuses /dev/kfd with ENOMEM, as it does when it
 * supports no GPU of the machine; -EMFILE, -ENFILE or -ENOMEM whatever it was needed for: a
 * shortage is no reason to leave a GPU out; others as open(2) and sysfs gave them.
 */
KFDIRECT_API int kfd_open(struct kfd_sys *sys, struct kfd **out);

/*
 * Ends a struct kfd and all its devices. KFD memory is freed by the kernel only at process exit, so
 * free allocations first. Where the system can keep them (see kfd_sys_state), the acquired render
 * nodes stay open, one descriptor per GPU, for the next kfd_open: the kernel would refuse any other
 * file of that GPU until the process ends. What GEM handles are left in them goes with the last
 * struct kfd that used them, before KFD 1.12 with the process. NULL is allowed. In a forked child
 * only the child's descriptors are closed and the driver is asked nothing. A descriptor that the
 * program has closed and that leads to another file of its by now stays.
 */
KFDIRECT_API void kfd_close(struct kfd *kfd);

/* The system it was opened on. */
KFDIRECT_API struct kfd_sys *kfd_get_sys(struct kfd *kfd);
/* True in the process that opened it; false in a forked child, where every request would be EBADF.
 * Costs no system call. */
KFDIRECT_API bool kfd_is_owner(const struct kfd *kfd);
/* The driver's KFD interface, and what it can: facts of the open, which never change. cap_info also
 * gives the words. */
KFDIRECT_API void kfd_version(const struct kfd *kfd, uint32_t *major, uint32_t *minor);
KFDIRECT_API bool kfd_has(const struct kfd *kfd, enum kfd_cap cap);
KFDIRECT_API void kfd_cap_info(const struct kfd *kfd, enum kfd_cap cap, struct kfd_cap_info *out);

/* Usable GPUs. Those that were left out are not counted: see kfd_skipped. */
KFDIRECT_API uint32_t kfd_device_count(const struct kfd *kfd);
/* The device of an index below the count, or of the driver's gpu_id; NULL when there is none.
 * Devices live as long as kfd. */
KFDIRECT_API struct kfd_device *kfd_device_at(const struct kfd *kfd, uint32_t index);
KFDIRECT_API struct kfd_device *kfd_device_by_gpu_id(const struct kfd *kfd, uint32_t gpu_id);
/* Its facts, and the kfd it belongs to; both live as long as that. */
KFDIRECT_API const struct kfd_device_info *kfd_device_info(const struct kfd_device *dev);
KFDIRECT_API struct kfd *kfd_device_kfd(const struct kfd_device *dev);
/* Returns the descriptor of the acquired render node, which is dev's: do not close it. */
KFDIRECT_API int kfd_device_drm_fd(const struct kfd_device *dev);
/* GPUs (and topology nodes) left out at open, each with its reason. NULL past the end. */
KFDIRECT_API const char *kfd_skipped(const struct kfd *kfd, uint32_t i);
/* CPU nodes of the topology. */
KFDIRECT_API uint32_t kfd_cpu_node_count(const struct kfd *kfd);
/* The links of the topology, and the i-th of them below the count; of a larger i all is 0. */
KFDIRECT_API uint32_t kfd_link_count(const struct kfd *kfd);
KFDIRECT_API void kfd_link_info(const struct kfd *kfd, uint32_t i, struct kfd_link_info *out);
/*
 * Whether the kernel lets dev map VRAM of owner: itself, an APU, an XGMI link of dev to owner among
 * the direct links, or a PCIe link of dev to owner among the peer links. One look-up, no call. The
 * direction matters. It holds for KFD maps; GEM_VA maps any peer and moves the memory to the host
 * when it must, which a caller should not let happen.
 */
KFDIRECT_API bool kfd_can_access(const struct kfd_device *dev, const struct kfd_device *owner);

/*
 * Free VRAM of a device in bytes: KFD's AVAILABLE_MEMORY where it exists (1.9), else the DRM heap's
 * total less its usage. Rounded down to 2 MiB, on an APU to pages; it ignores fragmentation, and
 * the former also what graphics programs hold. Memory counts until its last reference is gone,
 * exports and CPU mappings included. No error of its own is known.
 */
KFDIRECT_API int kfd_mem_available(struct kfd_device *dev, uint64_t *bytes);

/*
 * Flags of kfd_mem_alloc, the kernel's values. Exactly one names what the memory is:
 *   VRAM         the device's memory; on an APU system memory, counted as if it were
 *   GTT          system memory that the kernel owns
 *   USERPTR      pages of this process, at the address given in mmap_offset; the kernel wants them
 *                writable whatever the rights are
 *   DOORBELL     this process's doorbells on the device: 8 KiB, 4 KiB before gfx9
 *   MMIO_REMAP   the 4-KiB page of registers that flush the host data path
 * How VRAM is placed:
 *   PUBLIC       where the CPU sees it; the kernel refuses it unless the CPU sees all VRAM
 *   CONTIGUOUS   in one piece if there is one, scattered otherwise
 * How caches treat it, in KFD maps and, on most chips, in GEM_VA ones too. They are not checked
 * against each other, and what they come to is the chip's:
 *   COHERENT     fine-grained: what one side writes the other sees while work runs
 *   EXT_COHERENT the same, for atomics across devices as well; Linux 6.1 ignores it
 *   UNCACHED     no GPU cache keeps it
 * Rights of every KFD map of it, on every device; GEM_VA has its own for each mapping:
 *   WRITABLE     without it GPUs only read, and the exported dma-buf maps for reading only
 *   EXECUTABLE   shaders may run from it
 * And without effect in the kernel, which never puts other memory in its place anyway:
 *   NO_SUBSTITUTE
 * The kernel's AQL_QUEUE_MEM (0x08000000: half the size, mapped twice one behind the other, for
 * queues on gfx7 and gfx8) is not among them: memory that is not what its size says is refused.
 */
#define KFD_MEM_VRAM 0x00000001u
#define KFD_MEM_GTT 0x00000002u
#define KFD_MEM_USERPTR 0x00000004u
#define KFD_MEM_DOORBELL 0x00000008u
#define KFD_MEM_MMIO_REMAP 0x00000010u
#define KFD_MEM_CONTIGUOUS 0x00800000u
#define KFD_MEM_EXT_COHERENT 0x01000000u
#define KFD_MEM_UNCACHED 0x02000000u
#define KFD_MEM_COHERENT 0x04000000u
#define KFD_MEM_NO_SUBSTITUTE 0x10000000u
#define KFD_MEM_PUBLIC 0x20000000u
#define KFD_MEM_EXECUTABLE 0x40000000u
#define KFD_MEM_WRITABLE 0x80000000u

/*
 * ALLOC_MEMORY_OF_GPU: zeroed, resident memory of `size` bytes, for GPU address va. va 0 makes
 * memory without an address, which can be exported but not mapped by kfd_mem_map. KFD_MEM_WRITABLE
 * and _EXECUTABLE are rights of every KFD map of it; it is always readable.
 * The kernel checks neither alignment nor overlap of va here, nor contradicting flags, so this
 * layer refuses what a later MAP would: -EINVAL for va or size not a multiple of the GPU page, size
 * 0, a range outside the aperture, flags that are unknown or do not name exactly one type of
 * memory, PUBLIC or CONTIGUOUS without VRAM, PUBLIC where the CPU does not see all VRAM;
 * -EOPNOTSUPP for CONTIGUOUS before KFD 1.16. Overlap of va still shows at MAP only. mmap_offset
 * (may be NULL): where to mmap the device's render node (offset 0 of the memory only) or, for
 * MMIO_REMAP, /dev/kfd: by map_pages of kfd_get_sys()'s operations, which is mmap(2) itself only on
 * the real driver and under kfdirect fake. For USERPTR it is required and holds the page-aligned
 * CPU address on entry. The handle is the caller's, ended by kfd_mem_free; on failure nothing is
 * written. Other errors: -ENOMEM memory of that kind exhausted (the process's own memory is never
 * evicted for it); -EFAULT or -EPERM no writable memory at a userptr; -EADDRINUSE an SVM range at
 * va.
 */
KFDIRECT_API int kfd_mem_alloc(struct kfd_device *dev, uint64_t va, uint64_t size, uint32_t flags,
                               uint64_t *handle, uint64_t *mmap_offset);
/*
 * FREE_MEMORY_OF_GPU. Take GEM_VA mappings away and flush before it: the kernel does not, and stops
 * keeping them valid. -EBUSY while KFD-mapped on any device or a queue's (nothing changed); -EINVAL
 * unknown handle; -EPERM the event page; -EIO interrupted halfway in spite of blocked signals: it
 * must not be repeated, and the memory stays until the process ends.
 */
KFDIRECT_API int kfd_mem_free(struct kfd *kfd, uint64_t handle);
/*
 * MAP_MEMORY_TO_GPU for n devices (1 to KFD_MAX_DEVICES, all of this kfd) at the handle's VA, in
 * one ioctl; the page tables are written and the TLBs flushed when it returns. Maps are not
 * counted: mapping again succeeds and changes nothing. On failure the devices [0, *done) stay
 * mapped (kernel rule) and [*done] is the one that failed; done may be NULL. -EINVAL unreachable
 * peer, overlap with any mapping there (GEM_VA's included), va 0, a device of another kfd; -ENOMEM
 * page tables, or, an oddity of the kernel, a handle it does not know.
 */
KFDIRECT_API int kfd_mem_map(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs,
                             uint32_t n, uint32_t *done);
/*
 * UNMAP_MEMORY_FROM_GPU, likewise; flushed when it returns on gfx9.4.1 and later. -EINVAL a device
 * it is not mapped on, which also stops it there; -EBUSY used by a live queue; -ENOMEM unknown
 * handle.
 */
KFDIRECT_API int kfd_mem_unmap(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs,
                               uint32_t n, uint32_t *done);
/* Flushes the TLBs of n devices for changes made by GEM_VA: MAP with n_success == n_devices, which
 * maps nothing. Any live handle serves, one without an address too. Errors as kfd_mem_map. */
KFDIRECT_API int kfd_mem_flush(struct kfd *kfd, uint64_t handle, struct kfd_device *const *devs,
                               uint32_t n);

struct kfd_dmabuf_info {
    uint64_t size;            /* bytes, rounded up to the GPU page by the exporter */
    uint32_t flags;           /* KFD_MEM_VRAM or KFD_MEM_GTT, KFD_MEM_PUBLIC */
    struct kfd_device *owner; /* NULL when the owner is not among our devices */
    uint32_t gpu_id;
};

/*
 * EXPORT_DMABUF: a new descriptor, close-on-exec and above 2, owned by the caller. It keeps the
 * memory alive, and maps read-only on the CPU if the memory is not KFD_MEM_WRITABLE. Export soon
 * after the allocation: later, freeing an import of the same memory can make the first export fail
 * (-ENOENT, a kernel defect). -EOPNOTSUPP before KFD 1.12; -EINVAL unknown handle; -EPERM userptr;
 * -EMFILE.
 */
KFDIRECT_API int kfd_dmabuf_export(struct kfd *kfd, uint64_t handle, int *fd);
/*
 * IMPORT_DMABUF at va (0: no address): a handle of the caller's, ended by kfd_mem_free; fd stays
 * the caller's. Whole buffer, always writable and executable. The same buffer may be imported many
 * times. -EBADF bad descriptor; -EINVAL not a usable dma-buf, or va no page of the aperture;
 * -ENOMEM.
 */
KFDIRECT_API int kfd_dmabuf_import(struct kfd_device *dev, int fd, uint64_t va, uint64_t *handle);
/* GET_DMABUF_INFO. For host memory on gfx942 the kernel names the first GPU it may, not the owner.
 * -EBADF bad descriptor; -EINVAL not a dma-buf of an AMD GPU, or no GPU at all. */
KFDIRECT_API int kfd_dmabuf_info(struct kfd *kfd, int fd, struct kfd_dmabuf_info *out);

/*
 * GEM handles on a device's acquired render node. The kernel returns the same handle for every
 * import of one dma-buf and does not count; this layer counts, so each import or create is paired
 * with one kfd_gem_close. The last close also takes away every GEM_VA mapping of the handle.
 * Import: fd stays the caller's; -EBADF bad descriptor, -EINVAL not a dma-buf, -ENOMEM.
 * Close: -EINVAL a handle that is not open by this count. Before KFD 1.12 never while KFD has an
 * import of the memory mapped: the kernel would crash at its unmapping.
 */
KFDIRECT_API int kfd_gem_import(struct kfd_device *dev, int fd, uint32_t *gem);
KFDIRECT_API int kfd_gem_close(struct kfd_device *dev, uint32_t gem);
/* AMDGPU_GEM_CREATE, VRAM or host memory, zeroed; CPU access is asked for where the CPU sees all of
 * the VRAM. It is charged to no KFD limit. -EINVAL size not a multiple of the GPU page; -ENOMEM. */
KFDIRECT_API int kfd_gem_create(struct kfd_device *dev, uint64_t size, bool vram, uint32_t *gem);
/* PRIME_HANDLE_TO_FD: read-write, close-on-exec, above 2; the descriptor is the caller's. -ENOENT
 * unknown handle; -EMFILE. */
KFDIRECT_API int kfd_gem_export(struct kfd_device *dev, uint32_t gem, int *fd);
/* AMDGPU_GEM_MMAP: the offset to mmap the render node at, from the BO's start only; see
 * kfd_mem_alloc for how. -ENOENT unknown
 * handle; -EPERM memory without CPU access. */
KFDIRECT_API int kfd_gem_mmap_offset(struct kfd_device *dev, uint32_t gem, uint64_t *offset);

enum kfd_va_op {
    KFD_VA_MAP = 1,
    KFD_VA_UNMAP = 2,
    KFD_VA_CLEAR = 3,
    KFD_VA_REPLACE = 4,
};

#define KFD_VA_READ 0x2u
#define KFD_VA_WRITE 0x4u
#define KFD_VA_EXEC 0x8u

/*
 * AMDGPU_GEM_VA on the acquired VM, in the 4-KiB pages of the GPU. MAP puts [offset, offset + size)
 * of a BO at va with KFD_VA_* rights; UNMAP takes away the one mapping of this BO that starts at
 * va, whole; CLEAR (gem 0) whatever lies in the range; REPLACE is CLEAR and MAP in one, for a
 * change of rights. Never CLEAR or REPLACE a part of a mapping: the kernel can lose the rest of it
 * (T5). Keep a KFD handle of the memory alive in this process as long as a mapping is: without it
 * the kernel moves the memory under the GPU's feet. Before KFD 1.15 mappings do not survive
 * eviction. The kernel may answer 0 with page tables unwritten (out of memory there; REPLACE tries
 * again), and UNMAP and CLEAR flush no TLB: follow with kfd_mem_flush before memory or address is
 * used again. Where the DRM version has timeline points (>= 3.64) the change is queued on the
 * device's own timeline: see kfd_gem_va_wait. -EINVAL unknown operation or flag, overlap (MAP;
 * KFD's maps included), alignment, or a range beyond the BO or the address space; -ENOENT unknown
 * handle, or UNMAP of no mapping at va; -ENOMEM.
 */
KFDIRECT_API int kfd_gem_va(struct kfd_device *dev, enum kfd_va_op op, uint32_t gem, uint64_t va,
                            uint64_t offset, uint64_t size, uint32_t flags);
/*
 * Waits, without limit, for every change that was queued by kfd_gem_va before on n devices (1 to
 * KFD_MAX_DEVICES) of one kfd. One request, none when nothing is queued; the first time that a
 * device is waited for together with others, two more, because device 0's file must know its
 * timeline. Before DRM 3.64 it returns 0 at once. -EINVAL no device, or one of another kfd; -EMFILE
 * no descriptor free, that first time.
 */
KFDIRECT_API int kfd_gem_va_wait(struct kfd_device *const *devs, uint32_t n);

/* One line for a request, "FREE_MEMORY_OF_GPU handle=0x3e800000000", into buf: its name and the
 * fields that the caller sets. The argument may be NULL (name only); no more of it is read than the
 * request code says, and no pointer in it is followed. Returns the length as snprintf does. */
KFDIRECT_API int kfd_request_decode(unsigned long request, const void *arg, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
