/* SPDX-License-Identifier: MIT */
/* A program that loads the library, uses it, closes it and loads it again, as a host of plugins
 * does, finds its GPUs each time. usage: abi_reload LIBRARY */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *library;

static void test_each_load_finds_the_gpus(void **state)
{
    for (int round = 0; round < 3; round++) {
        void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        const char *(*text)(void);
        int (*count)(int *);
        int gpus = -1;

        if (!lib)
            fail_msg("%s", dlerror());
        *(void **)&count = dlsym(lib, "hipGetDeviceCount");
        *(void **)&text = dlsym(lib, "hipxGetLastErrorText");
        assert_non_null(count);
        assert_non_null(text);
        if (count(&gpus) != 0)
            fail_msg("round %d: %s", round, text());
        assert_int_equal(gpus, 2);
        assert_int_equal(dlclose(lib), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_load_finds_the_gpus),
    };

    library = argc > 1 ? argv[1] : "libkfdirect.so.0";
    return cmocka_run_group_tests_name("abi/reload", tests, NULL, NULL);
}
