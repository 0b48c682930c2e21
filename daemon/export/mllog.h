/* Exports the MLPerf log of a job (mlcommons/training_policies, "Required logging") from the store,
 * so a resumed run has each step once. */
#pragma once

#include <stdio.h>

#include "common/error.h"
#include "daemon/store/job_row.h"

/* Writes ":::MLLOG {json}" lines, ordered by time. */
int export_mllog(struct store *store, const struct store_job *job, FILE *out, struct error *e);
