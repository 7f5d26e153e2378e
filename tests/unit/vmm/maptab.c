/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/maptab.h"

#include "random.h"

#define PAGE 4096u
#define BASE 0x7f0000000000u

/*
 * The naive model: a reservation of some cells, each with the number of the mapping that fills it,
 * 0 for none.
 */
#define CELLS 64

struct model {
    struct vmm_maptab table;
    struct vmm_mapping mappings[CELLS + 1]; /* number n is mappings[n]; size 0: unused */
    size_t cells;
    uint8_t cell[CELLS];
};

static uint64_t va_of(size_t cell)
{
    return BASE + cell * PAGE;
}

static void model_init(struct model *m, size_t cells)
{
    memset(m, 0, sizeof(*m));
    m->cells = cells;
    vmm_maptab_init(&m->table);
}

static bool model_is_free(const struct model *m, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (m->cell[i])
            return false;
    return true;
}

static int model_insert(struct model *m, size_t number, size_t first, size_t count)
{
    struct vmm_mapping *mapping = &m->mappings[number];
    int err;

    mapping->va = va_of(first);
    mapping->size = count * PAGE;
    err = vmm_maptab_insert(&m->table, mapping);
    if (err)
        mapping->size = 0;
    else
        memset(m->cell + first, (int)number, count);
    return err;
}

static void model_remove(struct model *m, size_t number)
{
    vmm_maptab_remove(&m->table, &m->mappings[number]);
    m->mappings[number].size = 0;
    for (size_t i = 0; i < m->cells; i++)
        if (m->cell[i] == number)
            m->cell[i] = 0;
}

static void check_points(const struct model *m)
{
    assert_int_equal(vmm_maptab_validate(&m->table, BASE, m->cells * PAGE), 0);
    for (size_t i = 0; i < m->cells; i++) {
        const struct vmm_mapping *want = m->cell[i] ? &m->mappings[m->cell[i]] : NULL;

        assert_ptr_equal(vmm_maptab_at(&m->table, va_of(i)), want);
        assert_ptr_equal(vmm_maptab_at(&m->table, va_of(i) + PAGE - 1), want);
    }
    assert_null(vmm_maptab_at(&m->table, BASE - 1));
    assert_null(vmm_maptab_at(&m->table, va_of(m->cells)));
    assert_null(vmm_maptab_at(&m->table, 0));
    assert_null(vmm_maptab_at(&m->table, UINT64_MAX));
}

/* One range of cells: what cover and first_in must say, cell by cell. */
static void check_range(const struct model *m, size_t first, size_t count)
{
    uint64_t found = 0, bad = 0, want_found = 0;
    bool seen[CELLS + 1] = {false};
    size_t first_number = 0, hole = SIZE_MAX, cut = 0;
    enum vmm_cover cover, want;

    for (size_t i = first; i < first + count; i++) {
        size_t number = m->cell[i];

        if (!number) {
            hole = hole == SIZE_MAX ? i : hole;
            continue;
        }
        first_number = first_number ? first_number : number;
        want_found += !seen[number];
        seen[number] = true;
    }
    for (size_t i = 0; i < m->cells; i++)
        if (m->cell[i] && seen[m->cell[i]] && (i < first || i >= first + count))
            cut = cut ? cut : m->cell[i];
    if (cut)
        want = VMM_COVER_CUT;
    else if (!want_found)
        want = VMM_COVER_NONE;
    else
        want = hole == SIZE_MAX ? VMM_COVER_WHOLE : VMM_COVER_HOLES;

    cover = vmm_maptab_cover(&m->table, va_of(first), count * PAGE, &found, &bad);
    assert_int_equal(cover, want);
    assert_int_equal(found, want_found);
    if (want == VMM_COVER_CUT)
        assert_int_equal(bad, m->mappings[cut].va);
    else
        assert_int_equal(bad, hole == SIZE_MAX ? va_of(first + count) : va_of(hole));
    assert_int_equal(vmm_maptab_cover(&m->table, va_of(first), count * PAGE, NULL, NULL), want);
    assert_ptr_equal(vmm_maptab_first_in(&m->table, va_of(first), count * PAGE),
                     first_number ? &m->mappings[first_number] : NULL);
}

/* Every way to fill seven cells with mappings and holes, every range of each, and every insertion
 * into each. */
static void test_every_layout_of_seven_cells(void **state)
{
    enum {
        N = 7,
        EMPTY = 0,
        BEGIN = 1,
        GO_ON = 2,
        CODES = 2187
    };
    size_t layouts = 0;

    for (int code = 0; code < CODES; code++) {
        struct model m;
        size_t number = 0;
        int rest = code;
        bool valid = true;
        int cells[N];

        for (int i = 0; i < N; i++, rest /= 3) {
            cells[i] = rest % 3;
            if (cells[i] == GO_ON && (i == 0 || cells[i - 1] == EMPTY))
                valid = false;
        }
        if (!valid)
            continue;
        layouts++;
        model_init(&m, N);
        for (size_t i = 0; i < N; i++) {
            size_t count = 1;

            if (cells[i] != BEGIN)
                continue;
            while (i + count < N && cells[i + count] == GO_ON)
                count++;
            assert_int_equal(model_insert(&m, ++number, i, count), 0);
        }
        check_points(&m);
        for (size_t first = 0; first < N; first++) {
            for (size_t count = 1; first + count <= N; count++) {
                bool is_free = model_is_free(&m, first, count);

                check_range(&m, first, count);
                assert_int_equal(model_insert(&m, N + 1, first, count), is_free ? 0 : -EEXIST);
                if (is_free)
                    model_remove(&m, N + 1);
            }
        }
        check_points(&m);
    }
    assert_int_equal(layouts,
                     610); /* every second Fibonacci number: 1, 2, 5, 13, 34, 89, 233, 610 */
}

