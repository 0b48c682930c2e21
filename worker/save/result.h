/* End of a run: the run_stop event, result.json and the last lines on stdout */
#pragma once

#include "worker/run.h"
#include "worker/save/state.h"

struct result {
    const char *status; /* "success" or "cancelled" */
    int64_t steps;
    double ttt_seconds; /* time from run_start to the end of the evaluation that reached the target,
                           else of the last one; NAN if the run was stopped early */
    double images_per_sec; /* training: images of all steps of the run, each counted once, per
                              second spent in steps, NAN if a checkpoint lacks that time; eval:
                              images of the evaluation per second */
    bool evaluated;
    struct evaluation evaluation; /* last evaluation */
    bool has_target, target_reached;
    int64_t bad_images;
    char reason[160]; /* of an early end; "": none */
    char model[64];   /* final weights, relative to the run directory; "": there are none */
};

/* Rank 0 writes the result; the other ranks return 0. Collective. */
int result_write(struct run *r, const struct result *result, struct error *e);
