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
#include "vmm/memory.h"

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
    size_t first[CELLS + 2]; /* of mapping n: its first cell + 1; 0: there is none */
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
    struct vmm_mapping mapping = {.va = va_of(first), .size = count * PAGE, .id = (uint32_t)number};
    int err = vmm_maptab_insert(&m->table, &mapping);

    if (!err) {
        m->first[number] = first + 1;
        memset(m->cell + first, (int)number, count);
    }
    return err;
}

static void model_remove(struct model *m, size_t number)
{
    vmm_maptab_remove(&m->table, vmm_maptab_at(&m->table, va_of(m->first[number] - 1)));
    m->first[number] = 0;
    for (size_t i = 0; i < m->cells; i++)
        if (m->cell[i] == number)
            m->cell[i] = 0;
}

/* The number of a mapping, 0 for NULL. */
static uint32_t number_of(const struct vmm_mapping *mapping)
{
    return mapping ? (uint32_t)mapping->id : 0;
}

static void check_points(const struct model *m)
{
    assert_int_equal(vmm_maptab_validate(&m->table, BASE, m->cells * PAGE), 0);
    for (size_t i = 0; i < m->cells; i++) {
        assert_int_equal(number_of(vmm_maptab_at(&m->table, va_of(i))), m->cell[i]);
        assert_int_equal(number_of(vmm_maptab_at(&m->table, va_of(i) + PAGE - 1)), m->cell[i]);
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
        assert_int_equal(bad, va_of(m->first[cut] - 1));
    else
        assert_int_equal(bad, hole == SIZE_MAX ? va_of(first + count) : va_of(hole));
    assert_int_equal(vmm_maptab_cover(&m->table, va_of(first), count * PAGE, NULL, NULL), want);
    assert_int_equal(number_of(vmm_maptab_first_in(&m->table, va_of(first), count * PAGE)),
                     first_number);
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
        vmm_maptab_fini(&m.table);
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

        if (m.first[number]) {
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
    vmm_maptab_fini(&m.table);
}

static void test_walk_is_in_order_of_address(void **state)
{
    static struct model m;
    const struct vmm_mapping *mapping;
    size_t i = 0;

    model_init(&m, CELLS);
    for (size_t n = 0; n < 32; n++)
        assert_int_equal(model_insert(&m, 1 + (n * 5) % 32, 2 * ((n * 5) % 32), 1), 0);
    for (mapping = vmm_maptab_first(&m.table); mapping;
         mapping = vmm_maptab_next(&m.table, mapping))
        assert_int_equal(mapping->va, va_of(2 * i++));
    assert_int_equal(i, 32);
    assert_int_equal(m.table.count, 32);
    assert_int_equal(m.table.bytes, 32 * PAGE);
    vmm_maptab_fini(&m.table);
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
    assert_int_equal(vmm_maptab_at(&t, UINT64_MAX)->va, high.va);
    assert_int_equal(vmm_maptab_at(&t, 0)->size, PAGE);
    assert_int_equal(vmm_maptab_first_in(&t, PAGE, UINT64_MAX)->va, high.va);
    assert_null(vmm_maptab_next(&t, vmm_maptab_at(&t, UINT64_MAX)));
    assert_null(vmm_maptab_first_in(&t, 0, 0));
    assert_int_equal(vmm_maptab_cover(&t, 0 - (uint64_t)PAGE, PAGE, &count, NULL), VMM_COVER_WHOLE);
    assert_int_equal(count, 1);
    assert_int_equal(vmm_maptab_cover(&t, 0 - 2 * (uint64_t)PAGE, 2 * PAGE, &count, NULL),
                     VMM_COVER_HOLES);
    assert_int_equal(vmm_maptab_cover(&t, 0, UINT64_MAX, &count, NULL), VMM_COVER_CUT);
    assert_int_equal(count, 2);
    vmm_maptab_fini(&t);
}

/* Tens of thousands, so that the tree has levels: put in upwards, downwards or in any order,
 * thinned out, filled again and emptied. What is in is kept as one bit a page. */
enum order {
    UPWARDS,
    DOWNWARDS,
    RANDOM
};

#define MANY 40000u

static size_t place(struct random *r, enum order order, size_t step)
{
    return order == UPWARDS     ? step
           : order == DOWNWARDS ? MANY - 1 - step
                                : (size_t)random_below(r, MANY);
}

static void check_many(const struct vmm_maptab *t, const bool *in)
{
    const struct vmm_mapping *m = vmm_maptab_first(t);

    assert_int_equal(vmm_maptab_validate(t, BASE, MANY * PAGE), 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(vmm_maptab_at(t, va_of(i)) != NULL, in[i]);
        if (!in[i])
            continue;
        assert_non_null(m);
        assert_int_equal(m->va, va_of(i));
        assert_int_equal(m->id, i);
        m = vmm_maptab_next(t, m);
    }
    assert_null(m);
}

static void test_many_in_every_order(void **state)
{
    struct random r = random_start("maptab levels");
    static bool in[MANY];

    for (int fill = UPWARDS; fill <= RANDOM; fill++) {
        for (int drain = UPWARDS; drain <= RANDOM; drain++) {
            struct vmm_maptab t;

            vmm_maptab_init(&t);
            memset(in, 0, sizeof(in));
            for (int round = 0; round < 2; round++) {
                for (size_t k = 0; k < MANY; k++) {
                    size_t i = place(&r, (enum order)fill, k);
                    struct vmm_mapping m = {.va = va_of(i), .size = PAGE, .id = (uint32_t)i};

                    assert_int_equal(vmm_maptab_insert(&t, &m), in[i] ? -EEXIST : 0);
                    in[i] = true;
                }
                check_many(&t, in);
                for (size_t k = 0; k < MANY; k++) {
                    size_t i = place(&r, (enum order)drain, k);

                    if (in[i] && (round == 1 || i % 64 != 0))
                        vmm_maptab_remove(&t, vmm_maptab_at(&t, va_of(i)));
                    in[i] = in[i] && round == 0 && i % 64 == 0;
                }
                for (size_t i = 0; drain == RANDOM && i < MANY; i++) {
                    if (in[i] && (round == 1 || i % 64 != 0)) {
                        vmm_maptab_remove(&t, vmm_maptab_at(&t, va_of(i)));
                        in[i] = false;
                    }
                }
                check_many(&t, in);
            }
            assert_null(t.root);
        }
    }
}

/* A tree grown upwards has full leaves, one grown in any order two thirds of that. */
static void test_a_mapping_costs_110_bytes(void **state)
{
    struct random r = random_start("maptab bytes");

    for (int order = UPWARDS; order <= RANDOM; order++) {
        struct vmm_maptab t;

        vmm_maptab_init(&t);
        for (size_t k = 0; k < MANY; k++) {
            struct vmm_mapping m = {.va = va_of(place(&r, (enum order)order, k)), .size = PAGE};

            vmm_maptab_insert(&t, &m);
        }
        assert_in_range(vmm_maptab_memory(&t), 64 * t.count, 110 * t.count);
        vmm_maptab_fini(&t);
    }
}

static void test_no_memory_changes_nothing(void **state)
{
    static bool in[MANY];
    struct vmm_maptab t;
    size_t failures = 0;

    vmm_maptab_init(&t);
    memset(in, 0, sizeof(in));
    for (size_t k = 0; k < MANY / 16; k++) {
        size_t i = k * 7919 % MANY;
        struct vmm_mapping m = {.va = va_of(i), .size = PAGE, .id = (uint32_t)i};
        int err = -ENOMEM;

        for (uint64_t budget = 0; err; budget++) {
            vmm_memory_fail_after(budget);
            err = vmm_maptab_insert(&t, &m);
            vmm_memory_fail_after(UINT64_MAX);
            if (!err)
                break;
            assert_int_equal(err, -ENOMEM);
            assert_int_equal(vmm_maptab_validate(&t, BASE, MANY * PAGE), 0);
            assert_null(vmm_maptab_at(&t, m.va));
            failures++;
        }
        in[i] = true;
    }
    assert_in_range(failures, MANY / 16 / 16, MANY);
    check_many(&t, in);
    vmm_maptab_fini(&t);
}

static void test_validate_sees_damage(void **state)
{
    struct vmm_mapping *first;
    static struct model m;

    model_init(&m, 8);
    model_insert(&m, 1, 0, 2);
    model_insert(&m, 2, 3, 2);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), 0);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 4 * PAGE), -EUCLEAN);
    assert_int_equal(vmm_maptab_validate(&m.table, BASE + PAGE, 8 * PAGE), -EUCLEAN);
    first = vmm_maptab_at(&m.table, BASE);
    first->size = 4 * PAGE;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    first->va -= 2 * PAGE; /* its end is right */
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    first->va += 2 * PAGE;
    first->size = PAGE;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    first->size = 2 * PAGE;
    m.table.count = 3;
    assert_int_equal(vmm_maptab_validate(&m.table, BASE, 8 * PAGE), -EUCLEAN);
    vmm_maptab_fini(&m.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layout_of_seven_cells),
        cmocka_unit_test(test_random_against_cells),
        cmocka_unit_test(test_walk_is_in_order_of_address),
        cmocka_unit_test(test_empty_table),
        cmocka_unit_test(test_ends_of_the_address_space),
        cmocka_unit_test(test_many_in_every_order),
        cmocka_unit_test(test_a_mapping_costs_110_bytes),
        cmocka_unit_test(test_no_memory_changes_nothing),
        cmocka_unit_test(test_validate_sees_damage),
    };

    return cmocka_run_group_tests_name("maptab", tests, NULL, NULL);
}
