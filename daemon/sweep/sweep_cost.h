/*
 * What the jobs of a sweep come to: the arithmetic of its preview. Pure.
 *
 * In rung 0 all points run. Which of them a higher rung gets is not known before: it is taken to
 * cost as many average points, at least as many of the cheapest and at most as many of the dearest.
 * Early stopping may spare all losers of a rung but `from` of their steps; that too is in the low
 * end alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/plan/predict.h"

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

/* Of `count` points, at least r->jobs. *elapsed: from the rung's first start to its last end,
 * each job starting as soon as one before it has ended. */
void sweep_rung_cost(const struct sweep_cost *points, size_t count, const struct sweep_rung *r,
                     struct sweep_cost *sum, struct plan_band *elapsed);