static void test_random_against_cells(void **state)
{
    struct random r = random_start("maptab");
    static struct model m;

    model_init(&m, CELLS);
    for (int step = 0; step < 10000; step++) {
        size_t first = random_below(&r, CELLS);
        size_t most = CELLS - first < 9 ? CELLS - first : 9;
        size_t count = 1 + random_below(&r, most);
        size_t number = 1 + random_below(&r, CELLS);

        if (m.mappings[number].size) {
            model_remove(&m, number);
        } else {
            int expected = model_is_free(&m, first, count) ? 0 : -EEXIST;

            assert_int_equal(model_insert(&m, number, first, count), expected);
        }
        check_points(&m);
        for (int i = 0; i < 4; i++) {
            first = random_below(&r, CELLS);
            check_range(&m, first, 1 + random_below(&r, CELLS - first));
        }
    }
}

static void test_walk_is_in_order_of_address(void **state)
{
    static struct model m;
    const struct vmm_mapping *mapping;
    size_t i = 0;

    model_init(&m, CELLS);
    for (size_t n = 0; n < 32; n++)
        assert_int_equal(model_insert(&m, 1 + (n * 5) % 32, 2 * ((n * 5) % 32), 1), 0);
    for (mapping = vmm_maptab_first(&m.table); mapping; mapping = vmm_maptab_next(mapping))
        assert_int_equal(mapping->va, va_of(2 * i++));
    assert_int_equal(i, 32);
    assert_int_equal(m.table.count, 32);
    assert_int_equal(m.table.bytes, 32 * PAGE);
}

static void test_empty_table(void **state)
{
    struct vmm_maptab t;
    uint64_t count = 9, bad = 9;

    vmm_maptab_init(&t);
    assert_null(vmm_maptab_first(&t));
    assert_null(vmm_maptab_at(&t, BASE));
    assert_null(vmm_maptab_first_in(&t, 0, UINT64_MAX));
    assert_int_equal(vmm_maptab_cover(&t, BASE, PAGE, &count, &bad), VMM_COVER_NONE);
    assert_int_equal(count, 0);
    assert_int_equal(bad, BASE);
    assert_int_equal(vmm_maptab_validate(&t, BASE, PAGE), 0);
}

static void test_ends_of_the_address_space(void **state)
{
    struct vmm_mapping low = {.va = 0, .size = PAGE};
    struct vmm_mapping high = {.va = 0 - (uint64_t)PAGE, .size = PAGE};
    struct vmm_mapping nothing = {.va = BASE, .size = 0};
    struct vmm_mapping wraps = {.va = 0 - (uint64_t)PAGE, .size = PAGE + 1};
    struct vmm_maptab t;
    uint64_t count;

    vmm_maptab_init(&t);
    assert_int_equal(vmm_maptab_insert(&t, &nothing), -EINVAL);
    assert_int_equal(vmm_maptab_insert(&t, &wraps), -EINVAL);
    assert_int_equal(t.count, 0);
    assert_int_equal(vmm_maptab_insert(&t, &high), 0);
    assert_int_equal(vmm_maptab_insert(&t, &low), 0);
    assert_ptr_equal(vmm_maptab_at(&t, UINT64_MAX), &high);
    assert_ptr_equal(vmm_maptab_at(&t, 0), &low);
    assert_ptr_equal(vmm_maptab_first_in(&t, PAGE, UINT64_MAX), &high);
    assert_null(vmm_maptab_first_in(&t, 0, 0));
    assert_int_equal(vmm_maptab_cover(&t, 0 - (uint64_t)PAGE, PAGE, &count, NULL), VMM_COVER_WHOLE);
    assert_int_equal(count, 1);
    assert_int_equal(vmm_maptab_cover(&t, 0 - 2 * (uint64_t)PAGE, 2 * PAGE, &count, NULL),
                     VMM_COVER_HOLES);
    assert_int_equal(vmm_maptab_cover(&t, 0, UINT64_MAX, &count, NULL), VMM_COVER_CUT);
    assert_int_equal(count, 2);
}

static void test_validate_sees_damage(void **state)
{
    static struct model m;

    model_init(&m, 8);
    model_insert(&m, 1, 0, 2);
    model_insert(&m, 2, 3, 2);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), 0);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 4 * PAGE), -EUCLEAN);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE + PAGE, 8 * PAGE), -EUCLEAN);
    m.mappings[1].size = 4 * PAGE;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    m.mappings[1].size = PAGE;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    m.mappings[1].size = 2 * PAGE;
    m.table.count = 3;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layout_of_seven_cells),
        cmocka_unit_test(test_random_against_cells),
        cmocka_unit_test(test_walk_is_in_order_of_address),
        cmocka_unit_test(test_empty_table),
        cmocka_unit_test(test_ends_of_the_address_space),
        cmocka_unit_test(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("maptab", tests, NULL, NULL);
}
