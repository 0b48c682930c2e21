/* From a job's file to a run that can train or evaluate */
#pragma once

#include "worker/run.h"

struct start_options {
    const char *job_file;
    const char *run_dir;
    int attempt;
    const char *resume;   /* folder of a checkpoint, or "latest"; NULL: start from the beginning */
    double stall_seconds; /* 0: no watching for stalls */
    double give_up_seconds; /* limit for waiting for other machines in a step, ten times as long in
                               other phases, after which the rank exits; 0: none */
    struct stall *stall;    /* may be NULL */
    struct energy *energy;  /* may be NULL */
    bool measure_peak;      /* measure the SGEMM peak after the run, for run_stop */
};

/* Up to the plan, including run_start. Collective; all ranks get the same error, and r->failed_at
 * says where it occurred. The caller frees r with run_destroy in any case. */
int start_run(const struct start_options *options, struct traincomm *comm, struct run *r,
              struct error *e);
