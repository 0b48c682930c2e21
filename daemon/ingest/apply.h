/* Parses the lines of events.jsonl and commits them together with the position after them, so that
 * every event is stored exactly once even if the daemon crashes. A line that is not an event is
 * counted and reported as a warning, never as an error. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct ingest;

/* Starts at the stored position of ATTEMPT_DIR/events.jsonl. The store must outlive the result. */
int ingest_create(struct store *store, int64_t job_id, int64_t attempt, const char *attempt_dir,
                  struct ingest **out, struct error *e);
void ingest_destroy(struct ingest *i); /* NULL-safe */

/* Stores every complete line written so far. After an error, the next call starts at the same
 * line. */
int ingest_catch_up(struct ingest *i, struct error *e);
