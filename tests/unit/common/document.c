/* Objects checked against a table of keys. */
#include "common/document.h"

#include <criterion/criterion.h>

static const char *const colours[] = {"red", "green", NULL};
static const struct document_key keys[] = {
    {.name = "colour",          .type = DOCUMENT_WORD, .choices = colours, .fallback = "\"red\""},
    {.name = "count",       .type = DOCUMENT_INTEGER, .min = 1, .max = 9},
    {.name = "share",                         .type = DOCUMENT_NUMBER, .max = 1, .fallback = "0.5"},
    {.name = "name",.type = DOCUMENT_TEXT, .expects = "must be a text"},
    {.name = "must",                 .type = DOCUMENT_WORD, .choices = colours, .required = true},
    {.name = "any"          },
    {0                }
};

/* What is wrong with the object of this text; the caller clears it. */
static struct problems check(const char *text, json_t **object)
{
    struct problems problems = {0};

    *object = json_loads(text, 0, NULL);
    cr_assert_not_null(*object, "%s", text);
    document_check(*object, "/at", keys, "is unknown", &problems);
    return problems;
}

Test(document, a_valid_document_gets_defaults)
{
    json_t *object, *expected = json_pack("{s:i, s:s, s:n, s:s, s:f}", "count", 9, "must", "green",
                                          "any", "colour", "red", "share", 0.5);
    struct problems problems = check("{\"count\": 9, \"must\": \"green\", \"any\": null}", &object);

    cr_assert_eq(problems.count, 0);
    cr_assert(json_equal(object, expected));
    json_decref(object);
    json_decref(expected);
}

Test(document, each_wrong_key_is_named)
{
    static const struct {
        const char *text, *pointer, *message, *suggestion;
    } cases[] = {
        {"{\"must\": \"red\", \"cuont\": 1}",         "/at/cuont",  "is unknown",                         "count"},
        {"{\"must\": \"red\", \"colour\": \"gren\"}", "/at/colour",
         "must be one of red, green, not \"gren\"",                                                       "green"},
        {"{\"must\": \"red\", \"colour\": 1}",        "/at/colour", "must be one of red, green, not 1",
         NULL                                                                                                    },
        {"{\"must\": \"red\", \"count\": 0}",         "/at/count",  "must be a whole number from 1 to 9",
         NULL                                                                                                    },
        {"{\"must\": \"red\", \"count\": 1.0}",       "/at/count",  "must be a whole number from 1 to 9",
         NULL                                                                                                    },
        {"{\"must\": \"red\", \"share\": 1.5}",       "/at/share",  "must be a number from 0 to 1",       NULL   },
        {"{\"must\": \"red\", \"name\": \"\"}",       "/at/name",   "must be a text",                     NULL   },
        {"{}",                                        "/at/must",   "must be one of red, green",          NULL   },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *object;
        struct problems problems = check(cases[i].text, &object);
        cr_assert_eq(problems.count, 1, "%s", cases[i].text);
        cr_assert_str_eq(problems.items[0].pointer, cases[i].pointer);
        cr_assert_str_eq(problems.items[0].message, cases[i].message);
        if (cases[i].suggestion)
            cr_assert_str_eq(problems.items[0].suggestion, cases[i].suggestion);
        else
            cr_assert_null(problems.items[0].suggestion);
        problems_clear(&problems);
        json_decref(object);
    }
}

Test(document, the_list_of_unknown_keys_is_bounded)
{
    json_t *object = json_pack("{s:s}", "must", "red");
    struct problems problems = {0};
    char name[16];

    for (int i = 0; i < 10 * DOCUMENT_PROBLEMS_MAX; i++) {
        snprintf(name, sizeof name, "key%d", i);
        json_object_set_new(object, name, json_true());
    }
    document_check(object, "", keys, "is unknown", &problems);
    cr_assert_eq(problems.count, DOCUMENT_PROBLEMS_MAX);
    problems_clear(&problems);
    json_decref(object);
}
