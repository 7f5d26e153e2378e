/* SPDX-License-Identifier: MIT */
/*
 * The VMM's own code per call, at many live objects: create, map, set access, look-up, unmap,
 * release. The devices come from the fake; from then on a system of our own says yes to every
 * memory request at once, so that no kernel, real or fake, is in the figures.
 */
#include <stdatomic.h>
#include <string.h>

#include <kfdirect/fake.h>
#include <kfdirect/vmm.h>

#include "kfd/uapi.h"

#include "bench.h"

#define SIZE ((uint64_t)2 << 20)
#define PER_RESERVATION 16u

struct yes {
    struct kfd_sys sys;
    struct kfd_sys *next;
    uint64_t handles;
    struct kfd_sys_ops ops;
};

static int yes_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    struct yes *yes = (struct yes *)sys;

    switch (request) {
    case KFD_CODE_ALLOC_MEMORY_OF_GPU:
        ((struct kfd_ioctl_alloc_memory_of_gpu_args *)arg)->handle = ++yes->handles;
        break;
    case KFD_CODE_EXPORT_DMABUF:
        ((struct kfd_uapi_export_dmabuf *)arg)->dmabuf_fd = 1000;
        break;
    case DRM_CODE_PRIME_FD_TO_HANDLE:
        ((struct drm_prime_handle *)arg)->handle = (uint32_t)++yes->handles;
        break;
    case KFD_CODE_MAP_MEMORY_TO_GPU:
    case KFD_CODE_UNMAP_MEMORY_FROM_GPU:
    case KFD_CODE_FREE_MEMORY_OF_GPU:
    case DRM_CODE_GEM_CLOSE:
    case DRM_CODE_GEM_VA:
    case DRM_CODE_GEM_VA_OLD:
        break;
    default:
        fprintf(stderr, "bench_vmm: request 0x%lx\n", request);
        exit(1);
    }
    (void)fd;
    return 0;
}

static int yes_close(struct kfd_sys *sys, int fd)
{
    (void)sys;
    (void)fd;
    return 0;
}

/* The decorator passes itself to the fake's own operations, so each is forwarded by hand. */
static struct kfd_sys *next_of(struct kfd_sys *sys)
{
    return ((struct yes *)sys)->next;
}

static int pass_open(struct kfd_sys *sys, const char *path, int flags)
{
    return next_of(sys)->ops->open_path(next_of(sys), path, flags);
}

static int pass_close(struct kfd_sys *sys, int fd)
{
    return next_of(sys)->ops->close_fd(next_of(sys), fd);
}

static int pass_request(struct kfd_sys *sys, int fd, unsigned long request, void *arg)
{
    return next_of(sys)->ops->request(next_of(sys), fd, request, arg);
}

static int pass_map(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags, int fd,
                    uint64_t offset, void **out)
{
    return next_of(sys)->ops->map_pages(next_of(sys), addr, size, prot, flags, fd, offset, out);
}

static int pass_unmap(struct kfd_sys *sys, void *addr, size_t size)
{
    return next_of(sys)->ops->unmap_pages(next_of(sys), addr, size);
}

static int pass_advise(struct kfd_sys *sys, void *addr, size_t size, int advice)
{
    return next_of(sys)->ops->advise_pages(next_of(sys), addr, size, advice);
}

static int pass_read(struct kfd_sys *sys, const char *path, char *buf, size_t size)
{
    return next_of(sys)->ops->read_file(next_of(sys), path, buf, size);
}

static int pass_list(struct kfd_sys *sys, const char *path,
                     int (*each)(void *arg, const char *name), void *arg)
{
    return next_of(sys)->ops->list_dir(next_of(sys), path, each, arg);
}

static int pass_product(struct kfd_sys *sys, int drm_fd, char *buf, size_t size)
{
    return next_of(sys)->ops->product_name(next_of(sys), drm_fd, buf, size);
}

static struct bench bench;

static void check(int err)
{
    if (err) {
        fprintf(stderr, "bench_vmm: %d, %s\n", err, kfd_error_text());
        exit(1);
    }
}

