/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fake/usercopy.h"

static void test_good_memory_is_copied(void **state)
{
    char from[64] = "bytes", to[64] = "";

    assert_int_equal(fake_copy_in(to, (uintptr_t)from, sizeof(from)), 0);
    assert_string_equal(to, "bytes");
    memset(to, 0, sizeof(to));
    assert_int_equal(fake_copy_out((uintptr_t)to, from, sizeof(from)), 0);
    assert_string_equal(to, "bytes");
}

static void test_bad_pointers_are_efault(void **state)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char buf[64] = "";

    assert_ptr_not_equal(page, MAP_FAILED);
    munmap(page + 4096, 4096);
    assert_int_equal(fake_copy_in(buf, 0, 8), -EFAULT);
    assert_int_equal(fake_copy_in(buf, UINT64_MAX - 4, 8), -EFAULT);
    assert_int_equal(fake_copy_in(buf, (uintptr_t)page + 4092, 8), -EFAULT);
    assert_int_equal(fake_copy_in(buf, (uintptr_t)page + 4088, 8), 0);
    mprotect(page, 4096, PROT_READ);
    assert_int_equal(fake_copy_out((uintptr_t)page, buf, 8), -EFAULT);
    assert_int_equal(fake_copy_in(buf, 0, 0), 0);
    munmap(page, 4096);
}

/* Everything is allowed but process_vm_readv and _writev. */
static bool forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a child: a filter stays for good. The exit code is how many copies went wrong, 99 without a
 * filter. */
static int copies_in_a_sandbox(void)
{
    static char big[300000], other[300000];
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char buf[64] = "bytes";
    int wrong = 0;

    if (!forbid() || page == MAP_FAILED || munmap(page + 4096, 4096) != 0)
        return 99;
    wrong += fake_copy_out((uintptr_t)page, buf, 8) != 0 || strcmp(page, "bytes") != 0;
    wrong += fake_copy_in(buf, (uintptr_t)page + 4092, 8) != -EFAULT;
    wrong += fake_copy_in(buf, 8, 8) != -EFAULT;
    memset(big, 'b', sizeof(big));
    wrong += fake_copy_in(other, (uintptr_t)big, sizeof(big)) != 0 ||
             memcmp(big, other, sizeof(big)) != 0;
    mprotect(page, 4096, PROT_READ);
    wrong += fake_copy_out((uintptr_t)page, buf, 8) != -EFAULT;
    return wrong;
}

static void test_in_a_sandbox_too(void **state)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(copies_in_a_sandbox());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 99)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_memory_is_copied),
        cmocka_unit_test(test_bad_pointers_are_efault),
        cmocka_unit_test(test_in_a_sandbox_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
