/* The job, the data and the plan of a starting run. */
#pragma once

#include "worker/run.h"

/* Rank 0 reads the document. Fits it to the workers that were started, and refuses a run directory
 * that holds another job. Collective. */
int start_job(struct run *r, const char *path, bool resumes, struct error *e);

/* Opens and counts the data; makes the plan or checks it against the stored one. Collective. */
int start_data(struct run *r, struct error *e);
