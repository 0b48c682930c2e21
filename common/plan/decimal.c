#include "common/plan/decimal.h"

#include <stdio.h>
#include <stdlib.h>

double plan_decimal(double x)
{
    char text[32];

    snprintf(text, sizeof text, "%.15g", x);
    return strtod(text, NULL);
}
