/*
 * Whose a run directory is. STATE/jobs/ID holds an owner.json, {"store", "job", "created_at"}: the
 * database, the job and when it was submitted. A database that was restored from a backup, or is
 * new, may not know the jobs that other directories belong to, so nothing in a directory is read,
 * written or removed for a job before it was looked at here, and new ids lie above all there are.
 */
#pragma once

#include <stdint.h>

#include "daemon/store/job_row.h"

enum run_dir {
    RUN_DIR_OWN,
    RUN_DIR_MISSING,
    RUN_DIR_FOREIGN,
    RUN_DIR_UNKNOWN /* its owner.json cannot be read */
};

/* *e gets the words for a directory that is missing (ERR_NOT_FOUND), foreign (ERR_CONFLICT) or of
 * an unknown owner. Thread-safe. */
enum run_dir run_dir_look(struct store *s, const struct store_job *job, struct error *e);

/* 0: what is there may be read for this job. A directory that is missing is an error only of a job
 * that was launched once. Thread-safe. */
int run_dir_check(struct store *s, const struct store_job *job, struct error *e);

/* Makes the run directory with its owner.json, or finds that it is the job's own. ERR_CONFLICT: it
 * is foreign; it is left as it is. */
int run_dir_claim(struct store *s, const struct store_job *job, struct error *e);

/* Writes the owner.json anew: the caller knows by other means that the directory is the job's. */
int run_dir_mark(struct store *s, const struct store_job *job, struct error *e);

/* As run_dir_claim, with job.json and plan.json as they are in the job's row. */
int run_dir_prepare(struct store *s, const struct store_job *job, struct error *e);

/* The highest N of its attempt-N; 0: none. */
int64_t run_dir_last_attempt(const char *run_dir);

/* At the daemon's start: the next id lies above those of all run directories, and the log names the
 * directories without a job and the launched jobs without a directory. */
int run_dirs_survey(struct store *s, const char *jobs_dir, struct error *e);
