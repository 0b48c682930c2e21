#include "common/text/decimal.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17 /* of any double, to be told from all others */

const char *decimal_text(double x, char text[DECIMAL_BYTES])
{
    for (int digits = DBL_DIG; digits <= DIGITS_MAX; digits++) {
        snprintf(text, DECIMAL_BYTES, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    char *exponent = strchr(text, 'e');
    if (exponent) /* e-05, e+20 */
        snprintf(exponent + 1, (size_t)(text + DECIMAL_BYTES - exponent - 1), "%d",
                 atoi(exponent + 1));
    return text;
}

double decimal_rounded(double x)
{
    char text[DECIMAL_BYTES];

    snprintf(text, sizeof text, "%.15g", x);
    return strtod(text, NULL);
}

const char *decimal_percent(double part, double whole, char text[DECIMAL_BYTES])
{
    double percent = 100 * part / whole;

    if (percent > 99 && percent < 100)
        percent = 99;
    if (percent > 0 && percent < 1e-4)
        snprintf(text, DECIMAL_BYTES, "below 0.0001");
    else
        snprintf(text, DECIMAL_BYTES, percent < 9.95 ? "%.2g" : "%.0f", percent);
    return text;
}
