/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fake/stamp.h"
#include "kfd/uapi.h"

static void test_stamps_name_request_process_and_distance(void **state)
{
    const uint16_t free_code = KFD_UAPI_TYPE_KFD << 8 | KFD_NR_FREE_MEMORY_OF_GPU;
    const uint16_t va_code = KFD_UAPI_TYPE_DRM << 8 | DRM_NR_GEM_VA;
    const struct fake_stamp now = {.request = 69, .pid = 123};
    static char longest[FAKE_STAMP_TEXT];
    const struct {
        struct fake_stamp stamp;
        const char *text;
    } rows[] = {
        {{57, 123, free_code, 0},
         "by request 57 of process 123 (FREE_MEMORY_OF_GPU), 12 requests ago"},
        {{68, 123, va_code, AMDGPU_VA_OP_UNMAP},
         "by request 68 of process 123 (GEM_VA UNMAP), 1 request ago"},
        {{9, 124, va_code, AMDGPU_VA_OP_REPLACE}, "by request 9 of process 124 (GEM_VA REPLACE)"},
        {{9, 124, va_code, 77}, "by request 9 of process 124 (GEM_VA)"},
        {{9, 124, 0x4bff, 0}, "by request 9 of process 124 (unknown)"},
        {{57, 123, 0, FAKE_DEED_EVICTION},
         "by an eviction after request 57 of process 123, 12 requests ago"},
        {{57, 123, 0, FAKE_DEED_OPEN},
         "by an open after request 57 of process 123, 12 requests ago"},
        {{0, 124, 0, FAKE_DEED_EXIT}, "by the end of process 124"},
        {{0, 0, 0, 0}, "by what is not known any more"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_stamp_print(&rows[i].stamp, &now, longest);
        assert_string_equal(longest, rows[i].text);
    }
}

static void test_the_last_range_that_held_an_address_is_found(void **state)
{
    static struct fake_history h;
    struct fake_stamp end = {.pid = 1};

    assert_null(fake_history_find(&h, 0x1000));
    for (uint64_t i = 0; i < FAKE_HISTORY; i++) {
        end.request = i;
        fake_history_add(&h, i * 0x1000, 0x2000, &end);
    }
    assert_int_equal(fake_history_find(&h, 0x0fff)->end.request, 0);
    assert_int_equal(fake_history_find(&h, 0x1000)->end.request, 1);
    assert_null(fake_history_find(&h, (FAKE_HISTORY + 1) * 0x1000ull));
    /* The oldest makes room. */
    fake_history_add(&h, 1ull << 40, 0x1000, &end);
    assert_null(fake_history_find(&h, 0x0fff));
    assert_int_equal(fake_history_find(&h, 0x1000)->end.request, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stamps_name_request_process_and_distance),
        cmocka_unit_test(test_the_last_range_that_held_an_address_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
