/*
 * The run directories STATE/jobs/ID and their ownership record owner.json, {"store", "job",
 * "created_at"}: the database, the job and when it was submitted. A database that is new, or was
 * restored from a backup, may not know the jobs of existing directories, so nothing in one is read,
 * written or removed before this check, and new ids are above all existing ones. Thread-safe.
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

/* *e describes a directory that is missing (ERR_NOT_FOUND), foreign (ERR_CONFLICT) or of an unknown
 * owner. */
enum run_dir run_dir_look(struct store *s, const struct store_job *job, struct error *e);

/* 0: it may be read for this job. A missing one is an error only if the job was ever launched. */
int run_dir_check(struct store *s, const struct store_job *job, struct error *e);

/* Makes the run directory with its owner.json, unless it is there. ERR_CONFLICT: it is foreign. */
int run_dir_claim(struct store *s, const struct store_job *job, struct error *e);

/* Rewrites owner.json: the caller knows by other means that the directory is the job's. */
int run_dir_mark(struct store *s, const struct store_job *job, struct error *e);

/* As run_dir_claim, with job.json and plan.json as in the job's row. */
int run_dir_prepare(struct store *s, const struct store_job *job, struct error *e);

/* The highest N of its attempt-N; 0: none. */
int64_t run_dir_last_attempt(const char *run_dir);

/* At the daemon's start: sets the next id above those of all run directories, and logs directories
 * without a job and launched jobs without a directory. */
int run_dirs_survey(struct store *s, const char *jobs_dir, struct error *e);
