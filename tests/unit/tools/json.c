/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "json.h"

struct output {
    struct json json;
    char *text;
    size_t size;
};

static void start(struct output *output)
{
    *output = (struct output){0};
    json_init(&output->json, open_memstream(&output->text, &output->size));
    assert_non_null(output->json.out);
}

static void expect(struct output *output, const char *text)
{
    fclose(output->json.out);
    assert_string_equal(output->text, text);
    free(output->text);
}

static void test_members_are_separated_and_levels_closed(void **state)
{
    struct output output;

    start(&output);
    json_object(&output.json, NULL);
    json_number(&output.json, "big", UINT64_MAX);
    json_array(&output.json, "list");
    json_bool(&output.json, NULL, true);
    json_null(&output.json, NULL);
    json_end(&output.json);
    json_string(&output.json, "last", "x");
    json_end(&output.json);
    expect(&output,
           "{\n  \"big\": 18446744073709551615,\n  \"list\": [\n    true,\n    null\n  ],\n"
           "  \"last\": \"x\"\n}\n");
}

static void test_empty_levels_are_one_word(void **state)
{
    struct output output;

    start(&output);
    json_object(&output.json, NULL);
    json_array(&output.json, "none");
    json_end(&output.json);
    json_end(&output.json);
    expect(&output, "{\n  \"none\": []\n}\n");
}

static void test_text_is_escaped(void **state)
{
    struct output output;

    start(&output);
    json_array(&output.json, NULL);
    json_format(&output.json, NULL, "a\"b\\%c%c", '\n', 1);
    json_end(&output.json);
    expect(&output, "[\n  \"a\\\"b\\\\\\u000a\\u0001\"\n]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_separated_and_levels_closed),
        cmocka_unit_test(test_empty_levels_are_one_word),
        cmocka_unit_test(test_text_is_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
