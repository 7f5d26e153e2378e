/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <sys/resource.h>
#include <unistd.h>

static struct fixture drm = {.machine = "mi300x:2", .kernel = "6.12"};
static struct fixture gem = {.machine = "mi210:2", .kernel = "6.1"};
static struct fixture small = {.machine = "navi31-smallbar", .kernel = "6.12"};

static int copy_in(void *arg, void *cpu, uint64_t size)
{
    uint8_t *next = *(uint8_t **)arg;

    memcpy(cpu, next, size);
    *(uint8_t **)arg = next + size;
    return 0;
}

static int copy_out(void *arg, void *cpu, uint64_t size)
{
    uint8_t *next = *(uint8_t **)arg;

    memcpy(next, cpu, size);
    *(uint8_t **)arg = next + size;
    return 0;
}

static int write_cpu(struct fixture *f, uint64_t va, const void *bytes, uint64_t size)
{
    const void *next = bytes;

    return vmm_cpu_walk(f->vmm, va, size, VMM_PROT_WRITE, copy_in, &next);
}

static int read_cpu(struct fixture *f, uint64_t va, void *bytes, uint64_t size)
{
    void *next = bytes;

    return vmm_cpu_walk(f->vmm, va, size, VMM_PROT_READ, copy_out, &next);
}

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return (uint64_t)pages * 4096;
}

/* A process that may not have much more address space copies the end of a large buffer. */
static void a_copy_far_into_a_buffer_needs_no_room_for_all_of_it(struct fixture *f)
{
    const uint64_t size = (uint64_t)8 << 30;
    vmm_handle handle = fixture_create(f, 0, size);
    struct vmm_access access = {0, VMM_PROT_READ_WRITE};
    uint64_t va = fixture_reserve(f, size);
    struct rlimit limit, less;
    char text[8] = "";
    int in, out;

    fixture_map(f, va, size, 0, handle);
    assert_int_equal(vmm_set_access(f->vmm, va, size, &access, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    less = limit;
    less.rlim_cur = address_space() + (256 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    in = write_cpu(f, va + size - 7, "the end", 7);
    out = read_cpu(f, va + size - 7, text, 7);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(in, 0);
    assert_int_equal(out, 0);
    assert_string_equal(text, "the end");
    assert_int_equal(vmm_unmap(f->vmm, va, size), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, size), 0);
}

static void a_query_tells_mapping_reservation_and_owner(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 1, 4 * MIB);
    uint64_t va = fixture_reserve(f, 8 * MIB);
    struct vmm_range range;

    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_query(f->vmm, va + 3 * MIB + 17, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_MAPPED);
    assert_int_equal(range.base, va + 2 * MIB);
    assert_int_equal(range.size, 2 * MIB);
    assert_int_equal(range.resv_base, va);
    assert_int_equal(range.resv_size, 8 * MIB);
    assert_int_equal(range.props.device, 1);
    assert_int_equal(range.handle, handle);
    assert_int_equal(vmm_query(f->vmm, va, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_RESERVED);
    assert_int_equal(vmm_query(f->vmm, va + 8 * MIB, &range), 0);
    assert_int_not_equal(range.resv_base, va);
    assert_int_equal(vmm_query(f->vmm, 0, &range), 0);
    assert_int_equal(range.kind, VMM_KIND_NONE);
    assert_int_equal(vmm_unmap(f->vmm, va, 8 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 8 * MIB), 0);
}

static void retain_takes_any_byte_of_a_mapping_and_counts(struct fixture *f)
{
    vmm_handle handle = fixture_create(f, 0, 2 * MIB), got = 0;
    uint64_t va = fixture_reserve(f, 4 * MIB);

    fixture_map(f, va, 2 * MIB, 0, handle);
    assert_int_equal(vmm_retain(f->vmm, va + 12345, &got), 0);
    assert_int_equal(got, handle);
    assert_int_equal(vmm_retain(f->vmm, va + 2 * MIB, &got), -EINVAL);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_release(f->vmm, handle), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 2 * MIB), 0);
    assert_int_equal(vmm_retain(f->vmm, va, &got), -EINVAL);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void a_cpu_walk_crosses_mappings_and_checks_rights_first(struct fixture *f)
{
    static uint8_t in[4 * MIB], out[4 * MIB];
    vmm_handle a = fixture_create(f, 0, 2 * MIB), b = fixture_create(f, 0, 2 * MIB);
    uint64_t va = fixture_reserve(f, 6 * MIB), word;

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 7 + (i >> 12));
    fixture_map(f, va, 2 * MIB, 0, a);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, b);
    assert_int_equal(write_cpu(f, va, in, 8), -EINVAL); /* nobody has access yet */
    fixture_access(f, va, 4 * MIB, 0, VMM_PROT_READ_WRITE);
    assert_int_equal(write_cpu(f, va + 100, in, sizeof(in) - 200), 0);
    assert_int_equal(read_cpu(f, va + 100, out, sizeof(in) - 200), 0);
    assert_memory_equal(in, out, sizeof(in) - 200);
    memcpy(&word, in + 2 * MIB - 100, sizeof(word));
    assert_int_equal(gpu_read(f, 0, va + 2 * MIB), word);
    assert_int_equal(read_cpu(f, va + 100, out, 4 * MIB), -EINVAL); /* ends in a hole */
    assert_int_equal(read_cpu(f, va + 6 * MIB - 1, out, 2), -EINVAL);
    if (vmm_engine_can(f->vmm) & VMM_CAN_READ_ONLY) {
        fixture_access(f, va + 2 * MIB, 2 * MIB, 0, VMM_PROT_READ);
        assert_int_equal(write_cpu(f, va + 2 * MIB - 8, in, 16), -EINVAL);
        assert_int_equal(read_cpu(f, va + 2 * MIB - 8, out, 16), 0);
    }
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, a), 0);
    assert_int_equal(vmm_release(f->vmm, b), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 6 * MIB), 0);
}