/* One timed pass over all objects, in a fixed order. */
#define PASS(label, statement)                                                \
    do {                                                                      \
        bench_start(&bench, label, count);                                    \
        for (uint64_t i_ = 0; i_ + BENCH_BATCH <= count; i_ += BENCH_BATCH) { \
            bench_begin(&bench);                                              \
            for (uint64_t n = i_; n < i_ + BENCH_BATCH; n++)                  \
                check(statement);                                             \
            bench_end(&bench);                                                \
        }                                                                     \
        bench_print(&bench);                                                  \
    } while (0)

/* What one load costs that depends on the one before it and finds nothing in a cache, among as much
 * memory as so many objects take: the unit of all the figures above it. */
static void run_miss(uint64_t count)
{
    uint64_t state = 1, *order = bench_order(count, &state);
    struct object {
        struct object *next;
        uint64_t rest[31];
    } *objects = calloc(count, sizeof(*objects)), *at = objects;

    if (!objects)
        exit(1);
    for (uint64_t i = 0; i < count; i++)
        objects[order[i]].next = &objects[order[(i + 1) % count]];
    PASS("one cache miss", (at = at->next) == NULL);
    free(objects);
    free(order);
}

static void run(struct vmm *vmm, uint64_t count)
{
    struct vmm_access access = {0, VMM_PROT_READ_WRITE};
    uint64_t ranges = count / PER_RESERVATION, state = 1;
    uint64_t *order = bench_order(ranges * PER_RESERVATION, &state);
    uint64_t *base = calloc(ranges, sizeof(*base));
    vmm_handle *handle = calloc(count, sizeof(*handle));
    struct vmm_props props = {.device = 0};
    struct vmm_range range;

    if (!base || !handle)
        exit(1);
    count = ranges * PER_RESERVATION;
#define VA(n) (base[order[n] / PER_RESERVATION] + order[n] % PER_RESERVATION * SIZE)
    for (uint64_t i = 0; i < ranges; i++)
        check(vmm_reserve(vmm, PER_RESERVATION * SIZE, 0, 0, &base[i]));
    PASS("vmm create", vmm_create(vmm, &props, SIZE, &handle[n]));
    PASS("vmm map", vmm_map(vmm, VA(n), SIZE, 0, handle[n]));
    PASS("vmm set access", vmm_set_access(vmm, VA(n), SIZE, &access, 1));
    PASS("vmm query", vmm_query(vmm, VA(n) + 4097, &range));
    PASS("vmm unmap", vmm_unmap(vmm, VA(n), SIZE));
    PASS("vmm release", vmm_release(vmm, handle[n]));
    for (uint64_t i = 0; i < ranges; i++)
        check(vmm_address_free(vmm, base[i], PER_RESERVATION * SIZE));
    free(order);
    free(base);
    free(handle);
}

int main(int argc, char **argv)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = "mi300x:1", .kernel = "6.12"};
    uint64_t most = bench_most(argc, argv);
    struct yes yes = {.ops = {.open_path = pass_open,
                              .close_fd = pass_close,
                              .request = pass_request,
                              .map_pages = pass_map,
                              .unmap_pages = pass_unmap,
                              .advise_pages = pass_advise,
                              .read_file = pass_read,
                              .list_dir = pass_list,
                              .product_name = pass_product}};
    struct fake *fake;
    struct kfd *kfd;
    struct vmm *vmm;

    check(fake_create(&options, &fake));
    yes.sys.ops = &yes.ops;
    yes.next = fake_sys(fake);
    check(kfd_open(&yes.sys, &kfd));
    check(vmm_open(kfd, NULL, &vmm));
    yes.ops.request = yes_request;
    yes.ops.close_fd = yes_close;
    for (size_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= most; i++) {
        run(vmm, bench_sizes[i]);
        run_miss(bench_sizes[i]);
    }
    vmm_close(vmm);
    yes.ops.request = pass_request;
    yes.ops.close_fd = pass_close;
    kfd_close(kfd);
    fake_destroy(fake);
    return 0;
}
