/*
 * A job in the formats of others, made from the store whenever asked for: so a run that was resumed
 * has each step once. The run directory gets both when an attempt ends.
 */
#pragma once

#include <stdio.h>

#include "common/error.h"
#include "daemon/store/job_row.h"

/* The log of a training by MLPerf's rules (mlcommons/training_policies, training_rules: "Required
 * logging"): ":::MLLOG {json}" lines by time. */
int export_mllog(struct store *store, const struct store_job *job, FILE *out, struct error *e);

/* An event file of TensorBoard: the scalars of the steps and the evaluations, the document as
 * hyper-parameters. Of more than 20,000 steps it tells means. */
int export_tensorboard(struct store *store, const struct store_job *job, FILE *out,
                       struct error *e);

#define EXPORT_TENSORBOARD_NAME "events.out.tfevents.%lld.job-%lld" /* created at, id */

/* RUN/mllog.txt and RUN/tensorboard/, each whole or not at all. */
int export_write(struct store *store, int64_t job_id, struct error *e);
