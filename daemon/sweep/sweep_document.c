#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/number.h"
#include "common/text.h"
#include "daemon/sweep/halton.h"
#include "daemon/sweep/sweep.h"

#define RUNGS_MAX     32
#define JOB_KEY_BYTES 128
#define DRAWN_DIGITS  6    /* of a value drawn from a range, */
#define RANGE_PART    1e-4 /* unless they would move it by more than this part of the range */

static const char *const keys[] = {"name",       "base",        "method", "parameters", "samples",
                                   "seed",       "concurrency", "metric", "goal",       "budget",
                                   "early_stop", "sampling",    NULL};
static const char *const budget_keys[] = {"key", "min", "max", "eta", NULL};
static const char *const budget_amounts[] = {"epochs", "steps", NULL};
static const char *const budget_pointers[] = {"/epochs", "/steps", NULL};
static const char *const stop_keys[] = {"rule", "from", "least", NULL};
static const char *const stop_rules[] = {"none", "median", "rung", NULL};
static const char *const range_keys[] = {"min", "max", "log", "integer", NULL};
static const char *const methods[] = {"grid", "random", "halving", NULL};
static const char *const metrics[] = {"top1",           "top5",        "loss",
                                      "images_per_sec", "ttt_seconds", NULL};
static const char *const samplings[] = {"random", "halton", NULL};
static const char *const goals[] = {"max", "min", NULL};

static bool sweep_document_is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static void sweep_check_keys(const json_t *object, const char *where, const char *const *known,
                             struct problems *problems)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)object, key, value) {
        struct suggest near = {.word = key};
        if (sweep_document_is_one_of(key, known))
            continue;
        if (problems->count >= SWEEP_PROBLEMS_MAX)
            return;
        for (const char *const *k = known; *k; k++)
            text_suggest(&near, *k);
        char *pointer = problem_pointer(where, key);
        problems_add(problems, pointer, near.best, "unknown key");
        free(pointer);
    }
}

/* False: it is none of the words, which is a problem. */
static bool sweep_check_word(const json_t *value, const char *pointer, const char *const *words,
                             struct problems *problems)
{
    const char *word = json_string_value(value);
    struct suggest near = {.word = word};
    char list[128] = "";

    if (word && sweep_document_is_one_of(word, words))
        return true;
    for (; *words; words++) {
        if (word)
            text_suggest(&near, *words);
        strcat(strcat(list, *list ? ", " : ""), *words);
    }
    char *shown = value ? job_value_show(value) : NULL;
    problems_add(problems, pointer, near.best, "must be one of %s%s%s", list, shown ? ", not " : "",
                 shown ? shown : "");
    free(shown);
    return false;
}

static void sweep_choice(json_t *d, const char *key, const char *const *words,
                         struct problems *problems)
{
    char pointer[64];

    snprintf(pointer, sizeof pointer, "/%s", key);
    if (json_object_get(d, key))
        sweep_check_word(json_object_get(d, key), pointer, words, problems);
    else
        json_object_set_new(d, key, json_string(words[0]));
}

static void sweep_check_integer(json_t *d, const char *key, int64_t fallback, int64_t least,
                                int64_t most, struct problems *problems)
{
    const json_t *value = json_object_get(d, key);
    char pointer[64];

    snprintf(pointer, sizeof pointer, "/%s", key);
    if (!value)
        json_object_set_new(d, key, json_integer(fallback));
    else if (!json_is_integer(value) || json_integer_value(value) < least ||
             json_integer_value(value) > most)
        problems_add(problems, pointer, NULL, "must be a whole number from %lld to %lld",
                     (long long)least, (long long)most);
}

static void sweep_document_check_budget(json_t *d, struct problems *problems)
{
    json_t *budget = json_object_get(d, "budget");
    const json_t *named = json_object_get(budget, "key");
    const char *key = json_string_value(named);

    if (!json_is_object(budget)) {
        problems_add(problems, "/budget", NULL,
                     "halving needs one, as in {\"key\": \"epochs\", \"min\": 1, \"max\": 9}");
        return;
    }
    sweep_check_keys(budget, "/budget", budget_keys, problems);
    if (!json_object_get(budget, "eta"))
        json_object_set_new(budget, "eta", json_integer(3));
    /* Stored as a pointer, however it came. */
    if (!key || !sweep_document_is_one_of(key, budget_pointers)) {
        if (sweep_check_word(named, "/budget/key", budget_amounts, problems))
            json_object_set_new(budget, "key", json_sprintf("/%s", key));
    }
    if (!(json_get_number(budget, "min", NAN) > 0))
        problems_add(problems, "/budget/min", NULL, "must be a number above 0");
    if (!(json_get_number(budget, "max", NAN) >= json_get_number(budget, "min", NAN)))
        problems_add(problems, "/budget/max", NULL, "must be a number of at least min");
    if (!(json_get_number(budget, "eta", NAN) >= 2 && json_get_number(budget, "eta", NAN) <= 100))
        problems_add(problems, "/budget/eta", NULL, "must be a number from 2 to 100");
    else if (log(json_get_number(budget, "max", NAN)) - log(json_get_number(budget, "min", NAN)) >
             (RUNGS_MAX - 1) * log(json_get_number(budget, "eta", NAN)))
        problems_add(problems, "/budget/min", NULL,
                     "makes more than %d rungs up to max: use a larger min or eta", RUNGS_MAX);
}

