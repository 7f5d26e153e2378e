/* SPDX-License-Identifier: MIT */
/* The choice of a default system. KFDIRECT_FAKE with a machine that exists is in sys_env.c, which
 * links the shared libraries. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stub_sys.h"

static void test_linux_is_the_default(void **state)
{
    struct kfd_sys *sys = NULL;

    unsetenv("KFDIRECT_FAKE");
    assert_int_equal(kfd_sys_default(&sys), 0);
    assert_ptr_equal(sys, kfd_sys_linux());
    setenv("KFDIRECT_FAKE", "", 1);
    assert_int_equal(kfd_sys_default(&sys), 0);
    assert_ptr_equal(sys, kfd_sys_linux());
    unsetenv("KFDIRECT_FAKE");
}

static void test_a_system_that_was_set_goes_before_the_environment(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_sys *sys;
    struct kfd *kfd;

    setenv("KFDIRECT_FAKE", "no such machine", 1);
    kfd_sys_set_default(&stub->base);
    assert_int_equal(kfd_sys_default(&sys), 0);
    assert_ptr_equal(sys, &stub->base);
    assert_int_equal(kfd_open(NULL, &kfd), 0);
    assert_ptr_equal(kfd_get_sys(kfd), &stub->base);
    kfd_close(kfd);
    kfd_sys_set_default(NULL);
    unsetenv("KFDIRECT_FAKE");
    assert_int_equal(kfd_sys_default(&sys), 0);
    assert_ptr_equal(sys, kfd_sys_linux());
    stub_free(stub);
}

static void test_an_unknown_machine_is_enoent_and_named(void **state)
{
    struct kfd_sys *sys = NULL;
    struct kfd *kfd = NULL;

    setenv("KFDIRECT_FAKE", "no-such-machine:3", 1);
    assert_int_equal(kfd_sys_default(&sys), -ENOENT);
    assert_null(sys);
    assert_non_null(strstr(kfd_error_text(), "no-such-machine:3"));
    assert_int_equal(kfd_open(NULL, &kfd), -ENOENT);
    assert_null(kfd);
    unsetenv("KFDIRECT_FAKE");
}

static atomic_bool enough;

static void *choose(void *arg)
{
    struct kfd_sys *sys;

    while (!atomic_load(&enough)) {
        kfd_sys_set_default(NULL);
        kfd_sys_default(&sys);
    }
    return NULL;
}

/* A child of a process whose other thread is in the middle of the choice makes its own. */
static void test_a_child_never_inherits_the_choice_locked(void **state)
{
    pthread_t thread;
    int bad = 0;

    unsetenv("KFDIRECT_FAKE");
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, choose, NULL), 0);
    for (int i = 0; i < 100 && !bad; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            struct kfd_sys *sys = NULL;

            alarm(20); /* a deadlock ends the child with a signal */
            _exit(kfd_sys_default(&sys) == 0 && sys == kfd_sys_linux() ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &bad, 0), pid);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    assert_int_equal(bad, 0);
}

static void test_linux_survives_a_destroy(void **state)
{
    kfd_sys_destroy(NULL);
    kfd_sys_destroy(kfd_sys_linux());
    assert_non_null(kfd_sys_linux()->ops->open_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linux_is_the_default),
        cmocka_unit_test(test_a_system_that_was_set_goes_before_the_environment),
        cmocka_unit_test(test_an_unknown_machine_is_enoent_and_named),
        cmocka_unit_test(test_a_child_never_inherits_the_choice_locked),
        cmocka_unit_test(test_linux_survives_a_destroy),
    };

    return cmocka_run_group_tests_name("kfd/sys", tests, NULL, NULL);
}
