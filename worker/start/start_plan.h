/* Prepares the job, the data and the plan of a run that starts. */
#pragma once

#include "worker/run.h"

/* Rank 0 reads the document. Adapts it to the number of workers that were started, and refuses a
 * run directory that belongs to another job. Collective. */
int start_job(struct run *r, const char *path, bool resumes, struct error *e);

/* Opens the data, counts the images, and makes the plan or compares it with the stored one.
 * Collective. */
int start_data(struct run *r, struct error *e);
