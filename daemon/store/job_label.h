/*
 * What people write on a job: name, tags, note. A job begins with those of its document. They
 * say nothing to the plan or the worker, so they may be changed in any state; the stored document
 * follows, so that a copy of the job has them too.
 */
#pragma once

#include "daemon/store/store.h"

struct sql;

/* change: an object with any of "name", "note" (a text, or null),
 * "tags" (all of them; null: none), "add_tags", "remove_tags" (lists), each right by itself. A key
 * that is not there stays as it is. What differs is told by an event "labels" and a line of the
 * audit log. Durable. ERR_INVALID: too many tags; ERR_NOT_FOUND. */
int store_job_label(struct store *s, int64_t id, const json_t *change, const char *by, double now,
                    struct error *e);

/* In the caller's transaction: the tags of a new job; the document's labels as they are now. */
int store_tags_insert(struct sql *c, int64_t id, const char *const *tags, size_t count,
                      struct error *e);
int store_label_document(struct sql *c, int64_t id, struct error *e);