/* Halving stops its losers unless it is told not to; a grid and a random search are asked to. */
static void sweep_document_check_early_stop(json_t *d, bool halving, struct problems *problems)
{
    json_t *stop = json_object_get(d, "early_stop");
    const char *metric = json_string_value(json_object_get(d, "metric"));
    bool by_time = metric && strcmp(metric, "ttt_seconds") == 0;

    if (!stop) {
        stop = json_object();
        json_object_set_new(d, "early_stop", stop);
        json_object_set_new(stop, "rule", json_string(halving && !by_time ? "rung" : "none"));
    } else if (!json_is_object(stop)) {
        problems_add(problems, "/early_stop", NULL,
                     "must be an object, as in {\"rule\": \"median\", \"from\": 0.25}");
        return;
    }
    sweep_check_keys(stop, "/early_stop", stop_keys, problems);
    const char *rule = json_string_value(json_object_get(stop, "rule"));
    if (!sweep_check_word(json_object_get(stop, "rule"), "/early_stop/rule", stop_rules, problems))
        rule = NULL;
    if (rule && strcmp(rule, "rung") == 0 && !halving)
        problems_add(problems, "/early_stop/rule", "median", "rung is for the method halving");
    else if (rule && strcmp(rule, "none") != 0 && by_time)
        problems_add(problems, "/early_stop/rule", "none",
                     "a time to train is known at the end only: none can be stopped before");
    if (!json_object_get(stop, "from"))
        json_object_set_new(stop, "from", json_number(0.25));
    if (!(json_get_number(stop, "from", NAN) >= 0 && json_get_number(stop, "from", NAN) <= 1))
        problems_add(problems, "/early_stop/from", NULL, "must be a share of the steps, 0 to 1");
    if (!json_object_get(stop, "least"))
        json_object_set_new(stop, "least", json_integer(2));
    if (!json_is_integer(json_object_get(stop, "least")) ||
        !(json_get_number(stop, "least", NAN) >= 1))
        problems_add(problems, "/early_stop/least", NULL, "must be a whole number from 1");
}

static bool sweep_document_is_boolean_or_absent(const json_t *value)
{
    return !value || json_is_boolean(value);
}

/* Whole numbers beyond this are not told apart by a double. */
#define WHOLE_MAX 9007199254740992.0

static void sweep_document_check_range(const json_t *values, const char *pointer,
                                       struct problems *problems)
{
    double low = json_get_number(values, "min", NAN), high = json_get_number(values, "max", NAN);
    bool logs = json_is_true(json_object_get(values, "log"));
    bool whole = json_is_true(json_object_get(values, "integer"));

    sweep_check_keys(values, pointer, range_keys, problems);
    if (!sweep_document_is_boolean_or_absent(json_object_get(values, "log")) ||
        !sweep_document_is_boolean_or_absent(json_object_get(values, "integer")))
        problems_add(problems, pointer, NULL, "log and integer must be true or false");
    if (!(low < high) || (logs && !(low > 0)))
        problems_add(problems, pointer, NULL, "needs numbers min < max%s",
                     logs ? ", above 0 for log" : "");
    else if (!isfinite(logs ? high / low : high - low))
        problems_add(problems, pointer, NULL, "min and max are too far apart to draw between them");
    else if (whole && (fabs(low) > WHOLE_MAX || fabs(high) > WHOLE_MAX))
        problems_add(problems, pointer, NULL, "whole numbers are drawn up to 2^53");
}

static void sweep_document_check_values(const json_t *values, const char *pointer, bool grid,
                                        struct problems *problems)
{
    if (json_is_array(values) && json_array_size(values) > 0)
        return;
    if (json_is_object(values) && !grid)
        sweep_document_check_range(values, pointer, problems);
    else
        problems_add(problems, pointer, NULL,
                     grid ? "must be a list of values in a grid"
                          : "must be a list of values, or {\"min\": ..., \"max\": ...}");
}

/* The job key that a parameter's name stands for: "/lr/base" or "lr.base". False: none. */
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

/* seen: the keys of the parameters before it, and the budget's. */
static void sweep_check_name(const char *name, const char *pointer, json_t *seen,
                             struct problems *problems)
{
    char key[JOB_KEY_BYTES];

