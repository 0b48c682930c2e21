/* A job in other formats, made from the store, so that a resumed run has each step once. */
#pragma once

#include <stdio.h>

#include "common/error.h"
#include "daemon/store/job_row.h"

/* MLPerf's log (mlcommons/training_policies, "Required logging"): ":::MLLOG {json}" lines by time.
 */
int export_mllog(struct store *store, const struct store_job *job, FILE *out, struct error *e);

/* A TensorBoard event file; means beyond 20,000 steps. */
int export_tensorboard(struct store *store, const struct store_job *job, FILE *out,
                       struct error *e);

#define EXPORT_TENSORBOARD_NAME "events.out.tfevents.%lld.job-%lld" /* created_at, id */

/* Writes RUN/mllog.txt and RUN/tensorboard/, each whole or not at all. */
int export_write(struct store *store, int64_t job_id, struct error *e);
