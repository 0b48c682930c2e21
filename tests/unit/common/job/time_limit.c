#include <criterion/criterion.h>
#include <math.h>

#include "common/job/job_text.h"

Test(time_limit, every_form_of_slurm_is_read)
{
    cr_expect_eq(time_limit_seconds("5"), 300);
    cr_expect_eq(time_limit_seconds("5:30"), 330);
    cr_expect_eq(time_limit_seconds("02:30:00"), 9000);
    cr_expect_eq(time_limit_seconds("0:00:03"), 3);
    cr_expect_eq(time_limit_seconds("2-3"), 2 * 86400 + 3 * 3600);
    cr_expect_eq(time_limit_seconds("2-3:04"), 2 * 86400 + 3 * 3600 + 4 * 60);
    cr_expect_eq(time_limit_seconds("2-03:04:05"), 2 * 86400 + 3 * 3600 + 4 * 60 + 5);
}

Test(time_limit, other_forms_are_refused)
{
    static const char *const wrong[] = {"",      "0",       "0:00", "1h",  "-1",  "1:2:3:4",
                                        "1:",    ":30",     "1-",   "1-x", "1:x", "00:00:00",
                                        "1-2-3", "1:2:3:4", " 5",   "5 ",  "1e3", "99999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect(isnan(time_limit_seconds(wrong[i])), "\"%s\"", wrong[i]);
    cr_expect(isnan(time_limit_seconds(NULL)));
}