    if (!sweep_document_job_key(name, key)) {
        problems_add(problems, pointer, key[0] == '/' && key[1] ? job_option_nearest(key) : NULL,
                     "is not a key of a job document");
        return;
    }
    const char *other = json_string_value(json_object_get(seen, key));
    if (other)
        problems_add(problems, pointer, NULL, "%s sets the same key", other);
    json_object_set_new(seen, key, json_string(name));
}

static void sweep_document_check_parameters(json_t *d, struct problems *problems)
{
    json_t *parameters = json_object_get(d, "parameters"), *values, *seen = json_object();
    const char *method = json_string_value(json_object_get(d, "method")), *name;
    const char *budget = json_string_value(json_object_get(json_object_get(d, "budget"), "key"));
    bool grid = method && strcmp(method, "grid") == 0;
    double points = 1;

    if (!json_is_object(parameters) || json_object_size(parameters) == 0)
        problems_add(problems, "/parameters", NULL,
                     "must be an object of job keys and their values, as in {\"lr.base\": [0.1, "
                     "0.2]}");
    if (budget)
        json_object_set_new(seen, budget, json_string("the budget"));
    json_object_foreach (parameters, name, values) {
        if (problems->count >= SWEEP_PROBLEMS_MAX)
            break;
        char *pointer = problem_pointer("/parameters", name);
        sweep_check_name(name, pointer, seen, problems);
        sweep_document_check_values(values, pointer, grid, problems);
        points *= (double)json_array_size(values);
        free(pointer);
    }
    if (grid && points > SWEEP_TRIALS_MAX)
        problems_add(problems, "/parameters", NULL, "%.0f combinations are more than %d", points,
                     SWEEP_TRIALS_MAX);
    json_decref(seen);
}

static bool sweep_is_even(const json_t *d)
{
    const char *sampling = json_string_value(json_object_get(d, "sampling"));
    return sampling && strcmp(sampling, "halton") == 0;
}

static void sweep_document_check_sampling(json_t *d, bool grid, struct problems *problems)
{
    size_t count = json_object_size(json_object_get(d, "parameters"));

    if (grid && json_object_get(d, "sampling")) {
        problems_add(problems, "/sampling", NULL, "is only for the methods random and halving");
        return;
    }
    if (!grid && json_object_get(d, "sampling"))
        sweep_choice(d, "sampling", samplings, problems);
    if (sweep_is_even(d) && count > HALTON_DIMENSIONS)
        problems_add(problems, "/sampling", "random",
                     "halton spreads points evenly over at most %d parameters, here are %zu",
                     HALTON_DIMENSIONS, count);
}

json_t *sweep_document_check(const json_t *document, struct problems *problems)
{
    json_t *d = json_deep_copy(document);
    const json_t *name = json_object_get(d, "name");

    sweep_check_keys(d, "", keys, problems);
    sweep_choice(d, "method", methods, problems);
    sweep_choice(d, "metric", metrics, problems);
    const char *metric = json_string_value(json_object_get(d, "metric"));
    if (metric && !json_object_get(d, "goal"))
        json_object_set_new(
            d, "goal",
            json_string(strcmp(metric, "loss") == 0 || strcmp(metric, "ttt_seconds") == 0 ? "min"
                                                                                          : "max"));
    sweep_choice(d, "goal", goals, problems);
    sweep_check_integer(d, "samples", 8, 1, SWEEP_TRIALS_MAX, problems);
    sweep_check_integer(d, "seed", 1, 0, INT64_MAX, problems);
    sweep_check_integer(d, "concurrency", 1, 1, SWEEP_TRIALS_MAX, problems);
    if (name && !json_is_null(name))
        job_value_check(job_option_find("/name"), name, problems);
    if (!json_is_object(json_object_get(d, "base")))
        problems_add(problems, "/base", NULL, "must be a job document");
    sweep_document_check_parameters(d, problems);
    sweep_document_check_sampling(
        d,
        json_is_string(json_object_get(d, "method")) &&
            strcmp(json_string_value(json_object_get(d, "method")), "grid") == 0,
        problems);
    const char *method = json_string_value(json_object_get(d, "method"));
    if (method && strcmp(method, "halving") == 0)
        sweep_document_check_budget(d, problems);
    sweep_document_check_early_stop(d, method && strcmp(method, "halving") == 0, problems);
    if (method && sweep_document_is_one_of(method, methods) && strcmp(method, "halving") != 0 &&
        json_object_get(d, "budget"))
        problems_add(problems, "/budget", NULL, "is for the method halving");
    if (problems->count == 0)
        return d;
    json_decref(d);
    return NULL;
}

/* ---- points */

