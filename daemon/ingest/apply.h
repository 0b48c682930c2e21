/*
 * From lines of events.jsonl to rows: parses what follow_read found and commits it together with
 * the position behind it, so that every event is stored exactly once whatever happens to the
 * daemon. A line that is not an event is counted and told as a warning, never an error.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct ingest;

/* Follows RUN/attempt-N/events.jsonl from the stored position on. The store must outlive it. */
int ingest_create(struct store *store, int64_t job_id, int64_t attempt, const char *attempt_dir,
                  struct ingest **out, struct error *e);
void ingest_destroy(struct ingest *i); /* NULL is fine */

/* Stores every whole line that is there now. Nothing is lost on an error: the next call tries
 * again. */
int ingest_catch_up(struct ingest *i, struct error *e);
