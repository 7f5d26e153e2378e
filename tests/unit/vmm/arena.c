/* SPDX-License-Identifier: MIT */
#include "space_rig.h"

#include <sys/resource.h>

static void test_init_refuses_nonsense(void **state)
{
    struct vmm_space s;

    assert_int_equal(vmm_space_init(&s, &pages.sys, 0, TOP, 0), -EINVAL);
    assert_int_equal(vmm_space_init(&s, &pages.sys, 0, TOP, 5000), -EINVAL);
    assert_int_equal(vmm_space_init(&s, &pages.sys, TOP, TOP, PAGE), -EINVAL);
    assert_int_equal(vmm_space_init(&s, &pages.sys, 0, UINT64_MAX, PAGE), -EINVAL);
    assert_int_equal(vmm_space_init(&s, &pages.sys, 0, PAGE, PAGE), -EINVAL);
}

/* The arena of a hint stays apart from its neighbours until the kernel refuses to take it back. */
static void test_a_hints_arena_stays_apart(void **state)
{
    struct vmm_arenas *a = &space.arenas;
    uint64_t base = restrict_space(64 * MIB, 16 * MIB);

    assert_int_equal(vmm_arenas_grow_at(a, base, 16 * MIB, false), 0);
    assert_int_equal(vmm_arenas_grow_at(a, base + 16 * MIB, 2 * MIB, true), 0);
    assert_int_equal(vmm_arenas_grow_at(a, base + 16 * MIB, 2 * MIB, true), -EEXIST);
    assert_int_equal(vmm_arenas_validate(a), 0);
    assert_int_equal(a->count, 2);
    pages.fail_unmap = true;
    assert_true(vmm_arenas_drop(a, vmm_arenas_at(a, base + 17 * MIB, NULL)) < 0);
    pages.fail_unmap = false;
    assert_int_equal(vmm_arenas_validate(a), 0);
    assert_int_equal(a->count, 1);
    assert_int_equal(vmm_arenas_at(a, base + 17 * MIB, NULL)->base, base);
}

static void test_40_bit_aperture(void **state)
{
    enum {
        N = 24
    };
    static struct vmm_space_node n[N], big;

    vmm_space_fini(&space);
    assert_int_equal(vmm_space_init(&space, &pages.sys, 16 * MIB, TIB, PAGE), 0);
    for (size_t i = 0; i < N; i++)
        reserve(&n[i], i % 2 ? 32 * MIB : 5 * PAGE, 0, 0);
    for (size_t i = 0; i < N; i++)
        release(&n[i]);
    if (!is_unmapped(512 * GIB, 256 * GIB))
        skip(); /* a sanitizer's shadow lies there */
    reserve(&big, 300 * GIB, GIB, 0);
    reserve(&n[0], 256 * GIB, 0, 0);
    reserve(&n[1], PAGE, 0, 512 * GIB + 300 * GIB);
    assert_int_equal(vmm_space_reserve(&space, 600 * GIB, 0, 0, &n[2]), -ENOMEM);
    assert_int_equal(vmm_space_validate(&space), 0);
}

/* The kernel's own words about the mapping that contains va, from smaps. */
static void vma_of(uint64_t va, uint64_t *start, uint64_t *end, char prot[8], char flags[256])
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool in = false;

    assert_non_null(f);
    *start = *end = 0;
    flags[0] = '\0';
    while (fgets(line, sizeof(line), f)) {
        uint64_t a, b;
        char p[8];

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &a, &b, p) == 3) {
            in = va >= a && va < b;
            if (in) {
                *start = a;
                *end = b;
                memcpy(prot, p, sizeof(p));
            }
        } else if (in && !strncmp(line, "VmFlags:", 8)) {
            memcpy(flags, line, 255);
            flags[255] = '\0';
        }
    }
    fclose(f);
}

static void test_arena_is_inaccessible_and_not_dumped_or_inherited(void **state)
{
    static struct vmm_space_node n;
    uint64_t start, end;
    char prot[8] = "", flags[256];

    reserve(&n, 64 * MIB, 0, 0);
    vma_of(n.base + 32 * MIB, &start, &end, prot, flags);
    assert_true(start <= n.base && end >= n.base + n.size);
    assert_string_equal(prot, "---p");
    assert_non_null(strstr(flags, " dd"));
    assert_non_null(strstr(flags, " dc"));
    assert_non_null(strstr(flags, " nr"));
}

static void test_refused_advice_does_no_harm(void **state)
{
    static struct vmm_space_node n;

    pages.fail_advise = true;
    reserve(&n, 2 * MIB, 0, 0);
    assert_true(pages.advises >= 2);
}

