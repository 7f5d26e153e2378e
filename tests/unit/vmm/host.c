/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fixture drm = {.machine = "mi300x:1", .kernel = "6.12"};
static struct fixture small = {.machine = "navi31-smallbar", .kernel = "6.12"};

/* The line of /proc/self/maps that holds va, or "". */
static void maps_line(uint64_t va, char *line, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long long from, to;

    assert_non_null(maps);
    while (fgets(line, (int)size, maps)) {
        if (sscanf(line, "%llx-%llx", &from, &to) == 2 && va >= from && va < to) {
            fclose(maps);
            return;
        }
    }
    fclose(maps);
    line[0] = '\0';
}

/* Whether the CPU may touch va, tried in a child. */
static bool cpu_can(uint64_t va, bool write)
{
    volatile uint64_t *p = (uint64_t *)(uintptr_t)va;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        uint64_t value;

        signal(SIGSEGV, SIG_DFL);
        value = *p;

        if (write)
            *p = value;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void the_cpu_sees_what_the_gpu_writes_at_the_same_address(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 4 * MIB);
    uint64_t va = fixture_reserve(f, 4 * MIB);
    volatile uint64_t *p = (uint64_t *)(uintptr_t)va;
    char line[512];

    fixture_map(f, va, 4096, 0, handle);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 2 * MIB, handle);
    fixture_access(f, va, 4096, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va, 4096, VMM_HOST, VMM_PROT_READ_WRITE);
    fixture_access(f, va + 2 * MIB, 2 * MIB, 0, VMM_PROT_READ_WRITE);
    fixture_access(f, va + 2 * MIB, 2 * MIB, VMM_HOST, VMM_PROT_READ);
    gpu_write(f, 0, va, 11);
    gpu_write(f, 0, va + 4 * MIB - 8, 12);
    assert_int_equal(p[0], 11);
    assert_int_equal(p[4 * MIB / 8 - 1], 12);
    p[1] = 13;
    assert_int_equal(gpu_read(f, 0, va + 8), 13);
    maps_line(va + 2 * MIB, line, sizeof(line));
    assert_non_null(strstr(line, "r--s"));
    fixture_access(f, va + 2 * MIB, 2 * MIB, VMM_HOST, VMM_PROT_READ_WRITE);
    p[4 * MIB / 8 - 1] = 14;
    assert_int_equal(gpu_read(f, 0, va + 4 * MIB - 8), 14);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    /* The range stays reserved: inaccessible, anonymous, no device behind it. */
    for (uint64_t at = va; at < va + 4 * MIB; at += 2 * MIB) {
        maps_line(at, line, sizeof(line));
        assert_non_null(strstr(line, "---p"));
        assert_non_null(strstr(line, " 0 "));
    }
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void views_do_not_pass_to_a_forked_child(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    fixture_access(f, va, 2 * MIB, VMM_HOST, VMM_PROT_READ_WRITE);
    *(volatile uint64_t *)(uintptr_t)va = 1;
    assert_false(cpu_can(va, false));
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

static void device_memory_behind_a_small_bar_is_not_supported(struct fixture *f)
{
    struct vmm_access list[] = {{0, VMM_PROT_READ_WRITE}, {VMM_HOST, VMM_PROT_READ}};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 2 * MIB);
    uint32_t prot = 7;

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, list, 2), -EOPNOTSUPP);
    assert_int_equal(vmm_get_access(f->vmm, va, 0, &prot), 0);
    assert_int_equal(prot, VMM_PROT_NONE);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 2 * MIB), 0);
}

/* Linux before 6.12, where a MAP_FIXED that fails has unmapped the old pages already. */
static const struct kfd_sys_ops *kernel;
static uint64_t refused;

static int refuse_too_late(struct kfd_sys *sys, void *addr, size_t size, int prot, int flags,
                           int fd, uint64_t offset, void **out)
{
    if (!(flags & MAP_FIXED))
        return kernel->map_pages(sys, addr, size, prot, flags, fd, offset, out);
    refused = (uint64_t)(uintptr_t)addr;
    munmap(addr, size);
    return -EACCES;
}

static void kernel_refuses(struct fixture *f, bool refuses)
{
    static struct kfd_sys_ops ops;

    if (refuses) {
        kernel = fake_sys(f->fake)->ops;
        ops = *kernel;
        ops.map_pages = refuse_too_late;
    }
    fake_sys(f->fake)->ops = refuses ? &ops : kernel;
}

/* Nobody else's mmap can land there. */
static void expect_no_hole(uint64_t va)
{
    char line[512];

    maps_line(va, line, sizeof(line));
    if (!strstr(line, "---p"))
        fail_msg("0x%llx: '%s'", (unsigned long long)va, line);
}

