/* SPDX-License-Identifier: MIT */
/* KFDIRECT_FAKE, with the libraries as they are installed: the fake is loaded at first use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>

/* Sends stderr into a file of memory until stop_catching, which gives what was written. */
static int caught = -1, real_stderr = -1;

static void start_catching(void)
{
    caught = memfd_create("stderr", MFD_CLOEXEC);
    real_stderr = dup(2);
    assert_true(caught >= 0 && real_stderr >= 0);
    assert_int_equal(dup2(caught, 2), 2);
}

static void stop_catching(char *text, size_t size)
{
    ssize_t n;

    assert_int_equal(dup2(real_stderr, 2), 2);
    close(real_stderr);
    n = pread(caught, text, size - 1, 0);
    close(caught);
    assert_true(n >= 0);
    text[n] = '\0';
}

static void test_a_wrong_name_can_be_put_right(void **state)
{
    struct kfd *kfd = NULL;

    setenv("KFDIRECT_FAKE", "no-such-machine", 1);
    assert_int_equal(kfd_open(NULL, &kfd), -ENOENT);
    assert_non_null(strstr(kfd_error_text(), "no-such-machine"));
    /* The fake itself said what is wrong: it was loaded. */
    assert_null(strstr(kfd_error_text(), "cannot open shared object"));
}

static void test_the_machine_opens_and_is_announced_once(void **state)
{
    struct kfd_sys *one, *two;
    struct kfd *kfd;
    char text[512];

    setenv("KFDIRECT_FAKE", "navi31:2", 1);
    start_catching();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kfd_open(NULL, &kfd), 0);
        assert_int_equal(kfd_device_count(kfd), 2);
        assert_string_equal(kfd_device_info(kfd_device_at(kfd, 1))->name, "gfx1100");
        kfd_close(kfd);
    }
    assert_int_equal(kfd_sys_default(&one), 0);
    assert_int_equal(kfd_sys_default(&two), 0);
    stop_catching(text, sizeof(text));
    assert_ptr_equal(one, two);
    assert_non_null(strstr(text, "navi31:2"));
    assert_non_null(strchr(text, '\n'));
    assert_string_equal(strchr(text, '\n'), "\n"); /* one line, the first and only */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wrong_name_can_be_put_right),
        cmocka_unit_test(test_the_machine_opens_and_is_announced_once),
    };

    return cmocka_run_group_tests_name("kfd/sys_env", tests, NULL, NULL);
}
