#include "daemon/sweep/sweep_document.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/document.h"
#include "common/job/job_value.h"
#include "common/job/job_text.h"
#include "common/json.h"
#include "common/number.h"
#include "common/rng.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "daemon/sweep/tpe.h"

#define RUNGS_MAX     32
#define JOB_KEY_BYTES 128
#define DRAWN_DIGITS  6    /* significant digits of a value drawn from a range, */
#define RANGE_PART    1e-4 /* unless rounding would move it by more than this share of the range */
#define WHOLE_MAX     9007199254740992.0 /* 2^53: a double represents all integers up to it */
#define UNKNOWN       "unknown key"

static const char *const methods[] = {"grid", "random", "halving", "tpe", NULL};
static const char *const metrics[] = {"top1",           "top5",        "loss",
                                      "images_per_sec", "ttt_seconds", NULL};
static const char *const goals[] = {"max", "min", NULL};
static const char *const samplings[] = {"random", "halton", NULL};
static const char *const budget_amounts[] = {"epochs", "steps", NULL};
static const char *const stop_rules[] = {"none", "median", "rung", NULL};

/* clang-format off */
static const struct document_key sweep_keys[] = {
    {.name = "name"}, {.name = "base"}, {.name = "parameters"}, {.name = "budget"}, {.name = "early_stop"},
    {"method", DOCUMENT_WORD, .choices = methods, .fallback = "\"grid\""},
    {"metric", DOCUMENT_WORD, .choices = metrics, .fallback = "\"top1\""},
    {"goal", DOCUMENT_WORD, .choices = goals, .fallback = "\"max\""},
    {"sampling", DOCUMENT_WORD, .choices = samplings},
    {"samples", DOCUMENT_INTEGER, .min = 1, .max = SWEEP_TRIALS_MAX, .fallback = "8"},
    {"n_startup", DOCUMENT_INTEGER, .min = 1, .max = SWEEP_TRIALS_MAX, .fallback = "10"}, /* this and gamma: as Optuna */
    {"gamma", DOCUMENT_NUMBER, .min = 0, .max = 1, .fallback = "0.1", .expects = "must be a share of the results, 0 to 1"},
    {"seed", DOCUMENT_INTEGER, .min = 0, .max = INT64_MAX, .fallback = "1"},
    {"concurrency", DOCUMENT_INTEGER, .min = 1, .max = SWEEP_TRIALS_MAX, .fallback = "1"},
    {0},
};
static const struct document_key budget_keys[] = {
    {"key", DOCUMENT_WORD, .choices = budget_amounts, .required = true},
    {.name = "min"}, {.name = "max"}, {.name = "continue"},
    {"eta", DOCUMENT_NUMBER, .min = 2, .max = 100, .fallback = "3"},
    {0},
};
static const struct document_key stop_keys[] = {
    {"rule", DOCUMENT_WORD, .choices = stop_rules, .required = true},
    {"from", DOCUMENT_NUMBER, .min = 0, .max = 1, .fallback = "0.25", .expects = "must be a share of the steps, 0 to 1"},
    {"least", DOCUMENT_INTEGER, .min = 1, .max = INT64_MAX, .fallback = "2", .expects = "must be a whole number from 1"},
    {0},
};
static const struct document_key range_keys[] = {{.name = "min"}, {.name = "max"}, {.name = "log"}, {.name = "integer"}, {0}};
/* clang-format on */

static bool sweep_document_says(const json_t *d, const char *key, const char *word)
{
    return strcmp(json_get_text(d, key, ""), word) == 0;
}

