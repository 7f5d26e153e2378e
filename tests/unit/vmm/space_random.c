/* SPDX-License-Identifier: MIT */
#include "space_rig.h"

#include "random.h"

/*
 * Random against a page map of a small aperture, in which everything is either free, reserved or
 * somebody else's. -ENOMEM must mean that no place is left, and a hint that is free and aligned
 * must be taken.
 */
#define CELL (512u << 10)
#define CELLS 256u

static uint8_t cell[CELLS]; /* 0 free, 1 reserved, 2 foreign */

static bool cells_free(uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++)
        if (i >= CELLS || cell[i])
            return false;
    return true;
}

static uint64_t effective_align(uint64_t size, uint64_t align)
{
    align = align < PAGE ? PAGE : align;
    return size >= 2 * MIB && align < 2 * MIB ? 2 * MIB : align;
}

static void run_random(struct random *r, uint64_t base, bool foreign)
{
    enum {
        STEPS = 6000,
        MAX = 128
    };
    static struct vmm_space_node n[MAX];
    size_t live[MAX], count = 0, unused[MAX];
    uint64_t exhausted = 0, hints_taken = 0;

    for (size_t i = 0; i < MAX; i++)
        unused[i] = i;
    for (int step = 0; step < STEPS; step++) {
        bool full = (step / 500) % 2;
        uint64_t cells = 1 + random_below(r, random_below(r, 4) ? 8 : 40);
        uint64_t size = cells * CELL, align = random_below(r, 2) ? 0 : MIB << random_below(r, 6);
        uint64_t hint_cell = random_below(r, CELLS);
        uint64_t hint = random_below(r, 3) ? 0 : base + hint_cell * CELL;
        bool hint_good = hint && hint % effective_align(size, align) == 0 &&
                         hint_cell + cells <= CELLS && cells_free(hint_cell, cells);

        if (count && (count == MAX || random_below(r, 10) < (full ? 7 : 3))) {
            size_t k = random_below(r, count), slot = live[k];

            memset(&cell[(n[slot].base - base) / CELL], 0, n[slot].size / CELL);
            vmm_space_free(&space, &n[slot]);
            live[k] = live[--count];
            unused[MAX - 1 - count] = slot;
        } else {
            size_t slot = unused[MAX - 1 - count];
            int err = vmm_space_reserve(&space, size, align, hint, &n[slot]);

            if (!err) {
                uint64_t first = (n[slot].base - base) / CELL;

                assert_true(n[slot].base >= base && n[slot].base % CELL == 0);
                assert_int_equal(n[slot].base % effective_align(size, align), 0);
                assert_true(cells_free(first, cells));
                if (hint_good)
                    assert_int_equal(n[slot].base, hint);
                hints_taken += hint_good;
                memset(&cell[first], 1, cells);
                live[count++] = slot;
            } else {
                assert_int_equal(err, -ENOMEM);
                exhausted++;
                assert_false(hint_good);
                for (uint64_t i = 0; i + cells <= CELLS && !foreign; i++)
                    assert_false((base + i * CELL) % effective_align(size, align) == 0 &&
                                 cells_free(i, cells));
            }
        }
        assert_int_equal(vmm_space_validate(&space), 0);
    }
    assert_true(exhausted > 20 && hints_taken > 20);
    while (count)
        vmm_space_free(&space, &n[live[--count]]);
    assert_int_equal(vmm_space_validate(&space), 0);
}

static void test_random_against_page_map(void **state)
{
    uint64_t base = restrict_space(CELLS * CELL, 8 * MIB);
    struct random r = random_start("space");

    memset(cell, 0, sizeof(cell));
    run_random(&r, base, false);
}

static void test_random_among_mappings_of_others(void **state)
{
    uint64_t base = restrict_space(CELLS * CELL, 8 * MIB);
    struct random r = random_start("space among others");

    memset(cell, 0, sizeof(cell));
    for (size_t i = 0; i < 12; i++) {
        uint64_t k = random_below(&r, CELLS);
        char *p = mmap((void *)(uintptr_t)(base + k * CELL), CELL, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

        assert_true(p != MAP_FAILED);
        p[0] = (char)k;
        cell[k] = 2;
    }
    run_random(&r, base, true);
    for (size_t k = 0; k < CELLS; k++) {
        char *p = (char *)(uintptr_t)(base + k * CELL);

        if (cell[k] != 2)
            continue;
        assert_int_equal(*p, (char)k);
        munmap(p, CELL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_random_against_page_map),
        TEST(test_random_among_mappings_of_others),
    };

    return cmocka_run_group_tests_name("space random", tests, NULL, NULL);
}
