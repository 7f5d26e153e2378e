/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool.h"

static void test_sizes_read_naturally(void **state)
{
    char buf[24];

    assert_string_equal(tool_size(0, buf), "0 B");
    assert_string_equal(tool_size(1023, buf), "1023 B");
    assert_string_equal(tool_size(4096, buf), "4 KiB");
    assert_string_equal(tool_size((uint64_t)3 << 29, buf), "1.5 GiB");
    assert_string_equal(tool_size((uint64_t)64 << 30, buf), "64 GiB");
    assert_string_equal(tool_size(UINT64_MAX, buf), "16383.9 PiB");
}

static void test_requests_have_names(void **state)
{
    assert_string_equal(tool_request_name('K', 0x16), "ALLOC_MEMORY_OF_GPU");
    assert_string_equal(tool_request_name('d', 0x48), "GEM_VA");
    assert_null(tool_request_name('K', 0xff));
    assert_null(tool_request_name('K', 256));
    assert_null(tool_request_name('x', 0x16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_read_naturally),
        cmocka_unit_test(test_requests_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
