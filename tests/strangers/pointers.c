/* SPDX-License-Identifier: MIT */
/*
 * Every request number with every kind of bad pointer, as the argument and inside of it, and with
 * counts that no memory has: an error, never a signal. The same source runs on the preload and,
 * with IN_PROCESS, on the fake as a library.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kfd/uapi.h"

#define ROUNDS 20000
#define PAGE 4096u
#define SCRATCH (16u * PAGE)

#ifdef IN_PROCESS
#include <kfdirect/fake.h>

static struct fake *fake;
static struct kfd_sys *sys;

static int ask(int fd, unsigned long request, void *arg)
{
    return sys->ops->request(sys, fd, request, arg);
}

static int open_node(const char *path)
{
    return sys->ops->open_path(sys, path, O_RDWR | O_CLOEXEC);
}

/* Through the tracer, which looks at arguments as well, and with the log on. */
static int start(void **state)
{
    struct fake_options options = {.size = sizeof(options), .machine = "mi210:2"};
    FILE *nowhere = fopen("/dev/null", "w");

    return nowhere != NULL && fake_create(&options, &fake) == 0 && fake_log_start(fake, 100) == 0
               ? kfd_sys_trace_new(fake_sys(fake), nowhere, &sys)
               : -1;
}
#else
static int ask(int fd, unsigned long request, void *arg)
{
    return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static int open_node(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}

static int start(void **state)
{
    return 0;
}
#endif

struct known {
    uint8_t type, nr;
    uint16_t size;
    uint8_t dir;
};

static const struct known requests[] = {
#define KFD(name, nr, dir, type) {KFD_UAPI_TYPE_KFD, nr, sizeof(type), KFD_UAPI_DIR_##dir},
#define DRM(name, nr, dir, type) {KFD_UAPI_TYPE_DRM, nr, sizeof(type), KFD_UAPI_DIR_##dir},
    KFD_UAPI_KFD_REQUESTS(KFD) KFD_UAPI_DRM_REQUESTS(DRM)};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

/* A page that may be read only, one that may not be touched, and memory that ends at such a one. */
static char *read_only, *closed, *scratch;
static void *bad[12];

static void make_pointers(void)
{
    char *at =
        mmap(NULL, SCRATCH + 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t n = 0;

    assert_ptr_not_equal(at, MAP_FAILED);
    read_only = at;
    closed = at + PAGE;
    scratch = at + 2 * PAGE;
    mprotect(read_only, PAGE, PROT_READ);
    mprotect(closed, PAGE, PROT_NONE);
    mprotect(scratch + SCRATCH, PAGE, PROT_NONE);
    bad[n++] = NULL;
    bad[n++] = (void *)1;
    bad[n++] = (void *)8;
    bad[n++] = (void *)UINTPTR_MAX;
    bad[n++] = (void *)(UINTPTR_MAX - 7);
    bad[n++] = (void *)0x8000000000000000u;
    bad[n++] = (void *)0xffff888000000000u;
    bad[n++] = (void *)0x00007ffffffff000u;
    bad[n++] = closed;
    bad[n++] = closed + 3;
    bad[n++] = scratch + SCRATCH - 1;
    bad[n++] = scratch + SCRATCH - 4;
}

static uint64_t state_of_random;

static uint64_t next(void)
{
    uint64_t x = state_of_random += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void test_bad_arguments_of_every_number(void **state)
{
    static const uint16_t sizes[] = {8, 9, 16, 24, 32, 40, 56, 64, 128, 4096, 0x3fff};
    int fds[] = {open_node("/dev/kfd"), open_node("/dev/dri/renderD128")};

    for (int f = 0; f < 2; f++) {
        for (unsigned int nr = 0; nr < 256; nr++) {
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                unsigned long code = _IOC(_IOC_READ | _IOC_WRITE, f == 0 ? 'K' : 'd', nr, sizes[s]);

                for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
                    if (ask(fds[f], code, bad[b]) >= 0)
                        fail_msg("request 0x%lx with %p succeeded", code, bad[b]);
                }
                ask(fds[f], code, read_only);
            }
        }
        close(fds[f]);
    }
}

static void test_results_that_cannot_be_written_are_efault(void **state)
{
    struct kfd_ioctl_get_version_args *version = (void *)read_only;
    int kfd = open_node("/dev/kfd"), drm = open_node("/dev/dri/renderD128");

    assert_int_equal(ask(kfd, KFD_CODE_GET_VERSION, version), -EFAULT);
    assert_int_equal(ask(drm, DRM_IOCTL_VERSION, read_only), -EFAULT);
    close(kfd);
    close(drm);
}

/* A value that somebody might have put there. */
static uint64_t some_value(const int *fds, uint32_t gpu_id)
{
    switch (next() % 10) {
    case 0:
        return 0;
    case 1:
        return next() % 8;
    case 2:
        return UINT32_MAX - next() % 3;
    case 3:
        return (uint64_t)1 << next() % 64;
    case 4:
        return (uint64_t)fds[next() % 3];
    case 5:
        return gpu_id;
    case 6:
        return (uintptr_t)scratch + next() % SCRATCH;
    case 7:
        return (uintptr_t)read_only + next() % PAGE;
    case 8:
        return (uintptr_t)bad[next() % (sizeof(bad) / sizeof(bad[0]))];
    default:
        return next();
    }
}

static void fill(uint8_t *arg, const struct known *r, const int *fds, uint32_t gpu_id)
{
    for (size_t at = 0; at < r->size; at += 4) {
        uint64_t value = some_value(fds, gpu_id);
        size_t n = at % 8 == 0 && at + 8 <= r->size && next() % 2 ? 8 : 4;

        memcpy(arg + at, &value, at + n <= r->size ? n : r->size - at);
        at += n - 4;
    }
    /* Nobody is there to wake it. */
    if (r->type == KFD_UAPI_TYPE_KFD && r->nr == KFD_NR_WAIT_EVENTS)
        ((struct kfd_ioctl_wait_events_args *)(void *)arg)->timeout = 0;
    if (r->type == KFD_UAPI_TYPE_DRM && r->nr == DRM_NR_SYNCOBJ_TIMELINE_WAIT)
        ((struct drm_syncobj_timeline_wait *)(void *)arg)->timeout_nsec = 0;
}

static uint32_t first_gpu_id(int kfd)
{
    struct kfd_process_device_apertures apertures[8];
    struct kfd_ioctl_get_process_apertures_new_args a = {.kfd_process_device_apertures_ptr =
                                                             (uintptr_t)apertures};

    /* Without room it says how many there are. */
    assert_int_equal(ask(kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a), 0);
    assert_in_range(a.num_of_nodes, 1, 8);
    assert_int_equal(ask(kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a), 0);
    return apertures[0].gpu_id;
}

static void test_wild_values_inside_of_arguments(void **state)
{
    static uint64_t arg[128];
    const char *seed = getenv("KFDIRECT_SEED");
    int fds[] = {open_node("/dev/kfd"), open_node("/dev/dri/renderD128"), -1}, high;
    uint32_t gpu_id = first_gpu_id(fds[0]);
    struct kfd_ioctl_acquire_vm_args acquire = {.drm_fd = (uint32_t)fds[1], .gpu_id = gpu_id};
    struct kfd_ioctl_get_version_args version;

    state_of_random = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)getpid() << 20;
    print_message("# KFDIRECT_SEED=%llu\n", (unsigned long long)state_of_random);
    assert_int_equal(ask(fds[0], KFD_CODE_ACQUIRE_VM, &acquire), 0);
    high = dup(0);
    close(high);
    for (int i = 0; i < ROUNDS; i++) {
        const struct known *r = &requests[next() % REQUESTS];
        int fd = fds[r->type == KFD_UAPI_TYPE_KFD ? 0 : 1];

        fill((uint8_t *)arg, r, fds, gpu_id);
        /* At the end of what may be touched, half of the times. */
        if (next() % 2 == 0) {
            ask(fd, _IOC((unsigned int)r->dir, r->type, r->nr, r->size), arg);
        } else {
            memcpy(scratch + SCRATCH - r->size, arg, r->size);
            ask(fd, _IOC((unsigned int)r->dir, r->type, r->nr, r->size),
                scratch + SCRATCH - r->size);
        }
        /* Descriptors among the results. */
        if (i % 64 == 0)
            close_range((unsigned int)high, ~0u, 0);
    }
    assert_int_equal(ask(fds[0], KFD_CODE_GET_VERSION, &version), 0);
    assert_int_equal(version.major_version, 1);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_arguments_of_every_number),
        cmocka_unit_test(test_results_that_cannot_be_written_are_efault),
        cmocka_unit_test(test_wild_values_inside_of_arguments),
    };

    make_pointers();
    return cmocka_run_group_tests(tests, start, NULL);
}
