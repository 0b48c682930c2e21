#include "daemon/sweep/sweep_document.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { POINTS = 64 };

/* The largest gap between neighbours of the first n points of a dimension, the ends included. */
static int halton_order(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double largest_gap(int64_t seed, size_t dimension, int n)
{
    double at[POINTS + 2] = {0}, gap = 0;

    for (int i = 0; i < n; i++)
        at[i + 1] = sweep_halton(seed, i, dimension);
    at[n + 1] = 1;
    qsort(at, (size_t)n + 2, sizeof *at, halton_order);
    for (int i = 0; i <= n; i++)
        gap = fmax(gap, at[i + 1] - at[i]);
    return gap;
}

/* n points in base b leave no gap above b^2/n; random ones usually leave log(n)/n and more. */
Test(halton, leaves_no_large_gap)
{
    for (int64_t seed = 1; seed < 20; seed++) {
        cr_assert_lt(largest_gap(seed, 0, POINTS), 4.0 / POINTS);
        cr_assert_lt(largest_gap(seed, 1, 27), 9.0 / 27);
        cr_assert_lt(largest_gap(seed, 2, 25), 25.0 / 25);
    }
}

/* In two dimensions: each of 6 x 6 cells is met by the first 72 points shifted by nothing; shifted,
 * no quarter of the square has more than half of the points. */
Test(halton, fills_the_square)
{
    for (int64_t seed = 1; seed < 20; seed++) {
        int quarter[4] = {0};
        for (int i = 0; i < POINTS; i++)
            quarter[2 * (sweep_halton(seed, i, 0) >= 0.5) + (sweep_halton(seed, i, 1) >= 0.5)]++;
        for (int k = 0; k < 4; k++)
            cr_assert(quarter[k] > POINTS / 8 && quarter[k] < POINTS / 2, "seed %d: %d", (int)seed,
                      quarter[k]);
    }
}

Test(halton, depends_on_the_seed_and_stays_below_1)
{
    cr_assert_eq(sweep_halton(7, 3, 2), sweep_halton(7, 3, 2));
    cr_assert_neq(sweep_halton(7, 3, 2), sweep_halton(8, 3, 2));
    for (size_t dimension = 0; dimension < HALTON_DIMENSIONS; dimension++)
        for (int i = 0; i < 1000; i++) {
            double u = sweep_halton(1, i, dimension);
            cr_assert(u >= 0 && u < 1);
        }
}
