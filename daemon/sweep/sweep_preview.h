#pragma once

#include <stdint.h>

#include "common/plan/predict.h"
#include "daemon/sweep/sweep.h"

/* Jobs, rungs, images, time, slot-hours and cost of the sweep of a document, as the API returns
 * them; NULL with *problems or *e. Starts nothing. Thread-safe. */
json_t *sweep_preview(struct job_manager *m, const struct sweep_new *new,
                      const struct plan_prices *prices, struct problems *problems, struct error *e);

enum sweep_amount {
    SWEEP_SECONDS, /* of all jobs, one after the other */
    SWEEP_SLOT_HOURS,
    SWEEP_NODE_HOURS,
    SWEEP_KWH,
    SWEEP_COST,
    SWEEP_AMOUNTS
};

/* Of a job, or of several; NAN: not known. */
struct sweep_cost {
    struct plan_band of[SWEEP_AMOUNTS];
};

struct sweep_rung {
    int64_t jobs;     /* that run, of the points: at least 1 */
    int64_t whole;    /* of them, those that early stopping cannot touch */
    double from;      /* what a stopped job has done of its steps, at least */
    int64_t together; /* jobs that run side by side: at least 1 */
};

/*
 * The cost of a rung, of average points, at least of the cheapest and at most of the dearest, as
 * those that a higher rung gets are not known. Early stopping saves all losers but `from` of their
 * steps, in the low end alone. *elapsed: each job starts as soon as one before it has ended.
 */
void sweep_rung_cost(const struct sweep_cost *points, size_t count, const struct sweep_rung *r,
                     struct sweep_cost *sum, struct plan_band *elapsed);
