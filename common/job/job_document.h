/* From a job document to struct job_spec, and back. */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "common/problem.h"

/* Finds a preset by name: a new reference to its document, or NULL. Lets the pure parser be given
 * the folder of presets by those who may read files: preset_lookup of common/job/recipe/preset.h.
 * Called with NULL instead of a name it returns the list of all names (or NULL), for "did you
 * mean". */
typedef json_t *job_preset_lookup(const char *name, void *context);

/*
 * Parses and checks a document: preset first, then the document over it, then defaults. A document
 * that states every key, as job_spec_to_json writes it, may name a preset that is not (or no
 * longer) to be had; lookup may be NULL for such ones. Every problem is added to *problems (JSON
 * pointer, what is wrong, the nearest right key). Returns a new spec (free with job_spec_destroy),
 * or NULL if there was a problem.
 */
struct job_spec *job_spec_parse(const json_t *document, job_preset_lookup *lookup, void *context,
                                struct problems *problems);

/* The same for those who check more than the document alone, so that a person is told all problems
 * at once: a document with problems gives a spec too, which has the default of each key whose value
 * is wrong. Look at *problems before it is used for anything else. NULL only where the document is
 * no object. */
struct job_spec *job_spec_read(const json_t *document, job_preset_lookup *lookup, void *context,
                               struct problems *problems);

/* The document with its defaults written out; job_spec_parse(job_spec_to_json(s)) equals s. */
json_t *job_spec_to_json(const struct job_spec *spec);

/* The JSON Schema (draft 2020-12) of the document: GET /v1/schema/job, schema/job.schema.json. */
json_t *job_spec_schema(void);

void job_spec_destroy(struct job_spec *spec); /* NULL is fine */
