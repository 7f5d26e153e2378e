/* SPDX-License-Identifier: MIT */
#include "kfd/error.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>

static void test_fail_keeps_the_text_and_gives_the_error(void **state)
{
    assert_int_equal(kfd_fail(-EINVAL, "size %d", 7), -EINVAL);
    assert_string_equal(kfd_error_text(), "size 7");
    kfd_error_clear();
    assert_string_equal(kfd_error_text(), "");
}

static void test_fail_in_goes_before_the_text(void **state)
{
    kfd_fail(-EIO, "step");
    assert_int_equal(kfd_fail_in(-EIO, "device %u", 1u), -EIO);
    assert_string_equal(kfd_error_text(), "device 1: step");
    kfd_error_clear();
    kfd_fail_in(-EIO, "alone");
    assert_string_equal(kfd_error_text(), "alone");
}

static void test_long_texts_are_cut(void **state)
{
    char text[2000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    kfd_fail(-EIO, "%s", text);
    assert_int_equal(strlen(kfd_error_text()), 511);
    kfd_fail_in(-EIO, "before");
    assert_int_equal(strlen(kfd_error_text()), 511);
    assert_int_equal(strncmp(kfd_error_text(), "before: xxx", 11), 0);
    kfd_fail_in(-EIO, "%s", text);
    assert_int_equal(strlen(kfd_error_text()), 511);
}

static void *fail_elsewhere(void *arg)
{
    kfd_fail(-EIO, "another thread");
    return NULL;
}

static void test_each_thread_has_its_text(void **state)
{
    pthread_t thread;

    kfd_fail(-EIO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(kfd_error_text(), "mine");
}

static void test_a_text_that_is_held_stays(void **state)
{
    kfd_fail(-EIO, "first");
    kfd_error_hold();
    kfd_error_hold();
    assert_int_equal(kfd_fail(-EINVAL, "second"), -EINVAL);
    kfd_error_resume();
    assert_int_equal(kfd_fail_in(-EIO, "in"), -EIO);
    kfd_error_resume();
    assert_string_equal(kfd_error_text(), "first");
    kfd_fail(-EIO, "third");
    assert_string_equal(kfd_error_text(), "third");
}

static void test_errnos_have_names_of_either_sign(void **state)
{
    assert_string_equal(kfd_errno_name(-ENOMEM), "ENOMEM");
    assert_string_equal(kfd_errno_name(EACCES), "EACCES");
    assert_string_equal(kfd_errno_name(-524), "errno 524");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_keeps_the_text_and_gives_the_error),
        cmocka_unit_test(test_fail_in_goes_before_the_text),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_each_thread_has_its_text),
        cmocka_unit_test(test_a_text_that_is_held_stays),
        cmocka_unit_test(test_errnos_have_names_of_either_sign),
    };

    return cmocka_run_group_tests_name("kfd/error", tests, NULL, NULL);
}
