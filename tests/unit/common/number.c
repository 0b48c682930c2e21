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
