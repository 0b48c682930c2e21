#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"

Test(problem, as_text_and_as_json)
{
    struct problems p = {0};

    problems_add(&p, "/lr/base", NULL, "must be %s", "a number");
    problems_add(&p, "/lr/bas", "/lr/base", "is no key");
    problems_add(&p, "", NULL, "is too long");
    char *text = problems_to_text(&p);
    cr_assert_str_eq(text, "lr.base: must be a number\n"
                           "lr.bas: is no key; did you mean lr.base?\n"
                           "the document: is too long\n");
    free(text);
    json_t *list = problems_to_json(&p);
    cr_assert_eq(json_array_size(list), 3);
    cr_assert_null(json_object_get(json_array_get(list, 0), "suggestion"));
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 1), "suggestion")),
                     "/lr/base");
    json_decref(list);
    problems_clear(&p);
    cr_assert_eq(p.count, 0);
    text = problems_to_text(&p);
    cr_assert_str_eq(text, "");
    free(text);
}

Test(problem, keys_are_shown_as_people_write_them)
{
    static const struct {
        const char *pointer, *key;
    } cases[] = {
        {"",                       "the document"           },
        {"/epochs",                "epochs"                 },
        {"/lr/base",               "lr.base"                },
        {"/cluster/hosts/12",      "cluster.hosts[12]"      },
        {"/lr.base",               "\"lr.base\""            },
        {"/parameters/~1lr~1base", "parameters.\"/lr/base\""},
        {"/a~0b/",                 "\"a~b\".\"\""           },
        {"/7",                     "7"                      },
    };
    char text[PROBLEM_KEY_BYTES], pointer[2 * PROBLEM_KEY_BYTES] = "/";

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(problem_key(cases[i].pointer, text), cases[i].key);
    memset(pointer + 1, 'k', sizeof pointer - 2);
    cr_expect_eq(strlen(problem_key(pointer, text)), PROBLEM_KEY_BYTES - 1);
    cr_expect_str_eq(problem_suggestion("cosine", text), "cosine");
    cr_expect_str_eq(problem_suggestion("/lr/base", text), "lr.base");
}

Test(problem, a_key_with_a_problem_gets_none_of_a_later_check)
{
    struct problems all = {0}, more = {0};

    problems_add(&all, "/lr/base", NULL, "must be a number");
    problems_add(&more, "/lr/base", NULL, "is too large");
    problems_add(&more, "/epochs", "/steps", "is new");
    problems_add(&more, "/epochs", NULL, "and has two faults");
    problems_extend(&all, &more);
    cr_assert_eq(all.count, 3);
    cr_assert_str_eq(all.items[1].pointer, "/epochs");
    cr_assert_str_eq(all.items[1].suggestion, "/steps");
    cr_assert(problems_within(&all, "/lr"));
    cr_assert(!problems_within(&all, "/l"));
    problems_clear(&all);
    problems_clear(&more);
}