static void sweep_document_check_budget(json_t *d, struct problems *problems)
{
    json_t *budget = json_object_get(d, "budget");
    const char *key = json_string_value(json_object_get(budget, "key"));

    if (!json_is_object(budget)) {
        problems_add(
            problems, "/budget", NULL,
            "halving needs one, for example {\"key\": \"epochs\", \"min\": 1, \"max\": 9}");
        return;
    }
    if (key && *key == '/' && document_has_word(budget_amounts, key + 1))
        json_object_set_new(budget, "key", json_string(key + 1));
    document_check(budget, "/budget", budget_keys, UNKNOWN, problems);
    key = json_string_value(json_object_get(budget, "key"));
    if (document_has_word(budget_amounts, key)) /* stored as a pointer */
        json_object_set_new(budget, "key", json_sprintf("/%s", key));
    double min = json_get_number(budget, "min", NAN), max = json_get_number(budget, "max", NAN);
    double eta = json_get_number(budget, "eta", NAN);
    const json_t *goes_on = json_object_get(budget, "continue");
    if (goes_on && !json_is_boolean(goes_on))
        problems_add(problems, "/budget/continue", NULL, "must be true or false");
    if (!(min > 0))
        problems_add(problems, "/budget/min", NULL, "must be a number above 0");
    if (!(max >= min))
        problems_add(problems, "/budget/max", NULL, "must be a number of at least min");
    if (eta >= 2 && eta <= 100 && log(max) - log(min) > (RUNGS_MAX - 1) * log(eta))
        problems_add(problems, "/budget/min", NULL,
                     "makes more than %d rungs up to max: use a larger min or eta", RUNGS_MAX);
}

/* By default, early stopping is on for halving and off for grid and random search. */
static void sweep_document_check_early_stop(json_t *d, bool halving, struct problems *problems)
{
    json_t *stop = json_object_get(d, "early_stop");
    bool by_time = sweep_document_says(d, "metric", "ttt_seconds");

    if (!stop) {
        stop = json_pack("{s:s}", "rule", halving && !by_time ? "rung" : "none");
        json_object_set_new(d, "early_stop", stop);
    } else if (!json_is_object(stop)) {
        problems_add(problems, "/early_stop", NULL,
                     "must be an object, for example {\"rule\": \"median\", \"from\": 0.25}");
        return;
    }
    document_check(stop, "/early_stop", stop_keys, UNKNOWN, problems);
    bool rung = sweep_document_says(stop, "rule", "rung");
    if (rung && !halving)
        problems_add(problems, "/early_stop/rule", "median",
                     "rung applies only to the method halving");
    else if ((rung || sweep_document_says(stop, "rule", "median")) && by_time)
        problems_add(problems, "/early_stop/rule", "none",
                     "ttt_seconds is known only at the end of a job, so none can be stopped early");
}

static void sweep_document_check_range(json_t *values, const char *pointer,
                                       struct problems *problems)
{
    double low = json_get_number(values, "min", NAN), high = json_get_number(values, "max", NAN);
    const json_t *log_flag = json_object_get(values, "log");
    const json_t *whole_flag = json_object_get(values, "integer");
    bool logs = json_is_true(log_flag), whole = json_is_true(whole_flag);

    document_check(values, pointer, range_keys, UNKNOWN, problems);
    if ((log_flag && !json_is_boolean(log_flag)) || (whole_flag && !json_is_boolean(whole_flag)))
        problems_add(problems, pointer, NULL, "log and integer must be true or false");
    if (!(low < high) || (logs && !(low > 0)))
        problems_add(problems, pointer, NULL, "needs numbers min < max%s",
                     logs ? ", above 0 for log" : "");
    else if (!isfinite(logs ? high / low : high - low))
        problems_add(problems, pointer, NULL,
                     "min and max are too far apart to draw values between them");
    else if (whole && (fabs(low) > WHOLE_MAX || fabs(high) > WHOLE_MAX))
        problems_add(problems, pointer, NULL, "whole numbers can only be drawn up to 2^53");
}

/* Converts a name, "/lr/base" or "lr.base", to a pointer. Returns false if it is not a job key. */
static bool sweep_document_job_key(const char *name, char key[JOB_KEY_BYTES])
{
    bool dotted = name[0] != '/';

    if ((size_t)snprintf(key, JOB_KEY_BYTES, "%s%s", dotted ? "/" : "", name) >= JOB_KEY_BYTES)
        return false;
    for (char *c = key; dotted && *c; c++)
        if (*c == '.')
            *c = '/';
    return job_option_find(key) != NULL;
}