static void test_blank_leaves_no_vma_behind(void **state)
{
    static struct vmm_space_node n;
    size_t before;

    reserve(&n, 64 * MIB, 0, 0);
    before = count_lines("/proc/self/maps");
    for (uint64_t at = n.base; at < n.base + n.size; at += 4 * MIB) {
        char *p = mmap((void *)(uintptr_t)at, MIB, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

        assert_true(p != MAP_FAILED);
        p[5] = 1;
    }
    assert_true(count_lines("/proc/self/maps") >= before + 16);
    for (uint64_t at = n.base; at < n.base + n.size; at += 4 * MIB)
        assert_int_equal(vmm_space_blank(&space, at, MIB), 0);
    assert_true(count_lines("/proc/self/maps") <= before + 1);
    pages.fail_map_after = 0;
    pages.map_error = -ENOMEM;
    assert_int_equal(vmm_space_blank(&space, n.base, MIB), -ENOMEM);
}

static void test_fini_unmaps_everything(void **state)
{
    uint64_t base = restrict_space(64 * MIB, 16 * MIB);
    static struct vmm_space_node a, b;

    reserve(&a, 2 * MIB, 0, 0);
    reserve(&b, 2 * MIB, 0, base + 40 * MIB);
    vmm_space_fini(&space);
    assert_true(is_unmapped(base, 64 * MIB));
}

static void test_kernel_without_noreplace(void **state)
{
    uint64_t base = restrict_space(64 * MIB, 16 * MIB);
    static struct vmm_space_node a, b;
    char *mine = mmap((void *)(uintptr_t)(base + 32 * MIB), PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    assert_int_equal(mine, base + 32 * MIB);
    mine[0] = 42;
    pages.no_noreplace = true;
    assert_int_equal(reserve(&a, 2 * MIB, 0, base + 48 * MIB), base + 48 * MIB);
    assert_int_not_equal(reserve(&b, 4 * MIB, 0, base + 32 * MIB), base + 32 * MIB);
    assert_int_equal(mine[0], 42);
    munmap(mine, PAGE);
}

static void test_small_arenas_where_large_ones_are_refused(void **state)
{
    static struct vmm_space_node n[3];

    pages.largest_map = 8 * GIB;
    reserve(&n[0], 2 * MIB, 0, 0);
    reserve(&n[2], 2 * MIB, 0, 0);
    assert_int_equal(vmm_space_arenas(&space), 1);
    reserve(&n[1], 7 * GIB, 0, 0);
    pages.largest_map = 4 * MIB;
    vmm_space_fini(&space);
    reserve(&n[0], 2 * MIB, 0, 0);
    assert_int_equal(vmm_space_reserve(&space, 8 * MIB, 0, 0, &n[1]), -ENOMEM);
    assert_int_equal(vmm_space_validate(&space), 0);
    reserve(&n[2], 64 * PAGE, 0, 0);
}

static uint64_t address_space_in_use(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    uint64_t pages_used = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%" SCNu64, &pages_used), 1);
    fclose(f);
    return pages_used * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void test_limited_address_space(void **state)
{
    static struct vmm_space_node n[64];
    struct rlimit old, tight;
    size_t count = 0;
    void *p;

    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    tight = old;
    tight.rlim_cur = address_space_in_use() + 4 * GIB + 32 * MIB;
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    while (count < 64 && !vmm_space_reserve(&space, 512 * MIB, 0, 0, &n[count]))
        count++;
    p = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_int_equal(vmm_space_validate(&space), 0);
    assert_in_range(count, 7, 8);
    assert_true(p != MAP_FAILED);
    munmap(p, 16 * MIB);
}

static uint64_t committed_kb(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    uint64_t kb = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "Committed_AS: %" SCNu64, &kb) == 1)
            break;
    fclose(f);
    return kb;
}

/* Under vm.overcommit_memory=2 the kernel ignores MAP_NORESERVE and refuses what it would have to
 * charge. Without that flag it charges in every mode, so what it does not charge now it allows in
 * that mode too. */
static void test_reserving_is_not_charged_as_memory(void **state)
{
    static struct vmm_space_node n;
    uint64_t before = committed_kb();

    pages.drop_noreserve = true;
    reserve(&n, 512 * GIB, 0, 0);
    assert_true(committed_kb() < before + (64 * GIB >> 10));
}

static void test_validate_sees_damage(void **state)
{
    struct vmm_arenas *a = &space.arenas;
    uint64_t base = restrict_space(64 * MIB, 16 * MIB);
    struct vmm_arena *low, *high;

    assert_int_equal(vmm_arenas_grow_at(a, base, 2 * MIB, false), 0);
    assert_int_equal(vmm_arenas_grow_at(a, base + 8 * MIB, 2 * MIB, false), 0);
    low = vmm_arenas_first(a);
    high = vmm_arenas_next(low);
    low->size += 6 * MIB;
    assert_int_equal(vmm_arenas_validate(a), -EUCLEAN); /* they touch */
    low->size += PAGE;
    assert_int_equal(vmm_arenas_validate(a), -EUCLEAN); /* they overlap */
    low->size = 2 * MIB;
    a->count++;
    assert_int_equal(vmm_arenas_validate(a), -EUCLEAN);
    a->count--;
    a->high = high->base;
    assert_int_equal(vmm_arenas_validate(a), -EUCLEAN);
    a->high = base + 64 * MIB;
    assert_int_equal(vmm_arenas_validate(a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_refuses_nonsense),
        TEST(test_a_hints_arena_stays_apart),
        TEST(test_40_bit_aperture),
        TEST(test_arena_is_inaccessible_and_not_dumped_or_inherited),
        TEST(test_refused_advice_does_no_harm),
        TEST(test_blank_leaves_no_vma_behind),
        TEST(test_fini_unmaps_everything),
        TEST(test_kernel_without_noreplace),
        TEST(test_small_arenas_where_large_ones_are_refused),
        TEST(test_limited_address_space),
        TEST(test_reserving_is_not_charged_as_memory),
        TEST(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
