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
