#include "common/median.h"

#include <stdlib.h>

static int median_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void median_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, median_compare);
}

double median(double *values, size_t count)
{
    median_sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