/* x with few digits, for a name and a document that people read: with those alone that are needed
 * to tell it from others of its range. */
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

/* u: from 0, below 1. */
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
    bool grid = strcmp(json_string_value(json_object_get(d, "method")), "grid") == 0;
    struct rng r = rng_stream(json_integer_value(json_object_get(d, "seed")), 0, index, RNG_SWEEP);
    int64_t rest = index;
    int64_t seed = json_integer_value(json_object_get(d, "seed"));
    bool even = sweep_is_even(d);
    size_t dimension = 0;
    const char *name;

    json_object_foreach (parameters, name, values) {
        int64_t size = (int64_t)json_array_size(values);
        if (grid) {
            json_object_set(point, name, json_array_get(values, (size_t)(rest % size)));
            rest /= size;
        } else {
            double u = even ? halton(seed, index, dimension++) : rng_unit(&r);
            json_object_set_new(point, name, sweep_value(values, u));
        }
    }
    if (grid ? rest == 0 : index < json_integer_value(json_object_get(d, "samples")))
        return point;
    json_decref(point);
    return NULL;
}

/* "/lr/base" or "lr.base". */
static void sweep_document_set_at(json_t *document, const char *name, json_t *value)
{
    char copy[256], *rest;

    snprintf(copy, sizeof copy, "%s", name);
    char *part = strtok_r(copy, "/.", &rest), *next = part ? strtok_r(NULL, "/.", &rest) : NULL;
    for (; next; part = next, next = strtok_r(NULL, "/.", &rest)) {
        if (!json_is_object(json_object_get(document, part)))
            json_object_set_new(document, part, json_object());
        document = json_object_get(document, part);
    }
    if (part)
        json_object_set(document, part, value);
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

/* What a job's name may have. */
static size_t sweep_name_max(void)
{
    return (size_t)job_option_find("/name")->max;
}

static void sweep_name_value(FILE *out, const char *pointer, const json_t *value)
{
    char digits[NUMBER_BYTES];
    char *text = json_is_real(value) ? strdup(number_text(json_real_value(value), digits))
                                     : json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);

    fputc(' ', out);
    for (const char *c = pointer + (*pointer == '/'); *c; c++)
        fputc(*c == '/' ? '.' : *c, out);
    fprintf(out, "=%s", json_is_string(value) ? json_string_value(value) : text ? text : "");
    free(text);
}

/* Cuts a name that is too long, between two characters. */
static void sweep_name_cut(char *name)
{
    if (text_length(name) > sweep_name_max())
        strcpy(name + text_bytes_of(name, sweep_name_max() - strlen("...")), "...");
}

/* "rn18 lr.base=0.2 steps=16": what the base, or the sweep, is called and where this job differs
 * from the others, as --set takes it. NULL: the name is one of the parameters, or the base's is
 * wrong, which is told elsewhere, or there is no memory. The caller frees it. */
static char *sweep_job_name(const json_t *d, const json_t *point, const json_t *job)
{
    const json_t *base = json_object_get(json_object_get(d, "base"), "name"), *value;
    const char *key,
        *budget = json_string_value(json_object_get(json_object_get(d, "budget"), "key"));
    const char *called = json_get_text(d, "name", "sweep");
    char *name = NULL;
    size_t bytes;
    bool own = json_object_get(point, "/name") || json_object_get(point, "name") ||
               (base && (json_string_length(base) == 0 ||
                         text_length(json_string_value(base)) > sweep_name_max()));
    FILE *out = own ? NULL : open_memstream(&name, &bytes);

    if (!out)
        return NULL;
    fputs(json_is_string(base) ? json_string_value(base) : called, out);
    json_object_foreach ((json_t *)point, key, value)
        sweep_name_value(out, key, value);
    if (budget)
        sweep_name_value(out, budget, json_object_get(job, budget + 1));
    if (fclose(out)) {
        free(name);
        return NULL;
    }
    sweep_name_cut(name);
    return name;
}

json_t *sweep_job(const json_t *d, const json_t *point, int64_t rung)
{
    json_t *job = json_deep_copy(json_object_get(d, "base")), *value;
    const json_t *budget = json_object_get(d, "budget");
    const char *name;

    json_object_foreach ((json_t *)point, name, value)
        sweep_document_set_at(job, name, value);
    if (budget) {
        const char *key = json_string_value(json_object_get(budget, "key"));
        double amount = sweep_budget(d, rung);
        value = strcmp(key, "/steps") == 0 ? json_integer(llround(amount)) : json_number(amount);
        sweep_document_set_at(job, key, value);
        json_decref(value);
    }
    char *called = sweep_job_name(d, point, job);
    if (called && job_text_right(JOB_TEXT_TITLE, called))
        json_object_set_new(job, "name", json_string(called));
    free(called);
    return job;
}
