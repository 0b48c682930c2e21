#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "common/problem.h"

/* Finds a preset. Returns a new reference to its document, or NULL if there is none. name
 * NULL: returns the list of names, or NULL. A callback keeps the parser free of I/O; see
 * preset_lookup. */
typedef json_t *job_preset_lookup(const char *name, void *context);

/* Parses and checks a document, whose missing keys come from its preset, and then from the
 * defaults. Adds all problems to *problems. Returns a new spec (free it with job_spec_destroy), or
 * NULL if there was a problem. A document with all keys, such as the result of job_spec_to_json,
 * may name an unknown preset; lookup may then be NULL. */
struct job_spec *job_spec_parse(const json_t *document, job_preset_lookup *lookup, void *context,
                                struct problems *problems);

/* Like job_spec_parse, for callers that make further checks, so that the user sees all problems at
 * once. Returns a spec even if there are problems, with defaults instead of invalid values; check
 * *problems before using it otherwise. Returns NULL only if the document is not an object. */
struct job_spec *job_spec_read(const json_t *document, job_preset_lookup *lookup, void *context,
                               struct problems *problems);

/* Returns the document with all defaults. job_spec_parse(job_spec_to_json(s)) equals s. */
json_t *job_spec_to_json(const struct job_spec *spec);

/* Returns the JSON Schema (draft 2020-12) of GET /v1/schema/job and schema/job.schema.json. */
json_t *job_spec_schema(void);

void job_spec_destroy(struct job_spec *spec); /* accepts NULL */
