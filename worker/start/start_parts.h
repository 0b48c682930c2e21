/* What the files start*.c share. All collective. */
#pragma once

#include "common/problem.h"
#include "worker/run.h"

/* start_job.c: reads the job, fits it to the workers that were started, and refuses a run directory
 * that holds another one. */
int start_job(struct run *r, const char *path, bool resumes, struct error *e);

/* start_model.c: from the seed, from model.init or from the checkpoint that is resumed; with the
 * same bits on all ranks. */
int start_model(struct run *r, struct error *e);

/* start_data.c: opens the data, counts it and makes the plan, or takes up the stored one. */
int start_data(struct run *r, struct error *e);

/* start_job.c: "PATH: what is wrong; what else is". */
int start_refuse(const struct problems *problems, const char *path, enum error_code code,
                 struct error *e);
