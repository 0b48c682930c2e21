#include "daemon/sweep/tpe.h"

#include <criterion/criterion.h>
#include <math.h>

#include "daemon/sweep/sweep_document.h"

/* The reference values are from Python: statistics.NormalDist with the means, standard deviations
 * and limits of Optuna's _ParzenEstimator (one dimension, consider_prior, consider_magic_clip, no
 * endpoints), which its source computes with sorted arrays of neighbours instead. */
Test(tpe, has_the_density_of_optuna)
{
    static const struct {
        double values[5];
        size_t count;
        double x, density;
    } rows[] = {
        {{0},                           0, 0.3,  1.0211993812609874},
        {{0.2},                         1, 0.2,  1.3319612561871355},
        {{0.1, 0.15, 0.9},              3, 0.12, 1.4547046005358084},
        {{0.9, 0.1, 0.15},              3, 0.8,  0.7398021278070215},
        {{0.4, 0.41, 0.42, 0.43, 0.99}, 5, 0.41, 2.169845229615229 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_float_eq(tpe_density(0, rows[i].values, rows[i].count, rows[i].x),
                           rows[i].density, 1e-12, "row %zu", i);
}

Test(tpe, densities_have_the_integral_1)
{
    const double values[] = {0, 0.01, 0.5, 0.5, 1}, choices[] = {2, 0, 2, 2};
    double sum = 0;

    for (int i = 0; i < 100000; i++)
        sum += tpe_density(0, values, 5, (i + 0.5) / 100000);
    cr_expect_float_eq(sum / 100000, 1, 1e-6);
    sum = 0;
    for (double c = 0; c < 3; c++)
        sum += tpe_density(3, choices, 4, c);
    cr_expect_float_eq(sum, 1, 1e-12);
    /* by hand: (3 (1 + 1/5)/(8/5) + (1/5)/(8/5) + 1/3) / 5 */
    cr_expect_float_eq(tpe_density(3, choices, 4, 2), (3 * 0.75 + 0.125 + 1.0 / 3) / 5, 1e-12);
}

Test(tpe, counts_a_tenth_as_good_and_at_most_25)
{
    cr_expect_eq(tpe_good(0, 0.1), 0);
    cr_expect_eq(tpe_good(1, 0.1), 1);
    cr_expect_eq(tpe_good(11, 0.1), 2);
    cr_expect_eq(tpe_good(1000, 0.1), 25);
}

/* An error with its minimum of 0 at a rate of 0.05, a decay of 1e-4 and "b", over three parameters.
 */
static double error_of(const json_t *point)
{
    double rate = log10(json_number_value(json_object_get(point, "lr.base")) / 0.05);
    double decay =
        log10(json_number_value(json_object_get(point, "optimizer.weight_decay")) / 1e-4);
    const char *arch = json_string_value(json_object_get(point, "model.arch"));

    return rate * rate + 0.3 * decay * decay + (*arch == 'b' ? 0 : 0.5);
}

/* Returns the least error of 40 points. */
static double search(const char *method, int seed)
{
    json_t *d = json_pack(
        "{s:s, s:i, s:i, s:i, s:f, s:{s:{s:f, s:f, s:b}, s:{s:f, s:f, s:b}, s:[s,s,s]}}", "method",
        method, "seed", seed, "samples", 40, "n_startup", 10, "gamma", 0.1, "parameters", "lr.base",
        "min", 1e-4, "max", 10.0, "log", 1, "optimizer.weight_decay", "min", 1e-7, "max", 1e-1,
        "log", 1, "model.arch", "a", "b", "c");
    json_t *points = json_array(); /* best first */
    double least = INFINITY;

    cr_assert(d);
    for (int64_t i = 0; i < 40; i++) {
        json_t *point = sweep_point(d, i);
        if (!point)
            point = sweep_tpe_point(d, points, i);
        double error = error_of(point);
        size_t at = 0;
        while (at < json_array_size(points) && error_of(json_array_get(points, at)) <= error)
            at++;
        json_array_insert_new(points, at, point);
        least = fmin(least, error);
    }
    json_decref(points);
    json_decref(d);
    return least;
}

Test(tpe, finds_better_points_than_random_search)
{
    int better = 0, seeds = 100;
    double tpe = 0, random = 0;

    for (int seed = 0; seed < seeds; seed++) {
        double a = search("tpe", seed), b = search("random", seed);
        better += a < b;
        tpe += log10(a);
        random += log10(b);
    }
    cr_log_info("better for %d of %d seeds; mean of log10: %.2f and %.2f", better, seeds,
                tpe / seeds, random / seeds);
    cr_expect_geq(better, 75, "better for %d of %d seeds", better, seeds);
    cr_expect_lt(tpe, random - 0.3 * seeds, "mean of log10: %.2f and %.2f", tpe / seeds,
                 random / seeds);
    cr_expect_eq(search("tpe", 3), search("tpe", 3), "the same seed gives the same points");
}
