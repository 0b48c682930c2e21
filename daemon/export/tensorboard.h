/* Exports a job as a TensorBoard event file from the store, so a resumed run has each step once. */
#pragma once

#include <stdio.h>

#include "common/error.h"
#include "daemon/store/job_row.h"

#define EXPORT_TENSORBOARD_NAME "events.out.tfevents.%lld.job-%lld" /* created_at, id */

/* Series of more than 20,000 steps are reduced to means. */
int export_tensorboard(struct store *store, const struct store_job *job, FILE *out,
                       struct error *e);
