/* Down-sampling: nothing is lost at the ends, nothing is counted twice, extremes survive. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "common/run/attempt.h"
#include "daemon/http/handlers/series.h"

#define LOSS 0 /* place in event_metric_at */

static double at(const json_t *json, const char *part, const char *name, size_t i)
{
    const json_t *columns = part ? json_object_get(json, part) : json;
    const json_t *value = json_array_get(json_object_get(columns, name), i);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* 8 images a step, and 4 from step 5 on. */
static struct images_part parts[] = {
    {1, 0,  8},
    {5, 32, 4},
};
static const struct images_by_step seen = {parts, 2, 2};
static struct images_part unknown_parts[] = {
    {1, 0,  8 },
    {5, 32, -1},
};
static const struct images_by_step seen_in_part = {unknown_parts, 2, 2};

static json_t *json_with(const struct series *s, const struct images_by_step *images)
{
    struct json_text text = JSON_TEXT;

    json_text_open(&text, NULL, '{');
    series_members(&text, s, images);
    json_text_close(&text, '}');
    cr_assert_not(text.failed);
    json_t *json = json_loadb(text.out.data, text.out.bytes, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(json);
    json_text_clear(&text);
    return json;
}

static json_t *json_of(const struct series *s)
{
    return json_with(s, &seen);
}

/* Rows 0..rows-1 with loss = f(row). */
static json_t *sample(int64_t rows, int64_t points, double (*f)(int64_t))
{
    struct series_shape shape = {.wanted = 1u << LOSS,
                                 .points = rows < points ? rows : points,
                                 .exact = rows <= points,
                                 .last_step = rows - 1};
    struct series *s = series_create(&shape);

    for (int64_t i = 0; i < rows; i++) {
        struct store_metric_part part = {
            .rows = 1, .step = i, .epoch = (double)i / 10, .t = 1000.0 + (double)i};
        if (isfinite(f(i)))
            part.of[LOSS] = (struct store_metric_sum){1, f(i), f(i), f(i)};
        series_add(s, &part);
    }
    series_end(s);
    json_t *json = json_of(s);
    series_destroy(s);
    return json;
}

static double itself(int64_t i)
{
    return (double)i;
}

static double spike(int64_t i)
{
    return i == 4321 ? 1e6 : i == 1234 ? -1e6 : 1;
}

static double sometimes(int64_t i)
{
    return i % 3 ? NAN : (double)i;
}

Test(series, rows_that_fit_stay_as_they_are)
{
    for (int64_t rows = 0; rows < 5; rows++) {
        json_t *json = sample(rows, 5, itself);
        cr_assert_eq(json_array_size(json_object_get(json, "step")), (size_t)rows);
        for (size_t i = 0; i < (size_t)rows; i++)
            cr_assert_eq(at(json, NULL, "loss", i), (double)i);
        cr_assert(json_is_false(json_object_get(json, "downsampled")));
        cr_assert_null(json_object_get(json, "min"));
        json_decref(json);
    }
}

Test(series, groups_are_equal_and_told_at_their_middle_and_every_row_counts_once)
{
    for (int64_t points = 2; points < 40; points++) {
        for (int64_t rows = points + 1; rows < 130; rows += 7) {
            json_t *json = sample(rows, points, itself);
            size_t n = json_array_size(json_object_get(json, "step"));
            double next = 0;
            cr_assert_eq(n, (size_t)points, "%zu points of %zu, %zu rows", n, (size_t)points,
                         (size_t)rows);
            for (size_t i = 0; i < n; i++) {
                double low = at(json, "min", "loss", i), high = at(json, "max", "loss", i);
                cr_assert_eq(low, next, "buckets leave no row out");
                cr_assert_float_eq(high - low + 1, (double)rows / (double)points, 1);
                cr_assert_float_eq(at(json, NULL, "loss", i), (low + high) / 2, 1e-9);
                cr_assert_float_eq(at(json, NULL, "step", i), (low + high) / 2, 0.5);
                next = high + 1;
            }
            cr_assert_eq(next, rows, "down to the last");
            json_decref(json);
        }
    }
}

Test(series, extremes_survive)
{
    json_t *json = sample(10000, 50, spike);
    double low = 0, high = 0;
    for (size_t i = 0; i < 50; i++) {
        low = fmin(low, at(json, "min", "loss", i));
        high = fmax(high, at(json, "max", "loss", i));
    }
    cr_assert_eq(low, -1e6);
    cr_assert_eq(high, 1e6);
    json_decref(json);
}

Test(series, rows_without_a_number_do_not_count_in_the_mean)
{
    json_t *json = sample(1000, 10, sometimes);
    for (size_t i = 0; i < 10; i++) {
        double mean = at(json, NULL, "loss", i);
        cr_assert(mean >= at(json, "min", "loss", i) && mean <= at(json, "max", "loss", i));
        cr_assert_eq(fmod(at(json, "min", "loss", i), 3), 0);
    }
    json_decref(json);
    json = sample(3, 5, sometimes);
    cr_assert(json_is_null(json_array_get(json_object_get(json, "loss"), 1)),
              "not a number is null");
    json_decref(json);
}

Test(series, rows_that_came_since_they_were_counted_are_left_out)
{
    struct series_shape shape = {.wanted = 1u << LOSS, .points = 2, .exact = true};
    struct series *s = series_create(&shape);
    for (int64_t i = 0; i < 5; i++) {
        struct store_metric_part part = {.rows = 1, .step = i};
        series_add(s, &part);
    }
    cr_assert_eq(series_next(s), 2);
    json_t *json = json_of(s);
    cr_assert_eq(json_array_size(json_object_get(json, "step")), 2);
    json_decref(json);
    series_destroy(s);
}

Test(series, csv_has_the_same_numbers)
{
    struct series_shape shape = {.wanted = 1u << LOSS, .points = 3, .last_step = 9};
    struct series *s = series_create(&shape);
    size_t bytes;
    for (int64_t i = 0; i < 10; i++) {
        struct store_metric_part part = {.rows = 1, .step = i, .epoch = 0.5, .t = 7};
        if (i < 9)
            part.of[LOSS] = (struct store_metric_sum){1, (double)i, (double)i, (double)i};
        series_add(s, &part);
    }
    series_end(s);
    char *csv = series_to_csv(s, &seen, &bytes);
    cr_assert_str_eq(csv, "step,epoch,t,loss,loss_min,loss_max\r\n"
                          "1,0.5,7.000000,1.5,0,3\r\n"
                          "5,0.5,7.000000,5,4,6\r\n"
                          "8,0.5,7.000000,7.5,7,8\r\n");
    free(csv);
    series_destroy(s);
}

Test(series, images_by_step_are_the_sum_of_the_batches)
{
    struct series_shape shape = {.wanted = 1u << LOSS, .images = true, .points = 4, .exact = true};
    struct series *s = series_create(&shape);
    size_t bytes;
    for (int64_t i = 3; i < 7; i++) {
        struct store_metric_part part = {.rows = 1, .step = i, .epoch = 0.5, .t = 7};
        series_add(s, &part);
    }
    json_t *json = json_of(s);
    for (int64_t i = 0; i < 4; i++)
        cr_assert_eq(json_integer_value(json_array_get(json_object_get(json, "images"), i)),
                     ((const int[]){24, 32, 36, 40})[i]);
    json_decref(json);
    char *csv = series_to_csv(s, &seen, &bytes);
    cr_assert_str_eq(csv, "step,epoch,t,loss,images\r\n3,0.5,7.000000,,24\r\n"
                          "4,0.5,7.000000,,32\r\n5,0.5,7.000000,,36\r\n6,0.5,7.000000,,40\r\n");
    free(csv);
    series_destroy(s);
    cr_assert_eq(images_by_step_at(&seen, 0), 0);
    cr_assert_eq(images_by_step_at(&(const struct images_by_step){0}, 5), -1,
                 "not known without steps");
}

Test(series, images_that_are_not_known_are_left_out)
{
    struct series_shape shape = {.images = true, .points = 2, .exact = true};
    struct series *s = series_create(&shape);
    size_t bytes;

    for (int64_t i = 4; i < 6; i++)
        series_add(s, &(struct store_metric_part){.rows = 1, .step = i, .epoch = 0.5, .t = 7});
    json_t *json = json_with(s, &seen_in_part), *images = json_object_get(json, "images");
    cr_assert_eq(json_integer_value(json_array_get(images, 0)), 32);
    cr_assert(json_is_null(json_array_get(images, 1)));
    json_decref(json);
    char *csv = series_to_csv(s, &seen_in_part, &bytes);
    cr_assert_str_eq(csv, "step,epoch,t,images\r\n4,0.5,7.000000,32\r\n5,0.5,7.000000,\r\n");
    free(csv);
    series_destroy(s);
    cr_assert_eq(images_by_step_at(&seen_in_part, 900), -1, "nor all behind them");
}
