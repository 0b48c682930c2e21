/*
 * A series at coarser scales: level l has a row for each 8^l steps that holds how many steps there
 * are and count, sum, minimum and maximum of each metric. Made from the level below in the
 * transaction that stores the steps, so a step that is done again after a resume counts once.
 */
#pragma once

#include "daemon/store/sql.h"

/* Makes the buckets anew that hold steps of [first_step, last_step], inside the caller's
 * transaction. */
int store_buckets_update(struct sql *c, int64_t job_id, int64_t first_step, int64_t last_step,
                         struct error *e);

/* Makes all buckets of the jobs of an older database that have none, a transaction each. */
int store_buckets_fill(struct store *s, struct error *e);
