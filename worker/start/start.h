/* Starts a run: from the job's file to a model and data that can be trained or evaluated. */
#pragma once

#include "worker/run.h"

struct start_options {
    const char *job_file;
    const char *run_dir;
    int attempt;
    const char *resume;   /* folder of a checkpoint, or "latest"; NULL: start from the beginning */
    double stall_seconds; /* limit for stalls; 0: do not detect stalls */
    double give_up_seconds; /* exit after waiting this long for other machines in a step, ten times
                               as long in other phases; 0: never */
    struct stall *stall;    /* may be NULL */
    struct energy *energy;  /* may be NULL */
    bool measure_peak;      /* measure the SGEMM peak after the run, for run_stop */
};

/* Starts a run up to and including the run_start event. All ranks return the same error;
 * r->failed_at then says where it occurred. The caller must call run_destroy in any case.
 * Collective. */
int start_run(const struct start_options *options, struct traincomm *comm, struct run *r,
              struct error *e);
