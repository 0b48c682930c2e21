/* How a run ended: the run_stop event, result.json, and the last lines on stdout. */
#pragma once

#include "worker/run.h"
#include "worker/save/state.h"

struct result {
    const char *status; /* "success" or "cancelled" */
    int64_t steps;      /* done */
    double ttt_seconds; /* run_start to the end of the evaluation that reached the target, else of
                           the last one; NAN when the run was stopped before its end */
    double images_per_sec; /* training: images of all steps of the run, each counted once, / time
                              spent in them, NAN where a checkpoint did not tell it; eval: of the
                              evaluation */
    bool evaluated;
    struct evaluation evaluation; /* the last one */
    bool has_target, target_reached;
    int64_t bad_images;
    char model[64]; /* the final weights, relative to the run directory; "" for none */
};

/* Collective. Rank 0 writes; the others return 0. */
int result_write(struct run *r, const struct result *result, struct error *e);
