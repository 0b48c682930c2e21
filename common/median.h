/* Order statistics of doubles; none may be NAN. */
#pragma once

#include <stddef.h>

void median_sort(double *values, size_t count); /* ascending, in place */

/* The middle value, the mean of both where count is even; sorts them. count is at least 1. */
double median(double *values, size_t count);