/* seen: names by key, for the keys set by the budget or an earlier parameter. */
static void sweep_document_check_parameter(const char *name, json_t *values, bool grid,
                                           json_t *seen, struct problems *problems)
{
    char key[JOB_KEY_BYTES], *pointer = problem_pointer("/parameters", name);

    if (!sweep_document_job_key(name, key)) {
        problems_add(problems, pointer, key[0] == '/' && key[1] ? job_option_nearest(key) : NULL,
                     "is not a key of a job document");
    } else {
        const char *other = json_get_text(seen, key, NULL);
        if (other)
            problems_add(problems, pointer, NULL, "%s sets the same key", other);
        json_object_set_new(seen, key, json_string(name));
    }
    if (json_is_object(values) && !grid)
        sweep_document_check_range(values, pointer, problems);
    else if (json_array_size(values) == 0)
        problems_add(problems, pointer, NULL,
                     grid ? "must be a list of values in a grid"
                          : "must be a list of values, or {\"min\": ..., \"max\": ...}");
    free(pointer);
}

static void sweep_document_check_parameters(json_t *d, bool grid, struct problems *problems)
{
    json_t *parameters = json_object_get(d, "parameters"), *values, *seen = json_object();
    const char *budget = json_get_text(json_object_get(d, "budget"), "key", NULL), *name;
    size_t count = json_object_size(parameters);
    double points = 1;

    if (count == 0)
        problems_add(
            problems, "/parameters", NULL,
            "must be an object of job keys and their values, for example {\"lr.base\": [0.1, "
            "0.2]}");
    if (budget)
        json_object_set_new(seen, budget, json_string("the budget"));
    json_object_foreach (parameters, name, values) {
        if (problems->count >= DOCUMENT_PROBLEMS_MAX)
            break;
        sweep_document_check_parameter(name, values, grid, seen, problems);
        points *= (double)json_array_size(values);
    }
    if (grid && points > SWEEP_TRIALS_MAX)
        problems_add(problems, "/parameters", NULL, "%.0f combinations exceed the limit of %d",
                     points, SWEEP_TRIALS_MAX);
    if (grid && json_object_get(d, "sampling"))
        problems_add(problems, "/sampling", NULL,
                     "applies only to the methods random, halving and tpe");
    else if (sweep_document_says(d, "sampling", "halton") && count > HALTON_DIMENSIONS)
        problems_add(problems, "/sampling", "random",
                     "halton supports at most %d parameters, not %zu", HALTON_DIMENSIONS, count);
    json_decref(seen);
}

json_t *sweep_document_check(const json_t *document, struct problems *problems)
{
    json_t *d = json_deep_copy(document);
    const json_t *name = json_object_get(d, "name");
    bool has_goal = json_object_get(d, "goal");

    document_check(d, "", sweep_keys, UNKNOWN, problems);
    if (!has_goal && (sweep_document_says(d, "metric", "loss") ||
                      sweep_document_says(d, "metric", "ttt_seconds")))
        json_object_set_new(d, "goal", json_string("min"));
    bool grid = sweep_document_says(d, "method", "grid");
    bool halving = sweep_document_says(d, "method", "halving");
    if (name && !json_is_null(name))
        job_value_check(job_option_find("/name"), name, problems);
    if (!json_is_object(json_object_get(d, "base")))
        problems_add(problems, "/base", NULL, "must be a job document");
    sweep_document_check_parameters(d, grid, problems);
    if (halving)
        sweep_document_check_budget(d, problems);
    sweep_document_check_early_stop(d, halving, problems);
    if (!halving && !problems_about(problems, "/method") && json_object_get(d, "budget"))
        problems_add(problems, "/budget", NULL, "applies only to the method halving");
    if (problems->count == 0)
        return d;
    json_decref(d);
    return NULL;
}

