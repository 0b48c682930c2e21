/* problem+json becomes words and an exit code. */
#include <criterion/criterion.h>
#include <string.h>

#include "client/api.h"

static struct error error_of(const char *text, long status)
{
    json_t *problem = text ? json_loads(text, 0, NULL) : NULL;
    struct error e = {0};

    api_problem_to_error(problem, status, &e);
    json_decref(problem);
    return e;
}

Test(api, the_type_decides_the_code)
{
    cr_expect_eq(error_of("{\"type\": \"/problems/unsupported\"}", 422).code, ERR_UNSUPPORTED);
    cr_expect_eq(error_of("{\"type\": \"urn:traind:conflict\"}", 409).code, ERR_CONFLICT);
    cr_expect_eq(error_of("{\"type\": \"about:blank\"}", 404).code, ERR_NOT_FOUND);
    cr_expect_eq(error_of(NULL, 401).code, ERR_NO_TOKEN);
    cr_expect_eq(error_of(NULL, 500).code, ERR_INTERNAL);
}

Test(api, each_error_of_a_document_has_its_line)
{
    struct error e = error_of("{\"type\": \"invalid\", \"detail\": \"2 problems\", \"errors\": ["
                              "{\"pointer\": \"/epoch\", \"message\": \"there is no such key\", "
                              "\"suggestion\": \"epochs\"},"
                              "{\"pointer\": \"\", \"message\": \"data.train is missing\"}]}",
                              422);

    cr_expect_str_eq(e.text, "2 problems\n"
                             "  epoch: there is no such key; did you mean \"epochs\"?\n"
                             "  the document: data.train is missing");
}

Test(api, a_single_error_is_printed_once)
{
    struct error e = error_of("{\"type\": \"invalid\", \"detail\": \"/lr: is wrong\", \"errors\": ["
                              "{\"pointer\": \"/lr\", \"message\": \"is wrong\"}]}",
                              422);

    cr_expect_str_eq(e.text, "lr: is wrong");
}

Test(api, many_errors_are_cut_to_the_buffer)
{
    json_t *errors = json_array();
    for (int i = 0; i < 500; i++)
        json_array_append_new(errors, json_pack("{s:s, s:s}", "pointer", "/lr/base", "message",
                                                "must be a number from 0 to 1"));
    json_t *problem = json_pack("{s:s, s:o}", "detail", "500 problems", "errors", errors);
    struct error e = {0};

    api_problem_to_error(problem, 422, &e);
    cr_expect_lt(strlen(e.text), sizeof e.text);
    cr_expect_eq(strncmp(e.text, "500 problems\n", 13), 0);
    cr_expect_gt(strlen(api_error_words(&e)), (size_t)500 * 30, "and told in full");
    error_set(&e, ERR_IO, "another");
    cr_expect_str_eq(api_error_words(&e), "another");
    json_decref(problem);
}
