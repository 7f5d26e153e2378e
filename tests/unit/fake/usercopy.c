/* SPDX-License-Identifier: MIT */
#include "rig.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_memory_is_copied),
        cmocka_unit_test(test_bad_pointers_are_efault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