double sweep_halton(int64_t seed, int64_t index, size_t dimension)
{
    static const int primes[HALTON_DIMENSIONS] = {2,  3,  5,  7,  11, 13, 17, 19,
                                                  23, 29, 31, 37, 41, 43, 47, 53};
    struct rng r = rng_stream(seed, 1, (int64_t)dimension, RNG_SWEEP);
    int base = primes[dimension];
    double value = 0, digit = 1.0 / base;

    for (int64_t n = index + 1; n > 0; n /= base, digit /= base)
        value += digit * (double)(n % base); /* the digits of n mirrored at the point */
    double u = value + rng_unit(&r);
    return u - floor(u);
}

/* Rounds x to as few digits as distinguish it within its range. */
static double sweep_round(double x, double low, double high)
{
    char text[NUMBER_BYTES];
    double rounded = x;

    for (int digits = DRAWN_DIGITS; digits <= DBL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        rounded = strtod(text, NULL);
        if (rounded >= low && rounded <= high && fabs(rounded - x) < RANGE_PART * (high - low))
            return rounded;
    }
    return x;
}

/* u: in [0, 1). */
static json_t *sweep_value(const json_t *values, double u)
{
    if (json_is_array(values))
        return json_incref(json_array_get(values, (size_t)(u * (double)json_array_size(values))));
    double low = json_get_number(values, "min", NAN), high = json_get_number(values, "max", NAN);
    double x = json_is_true(json_object_get(values, "log")) ? low * pow(high / low, u)
                                                            : low + u * (high - low);
    return json_is_true(json_object_get(values, "integer"))
               ? json_integer(llround(x))
               : json_number(sweep_round(x, low, high));
}

json_t *sweep_point(const json_t *d, int64_t index)
{
    json_t *parameters = json_object_get(d, "parameters"), *values, *point = json_object();
    bool grid = sweep_document_says(d, "method", "grid");
    int64_t rest = index, seed = json_integer_value(json_object_get(d, "seed"));
    struct rng r = rng_stream(seed, 0, index, RNG_SWEEP);
    bool even = sweep_document_says(d, "sampling", "halton");
    size_t dimension = 0;
    const char *name;

    json_object_foreach (parameters, name, values) {
        int64_t size = (int64_t)json_array_size(values);
        if (grid) {
            json_object_set(point, name, json_array_get(values, (size_t)(rest % size)));
            rest /= size;
        } else {
            double u = even ? sweep_halton(seed, index, dimension++) : rng_unit(&r);
            json_object_set_new(point, name, sweep_value(values, u));
        }
    }
    int64_t count = json_integer_value(json_object_get(d, "samples"));
    if (sweep_document_says(d, "method", "tpe"))
        count = llround(fmin((double)count, json_get_number(d, "n_startup", 0)));
    if (grid ? rest == 0 : index < count)
        return point;
    json_decref(point);
    return NULL;
}

/* The inverse of sweep_value: in [0, 1], or the index in a list. */
static double sweep_place(const json_t *values, const json_t *value)
{
    double low = json_get_number(values, "min", NAN), high = json_get_number(values, "max", NAN);
    double x = json_number_value(value);
    size_t i = 0;

    if (json_is_array(values)) {
        while (i + 1 < json_array_size(values) && !json_equal(json_array_get(values, i), value))
            i++;
        return (double)i;
    }
    x = json_is_true(json_object_get(values, "log")) ? log(x / low) / log(high / low)
                                                     : (x - low) / (high - low);
    return fmin(1, fmax(0, x));
}

json_t *sweep_tpe_point(const json_t *d, const json_t *points, int64_t index)
{
    json_t *parameters = json_object_get(d, "parameters"), *values, *point = json_object();
    struct rng r = rng_stream(json_get_integer(d, "seed", 0), 0, index, RNG_SWEEP);
    size_t count = json_array_size(points), good = tpe_good(count, json_get_number(d, "gamma", 0));
    double *seen = xcalloc(count + 1, sizeof *seen);
    const char *name;

    json_object_foreach (parameters, name, values) {
        for (size_t i = 0; i < count; i++)
            seen[i] = sweep_place(values, json_object_get(json_array_get(points, i), name));
        size_t choices = json_array_size(values);
        double x = tpe_choose(choices, seen, good, seen + good, count - good, &r);
        json_object_set_new(point, name,
                            choices ? json_incref(json_array_get(values, (size_t)x))
                                    : sweep_value(values, x));
    }
    free(seen);
    return point;
}

