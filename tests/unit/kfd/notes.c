/* SPDX-License-Identifier: MIT */
#include "kfd/notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_notes_come_in_order(void **state)
{
    struct kfd_notes notes = {0};
    char text[32];

    for (int i = 0; i < 100; i++)
        assert_int_equal(kfd_notes_add(&notes, "note %d", i), 0);
    assert_int_equal(notes.count, 100);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof(text), "note %d", i);
        assert_string_equal(notes.text[i], text);
    }
    kfd_notes_free(&notes);
    assert_int_equal(notes.count, 0);
    assert_null(notes.text);
}

static void test_long_notes_are_cut(void **state)
{
    struct kfd_notes notes = {0};

    assert_int_equal(kfd_notes_add(&notes, "%2000d", 1), 0);
    assert_int_equal(strlen(notes.text[0]), 511);
    kfd_notes_free(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes_come_in_order),
        cmocka_unit_test(test_long_notes_are_cut),
    };

    return cmocka_run_group_tests_name("kfd/notes", tests, NULL, NULL);
}
