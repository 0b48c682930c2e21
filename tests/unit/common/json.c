#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"

static json_t *parse_json(const char *text, struct error *e)
{
    return json_document_parse(text, strlen(text), e);
}

Test(json, a_valid_object_is_parsed)
{
    struct error e;
    json_t *value = parse_json("{\"a\": [1, \"[[[[\"]}", &e);
    cr_assert_not_null(value);
    json_decref(value);
}

Test(json, names_line_and_column_of_a_mistake)
{
    struct error e;
    cr_assert_null(parse_json("{\"a\": 1,\n \"b\" 2}", &e));
    cr_assert_eq(e.code, ERR_USAGE);
    cr_assert_not_null(strstr(e.text, "line 2"), "%s", e.text);
}

Test(json, a_mistake_gets_a_suggestion)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"a\": 1,\n}",         "line 2, column 1: remove the comma in front of }"       },
        {"{\"a\": [1, 2, ]}",     "column 14: remove the comma in front of ]"              },
        {"{\"a\": 1, // one\n}",  "column 10: JSON has no comments"                        },
        {"{# one\n\"a\": 1}",     "JSON has no comments"                                   },
        {"{'a': 1}",              "column 2: use double quotes instead of single ones"     },
        {"{\"a\": 'x'}",          "use double quotes instead of single ones"               },
        {"{a: 1}",                "keys need double quotes"                                },
        {"{\"a\": True}",         "strings need double quotes; only true, false and null"  },
        {"{\"a\": 1 \"b\": 2}",   "a comma is missing"                                     },
        {"{\"a\": [1 2]}",        "a comma is missing"                                     },
        {"{\"a\": {",             "the document ends too early: a quote, ] or } is missing"},
        {"{\"a\": \"x",           "the document ends too early"                            },
        {"{\"a\": \"x\n\"}",      "a double quote is missing at the end of the line"       },
        {"{\"a\": \"x\\c\"}",     "invalid escape"                                         },
        {"{,\"a\": 1}",           "string or '}' expected near ','"                        },
        {"{\"a\": [], \"a\": 1}", "duplicate object key"                                   },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error e;
        cr_assert_null(parse_json(cases[i].text, &e), "%s", cases[i].text);
        cr_assert_not_null(strstr(e.text, cases[i].words), "%s: %s", cases[i].text, e.text);
    }
}

Test(json, refuses_truncated_and_repeated_and_other_kinds)
{
    struct error e;
    cr_assert_null(parse_json("{\"a\": [1, 2", &e));
    cr_assert_null(parse_json("", &e));
    cr_assert_null(parse_json("{\"a\": 1, \"a\": 2}", &e));
    cr_assert_null(parse_json("[1]", &e));
    cr_assert_eq(e.code, ERR_INVALID);
}

Test(json, refuses_deep_nesting_before_parsing)
{
    struct error e;
    size_t levels = 100000;
    char *text = malloc(levels);
    memset(text, '[', levels);
    cr_assert_null(json_document_parse(text, levels, &e));
    cr_assert_not_null(strstr(e.text, "100000 levels"), "%s", e.text);
    free(text);
}

Test(json, refuses_a_document_over_a_mebibyte)
{
    struct error e;
    size_t bytes = JSON_DOCUMENT_LIMIT_BYTES + 1;
    char *text = malloc(bytes);
    memset(text, ' ', bytes);
    cr_assert_null(json_document_parse(text, bytes, &e));
    cr_assert_eq(e.code, ERR_TOO_LARGE);
    free(text);
}

Test(json, members_are_read_or_their_fallback)
{
    json_t *json = json_loads("{\"n\": 1.5, \"i\": 7, \"s\": \"x\", \"z\": null}", 0, NULL);

    cr_assert_eq(json_get_number(json, "n", 9), 1.5);
    cr_assert_eq(json_get_number(json, "i", 9), 7);
    cr_assert(isnan(json_get_number(json, "z", NAN)));
    cr_assert_eq(json_get_integer(json, "i", -1), 7);
    cr_assert_eq(json_get_integer(json, "n", -1), -1, "1.5 is no integer");
    cr_assert_eq(json_get_integer(NULL, "i", -1), -1);
    cr_assert_str_eq(json_get_text(json, "s", ""), "x");
    cr_assert_str_eq(json_get_text(json, "i", "?"), "?");
    cr_assert_null(json_get_text(json, "none", NULL));
    json_decref(json);
}

