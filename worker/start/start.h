/* From a job's file to a run that can train or evaluate. */
#pragma once

#include "worker/run.h"

struct start_options {
    const char *job_file;
    const char *run_dir;
    int attempt;
    const char *resume;     /* a checkpoint's folder, or "latest"; NULL: from the beginning */
    double stall_seconds;   /* 0: stalls are not watched for */
    double give_up_seconds; /* a machine whose ranks wait for others in a step so long ends them,
                               in other phases ten times as long; 0: never */
    struct stall *stall;    /* who watches; NULL: nobody */
    struct energy *energy;  /* who reads it; NULL: nobody */
    bool measure_peak;      /* of SGEMM on these cores, for run_stop: see peak.h */
};

/* Reads the job, builds and broadcasts the model, says run_start, opens the data, makes the plan.
 * Collective; on an error all ranks get the same one, and r->failed_at says where it came from.
 * run_destroy frees r in any case. */
int start_run(const struct start_options *options, struct traincomm *comm, struct run *r,
              struct error *e);
