/* Provenance of a job's run, and the document that repeats it. */
#pragma once

#include <jansson.h>

#include "daemon/http/routes.h"

struct job_provenance {
    struct store_job job;
    json_t *file;          /* RUN/provenance.json, an object; NULL: it has none (yet) */
    const json_t *attempt; /* of it, provenance_attempt; NULL: none */
};

/* A new object with the list "attempts"; NULL: none that is valid and within limit_bytes. */
json_t *job_provenance_file(const struct request *q, const struct store_job *job,
                            size_t limit_bytes);

/* Clear in any case. ERR_NOT_FOUND */
int job_provenance_load(const struct request *q, int64_t id, struct job_provenance *p,
                        struct error *e);
void job_provenance_clear(struct job_provenance *p);

/* ERR_CONFLICT: not ended. */
int job_repro_check(const struct store_job *job, struct error *e);

/* A new object; appends {"pointer", "value"} of each choice of the run to pinned. */
json_t *job_repro_document(const struct job_provenance *p, json_t *pinned);
