#include <criterion/criterion.h>

#include "common/number.h"

Test(median, is_the_middle_or_the_mean_of_both)
{
    double odd[] = {3, -1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};

    cr_expect_eq(number_median(odd, 3), 2);
    cr_expect_eq(number_median(even, 4), 2.5);
    cr_expect_eq(number_median(one, 1), 7);
    cr_expect_eq(even[0], 1, "sorted in place");
    cr_expect_eq(even[3], 4);
}

Test(number, decimals_have_no_sign_and_no_blanks)
{
    static const char *const wrong[] = {"", " 1", "+1", "-1", "0x10", "inf", "nan", "1e999"};
    const char *end;
    double number;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_not(number_read(wrong[i], &end, &number), "\"%s\"", wrong[i]);
    cr_expect(number_read("1.5h", &end, &number) && number == 1.5 && *end == 'h');
    cr_expect(number_read(".5", &end, &number) && number == .5 && !*end);
    cr_expect(number_read("1e3", &end, &number) && number == 1000 && !*end);
}