double sweep_budget(const json_t *d, int64_t rung)
{
    const json_t *budget = json_object_get(d, "budget");
    double least = json_get_number(budget, "min", NAN), most = json_get_number(budget, "max", NAN),
           eta = json_get_number(budget, "eta", NAN);

    if (!budget)
        return 0;
    if (rung > 0 && least * pow(eta, (double)rung - 1) >= most * (1 - 1e-9))
        return 0;
    return fmin(most, number_rounded(least * pow(eta, (double)rung)));
}

bool sweep_continues(const json_t *d)
{
    const json_t *budget = json_object_get(d, "budget");
    const json_t *checkpoint = json_object_get(json_object_get(d, "base"), "checkpoint");

    return budget && !json_is_false(json_object_get(budget, "continue")) &&
           !json_is_true(json_object_get(checkpoint, "disable"));
}

static void sweep_name_value(FILE *out, const char *pointer, const json_t *value)
{
    char digits[NUMBER_BYTES];
    char *text = json_is_real(value) ? xstrdup(number_text(json_real_value(value), digits))
                                     : json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);

    fputc(' ', out);
    for (const char *c = pointer + (*pointer == '/'); *c; c++)
        fputc(*c == '/' ? '.' : *c, out);
    fprintf(out, "=%s", json_is_string(value) ? json_string_value(value) : text ? text : "");
    free(text);
}

/* Returns "rn18 lr.base=0.2 steps=16", with values as for --set; NULL if the name is a parameter,
 * or the base's is invalid. The caller frees it. */
static char *sweep_job_name(const json_t *d, const json_t *point, const json_t *amount)
{
    const json_t *base = json_object_get(json_object_get(d, "base"), "name"), *value;
    const char *budget = json_get_text(json_object_get(d, "budget"), "key", NULL), *key;
    size_t max = (size_t)job_option_find("/name")->max, bytes;
    char *name = NULL;

    if (json_object_get(point, "/name") || json_object_get(point, "name") ||
        (base && (json_string_length(base) == 0 || text_length(json_string_value(base)) > max)))
        return NULL;
    FILE *out = must_alloc(open_memstream(&name, &bytes));
    fputs(base ? json_string_value(base) : json_get_text(d, "name", "sweep"), out);
    json_object_foreach ((json_t *)point, key, value)
        sweep_name_value(out, key, value);
    if (budget)
        sweep_name_value(out, budget, amount);
    fclose(out);
    must_alloc(name);
    if (text_length(name) > max)
        strcpy(name + text_bytes_of(name, max - strlen("...")), "...");
    return name;
}

json_t *sweep_job(const json_t *d, const json_t *point, int64_t rung, int64_t before)
{
    json_t *job = json_deep_copy(json_object_get(d, "base")), *value;
    const char *budget = json_get_text(json_object_get(d, "budget"), "key", NULL), *name;
    double amount = sweep_budget(d, rung), whole = amount;
    bool steps = budget && strcmp(budget, "/steps") == 0, on = sweep_continues(d);
    char key[JOB_KEY_BYTES];

    json_object_foreach ((json_t *)point, name, value)
        if (sweep_document_job_key(name, key))
            json_set_at(job, key, json_incref(value));
    if (on)
        whole = json_get_number(json_object_get(d, "budget"), "max", amount);
    if (budget)
        json_set_at(job, budget, steps ? json_integer(llround(whole)) : json_number(whole));
    if (amount < whole)
        json_object_set_new(job, "stop_at", json_number(amount / whole));
    if (on && before > 0)
        json_object_set_new(job, "continues", json_integer((json_int_t)before));
    json_t *shown = steps ? json_integer(llround(amount)) : json_number(amount);
    char *called = sweep_job_name(d, point, shown);
    json_decref(shown);
    if (called && job_text_right(JOB_TEXT_TITLE, called))
        json_object_set_new(job, "name", json_string(called));
    free(called);
    return job;
}
