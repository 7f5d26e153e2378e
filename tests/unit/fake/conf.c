/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <kfdirect/kfd.h>

#include "fake/conf.h"

struct target {
    uint32_t small;
    uint64_t big, bytes;
    bool flag;
    struct fake_fraction part;
    char text[8];
    uint32_t choice;
};

static const char *const choices[] = {"one", "two", NULL};

static const struct fake_conf_key keys[] = {
    {"small", FAKE_CONF_U32, offsetof(struct target, small), 0, NULL, NULL},
    {"big", FAKE_CONF_U64, offsetof(struct target, big), 0, NULL, NULL},
    {"bytes", FAKE_CONF_SIZE, offsetof(struct target, bytes), 0, NULL, NULL},
    {"flag", FAKE_CONF_BOOL, offsetof(struct target, flag), 0, NULL, NULL},
    {"part", FAKE_CONF_FRACTION, offsetof(struct target, part), 0, NULL, NULL},
    {"text", FAKE_CONF_STRING, offsetof(struct target, text), 8, NULL, NULL},
    {"choice", FAKE_CONF_ENUM, offsetof(struct target, choice), 0, choices, NULL},
    {NULL, FAKE_CONF_CALL, 0, 0, NULL, NULL},
};

static int section(struct fake_conf *conf, const char *name)
{
    if (strcmp(name, "s") != 0)
        return fake_conf_fail(conf, "'[%s]': expected [s]", name);
    conf->keys = keys;
    conf->target = conf->user;
    return 0;
}

static int parse(const char *text, struct target *out)
{
    struct fake_conf conf = {.file = "f", .section = section, .user = out};

    memset(out, 0, sizeof(*out));
    return fake_conf_parse(&conf, text, strlen(text));
}

static void test_values_of_every_type_are_stored(void **state)
{
    struct target t;

    assert_int_equal(parse("# about\n[s]\nsmall = 0x10 # hex\n big=18446744073709551615\n"
                           "bytes = 3 GiB\nflag = yes\npart = 63/64\ntext = a b\nchoice = two",
                           &t),
                     0);
    assert_int_equal(t.small, 16);
    assert_true(t.big == UINT64_MAX);
    assert_true(t.bytes == 3ull << 30);
    assert_true(t.flag);
    assert_int_equal(t.part.num, 63);
    assert_int_equal(t.part.den, 64);
    assert_string_equal(t.text, "a b");
    assert_int_equal(t.choice, 1);
}

static void test_malformed_lines_name_file_line_and_expectation(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"small = 1", "f:1: 'small': expected a '[section]' before the first key"},
        {"[x]", "f:1: '[x]': expected [s]"},
        {"[s", "f:1: '[s': expected a closing ]"},
        {"[s]\nsmall", "f:2: 'small': expected 'key = value' or '[section]'"},
        {"[s]\n\nsmall =", "f:3: 'small': expected a value after '='"},
        {"[s]\nother = 1", "f:2: 'other': no such key in this section"},
        {"[s]\nsmall = 4294967296", "f:2: 'small': '4294967296' is not a 32-bit number"},
        {"[s]\nsmall = -1", "f:2: 'small': '-1' is not a 32-bit number"},
        {"[s]\nbig = 18446744073709551616",
         "f:2: 'big': '18446744073709551616' is not a 64-bit number"},
        {"[s]\nbytes = 3 GB", "f:2: 'bytes': '3 GB' is not a size such as 512 MiB"},
        {"[s]\nbytes = 99999999 TiB", "f:2: 'bytes': '99999999 TiB' is not a size such as 512 MiB"},
        {"[s]\nflag = 1", "f:2: 'flag': '1' is neither yes nor no"},
        {"[s]\npart = 1/0", "f:2: 'part': '1/0' is not a fraction such as 63/64"},
        {"[s]\npart = 1/2x", "f:2: 'part': '1/2x' is not a fraction such as 63/64"},
        {"[s]\ntext = 12345678", "f:2: 'text': more than 7 characters"},
        {"[s]\nchoice = three", "f:2: 'choice': 'three' is none of one, two"},
    };
    struct target t;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].text, &t), -EINVAL);
        assert_string_equal(kfd_error_text(), cases[i].message);
    }
}

static void test_binary_and_endless_lines_are_refused(void **state)
{
    struct fake_conf conf = {.file = "f", .section = section};
    char text[4096];

    memset(text, 'x', sizeof(text));
    assert_int_equal(fake_conf_parse(&conf, text, sizeof(text)), -EINVAL);
    assert_string_equal(kfd_error_text(), "f:1: line of 4096 bytes, expected less than 1024");
    assert_int_equal(fake_conf_parse(&conf, "[s]\n\0", 5), -EINVAL);
    assert_string_equal(kfd_error_text(), "f:2: NUL byte: expected text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_every_type_are_stored),
        cmocka_unit_test(test_malformed_lines_name_file_line_and_expectation),
        cmocka_unit_test(test_binary_and_endless_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
