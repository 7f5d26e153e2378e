/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hip_api/state.h"
#include "mock.h"

static void *address_of(const char *name)
{
    hipDriverProcAddressQueryResult status = HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *function = NULL;

    if (hipGetProcAddress(name, &function, HIP_VERSION, HIP_GET_PROC_ADDRESS_DEFAULT, &status) !=
        hipSuccess)
        fail_msg("%s: %s", name, hipxGetLastErrorText());
    assert_int_equal(status, HIP_GET_PROC_ADDRESS_SUCCESS);
    return function;
}

static void test_functions_are_found_by_name(void **state)
{
    assert_ptr_equal(address_of("hipMemCreate"), (void *)hipMemCreate);
    assert_ptr_equal(address_of("hipMemUnmap"), (void *)hipMemUnmap);
    assert_ptr_equal(address_of("hipxGetLastErrorText"), (void *)hipxGetLastErrorText);
    assert_ptr_equal(address_of("hipChooseDevice"), (void *)hipChooseDeviceR0600);
}

static void test_unknown_names_say_so(void **state)
{
    static const char *const names[] = {"",   "hip", "hipMemCreat", "hipMemCreatee", "cuMemCreate",
                                        "zzz"};
    hipDriverProcAddressQueryResult status = HIP_GET_PROC_ADDRESS_SUCCESS;
    void *function = (void *)5;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(hipGetProcAddress(names[i], &function, HIP_VERSION, 0, &status),
                         hipErrorNotFound);
        assert_int_equal(status, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
        assert_null(function);
    }
    assert_int_equal(hipGetProcAddress(NULL, &function, HIP_VERSION, 0, &status),
                     hipErrorInvalidValue);
    assert_int_equal(hipGetProcAddress("hipInit", NULL, HIP_VERSION, 0, &status),
                     hipErrorInvalidValue);
    assert_int_equal(hipGetProcAddress("hipInit", &function, HIP_VERSION, 8, NULL),
                     hipErrorInvalidValue);
}

/* The table is found by halving, so every name must be reachable: all those of the header are. */
static void test_every_function_of_the_header_is_found(void **state)
{
    FILE *header = fopen(HIP_HEADER, "r");
    char line[256];
    unsigned found = 0;

    assert_non_null(header);
    while (fgets(line, sizeof(line), header)) {
        char name[64];

        if (sscanf(line, "hipError_t %63[A-Za-z0-9](", name) != 1 &&
            sscanf(line, "const char *%63[A-Za-z0-9](", name) != 1)
            continue;
        assert_non_null(address_of(name));
        found++;
    }
    fclose(header);
    assert_true(found > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_are_found_by_name),
        cmocka_unit_test(test_unknown_names_say_so),
        cmocka_unit_test(test_every_function_of_the_header_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
