/* Files written into a finished job's run directory. */
#pragma once

#include "common/error.h"
#include "daemon/store/store.h"

/* Writes RUN/mllog.txt and RUN/tensorboard/, each atomically. */
int export_write(struct store *store, int64_t job_id, struct error *e);
