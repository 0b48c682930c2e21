#include <criterion/criterion.h>

#include "common/text.h"

static const char *suggested(const char *word, const char *const candidates[])
{
    struct suggest s = {.word = word};

    for (size_t i = 0; candidates[i]; i++)
        text_suggest(&s, candidates[i]);
    return s.best;
}

Test(suggest, a_forgotten_letter_before_a_mistaken_one)
{
    cr_expect_str_eq(suggested("modl", (const char *const[]){"mode", "model", NULL}), "model");
    cr_expect_str_eq(suggested("modl", (const char *const[]){"model", "mode", NULL}), "model");
    cr_expect_str_eq(suggested("steq", (const char *const[]){"step", "stem", NULL}), "step");
}

Test(suggest, nothing_that_is_far)
{
    cr_expect_null(suggested("color", (const char *const[]){"mode", "steps", NULL}));
    cr_expect_str_eq(suggested("ep", (const char *const[]){"steps", "epochs", NULL}), "epochs");
}