static void a_refused_view_leaves_no_hole_in_the_reservation(struct fixture *f)
{
    struct vmm_access host = {VMM_HOST, VMM_PROT_READ_WRITE}, none = {VMM_HOST, VMM_PROT_NONE};
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    vmm_handle handle = fixture_create(f, 0, 4 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB), other = 0;

    fixture_map(f, va + 2 * MIB, 4 * MIB, 0, handle);
    kernel_refuses(f, true);
    assert_int_equal(vmm_set_access(f->vmm, va + 2 * MIB, 4 * MIB, &host, 1), -EACCES);
    assert_int_equal(refused, va + 2 * MIB);
    expect_no_hole(refused);
    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &other), -EACCES);
    assert_int_not_equal(refused, va + 2 * MIB);
    expect_no_hole(refused);
    kernel_refuses(f, false);
    fixture_access(f, va + 2 * MIB, 4 * MIB, VMM_HOST, VMM_PROT_READ_WRITE);
    *(volatile uint64_t *)(uintptr_t)(va + 2 * MIB) = 1;
    /* Nor does a view that cannot be taken away. */
    kernel_refuses(f, true);
    assert_int_equal(vmm_set_access(f->vmm, va + 2 * MIB, 4 * MIB, &none, 1), -EACCES);
    kernel_refuses(f, false);
    expect_no_hole(va + 2 * MIB);
    fixture_access(f, va + 2 * MIB, 4 * MIB, VMM_HOST, VMM_PROT_NONE);
    assert_int_equal(vmm_unmap(f->vmm, va + 2 * MIB, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 8 * MIB), 0);
}

/* How many mappings the process may still have. A view takes one, and inaccessible memory in its
 * place, which the kernel joins to its neighbours, gives one back; both need one to begin with. */
static int room;

static int map_while_there_is_room(struct kfd_sys *sys, void *addr, size_t size, int prot,
                                   int flags, int fd, uint64_t offset, void **out)
{
    if (room == 0)
        return -ENOMEM;
    room += prot == PROT_NONE && (flags & MAP_FIXED) ? 1 : -1;
    return kernel->map_pages(sys, addr, size, prot, flags, fd, offset, out);
}

static int unmap_for_room(struct kfd_sys *sys, void *addr, size_t size)
{
    room++;
    return kernel->unmap_pages(sys, addr, size);
}

static void a_full_process_can_still_take_views_away(struct fixture *f)
{
    struct vmm_access host = {VMM_HOST, VMM_PROT_READ_WRITE}, none = {VMM_HOST, VMM_PROT_NONE};
    struct vmm_props props = {.location = VMM_LOCATION_HOST};
    vmm_handle handle = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB), one_step;
    struct kfd_sys_ops ops;
    uint32_t prot;

    for (int i = 0; i < 4; i++)
        fixture_map(f, va + (uint64_t)i * 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &one_step), 0);
    kernel = fake_sys(f->fake)->ops;
    ops = *kernel;
    ops.map_pages = map_while_there_is_room;
    ops.unmap_pages = unmap_for_room;
    fake_sys(f->fake)->ops = &ops;
    /* The third view does not fit any more, and the first two go again. */
    room = 2;
    assert_int_equal(vmm_set_access(f->vmm, va, 8 * MIB, &host, 1), -ENOMEM);
    for (uint64_t at = va; at < va + 8 * MIB; at += 2 * MIB) {
        assert_int_equal(vmm_get_access(f->vmm, at, VMM_HOST, &prot), 0);
        assert_int_equal(prot, VMM_PROT_NONE);
        expect_no_hole(at);
    }
    room = 2; /* one for what is put by */
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &host, 1), 0);
    assert_int_equal(room, 0);
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &none, 1), 0);
    room = 2;
    assert_int_equal(vmm_set_access(f->vmm, va, 2 * MIB, &host, 1), 0);
    assert_int_equal(vmm_free(f->vmm, one_step), 0);
    room = 0;
    assert_int_equal(vmm_set_access(f->vmm, va + 2 * MIB, 2 * MIB, &host, 1), -ENOMEM);
    fake_sys(f->fake)->ops = kernel;
    assert_int_equal(vmm_unmap(f->vmm, va, 8 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 8 * MIB), 0);
}

FIXTURE_TEST(a_full_process_can_still_take_views_away)
FIXTURE_TEST(a_refused_view_leaves_no_hole_in_the_reservation)
FIXTURE_TEST(the_cpu_sees_what_the_gpu_writes_at_the_same_address)
FIXTURE_TEST(views_do_not_pass_to_a_forked_child)
FIXTURE_TEST(device_memory_behind_a_small_bar_is_not_supported)

int main(void)
{
#define T(name, fix) cmocka_unit_test_prestate(test_##name, &fix)
    const struct CMUnitTest tests[] = {
        T(the_cpu_sees_what_the_gpu_writes_at_the_same_address, drm),
        T(a_refused_view_leaves_no_hole_in_the_reservation, drm),
        T(a_full_process_can_still_take_views_away, drm),
        T(views_do_not_pass_to_a_forked_child, drm),
        T(device_memory_behind_a_small_bar_is_not_supported, small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
