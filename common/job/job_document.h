#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "common/problem.h"

/* Finds a preset: a new reference to its document, or NULL. NULL instead of a name: the list of
 * names (or NULL). Keeps the parser free of I/O; see preset_lookup. */
typedef json_t *job_preset_lookup(const char *name, void *context);

/* Parses and checks a document over its preset over the defaults. A document that states every key,
 * as from job_spec_to_json, may name an unknown preset; lookup may be NULL then. Adds all problems
 * to *problems. Returns a new spec (job_spec_destroy), or NULL if there was a problem. */
struct job_spec *job_spec_parse(const json_t *document, job_preset_lookup *lookup, void *context,
                                struct problems *problems);

/* The same for callers with further checks, so that the user sees all problems at once: returns a
 * spec also with problems, with defaults for wrong values; check *problems before using it
 * otherwise. NULL only if the document is not an object. */
struct job_spec *job_spec_read(const json_t *document, job_preset_lookup *lookup, void *context,
                               struct problems *problems);

/* The document with all defaults; job_spec_parse(job_spec_to_json(s)) equals s. */
json_t *job_spec_to_json(const struct job_spec *spec);

/* JSON Schema (draft 2020-12): GET /v1/schema/job, schema/job.schema.json. */
json_t *job_spec_schema(void);

void job_spec_destroy(struct job_spec *spec); /* NULL is fine */
