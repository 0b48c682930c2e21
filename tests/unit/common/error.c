#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/error.h"

Test(error, the_error_may_be_formatted_into_itself)
{
    struct error e;

    error_set(&e, ERR_NOT_FOUND, "squeue is not installed");
    cr_assert_eq(error_set(&e, ERR_UNREACHABLE, "%s", e.text), -(int)ERR_UNREACHABLE);
    cr_assert_str_eq(e.text, "squeue is not installed");
    error_set(&e, ERR_INVALID, "Slurm: %s; %s", e.text, e.text);
    cr_assert_str_eq(e.text, "Slurm: squeue is not installed; squeue is not installed");
    error_set_errno(&e, ENOENT, "here: %.5s", e.text);
    cr_assert_str_eq(e.text, "here: Slurm: No such file or directory");
    cr_assert_eq(e.code, ERR_NOT_FOUND);
}

Test(error, a_text_too_long_is_cut)
{
    struct error e;
    char text[2 * ERROR_TEXT_BYTES];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error_set(&e, ERR_INVALID, "%s", text);
    cr_assert_eq(strlen(e.text), ERROR_TEXT_BYTES - 1);
    error_set(&e, ERR_INVALID, "%s%s", e.text, e.text);
    cr_assert_eq(strlen(e.text), ERROR_TEXT_BYTES - 1);
}
