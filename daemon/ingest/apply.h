/*
 * Parses the lines of events.jsonl and commits them together with the position after them, so every
 * event is stored exactly once, whatever happens to the daemon. A line that is not an event is
 * counted and reported as a warning, never an error.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct ingest;

/* Reads ATTEMPT_DIR/events.jsonl from the stored position on. The store must outlive it. */
int ingest_create(struct store *store, int64_t job_id, int64_t attempt, const char *attempt_dir,
                  struct ingest **out, struct error *e);
void ingest_destroy(struct ingest *i); /* NULL is fine */

/* Stores every whole line written so far. After an error the next call starts where this one did.
 */
int ingest_catch_up(struct ingest *i, struct error *e);
