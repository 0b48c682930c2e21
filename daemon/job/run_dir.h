/* Run directories STATE/jobs/ID and their ownership record owner.json, {"store", "job",
 * "created_at"}: the database, the job and its submission time. A database that is new or was
 * restored from a backup may not know the jobs of existing directories. Therefore a directory is
 * checked before anything in it is read, written or removed, and new ids are higher than all
 * existing ones. Thread-safe. */
#pragma once

#include <stdint.h>

#include "daemon/store/job_row.h"

enum run_dir {
    RUN_DIR_OWN,
    RUN_DIR_MISSING,
    RUN_DIR_FOREIGN,
    RUN_DIR_UNKNOWN /* owner.json cannot be read */
};

/* Checks who owns the job's run directory. *e describes a directory that is missing
 * (ERR_NOT_FOUND), foreign (ERR_CONFLICT) or of unknown owner. */
enum run_dir run_dir_look(struct store *s, const struct store_job *job, struct error *e);

/* Returns 0 if the run directory may be read for this job. A missing one is an error only if the
 * job was ever launched. */
int run_dir_check(struct store *s, const struct store_job *job, struct error *e);

/* Creates the run directory with its owner.json unless it exists. ERR_CONFLICT: it is foreign. */
int run_dir_claim(struct store *s, const struct store_job *job, struct error *e);

/* Rewrites owner.json; the caller must know that the directory is the job's. */
int run_dir_mark(struct store *s, const struct store_job *job, struct error *e);

/* Does the same as run_dir_claim and also writes job.json and plan.json from the job's row. */
int run_dir_prepare(struct store *s, const struct store_job *job, struct error *e);

/* Returns the highest N of the attempt-N folders, or 0. */
int64_t run_dir_last_attempt(const char *run_dir);

/* Called at startup: raises the next id above those of all run directories, and logs directories
 * without a job and launched jobs without a directory. */
int run_dirs_survey(struct store *s, const char *jobs_dir, struct error *e);
