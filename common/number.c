#include "common/number.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17 /* sufficient for any double */

const char *number_text(double x, char text[NUMBER_BYTES])
{
    for (int digits = DBL_DIG; digits <= DIGITS_MAX; digits++) {
        snprintf(text, NUMBER_BYTES, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    char *exponent = strchr(text, 'e');
    if (exponent) /* for example e-05 or e+20 */
        snprintf(exponent + 1, (size_t)(text + NUMBER_BYTES - exponent - 1), "%d",
                 atoi(exponent + 1));
    return text;
}

bool number_read(const char *text, const char **end, double *number)
{
    bool plain = *text == '.' || (*text >= '0' && *text <= '9');
    char *behind;

    errno = 0;
    *number = strtod(text, &behind);
    *end = behind;
    return plain && text[1] != 'x' && text[1] != 'X' && behind != text && !errno;
}

double number_rounded(double x)
{
    char text[NUMBER_BYTES];

    snprintf(text, sizeof text, "%.15g", x);
    return strtod(text, NULL);
}

const char *number_percent(double part, double whole, char text[NUMBER_BYTES])
{
    double percent = 100 * part / whole;

    if (percent > 99 && percent < 100)
        percent = 99;
    if (percent > 0 && percent < 1e-4)
        snprintf(text, NUMBER_BYTES, "below 0.0001");
    else
        snprintf(text, NUMBER_BYTES, percent < 9.95 ? "%.2g" : "%.0f", percent);
    return text;
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void number_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, number_compare);
}

double number_median(double *values, size_t count)
{
    number_sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