Test(json, a_number_that_json_cannot_hold_is_null_and_named)
{
    double fast = 1e308, values[] = {0.5, fast * 10, NAN};
    json_t *list = json_array();
    char log[512] = "";
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert(dup2(ends[1], STDERR_FILENO) >= 0);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        json_array_append_new(list, json_number(values[i] * 2));
    json_array_append_new(list, json_number(fast * 10));
    char *text = json_dumps(list, JSON_COMPACT);
    cr_assert_str_eq(text, "[1.0,null,null,null]");
    cr_assert(read(ends[0], log, sizeof log - 1) > 0);
    cr_assert_not_null(strstr(log, "values[i] * 2 is inf"), "%s", log);
    free(text);
    json_decref(list);
}

Test(json, unknown_values_are_null)
{
    json_t *list =
        json_pack("[o, o, o, o, o, o, o, o]", json_number_or_null(0.5), json_number_or_null(NAN),
                  json_number_or_null(INFINITY), json_integer_or_null(true, 3),
                  json_integer_or_null(false, 3), json_text_or_null("x"), json_text_or_null(""),
                  json_text_or_null("\xff"));
    char *text = json_dumps(list, JSON_COMPACT);

    cr_assert_str_eq(text, "[0.5,null,null,3,null,\"x\",null,null]");
    free(text);
    json_decref(list);
}

Test(json, values_are_set_by_json_pointer)
{
    json_t *document = json_loads("{\"a\": {\"b\": 1}, \"c\": 2}", 0, NULL);

    json_set_at(document, "/a/d", json_integer(3));
    json_set_at(document, "/c/e", json_integer(4)); /* not an object: it becomes one */
    json_set_at(document, "/f", json_true());
    char *text = json_dumps(document, JSON_COMPACT);
    cr_expect_str_eq(text, "{\"a\":{\"b\":1,\"d\":3},\"c\":{\"e\":4},\"f\":true}");
    free(text);
    json_decref(document);
}

Test(json, differences_name_places_and_values)
{
    json_t *values[] = {json_loads("{\"a\": {\"b\": 1, \"c\": [1]}, \"d\": 1}", 0, NULL),
                        json_loads("{\"a\": {\"b\": 2, \"c\": [1, 2]}, \"d\": 1}", 0, NULL),
                        json_loads("{\"a\": {\"b\": 1}, \"d\": 1, \"e\": null}", 0, NULL)};
    json_t *differences = json_array();

    json_differences(values, 3, differences);
    char *text = json_dumps(differences, JSON_COMPACT);
    cr_expect_str_eq(text, "[{\"pointer\":\"/a/b\",\"values\":[1,2,1]},"
                           "{\"pointer\":\"/a/c\",\"values\":[[1],[1,2],null]},"
                           "{\"pointer\":\"/e\",\"values\":[null,null,null]}]");
    free(text);
    json_decref(differences);
    for (int i = 0; i < 3; i++)
        json_decref(values[i]);
}

static void text_is(const char *text, const char *expected)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *again;
    char *now = json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);

    cr_assert_str_eq(now, expected);
    again = json_loads(now, JSON_DECODE_ANY, NULL);
    cr_expect(json_equal(again, value), "%s is another value", now);
    json_decref(again);
    json_decref(value);
    free(now);
}

Test(json, numbers_have_the_fewest_digits_that_give_them_back)
{
    text_is("[0.3, 0.07, 9.95, 0.009, -0.001]", "[0.3,0.07,9.95,0.009,-0.001]");
    text_is("0.30000000000000004", "0.30000000000000004");
    text_is("[2.0, 2, 0.0, -0.0, 1e-5, 2.50e+20, 1e15, 1e300, 9007199254740993]",
            "[2.0,2,0.0,-0.0,1e-5,2.5e20,1e15,1e300,9007199254740993]");
    text_is("1795284070.301877", "1795284070.301877");
    text_is(
        "{\"0.070000000000000007\": \"0.070000000000000007 \\\" 1e+05\", \"e\": [true, false, "
        "null]}",
        "{\"0.070000000000000007\":\"0.070000000000000007 \\\" 1e+05\",\"e\":[true,false,null]}");
}
