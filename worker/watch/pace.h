/*
 * The pace of the ranks: what each one tells the others after a step, and who holds them up. What
 * rank 0 does for every single rank in every step is all here: its cost is measured by
 * tests/bench/ranks.
 */
#pragma once

#include <stdint.h>

#include "worker/comm/traincomm.h"
#include "worker/report.h"
#include "worker/watch/energy.h"
#include "worker/watch/straggler.h"

/* What each rank tells the others after a step: plain doubles, so that one gather carries them. */
struct rank_step {
    double loss;
    double correct; /* images whose label had the largest logit */
    double bad_images;
    struct energy_part energy;
    struct rank_times times; /* without waiting for others: who is largest is the slowest rank */
};

struct pace;

/* comm and report are borrowed. */
int pace_create(struct traincomm *comm, struct report *report, struct pace **out, struct error *e);
void pace_destroy(struct pace *p); /* NULL is fine */

/* The mean loss of the step just done and the sums of the correct and the bad images and of the
 * energy; what each rank did is kept. Collective; synchronises the ranks. */
struct rank_step pace_gather(struct pace *p, const struct rank_step *mine);

/* Fields of the step event that is being written: slowest_rank and rank_busy_ms of each, the rest
 * of whose step was waiting for others; or, where the ranks are too many for a line, the slowest
 * hosts, the means of their ranks, and the median of all hosts. */
void pace_report(const struct pace *p);

/* A `straggler` event, and the words on stderr, if a rank has become one in this step, which took
 * step_ms. Rank 0. */
int pace_judge(struct pace *p, int64_t step, double step_ms, struct error *e);
