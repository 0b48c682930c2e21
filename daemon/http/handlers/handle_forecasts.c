/* Accuracy of time estimates over the newest jobs. */
#include <math.h>
#include <stdlib.h>

#include "common/json.h"
#include "common/number.h"
#include "common/xalloc.h"
#include "daemon/http/routes.h"
#include "daemon/store/speed.h"

#define JOBS_MOST 1000

/* A member of a forecast, and the completed share of the run at which it was made. */
static const struct kind {
    const char *of;
    double share;
} kinds[] = {
    {"ttt_seconds", 0   },
    {"time_left",   0.25},
    {"time_left",   0.5 },
    {"time_left",   0.75},
    {"target",      0.25},
    {"target",      0.5 },
    {"target",      0.75},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct scores {
    int64_t jobs;
    struct score {
        double errors[JOBS_MOST];
        size_t count, inside;
    } of[KINDS];
};

/* Returns NULL if no such forecast was judged. */
static const json_t *forecasts_find(const json_t *forecast, const struct kind *kind)
{
    const json_t *member = json_object_get(forecast, kind->of), *one;
    size_t i;

    if (!json_is_array(member))
        return kind->share > 0 ? NULL : member;
    json_array_foreach (member, i, one)
        if (json_get_number(one, "share", 0) == kind->share)
            return one;
    return NULL;
}

static void forecasts_add(void *context, const char *text)
{
    struct scores *scores = context;
    json_t *forecast = json_loads(text, 0, NULL);

    for (size_t k = 0; k < KINDS; k++) {
        struct score *score = &scores->of[k];
        const json_t *judged = forecasts_find(forecast, &kinds[k]);
        double error = json_get_number(judged, "error", NAN);
        if (isnan(error) || score->count == JOBS_MOST)
            continue;
        score->errors[score->count++] = error;
        score->inside += json_is_true(json_object_get(judged, "inside"));
    }
    scores->jobs++;
    json_decref(forecast);
}

static json_t *forecasts_score(const struct kind *kind, struct score *score)
{
    json_t *share = kind->share > 0 ? json_number(kind->share) : json_null();
    size_t n = score->count;

    if (n == 0)
        return json_pack("{s:s, s:o, s:i, s:n, s:n, s:n}", "of", kind->of, "share", share, "jobs",
                         0, "median_error", "median_bias", "inside");
    double bias = number_median(score->errors, n);
    for (size_t i = 0; i < n; i++)
        score->errors[i] = fabs(score->errors[i]);
    return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "of", kind->of, "share", share, "jobs",
                     (json_int_t)n, "median_error",
                     json_number(number_rounded(number_median(score->errors, n))), "median_bias",
                     json_number(number_rounded(bias)), "inside",
                     json_number(number_rounded((double)score->inside / (double)n)));
}

int handle_forecasts(const struct request *q, struct reply *r, struct error *e)
{
    struct scores *scores = xcalloc(1, sizeof *scores);
    int status = store_forecast_each(q->app->store, JOBS_MOST, forecasts_add, scores, e);

    if (!status) {
        json_t *list = json_array();
        for (size_t k = 0; k < KINDS; k++)
            json_array_append_new(list, forecasts_score(&kinds[k], &scores->of[k]));
        status = reply_json(
            r, 200, json_pack("{s:I, s:o}", "jobs", (json_int_t)scores->jobs, "scores", list), e);
    }
    free(scores);
    return status;
}
