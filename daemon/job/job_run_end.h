/* The end of an attempt: why it ended, what that means for its job, and that it is stored. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/launch/failure.h"
#include "daemon/launch/slurm.h"

struct active_job;
struct job_manager;
struct store_job;

/* Judges the attempt, unless Slurm's restart of it was judged already, and stores its end. The
 * error may pass: to be called again. */
int job_run_end(struct job_manager *m, struct active_job *a, struct error *e);

/* For an attempt that could not be made, as a->no_start says. */
int job_run_end_unstarted(struct job_manager *m, struct active_job *a, struct error *e);

/* Slurm starts the attempt again: judges the one that ended; *last: it is one restart too many. */
int job_run_judge_put_back(struct job_manager *m, struct active_job *a, bool *last,
                           struct error *e);

/* Stores what was judged, and if the job is to be queued again the begin of attempt `next`. */
int job_run_end_put_back(struct job_manager *m, struct active_job *a, int64_t next,
                         struct error *e);

/* After the end: logs in others' formats, what the job measured, old checkpoints. Best effort. */
void job_run_finish(struct job_manager *m, struct active_job *a);

/* The reason of the first attempt that failed, which the caller frees; NULL: none did. */
char *job_run_first_failure(const struct store_job *job);

struct slurm_end {
    const struct slurm_status *slurm;
    int64_t attempt;
    enum failure_stop why; /* traind asked it to stop */
    bool signalled;        /* the script had Slurm's signal that its time is nearly over */
    bool begun;            /* the script has run */
    const char *refused;   /* "node n1: why", which its prolog had drained; NULL: none is known */
};

/* Corrects failure_judge's verdict if Slurm knows better than the run directory. */
void job_run_slurm_verdict(const struct slurm_end *end, struct verdict *verdict);

/* Likewise for an attempt that Slurm starts again. */
void job_run_slurm_put_back(const struct slurm_end *end, struct verdict *verdict);
