/* Handles the end of an attempt: determines why it ended and what follows for its job, and stores
 * both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/launch/failure.h"
#include "daemon/launch/slurm.h"

struct active_job;
struct job_manager;
struct store_job;

/* Judges the attempt, unless its restart by Slurm has already been judged, and stores its end. Call
 * it again after an error, which may be temporary. */
int job_run_end(struct job_manager *m, struct active_job *a, struct error *e);

/* For an attempt that could not be created; the cause is in a->no_start. */
int job_run_end_unstarted(struct job_manager *m, struct active_job *a, struct error *e);

/* Judges the attempt that ended when Slurm requeued the job. Sets *last if no restart is left. */
int job_run_judge_put_back(struct job_manager *m, struct active_job *a, bool *last,
                           struct error *e);

/* Stores the verdict and, if the job is queued again, the start of attempt `next`. */
int job_run_end_put_back(struct job_manager *m, struct active_job *a, int64_t next,
                         struct error *e);

/* After the end: exports logs, stores the measurements and removes old checkpoints. Best effort. */
void job_run_finish(struct job_manager *m, struct active_job *a);

/* Returns the reason of the first failed attempt, to be freed by the caller; NULL if none
 * failed. */
char *job_run_first_failure(const struct store_job *job);

struct slurm_end {
    const struct slurm_status *slurm;
    int64_t attempt;
    enum failure_stop why; /* why traind asked it to stop */
    bool signalled;        /* the script received Slurm's signal before the time limit */
    bool begun;            /* the script was started */
    const char *refused;   /* "node n1: why" if its prolog drained a node; NULL: unknown */
};

/* Corrects failure_judge's verdict where Slurm knows more than the run directory. */
void job_run_slurm_verdict(const struct slurm_end *end, struct verdict *verdict);

/* Does the same for an attempt that Slurm requeued. */
void job_run_slurm_put_back(const struct slurm_end *end, struct verdict *verdict);
