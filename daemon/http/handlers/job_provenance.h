/* Provenance of a job's run, and the document that reproduces it. */
#pragma once

#include <jansson.h>

#include "daemon/http/routes.h"

struct job_provenance {
    struct store_job job;
    json_t *file;          /* RUN/provenance.json, an object; NULL: none (yet) */
    const json_t *attempt; /* its provenance_attempt; NULL: none */
};

/* Returns a new object with the list "attempts", or NULL if there is no valid one of at most
 * limit_bytes. */
json_t *job_provenance_file(const struct request *q, const struct store_job *job,
                            size_t limit_bytes);

/* Clear it even after an error. ERR_NOT_FOUND. */
int job_provenance_load(const struct request *q, int64_t id, struct job_provenance *p,
                        struct error *e);
void job_provenance_clear(struct job_provenance *p);

/* ERR_CONFLICT: the job has not ended. */
int job_repro_check(const struct store_job *job, struct error *e);

/* Returns a new object. Appends {"pointer", "value"} for each choice of the run to pinned. */
json_t *job_repro_document(const struct job_provenance *p, json_t *pinned);