static void a_cpu_walk_behind_a_small_bar_is_not_supported(struct fixture *f)
{
    struct vmm_props props = {.device = 0};
    uint64_t va, value = 0;

    assert_int_equal(vmm_alloc(f->vmm, &props, 4096, &va), 0);
    assert_int_equal(read_cpu(f, va, &value, 8), -EOPNOTSUPP);
    assert_int_equal(vmm_free(f->vmm, va), 0);
}

static void a_range_of_one_mapping_exports_with_its_offset(struct fixture *f)
{
    struct vmm_props props = {.device = 1};
    vmm_handle handle = fixture_create(f, 0, 4 * MIB), import;
    uint64_t va = fixture_reserve(f, 4 * MIB), one, offset = 0;
    int fd = -1;

    fixture_map(f, va, 2 * MIB, 2 * MIB, handle);
    fixture_map(f, va + 2 * MIB, 2 * MIB, 0, handle);
    assert_int_equal(vmm_export_range(f->vmm, va + 4096, 2 * MIB - 4096, &fd, &offset), 0);
    assert_int_equal(offset, 2 * MIB + 4096);
    assert_int_equal(vmm_import(f->vmm, fd, NULL, &import), 0);
    close(fd);
    assert_int_equal(vmm_release(f->vmm, import), 0);
    assert_int_equal(vmm_export_range(f->vmm, va, 4 * MIB, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(vmm_alloc(f->vmm, &props, 2 * MIB, &one), 0);
    assert_int_equal(vmm_export_range(f->vmm, one, 2 * MIB, &fd, &offset), 0);
    assert_int_equal(offset, 0);
    close(fd);
    assert_int_equal(vmm_free(f->vmm, one), 0);
    assert_int_equal(vmm_export_range(f->vmm, one, 4096, &fd, &offset), -EINVAL);
    assert_int_equal(vmm_unmap(f->vmm, va, 4 * MIB), 0);
    assert_int_equal(vmm_release(f->vmm, handle), 0);
    assert_int_equal(vmm_address_free(f->vmm, va, 4 * MIB), 0);
}

static void a_range_holds_ours_if_any_byte_is(struct fixture *f)
{
    uint64_t va = 1ull << 45, got = 0; /* no sanitizer is there */

    assert_int_equal(vmm_reserve(f->vmm, 4096, 0, va, &got), 0);
    assert_int_equal(got, va);
    assert_true(vmm_holds(f->vmm, va, 1));
    assert_true(vmm_holds(f->vmm, va + 4095, 4096));
    assert_true(vmm_holds(f->vmm, va - 4096, 4097));
    assert_true(vmm_holds(f->vmm, va - 4096, 3 * 4096));
    assert_true(vmm_holds(f->vmm, 0, UINT64_MAX));
    assert_false(vmm_holds(f->vmm, va - 4096, 4096));
    assert_false(vmm_holds(f->vmm, va + 4096, 4096));
    assert_false(vmm_holds(f->vmm, va - 1, 0));
    assert_int_equal(vmm_address_free(f->vmm, va, 4096), 0);
    assert_false(vmm_holds(f->vmm, va - 4096, 3 * 4096));
}

FIXTURE_TEST(a_range_holds_ours_if_any_byte_is)
FIXTURE_TEST(a_query_tells_mapping_reservation_and_owner)
FIXTURE_TEST(a_copy_far_into_a_buffer_needs_no_room_for_all_of_it)
FIXTURE_TEST(retain_takes_any_byte_of_a_mapping_and_counts)
FIXTURE_TEST(a_cpu_walk_crosses_mappings_and_checks_rights_first)
FIXTURE_TEST(a_cpu_walk_behind_a_small_bar_is_not_supported)
FIXTURE_TEST(a_range_of_one_mapping_exports_with_its_offset)

int main(void)
{
#define T(name, fix)                                       \
    {                                                      \
#name " (" #fix ")", test_##name, NULL, NULL, &fix \
    }
    const struct CMUnitTest tests[] = {
        T(a_range_holds_ours_if_any_byte_is, drm),
        T(a_query_tells_mapping_reservation_and_owner, drm),
        T(a_copy_far_into_a_buffer_needs_no_room_for_all_of_it, drm),
        T(retain_takes_any_byte_of_a_mapping_and_counts, drm),
        T(a_cpu_walk_crosses_mappings_and_checks_rights_first, drm),
        T(a_cpu_walk_crosses_mappings_and_checks_rights_first, gem),
        T(a_cpu_walk_behind_a_small_bar_is_not_supported, small),
        T(a_range_of_one_mapping_exports_with_its_offset, drm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
