/* Labels of a job. Name, tags and note may be changed in any state; the stored document is updated
 * too. */
#pragma once

#include "daemon/store/store.h"

struct sql;

/* change: a validated object with any of "name", "note" (string or null), "tags" (the complete
 * list; null: none), "add_tags" and "remove_tags". Writes a "labels" event and an audit line.
 * Durable. ERR_INVALID: too many tags; ERR_NOT_FOUND. */
int store_job_label(struct store *s, int64_t id, const json_t *change, const char *by, double now,
                    struct error *e);

/* Runs in the caller's transaction. */
int store_tags_insert(struct sql *c, int64_t id, const char *const *tags, size_t count,
                      struct error *e);
int store_label_document(struct sql *c, int64_t id, struct error *e);
