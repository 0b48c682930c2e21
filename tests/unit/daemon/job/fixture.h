/* A store and a job manager with 4 slots, which does not run, in a temporary folder; and a job.
 * Every function fails the test on an error. */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "daemon/job/job_manager.h"
#include "daemon/store/job_row.h"
#include "daemon/store/store_open.h"

extern char jobs_dir[256];
extern struct store *jobs_store;
extern struct job_manager *jobs_manager;
extern struct job_spec *jobs_spec; /* of jobs_parse: two workers of one thread at first */
extern struct plan *jobs_plan;

void jobs_open(void);
void jobs_close(void);

void jobs_parse(const char *cluster); /* the members of "cluster" */
int64_t jobs_submit(void);
struct store_job jobs_get(int64_t id); /* store_job_clear it */
enum job_state jobs_state(int64_t id);

/* Makes the run directory and begins an attempt, as the loop does before it starts a launcher. */
void jobs_begin(int64_t id);
void jobs_set_state(int64_t id, enum job_state state);

/* A file of the run directory; its folders are made. */
void jobs_write(int64_t id, const char *name, const char *text);
void jobs_write_checkpoint(int64_t id, int64_t step);
