/* Numbers as people say them, at the borders where the unit changes. */
#include <criterion/criterion.h>
#include <math.h>

#include "client/views/format.h"

#define says(call, expected)                                                                       \
    do {                                                                                           \
        char text[FORMAT_BYTES];                                                                   \
        cr_expect_str_eq(call, expected);                                                          \
    } while (0)
#define T text, sizeof text

Test(format, durations_are_formatted)
{
    says(format_duration(T, NAN), "-");
    says(format_duration(T, -1), "-");
    says(format_duration(T, 0), "0.0 s");
    says(format_duration(T, 9.94), "9.9 s");
    says(format_duration(T, 9.96), "10 s");
    says(format_duration(T, 59.4), "59 s");
    says(format_duration(T, 59.6), "1 min 0 s");
    says(format_duration(T, 292), "4 min 52 s");
    says(format_duration(T, 3599.7), "1 h 0 min");
    says(format_duration(T, 6720), "1 h 52 min");
    says(format_duration(T, 7199), "2 h 0 min");
    says(format_duration(T, 86399), "1 d 0 h");
    says(format_duration(T, 90000), "1 d 1 h");
    says(format_duration(T, 1e300), "over 1000 d");
}

Test(format, rates_are_formatted)
{
    says(format_rate(T, NAN), "-");
    says(format_rate(T, 1.634), "1.63 images/s");
    says(format_rate(T, 64.06), "64.1 images/s");
    says(format_rate(T, 212.4), "212 images/s");
    says(format_rate(T, 9999.4), "9999 images/s");
    says(format_rate(T, 9999.6), "10.0k images/s");
    says(format_rate(T, 16400), "16.4k images/s");
    says(format_rate(T, 250000), "250k images/s");
}

Test(format, shares_and_counts_are_formatted)
{
    says(format_percent(T, 0.8631), "86.31 %");
    says(format_percent(T, 1), "100.00 %");
    says(format_percent(T, NAN), "-");
    says(format_count(T, 0), "0");
    says(format_count(T, 999), "999");
    says(format_count(T, 1281167), "1,281,167");
    says(format_count(T, -1000), "-1,000");
    says(format_number(T, 0.00012345), "0.0001234");
    says(format_number(T, 4.8), "4.8");
}

Test(format, a_short_buffer_is_never_overrun)
{
    char text[4];
    cr_expect_str_eq(format_count(text, sizeof text, 1281167), "1,2");
}

Test(format, sizes_are_formatted)
{
    says(format_size(T, 1023), "1023 bytes");
    says(format_size(T, 1024), "1.00 KiB");
    says(format_size(T, 1.7e9), "1.58 GiB");
    says(format_size(T, 33554432), "32.0 MiB");
}

Test(format, ages_are_formatted)
{
    says(format_ago(T, 3), "just now");
    says(format_ago(T, 59), "59 s ago");
    says(format_ago(T, 3599), "59 min ago");
    says(format_ago(T, 6720), "1 h 52 min ago");
}
