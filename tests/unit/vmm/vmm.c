/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd/uapi.h"
#include "vmm/maptab.h"
#include "vmm/vmm.h"

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};
static struct fixture gfx8 = {.machine = "vegam-hollow:1", .kernel = "6.12"};

static void addresses_lie_where_every_device_reaches(struct fixture *f)
{
    const struct kfd_device_info *info = kfd_device_info(kfd_device_at(f->kfd, 0));
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    assert_true(va >= info->va_base);
    assert_true(va + 2 * MIB - 1 <= info->va_limit);
    fixture_map(f, va, 2 * MIB, 0, handle);
    fixture_access(f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    gpu_write(f, 0, va, 1);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void close_gives_back_what_a_program_left(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    vmm_handle a = fixture_create(f, 0, 2 * MIB), b = fixture_create(f, 1, 2 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB), one;

    fixture_map(f, va, 2 * MIB, 0, a);
    fixture_map(f, va + 4 * MIB, 2 * MIB, 0, b);
    fixture_access(f, va, 2 * MIB, 1, VMM_PROT_READ);
    fixture_access(f, va, 2 * MIB, VMM_HOST, VMM_PROT_READ);
    assert_int_equal(vmm_alloc(f->vmm, &props, 4096, &one), 0);
    fixture_reserve(f, 1 * GIB);
    /* fixture_close checks the kernel's side. */
}

static void granularity_is_a_page_and_2_mib_and_can_be_raised(struct fixture *f)
{
    struct vmm_options options = {.size = sizeof(options), .min_granularity = 64 * 1024};
    struct vmm *vmm;

    assert_int_equal(vmm_min_granularity(f->vmm), 4096);
    assert_int_equal(vmm_recommended_granularity(f->vmm), 2 * MIB);
    assert_int_equal(vmm_open(f->kfd, &options, &vmm), 0);
    assert_int_equal(vmm_min_granularity(vmm), 64 * 1024);
    vmm_close(vmm);
    options.min_granularity = 3000;
    assert_int_equal(vmm_open(f->kfd, &options, &vmm), -EINVAL);
}

struct racer {
    struct fixture *f;
    uint64_t va;
    vmm_handle handle;
    pthread_barrier_t *start;
    int err;
};

static void *race_map(void *arg)
{
    struct racer *r = arg;

    pthread_barrier_wait(r->start);
    r->err = vmm_map(r->f->vmm, r->va, 2 * MIB, 0, r->handle);
    return NULL;
}

static void racing_maps_of_one_slot_have_one_winner(struct fixture *f)
{
    enum {
        N = 4,
        ROUNDS = 100
    };
    struct racer racers[N];
    pthread_barrier_t start;
    pthread_t threads[N];
    uint64_t va = fixture_reserve(f, 2 * MIB);

    pthread_barrier_init(&start, NULL, N);
    for (int i = 0; i < N; i++)
        racers[i] = (struct racer){f, va, fixture_create(f, 0, 2 * MIB), &start, 1};
    for (int round = 0; round < ROUNDS; round++) {
        int winners = 0;

        for (int i = 0; i < N; i++)
            pthread_create(&threads[i], NULL, race_map, &racers[i]);
        for (int i = 0; i < N; i++) {
            pthread_join(threads[i], NULL);
            winners += racers[i].err == 0;
        }
        assert_int_equal(winners, 1);
        assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(vmm_release(f->vmm, racers[i].handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
    pthread_barrier_destroy(&start);
}

static void a_handle_of_another_vmm_is_refused(struct fixture *f)
{
    vmm_handle mine = fixture_create(f, 0, 2 * MIB), others = 0;
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    struct vmm *other;

    assert_int_equal(vmm_open(f->kfd, NULL, &other), 0);
    assert_int_equal(vmm_create(other, &props, 4 * MIB, &others), 0);
    assert_int_equal(vmm_get_props(other, mine, NULL, NULL), -EINVAL);
    assert_int_equal(vmm_release(other, mine), -EINVAL);
    assert_int_equal(vmm_release(f->vmm, others), -EINVAL);
    assert_int_equal(vmm_release(other, others), 0);
    vmm_close(other);
    assert_int_equal(vmm_release(f->vmm, mine), 0);
}

/* Programs know a buffer by its number, whichever VMM made it. */
static void numbers_are_those_of_the_process(struct fixture *f)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    const struct vmm_mapping wide = {.id = VMM_ID_MASK};
    struct vmm_range mine, others;
    struct vmm *other;
    uint64_t va;

    assert_true(wide.id > UINT32_MAX);
    assert_int_equal(vmm_alloc(f->vmm, &props, 4096, &va), 0);
    assert_int_equal(vmm_query(f->vmm, va, &mine), 0);
    assert_int_equal(vmm_free(f->vmm, va), 0);
    assert_int_equal(vmm_open(f->kfd, NULL, &other), 0);
    assert_int_equal(vmm_alloc(other, &props, 4096, &va), 0);
    assert_int_equal(vmm_query(other, va, &others), 0);
    assert_true(others.id > mine.id);
    vmm_close(other);
}

static int ignore_piece(void *arg, void *cpu, uint64_t size)
{
    return 0;
}

/* The line of the first call of a child that is not refused, or 0. The locks may be held by threads
 * that the child has not, and the addresses hold memory of its own. */
static int first_not_refused(struct vmm *vmm, uint64_t va, uint64_t one_step, vmm_handle handle)
{
    struct vmm_access host = {VMM_HOST, VMM_PROT_READ_WRITE};
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    struct vmm_range range;
    uint64_t out;
    uint32_t prot;
    int fd;

#define REFUSED(call)         \
    do {                      \
        if ((call) != -EBADF) \
            return __LINE__;  \
    } while (0)
    vmm_lock_acquire(&vmm->space_lock);
    vmm_lock_acquire(&vmm->handles.lock);
    vmm_lock_acquire(&vmm->log_lock);
    REFUSED(vmm_reserve(vmm, 4096, 0, 0, &out));
    REFUSED(vmm_address_free(vmm, va, 2 * MIB));
    REFUSED(vmm_create(vmm, &props, 4096, &out));
    REFUSED(vmm_release(vmm, handle));
    REFUSED(vmm_retain(vmm, va, &out));
    REFUSED(vmm_get_props(vmm, handle, NULL, NULL));
    REFUSED(vmm_map(vmm, va, 2 * MIB, 0, handle));
    REFUSED(vmm_unmap(vmm, va, 2 * MIB));
    REFUSED(vmm_set_access(vmm, va, 2 * MIB, &host, 1));
    REFUSED(vmm_get_access(vmm, va, VMM_HOST, &prot));
    REFUSED(vmm_export(vmm, handle, &fd));
    REFUSED(vmm_import(vmm, 0, NULL, &out));
    REFUSED(vmm_export_range(vmm, va, 4096, &fd, NULL));
    REFUSED(vmm_query(vmm, va, &range));
    REFUSED(vmm_alloc(vmm, &props, 4096, &out));
    REFUSED(vmm_free(vmm, one_step));
    REFUSED(vmm_free_all(vmm, 0));
    REFUSED(vmm_register(vmm, (uintptr_t)&props, 4, NULL));
    REFUSED(vmm_unregister(vmm, (uintptr_t)&props));
    REFUSED(vmm_cpu_walk(vmm, va, 4096, 0, ignore_piece, NULL));
#undef REFUSED
    if (vmm_holds(vmm, va, 1))
        return __LINE__;
    vmm_close(vmm);
    return 0;
}

static void a_forked_child_is_refused_without_a_lock(struct fixture *f)
{
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB), one_step;
    int status;
    pid_t pid;

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_alloc(f->vmm, &props, 4096, &one_step), 0);
    pid = fork();
    if (pid == 0) {
        int line;

        alarm(20); /* ends a child that waits for a lock */
        line = first_not_refused(f->vmm, va, one_step, handle);
        if (line)
            fprintf(stderr, "line %d\n", line);
        _exit(line != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(vmm_free(f->vmm, one_step), 0);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

/* On KFD 1.11 a GEM handle that is closed under a mapping of KFD's crashes the kernel later. */
static void close_keeps_the_gem_handle_of_what_kfd_keeps(void **state)
{
    struct kfd_sys_fault fault = {.op = KFD_SYS_REQUEST,
                                  .request = 'K' << 8 | KFD_NR_UNMAP_MEMORY_FROM_GPU,
                                  .error = EIO,
                                  .forever = true};
    struct fixture f = {.machine = "mi210:2", .kernel = "6.1"};
    struct kfd_sys_counts counts;
    vmm_handle handle, other;
    uint64_t va;

    fixture_open(&f);
    handle = fixture_create(&f, 0, 2 * MIB);
    other = fixture_create(&f, 0, 2 * MIB);
    va = fixture_reserve(&f, 2 * MIB);
    fixture_map(&f, va, 2 * MIB, 0, handle);
    fixture_access(&f, va, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    assert_int_equal(vmm_release(f.vmm, other), 0);
    kfd_sys_count_reset(f.counter);
    kfd_sys_inject_set(f.injector, &fault);
    vmm_close(f.vmm);
    kfd_close(f.kfd);
    kfd_sys_count_get(f.counter, &counts);
    assert_int_equal(counts.drm[DRM_NR_GEM_CLOSE], 0);
    assert_int_not_equal(counts.kfd[KFD_NR_UNMAP_MEMORY_FROM_GPU], 0);
    kfd_sys_destroy(f.counter);
    kfd_sys_destroy(f.injector);
    fake_destroy(f.fake);
}

FIXTURE_TEST(a_forked_child_is_refused_without_a_lock)
FIXTURE_TEST(numbers_are_those_of_the_process)
FIXTURE_TEST(a_handle_of_another_vmm_is_refused)
FIXTURE_TEST(addresses_lie_where_every_device_reaches)
FIXTURE_TEST(close_gives_back_what_a_program_left)
FIXTURE_TEST(granularity_is_a_page_and_2_mib_and_can_be_raised)
FIXTURE_TEST(racing_maps_of_one_slot_have_one_winner)

int main(void)
{
#define T(name, fix)                                       \
    {                                                      \
#name " (" #fix ")", test_##name, NULL, NULL, &fix \
    }
    const struct CMUnitTest tests[] = {
        T(a_forked_child_is_refused_without_a_lock, drm),
        T(a_handle_of_another_vmm_is_refused, drm),
        T(addresses_lie_where_every_device_reaches, drm),
        T(addresses_lie_where_every_device_reaches, gfx8),
        cmocka_unit_test(close_keeps_the_gem_handle_of_what_kfd_keeps),
        T(close_gives_back_what_a_program_left, drm),
        T(granularity_is_a_page_and_2_mib_and_can_be_raised, drm),
        T(numbers_are_those_of_the_process, drm),
        T(racing_maps_of_one_slot_have_one_winner, drm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
