/* The files that a finished job's run directory gets. */
#pragma once

#include "common/error.h"
#include "daemon/store/store.h"

/* Writes RUN/mllog.txt and RUN/tensorboard/, each whole or not at all. */
int export_write(struct store *store, int64_t job_id, struct error *e);
