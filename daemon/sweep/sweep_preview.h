#pragma once

#include <stdint.h>

#include "common/plan/predict.h"
#include "daemon/sweep/sweep.h"

/* Previews the sweep of a document: jobs, rungs, images, time, slot-hours and cost, in the API's
 * form; NULL with *problems or *e. Starts nothing. Thread-safe. */
json_t *sweep_preview(struct job_manager *m, const struct sweep_new *new,
                      const struct plan_prices *prices, struct problems *problems, struct error *e);

enum sweep_amount {
    SWEEP_SECONDS, /* sum over all jobs, run one after the other */
    SWEEP_SLOT_HOURS,
    SWEEP_NODE_HOURS,
    SWEEP_KWH,
    SWEEP_COST,
    SWEEP_AMOUNTS
};

/* Cost of one or several jobs; NAN: unknown. */
struct sweep_cost {
    struct plan_band of[SWEEP_AMOUNTS];
};

struct sweep_rung {
    int64_t jobs;     /* jobs that run, at least 1 */
    int64_t whole;    /* of these, jobs that early stopping cannot affect */
    double from;      /* share of its steps that a stopped job has done, at least */
    int64_t together; /* jobs that run side by side, at least 1 */
};

/* Computes the cost of a rung: the value assumes average points, the low end the cheapest and the
 * high end the most expensive, because the points promoted to a higher rung are unknown. In the low
 * end, early stopping reduces all losers to `from` of their steps. *elapsed: each job starts as
 * soon as an earlier one has ended. */
void sweep_rung_cost(const struct sweep_cost *points, size_t count, const struct sweep_rung *r,
                     struct sweep_cost *sum, struct plan_band *elapsed);
